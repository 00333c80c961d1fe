"""Requests with an Idempotency-Key: svcd carries out the first one and repeats its answer.

A key belongs to one project, user and route. The request is the same when the values in the path,
the query and the bytes of the body are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Self

import msgspec
from attrs import field, frozen

from svcd.errors import ValidationError
from svcd.model.ids import TenantId, Timestamp, timestamp

KEEP_S: Final = 24 * 3600.0
"""The time for which svcd keeps the answer."""
_KEY: Final = re.compile(r"[!-~]{1,255}\Z")

_encode = msgspec.msgpack.Encoder().encode


@frozen(kw_only=True)
class KeyedRequest:
    """A request with a key, for `ports.KeptAnswerRows`.

    identity: project, user, route and key. content: path, query and body; it may hold secrets. at:
    its time. since: an answer of this time or before has expired. hides: the caller's answers mask
    credentials.
    """

    tenant_id: TenantId
    identity: bytes = field(repr=False)
    content: bytes = field(repr=False)
    at: Timestamp
    since: Timestamp
    hides: bool = False

    @classmethod
    def of(
        cls,
        keys: Sequence[bytes],
        *,
        tenant_id: TenantId,
        user_id: str,
        route: str,
        path: Mapping[str, str],
        query: Mapping[bytes, Sequence[bytes]],
        body: bytes,
        now: float,
        hides: bool = False,
    ) -> Self:
        """keys: the values of the header. Raises ValidationError."""
        key = keys[0].decode("latin-1")
        if len(keys) > 1 or not _KEY.match(key):
            raise ValidationError(
                "Idempotency-Key: expected one header with 1 to 255 visible ASCII characters,"
                " without blanks; use a new UUID for each request and the same one for its retries"
            )
        return cls(
            tenant_id=tenant_id,
            identity=_encode([tenant_id, user_id, route, key]),
            content=_encode([sorted(path.items()), sorted(query.items()), body]),
            at=timestamp(now),
            since=timestamp(now - KEEP_S),
            hides=hides,
        )
