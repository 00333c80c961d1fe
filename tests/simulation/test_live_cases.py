"""Every call of each operation, and everything that can befall it: see `enumeration`."""

from __future__ import annotations

from collections import Counter

from twisted.trial.unittest import SynchronousTestCase, TestCase

from tests.simulation import enumeration
from tests.simulation.enumeration import OPERATIONS, Case
from tests.simulation.test_live_seeds import LIMIT_S, simulate
from tests.support.sample import SAMPLE, leave_out

EVERY = 23 if SAMPLE else 17
"""One case in so many; a prime, so that no call and no variant is left out for its place.

`make simulate ARGS=--cases` runs all."""


class CasesTests(TestCase):
    timeout = 2 * LIMIT_S

    def test_every_case_ends_as_it_must(self) -> None:
        """With the right code, and nothing left behind. The number of cases is printed."""
        known = sum(len(enumeration.cases(each)) for each in OPERATIONS.values())
        leave_out("tests.simulation", -(-known // EVERY), known, "cases")
        code, output = simulate("--cases", "--every", str(EVERY))
        self.assertEqual(code, 0, output[-4000:])
        told = [line for line in output.splitlines() if " cases, 0 failed" in line]
        print("\n" + "\n".join(told))
        self.assertEqual([line.partition(":")[0] for line in told[:-1]], list(OPERATIONS))


class TraceTests(SynchronousTestCase):
    def test_trace_holds_every_kind_of_call(self) -> None:
        """Of a create with volumes, addresses and groups; store, cloud and machines."""
        heard = {each.where for each in enumeration.trace(OPERATIONS["create"])}
        outside = {"store", "identity", "image", "compute", "network", "volume", "ssh", "probe"}
        self.assertEqual(heard, outside)
        heard = {each.where for each in enumeration.trace(OPERATIONS["execute"])}
        self.assertEqual(heard - {"probe"}, {"store", "identity", "hdfs", "engine", "yarn"})
        heard = {each.where for each in enumeration.trace(OPERATIONS["execute stored"])}
        self.assertIn("object-store", heard)

    def test_every_kind_of_call_meets_every_fault(self) -> None:
        """The faults of the issue, for each peer as far as it can have them."""
        calls = Counter(
            (heard.where, variant.name)
            for name in ("create", "execute stored")
            for heard in enumeration.trace(OPERATIONS[name])
            for variant in enumeration.VARIANTS
            if variant.fits(heard)
        )
        every = ("crash before", "crash after", "stop", "refused", "slow", "dead", "frozen after")
        answers = ("500", "502 page", "503", "429", "401", "403", "garbage")
        timed = ("time-out before", "time-out after")
        for place in ("identity", "image", "compute", "network", "volume", "object-store"):
            for variant in (*every[:5], *answers, *timed):
                self.assertGreater(calls[place, variant], 0, (place, variant))
        for place in ("engine", "hdfs"):
            for variant in (*every, *answers, *timed, "late"):
                self.assertGreater(calls[place, variant], 0, (place, variant))
        for variant in (*every, *timed, "503", "garbage"):
            self.assertGreater(calls["ssh", variant], 0, variant)
        for variant in (*every, "answer lost", "database away"):
            self.assertGreater(calls["store", variant], 0, variant)

    def test_a_frozen_daemon_is_replaced(self) -> None:
        """The other one goes on; what wakes up late does nothing."""
        done = enumeration.play(Case(operation="execute", position=12, variant="frozen after"))
        self.assertEqual(done.breaches, ())
        story = "\n".join(done.story)
        self.assertIn(" FROZEN for 40.0 s after ", story)
        self.assertIn(" thawed", story)

    def test_a_case_can_be_played_alone(self) -> None:
        """It tells its call and its story."""
        done = enumeration.play(Case(operation="delete", position=0, variant="crash before"))
        self.assertEqual(done.breaches, ())
        self.assertIn("CRASH before", "\n".join(done.story))
