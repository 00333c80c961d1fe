"""Takes credentials out of an engine's record before it is stored or shown. Pure.

Two nets: values of properties whose name tells a secret, and the literal passwords of the
execution's data sources wherever they stand. Long texts are cut, so that a record is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from svcd.model.redaction import MASK, forms, hidden, is_secret
from svcd.model.secret import Secret

MOST_TEXT: Final = 262_144
"""Characters of one text of a record."""
MOST_ACTIONS: Final = 100

_PROPERTY: Final = re.compile(r"(<name>([^<]*)</name>\s*<value>)[^<]*", re.IGNORECASE)
_PAIR: Final = re.compile(
    r"(<(?:param|env-var|argument|arg|java-opts|java-opt)>([^<=]*)=)[^<]*", re.IGNORECASE
)
_ACCOUNT: Final = "fs.objstore."


def masked(record: Mapping[str, object], secrets: Sequence[Secret] = ()) -> dict[str, object]:
    """A copy of `record` without credentials; all keys stay."""
    literals = sorted({f for s in secrets for f in forms(s.reveal())}, key=len, reverse=True)
    return {key: _clean(value, literals) for key, value in record.items()}


def masked_text(text: str, secrets: Sequence[Secret] = ()) -> str:
    """The same for one text, without cutting it."""
    return hidden(_without_named(text), secrets)


def _without_named(text: str) -> str:
    """Patterns that take one pass: a caller's values may be as long as a definition."""
    return _PAIR.sub(_masked, _PROPERTY.sub(_masked, text))


def _masked(found: re.Match[str]) -> str:
    name = found[2].lower()
    _, account, rest = name.partition(_ACCOUNT)
    if is_secret(name) or (account and "username" in rest):
        return found[1] + MASK
    return found[0]


def _clean(value: object, literals: Sequence[str]) -> object:
    if isinstance(value, str):
        text = _without_named(value)
        for literal in literals:
            text = text.replace(literal, MASK)
        return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "...(cut)"
    if isinstance(value, Mapping):
        return {str(key): _clean(each, literals) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each, literals) for each in value[:MOST_ACTIONS]]
    return value
