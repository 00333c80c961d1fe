"""Peers that misbehave, and what the daemon makes of them: see `test_hostile`."""
