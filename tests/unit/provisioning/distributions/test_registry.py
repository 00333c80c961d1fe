"""Which distributions are offered."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import NotFound
from svcd.provisioning.distributions.fake import Fake
from svcd.provisioning.distributions.registry import DistributionError, Distributions


class Third(Fake):
    """A third party's."""

    name = "third"


class TestDistributions(SynchronousTestCase):
    def test_an_unknown_name_is_refused_with_the_known_ones(self) -> None:
        """A misspelt setting is told at the start."""
        error = self.assertRaises(DistributionError, Distributions, ["vanila"], found=[])
        self.assertEqual(
            str(error),
            "plugins.enabled names 'vanila', but no distribution has this name; "
            "there are vanilla, fake",
        )

    def test_two_of_one_name_are_refused(self) -> None:
        """A plug-in cannot stand in for another one."""
        with self.assertRaises(DistributionError):
            Distributions(["third"], found=[Third(), Third()])
        with self.assertRaises(DistributionError):
            Distributions(["fake"], found=[Fake()])

    def test_a_disabled_one_is_not_found(self) -> None:
        """Only what is enabled exists."""
        error = self.assertRaises(NotFound, Distributions(["fake"], found=[]).get, "vanilla")
        self.assertEqual(error.message, "plugin 'vanilla' not found; there are fake")

    def test_an_unknown_version_is_not_found(self) -> None:
        """The message tells the versions there are."""
        found = Distributions(["fake"], found=[])
        self.assertEqual(found.version("fake", "0.1").name, "fake")
        error = self.assertRaises(NotFound, found.version, "fake", "9")
        self.assertEqual(error.message, "version '9' of plugin 'fake' not found; there are 0.1")
