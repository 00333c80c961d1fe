"""Swift v1: reading one object as a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

from svcd.clients.rest import Rest
from svcd.ports import CloudError, Fault


async def read_object(rest: Rest, container: str, name: str) -> tuple[int, AsyncIterator[bytes]]:
    """Size and content; the caller reads the content to its end or closes it.

    Raises CloudError (NOT_FOUND, UNAUTHORIZED, FORBIDDEN, …), also from the content, when it is
    shorter than the store said.
    """
    path = f"/{quote(container, safe='')}/{quote(name)}"
    exit_ = rest.stream(path)
    stream = await exit_.__aenter__()
    size = stream.size
    if size is None:
        await exit_.__aexit__(None, None, None)
        text = f"GET {path} was answered without Content-Length"
        raise CloudError("object-store", Fault.SERVER_ERROR, text)

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
