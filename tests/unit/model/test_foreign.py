"""JSON of others: what cannot be stored or read does not get in."""

from __future__ import annotations

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.foreign import MOST_DEPTH, MOST_VALUES, loads, typed


class _Part(msgspec.Struct):
    id: str


_PART = msgspec.json.Decoder(_Part)


class ForeignTests(SynchronousTestCase):
    def test_whatever_can_be_stored_is_read(self) -> None:
        """A half of a pair of surrogates becomes a question mark, a number beyond all infinite."""
        for body, value in (
            (b'{"a": [1, "x", null, true]}', {"a": [1, "x", None, True]}),
            (rb'"\ud83d\ude00"', "\U0001f600"),
            (rb'{"\udc00": "cut \uD83d"}', {"?": "cut ?"}),
            (b"1" + b"0" * 30, 1e30),
            (b"9" * 5000, float("inf")),
            (b'["' + b"[" * 500 + b'\\"{"]', ["[" * 500 + '"{']),
        ):
            self.assertEqual(loads(body), value)
        msgspec.json.encode(loads(b'"cut \xed\xa0\x80"'))

    def test_what_is_no_json_is_refused(self) -> None:
        """So is what is nested too deep."""
        deepest = b"[" * MOST_DEPTH + b"]" * MOST_DEPTH
        self.assertEqual(msgspec.json.encode(loads(deepest)), deepest)
        deep = [b"[" * depth + b"]" * depth for depth in (MOST_DEPTH + 1, 900, 100_000)]
        for body in (b"", b"<html>", b"\xff\xfe", b"{", *deep):
            self.assertRaises(ValueError, loads, body)

    def test_very_many_values_are_refused(self) -> None:
        """The time for a text depends on them, and not on its size."""
        error = self.assertRaises(ValueError, loads, b"[" + b"0," * MOST_VALUES + b"0]")
        self.assertEqual(str(error), "the JSON has more than 60000 values")

    def test_a_part_is_read_of_an_answer(self) -> None:
        """Whatever the rest is, unless it is nested without an end, or has very many values."""
        body = b'{"more": {"a": [1' + b"0" * 30 + b']}, "id": "x"}'
        self.assertEqual(typed(body, _PART), _Part("x"))
        for body in (
            b"",
            b"<html>",
            b"\xff",
            b"[]",
            b'{"id": 1}',
            b"{}",
            b'{"id": "\xff"}',
            b'{"id": "x", "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            b'{"id": "x", "more": [' + b"0," * MOST_VALUES + b"0]}",
        ):
            self.assertIsNone(typed(body, _PART), body[:80])
