"""Access to the database without a daemon, for `svcd backup`, `svcd restore` and `svcd db`."""
