"""Scans of /proc that do not stall the reactor."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.processes import Processes
from svcd.runtime.clock import VirtualClock


class ProcessesTest(SynchronousTestCase):
    """Scans of a made-up /proc."""

    def setUp(self) -> None:
        self.proc = Path(self.mktemp())
        for pid, environ in {
            11: b"SVCD_MACHINE_ROOT=/s/m1\0",
            12: b"A=b\0",
            13: b"SVCD_MACHINE_ROOT=/s/m2\0",
            14: b"HOME=/h\0SVCD_MACHINE_ROOT=/s/m1\0",
        }.items():
            (self.proc / str(pid)).mkdir(parents=True)
            (self.proc / str(pid) / "environ").write_bytes(environ)
        (self.proc / "15").mkdir()
        (self.proc / "meminfo").touch()
        self.clock = VirtualClock()
        self.processes = Processes(self.clock, self.proc)

    def test_scan_groups_by_machine(self) -> None:
        """Processes that cannot be read are skipped."""
        found = self.successResultOf(Deferred.fromCoroutine(self.processes.by_root()))
        self.assertEqual(
            {root: sorted(pids) for root, pids in found.items()},
            {"/s/m1": [11, 14], "/s/m2": [13]},
        )

    def test_late_comers_share_the_next_scan(self) -> None:
        """A scan that had begun before the question is not its answer; one more serves all."""
        for pid in range(1000, 1150):
            (self.proc / str(pid)).mkdir()
        first = Deferred.fromCoroutine(self.processes.by_root())
        (self.proc / "9999").mkdir()
        (self.proc / "9999" / "environ").write_bytes(b"SVCD_MACHINE_ROOT=/s/m3\0")
        late = [Deferred.fromCoroutine(self.processes.by_root()) for _ in range(3)]
        for each in (first, *late):
            self.assertNoResult(each)
        for _ in range(10):
            self.clock.advance(0)
        self.assertNotIn("/s/m3", self.successResultOf(first))
        answers = [self.successResultOf(each) for each in late]
        self.assertEqual(answers[0]["/s/m3"], [9999])
        self.assertIs(answers[0], answers[1])
        self.assertIs(answers[0], answers[2])

    def test_cancelled_scan_is_taken_over(self) -> None:
        """Whoever waits for it goes on alone."""
        for pid in range(1000, 1150):
            (self.proc / str(pid)).mkdir()
        first = Deferred.fromCoroutine(self.processes.by_root())
        second = Deferred.fromCoroutine(self.processes.by_root())
        first.cancel()
        self.failureResultOf(first)
        for _ in range(10):
            self.clock.advance(0)
        self.assertIn("/s/m1", self.successResultOf(second))

    def test_machine_without_processes_has_ended(self) -> None:
        """Two scans with a pause: in the middle of an exec a process is not seen."""
        waiting = Deferred.fromCoroutine(self.processes.end(Path("/s/none"), grace_s=0, limit_s=1))
        self.assertNoResult(waiting)
        self.clock.advance(0.1)
        self.assertEqual(self.successResultOf(waiting), ())

    def test_process_that_stays_is_told(self) -> None:
        """After the limit the caller learns which are left."""
        (self.proc / "13" / "environ").rename(self.proc / "13" / "hidden")
        (self.proc / "4194304").mkdir()  # beyond the largest process id: no such process
        (self.proc / "4194304" / "environ").write_bytes(b"SVCD_MACHINE_ROOT=/s/m2\0")
        waiting = Deferred.fromCoroutine(
            self.processes.end(Path("/s/m2"), grace_s=0.0, limit_s=2.0)
        )
        self.assertNoResult(waiting)
        self.clock.advance(5)
        self.assertEqual(self.successResultOf(waiting), [4194304])
