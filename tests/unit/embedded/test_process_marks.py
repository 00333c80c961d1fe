"""Whose process is it, and how does it end?"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.process_marks import below, end, marked

TERM, KILL = signal.SIGTERM, signal.SIGKILL


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


class RealTest(SynchronousTestCase):
    """Processes of this system."""

    def test_who_ignores_the_request_is_killed_after_the_grace(self) -> None:
        """And at once without a grace."""
        state = Path(self.mktemp()).absolute()
        for grace_s in (0.5, 0.0):
            deaf = subprocess.Popen(
                ["sh", "-c", "trap '' TERM; echo; sleep 60 & wait"],
                env={**os.environ, "SVCD_MACHINE_ROOT": f"{state}/machines/m"},
                stdout=subprocess.PIPE,
            )
            self.addCleanup(deaf.wait)
            self.addCleanup(deaf.kill)
            assert deaf.stdout is not None
            deaf.stdout.read(1)
            self.assertEqual(end(below(state), grace_s=grace_s, limit_s=10.0), ())
            self.assertEqual(deaf.wait(5), -KILL)
            deaf.stdout.close()

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
        self.assertEqual(end(below(state), grace_s=5.0, limit_s=10.0), ())
        self.assertEqual((ours.wait(5), other.poll()), (-TERM, None))
