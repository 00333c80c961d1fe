"""Acting on clusters: rows, cloud, machines. Decisions are in `svcd.provisioning.decide`."""
