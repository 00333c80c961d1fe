"""Reads the content of job binaries, from svcd's own store or from the object store.

The content is always streamed; svcd never holds a whole binary in memory.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from attrs import frozen

from svcd.errors import NotFound
from svcd.model.ids import JobBinaryInternalId, TenantId
from svcd.model.job import INTERNAL_URL, JobBinary, JobBinaryInternal
from svcd.ports.cloud import CloudError, ObjectStore
from svcd.ports.faults import Fault
from svcd.ports.store import Store, Tx

OBJECT: Final = "objstore-internal://"
_JAR_START: Final = b"PK\x03\x04"
_UPWARDS: Final = (".", "..")
"""Segments of a path by which a proxy before the object store would leave the container."""
_ID: Final = re.compile(r"[0-9A-Za-z-]{1,64}\Z")


@frozen
class Internal:
    """A binary in svcd's own store."""

    id: JobBinaryInternalId


@frozen
class Object:
    """A binary in the object store of the tenant."""

    container: str
    name: str


def location(url: str) -> Internal | Object | None:
    """The location in a job binary's url; None when the url has neither form."""
    if url.startswith(INTERNAL_URL):
        id_ = url.removeprefix(INTERNAL_URL)
        return Internal(JobBinaryInternalId(id_)) if _ID.match(id_) else None
    if url.startswith(OBJECT):
        container, slash, name = url.removeprefix(OBJECT).partition("/")
        segments = (container, *name.split("/"))
        if not (slash and container and name) or any(segment in _UPWARDS for segment in segments):
            return None
        return Object(container, name)
    return None


class Binaries:
    """Opens job binaries."""

    def __init__(self, store: Store, object_store: ObjectStore) -> None:
        self._store = store
        self._object_store = object_store

    async def open(
        self, tenant_id: TenantId, binary: JobBinary
    ) -> tuple[int, AsyncIterator[bytes]]:
        """Open a binary: its size in bytes and its content in pieces.

        Raises NotFound (the internal binary has gone) and CloudError (the object store's fault).
        """
        match location(binary.url):
            case Internal(id_):
                record = await self._store.read(lambda tx: tx.internals.get(tenant_id, id_))
                return record.datasize, self.pieces(record)
            case Object(container, name):
                if binary.extra is None:
                    text = f"job binary {binary.name!r} has no user and password"
                    raise CloudError("object-store", Fault.UNAUTHORIZED, text)
                return await self._object_store.read(tenant_id, binary.extra, container, name)
            case None:
                raise NotFound(f"content of job binary {binary.name!r} not found: bad url")

    async def pieces(self, record: JobBinaryInternal) -> AsyncIterator[bytes]:
        """The content of an internal binary. Raises NotFound when it is deleted meanwhile."""
        sent = index = 0
        while sent < record.datasize:
            piece = await self._store.read(partial(_piece, record.id, index))
            if not piece:
                raise NotFound.of("content of job binary internal", record.id)
            yield piece
            sent += len(piece)
            index += 1


async def _piece(id_: JobBinaryInternalId, index: int, tx: Tx) -> bytes | None:
    return await tx.internals.piece(id_, index)


async def begun(content: AsyncIterator[bytes], least: int) -> tuple[bytes, AsyncIterator[bytes]]:
    """At least the first `least` bytes of `content`, if it has so many, and all of it."""
    first = b""
    while len(first) < least and (piece := await anext(content, b"")):
        first += piece
    return first, _chain(first, content)


def library_name(name: str, first: bytes) -> str:
    """The file name under which the engine finds the classes of a library. first: its first bytes.

    The engine puts only `*.jar` on the class path; a file's name need not end so. Programs have the
    file under its own name, too.
    """
    return f"{name}.jar" if first.startswith(_JAR_START) and "." not in name else name


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for piece in rest:
        yield piece
