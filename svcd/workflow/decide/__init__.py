"""Decides about executions: pure functions of rows, of what was seen, and of the time."""
