"""Decides about executions: pure functions of rows, answers of peers, and the time."""
