"""Frozen records of everything svcd knows, and their shapes on the wire. Pure: no I/O."""
