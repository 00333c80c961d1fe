"""Deciding about clusters: values in, values out. Nothing here acts, waits or reads a clock."""
