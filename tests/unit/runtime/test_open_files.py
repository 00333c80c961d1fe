"""Connections of the API within the files that the process may open."""

from __future__ import annotations

import json
import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

_CODE = """
import json, resource, sys
from attrs import evolve
from twisted.logger import globalLogPublisher
from svcd.runtime.open_files import fitted
from svcd.settings import CloudSettings as Cloud, Server, Settings
kind = sys.argv.pop()
soft, hard, wanted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
cloud = Cloud(kind=kind)
logged = []
globalLogPublisher.addObserver(lambda event: logged.append(event["log_level"].name))
made = fitted(Settings(server=Server(max_connections=wanted), cloud=cloud))
soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
print(json.dumps([made.server.max_connections, soft, *logged]))
"""


class FittedTests(SynchronousTestCase):
    """In a process of its own, whose limit is set."""

    def fitted(self, soft: int, hard: int, wanted: int, kind: str = "openstack") -> tuple[int, int]:
        """Connections that are allowed, and the soft limit after it."""
        allowed, limit, *_ = self.results(soft, hard, wanted, kind)
        return int(allowed), int(limit)

    def results(self, soft: int, hard: int, wanted: int, kind: str) -> list[int | str]:
        """The same, and the levels of the lines in the log."""
        command = [sys.executable, "-c", _CODE, str(soft), str(hard), str(wanted), kind]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        found: list[int | str] = json.loads(done.stdout)
        return found

    def test_a_soft_limit_below_the_hard_limit_is_not_logged(self) -> None:
        """svcd raises it."""
        self.assertEqual(self.results(256, 16_000, 10_000, "embedded"), [10_000, 15_632])

    def test_a_low_hard_limit_is_a_warning_when_the_setting_asks_for_more(self) -> None:
        """Not when a default does: the callers of a laptop are few."""
        for wanted, levels in ((19_000, ["warn"]), (20_000, ["debug"])):
            self.assertEqual(self.results(20_000, 20_000, wanted, "embedded")[2:], levels)

    def test_the_machines_of_the_embedded_cloud_have_files_of_their_own(self) -> None:
        """A flood of their forwards leaves the API its connections."""
        self.assertEqual(self.fitted(256, 9000, 1000, "embedded"), (1000, 6632))
        self.assertEqual(self.fitted(256, 12_000, 20_000, "embedded"), (6368, 12_000))
