"""Takes credentials out of an engine's record before it is stored or shown. Pure.

It masks two kinds: values of properties with the name of a secret, and the passwords of the
execution's data sources anywhere in the record. A short password is masked only in `conf`, the XML
of a definition, where it is a whole value. It cuts long texts, so that a record is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from svcd.model.redaction import LEAST, MASK, hidden, is_secret, whole_forms
from svcd.model.secret import Secret

MOST_TEXT: Final = 262_144
"""Characters of one text of a record."""
MOST_ACTIONS: Final = 100

_TAG: Final = r"<(?:[\w.-]{1,60}:)?"
_END: Final = r"(?:\s[^<>]*)?>"
_PROPERTY: Final = re.compile(
    rf"({_TAG}name{_END}([^<]*)</[^<>]{{1,66}}>\s*{_TAG}value{_END})[^<]*", re.IGNORECASE
)
_PAIR: Final = re.compile(
    rf"({_TAG}(?:param|env-var|argument|arg|java-opts|java-opt){_END}([^<=]*)=)[^<]*",
    re.IGNORECASE,
)
_CONF: Final = "conf"
_WORD: Final = r"""(?<![^\s=>"'])(?:%s)(?![^\s<"'])"""
_ACCOUNT: Final = "fs.objstore."


def masked(record: Mapping[str, object], secrets: Sequence[Secret] = ()) -> dict[str, object]:
    """A copy of `record` without credentials; all keys stay."""
    known = {form for secret in secrets for form in whole_forms(secret.reveal()) if form}
    literals = sorted((each for each in known if len(each) >= LEAST), key=len, reverse=True)
    short = sorted((re.escape(each) for each in known if len(each) < LEAST), key=len, reverse=True)
    word = re.compile(_WORD % "|".join(short)) if short else None
    return {key: _clean(value, literals, word, key) for key, value in record.items()}


def masked_text(text: str, secrets: Sequence[Secret] = ()) -> str:
    """One text without credentials; it is not cut."""
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


def _clean(
    value: object, literals: Sequence[str], word: re.Pattern[str] | None, key: str
) -> object:
    if isinstance(value, str):
        text = _without_named(value)
        for literal in literals:
            text = text.replace(literal, MASK)
        if word is not None and key == _CONF:
            text = word.sub(MASK, text)
        return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "...(cut)"
    if isinstance(value, Mapping):
        return {str(k): _clean(each, literals, word, str(k)) for k, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each, literals, word, key) for each in value[:MOST_ACTIONS]]
    return value
