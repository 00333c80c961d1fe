"""Swift v1: reads one object as a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import quote

from svcd.clients.rest import Rest
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault

MOST_BYTES: Final = 5 << 30
"""Size of an object that svcd reads."""


async def read_object(rest: Rest, container: str, name: str) -> tuple[int, AsyncIterator[bytes]]:
    """Size and content of an object. The caller reads the content to its end or closes it.

    Raises CloudError (NOT_FOUND, UNAUTHORIZED, FORBIDDEN, …). The content also raises it, when
    it is shorter than its declared size. The text of the error distinguishes a missing container, a
    missing object and a container that the user may not read.
    """
    path = f"/{quote(container, safe='')}/{quote(name)}"
    exit_ = rest.stream(path)
    try:
        stream = await exit_.__aenter__()
    except CloudError as error:
        if error.service == rest.service and error.kind in (Fault.NOT_FOUND, Fault.FORBIDDEN):
            text = await _reason(rest, container, name, error.kind)
            raise CloudError(error.service, error.kind, text) from None
        raise
    size = stream.size
    if size is None:
        await exit_.__aexit__(None, None, None)
        text = f"GET {path} was answered without Content-Length"
        raise CloudError("object-store", Fault.SERVER_ERROR, text)

    if size > MOST_BYTES:
        await exit_.__aexit__(None, None, None)
        text = f"object {name!r} of container {container!r} has {size} bytes, at most {MOST_BYTES}"
        raise CloudError("object-store", Fault.REFUSED, text)

    async def pieces() -> AsyncIterator[bytes]:
        missing = size
        try:
            async for piece in stream.pieces:
                missing -= len(piece)
                yield piece
            if missing:
                text = f"GET {path} ended {missing} bytes too early"
                raise CloudError("object-store", Fault.SERVER_ERROR, text)
        finally:
            await exit_.__aexit__(None, None, None)

    return size, pieces()


async def _reason(rest: Rest, container: str, name: str, kind: Fault) -> str:
    if kind is Fault.FORBIDDEN:
        return f"the user may not read objects of container {container!r}"
    try:
        await rest.call("HEAD", f"/{quote(container, safe='')}")
    except CloudError as error:
        if error.kind is Fault.NOT_FOUND:
            return f"container {container!r} does not exist"
    return f"object {name!r} does not exist in container {container!r}"
