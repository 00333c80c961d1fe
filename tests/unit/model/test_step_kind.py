"""The kinds of the steps of a cluster's events."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.step_kind import kind_of


class KindTests(SynchronousTestCase):
    def test_events_of_no_step(self) -> None:
        """Requests, statuses, findings of health checks, and waits of jobs."""
        for step, kind in (
            ("request", "request"),
            ("Spawning", "status"),
            ("Active", "status"),
            ("health", "health"),
            ("job", "job"),
        ):
            self.assertEqual(kind_of(step), kind)

    def test_the_first_word_of_a_step_tells_its_kind(self) -> None:
        for kind, steps in (
            ("cloud", ("create server", "attach volumes", "associate floating IP")),
            ("machine", ("log in", "prepare machine")),
            ("daemons", ("start oozie", "stop datanode", "start the daemons")),
            ("files", ("write the configuration", "upload the library", "namenode", "")),
        ):
            self.assertEqual([kind_of(step).value for step in steps], [kind] * len(steps))

    def test_a_thing_is_an_answer_to_wait_for(self) -> None:
        for step in (
            "wait for server",
            "Oozie to read its share library",
            "the resource manager",
            "a data node",
            "an answer",
            "2 node managers to finish",
        ):
            self.assertEqual(kind_of(step), "wait", step)
