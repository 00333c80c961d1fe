"""What the path of a request says, as text that can be used and shown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from svcd.web.tree import segments_of

_CONTROL = re.compile("[\x00-\x1f\x7f]")


def tenant_in(path: bytes) -> str | None:
    """The tenant of a path that is no route, so that the order of the checks holds for it too."""
    segments = segments_of(path) or []
    if len(segments) > 2 and segments[0] in (b"v1.0", b"v1.1"):
        return segments[1].decode("utf-8", "replace")
    return None


def decoded(names: Sequence[str], values: tuple[bytes, ...]) -> dict[str, str] | None:
    """The path's values as text; None when one is no text or holds a control character."""
    try:
        result = {n: v.decode("utf-8") for n, v in zip(names, values, strict=True)}
    except UnicodeDecodeError:
        return None
    for value in result.values():
        if _CONTROL.search(value):
            return None
    return result


def shown(value: bytes | str) -> str:
    """`value` for a message: printable and short."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if not text.isprintable():
        text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= 200 else text[:200] + "…"
