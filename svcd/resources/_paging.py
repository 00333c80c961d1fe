"""`limit`, `marker` and filters of lists: additive, and only under v1.1 (behaviour, Part I 9)."""

from __future__ import annotations

from collections.abc import Sequence

from svcd.errors import ValidationError
from svcd.model.choices import nearest
from svcd.ports.store import Page
from svcd.resources._paths import shown
from svcd.resources._route import Call

MAX_LIMIT = 1000
"""Largest value of `?limit`."""

_ALL = Page()
_LIKENESS = 0.75
"""A name that is at least so similar to a known name counts as misspelled."""
_MOST_CHECKED = 20
"""Query parameters that are checked for misspelling, per request."""
_DIGITS = 18
"""More digits would make too large a number for the database."""
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def page_of(call: Call, filters: Sequence[str], also: Sequence[str] = ()) -> Page:
    """The page that `call` requests. Raises ValidationError for a bad limit or a misspelled name.

    also: further query parameters that the list accepts.
    """
    if not call.has_query or call.version == "1.0":
        return _ALL
    refuse_misspelled(call, ("limit", "marker", *filters, *also))
    limit = call.one("limit")
    number: int | None = None
    if limit is not None:
        if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit[:9]) <= MAX_LIMIT:
            raise ValidationError(f"?limit: expected a number from 1 to {MAX_LIMIT}")
        number = int(limit)
    given = {name: call.one(name) for name in filters}
    chosen = {name: value for name, value in given.items() if value is not None}
    for name, value in [*chosen.items(), ("marker", call.one("marker") or "")]:
        if "\x00" in value:
            raise ValidationError(f"?{name}: control characters are not allowed")
    return Page(limit=number, marker=call.one("marker"), filters=chosen)


def flag(call: Call, name: str) -> bool:
    """A query parameter that is true or false; false when it is absent. Raises ValidationError."""
    text = call.one(name)
    value = False if text is None else _FLAGS.get(text.lower())
    if value is None:
        raise ValidationError(f"?{name}: expected true or false, got {shown(text or '')}")
    return value


def whole_number(call: Call, name: str, most: int) -> int | None:
    """A query parameter that is a whole number; None when it is absent. Raises ValidationError."""
    text = call.one(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) <= most):
        raise ValidationError(
            f"?{name}: expected a whole number from 0 to {most}, got {shown(text)}"
        )
    return int(text)


def refuse_misspelled(call: Call, known: Sequence[str]) -> None:
    """Raises ValidationError when a query parameter seems to be a misspelled known one (v1.1).

    Other unknown query parameters are ignored, under v1.0 all of them.
    """
    if call.version == "1.0":
        return
    faults = [
        f"?{shown(name)}: unknown query parameter; did you mean {near}?"
        for name in call.names[:_MOST_CHECKED]
        if name not in known and (near := nearest(name, known, _LIKENESS))
    ]
    if faults:
        raise ValidationError.of(faults)
