"""How a setting is declared, and how a text becomes its value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from svcd.model.redaction import without_passwords

_MOST = 1 << 53
"""Largest number: databases and JSON keep it exactly."""


class SettingsError(Exception):
    """A setting is unknown or has a wrong value: one line that says which, where and why."""


@frozen(kw_only=True)
class Setting:
    """The declaration of one value of a section.

    kind: its type. text: what it says, with the unit where the name does not end in one. fixed: a
    constant. masked: stars replace it wherever values are shown. hidden: a wrong value is not
    quoted. choices: the possible texts. least, most: bounds of a number. filled: what to name in
    place of an empty text or list; "": it may be empty.
    """

    kind: Any
    default: Any
    text: str
    fixed: bool = False
    masked: bool = False
    hidden: bool = False
    choices: Sequence[str] = ()
    least: float = 0
    most: int = _MOST
    filled: str = ""

    def value(self, key: str, raw: object, source: str) -> object:
        """`raw` as a value of `kind`. key, source: for the error. Raises SettingsError."""
        try:
            value = self._read(raw)
        except _Unfit as unfit:
            hint = "something else (not shown: it may be a secret)"
            shown = hint if self.hidden else without_passwords(repr(raw))
            text = f"setting {key} ({source}): expected {unfit}, got {shown}"
            raise SettingsError(text) from None
        if self.filled and value in ("", ()):
            raise SettingsError(f"{key} is empty: {self.filled}")
        return value

    def _read(self, raw: object) -> object:
        """Raises _Unfit."""
        if self.kind is bool:
            return _truth(raw)
        if self.kind in (int, float):
            return self._number(raw)
        if self.kind is str or self.kind is Path:
            if not isinstance(raw, str):
                raise _Unfit("a text")
            if self.choices and raw not in self.choices:
                raise _Unfit("one of " + ", ".join(self.choices))
            return self.kind(raw)
        items = raw.split(",") if isinstance(raw, str) else raw
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise _Unfit("a list of texts")
        return tuple(item.strip() for item in items if item.strip())

    def _number(self, raw: object) -> int | float:
        """Raises _Unfit."""
        if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
            raise _Unfit("a number")
        try:
            number: int | float = self.kind(raw)
        except ValueError:
            raise _Unfit("a whole number" if self.kind is int else "a number") from None
        if not number >= self.least or number == float("inf"):
            least = f"of at least {self.least}" if self.least else "that is not negative"
            raise _Unfit(f"a number {least}")
        if number > self.most:
            raise _Unfit(f"a number of at most {self.most}")
        return number


class _Unfit(Exception):
    """A text is no value of a setting. args[0]: what is expected."""


def _truth(raw: object) -> bool:
    """Raises _Unfit."""
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(raw, bool):
        return raw
    if not isinstance(raw, str) or raw.lower() not in words:
        raise _Unfit("true or false")
    return words[raw.lower()]


def setting(
    default: Any,
    text: str,
    *,
    secret: bool = False,
    shown: bool | Callable[[Any], str] = True,
    **rules: Any,
) -> Any:
    """A field that operators may set. shown: as the `repr` of attrs. rules: see Setting."""
    declared = {"text": text, "masked": secret, **rules}
    return field(default=default, repr=False if secret else shown, metadata=declared)


def constant(default: Any, text: str) -> Any:
    """A field with the same value for every operator. text: what the value bounds."""
    return field(default=default, metadata={"text": text, "fixed": True})
