"""What every room runs on: tasks, clocks, leases' fence, logs, metrics, files of the process."""
