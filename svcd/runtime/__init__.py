"""Shared by every room: tasks, clocks, the fence, logs, metrics, files of the process."""
