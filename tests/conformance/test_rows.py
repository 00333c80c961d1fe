"""The matcher refuses what it should, so that the suite proves something."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import FakeService
from tests.conformance.rows import (
    ABSENT,
    STAMP,
    STAMP_T,
    Each,
    Either,
    Has,
    Holds,
    Only,
    Row,
    mismatch,
    run,
)
from tests.conformance.targets import InMemory
from tests.support.api import now


class MatcherTests(SynchronousTestCase):
    def test_matches_and_mismatches(self) -> None:
        """Types are exact, objects open unless `Only`, arrays of equal length."""
        for value, pattern, right in (
            (1, int, True),
            (True, int, False),
            (1, True, False),
            ("a", str, True),
            (None, None, True),
            (None, str, False),
            ({"a": 1, "b": 2}, {"a": 1}, True),
            ({"a": 1, "b": 2}, Only({"a": 1}), False),
            ({"a": 1, "b": 2}, Only({"a": 1}, {"b": int}), True),
            ({"a": 1, "b": 2}, Only({"a": 1}, {"b": str}), False),
            ({"a": 1}, {"a": ABSENT}, False),
            ({}, {"a": 1}, False),
            ([1], [1], True),
            ([1, 2], [1], False),
            ([1, "a"], Each(int), False),
            ([1, "a"], Has("a"), True),
            ([], Has("a"), False),
            ("x", Either((None, "x")), True),
            ("y", Either((None, "x")), False),
            ("a b", Holds(("a", "b")), True),
            ("a b", Holds(("c",)), False),
            ("2013-10-09 12:37:15.000000", STAMP, True),
            ("2013-10-09T12:37:15", STAMP, False),
            ("2013-10-09T12:37:15", STAMP_T, True),
        ):
            self.assertEqual(mismatch(value, pattern) == "", right, (value, pattern))

    def test_a_row_that_fails_is_reported(self) -> None:
        """By status, body, error name and header."""
        service = FakeService()
        self.addCleanup(service.close)
        target = InMemory(service)
        path = "/v1.0/{tenant}/clusters"
        rows = [
            Row(says="right", path=path, body=Only({"clusters": []})),
            Row(says="status", path=path, status=404),
            Row(says="body", path=path, body={"clusters": [1]}),
            Row(says="error", path=path + "/x", status=404, error="OTHER"),
            Row(says="header", path=path, headers={"content-type": "text/html"}),
            Row(says="left out", path=path, status=404, needs=frozenset({"more"})),
        ]
        faults = now(Deferred.fromCoroutine(run(rows, target)))
        self.assertEqual(
            [each.split("\n")[0] for each in faults], ["status", "body", "error", "header"]
        )
