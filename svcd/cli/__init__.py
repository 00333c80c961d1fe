"""The `svcd` command."""
