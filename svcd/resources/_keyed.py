"""Requests with an Idempotency-Key at the door: who acts, and who gets an earlier answer.

The handler of the request that acts keeps its answer, in the transaction of its record.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from svcd.errors import ServiceUnavailable, SvcdError
from svcd.model.idempotency import KeyedRequest
from svcd.ports.store import Store
from svcd.resources._route import Call, Route

T = TypeVar("T")


def keyed_request(
    request: Any,
    made: Route,
    call: Call,
    values: dict[str, str],
    keys: Sequence[bytes],
    now: float,
) -> KeyedRequest:
    """The request with its key, for `once`. now: epoch seconds. Raises ValidationError."""
    content = b""
    if request.content is not None:
        content = request.content.read()
        request.content.seek(0)
    return KeyedRequest.of(
        keys,
        tenant_id=call.tenant_id,
        user_id=call.caller.user_id,
        route=f"{made.method} {made.pattern}",
        path=values,
        query=request.args,
        body=content,
        now=now,
    )


async def once(store: Store, keyed: KeyedRequest, act: Callable[[], Awaitable[T]]) -> T | bytes:
    """The result of `act`; the JSON of the first answer when another request has the key.

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
    return kept
