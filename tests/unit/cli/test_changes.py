"""Server-sent events, kinds of `svcd watch`, and `svcd status`."""

from __future__ import annotations

import io
import itertools

import click
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.api import exit_code, parsed_events
from svcd.cli.changes import compared, kind_of
from svcd.cli.console import console_url
from svcd.cli.exits import CommandError
from svcd.cli.status import attention, lines

NOW = 1_767_225_600.0


class EventTests(SynchronousTestCase):
    def test_frames(self) -> None:
        """Comments are left out; data of several lines is one text; the id stays."""
        raw = (
            b': ping\n\nid: 5\nevent: cluster\ndata: {"id":\ndata: "x"}\n\n'
            b"event: bye\r\n\r\nid:7\ndata:[1]\n\ndata: unfinished\n"
        )
        self.assertEqual(
            list(parsed_events(iter(raw.splitlines(keepends=True)))),
            [("5", "cluster", {"id": "x"}), ("5", "bye", None), ("7", "message", [1])],
        )

    def test_nonsense_is_refused(self) -> None:
        self.assertRaises(CommandError, list, parsed_events(iter([b"data: <html>\n", b"\n"])))

    def test_deep_nesting_is_refused(self) -> None:
        deep = b"data: " + b"[" * 200_000 + b"\n"
        self.assertRaises(CommandError, list, parsed_events(iter([deep, b"\n"])))

    def test_a_long_line_may_come_in_parts(self) -> None:
        """As a connection reads it: parts of 64 KiB."""
        text = "x" * 150_000
        raw = f'id: 1\nevent: cluster\ndata: {{"name":"{text}:"}}\n\n'.encode()
        stream = io.BytesIO(raw)
        parts = iter(lambda: stream.readline(65_536), b"")
        self.assertEqual(list(parsed_events(parts)), [("1", "cluster", {"name": f"{text}:"})])

    def test_an_event_without_an_end_is_refused(self) -> None:
        """Within its bound, whether its lines end or not."""
        for part in (b"x" * 2**20, b"data: " + b"x" * 2**20 + b"\n"):
            with self.assertRaisesRegex(CommandError, "larger than 64 MiB"):
                list(parsed_events(itertools.repeat(part, 100)))

    def test_many_small_events_have_no_bound(self) -> None:
        event = b"data: " + b'"' + b"x" * 2**20 + b'"\n'
        parts = itertools.chain.from_iterable(itertools.repeat((event, b"\n"), 80))
        self.assertEqual(sum(1 for _ in parsed_events(parts)), 80)

    def test_kinds(self) -> None:
        given = ["clusters", "Cluster", "job-executions", "job_ex", "job_binary"]
        self.assertEqual(
            [kind_of(each) for each in given],
            ["clusters", "clusters", "job_executions", "job_executions", "job_binaries"],
        )
        for wrong in ("job_b", "x"):
            self.assertRaises(click.UsageError, kind_of, wrong)

    def test_lists_are_compared_by_id(self) -> None:
        before = {"1": {"id": "1", "n": 1}, "2": {"id": "2"}, "3": {"id": "3"}}
        after = {"1": {"id": "1", "n": 2}, "3": {"id": "3"}, "4": {"id": "4"}}
        self.assertEqual(
            [(word, row["id"]) for word, row in compared(before, after)],
            [("updated", "1"), ("created", "4"), ("deleted", "2")],
        )


class StatusTests(SynchronousTestCase):
    def test_what_needs_attention(self) -> None:
        """Clusters with a reason, and jobs that failed within a day."""
        clusters = [
            {"name": "good", "status": "Active", "status_description": ""},
            {"name": "bad", "status": "Error", "status_description": "QUOTA: no cores"},
        ]
        failure = {"code": "OOM", "text": "killed"}
        failed = [
            {"id": "old", "end_time": "2025-12-30T00:00:00", "info": {"failure": failure}},
            {"id": "new", "end_time": "2025-12-31T23:00:00", "info": {"failure": failure}},
        ]
        found = list(attention(clusters, failed, NOW))
        self.assertEqual(
            [(each["name"], each["reason"]) for each in found],
            [("bad", "Error: QUOTA: no cores"), ("new", "FAILED 1 h 00 min ago: OOM killed")],
        )
        body = {"api": "http://a", "project": "p", "clusters": clusters, "job_executions": [],
                "attention": found}  # fmt: skip
        self.assertEqual(
            list(lines(body, {}, NOW)),
            [
                "API       http://a",
                "project   p",
                "clusters  1 Active, 1 Error",
                "jobs      none under way",
                "",
                "needs attention",
                "  cluster bad: Error: QUOTA: no cores",
                "    svcd why bad shows its history",
                "  job execution new: FAILED 1 h 00 min ago: OOM killed",
                "    svcd why new shows its history",
            ],
        )


class EndTests(SynchronousTestCase):
    def test_codes_of_refusals(self) -> None:
        codes = [exit_code(status) for status in (400, 401, 403, 404, 409, 413, 429, 500, 503)]
        self.assertEqual(codes, [4, 4, 4, 3, 4, 4, 4, 5, 5])

    def test_console_stands_at_the_origin(self) -> None:
        self.assertEqual(
            console_url("http://h:1/x", "#/clusters/i"), "http://h:1/console/#/clusters/i"
        )
