# mypy: allow-untyped-calls
"""HTTP for all clients, with treq: exchanges with a deadline and limits, and streams.

This module decides which exchanges count as unreachable, late or invalid. It never interprets a
status. Each client passes a constructor for the errors, so that callers never get an exception of a
library.

Note: features of treq that are switched off. The client follows no redirect and uses no proxy. It
keeps and sends no cookies, because one client serves all tenants. It does not request gzip and
unpacks nothing: a packed object stays as it was uploaded, its size is the size in the header, and a
small answer cannot grow a thousand times before the limit applies. treq's own time-out ends with
the headers, so `with_deadline` limits the whole exchange.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import treq.client
from attrs import field, frozen
from treq.cookies import IndexableCookieJar
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import (
    ConnectError,
    ConnectionClosed,
    DNSLookupError,
    UserError,
)
from twisted.internet.error import TimeoutError as ConnectTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure
from twisted.web.client import (
    RequestGenerationFailed,
    RequestTransmissionFailed,
    ResponseFailed,
    ResponseNeverReceived,
)
from twisted.web.error import SchemeNotSupported
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer, IResponse
from zope.interface import implementer

from svcd.clients.bodies import BodyTooLarge, Bytes, Reader, Upload
from svcd.clients.connections import ForwardingForbidden, HeadersTooLarge
from svcd.clients.places import Places
from svcd.model.redaction import hidden, shown_url
from svcd.model.secret import Secret
from svcd.ports.faults import Fault, PortError
from svcd.ports.machines import Host, RemoteError
from svcd.runtime.tasks import DeadlineExceeded, with_deadline

if TYPE_CHECKING:
    from svcd.clients.ssh import SshRemote

ErrorMaker = Callable[[str, Fault, str, "float | None"], PortError]
"""(service, kind, text, retry_after_s) -> the error to raise."""

Observe = Callable[[str, str, float], None]
"""(service, outcome, seconds). outcome: `2xx` to `5xx`, the kind of a fault, or `cancelled`."""

LEAST_BYTES_S: Final = 10_000.0
"""Lowest rate at which a peer may send a stream, bytes a second."""
_NO_COOKIES: Final = DefaultCookiePolicy(allowed_domains=())
_SAFE = ("GET", "HEAD", "OPTIONS")
_TOKENS = ("x-auth-token", "x-subject-token")
_LEAST_TOKEN = 16
"""Shortest token, in characters, that is removed from answers. Real tokens are longer."""


@frozen(kw_only=True)
class Answer:
    """A whole answer. headers: names in lower case, the last value of each.

    sent: the secrets of the request, which an error message of the peer may repeat.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    sent: Sequence[Secret] = field(default=(), repr=False)

    def header(self, name: str) -> str:
        """The value of `name` (lower case), "" when absent."""
        return self.headers.get(name, "")

    def without_secrets(self, text: str) -> str:
        """`text` of this answer for a message: without the secrets of the request."""
        return hidden(text, self.sent)

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        try:
            try:
                return msgspec.json.decode(self.body)
            except msgspec.DecodeError:
                tree = json.loads(self.body)  # more tolerant, for example of NaN
                # halves of surrogate pairs, which svcd could not write again, become "?"
                return json.loads(json.dumps(tree, ensure_ascii=False).encode("utf-8", "replace"))
        except RecursionError:
            raise ValueError("nested too deeply") from None


@frozen(kw_only=True)
class Stream:
    """An answer whose body is still arriving. size: bytes of the body, None without a length."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    size: int | None
    pieces: AsyncIterator[bytes] = field(repr=False)


class HttpClient:
    """Sends requests by an agent, or through the SSH connection of a machine.

    timeout_s: for a whole exchange, body included; of a stream: for the headers, and for each pause
    between pieces. at_once: most exchanges of one tenant with one service (streams do not count);
    all tenants together have twice as many places, see `svcd.clients.places`. machines: the way for
    requests that name a machine (`through`); None: they go to their URL by `agent`. setting: the
    name of the setting for `max_body_bytes`, for errors. observe: called after each exchange that
    is not a stream, a repeated one counts once.
    """

    def __init__(
        self,
        agent: IAgent,
        clock: IReactorTime,
        error: ErrorMaker,
        *,
        timeout_s: float = 30.0,
        max_body_bytes: int = 16 << 20,
        at_once: int | None = None,
        machines: SshRemote | None = None,
        setting: str = "",
        observe: Observe | None = None,
    ) -> None:
        self._setting = setting
        self._observe = observe
        self._treq = _treq(agent)
        self._clock = clock
        self._error = error
        self._timeout_s = timeout_s
        self._max_body_bytes = max_body_bytes
        self._at_once = at_once
        self._places: dict[str, Places] = {}  # by service
        self._machines = machines

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float | None = None,
        max_body_bytes: int | None = None,
        service: str = "",
        repeatable: bool | None = None,
        secrets: Sequence[Secret] = (),
        through: Host | None = None,
        tenant: str | None = None,
    ) -> Answer:
        """The answer, with any status. Tokens of the request are removed from its body.

        through: the machine to whose port the request goes. tenant: takes one of the places for it;
        None: the request needs none.
        secrets: the secrets in `body` (tokens in `headers` are known).
        repeatable: whether to send the request once more when its connection breaks, for example
        because the peer was closing an idle connection; None: only for a safe method.

        Raises an error of `error`: UNREACHABLE (the peer did not get the request), FORBIDDEN (the
        machine does not forward to the port), TIMEOUT or SERVER_ERROR (the peer may have carried
        it out).
        """
        seconds = self._timeout_s if timeout_s is None else timeout_s
        most = self._max_body_bytes if max_body_bytes is None else max_body_bytes
        tokens = _tokens(headers)
        sent = (*tokens, *secrets)

        async def once() -> Answer:
            opened = self._open(method, url, headers, Bytes.of(body), through)
            async with opened as (response, reader):
                whole = await reader.whole(most)
            for token in tokens:
                if len(token.reveal()) >= _LEAST_TOKEN:
                    whole = whole.replace(token.reveal().encode(), b"***")
            return Answer(status=response.code, headers=_headers(response), body=whole, sent=sent)

        async def exchange() -> Answer:
            try:
                return await with_deadline(self._clock, seconds, f"{method} {url}", once())
            except _BROKEN:
                safe = method in _SAFE if repeatable is None else repeatable
                if not safe:
                    raise
                return await with_deadline(self._clock, seconds, f"{method} {url}", once())

        async with self._place(service, tenant):
            return await self._observed(service, method, url, exchange, sent)

    @asynccontextmanager
    async def _place(self, service: str, tenant: str | None) -> AsyncIterator[None]:
        """A place of the tenant for one exchange with the service."""
        if tenant is None or self._at_once is None:
            yield
            return
        places = self._places.get(service)
        if places is None:
            later = partial(self._clock.callLater, 0.0)
            places = self._places[service] = Places(2 * self._at_once, later)
        exchange = object()
        await places.take(tenant, exchange)
        try:
            yield
        finally:
            places.leave(tenant, exchange)

    async def _observed(
        self,
        service: str,
        method: str,
        url: str,
        exchange: Callable[[], Awaitable[Answer]],
        sent: Sequence[Secret],
    ) -> Answer:
        began, outcome = self._clock.seconds(), "cancelled"
        try:
            answer = await exchange()
            outcome = f"{answer.status // 100}xx"
            return answer
        except _FAULTS as error:
            fault = self._fault(service, method, url, error, sent)
            outcome = fault.kind.value
            raise fault from None
        finally:
            if self._observe is not None:
                self._observe(service, outcome, self._clock.seconds() - began)

    @asynccontextmanager
    async def stream_get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        service: str = "",
        through: Host | None = None,
        most_bytes: int | None = None,
        most_s: float = math.inf,
    ) -> AsyncIterator[Stream]:
        """The answer with its body in pieces, as fast as the caller reads them.

        The peer must send its body at `LEAST_BYTES_S`, apart from one time-out; the time in which
        the caller reads nothing does not count. most_bytes, most_s: limit the body.

        Leaving the block closes the connection. Raises as `request`, also from the pieces.
        """
        seconds = self._timeout_s if timeout_s is None else timeout_s
        what = f"GET {url}"
        async with AsyncExitStack() as stack:
            opening = stack.enter_async_context(self._open("GET", url, headers, None, through))
            try:
                response, reader = await with_deadline(self._clock, seconds, what, opening)
            except _FAULTS as error:
                raise self._fault(service, "GET", url, error) from None

            async def pieces() -> AsyncIterator[bytes]:
                size, waited_s = 0, 0.0
                try:
                    while True:
                        slowest_s = min(most_s, seconds + size / LEAST_BYTES_S)
                        limit_s = min(seconds, slowest_s - waited_s)
                        began = self._clock.seconds()
                        piece = await with_deadline(
                            self._clock, max(0.0, limit_s), what, reader.next_piece()
                        )
                        if piece is None:
                            return
                        waited_s += self._clock.seconds() - began
                        size += len(piece)
                        if most_bytes is not None and size > most_bytes:
                            raise BodyTooLarge(most_bytes)
                        yield piece
                except _FAULTS as error:
                    raise self._fault(service, "GET", url, error) from None

            length = response.length if isinstance(response.length, int) else None
            yield Stream(
                status=response.code, headers=_headers(response), size=length, pieces=pieces()
            )

    async def stream_put(
        self,
        url: str,
        content: AsyncIterator[bytes],
        size: int | None,
        *,
        method: str = "PUT",
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        service: str = "",
        through: Host | None = None,
    ) -> Answer:
        """Send `content` in pieces (chunked when `size` is None).

        The time-out limits each pause in which the peer takes nothing. Raises as `request`, and
        the errors of `content`.
        """
        seconds = self._timeout_s if timeout_s is None else timeout_s
        producer = Upload(content, size)

        async def send() -> Answer:
            opened = self._open(method, url, headers, producer, through)
            async with opened as (response, reader):
                whole = await reader.whole(self._max_body_bytes)
            return Answer(status=response.code, headers=_headers(response), body=whole)

        running = Deferred.fromCoroutine(send())
        late = False

        def check(seen: int) -> None:
            nonlocal late
            if producer.sent == seen and not producer.starved:
                late = True
                running.cancel()
            else:
                timers.append(self._clock.callLater(seconds, check, producer.sent))
                timers.pop(0)

        timers = [self._clock.callLater(seconds, check, -1)]
        try:
            return await running
        except _FAULTS as error:
            if producer.failure is not None:
                raise producer.failure from None
            cause = DeadlineExceeded(f"{method} {url}", seconds) if late else error
            raise self._fault(service, method, url, cause) from None
        finally:
            if timers[-1].active():
                timers[-1].cancel()

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        producer: IBodyProducer | None,
        through: Host | None,
    ) -> AsyncIterator[tuple[IResponse, Reader]]:
        """The head of an answer, and the reader of its body, which ends with the block."""
        async with self._way(through) as way:
            response = await self._send(way, method, url, headers, producer)
            reader = Reader()
            response.deliverBody(reader)
            try:
                yield response, reader
            finally:
                reader.abort()

    @asynccontextmanager
    async def _way(self, through: Host | None) -> AsyncIterator[treq.client.HTTPClient]:
        """The client for one exchange. Raises RemoteError."""
        if through is None or self._machines is None:
            yield self._treq
            return
        async with self._machines.agent(through) as agent:
            yield _treq(agent)

    def _send(
        self,
        way: treq.client.HTTPClient,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        producer: IBodyProducer | None,
    ) -> Deferred[IResponse]:
        try:
            asked: Deferred[Any] = way.request(
                method,
                url,
                headers=Headers({name: [value] for name, value in (headers or {}).items()}),
                data=producer,
                allow_redirects=False,
                unbuffered=True,
                reactor=cast(Any, self._clock),
            )
        except ValueError:
            raise NotSent(f"not a URL: {_shown(url)!r}") from None
        return _cancellable(asked)

    def _fault(
        self,
        service: str,
        method: str,
        url: str,
        error: BaseException,
        sent: Sequence[Secret] = (),
    ) -> PortError:
        """The error for a library's exception. Raises CancelledError when the caller cancelled."""
        if isinstance(error, CancelledError):
            raise error
        where = f"{method} {_shown(url)}"
        if isinstance(error, DeadlineExceeded):
            text = f"{where} had no complete answer within {error.args[1]:g} s"
            return self._error(service, Fault.TIMEOUT, text, None)
        if isinstance(error, BodyTooLarge | HeadersTooLarge):
            part = f" ({self._setting})" if self._setting else ""
            if isinstance(error, HeadersTooLarge):
                part = " of headers"
            text = f"{where} was answered with more than {error.args[0]} bytes{part}"
            return self._error(service, Fault.SERVER_ERROR, text, None)
        if isinstance(error, _NOT_SENT):
            text = f"{where}: {shown_url(hidden(_why(error), sent))}"
            if isinstance(error, RemoteError):  # the machine is the reason, not the service on it
                text = f"{error.text.rstrip('.')} (for {where})"
            if isinstance(error, ForwardingForbidden):
                return self._error(service, Fault.FORBIDDEN, text, None)
            return self._error(service, Fault.UNREACHABLE, text, None)
        text = f"{where} broke off: {shown_url(hidden(_why(error), sent))}"
        return self._error(service, Fault.SERVER_ERROR, text, None)


class NotSent(Exception):
    """The request was not sent. args[0]: the reason."""


_NOT_SENT = (
    ConnectError,
    ConnectTimeout,
    DNSLookupError,
    NotSent,
    RemoteError,
    SchemeNotSupported,
)
_BROKEN = (ResponseNeverReceived, RequestTransmissionFailed, ConnectionClosed)
_FAULTS = (
    DeadlineExceeded,
    BodyTooLarge,
    HeadersTooLarge,
    NotSent,
    RemoteError,
    ConnectError,
    DNSLookupError,
    ConnectionClosed,
    UserError,
    RequestGenerationFailed,
    RequestTransmissionFailed,
    ResponseFailed,
    PotentialDataLoss,
    SchemeNotSupported,
    CancelledError,
)


def kind_of(status: int) -> Fault:
    """The kind of a refusal by its status alone; a service may know better by its body."""
    match status:
        case 401:
            return Fault.UNAUTHORIZED
        case 403:
            return Fault.FORBIDDEN
        case 404:
            return Fault.NOT_FOUND
        case 408 | 429:
            return Fault.BUSY
    return Fault.SERVER_ERROR if status >= 500 or status < 400 else Fault.REFUSED


def _cancellable(asked: Deferred[IResponse]) -> Deferred[IResponse]:
    """`asked`, which fails with CancelledError when it is cancelled.

    Twisted's resolver turns a cancel into "no such host", which the caller would believe.
    """

    def stop(waiting: Deferred[IResponse]) -> None:
        waiting.errback(CancelledError())
        asked.cancel()

    def end(result: IResponse | Failure) -> None:
        if not waiting.called:
            waiting.callback(result)

    waiting: Deferred[IResponse] = Deferred(stop)
    asked.addBoth(end)
    return waiting


def _why(error: BaseException) -> str:
    for reason in getattr(error, "reasons", None) or ():
        if isinstance(reason, Failure) and reason.value is not None:
            return str(reason.value).rstrip(".") or type(reason.value).__name__
    return str(error).rstrip(".") or type(error).__name__


def _shown(url: str) -> str:
    """`url` for a message: without its query, which may be long, and without its secrets."""
    return shown_url(url.partition("?")[0])


def _tokens(headers: Mapping[str, str] | None) -> Sequence[Secret]:
    """The tokens in `headers`."""
    return [Secret(v) for name, v in (headers or {}).items() if name.lower() in _TOKENS and v]


def _headers(response: IResponse) -> Mapping[str, str]:
    return {
        name.decode("latin-1").lower(): values[-1].decode("utf-8", "replace")
        for name, values in response.headers.getAllRawHeaders()
    }


def _treq(agent: IAgent) -> treq.client.HTTPClient:
    """A client that keeps and sends no cookies."""
    return treq.client.HTTPClient(_AsStored(agent), IndexableCookieJar(_NO_COOKIES))


@implementer(IAgent)
class _AsStored:
    """An agent below treq. It removes `Accept-Encoding`, and the header that makes treq unpack."""

    def __init__(self, agent: IAgent) -> None:
        self._agent = agent

    def request(
        self,
        method: bytes,
        uri: bytes,
        headers: Headers | None = None,
        bodyProducer: IBodyProducer | None = None,
    ) -> Deferred[IResponse]:
        """See IAgent."""
        if headers is not None:
            headers.removeHeader(b"accept-encoding")
        asked: Deferred[IResponse] = self._agent.request(method, uri, headers, bodyProducer)
        return asked.addCallback(_packed)


def _packed(response: IResponse) -> IResponse:
    response.headers.removeHeader(b"content-encoding")
    return response
