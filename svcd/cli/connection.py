"""Sends the HTTP requests of a command: kept-alive connections, proxies, TLS, time limits.

`Connections.send` returns an answer of any status. Every failure below HTTP is a CommandError with
the code UNREACHABLE, and no text of it contains a secret of the URL. Requests to this machine never
use a proxy. Certificates are always verified.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from svcd.cli.exits import UNREACHABLE, USAGE, CommandError
from svcd.model.loopback import is_loopback

if TYPE_CHECKING:
    import ssl

READ_S: Final = 30.0
"""Time for connecting, and for each read of an answer."""
_WHOLE_S: Final = 300.0
"""Time for a whole answer."""
_MOST_BYTES: Final = 64 * 2**20
"""Bytes of an answer that are read."""
MOST_QUOTED: Final = 4096
"""Bytes or characters of an answer that a message may quote."""
_PIECE: Final = 1 << 16
_REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})


class Answer(NamedTuple):
    """An HTTP answer. headers: names in lower case. sent: secrets that must not be printed."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    sent: Sequence[str] = ()

    def __repr__(self) -> str:
        return f"Answer(status={self.status})"

    @property
    def json(self) -> Any:
        """The body as JSON. Raises CommandError when it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            text = f"the answer is not JSON but {self.excerpt(80)!r}"
            raise CommandError(text, UNREACHABLE) from None

    def excerpt(self, most: int) -> str:
        """The first characters of the body, without secrets."""
        from svcd.model.redaction import hidden

        text = self.body[:MOST_QUOTED].decode("utf-8", "replace")
        return hidden(text, self.sent)[:most]


Send = Callable[[str, str, bytes | None, Mapping[str, str]], Answer]
"""Sends method, URL, body, headers; returns an answer of any status. Raises CommandError."""


class Lost(CommandError):
    """The peer did not answer. sent: whether it may have got the request. refused: its port."""

    def __init__(self, text: str, sent: bool, refused: bool = False) -> None:
        super().__init__(text, UNREACHABLE)
        self.sent = sent
        self.refused = refused


def send(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
    """Send one request over a connection of its own. Raises CommandError."""
    connections = Connections()
    try:
        return connections.send(method, url, body, headers)
    finally:
        connections.close()


class Connections:
    """The connections of one command, one for each origin. cacert: a file of further authorities.

    read_s: time for connecting, and for each read. `send` is a `Send`. Not safe for threads.
    """

    def __init__(self, cacert: str = "", read_s: float = READ_S) -> None:
        self._cacert = cacert
        self._read_s = read_s
        self._open: dict[str, http.client.HTTPConnection] = {}
        self._tls: ssl.SSLContext | None = None

    def close(self) -> None:
        """Close all connections. Idempotent."""
        for each in self._open.values():
            each.close()
        self._open.clear()

    def send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """See `Send`. Raises Lost when the peer cannot be reached or breaks off."""
        parts = _parts(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if method not in _REPEATABLE and origin in self._open:
            self._open.pop(origin).close()  # the peer may have closed it: such a request is lost
        while True:
            kept = self._open.pop(origin, None)
            try:
                connection, response = self._begin(kept, parts, method, url, body, headers)
                answer = _read(response)
            except Lost:
                if kept is None:
                    raise
                continue  # the peer had closed the kept connection
            if response.will_close:
                connection.close()
            else:
                self._open[origin] = connection
            return answer

    def stream(
        self, method: str, url: str, headers: Mapping[str, str], silence_s: float
    ) -> tuple[Answer, Iterator[bytes]]:
        """The head of an answer and its lines as they come; [] of lines when it is no success.

        silence_s: the longest time without a byte. The lines raise Lost when the peer breaks off,
        also in the middle of a body of known length.
        """
        parts = _parts(url)
        connection, response = self._begin(None, parts, method, url, None, headers)
        if response.status != 200:
            try:
                return _read(response), iter(())
            finally:
                connection.close()
        if connection.sock is not None:
            connection.sock.settimeout(silence_s)
        head = Answer(status=200, headers=_names(response), body=b"")

        def lines() -> Iterator[bytes]:
            try:
                while line := response.readline(_PIECE):
                    yield line
                if response.length:  # readline does not refuse a body that is cut off
                    raise _cut_off(response.length)
            except (OSError, ValueError, http.client.HTTPException) as error:
                raise _lost(url, error, sent=True) from None
            finally:
                connection.close()

        return head, lines()

    def _begin(
        self,
        kept: http.client.HTTPConnection | None,
        parts: SplitResult,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send the request and read the head of the answer. Raises Lost."""
        _refuse_unsendable(headers)
        sent = False
        connection = kept
        try:
            more: Mapping[str, str] = {}
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            if connection is None:
                connection, more, whole = self._connected(parts)
                target = url if whole else target
            sent = True
            connection.request(method, target, body, {**headers, **more})
            return connection, connection.getresponse()
        except (OSError, ValueError, http.client.HTTPException) as error:
            if connection is not None:
                connection.close()
            raise _lost(url, error, sent, self._read_s) from None
        except BaseException:
            if connection is not None:
                connection.close()
            raise

    def _connected(
        self, parts: SplitResult
    ) -> tuple[http.client.HTTPConnection, Mapping[str, str], bool]:
        """A new connection; headers for a proxy; whether the proxy wants the whole URL."""
        host, secure = parts.hostname or "", parts.scheme == "https"
        proxy = _proxy(parts)
        near = proxy or parts
        port = near.port or (443 if near.scheme == "https" else 80)
        to = near.hostname or ""
        credentials = _basic(proxy) if proxy else {}
        if secure:
            made: http.client.HTTPConnection = http.client.HTTPSConnection(
                to, port, timeout=self._read_s, context=self._context()
            )
            if proxy:
                made.set_tunnel(host, parts.port or 443, dict(credentials))
        else:
            made = http.client.HTTPConnection(to, port, timeout=self._read_s)
        made.connect()
        if isinstance(made.sock, socket.socket):
            made.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made, {} if secure else credentials, bool(proxy) and not secure

    def _context(self) -> ssl.SSLContext:
        import ssl

        if self._tls is None:
            self._tls = ssl.create_default_context()
            if self._cacert:
                try:
                    self._tls.load_verify_locations(self._cacert)
                except (OSError, ssl.SSLError) as error:
                    text = f"--cacert {self._cacert} cannot be used: {error.strerror or error}"
                    raise CommandError(f"{text}; name a file of PEM certificates", USAGE) from None
        return self._tls


def _refuse_unsendable(headers: Mapping[str, str]) -> None:
    """Raises CommandError; the fault that http.client raises would quote the token."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            where = "--token or OS_TOKEN" if name == "X-Auth-Token" else "its value"
            text = f"the header {name} has a line end or another character that cannot be sent"
            raise CommandError(f"{text}: check {where}", USAGE)


def _parts(url: str) -> SplitResult:
    """The parts of an http or https URL. Raises CommandError."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        parts.port  # noqa: B018 - reading the port checks it
    except ValueError:
        known = False
    if not known or any(each <= " " or each == "\x7f" for each in url):
        where = _shown(url)[:200]
        text = f"{where!r} is no URL: write http://HOST:PORT or https://HOST:PORT"
        raise CommandError(text, USAGE)
    return parts


def _read(response: http.client.HTTPResponse) -> Answer:
    """The whole answer. Raises CommandError when it is too large or too slow."""
    pieces: list[bytes] = []
    size, end = 0, time.monotonic() + _WHOLE_S
    try:
        while piece := response.read1(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > _MOST_BYTES:
                text = f"the answer is larger than {_MOST_BYTES >> 20} MiB: no svcd sends so much"
                raise CommandError(text, UNREACHABLE)
            if time.monotonic() > end:
                raise Lost(f"the answer took longer than {_WHOLE_S:.0f} s", sent=True)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Lost(f"the answer ended too early: {error}", sent=True) from None
    if response.length:
        raise _cut_off(response.length)
    response.close()  # the connection stays open for the next request
    return Answer(status=response.status, headers=_names(response), body=b"".join(pieces))


def _cut_off(missing: int) -> Lost:
    return Lost(f"the answer ended too early: {missing} bytes are missing", sent=True)


def _names(response: http.client.HTTPResponse) -> Mapping[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def _shown(url: str) -> str:
    from svcd.model.redaction import shown_url

    return shown_url(url.partition("?")[0])


def _lost(url: str, error: Exception, sent: bool, read_s: float = READ_S) -> Lost:
    from svcd.model.redaction import hidden, of_url

    if isinstance(error, TimeoutError):
        said = f"no answer within {read_s:.0f} s"
    elif type(error) is http.client.BadStatusLine:
        said = f"its answer is not HTTP but {str(error)[:80].rstrip()!r}"
    else:
        said = str(getattr(error, "strerror", None) or error) or type(error).__name__
    if "issuer certificate" in str(error) or "self-signed" in str(error):
        said = f"{error}; name the file of its authority with --cacert FILE"
    text = f"{_shown(url)} cannot be reached: {hidden(said, of_url(url))}"
    return Lost(text, sent, isinstance(error, ConnectionRefusedError))


def _proxy(parts: SplitResult) -> SplitResult | None:
    """The proxy that the environment names for `parts`, if any."""
    host = parts.hostname or ""
    if is_loopback(host) or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass

    url = getproxies().get(parts.scheme)
    if not url or proxy_bypass(f"{host}:{parts.port}" if parts.port else host):
        return None
    return urlsplit(url if "://" in url else f"http://{url}")


def _basic(proxy: SplitResult) -> Mapping[str, str]:
    if proxy.username is None:
        return {}
    import base64

    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
