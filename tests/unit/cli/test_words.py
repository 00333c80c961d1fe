"""The API's words in people's words: advice, steps of clusters, statuses of jobs."""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.words import in_commands, in_one_line, status_of, step_title
from svcd.model.failures import EMPTY_RESIZE, Code
from svcd.model.step_kind import kind_of

_REQUEST = re.compile(r"\b(GET|POST|PUT|DELETE)\b|empty resize|force=true|X-Auth")


class AdviceTests(SynchronousTestCase):
    def test_requests_become_commands(self) -> None:
        for text, expected in (
            ("image 'i' is not registered: register it by POST images/i",
             "image 'i' is not registered: svcd image register i --user LOGIN registers it"),
            (f"only in Active; {EMPTY_RESIZE} retries it",
             "only in Active; svcd cluster retry retries it"),
            ("DELETE /v1.1/<tenant_id>/clusters/<cluster_id> needs one of the roles admin",
             "this command needs one of the roles admin"),
            ("give it a value in the params of job_configs",
             "give it a value with svcd run -p NAME=VALUE"),
            ("$.name: missing\n$: give one of a and b", "name: missing\ngive one of a and b"),
            ("the price is $.", "the price is $."),
        ):  # fmt: skip
            self.assertEqual(in_commands(text), expected)

    def test_advice_of_failures_names_no_request(self) -> None:
        for code in Code:
            self.assertIsNone(_REQUEST.search(in_commands(code.advice)), code)

    def test_faults_in_one_line(self) -> None:
        self.assertEqual(in_one_line("a: missing\n\nb: wrong\n"), "a: missing; b: wrong")


class TitleTests(SynchronousTestCase):
    def test_answers_become_waits(self) -> None:
        """Statuses and deeds keep their words."""
        waits = ("Oozie", "the node manager to join", "a data node", "an answer", "Oozie to start")
        deeds = ("Starting", "start oozie", "wait for server", "associate address", "health")
        for step, title in (*((n, f"wait for {n}") for n in waits), *((n, n) for n in deeds)):
            self.assertEqual(step_title({"step": step, "kind": kind_of(step)}), title)


class StatusTests(SynchronousTestCase):
    def test_fields_that_an_older_daemon_lacks(self) -> None:
        """The remedy is an upgrade of the daemon, not another field."""
        fault = "unknown field; known are name, count"
        old = "the daemon is older than this command and has no such field: upgrade it"
        for path in ("idle_delete_s", "keep_until", "node_groups[0].init_scripts"):
            self.assertEqual(
                in_commands(f"$.{path}: {fault}\n$.x: {fault}"), f"{path}: {old}\nx: {fault}"
            )
        self.assertEqual(in_commands(f"$.idle: {fault}"), f"idle: {fault}")

    def test_a_killed_job_failed_or_was_cancelled(self) -> None:
        """The code of the failure tells; other statuses keep the engine's word."""
        for status, code, word in (
            ("RUNNING", None, "RUNNING"),
            ("SUCCEEDED", None, "SUCCEEDED"),
            ("KILLED", None, "cancelled"),
            ("KILLED", "SYNTAX_ERROR", "failed"),
            ("KILLED", "KILLED_ELSEWHERE", "killed"),
            ("KILLED", "CLUSTER_GONE", "killed"),
            ("FAILED", "START_GAVE_UP", "failed"),
            ("FAILED", None, "failed"),
        ):
            failure = {"code": code, "step": "job-node", "text": "no"} if code else None
            row = {"info": {"status": status, "failure": failure}}
            self.assertEqual(status_of(row), word, (status, code))
        self.assertEqual(status_of({"info": {"status": "KILLED"}}), "cancelled")
        self.assertEqual(status_of({}), "")
