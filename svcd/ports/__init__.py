"""The Protocols by which provisioning, workflow and resources reach peers and the store.

`svcd.daemon` injects the implementations: the clients, for real peers and for the embedded ones,
and the store. Nothing here acts. Import from the modules: `faults` (the kinds of faults, on which
the callers decide), `cloud`, `machines`, `engine`, `store`, `lease`.
"""
