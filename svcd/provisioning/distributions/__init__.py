"""Distributions: what can be installed on a cluster. They decide and never act (see `spi`)."""
