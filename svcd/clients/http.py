# mypy: allow-untyped-calls
"""HTTP for all clients, with treq: exchanges with a deadline and limits, and streams.

It never interprets a status. Each client passes a constructor for the errors, so that callers never
get an exception of a library, see `svcd.clients.http_faults`.

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
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer, IResponse
from zope.interface import implementer

from svcd.clients.bodies import BodyTooLarge, Bytes, Reader, Upload
from svcd.clients.http_faults import BROKEN, FAULTS, NotSent, fault_of
from svcd.model.redaction import hidden, shown_url
from svcd.model.secret import Secret
from svcd.ports.faults import Fault, PortError
from svcd.ports.machines import Host
from svcd.runtime.places import Places
from svcd.runtime.tasks import DeadlineExceeded, apart, with_deadline

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


@frozen(kw_only=True)
class _Call:
    """One request. sent: the secrets of it, tokens in `headers` included."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    service: str
    through: Host | None
    sent: Sequence[Secret] = field(default=(), repr=False)

    @property
    def what(self) -> str:
        """The method and the whole URL."""
        return f"{self.method} {self.url}"


class HttpClient:
    """Sends requests by an agent, or through the SSH connection of a machine.

    timeout_s: for a whole exchange, body included; of a stream: for the headers, and for each pause
    between pieces. at_once: most exchanges of one tenant with one service (streams do not count);
    all tenants together have twice as many places, see `svcd.runtime.places`. machines: the way for
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
        call = _Call(
            method=method,
            url=url,
            headers=headers or {},
            service=service,
            through=through,
            sent=(*tokens, *secrets),
        )

        async def once() -> Answer:
            async with self._open(call, Bytes.of(body)) as (response, reader):
                whole = await reader.whole(most)
            for token in tokens:
                if len(token.reveal()) >= _LEAST_TOKEN:
                    whole = whole.replace(token.reveal().encode(), b"***")
            return _answer(call, response, whole)

        async def exchange() -> Answer:
            try:
                return await with_deadline(self._clock, seconds, call.what, once())
            except BROKEN:
                safe = method in _SAFE if repeatable is None else repeatable
                if not safe:
                    raise
                return await with_deadline(self._clock, seconds, call.what, once())

        async with self._place(service, tenant):
            return await self._observed(call, exchange)

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
        async with places.place((tenant,), exchange):
            yield

    async def _observed(self, call: _Call, exchange: Callable[[], Awaitable[Answer]]) -> Answer:
        began, outcome = self._clock.seconds(), "cancelled"
        try:
            answer = await exchange()
            outcome = f"{answer.status // 100}xx"
            return answer
        except FAULTS as error:
            fault = self._fault(call, error)
            outcome = fault.kind.value
            raise fault from None
        finally:
            if self._observe is not None:
                self._observe(call.service, outcome, self._clock.seconds() - began)

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
        call = _Call(method="GET", url=url, headers=headers or {}, service=service, through=through)
        async with AsyncExitStack() as stack:
            opening = stack.enter_async_context(self._open(call, None))
            try:
                response, reader = await with_deadline(self._clock, seconds, call.what, opening)
            except FAULTS as error:
                raise self._fault(call, error) from None

            async def pieces() -> AsyncIterator[bytes]:
                size, waited_s = 0, 0.0
                try:
                    while True:
                        slowest_s = min(most_s, seconds + size / LEAST_BYTES_S)
                        limit_s = min(seconds, slowest_s - waited_s)
                        began = self._clock.seconds()
                        piece = await with_deadline(
                            self._clock, max(0.0, limit_s), call.what, reader.next_piece()
                        )
                        if piece is None:
                            return
                        waited_s += self._clock.seconds() - began
                        size += len(piece)
                        if most_bytes is not None and size > most_bytes:
                            raise BodyTooLarge(most_bytes)
                        yield piece
                except FAULTS as error:
                    raise self._fault(call, error) from None

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
        call = _Call(method="PUT", url=url, headers=headers or {}, service=service, through=through)
        producer = Upload(content, size)

        async def send() -> Answer:
            async with self._open(call, producer) as (response, reader):
                whole = await reader.whole(self._max_body_bytes)
            return _answer(call, response, whole)

        running = Deferred.fromCoroutine(send())
        seen, late = -1, False

        def check() -> None:
            nonlocal seen, late
            if producer.sent == seen and not producer.starved:
                late = True
                running.cancel()
            seen = producer.sent

        checks = LoopingCall(check)
        checks.clock = self._clock
        checks.start(seconds, now=False)
        try:
            return await running
        except FAULTS as error:
            if producer.failure is not None:
                raise producer.failure from None
            cause = DeadlineExceeded(call.what, seconds) if late else error
            raise self._fault(call, cause) from None
        finally:
            checks.stop()

    @asynccontextmanager
    async def _open(
        self, call: _Call, producer: IBodyProducer | None
    ) -> AsyncIterator[tuple[IResponse, Reader]]:
        """The head of an answer, and the reader of its body, which ends with the block."""
        async with self._way(call.through) as way:
            response = await self._send(way, call, producer)
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
        self, way: treq.client.HTTPClient, call: _Call, producer: IBodyProducer | None
    ) -> Deferred[IResponse]:
        try:
            asked: Deferred[Any] = way.request(
                call.method,
                call.url,
                headers=Headers({name: [value] for name, value in call.headers.items()}),
                data=producer,
                allow_redirects=False,
                unbuffered=True,
                reactor=cast(Any, self._clock),
            )
        except ValueError:
            raise NotSent(f"not a URL: {_shown(call.url)!r}") from None
        return _cancellable(asked)

    def _fault(self, call: _Call, error: BaseException) -> PortError:
        """The error for a library's exception. Raises CancelledError when the caller cancelled."""
        if isinstance(error, CancelledError):
            raise error
        where = f"{call.method} {_shown(call.url)}"
        kind, text = fault_of(where, error, call.sent, self._setting)
        return self._error(call.service, kind, text, None)


def _cancellable(asked: Deferred[IResponse]) -> Deferred[IResponse]:
    """`asked`, which fails with CancelledError when it is cancelled.

    Twisted's resolver turns a cancel into "no such host", which the caller would believe.
    """

    def stop(waiting: Deferred[IResponse]) -> None:
        waiting.errback(CancelledError())
        asked.cancel()

    return apart(asked, stop)


def _shown(url: str) -> str:
    """`url` for a message: without its query, which may be long, and without its secrets."""
    return shown_url(url.partition("?")[0])


def _tokens(headers: Mapping[str, str] | None) -> Sequence[Secret]:
    """The tokens in `headers`."""
    return [Secret(v) for name, v in (headers or {}).items() if name.lower() in _TOKENS and v]


def _answer(call: _Call, response: IResponse, body: bytes) -> Answer:
    return Answer(status=response.code, headers=_headers(response), body=body, sent=call.sent)


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
