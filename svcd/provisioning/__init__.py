"""Clusters: what is asked for, what has to be done, and doing it."""
