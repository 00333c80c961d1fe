"""The kinds of the steps of a cluster's events."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.step_kind import kind_of


class KindTests(SynchronousTestCase):
    def test_the_first_word_of_a_step_tells_its_kind(self) -> None:
        """Of requests, statuses, looks at the health, jobs and warnings the word itself."""
        for kind, steps in (
            ("request", ("request",)),
            ("status", ("Spawning", "Active")),
            ("health", ("health",)),
            ("job", ("job",)),
            ("end", ("end",)),
            ("cloud", ("create server", "attach volumes", "associate floating IP")),
            ("machine", ("log in", "prepare machine", "run script a.sh")),
            ("daemons", ("start oozie", "stop datanode", "start the daemons")),
            ("files", ("write the configuration", "upload the library", "namenode", "")),
            ("wait", ("wait for server", "Oozie to read its share library", "a data node")),
            ("wait", ("the resource manager", "an answer", "2 node managers to finish")),
        ):
            self.assertEqual([kind_of(step).value for step in steps], [kind] * len(steps))
