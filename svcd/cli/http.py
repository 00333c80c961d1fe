"""Sends the HTTP requests of a command by `requests`: to svcd, the identity service, a cloud.

`Http.send` returns an answer of any status. Every failure below HTTP is a CommandError with the
code UNREACHABLE, and no text of it contains a secret of the URL. Requests to this machine never use
a proxy, and no request follows a redirection, which would carry the token to another host.
Certificates are always verified, by the authorities of the system and of `--cacert`.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, BinaryIO, Final, NamedTuple
from urllib.parse import urlsplit

import requests
import urllib3.exceptions

from svcd.cli.deadlines import WHOLE_S, TimedAdapter, without_end
from svcd.cli.exits import UNREACHABLE, USAGE, CommandError
from svcd.model.loopback import is_loopback

READ_S: Final = 30.0
"""Time for connecting, and for each read of an answer."""
_MOST_BYTES: Final = 64 * 2**20
"""Most bytes of an answer."""
MOST_QUOTED: Final = 4096
"""Bytes or characters of an answer that a message may quote."""
_PIECE: Final = 1 << 16


_OF_PROXY: Final = (
    urllib3.exceptions.ProxyError,
    urllib3.exceptions.ProxySchemeUnknown,
    requests.exceptions.InvalidProxyURL,
    requests.exceptions.InvalidSchema,  # a SOCKS proxy, for which `requests` needs another package
)
"""Faults of a proxy; the request has not reached the peer."""


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


class Lost(CommandError):
    """The peer did not answer. sent: whether it may have got the request. refused: its port."""

    def __init__(self, text: str, sent: bool, refused: bool = False) -> None:
        super().__init__(text, UNREACHABLE)
        self.sent = sent
        self.refused = refused


class Http:
    """The HTTP of one command; its connections are kept. cacert: a file of further authorities.

    Not safe for threads. whole_s: time for a whole answer.
    """

    def __init__(self, cacert: str = "", whole_s: float = WHOLE_S) -> None:
        self._cacert = cacert
        self._whole_s = whole_s

    @cached_property
    def session(self) -> requests.Session:
        """The session of `requests`, for libraries that send by one."""
        session = _Session()
        session.mount("https://", _Verifying(self._cacert, self._whole_s))
        session.mount("http://", TimedAdapter(self._whole_s))
        return session

    def close(self) -> None:
        """Close all connections. Idempotent."""
        self.session.close()

    def send(
        self,
        method: str,
        url: str,
        body: bytes | BinaryIO | None = None,
        headers: Mapping[str, str] | None = None,
        read_s: float = READ_S,
    ) -> Answer:
        """An answer of any status. read_s: time for connecting, and for each read.

        Raises Lost when the peer cannot be reached or breaks off.
        """
        with self._begun(method, url, body, headers or {}, read_s) as response:
            return Answer(response.status_code, _names(response), _whole(response))

    def stream(
        self, url: str, headers: Mapping[str, str], silence_s: float
    ) -> tuple[Answer, Iterator[bytes]]:
        """The answer to a GET, and the pieces of its body as they come; none when it is no success.

        silence_s: the longest time without a byte. The pieces raise Lost when the peer breaks off.
        """
        response = self._begun("GET", url, None, headers, silence_s)
        if response.status_code != 200:
            with response:
                return Answer(response.status_code, _names(response), _whole(response)), iter(())

        without_end(response.raw.connection)

        def pieces() -> Iterator[bytes]:
            with response:
                yield from _pieces(response)

        return Answer(200, _names(response), b""), pieces()

    def _begun(
        self,
        method: str,
        url: str,
        body: bytes | BinaryIO | None,
        headers: Mapping[str, str],
        read_s: float,
    ) -> requests.Response:
        """The head of the answer. Raises CommandError."""
        check_url(url)
        _check_headers(headers)
        try:
            return self.session.request(
                method,
                url,
                data=body,
                headers=dict(headers),
                timeout=(read_s, read_s),
                allow_redirects=False,
                stream=True,
            )
        except (OSError, ValueError) as error:  # the errors of requests are OSErrors
            raise lost(url, error, read_s) from None


class _Session(requests.Session):
    """Takes proxies from the environment, and neither .netrc nor authorities.

    Every answer has a bound, also those of libraries that send by a session.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.headers.clear()
        self.headers["User-Agent"] = "svcd"

    def merge_environment_settings(self, url: Any, proxies: Any, *more: Any) -> Any:
        """See requests.Session."""
        if not is_loopback(urlsplit(url).hostname or ""):
            proxies = requests.utils.get_environ_proxies(url)
        return super().merge_environment_settings(url, proxies, *more)

    def send(self, request: requests.PreparedRequest, **given: Any) -> requests.Response:
        """See requests.Session. Raises CommandError for an answer that is too large."""
        timeout = given.get("timeout") or READ_S
        response = super().send(request, **{**given, "timeout": timeout, "stream": True})
        if not given.get("stream"):
            response.raw = io.BytesIO(_whole(response))
        return response


class _Verifying(TimedAdapter):
    """Verifies by the authorities of the system and of a file, not by those of `requests`."""

    def __init__(self, cacert: str, whole_s: float) -> None:
        self._cacert = cacert
        super().__init__(whole_s)

    @cached_property
    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._cacert:
            try:
                context.load_verify_locations(self._cacert)
            except (OSError, ssl.SSLError) as error:
                text = f"--cacert {self._cacert} cannot be used: {error.strerror or error}"
                raise CommandError(f"{text}; name a file of PEM certificates", USAGE) from None
        return context

    def build_connection_pool_key_attributes(self, *given: Any, **more: Any) -> Any:
        """See HTTPAdapter."""
        host, _ = super().build_connection_pool_key_attributes(*given, **more)
        return host, {"ssl_context": self._context}

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Keep the authorities of the context. See HTTPAdapter."""


# ---- requests -----------------------------------------------------------------------------------


def check_url(url: str) -> None:
    """Raises CommandError for a text that is no http or https URL."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        parts.port  # noqa: B018 - reading the port checks it
    except ValueError:
        known = False
    if not known or any(letter <= " " or letter == "\x7f" for letter in url):
        where = shown(url)[:200]
        text = f"{where!r} is no URL: write http://HOST:PORT or https://HOST:PORT"
        raise CommandError(text, USAGE)


def _check_headers(headers: Mapping[str, str]) -> None:
    """Raises CommandError; the fault that a library raises would quote the token."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            where = "--token or OS_TOKEN" if name == "X-Auth-Token" else "its value"
            text = f"the header {name} has a line end or another character that cannot be sent"
            raise CommandError(f"{text}: check {where}", USAGE)


# ---- answers ------------------------------------------------------------------------------------


def _whole(response: requests.Response) -> bytes:
    """The whole body. Raises CommandError when it is too large, or ends too early."""
    body = bytearray()
    for piece in _pieces(response):
        body += piece
        if len(body) > _MOST_BYTES:
            text = f"the answer of {shown(response.url)} is larger than {_MOST_BYTES >> 20} MiB"
            raise CommandError(f"{text}: no such service sends so much", UNREACHABLE)
    return bytes(body)


def _pieces(response: requests.Response) -> Iterator[bytes]:
    """The body in pieces as they come. Raises Lost."""
    try:
        while piece := response.raw.read1(_PIECE):
            yield piece
    except (OSError, ValueError, urllib3.exceptions.HTTPError) as error:
        cause = _cause(error)
        said: object = cause
        if isinstance(cause, urllib3.exceptions.IncompleteRead):
            said = f"{cause.expected} bytes are missing"
        raise Lost(f"the answer ended too early: {said}", sent=True) from None


def _names(response: requests.Response) -> Mapping[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def shown(url: str) -> str:
    """A URL in a message: without password and query."""
    from svcd.model.redaction import shown_url

    return shown_url(url.partition("?")[0])


# ---- failures below HTTP ------------------------------------------------------------------------


def lost(url: str, error: Exception, read_s: float = READ_S) -> Lost:
    """The failure that an error of `requests`, or of a library above it, stands for."""
    from svcd.model.redaction import hidden, of_url

    cause = _cause(error)
    said = str(getattr(cause, "strerror", None) or cause) or type(cause).__name__
    if isinstance(cause, (TimeoutError, urllib3.exceptions.TimeoutError)):
        said = f"no answer within {read_s:.0f} s"
    elif type(cause) is http.client.BadStatusLine:
        said = f"its answer is not HTTP but {str(cause)[:80].rstrip()!r}"
    elif isinstance(cause, ssl.SSLCertVerificationError):
        said = str(cause)
        if "issuer certificate" in said or "self-signed" in said:
            said = f"{said}; name the file of its authority with --cacert FILE"
    if any(isinstance(link, _OF_PROXY) for link in _chain(error)):
        variable, proxy = _proxy(url)
        # without the password, also in a malformed URL
        place = proxy.rpartition("@")[2].rpartition("://")[2]
        text = f"the proxy {place} that {variable} names does not lead to {shown(url)}"
        return Lost(f"{text}: {hidden(said, of_url(proxy))}", _is_sent(error))
    text = f"{shown(url)} cannot be reached: {hidden(said, of_url(url))}"
    return Lost(text, _is_sent(error), isinstance(cause, ConnectionRefusedError))


def _proxy(url: str) -> tuple[str, str]:
    """The variable that names the proxy for a URL, and the proxy."""
    names = (f"{urlsplit(url).scheme}_proxy", "all_proxy")
    spelled = (form for name in names for form in (name, name.upper()))
    variable = next((form for form in spelled if os.environ.get(form)), "")
    return variable, os.environ.get(variable, "")


def _is_sent(error: Exception) -> bool:
    """Whether the peer may have got the request of this error."""
    unsent = (
        urllib3.exceptions.NewConnectionError,
        urllib3.exceptions.ConnectTimeoutError,
        ssl.SSLCertVerificationError,
        *_OF_PROXY,
    )
    return not any(isinstance(link, unsent) for link in _chain(error))


def _cause(error: BaseException) -> BaseException:
    """The error of the system below those of the libraries."""
    *_, cause = _chain(error)
    return cause


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes, the deepest last."""
    below: BaseException | None = error
    while below is not None:
        yield below
        within = (getattr(below, "reason", None), *below.args, below.__cause__)
        below = next((link for link in within if isinstance(link, BaseException)), None)
