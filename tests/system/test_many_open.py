"""A restart with a thousand operations open: what it costs until each is taken up again."""

from __future__ import annotations

import time
from collections import Counter

from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import FakeService
from tests.support.fakes import Api

MANY = 1000


class ManyOpenTests(SynchronousTestCase):
    """Processor time is told and bounded generously; what is asked of others is counted."""

    def restart_s(self, svcd: FakeService, settle_s: float) -> float:
        """Processor time from the start to `settle_s` virtual seconds later."""
        svcd.kill()
        before = time.process_time()
        svcd.restart()
        svcd.advance(settle_s)
        return time.process_time() - before

    def test_executions_that_run(self) -> None:
        """Their states are asked for in lists, not one by one; all go on running."""
        svcd = FakeService(settings={"workflow.poll_s": "5"})
        self.addCleanup(svcd.close)
        empty_s = self.restart_s(svcd, 10.0)
        api = Api(svcd)
        cluster_id = api.active_cluster()
        job, sources = api.new_job(), api.new_sources()
        configs = {"svcd.fake.outcome": "hang"}
        ids = [api.execute(job, cluster_id, sources, configs) for _ in range(MANY)]
        svcd.advance(60.0)
        asked: Counter[str] = Counter()
        svcd.faults.listen(lambda where, *_: asked.update([where]))
        many_s = self.restart_s(svcd, 10.0)
        print(f"\n{MANY} running: {many_s:.2f} s of processor, {empty_s:.2f} s with none", end=" ")
        self.assertLess(asked["engine"], 40)
        shown = [api.get(f"/job-executions/{id_}")["info"]["status"] for id_ in ids]
        self.assertEqual(Counter(shown), {"RUNNING": MANY})
        self.assertLess(many_s - empty_s, 10.0)
