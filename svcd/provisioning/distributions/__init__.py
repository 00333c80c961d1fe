"""Distributions: the software of clusters. They decide and never act (see `spi`)."""
