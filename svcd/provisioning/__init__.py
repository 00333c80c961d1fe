"""Clusters: checks of requests, plans of steps, and their execution."""
