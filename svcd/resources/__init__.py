"""The HTTP interface: one door, one file a resource."""
