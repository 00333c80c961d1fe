"""Frozen records of svcd's data, and their shapes on the wire. Pure: no I/O."""
