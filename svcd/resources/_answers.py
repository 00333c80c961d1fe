"""Answers as values, and the one form of every error.

Source: interface, "Errors": the body has exactly `error_code`, `error_name`, `error_message`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

import msgspec
from attrs import define, frozen

from svcd.errors import SvcdError
from svcd.model.redaction import shown_url

JSON = b"application/json"

_MOST_CHARACTERS = 16_384
"""Limits an error message: it may quote the request body, which can be a megabyte."""

_encoder = msgspec.json.Encoder()
encode = _encoder.encode

REASONS: Final[Mapping[int, bytes]] = {s.value: s.phrase.encode() for s in HTTPStatus} | {
    413: b"Content Too Large",
    414: b"URI Too Long",
}
"""Texts of status lines."""


@define(slots=True)
class Answer:
    """A whole answer. headers: in addition to the headers of every answer.

    packed: the body as gzip makes it, for callers that take it; empty: none.
    """

    status: int
    body: bytes = b""
    content_type: bytes = JSON
    headers: Mapping[str, str] | None = None
    packed: bytes = b""


INERT = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}
"""Headers of data that a tenant uploaded: a browser must not run it as a page of this origin."""


@frozen(kw_only=True)
class Download:
    """A body that is sent piece by piece, `size` bytes in all."""

    size: int
    pieces: AsyncIterator[bytes]
    content_type: bytes = b"text/html; charset=utf-8"


def error_answer(error: SvcdError) -> Answer:
    """The answer that reports `error`."""
    message = error.message
    if len(message) > _MOST_CHARACTERS:
        message = message[:_MOST_CHARACTERS] + "… (the rest is left out)"
    body = encode({"error_code": error.status, "error_name": error.name, "error_message": message})
    return Answer(error.status, body, JSON, error.headers or None)


def raw_error(error: SvcdError, request_id: str) -> bytes:
    """A whole response for input that is not a readable request. Its connection closes after it."""
    answer = error_answer(error)
    lines = [
        f"HTTP/1.1 {answer.status} {REASONS[answer.status].decode()}",
        "Server: svcd",
        "Content-Type: application/json",
        "Connection: close",
        f"X-Request-Id: {request_id}",
        *(f"{name}: {value}" for name, value in error.headers.items()),
        f"Content-Length: {len(answer.body)}",
    ]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + answer.body


def shown(value: bytes | str) -> str:
    """A text of a request for a message: printable, at most 200 characters, no secret of a URL."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    plain = unquote(text)  # a client has to quote a URL to make it one segment of a path
    if "@" in plain and (masked := shown_url(plain)) != plain:
        text = masked
    if not text.isprintable():
        text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= 200 else text[:200] + "…"
