"""JSON of others: what cannot be stored or read does not get in."""

from __future__ import annotations

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.foreign import MOST_DEPTH, MOST_VALUES, loads, typed


class _Part(msgspec.Struct):
    id: str


_PART = msgspec.json.Decoder(_Part)


class ForeignTests(SynchronousTestCase):
    def test_usual_answer(self) -> None:
        self.assertEqual(loads(b'{"a": [1, "x", null, true]}'), {"a": [1, "x", None, True]})

    def test_pair_of_surrogates_is_one_character(self) -> None:
        self.assertEqual(loads(rb'"\ud83d\ude00"'), "\U0001f600")

    def test_half_of_a_pair_becomes_a_question_mark(self) -> None:
        self.assertEqual(loads(rb'{"\udc00": "cut \uD83d"}'), {"?": "cut ?"})

    def test_half_of_a_pair_in_bytes_is_replaced(self) -> None:
        msgspec.json.encode(loads(b'"cut \xed\xa0\x80"'))

    def test_endless_number_is_a_floating_one(self) -> None:
        self.assertEqual(loads(b"1" + b"0" * 30), 1e30)

    def test_number_beyond_all_is_infinite(self) -> None:
        self.assertEqual(loads(b"9" * 5000), float("inf"))

    def test_deep_nesting_is_no_json(self) -> None:
        for depth in (MOST_DEPTH + 1, 900, 100_000):
            self.assertRaises(ValueError, loads, b"[" * depth + b"]" * depth)

    def test_deepest_nesting_allowed(self) -> None:
        body = b"[" * MOST_DEPTH + b"]" * MOST_DEPTH
        self.assertEqual(msgspec.json.encode(loads(body)), body)

    def test_brackets_in_texts_are_not_nested(self) -> None:
        self.assertEqual(loads('["' + "[" * 500 + '\\"{"]'), ["[" * 500 + '"{'])

    def test_very_many_values_are_refused(self) -> None:
        """The time for a text depends on them, and not on its size."""
        error = self.assertRaises(ValueError, loads, b"[" + b"0," * MOST_VALUES + b"0]")
        self.assertEqual(str(error), "the JSON has more than 60000 values")

    def test_no_json(self) -> None:
        for body in (b"", b"<html>", b"\xff\xfe", b"{"):
            self.assertRaises(ValueError, loads, body)

    def test_a_part_is_read_of_an_answer(self) -> None:
        """Whatever the rest is, unless it is nested without an end."""
        body = b'{"more": {"a": [1' + b"0" * 30 + b']}, "id": "x"}'
        self.assertEqual(typed(body, _PART), _Part("x"))
        deep = b'{"id": "x", "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        self.assertIsNone(typed(deep, _PART))

    def test_an_answer_of_another_type_has_no_part(self) -> None:
        for body in (b"", b"<html>", b"\xff", b"[]", b'{"id": 1}', b"{}", b'{"id": "\xff"}'):
            self.assertIsNone(typed(body, _PART))

    def test_very_many_values_have_no_part(self) -> None:
        body = b'{"id": "x", "more": [' + b"0," * MOST_VALUES + b"0]}"
        self.assertIsNone(typed(body, _PART))
