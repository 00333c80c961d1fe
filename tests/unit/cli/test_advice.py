"""Texts of the API in the words of the command line."""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.advice import in_commands, in_one_line
from svcd.model.failures import Code

_REQUEST = re.compile(r"\b(GET|POST|PUT|DELETE)\b|empty resize|force=true|X-Auth")


class AdviceTests(SynchronousTestCase):
    def test_requests_become_commands(self) -> None:
        for text, expected in (
            ("image 'i' is not registered: register it by POST images/i",
             "image 'i' is not registered: svcd image register i --user LOGIN registers it"),
            ("only in Active; an empty resize retries it",
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
