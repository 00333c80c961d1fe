"""The parts of the demo that decide something; the whole of it is tests/live/test_main_job.py's."""

from __future__ import annotations

import contextlib
import io
from ipaddress import ip_network
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.demo import Demo, event_words, runs_on_yarn
from svcd.cli.demo_daemon import DemoDaemon, network_of


class JobTests(SynchronousTestCase):
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


class MachineTests(SynchronousTestCase):
    def test_folder_keeps_its_own_network(self) -> None:
        """The same at each call, another one elsewhere, always loopback."""
        one, other = network_of(Path("/srv/a/demo")), network_of(Path("/srv/b/demo"))
        self.assertEqual(one, network_of(Path("/srv/a/demo")))
        self.assertNotEqual(one, other)
        self.assertTrue(ip_network(one).subnet_of(ip_network("127.0.0.0/8")))


class LogTests(SynchronousTestCase):
    def test_reason_of_a_daemon_that_could_not_start(self) -> None:
        """Its one line, else the end of the log; not a line of an earlier start."""
        state = Path(self.mktemp())
        state.mkdir()
        daemon = DemoDaemon(state, None)
        before = "svcd: an earlier reason\n" + "1\n2\n3\n4\n"
        for text, said in (
            ("Starting\nsvcd: the reason\nStopped\n", "svcd: the reason"),
            ("Starting\n", "1 | 2 | 3 | 4 | Starting"),
        ):
            daemon.log.write_text(before + text)
            self.assertEqual(daemon._last_lines(), f"{said} (whole log: {daemon.log})")
