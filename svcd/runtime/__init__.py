"""Shared by every room: tasks, clocks, the fence of leases, logs, metrics, files of the process."""
