"""The embedded cloud's memory on a disk that is full."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.cloud.records import Container
from svcd.embedded.cloud.state import State
from tests.support.disks import fill, small_disk


class FullDiskTests(SynchronousTestCase):
    def test_what_could_not_be_written_is_written_later(self) -> None:
        """Nothing is forgotten, the order stays, and meanwhile it says what is wrong."""
        folder = small_disk(self, self.mktemp(), 1)
        state = State(folder)
        state.containers.put(_named("a"))
        filler = fill(folder)
        state.containers.put(_named("b" * 9000))
        with state.transaction():
            state.containers.put(_named("c"))
            state.containers.remove("a")
        self.assertIn("full", state.problem)
        filler.unlink()
        state.containers.put(_named("d"))
        self.assertEqual(state.problem, "")
        state.close()
        again = State(folder)
        self.addCleanup(again.close)
        self.assertEqual([c.id[0] for c in again.containers.values()], ["b", "c", "d"])


def _named(id_: str) -> Container:
    return Container(id=id_, account="a", name=id_, created_at=0.0)
