"""Connections of the API within the files that the process may open."""

from __future__ import annotations

import json
import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

_CODE = """
import json, resource, sys
from attrs import evolve
from svcd.runtime.open_files import fitted
from svcd.settings import CloudSettings as Cloud, Server, Settings
kind = sys.argv.pop()
soft, hard, wanted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
cloud = Cloud(kind=kind)
made = fitted(Settings(server=Server(max_connections=wanted), cloud=cloud))
print(json.dumps([made.server.max_connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0]]))
"""


class FittedTests(SynchronousTestCase):
    """In a process of its own, whose limit is set."""

    def fitted(self, soft: int, hard: int, wanted: int, kind: str = "openstack") -> tuple[int, int]:
        """Connections that are allowed, and the soft limit after it."""
        command = [sys.executable, "-c", _CODE, str(soft), str(hard), str(wanted), kind]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        allowed, limit = json.loads(done.stdout)
        return allowed, limit

    def test_a_limit_that_is_high_enough_is_left_alone(self) -> None:
        """All connections are allowed."""
        self.assertEqual(self.fitted(2000, 2000, 1000), (1000, 2000))

    def test_the_soft_limit_is_raised_as_far_as_needed(self) -> None:
        """Programs that are started inherit it: no further."""
        self.assertEqual(self.fitted(256, 4000, 1000), (1000, 2536))

    def test_connections_are_fewer_where_the_hard_limit_is_low(self) -> None:
        """Files of the daemon's own are kept free, half of very few."""
        self.assertEqual(self.fitted(1024, 1024, 20_000), (512, 1024))
        self.assertEqual(self.fitted(100, 256, 20_000), (128, 256))

    def test_the_machines_of_the_embedded_cloud_have_files_of_their_own(self) -> None:
        """A flood of their forwards leaves the API its connections."""
        self.assertEqual(self.fitted(256, 9000, 1000, "embedded"), (1000, 6632))
        self.assertEqual(self.fitted(256, 12_000, 20_000, "embedded"), (6368, 12_000))
