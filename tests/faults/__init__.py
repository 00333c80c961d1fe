"""Faults done to a real OpenStack by hand: `make faults`, some minutes, not part of `make test`.

They stop, hang and restart the platform's own services and are held to short deadlines, so they
want a machine for themselves. Each of these faults is also a rule of the embedded cloud, and its
outcome is tested there at every run (tests/system/test_cloud_behaviour*.py).
"""
