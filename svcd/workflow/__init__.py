"""Jobs: from an execution row to a workflow at the engine and back."""
