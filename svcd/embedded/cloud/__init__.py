"""The embedded cloud: the subset of OpenStack that svcd and the `openstack` command use."""
