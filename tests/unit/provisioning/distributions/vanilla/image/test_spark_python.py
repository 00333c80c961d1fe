"""What the image adds to the Python of Spark's workers."""

from __future__ import annotations

import runpy
import sys

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.layout import RECIPE

DAEMON = RECIPE / "spark/python/svcd_daemon.py"


class RemedyTest(SynchronousTestCase):
    def setUp(self) -> None:
        self.with_remedy = runpy.run_path(str(DAEMON))["with_remedy"]

    def test_a_module_that_is_not_there_is_told_with_its_remedy(self) -> None:
        """After the words of Python."""
        error = ModuleNotFoundError("No module named 'pandas'", name="pandas")
        self.with_remedy(error)
        packages = RECIPE / "spark/packages"
        version = ".".join(map(str, sys.version_info[:2]))
        self.assertEqual(
            str(error),
            f"No module named 'pandas': the Python {version} of the cluster's workers does not have"
            f" it. Install it into {packages} on each worker, or in the software image:"
            f" python3 -m pip install --target {packages} PACKAGE",
        )

    def test_other_errors_stay(self) -> None:
        """Also one of an import."""
        for error in (ValueError("no"), ImportError("cannot import name 'x'")):
            text = str(error)
            self.with_remedy(error)
            self.assertEqual(str(error), text)
