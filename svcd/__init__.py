"""svcd: clusters and jobs on an OpenStack cloud, from one process."""
