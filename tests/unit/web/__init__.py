"""Tests of the routing toolkit."""
