"""The lease: which of the daemons on one database does the work."""
