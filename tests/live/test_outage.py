"""The only worker of real Hadoop goes under a running job: told, cancelled, deleted.

Needs the software tree of the vanilla distribution, as tests/live/test_main_job. About a minute on
two cores; the other outages are `python -m tests.kills.dead`.
"""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from tests.kills.outage import CANCELLED_S, Outage
from tests.live.test_main_job import vanilla_prefix
from tests.support.sample import SLOW

skip = SLOW


class OutageTests(TestCase):
    timeout = 900

    async def test_a_lost_worker_is_told_and_the_job_can_be_cancelled(self) -> None:
        """Not `RUNNING` for ever without a word; and nothing is left of it."""
        prefix = vanilla_prefix()
        outage = Outage(Path(self.mktemp()).absolute(), prefix, 1800.0, quiet=True)
        self.addCleanup(lambda: Deferred.fromCoroutine(outage.end()))
        await outage.begin()
        execution = await outage.running(600.0)
        await outage.remove_worker()
        code = await outage.told(execution, {"NO_WORKERS"}, 240.0)
        await outage.explained(execution, code)
        waiting = (await outage.info(execution))["waiting"]
        self.assertIn("outage-worker-001 is LOST", waiting["text"])
        self.assertGreater(waiting["until"], waiting["since"])
        await outage.cancelled(execution, CANCELLED_S)
        self.assertEqual((await outage.info(execution))["status"], "KILLED")
        await outage.deleted()
