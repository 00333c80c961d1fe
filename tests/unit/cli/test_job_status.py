"""People's words for the statuses of job executions."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.job_status import status_of


class StatusTests(SynchronousTestCase):
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
