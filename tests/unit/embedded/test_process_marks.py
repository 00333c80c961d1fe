"""Whose process is it, and how does it end?"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.process_marks import Ending, below, end, marked, root_of

TERM, KILL = signal.SIGTERM, signal.SIGKILL


class RootOfTest(SynchronousTestCase):
    """The machine's folder in an environment."""

    def test_marked_environment_names_its_folder(self) -> None:
        """At the beginning, in the middle or at the end."""
        for environ in (
            b"SVCD_MACHINE_ROOT=/s/m1\0A=b\0",
            b"A=b\0SVCD_MACHINE_ROOT=/s/m1\0C=d\0",
            b"A=b\0SVCD_MACHINE_ROOT=/s/m1",
        ):
            self.assertEqual(root_of(environ), "/s/m1")

    def test_other_environment_names_none(self) -> None:
        """Neither a longer name nor a mention in a value counts."""
        for environ in (b"", b"A=b\0", b"X_SVCD_MACHINE_ROOT=/s\0", b"A=SVCD_MACHINE_ROOT=/s\0"):
            self.assertIsNone(root_of(environ))


class BelowTest(SynchronousTestCase):
    """Which machines' folders are inside a folder."""

    def test_a_folder_whose_name_begins_alike_is_another_one(self) -> None:
        """So is the folder itself, and one that `..` leads out of it."""
        mine = below(Path("/no/state"))
        self.assertTrue(mine("/no/state/cloud/machines/m"))
        for other in ("/no/state-other/machines/m", "/no/state", "/no/state/../b/machines/m", "/"):
            self.assertFalse(mine(other), other)

    def test_links_to_the_folder_lead_to_it(self) -> None:
        """The environment may have another path of the same folder."""
        real, link = Path(self.mktemp()), Path(self.mktemp())
        real.mkdir()
        link.symlink_to(real.absolute())
        self.assertTrue(below(real)(f"{link.absolute()}/machines/m"))
        self.assertTrue(below(link)(f"{real.absolute()}/machines/m"))


class EndingTest(SynchronousTestCase):
    """The signals after each scan."""

    def test_term_once_then_kill_after_the_grace(self) -> None:
        """A process that appears later is asked too."""
        ending = Ending(grace_s=10, limit_s=20)
        self.assertEqual(ending.after([1, 2], 0.0), {1: TERM, 2: TERM})
        self.assertEqual(ending.after([2, 3], 0.5), {3: TERM})
        self.assertEqual(ending.after([2], 10.0), {2: KILL})
        self.assertEqual((ending.over, ending.left), (False, [2]))

    def test_without_grace_kill_at_once(self) -> None:
        self.assertEqual(Ending(grace_s=0, limit_s=1).after([1], 0.0), {1: KILL})

    def test_two_scans_without_a_process_are_the_end(self) -> None:
        """After one, a process may be in the middle of an exec."""
        ending = Ending(grace_s=0, limit_s=1)
        for found, over in (([], False), ([1], False), ([], False), ([], True)):
            ending.after(found, 5.0 if not found else 0.0)
            self.assertIs(ending.over, over)
        self.assertEqual(ending.left, [])

    def test_the_limit_leaves_the_rest(self) -> None:
        """No signal is sent then."""
        ending = Ending(grace_s=0, limit_s=2)
        self.assertEqual(ending.after([1], 2.0), {})
        self.assertEqual((ending.over, ending.left), (True, [1]))

    def test_pauses_grow_to_half_a_second(self) -> None:
        ending, pauses = Ending(grace_s=0, limit_s=99), []
        for _ in range(12):
            ending.after([1], 0.0)
            pauses.append(round(ending.pause_s, 3))
        self.assertEqual((pauses[:3], pauses[-1]), ([0.02, 0.03, 0.045], 0.5))


class RealTest(SynchronousTestCase):
    """Processes of this system."""

    def sleeper(self, root: Path | str) -> subprocess.Popen[bytes]:
        """A process of the machine in `root` that ends with the test."""
        started = subprocess.Popen(
            ["sleep", "60"], env={**os.environ, "SVCD_MACHINE_ROOT": str(root)}
        )
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        return started

    def test_only_machines_inside_the_folder_end(self) -> None:
        """The others go on; nothing is left, unless the limit has passed at the first scan."""
        state = Path(self.mktemp()).absolute()
        ours, other = self.sleeper(state / "machines/m"), self.sleeper(f"{state}-other/machines/m")
        found = dict(marked())
        self.assertEqual(found[ours.pid], f"{state}/machines/m")
        self.assertEqual(end(below(state), grace_s=5.0, limit_s=0.0), [ours.pid])
        self.assertEqual(end(below(state), grace_s=5.0, limit_s=10.0), [])
        self.assertEqual((ours.wait(5), other.poll()), (-TERM, None))
