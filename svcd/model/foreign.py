"""Reads JSON from peers, so that svcd can store and show it. Pure.

Note: untrusted answers. Machines of tenants may answer anything. Some values can be read by Python
but not written again: halves of surrogate pairs become "?", and very long integers become floats.
A text that is nested deeper than any answer of svcd is refused.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any, Final

MOST_DEPTH: Final = 100
"""Most brackets that are open at once."""
_MOST_DIGITS: Final = 18
"""Most characters of an integer that stays an integer."""
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_NO_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[^][{}"]++', re.DOTALL)
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""Brackets as signed bytes: an opening one is +1, a closing one -1."""


def loads(body: bytes | str) -> Any:
    """The value of a JSON text. Replaces bytes that are not UTF-8. Raises ValueError."""
    text = body if isinstance(body, str) else body.decode("utf-8-sig", "replace")
    try:
        tree = json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if _is_deep(text):
        raise ValueError("the JSON is nested too deeply")
    if _HALF.search(text):
        written = json.dumps(tree, ensure_ascii=False).encode("utf-8", "replace")
        tree = json.loads(written, parse_int=_whole)
    return tree


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _is_deep(text: str) -> bool:
    """Whether a JSON text has more than `MOST_DEPTH` brackets open at once."""
    if text.count("[") + text.count("{") <= MOST_DEPTH:
        return False
    steps = _NO_BRACKETS.sub("", text).encode("ascii").translate(_STEPS)
    return max(accumulate(memoryview(steps).cast("b")), default=0) > MOST_DEPTH
