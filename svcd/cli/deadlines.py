"""Connections of `requests` that end an answer which takes too long, its header included.

The timeout of `requests` holds for each read alone: a peer that sends a byte now and then, or one
`100 Continue` after the other, would be read for ever.
"""

from __future__ import annotations

import functools
import http.client
import io
import math
import socket
import time
from typing import Any, Final

from requests.adapters import HTTPAdapter
from urllib3 import HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

WHOLE_S: Final = 300.0
"""Time for a whole answer, from the end of the request."""


class _Timed:
    """A connection. end: deadline of its present answer, on the monotonic clock."""

    timeout: Any

    def __init__(self, *given: Any, whole_s: float, **more: Any) -> None:
        super().__init__(*given, **more)
        self.whole_s = whole_s
        self.end = math.inf

    def connect(self) -> None:
        """See http.client. A proxy answers within it."""
        self.end = time.monotonic() + self.whole_s
        super().connect()  # type: ignore[misc]

    def getresponse(self) -> Any:
        """See http.client."""
        self.end = time.monotonic() + self.whole_s
        return super().getresponse()  # type: ignore[misc]

    def response_class(self, sock: socket.socket, **given: Any) -> http.client.HTTPResponse:
        """See http.client."""
        response = http.client.HTTPResponse(sock, **given)
        response.fp = io.BufferedReader(_Reader(response.fp.detach(), sock, self))
        return response


class _Plain(_Timed, HTTPConnection):  # type: ignore[misc]
    pass


class _Secure(_Timed, HTTPSConnection):  # type: ignore[misc]
    pass


class _Reader(io.RawIOBase):
    """The bytes of a socket, up to the deadline of its connection."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, connection: _Timed) -> None:
        self._raw = raw
        self._sock = sock
        self._connection = connection

    def readable(self) -> bool:
        """See RawIOBase."""
        return True

    def readinto(self, into: Any) -> int | None:
        """See RawIOBase. Raises OSError after the end."""
        usual = self._connection.timeout
        left = self._connection.end - time.monotonic()
        try:
            if left > 0:
                self._sock.settimeout(min(usual, left))
                return self._raw.readinto(into)
        except TimeoutError:
            if time.monotonic() < self._connection.end:
                raise
        finally:
            self._sock.settimeout(usual)
        raise OSError(f"no whole answer within {self._connection.whole_s:.0f} s")

    def close(self) -> None:
        """See RawIOBase."""
        self._raw.close()
        super().close()


class TimedAdapter(HTTPAdapter):
    """An adapter whose answers end within `whole_s`, except for `without_end`."""

    def __init__(self, whole_s: float) -> None:
        super().__init__()
        self._whole_s = whole_s

    def get_connection_with_tls_context(self, *given: Any, **more: Any) -> Any:
        """See HTTPAdapter."""
        pool: Any = super().get_connection_with_tls_context(*given, **more)
        kind = _Secure if isinstance(pool, HTTPSConnectionPool) else _Plain
        pool.ConnectionCls = functools.partial(kind, whole_s=self._whole_s)
        return pool


def without_end(connection: Any) -> None:
    """Let the body of the present answer take any time. connection: None when it has no body."""
    if connection is not None:
        connection.end = math.inf
