"""Cursors of the change feed: their text, and what is not one."""

from __future__ import annotations

import base64
import json

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.changes import Change, Cursor

_CURSOR = Cursor(epoch="2026-01-01 00:00:00.000000-7-5-00000001", made_s=9, since="3:5:4")


def _text(*values: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode()


class CursorTests(SynchronousTestCase):
    def test_the_text_of_a_cursor_gives_it_back(self) -> None:
        """Also in the middle of a part."""
        change = Change(number=(1 << 63) - 1, kind="jobs", id="j-1", version=2, word="updated")
        for cursor in (_CURSOR, _CURSOR.at(change, "3:9:")):
            self.assertEqual(Cursor.parse(cursor.text), cursor)
            self.assertRegex(cursor.text, r"\A[A-Za-z0-9_-]+\Z")

    def test_everything_else_is_refused(self) -> None:
        """Whatever it is: the caller lists anew."""
        for text in (
            "",
            "garbage",
            "=",
            "%00",
            "\u00fc",
            "A" * 15_001,
            "W" * 14_999,
            base64.urlsafe_b64encode(b"[" * 9000).decode(),
            _text("e", 1, "3"),
            _text("e", 1, "3", "", None, 1),
            _text("e", "1", "3", "", None),
            _text("e", -1, "3", "", None),
            _text("e", 1 << 60, "3", "", None),
            _text("e", 10**40, "3", "", None),
            _text("e", 1, 3, "", None),
            _text("e", 1, "3", "5", None),
            _text("e", 1, "3", "", [1, "jobs", "j"]),
            _text("e", 1, "3", "5", [1, "jobs"]),
            _text("e", 1, "3", "5", [-1, "jobs", "j"]),
            _text("e", 1, "3", "5", [1 << 63, "jobs", "j"]),
            _text("e", 1, "3", "5", [1, "jobs", "\0"]),
            _text("e", 1, "3", "5", [1, "jo\0bs", "j"]),
            _text("e", 1.5, "3", "", None),
            base64.urlsafe_b64encode(b'["\xff",1,"3","",null]').decode(),
        ):
            self.assertIsNone(Cursor.parse(text), text[:80])
