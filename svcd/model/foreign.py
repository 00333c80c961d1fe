"""Reads JSON from peers, so that svcd can store and show it. Pure.

Note: untrusted answers. Machines of tenants may answer anything. Some values can be read by Python
but not written again: halves of surrogate pairs become "?", and very long integers become floats.
svcd refuses a text that is nested deeper than any answer of svcd, and a text with very many values:
its size does not limit the time, because each value may have one byte.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")

MOST_DEPTH: Final = 100
"""Most brackets that are open at once."""
MOST_VALUES: Final = 60_000
"""Most values of a text. Reading them takes 20 ms at most."""
_MOST_ODD: Final = 20_000
"""Most values of a text that only the slower reader accepts."""
_MOST_DIGITS: Final = 18
"""Most characters of an integer that stays an integer."""
_LONG: Final = b"0" * (_MOST_DIGITS + 1)
_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
_OTHERS: Final = bytes(set(range(256)) - set(b"[{,"))
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


def loads(body: bytes | str) -> Any:
    """The value of a JSON text. Replaces bytes that are not UTF-8. Raises ValueError."""
    text = body if isinstance(body, str) else body.decode("utf-8-sig", "replace")
    raw = body.encode("utf-8", "replace") if isinstance(body, str) else body
    is_odd = raw.translate(_DIGITS).find(_LONG) >= 0
    opened = text.count("[") + text.count("{")
    values = text.count(",") + opened
    if values > MOST_VALUES:
        raise ValueError(f"the JSON has more than {MOST_VALUES} values")
    try:
        tree = _tolerant(text, values) if is_odd else msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeEncodeError):
        tree = _tolerant(text, values)
    if opened > MOST_DEPTH and _is_deep(tree):
        raise ValueError("the JSON is nested too deeply")
    return tree


def typed(body: bytes, decoder: msgspec.json.Decoder[T]) -> T | None:
    """The value of a JSON text, of which `decoder` reads only a part.

    None for a text that is not of the type of `decoder`, and for any text that `loads` would
    refuse or mend: use `loads` then.
    """
    # a value takes at least one byte
    if len(body) > MOST_VALUES and _values(body) > MOST_VALUES:
        return None
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _values(body: bytes) -> int:
    """The number of brackets and commas of a text. One pass: three would take twice as long."""
    return len(body.translate(None, _OTHERS))


def _tolerant(text: str, values: int) -> Any:
    """The value of a text that is not quite JSON, for example with NaN, or has long integers."""
    if values > _MOST_ODD:
        raise ValueError(f"the text is not JSON, or has long numbers beside {values} values")
    try:
        tree = json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if _HALF.search(text) and not _is_deep(tree):
        written = json.dumps(tree, ensure_ascii=False).encode("utf-8", "replace")
        tree = json.loads(written, parse_int=_whole)
    return tree


def mapping(body: bytes | str) -> dict[str, Any]:
    """The JSON object of a text; {} for any other text."""
    try:
        tree = loads(body)
    except ValueError:
        return {}
    return tree if isinstance(tree, dict) else {}


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _is_deep(tree: Any) -> bool:
    """Whether a value has more than `MOST_DEPTH` lists and objects inside each other."""
    level = [tree]
    for _ in range(MOST_DEPTH):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        if not inner:
            return False
        level = inner
    return any(isinstance(item, dict | list) for item in level)
