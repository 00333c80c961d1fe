"""Requests with an Idempotency-Key at the door: one acts, a repetition gets the earlier answer.

The command of the request that acts keeps its answer, in the transaction of its record.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from attrs import frozen

from svcd.errors import ServiceUnavailable, SvcdError
from svcd.model.idempotency import KeyedRequest
from svcd.ports.store import Store
from svcd.resources._call import Call
from svcd.resources._route import Route

T = TypeVar("T")


@frozen
class Kept:
    """The JSON of an answer to an earlier request with the same key."""

    text: bytes


def keyed(call: Call, route: Route, values: Mapping[str, str], now: float) -> KeyedRequest | None:
    """The request with its Idempotency-Key; None without a key, and where svcd keeps no answer.

    now: epoch seconds. Raises ValidationError.
    """
    request = call.request
    keys = request.requestHeaders.getRawHeaders(b"Idempotency-Key")
    if keys is None or call.dry or not route.spec.creates:
        return None
    content = b""
    if request.content is not None:
        content = request.content.read()
        request.content.seek(0)
    return KeyedRequest.of(
        keys,
        tenant_id=call.tenant_id,
        user_id=call.caller.user_id,
        route=f"{route.method} {route.pattern}",
        path=values,
        query=request.args,
        body=content,
        now=now,
        hides=call.hides_credentials,
    )


async def once(store: Store, keyed: KeyedRequest, act: Callable[[], Awaitable[T]]) -> T | Kept:
    """The result of `act`, or the kept answer when another request has used the key.

    A request that fails looks again: a twin of it may have succeeded meanwhile, or its own
    commit, whose answer was lost. When it cannot look, it does not blame the caller: a name that is
    taken, for example, may be that of its twin.
    """
    kept = await store.read(lambda tx: tx.kept_answers.admit(keyed))
    if kept is None:
        try:
            return await act()
        except Exception as fault:
            try:
                kept = await store.read(lambda tx: tx.kept_answers.find(keyed))
            except ServiceUnavailable:
                if isinstance(fault, SvcdError) and fault.status < 500:
                    raise
            if kept is None:
                raise
    return Kept(kept)
