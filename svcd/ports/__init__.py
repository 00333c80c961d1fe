"""What provisioning, workflow and resources need of the outside, as Protocols.

`svcd.service` injects the implementations: clients for the real peers, `embedded` behind the same
clients, the store. Nothing here acts. Import from the modules: `faults` (the kinds, by which the
callers decide), `cloud`, `machines`, `engine`, `store`, `leases`.
"""
