"""The launcher of a job on real Hadoop is killed while its child runs: never two, and nothing left.

Needs the software tree of the vanilla distribution, as tests/live/test_main_job. About a minute on
two cores; the other moments and types of jobs are `python -m tests.kills.launchers`.
"""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from tests.kills.launchers import Launchers
from tests.live.test_main_job import vanilla_prefix


class LauncherTests(TestCase):
    timeout = 600

    async def test_what_a_dead_launcher_had_begun_is_killed(self) -> None:
        """The job has failed with the reason, and its only child has ended by then."""
        prefix = vanilla_prefix()
        launchers = Launchers(Path(self.mktemp()).absolute(), prefix, quiet=True)
        self.addCleanup(lambda: Deferred.fromCoroutine(launchers.end()))
        await launchers.begin()
        told = await launchers.happens("Java", "running")
        self.assertIn("killed, KILLED LAUNCHER_LOST", told)
        self.assertIn("1 children, 1 at once: [('KILLED', 'KILLED')]", told)
        await launchers.deleted()
