"""A light distribution for tests and harnesses: vanilla's processes and rules, no Java.

Each daemon is one line in a file of its machine. Jobs go to a scripted engine. Its plans use the
same SSH commands and files as other plans, so tests with it exercise all of provisioning.
"""

from svcd.provisioning.distributions.fake.distribution import Fake

__all__ = ["Fake"]
