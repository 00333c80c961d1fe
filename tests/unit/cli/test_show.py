"""Tables, JSON, YAML and names of bodies of the API; tables that fit the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import yaml
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import show
from svcd.cli.clusters import CLUSTERS
from svcd.cli.jobs import table
from svcd.cli.show import (
    Column,
    Part,
    Style,
    Table,
    ago,
    cut,
    field,
    fitting,
    measure,
    printed,
    table_lines,
    unique_length,
)

NOW = 1_767_225_600.0
TABLE = Table(
    many="things",
    one="thing",
    columns=(
        field("NAME", "name"),
        field("STATUS", "info.status", cut=False, status=True),
        ago("AGE", "at"),
        field("ID", "id", wide=True),
    ),
    empty="nothing",
)
ROW = {"id": "1", "name": "one", "info": {"status": "Active"}, "at": "2025-12-31 23:59:00"}
BODY = {"things": [ROW, {"id": "2", "name": None, "info": None}]}


class FormTests(SynchronousTestCase):
    def shown(self, form: str, body: object = BODY) -> str:
        return printed(body, TABLE, form, None, NOW, Style())

    def test_table_and_wide(self) -> None:
        """A missing value is a dash; the last column has no blanks after it."""
        self.assertEqual(
            self.shown("table"),
            "NAME  STATUS  AGE\none   Active  1 min 00 s ago\n-     -       -\n",
        )
        self.assertEqual(self.shown("wide").splitlines()[1], "one   Active  1 min 00 s ago  1")
        self.assertEqual(self.shown("table", {"things": []}), "nothing\n")
        self.assertEqual(
            self.shown("table", {"thing": ROW}).splitlines()[1][:11], "one   Active"[:11]
        )

    def test_data_has_the_body_as_it_is(self) -> None:
        """Also the answer to a POST, a subclass of dict. The name of what has none is its id."""

        class Answer(dict[str, object]):
            pass

        self.assertEqual(json.loads(self.shown("json")), BODY)
        self.assertEqual(yaml.safe_load(self.shown("yaml", Answer(BODY))), BODY)
        self.assertEqual(self.shown("name"), "one\n2\n")

    def test_texts_cannot_drive_the_terminal(self) -> None:
        """Tables show control characters and changes of direction; JSON escapes them."""
        evil = {"things": [{"id": "1", "name": "a\x1b[2J\x9b\nb\ud800 \u202e\u0634\u200d"}]}
        for form in ("table", "json", "yaml", "name"):
            self.assertNotRegex(self.shown(form, evil), "[\x1b\x9b\u202e]", form)
        self.assertEqual(json.loads(self.shown("json", evil)), evil)
        self.assertIn("a\\x1b[2J\\x9b b", self.shown("table", evil))
        self.assertIn("⟨U+202E⟩\u0634\u200d", self.shown("table", evil))

    def test_colours_of_statuses(self) -> None:
        (_, good, _) = table_lines(TABLE.columns, BODY["things"], None, NOW, Style(colour=True))
        self.assertIn("\x1b[32mActive\x1b[0m", good)
        self.assertEqual(
            [show.colour_of(each) for each in ("Active", "FAILED", "Spawning", "")],
            ["good", "bad", "busy", ""],
        )


def part(width: int, **more: Any) -> Part:
    column: Column = field("T", "t", **more)
    return Part(column, ["T", "x" * width])


def widths(parts: Iterable[Part], most: int) -> list[int]:
    return [each.width for each in fitting(list(parts), most)]


class FittingTests(SynchronousTestCase):
    def test_the_widest_columns_give_first(self) -> None:
        """A status and a cell that must not be cut stay, while others can give."""
        kept = part(20, status=True)
        self.assertEqual(widths([part(10), part(40), kept], 60), [10, 26, 20])
        self.assertEqual(widths([part(5), part(5)], 60), [5, 5])

    def test_spare_columns_go_before_a_name_is_cut(self) -> None:
        """The highest number first, and only as many as must go."""
        parts = [part(30, key=True), part(20, spare=1), part(20, spare=2, cut=False), part(9)]
        self.assertEqual(widths(parts, 80), [30, 15, 20, 9])
        parts = [part(30, key=True), part(20, spare=1), part(30, spare=2, cut=False), part(9)]
        self.assertEqual(widths(parts, 70), [30, 20, 9])
        self.assertEqual(widths(parts, 44), [30, 9])
        self.assertEqual(widths(parts, 30), [20, 8])

    def test_wide_characters_take_two_columns(self) -> None:
        self.assertEqual([measure("abc"), measure("日本"), measure("e\u0301")], [3, 4, 1])
        self.assertEqual(
            [cut("日本語", 5), cut("abcdef", 4), cut("abc", 3)], ["日本…", "abc…", "abc"]
        )

    def test_all_is_cut_at_last(self) -> None:
        parts = [part(30, key=True), part(30, cut=False)]
        self.assertEqual(sum(widths(parts, 22)), 20)
        self.assertEqual(widths([part(1)] * 3, 2), [1, 1, 1])

    def test_length_of_a_unique_beginning(self) -> None:
        """At least 8; longer where another id or name begins so."""
        one, two, far = "0123456789-a", "0123456789-b", "ffffffffff-c"
        self.assertEqual(unique_length([far], []), 8)
        self.assertEqual(unique_length([one, two], []), 12)
        self.assertEqual(unique_length([far], [one, two]), 8)
        self.assertEqual(unique_length([far], ["fffffffffzz"]), 10)


class ReasonTests(SynchronousTestCase):
    def test_a_transient_cluster_goes_by_itself(self) -> None:
        """The table says so until it goes, unless the cluster has another reason."""
        for row, reason in (
            ({"status": "Active", "is_transient": False}, ""),
            (
                {"status": "Active", "is_transient": True},
                "transient: svcd deletes it after its last job and that job's log",
            ),
            ({"status": "Active", "is_transient": True, "status_description": "DAEMON_DOWN: x"},
             "DAEMON_DOWN: x"),
            ({"status": "Deleting", "is_transient": True}, ""),
        ):  # fmt: skip
            self.assertEqual(CLUSTERS.columns[-1].text(row, NOW), reason, row)


class CommandTests(SynchronousTestCase):
    """The tables of commands on a terminal of 80 columns."""

    def lines(self, body: Any, known: Callable[[], Iterable[str]] = tuple) -> list[str]:
        jobs, clusters = {"j": "word-count-of-the-month"}, {"c": "production-cluster"}
        text = printed(body, table(jobs, clusters, known), "table", 80, NOW, Style())
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        return text.splitlines()

    def test_executions(self) -> None:
        """Names and status are whole; an id is as long as it must be among all executions."""
        ids = ["11111111-aaaa-4000-8000-00000000000" + end for end in "12"]
        rows = [
            {"id": id_, "job_id": "j", "cluster_id": "c", "created_at": "2025-12-31 10:00:00",
             "end_time": "2025-12-31 23:59:00",
             "info": {"status": "SUCCEEDED", "failure": {"code": "OUTPUT_EXISTS"}}}
            for id_ in ids
        ]  # fmt: skip
        rows[1]["id"] = "22222222-aaaa-4000-8000-000000000002"
        _, first, second = self.lines({"job_executions": rows})
        words = ["word-count-of-the-month", "SUCCEEDED", "production-cluster"]
        self.assertEqual(first.split()[:4], ["11111111", *words])
        self.assertEqual(second.split()[:4], ["22222222", *words])
        hidden = ["11111111-ab"]
        _, first, _ = self.lines({"job_executions": rows}, lambda: hidden)
        self.assertEqual(first.split()[0], "11111111-aa")
        _, only = self.lines(rows[0])
        self.assertEqual(only.split()[0], ids[0])
