"""What several suites use: daemons as processes, clouds, machines, databases."""
