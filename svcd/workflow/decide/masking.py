"""Takes credentials out of an engine's record before it is stored or shown. Pure.

It masks two kinds: values beside the name of a secret, and the secrets of the execution anywhere in
the record. A short password is masked only in `conf`, the XML of a definition, where it is a whole
value. It cuts long texts, so that a record is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from itertools import islice
from typing import Final, cast

from attrs import evolve

from svcd.model.engine_record import Record, parsed, text_in
from svcd.model.redaction import (
    DEFINITION,
    LEAST,
    MASK,
    PAIR,
    PROPERTY,
    forms,
    hidden,
    whole_forms,
    without_named,
    without_told,
)
from svcd.model.secret import Secret

MOST_TEXT: Final = 131_072
"""Characters of one text of a record."""
MOST_CHARACTERS: Final = 1_048_576
"""Characters of all texts of a record."""
MOST_ACTIONS: Final = 100
MOST_ENTRIES: Final = 10_000
"""Values of a record, at all depths."""
_CUT: Final = "...(cut)"

_CONF: Final = "conf"
_WORD: Final = r"""(?<![^\s=>"'])(?:%s)(?![^\s<"'])"""


def masking(
    record: Mapping[str, object], secrets: Sequence[Secret] = ()
) -> Generator[None, None, dict[str, object]]:
    """A bounded copy of `record` without credentials; all keys of its first `MOST_ENTRIES` stay.

    It has steps of some milliseconds each, because the machines of tenants choose the record.
    """
    known: set[str] = set()
    for secret in secrets:
        known.update(filter(None, whole_forms(secret.reveal())))
        yield
    literals = sorted((secret for secret in known if len(secret) >= LEAST), key=len, reverse=True)
    short = sorted(
        (re.escape(secret) for secret in known if len(secret) < LEAST), key=len, reverse=True
    )
    word = re.compile(_WORD % "|".join(short)) if short else None
    masked = yield from _Masking(literals, word).of(record, "")
    return cast("dict[str, object]", masked)


def reading(raw: Mapping[str, object], secrets: Sequence[Secret]) -> Generator[None, None, Record]:
    """The engine's answer on a job, masked in steps. secrets: literal ones of the execution.

    The status of the workflow is a word of the engine; a secret of the same letters leaves it.
    """
    tree = yield from masking(raw, secrets)
    return evolve(parsed(tree), status=text_in(raw, "status"))


def masked_text(text: str, secrets: Sequence[Secret] = (), *, whole: bool = False) -> str:
    """Free text without credentials; it is not cut. whole: see `hidden`."""
    return hidden(without_told(text), secrets, whole=whole)


def masked_end(text: str, secrets: Sequence[Secret], *, whole: bool = False) -> str:
    """The end of a file without credentials; it may begin within one of `secrets`."""
    text = text.lstrip("\ufffd")  # the rest of a character that was cut
    ends = (
        form[at:]
        for secret in secrets
        for form in forms(secret.reveal())
        for at in range(1, len(form) - LEAST + 1)
    )
    size = max((len(end) for end in ends if text.startswith(end)), default=0)
    return masked_text(MASK + text[size:] if size else text, secrets, whole=whole)


class _Masking:
    """Masks one record. It counts the characters and the values that are left."""

    def __init__(self, literals: Sequence[str], word: re.Pattern[str] | None) -> None:
        self._literals = literals
        self._word = word
        self._characters = MOST_CHARACTERS
        self._entries = MOST_ENTRIES

    def of(self, value: object, key: str) -> Generator[None, None, object]:
        """The masked value of `key`."""
        if isinstance(value, str):
            return (yield from self._text(value, key))
        if isinstance(value, Mapping):
            masked = {}
            for name in islice(value, MOST_ENTRIES):
                if not self._has_room():
                    break
                masked[str(name)] = yield from self.of(value[name], str(name))
            return masked
        if isinstance(value, list | tuple):
            rows = []
            for item in value[:MOST_ACTIONS]:
                if not self._has_room():
                    break
                rows.append((yield from self.of(item, key)))
            return rows
        return value

    def _has_room(self) -> bool:
        self._entries -= 1
        return self._entries >= 0

    def _text(self, value: str, key: str) -> Generator[None, None, str]:
        """A text is cut first, so that masking it is bounded, but never within a secret."""
        size = min(MOST_TEXT, self._characters)
        text = value if len(value) <= size else self._cut(value, size)
        self._characters -= len(text)
        if len(text) > _SHORT:
            yield
        masked = text
        for pattern in DEFINITION if key == _CONF else (PROPERTY, PAIR):
            masked = without_named(masked, pattern)
            if len(text) > _SHORT:
                yield
        spent = 0
        for literal in self._literals:
            masked = masked.replace(literal, MASK)
            spent += len(masked)
            if spent > _SLICE:
                spent = 0
                yield
        if self._word is not None and key == _CONF:
            masked = self._word.sub(MASK, masked)
        return masked if len(text) == len(value) else masked + _CUT

    def _cut(self, value: str, size: int) -> str:
        """The first `size` characters, or fewer when they would end within a secret."""
        before = -1
        while size != before:
            before = size
            for literal in self._literals:
                at = value.find(literal, max(0, size - len(literal) + 1), size + len(literal) - 1)
                if 0 <= at < size:
                    size = at
        return value[:size]


_SHORT: Final = 4096
"""Characters of a text that is masked in no time."""
_SLICE: Final = 4_000_000
"""Characters that a step searches for known secrets."""
