"""The work for one more thing does not grow with the number of things there are.

The tests count steps of the program and compare a small installation with one of four times the
size. A loop over all things for each thing, which makes a square, fails them on any machine.
`benchmarks.growth` has the times.
"""

from __future__ import annotations

import cProfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from twisted.trial.unittest import SynchronousTestCase

from benchmarks import growing
from benchmarks.lives import asked, pig_job
from svcd.testing import FakeService

GROWTH = 1.1
"""Most that a step count may grow per thing."""
ROOM = 2.0
"""Steps per thing that do not count as growth: what a start costs is shared by more things."""
NODES = 10

Begin = Callable[[FakeService], object]
"""Makes what the work needs, before its steps are counted."""


def counted(
    work: Callable[[FakeService], object], begin: Begin = lambda _: None
) -> Mapping[str, int]:
    """Steps of `work`.

    calls: of functions. rows: records that the cloud's services have read. database: hundreds of
    instructions that the daemon's statements took.
    """
    with FakeService(growing.SETTINGS) as svcd:
        begin(svcd)
        steps = 0

        def step() -> None:
            nonlocal steps
            steps += 1

        rows = svcd.cloud.core.state.rows_read
        profile = cProfile.Profile()
        svcd._database._connection.set_progress_handler(step, 100)
        profile.enable()
        work(svcd)
        profile.disable()
        svcd._database._connection.set_progress_handler(None, 100)
        calls = sum(each.callcount for each in profile.getstats())
        rows = svcd.cloud.core.state.rows_read - rows
    return {"calls": calls, "rows": rows, "database": steps}


class GrowthTests(SynchronousTestCase):
    """Each test does the same work on a few and on many things."""

    def compare(
        self,
        work: Callable[[FakeService, int], object],
        few: int,
        many: int,
        begin: Begin = lambda _: None,
    ) -> None:
        """Check the work for each of `many` things against that for each of `few`."""
        small = counted(lambda svcd: work(svcd, few), begin)
        large = counted(lambda svcd: work(svcd, many), begin)
        for name, steps in small.items():
            before, after = steps / few, large[name] / many
            self.assertLessEqual(
                after, before * GROWTH + ROOM, f"{name}: {before:.1f} with {few}, {after:.1f}"
            )

    def test_clusters(self) -> None:
        """From the request to the end."""

        def lives(svcd: FakeService, count: int) -> None:
            made = growing.clusters(svcd, count, NODES)
            growing.all_active(svcd, made)
            growing.removed(svcd, made)

        self.compare(lives, 4, 16)

    def test_objects(self) -> None:
        """Listings of few names look only at these."""
        self.compare(growing.objects, 50, 200)

    def test_trusts(self) -> None:
        """A new trust is not compared with each other one."""
        self.compare(growing.trusts, 50, 200)

    def test_templates(self) -> None:
        """A new template is not counted with each other one."""
        self.compare(growing.templates, 50, 200)

    def test_jobs(self) -> None:
        """On one cluster, from the request until svcd has tidied up, with their progress."""
        used: dict[FakeService, Jobs] = {}

        def begin(svcd: FakeService) -> None:
            used[svcd] = Jobs(svcd)

        def lives(svcd: FakeService, count: int) -> None:
            for _ in range(count):
                used[svcd].execute(run_s=60.0)
            svcd.advance(150.0)
            used[svcd].all_succeeded(count)

        self.compare(lives, 10, 40, begin)


class Jobs:
    """Pig jobs on one cluster of `svcd`, with logins of their own for their data."""

    def __init__(self, svcd: FakeService) -> None:
        self.svcd = svcd
        (self.cluster,) = growing.clusters(svcd, 1, 2)
        self.job, self.source, self.target = pig_job(svcd)

    def execute(self, run_s: float) -> None:
        """Ask for a job that runs so long."""
        body = {
            "cluster_id": self.cluster,
            "input_id": self.source,
            "output_id": self.target,
            "job_configs": {"configs": {"svcd.fake.run_s": str(run_s)}, "args": {}, "params": {}},
        }
        asked(self.svcd, "POST", f"/jobs/{self.job}/execute", body)

    def all_succeeded(self, count: int) -> None:
        """Raises AssertionError unless `count` jobs did, and all work on them is done."""
        found = asked(self.svcd, "GET", "/job-executions")["job_executions"]
        shown = [(each["info"]["status"], each["progress"]) for each in found]
        assert shown == [("SUCCEEDED", 1.0)] * count, shown
        assert not self.svcd.activity()["executions"], self.svcd.activity()


class JobWorkTests(SynchronousTestCase):
    """The work on one job. Each number has a reason; one that grows needs another one."""

    def setUp(self) -> None:
        self.svcd = FakeService(growing.SETTINGS)
        self.addCleanup(self.svcd.close)
        self.jobs = Jobs(self.svcd)
        self.jobs.execute(run_s=1.0)  # tokens and connections are there already
        self.svcd.advance(60.0)
        self.jobs.all_succeeded(1)

    def counted(self, work: Callable[[], object]) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """The calls of `work` to the outside, and its transactions and statements in them."""
        calls, words = self.svcd.cloud.calls.copy(), Counter[str]()
        connection = self.svcd._database._connection
        connection.set_trace_callback(lambda text: words.update([text.split()[0]]))
        work()
        connection.set_trace_callback(None)
        return dict(self.svcd.cloud.calls - calls), words

    def test_a_start(self) -> None:
        """From the request until it runs, between two ticks."""

        def start() -> None:
            self.jobs.execute(run_s=600.0)
            while self.svcd.activity()["executions"]:
                self.svcd.advance(0.01)

        calls, words = self.counted(start)
        self.assertEqual(
            calls,
            {
                "identity POST /v3/users/<user_id>/application_credentials": 1,
                "engine GET oozie/v1/admin": 1,  # whether it is the cluster's own
                # the folder; place and content of the script, the action, the values, the class
                "engine PUT webhdfs": 9,
                "engine POST oozie/v1/jobs": 1,
                "engine GET oozie/v1/job": 1,
            },
        )
        # accepted; a name for the login, the login; the folder's name, sent, taken, running
        self.assertEqual((words["begin"], words["commit"]), (7, 7))
        self.assertLessEqual(words["select"], 23)

    def test_a_tick_without_a_change(self) -> None:
        """It asks for versions: no row of the running jobs is read, and none of their cluster."""
        count = 20
        for _ in range(count):
            self.jobs.execute(run_s=600.0)
        self.svcd.advance(61.0)
        texts: list[str] = []
        connection = self.svcd._database._connection
        connection.set_trace_callback(texts.append)
        self.svcd.advance(5.0)
        connection.set_trace_callback(None)
        self.assertEqual(
            [" ".join(text.split()[:4]) for text in texts],
            ["select version, id, ended,", "select version from clusters"],
        )

    def test_progress_of_many(self) -> None:
        """One question for all, and one transaction for each twenty that have got further."""
        count = 50
        for _ in range(count):
            self.jobs.execute(run_s=600.0)
        self.svcd.advance(100.0)

        def shares() -> Sequence[float]:
            found = asked(self.svcd, "GET", "/job-executions?status=RUNNING")["job_executions"]
            return [each["progress"] for each in found]

        before = shares()
        calls, words = self.counted(lambda: self.svcd.advance(20.0))
        after = shares()
        self.assertEqual(len(after), count)
        self.assertTrue(all(new > old for old, new in zip(before, after, strict=True)))
        self.assertEqual(calls["engine GET oozie/v1/jobs"], 4)
        self.assertNotIn("engine GET oozie/v1/job", calls)
        self.assertEqual(words["begin"], 3)

    def test_restart_with_many_running(self) -> None:
        """The next daemon asks for their states in lists, not one by one; all go on running."""
        count = 200
        for _ in range(count):
            self.jobs.execute(run_s=6000.0)
        self.svcd.advance(60.0)
        heard = Counter[str]()
        self.svcd.faults.listen(lambda where, *_: heard.update([where]))
        self.svcd.restart()
        self.svcd.advance(10.0)
        self.assertLess(heard["engine"], 10)
        found = asked(self.svcd, "GET", "/job-executions?status=RUNNING")["job_executions"]
        self.assertEqual(len(found), count)
