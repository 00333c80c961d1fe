"""The records of svcd's data (frozen), and their shapes on the wire. Pure: no I/O."""
