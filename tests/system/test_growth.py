"""The work for one more thing does not grow with the number of things there are.

The tests count steps of the program and compare a small installation with one of four times the
size. A loop over all things for each thing, which makes a square, fails them on any machine.
`benchmarks.growth` has the times.
"""

from __future__ import annotations

import cProfile
from collections.abc import Callable, Mapping

from twisted.trial.unittest import SynchronousTestCase

from benchmarks import growing
from svcd.testing import FakeService

GROWTH = 1.1
"""Most that a step count may grow per thing."""
ROOM = 2.0
"""Steps per thing that do not count as growth: what a start costs is shared by more things."""
NODES = 10


def counted(work: Callable[[FakeService], object]) -> Mapping[str, int]:
    """Steps of `work`.

    calls: of functions. rows: records that the cloud's services have read. database: hundreds of
    instructions that the daemon's statements took.
    """
    with FakeService(growing.SETTINGS) as svcd:
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

    def compare(self, work: Callable[[FakeService, int], object], few: int, many: int) -> None:
        """Check the work for each of `many` things against that for each of `few`."""
        small = counted(lambda svcd: work(svcd, few))
        large = counted(lambda svcd: work(svcd, many))
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
