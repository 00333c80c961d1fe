"""Leases: which of the daemons on one database drives which clusters and executions."""
