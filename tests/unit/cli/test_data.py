"""Which objects `svcd source get` downloads."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.data import below


class BelowTests(SynchronousTestCase):
    def test_an_object_a_folder_and_a_container(self) -> None:
        """Not names that only begin alike, nor shorter ones of a store that answers nonsense."""
        names = ["in", "in/a", "in/b/c", "input", "i", ""]
        self.assertEqual(below("in", names), ["in", "in/a", "in/b/c"])
        self.assertEqual(below("", ["a", "b/c"]), ["a", "b/c"])
