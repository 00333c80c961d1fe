"""Takes credentials out of an engine's record before it is stored or shown. Pure.

Two nets: values of properties whose name tells a secret, and the literal passwords of the
execution's data sources wherever they stand. Long texts are cut, so that a record is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

from svcd.model.secret import Secret

MASK: Final = "***"
MOST_TEXT: Final = 262_144
"""Characters of one text of a record."""
MOST_ACTIONS: Final = 100
_SHORTEST_LITERAL: Final = 4

_NAME: Final = r"password|passwd|secret|token|credential|access\.?key|apikey|private\.?key"
_PROPERTY: Final = re.compile(
    r"(<name>[^<]*(?:" + _NAME + r"|fs\.objstore\.[^<]*username)[^<]*</name>\s*<value>)[^<]*",
    re.IGNORECASE,
)
_PAIR: Final = re.compile(
    r"(<(?:param|env-var|argument|arg|java-opts|java-opt)>[^<=]*(?:" + _NAME + r")[^<=]*=)[^<]*",
    re.IGNORECASE,
)


def masked(record: Mapping[str, object], secrets: Sequence[Secret] = ()) -> dict[str, object]:
    """A copy of `record` without credentials; all keys stay."""
    literals: list[str] = []
    for secret in secrets:
        text = secret.reveal()
        if len(text) >= _SHORTEST_LITERAL:
            literals += sorted({text, escape(text), escape(text, {'"': "&quot;"})}, key=len)[::-1]
    return {key: _clean(value, literals) for key, value in record.items()}


def masked_text(text: str, secrets: Sequence[Secret] = ()) -> str:
    """The same for one text, without cutting it."""
    cleaned = _PAIR.sub(rf"\g<1>{MASK}", _PROPERTY.sub(rf"\g<1>{MASK}", text))
    for secret in secrets:
        literal = secret.reveal()
        if len(literal) >= _SHORTEST_LITERAL:
            cleaned = cleaned.replace(literal, MASK)
    return cleaned


def _clean(value: object, literals: Sequence[str]) -> object:
    if isinstance(value, str):
        text = _PAIR.sub(rf"\g<1>{MASK}", _PROPERTY.sub(rf"\g<1>{MASK}", value))
        for literal in literals:
            text = text.replace(literal, MASK)
        return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "...(cut)"
    if isinstance(value, Mapping):
        return {str(key): _clean(each, literals) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each, literals) for each in value[:MOST_ACTIONS]]
    return value
