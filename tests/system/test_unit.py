"""The systemd unit of the documentation."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

UNIT = Path(__file__).parents[2] / "docs" / "examples" / "svcd.service"
MOST_EXPOSED = 3.0


class UnitTests(SynchronousTestCase):
    def test_the_unit_exposes_little(self) -> None:
        """As `systemd-analyze security` judges; it works without a running systemd."""
        program = shutil.which("systemd-analyze")
        if program is None:
            raise SkipTest("systemd-analyze is missing: install systemd")
        command = [program, "security", "--offline=true", "--no-pager", str(UNIT)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "unrecognized option" in done.stderr:
            raise SkipTest("systemd-analyze is older than 250 and judges no files")
        found = re.search(r"Overall exposure level for svcd\.service: ([0-9.]+)", done.stdout)
        assert found is not None, done.stderr
        self.assertLess(float(found[1]), MOST_EXPOSED)
