"""Acts for executions: tasks, remote calls and writes of rows."""
