# mypy: allow-untyped-calls
"""The base of the embedded services: plain classes, each with one table of Klein routes.

Every error, also for unknown paths and methods, has the envelope of the service that answers it.

Note: why `except Exception` is here. This is the boundary of a server, as `svcd.resources._rest` is
for the API. A bug of a handler becomes a 500 of its service and a failure in the log; without an
answer the client would wait until its time-out.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cache
from typing import IO, Any, ClassVar, TypeVar
from urllib.parse import parse_qs

import msgspec
from attrs import field, frozen
from klein import Klein
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPullProducer, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import Request
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from svcd.embedded.cloud.records import Token
from svcd.embedded.cloud.state import CloudJournal
from svcd.embedded.faults import GARBAGE, Effect, FaultRule, Faults
from svcd.web.routing import Endpoint, Routed, endpoints

log = Logger()

T = TypeVar("T")


class Refusal(Exception):
    """The service refuses the request. kind: Neutron's `type`; headers: extra ones."""

    def __init__(
        self, status: int, message: str, kind: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.headers = headers or {}


@frozen(kw_only=True)
class Reply:
    """An answer. body: a JSON value, or unchanged bytes; pieces: streamed instead of `body`."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(factory=dict)
    content_type: str = "application/json"
    pieces: Generator[bytes] | None = None

    def payload(self) -> bytes:
        """The body's bytes."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else msgspec.json.encode(self.body)


class Call:
    """One request as a service sees it. token: the caller's, at services that ask for one."""

    __slots__ = ("_query", "request", "token")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.token: Token | None = None
        self._query: dict[str, list[str]] | None = None

    @property
    def method(self) -> str:
        return str(self.request.method.decode("latin-1"))

    @property
    def content(self) -> IO[bytes]:
        """The body as a file."""
        content: IO[bytes] = self.request.content  # type: ignore[assignment]
        return content

    def header(self, name: str) -> str:
        """A request header, "" when absent."""
        value = self.request.getHeader(name)
        return value if isinstance(value, str) else ""

    def headers(self) -> Iterator[tuple[str, str]]:
        """All request headers, names in lower case."""
        for name, values in self.request.requestHeaders.getAllRawHeaders():
            yield name.decode("latin-1").lower(), values[-1].decode("utf-8", "replace")

    def set_answer_header(self, name: str, value: str) -> None:
        """Set a header of the answer, also of an error."""
        self.request.setHeader(name, value)

    @property
    def query(self) -> dict[str, list[str]]:
        """Query parameters; those without a value have ""."""
        if self._query is None:
            text = self.request.uri.partition(b"?")[2].decode("utf-8", "replace")
            self._query = parse_qs(text, keep_blank_values=True) if text else {}
        return self._query

    def one(self, name: str, default: str = "") -> str:
        """A query parameter's last value."""
        values = self.query.get(name)
        return values[-1] if values else default

    def read(self, kind: type[T], wrong: str = "Invalid input for field/attribute") -> T:
        """The JSON body as `kind`. Raises Refusal 400."""
        try:
            return msgspec.json.decode(self.content.read(), type=kind)
        except msgspec.ValidationError as error:
            raise Refusal(400, f"{wrong}: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Refusal(400, "Malformed request body") from None

    def read_in(self, key: str, kind: type[T]) -> T:
        """The `kind` in the JSON body `{key: …}`. Raises Refusal 400."""
        body: T = getattr(self.read(_envelope(key, kind)), key)  # type: ignore[arg-type]
        return body


@cache
def _envelope(key: str, kind: type[Any]) -> type[msgspec.Struct]:
    return msgspec.defstruct("Body", [(key, kind)])


class Service(ABC):
    """Base of the embedded services.

    app: the routes, handlers are `def handler(self, call: Call, …) -> Reply`, or async.
    where: name in fault rules and counters.
    """

    app: ClassVar[Klein]
    where: ClassVar[str]

    def where_of(self, segments: Sequence[bytes]) -> str:
        """`where` for a path."""
        return self.where

    def segments(self, path: Sequence[bytes]) -> list[bytes]:
        """The segments of a path, without slashes at the end."""
        segments = list(path)
        while segments and not segments[-1]:
            segments.pop()
        return segments

    def counted(self, method: str, pattern: str) -> str:
        """The name of a call in the counters."""
        return f"{self.where} {method} {pattern}"

    @abstractmethod
    def authorize(self, call: Call, segments: list[str]) -> None:
        """Authenticate the caller, or raise Refusal."""

    @abstractmethod
    def envelope(self, refusal: Refusal) -> Reply:
        """The error body of this service."""

    def refused(self, call: Call, error: Exception) -> Reply | None:
        """The answer for an error of a handler; None for a bug."""
        return self.envelope(error) if isinstance(error, Refusal) else None


class ServiceResource(Routed[Endpoint]):
    """Serves a service: plays faults, runs handlers, and makes answers of all they return or raise.

    calls: counts the requests by route. journal: a change is acknowledged only when it is on the
    disk; the changes of a handler are one transaction, up to its first wait.
    """

    endpoints_of = staticmethod(endpoints)

    def __init__(
        self,
        service: Service,
        clock: IReactorTime,
        faults: Faults,
        calls: Counter[str],
        journal: CloudJournal,
    ) -> None:
        super().__init__(service)
        self._service = service
        self._clock = clock
        self._faults = faults
        self._calls = calls
        self._journal = journal

    def render(self, request: Any) -> Any:
        """See IResource."""
        segments = self._service.segments(request.postpath or ())
        rule = self._faults.match(
            self._service.where_of(segments),
            request.method.decode("latin-1"),
            request.uri.decode("latin-1"),
        )
        if rule is None:
            self._answer(request, segments)
        else:
            self._play(rule, request, segments)
        return NOT_DONE_YET

    def _begin(self, call: Call, segments: list[bytes]) -> Reply | Deferred[Reply]:
        """Run the handler. Raises Refusal, and all that the handler raises."""
        self._service.authorize(call, [s.decode("utf-8", "replace") for s in segments])
        hit = self.tree.find(segments or [b""], call.request.method)
        if hit is None:
            raise Refusal(404, "The resource could not be found.")
        leaf, values = hit
        endpoint = leaf.methods.get(call.request.method)
        if endpoint is None:
            known = ", ".join(sorted(m.decode() for m in leaf.methods))
            text = "The method is not allowed for this resource."
            raise Refusal(405, text, headers={"Allow": known})
        self._calls[self._service.counted(call.method, endpoint.pattern)] += 1
        texts = [value.decode("utf-8", "replace") for value in values]
        with self._journal.transaction():
            done: Reply | Deferred[Reply] = endpoint.run(
                call, **dict(zip(endpoint.names, texts, strict=True))
            )
        return done

    def _answer(self, request: Request, segments: list[bytes]) -> None:
        gone: list[object] = []
        request.notifyFinish().addErrback(gone.append)
        reply = self._perform(request, segments)
        reply.addCallback(lambda done: None if gone else send(request, done))

    def _perform(self, request: Request, segments: list[bytes]) -> Deferred[Reply]:
        """Perform the request; every fault becomes an answer of the service."""
        return Deferred.fromCoroutine(self._performed(Call(request), segments))

    async def _performed(self, call: Call, segments: list[bytes]) -> Reply:
        try:
            done = self._begin(call, segments)
            reply = await done if isinstance(done, Deferred) else done
            problem = self._journal.problem
            if problem and call.method not in ("GET", "HEAD"):
                raise Refusal(503, f"the change cannot be stored: {problem}")
            return reply
        except Exception as error:  # see the note
            return self._failed(call, error)

    def _failed(self, call: Call, error: Exception) -> Reply:
        """Turn an error into an answer; only this method does so."""
        reply = self._service.refused(call, error)
        if reply is None:
            where = self._service.where
            log.failure("The embedded {where} service failed", failure=Failure(error), where=where)
            reply = self._service.envelope(Refusal(500, "Unexpected API Error."))
        return reply

    def _play(self, rule: FaultRule, request: Request, segments: list[bytes]) -> None:
        """Apply a fault rule to the call."""
        gone: list[object] = []
        request.notifyFinish().addErrback(gone.append)
        late = rule.effect is Effect.LATE
        sent = request.content.read() if late and request.content is not None else b""

        def now() -> None:
            effect = rule.effect
            if late:
                request.content = io.BytesIO(sent)  # the former body is closed with the connection
                if gone:
                    self._perform(request, segments)
            if gone:
                return
            if effect in (Effect.TIMEOUT_AFTER, Effect.RESET_AFTER, Effect.GARBAGE):
                self._perform(request, segments)
            if effect in (Effect.DELAY, Effect.LATE):
                self._answer(request, segments)
            elif effect is Effect.ANSWER:
                body = rule.body.encode("utf-8")
                send(request, Reply(status=rule.status, body=body, headers=rule.headers))
            elif effect is Effect.GARBAGE:
                send(request, Reply(body=rule.body.encode("utf-8") or GARBAGE))
            elif effect is Effect.REFUSED:
                refuse = getattr(request.channel, "refuse", request.channel.forceAbortClient)
                refuse()
            elif effect in (Effect.RESET_BEFORE, Effect.RESET_AFTER):
                request.channel.forceAbortClient()

        if rule.delay_s > 0:
            self._clock.callLater(rule.delay_s, now)
        else:
            now()


@implementer(IPullProducer)
class _Pieces:
    """Writes pieces to a request at the reader's pace."""

    def __init__(self, request: Request, pieces: Generator[bytes]) -> None:
        self._request = request
        self._pieces = pieces

    def resumeProducing(self) -> None:
        piece = next(self._pieces, None)
        if piece is not None:
            self._request.write(piece)
            return
        self._request.unregisterProducer()
        self._request.finish()

    def stopProducing(self) -> None:
        """Stop writing, because the reader has gone."""
        self._pieces.close()


def send(request: Request, reply: Reply) -> None:
    """Write `reply` and finish the request."""
    request.setResponseCode(reply.status)
    for name, value in reply.headers.items():
        request.setHeader(name.encode("latin-1"), value.encode("utf-8"))
    payload = reply.payload()
    if payload or reply.pieces is not None or reply.status not in (204, 304):
        request.setHeader(b"content-type", reply.content_type.encode("utf-8"))
    if reply.pieces is not None and request.method != b"HEAD":
        request.registerProducer(_Pieces(request, reply.pieces), False)
        return
    if reply.status != 204 and not request.responseHeaders.hasHeader(b"content-length"):
        request.setHeader(b"content-length", b"%d" % len(payload))
    if payload:
        request.write(payload)
    request.finish()
