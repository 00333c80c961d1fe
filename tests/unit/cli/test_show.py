"""Tables, JSON, YAML and names of bodies of the API."""

from __future__ import annotations

import json

import yaml
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import show
from svcd.cli.show import Style, Table, ago, as_yaml, cut, field, measure, printed, table_lines

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

    def test_json_and_yaml_have_the_body_as_it_is(self) -> None:
        self.assertEqual(json.loads(self.shown("json")), BODY)
        self.assertEqual(yaml.safe_load(self.shown("yaml")), BODY)

    def test_yaml_shows_the_answer_to_a_post(self) -> None:
        """The answer is a subclass of dict, which PyYAML refuses."""

        class Answer(dict[str, object]):
            pass

        self.assertEqual(as_yaml(Answer(name="first")), "name: first\n")

    def test_names(self) -> None:
        """The id of what has no name."""
        self.assertEqual(self.shown("name"), "one\n2\n")

    def test_texts_cannot_drive_the_terminal(self) -> None:
        """Tables show control characters; JSON escapes them, and stays JSON."""
        evil = {"things": [{"id": "1", "name": "a\x1b[2J\x9b\nb\ud800"}]}
        for form in ("table", "json", "yaml", "name"):
            self.assertNotRegex(self.shown(form, evil), "[\x1b\x9b]", form)
        self.assertEqual(json.loads(self.shown("json", evil)), evil)
        self.assertIn("a\\x1b[2J\\x9b b", self.shown("table", evil))

    def test_colours_of_statuses(self) -> None:
        (_, good, _) = table_lines(TABLE.columns, BODY["things"], None, NOW, Style(colour=True))
        self.assertIn("\x1b[32mActive\x1b[0m", good)
        self.assertEqual(
            [show.colour_of(each) for each in ("Active", "FAILED", "Spawning", "")],
            ["good", "bad", "busy", ""],
        )


class WidthTests(SynchronousTestCase):
    def test_wide_characters_take_two_columns(self) -> None:
        self.assertEqual([measure("abc"), measure("日本"), measure("e\u0301")], [3, 4, 1])
        self.assertEqual(
            [cut("日本語", 5), cut("abcdef", 4), cut("abc", 3)], ["日本…", "abc…", "abc"]
        )

    def test_lines_fit(self) -> None:
        rows = [{"name": "n" * 300, "info": {"status": "Active"}, "at": ""}]
        for width in (20, 80, 200):
            lines = table_lines(TABLE.columns, rows, width, NOW, Style())
            self.assertLessEqual(max(map(len, lines)), width)
