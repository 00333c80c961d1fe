"""What the image adds to the Python of Spark's workers."""

from __future__ import annotations

import runpy
import sys

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.layout import RECIPE

DAEMON = RECIPE / "spark/python/svcd_daemon.py"


class MissingTest(SynchronousTestCase):
    def setUp(self) -> None:
        self.finder = runpy.run_path(str(DAEMON))["Missing"]()

    def test_a_module_that_is_not_there_is_told_with_its_remedy(self) -> None:
        """In the words of Python, so that programs which try another module go on."""
        error = self.assertRaises(ModuleNotFoundError, self.finder.find_spec, "pandas", None)
        packages = RECIPE / "spark/packages"
        version = ".".join(map(str, sys.version_info[:2]))
        self.assertEqual(
            str(error),
            f"No module named 'pandas': the Python {version} of the cluster's workers does not have"
            f" it. Install it into {packages} on each worker, or in the software image:"
            f" python3 -m pip install --target {packages} PACKAGE",
        )
        self.assertEqual(error.name, "pandas")

    def test_a_part_of_a_package_is_left_to_the_package(self) -> None:
        """It may be optional."""
        self.assertIsNone(self.finder.find_spec("pyspark.nothing", ["/somewhere"]))

    def test_nothing_is_replaced_by_an_import(self) -> None:
        """Only the program itself does it."""
        self.assertEqual([f for f in sys.meta_path if type(f).__name__ == "Missing"], [])
