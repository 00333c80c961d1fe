"""Every call of each operation, and everything that can befall it: see `enumeration`."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase, TestCase

from tests.simulation import enumeration
from tests.simulation.enumeration import OPERATIONS, Case
from tests.simulation.test_live_seeds import LIMIT_S, simulate


class CasesTests(TestCase):
    timeout = 2 * LIMIT_S

    def test_every_case_ends_as_it_must(self) -> None:
        """With the right code, and nothing left behind. The number of cases is printed."""
        code, output = simulate("--cases")
        self.assertEqual(code, 0, output[-20_000:])
        told = [line for line in output.splitlines() if " cases, 0 failed" in line]
        print("\n" + "\n".join(told))
        self.assertEqual([line.partition(":")[0] for line in told[:-1]], list(OPERATIONS))


class TraceTests(SynchronousTestCase):
    def test_trace_holds_every_kind_of_call(self) -> None:
        """Of a create with volumes, addresses and groups; store, cloud and machines."""
        heard = {each.where for each in enumeration.trace(OPERATIONS["create"])}
        outside = {"store", "identity", "image", "compute", "network", "volume", "ssh"}
        self.assertEqual(heard, outside)
        heard = {each.where for each in enumeration.trace(OPERATIONS["execute"])}
        self.assertEqual(heard, {"store", "identity", "hdfs", "engine"})

    def test_a_case_can_be_played_alone(self) -> None:
        """It tells its call and its story."""
        done = enumeration.play(Case(operation="delete", position=0, variant="crash before"))
        self.assertEqual(done.breaches, ())
        self.assertIn("CRASH before", "\n".join(done.story))
