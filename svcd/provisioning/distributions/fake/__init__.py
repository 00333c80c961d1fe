"""A light distribution for tests and harnesses: vanilla's processes and rules, no Java.

Each daemon is one line in a file of its machine; jobs go to a scripted engine. Everything runs
over real SSH too, so the whole of provisioning is exercised.
"""

from svcd.provisioning.distributions.fake.distribution import Fake

__all__ = ["Fake"]
