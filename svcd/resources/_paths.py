"""The values in the path of a request, decoded, and safe to show in messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from svcd.model.redaction import shown_url
from svcd.web.tree import segments_of

_CONTROL = re.compile("[\x00-\x1f\x7f]")


def tenant_in(path: bytes) -> str | None:
    """The tenant in a path without a route: the token is checked before the path gets a 404."""
    segments = segments_of(path) or []
    if len(segments) > 2 and segments[0] in (b"v1.0", b"v1.1"):
        return segments[1].decode("utf-8", "replace")
    return None


def decoded(names: Sequence[str], values: tuple[bytes, ...]) -> dict[str, str] | None:
    """The values in the path as text; None when one is not UTF-8 or has a control character."""
    try:
        result = {n: v.decode("utf-8") for n, v in zip(names, values, strict=True)}
    except UnicodeDecodeError:
        return None
    for value in result.values():
        if _CONTROL.search(value):
            return None
    return result


def shown(value: bytes | str) -> str:
    """`value` for use in a message: printable, at most 200 characters, without secrets of a URL."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    plain = unquote(text)  # a client has to quote a URL to make it one segment of a path
    if "@" in plain and (masked := shown_url(plain)) != plain:
        text = masked
    if not text.isprintable():
        text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= 200 else text[:200] + "…"
