"""The last stages of a request: the handler acts, and its result becomes the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from attrs import evolve
from twisted.internet.defer import Deferred

from svcd.model.requests import Limits
from svcd.model.shapes import Shape
from svcd.model.wire import as_of_1_0
from svcd.resources._answers import Answer, Download, encode
from svcd.resources._body_rules import raw_body, refuse_if_gone
from svcd.resources._call import Call
from svcd.resources._keyed import Kept
from svcd.resources._route import Raw, Route
from svcd.resources._streams import Stream

Reply: TypeAlias = Answer | Download | Stream


async def act(
    call: Call, route: Route, values: Mapping[str, str], body: Any, limits: Limits
) -> object:
    """The result of the handler, or of the method that plans in its place, after the last checks.

    They are: the id in the path, the presence of the caller, the query and the shape of the body.
    body: its file, None for a route without one. limits: of shapes.
    """
    if route.exists is not None:
        await route.exists(call, **values)
    if body is not None:  # the connection may be lost since the body has arrived
        refuse_if_gone(body)
    call.query = route.spec.queries.read(
        call.request.args, route.version, call.request.requestHeaders
    )
    arguments: dict[str, Any] = dict(values)
    shape = route.spec.body
    if isinstance(shape, Shape):
        bounds = evolve(limits, since_1_1=route.version != "1.0")
        arguments["body"] = shape.decode(body.read() if body else b"", bounds)
    elif isinstance(shape, Raw):
        arguments["body"] = raw_body(call.request)
    if call.dry and route.plan is not None:
        return await route.plan(call, **arguments)
    result = route.run(call, **arguments)
    return await result if isinstance(result, Deferred) else result


def reply_of(call: Call, route: Route, result: object) -> Reply:
    """The answer for the result of a request."""
    if isinstance(result, Kept):
        call.replayed = True
        return _wrapped(result.text, route, {"Idempotent-Replayed": "true"})
    if call.writes:
        call.made = getattr(result, "id", "")
    if call.dry:
        return Answer(200, b'{"plan":' + encode(result) + b"}")
    if isinstance(result, (Download, Stream)):
        return result
    if isinstance(result, Answer):
        if call.headers:
            result.headers = {**(result.headers or {}), **call.headers}
        return result
    return _wrapped(result, route, call.headers or None)


def _wrapped(result: object, route: Route, headers: Mapping[str, str] | None) -> Answer:
    """The answer with a record, a list of them, or their JSON; without a body for a 204."""
    status = route.spec.success
    if status == 204:
        return Answer(204, headers=headers)
    before, after = route.wrapper
    parts: tuple[bytes, ...]
    if isinstance(result, bytes):
        parts = (before, result, after)
    elif isinstance(result, list) and result and isinstance(result[0], bytes):
        between = [part for piece in result[1:] for part in (b",", piece)]
        parts = (before, b"[", result[0], *between, b"]", after)
    else:
        parts = (before, encode(result), after)
    text = b"".join(parts)
    if route.version == "1.0" and before:
        text = as_of_1_0(text)
    return Answer(status, text, headers=headers)
