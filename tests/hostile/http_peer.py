"""An HTTP server that misbehaves. The first segment of a path names the way, see `WAYS`.

It serves as Oozie, WebHDFS, YARN and object store alike, because it reads nothing of a request but
the first segment. It writes raw bytes, so it can break every rule of HTTP.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import LoopingCall

Pieces = Iterator[bytes]

_OK = b"HTTP/1.1 200 OK\r\n"
_JSON = _OK + b"Content-Type: application/json\r\n"
_CHUNKED = _JSON + b"Transfer-Encoding: chunked\r\n\r\n"
METADATA = b"http://169.254.169.254/latest/meta-data/"


def whole(body: bytes, head: bytes = _JSON) -> Pieces:
    """An answer that is valid HTTP, in pieces."""
    yield head + b"Content-Length: %d\r\n\r\n" % len(body)
    for at in range(0, len(body), 65_536):
        yield body[at : at + 65_536]


def endless(head: bytes, piece: bytes) -> Pieces:
    yield head
    while True:
        yield piece


def kept(make: Callable[[], bytes], head: bytes = _JSON) -> Callable[[], Pieces]:
    """A whole answer whose body takes long to make, and is made once."""
    body = cache(make)
    return lambda: whole(body(), head)


def _keys(count: int) -> bytes:
    return b",".join(b'"%d":0' % at for at in range(count))


def _record(**more: Any) -> bytes:
    """An answer that all peers might give, with changes."""
    return json.dumps({"id": "job", "status": "RUNNING", "workflows": [], **more}).encode()


WAYS: Mapping[str, Callable[[], Pieces]] = {
    "endless-headers": lambda: endless(_OK, b"X-A: " + b"a" * 1017 + b"\r\n"),
    "endless-header-line": lambda: endless(_OK + b"X-A: ", b"a" * 65_536),
    "endless-interim-answers": lambda: endless(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 1000),
    "endless-body": lambda: endless(_JSON + b"\r\n", b" " * 65_536),
    "endless-chunks": lambda: endless(_CHUNKED, b"10000\r\n" + b" " * 65_536 + b"\r\n"),
    "tiny-chunks": lambda: endless(_CHUNKED, b"2\r\n  \r\n" * 8000),
    "endless-chunk-extension": lambda: endless(_CHUNKED + b"1;", b"a" * 65_536),
    "headers-a-byte-a-second": lambda: iter([b"H", b"T", b"T", b"P", b"/"] * 100),
    "body-a-byte-a-second": lambda: iter([_JSON + b"Content-Length: 99\r\n\r\n", *[b" "] * 99]),
    "nested-50-mb": kept(lambda: b"[" * (50 << 20)),
    "nested-1-mb": kept(lambda: b"[" * (1 << 19) + b"]" * (1 << 19)),
    "a-million-keys": kept(lambda: b"{" + _keys(1_000_000) + b"}"),
    "many-keys": kept(lambda: b'{"id":"job","status":"RUNNING",' + _keys(90_000) + b"}"),
    "many-lists": kept(lambda: _record()[:-1] + b',"a":[' + b"[]," * 200_000 + b"0]}"),
    "many-numbers": kept(
        lambda: b'{"id":"job","a":[' + b"1234567890123456789012," * 40_000 + b"0]}"
    ),
    "many-surrogates": kept(lambda: _record()[:-1] + b',"a":"' + b"\\ud800" * 160_000 + b'"}'),
    "many-tags": kept(lambda: _record(conf="<name>" * 170_000)),
    "many-brackets": kept(lambda: _record(conf="<" * 1_000_000)),
    "length-too-long": lambda: iter([_JSON + b"Content-Length: 999\r\n\r\n{}", b""]),
    "length-too-short": lambda: iter([_JSON + b"Content-Length: 2\r\n\r\n" + b"{}" * 1_000_000]),
    "length-no-number": lambda: iter([_JSON + b"Content-Length: many\r\n\r\n{}"]),
    "length-gigantic": lambda: endless(
        _JSON + b"Content-Length: %d\r\n\r\n" % 10**18, b" " * 65_536
    ),
    "chunk-size-no-number": lambda: iter([_CHUNKED + b"zz\r\n{}\r\n"]),
    "compressed-bomb": kept(
        lambda: gzip.compress(b" " * (50 << 20)), _JSON + b"Content-Encoding: gzip\r\n"
    ),
    "redirect-to-metadata": lambda: iter(
        [b"HTTP/1.1 307 No\r\nLocation: " + METADATA + b"\r\nContent-Length: 0\r\n\r\n"]
    ),
    "silence": lambda: iter([]),
    "close-at-once": lambda: iter([b""]),
    "no-http": lambda: iter([b"\x00\xff220 mail ESMTP\r\n\r\n", b""]),
    "huge-refusal": lambda: whole(
        b'{"RemoteException":{"message":"'
        + b"a" * 900_000
        + b'"},"errorMessage":"'
        + b"\\n" * 50_000
        + b'"}',
        b"HTTP/1.1 400 No\r\n",
    ),
    "wrong-types": lambda: whole(b'{"id":[],"status":{},"workflows":{},"Location":7,"apps":[0]}'),
    "no-utf-8": lambda: whole(b'{"a":"' + b"\xff" * 900_000 + b'"'),
}
"""How it answers. An empty piece closes the connection; after the last piece it stays open."""

_BY_THE_SECOND = ("headers-a-byte-a-second", "body-a-byte-a-second")
SLOW = (*_BY_THE_SECOND, "silence")
"""Ways in which calls take all of their time: all calls of a peer are made at once."""


class HttpPeer(Protocol):
    """One connection; it writes as fast as the client reads."""

    transport: Any
    _head = b""
    _pieces: Pieces | None = None
    _paused = False
    _ticking: LoopingCall | None = None

    def dataReceived(self, data: bytes) -> None:
        if self._pieces is not None:
            return  # what follows the first request's head
        self._head += data
        if b"\r\n\r\n" not in self._head:
            return
        way = self._head.split(b" ", 2)[1].split(b"/")[1].decode()
        self._pieces = WAYS[way]()
        if way in _BY_THE_SECOND:
            self._ticking = LoopingCall(self._next)
            self._ticking.start(1.0)
        else:
            self.transport.registerProducer(self, True)
            self.resumeProducing()

    def _next(self) -> bool:
        assert self._pieces is not None
        piece = next(self._pieces, None)
        if piece == b"":
            self.transport.loseConnection()
        elif piece:
            self.transport.write(piece)
        return bool(piece)

    def pauseProducing(self) -> None:
        self._paused = True

    def resumeProducing(self) -> None:
        self._paused = False
        while not self._paused and self._next():
            pass

    def stopProducing(self) -> None:
        self._paused = True

    def connectionLost(self, reason: Any = None) -> None:
        self._paused = True
        if self._ticking is not None:
            self._ticking.stop()


def http_peer() -> Factory:
    made: Factory = Factory.forProtocol(HttpPeer)
    made.noisy = False
    return made
