"""The distribution `vanilla`: released Apache Hadoop, Pig and Oozie. See `distribution`."""

from svcd.provisioning.distributions.vanilla.distribution import Vanilla

__all__ = ["Vanilla"]
