"""Server-sent events, kinds of `svcd watch`, and `svcd status`."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Mapping

import click
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import client
from svcd.cli.client import Api, exit_code, parsed_events
from svcd.cli.door import Door
from svcd.cli.exits import UNREACHABLE, CommandError
from svcd.cli.http import Answer
from svcd.cli.status import attention, lines, recent
from svcd.cli.times import moment
from svcd.cli.watch import States, kind_of
from tests.support.commands import RunCase
from tests.support.http import AnsweredBy

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

    def test_a_long_line_may_come_in_parts(self) -> None:
        """As a connection reads it: parts of 64 KiB."""
        text = "x" * 150_000
        raw = f'id: 1\nevent: cluster\ndata: {{"name":"{text}:"}}\n\n'.encode()
        stream = io.BytesIO(raw)
        parts = iter(lambda: stream.readline(65_536), b"")
        self.assertEqual(list(parsed_events(parts)), [("1", "cluster", {"name": f"{text}:"})])

    def test_nonsense_is_refused(self) -> None:
        """Text that is no JSON, deep nesting, and an event larger than its bound."""
        deep = b"data: " + b"[" * 200_000 + b"\n"
        for text in ([b"data: <html>\n", b"\n"], [deep, b"\n"]):
            self.assertRaises(CommandError, list, parsed_events(iter(text)))
        for part in (b"x" * 2**20, b"data: " + b"x" * 2**20 + b"\n"):
            with self.assertRaisesRegex(CommandError, "larger than 64 MiB"):
                list(parsed_events(itertools.repeat(part, 100)))
        event = b"data: " + b'"' + b"x" * 2**20 + b'"\n'
        many = itertools.chain.from_iterable(itertools.repeat((event, b"\n"), 80))
        self.assertEqual(sum(1 for _ in parsed_events(many)), 80)

    def test_kinds(self) -> None:
        given = ["clusters", "Cluster", "job-executions", "job_ex", "job_binary"]
        kinds = ["clusters", "clusters", "job_executions", "job_executions", "job_binaries"]
        self.assertEqual([kind_of(each) for each in given], kinds)
        for wrong in ("job_b", "x"):
            self.assertRaises(click.UsageError, kind_of, wrong)

    def test_a_state_is_shown_once(self) -> None:
        """A status again is no news; its reason, a deletion and what has no status are."""
        states = States()

        def seen(event: str, **data: object) -> bool:
            return states.is_new(event, data)

        cluster = {"id": "1", "name": "one", "change": "updated"}
        self.assertTrue(seen("cluster", **cluster, status="Active"))
        self.assertFalse(seen("cluster", **cluster, status="Active", version=7))
        self.assertTrue(seen("cluster", **cluster, status="Active", status_description="down"))
        self.assertTrue(seen("cluster", **{**cluster, "id": "2"}, status="Active"))
        self.assertTrue(seen("cluster", **{**cluster, "change": "deleted"}, status="Active"))
        running = {"id": "3", "info": {"status": "RUNNING"}}
        self.assertEqual([seen("job_execution", **running) for _ in "12"], [True, False])
        self.assertEqual([seen("job", id="4", name="count") for _ in "12"], [True, True])
        step = {"cluster_id": "1", "step": "log in", "machine": "m", "outcome": "retry"}
        self.assertEqual([seen("cluster_event", **step, attempt=n) for n in (1, 2)], [True, False])
        self.assertTrue(seen("cluster_event", **step, generation=2))


class StatusTests(SynchronousTestCase):
    def test_what_needs_attention(self) -> None:
        """Clusters with a reason, and jobs that failed within a day."""
        clusters = [
            {"name": "good", "status": "Active", "status_description": ""},
            {"name": "bad", "status": "Error", "status_description": "QUOTA: no cores"},
        ]
        ending = {
            "name": "c", "status": "Active", "max_age_s": 86_400, "idle_delete_s": 600,
            "created_at": "2026-01-01 00:00:00",
            "idle_since": moment(NOW - 560).replace(" UTC", ""),
            "delete_at": moment(NOW + 40).replace(" UTC", ""),
        }  # fmt: skip
        self.assertEqual(
            [row["reason"] for row in attention([ending], [], NOW)],
            ["ends in 40 s; to keep it: svcd cluster keep c"],
        )
        self.assertEqual(list(attention([ending], [], NOW - 30)), [])
        failure = {"code": "OOM", "text": "killed"}
        failed = [
            {"id": "old", "end_time": "2025-12-30T00:00:00", "info": {"failure": failure}},
            {"id": "new", "end_time": "2025-12-31T23:00:00", "info": {"failure": failure}},
        ]
        found = list(attention(clusters, recent(failed, NOW), NOW))
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
        many = ({**failed[1], "id": str(n)} for n in range(20_000))
        self.assertEqual([row["id"] for row in recent(many, NOW)][::9], ["19990", "19999"])


class FirstConnectionTests(RunCase):
    def test_the_first_connection_is_not_waited_for(self) -> None:
        """A port without svcd ends the command as it ends others."""

        def broken(method: str, path: str) -> None:
            if "/watch" in path:
                raise ConnectionError

        self.shown.before = broken
        told = self.refused(5, "watch", "clusters")
        self.assertRegex(told, r"^svcd watch: http\S+ cannot be reached: ")


class PageTests(SynchronousTestCase):
    """Long lists, against an API with `count` rows that knows `limit` and `marker`."""

    def api(self, count: int, knows_marker: bool = True) -> Api:
        self.asked: list[str] = []

        def send(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
            _, _, query = url.partition("?")
            self.asked.append(query)
            given = dict(each.split("=") for each in query.split("&"))
            first = int(given.get("marker", -1)) + 1 if knows_marker else 0
            rows = [{"id": str(n)} for n in range(first, min(count, first + int(given["limit"])))]
            return Answer(status=200, headers={}, body=json.dumps({"rows": rows}).encode())

        return Api(Door(api="http://h:1", tenant="t"), AnsweredBy(send))

    def test_pages_follow_each_other(self) -> None:
        """Each begins after the last row of the one before; the filter stays."""
        rows = [row["id"] for row in self.api(1200).rows("/rows?status=FAILED", "rows")]
        self.assertEqual(rows, [str(n) for n in range(1200)])
        self.assertEqual(
            self.asked,
            [
                "status=FAILED&limit=500",
                "status=FAILED&limit=500&marker=499",
                "status=FAILED&limit=500&marker=999",
            ],
        )
        self.assertEqual(list(self.api(0).rows("/rows", "rows")), [])
        self.assertEqual(self.asked, ["limit=500"])

    def test_list_without_an_end_is_refused(self) -> None:
        """For example that of a service that ignores the marker."""
        self.patch(client, "_MOST_PAGES", 3)
        with self.assertRaisesRegex(CommandError, "has more than 1500 rows; ") as raised:
            list(self.api(500, knows_marker=False).rows("/rows", "rows"))
        self.assertEqual((raised.exception.code, len(self.asked)), (UNREACHABLE, 3))

    def test_exit_codes_of_refusals(self) -> None:
        codes = [exit_code(status) for status in (400, 401, 403, 404, 409, 413, 429, 500, 503)]
        self.assertEqual(codes, [4, 4, 4, 3, 4, 4, 4, 5, 5])
