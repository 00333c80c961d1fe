"""The rules of a request's body that need no handler: its size, its types, its presence."""

from __future__ import annotations

from typing import Any

from svcd.errors import LengthRequired, NotAcceptable, UnsupportedMediaType
from svcd.model.shapes import Shape
from svcd.resources._answers import shown
from svcd.resources._bodies import Body, Disconnected, WholeBody
from svcd.resources._negotiate import accepts_json, is_identity, is_json, is_of
from svcd.resources._route import Raw, Route
from svcd.resources._site import ApiRequest, too_large


def body_of(request: Any, route: Route, suffix: bool) -> Any:
    """The file of the body, after the checks of its size and of the media types; None: no body.

    Raises NotAcceptable, ContentTooLarge, LengthRequired, UnsupportedMediaType, Disconnected, and
    the error when the server could not store the body.
    """
    spec = route.spec
    limit = getattr(request, "too_large", None)
    if limit is not None:
        raise too_large(limit)
    unkept = getattr(request, "unkept", None)
    if unkept is not None:
        raise unkept
    headers = request.requestHeaders
    if not spec.plain and not suffix:
        accept = headers.getRawHeaders(b"Accept")
        if accept and accept[0] != b"*/*" and not accepts_json(b",".join(accept)):
            raise NotAcceptable("answers are application/json; send Accept: application/json")
    if spec.body is None:
        return None
    content = request.content
    refuse_if_gone(content)
    coding = b", ".join(headers.getRawHeaders(b"Content-Encoding", []))
    if not is_identity(coding):
        raise UnsupportedMediaType(
            f"the Content-Encoding of the body is {shown(coding)}: send the body without it",
            {"Accept-Encoding": "identity"},
        )
    if not spec.streams:
        size = content.seek(0, 2)
        content.seek(0)
        if size > route.limit:
            raise too_large(route.limit)
    if isinstance(request, ApiRequest) and not (
        headers.hasHeader(b"Content-Length") or headers.hasHeader(b"Transfer-Encoding")
    ):
        raise LengthRequired("send a body with a Content-Length")
    if isinstance(spec.body, Shape) and size:
        types_ = headers.getRawHeaders(b"Content-Type")
        if not types_ or not is_json(types_[0]):
            given = shown(types_[0]) if types_ else "none"
            raise UnsupportedMediaType(
                f"the body must be application/json, its Content-Type is {given}"
            )
    if isinstance(spec.body, Raw) and spec.body.types:
        types_ = headers.getRawHeaders(b"Content-Type")
        if types_ and not is_of(spec.body.types, types_[0]):
            raise UnsupportedMediaType(
                f"the body must be {' or '.join(spec.body.types)},"
                f" its Content-Type is {shown(types_[0])}"
            )
    return content


def refuse_if_gone(content: Any) -> None:
    """A lost connection closes the file of its body. Raises Disconnected."""
    if content.closed:
        raise Disconnected


def raw_body(request: Any) -> Body:
    """The body for a handler that reads it itself, while it arrives or from its file."""
    streamed = getattr(request, "body", None)
    if streamed is not None:
        return streamed  # type: ignore[no-any-return]
    size = request.content.seek(0, 2)
    request.content.seek(0)
    return WholeBody(request.content, size)
