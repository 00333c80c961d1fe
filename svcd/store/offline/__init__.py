"""The database without a daemon: what `svcd backup`, `svcd restore` and `svcd db` work with."""
