"""The parts of the demo that decide something; the whole of it is tests/live/test_main_job.py's."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import cast

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.client import Api
from svcd.cli.demo import Demo, DemoFailed, event_words, runs_on_yarn
from svcd.cli.demo_steps import Steps, rounds


class JobTests(SynchronousTestCase):
    def test_words_are_letters_digits_and_apostrophes(self) -> None:
        """Of every script, in lower case, as the jar counts them."""
        counted = Demo._count("It's  Straße_42, it's\nx-y 'É'")
        self.assertEqual(counted, {"it's": 2, "straße": 1, "42": 1, "x": 1, "y": 1, "'é'": 1})

    def test_job_runs_once_an_action_has_an_application(self) -> None:
        """The engine says RUNNING as soon as it has taken the job."""
        start = {"name": ":start:", "externalId": "-"}
        begun = {"name": "job-node", "externalId": "application_1_0001"}
        for expected, info in (
            (False, {"status": "Pending"}),
            (False, {"status": "RUNNING", "actions": [start, {"externalId": None}]}),
            (True, {"status": "RUNNING", "actions": [start, begun]}),
            (True, {"status": "RUNNING", "actions": [{"externalId": "job_1_0001"}]}),
            (False, {"status": "KILLED", "actions": [begun]}),
        ):
            self.assertIs(runs_on_yarn(info), expected, info)


class EventTests(SynchronousTestCase):
    def test_a_status_that_begins_is_what_the_cluster_is(self) -> None:
        """Other events keep step, machine, outcome and text; a failure of a status too."""
        for kind, step, machine, outcome, text, expected in (
            ("status", "Spawning", "", "started", "", "cluster is Spawning"),
            ("status", "Active", "", "done", "", "cluster is Active"),
            ("status", "Error", "", "failed", "no", "  Error failed: no"),
            ("wait", "Oozie", "m-1", "done", "", "  wait for Oozie m-1 done"),
        ):
            event = {"kind": kind, "step": step, "machine": machine, "outcome": outcome}
            self.assertEqual(event_words({**event, "text": text}), expected)


class ImageTests(SynchronousTestCase):
    def test_a_missing_software_tree_ends_the_demo_before_its_daemon(self) -> None:
        """The error names the tree and both remedies; the state folder is not made."""
        state = Path(self.mktemp())
        missing = Path(self.mktemp()).absolute()
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = Demo(state, missing).run()
        self.assertEqual((code, state.exists()), (1, False))
        self.assertIn(f"svcd demo: {missing} cannot be used: no complete", said.getvalue())
        self.assertIn(f"svcd image build vanilla {missing}", said.getvalue())
        self.assertIn("--image PREFIX", said.getvalue())


class _Api:
    """Answers the list of clusters."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def get(self, path: str) -> object:
        assert path == "/clusters"
        return {"clusters": [{"name": name} for name in self._names]}


class ClusterTests(SynchronousTestCase):
    def test_cluster_of_the_demo_is_found_by_its_name(self) -> None:
        """Beside those of others; one that is gone is an error of one line."""
        demo = Demo(Path(self.mktemp()), None)
        demo._api = cast("Api", _Api("other", "demo"))
        self.assertEqual(demo._cluster(), {"name": "demo"})
        for names in ((), ("other",)):
            demo._api = cast("Api", _Api(*names))
            with self.assertRaisesRegex(DemoFailed, "the cluster demo is gone"):
                demo._cluster()


class RoundsTests(SynchronousTestCase):
    def test_rounds_end_with_their_time(self) -> None:
        """The first is at once; after each there is a pause."""
        clock = Clock()
        at = [clock.seconds() for _ in rounds(1.0, 0.4, clock.seconds, clock.advance)]
        self.assertEqual(at, [0.0, 0.4, 0.8])


class StepsTests(SynchronousTestCase):
    def test_step_ends_when_the_next_begins(self) -> None:
        """Each is listed once, in order, with a time that is not negative."""
        steps = Steps()
        steps.begin("one")
        steps.begin("two")
        steps.end()
        steps.end()
        self.assertEqual([name for name, _ in steps.done], ["one", "two"])
        self.assertTrue(all(seconds >= 0 for _, seconds in steps.done))
