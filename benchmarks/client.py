"""A small HTTP client over keep-alive sockets that costs little beside what it measures."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final

_TIMEOUT_S: Final = 60.0
_PIECE_BYTES: Final = 1 << 20
_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"\r\ncontent-length:"


class Refused(Exception):
    """An answer that is not a success."""


class Connection:
    """One keep-alive connection over a connected socket, which it owns."""

    def __init__(self, connected: socket.socket) -> None:
        connected.settimeout(_TIMEOUT_S)
        self.socket = connected
        self._piece = bytearray(_PIECE_BYTES)

    def send(self, request: bytes) -> None:
        """Write a whole request."""
        self.socket.sendall(request)

    def receive(self, keep: bool = False) -> bytes:
        """Read a whole answer; its body when `keep`, else b"". Raises Refused, OSError."""
        data = b""
        while _END_OF_HEAD not in data:
            data += self._more()
        head, _, body = data.partition(_END_OF_HEAD)
        if head[9:10] != b"2":
            raise Refused((head + body)[:1000].decode("latin-1"))
        start = head.lower().find(_LENGTH)
        if start < 0:
            if head[9:12] == b"204":
                return b""
            raise Refused("no Content-Length: " + head.decode("latin-1"))
        length = int(head[start + len(_LENGTH) :].partition(b"\r\n")[0])
        left = length - len(body)
        pieces = [body]
        while left > 0:
            size = self.socket.recv_into(self._piece, min(left, _PIECE_BYTES))
            if not size:
                raise ConnectionError("the server closed in the middle of an answer")
            left -= size
            if keep:
                pieces.append(bytes(self._piece[:size]))
        return b"".join(pieces) if keep else b""

    def exchange(self, request: bytes) -> bytes:
        """Send and receive; the body."""
        self.send(request)
        return self.receive(keep=True)

    def close(self) -> None:
        """Give the connection up."""
        self.socket.close()

    def _more(self) -> bytes:
        data = self.socket.recv(65_536)
        if not data:
            raise ConnectionError("the server closed the connection")
        return data


def connect(port: int) -> Connection:
    """A connection to `port` of 127.0.0.1."""
    connected = socket.create_connection(("127.0.0.1", port), _TIMEOUT_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Connection(connected)


def request(
    method: str, path: str, body: bytes = b"", content_type: str = "application/json"
) -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Accept: application/json"]
    if body:
        lines += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + _END_OF_HEAD + body


def closed_loop(
    connections: Sequence[Connection], make: Callable[[], bytes], count: int
) -> list[float]:
    """Milliseconds of each of `count` requests; each connection asks again when it is answered."""
    waits: list[float] = []
    begun: dict[int, float] = {}
    waiting = selectors.DefaultSelector()
    left = count

    def ask(connection: Connection) -> None:
        nonlocal left
        left -= 1
        data = make()
        begun[id(connection)] = time.perf_counter()
        connection.send(data)

    try:
        for connection in connections[:count]:
            waiting.register(connection.socket, selectors.EVENT_READ, connection)
            ask(connection)
        while len(waits) < count:
            ready = waiting.select(_TIMEOUT_S)
            if not ready:
                raise TimeoutError("no answer")
            for key, _ in ready:
                key.data.receive()
                waits.append((time.perf_counter() - begun[id(key.data)]) * 1000.0)
                if left > 0:
                    ask(key.data)
                else:
                    waiting.unregister(key.fileobj)
    finally:
        waiting.close()
    return waits
