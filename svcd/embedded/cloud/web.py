# mypy: allow-untyped-calls
"""How the embedded services take a request and answer: a Klein app each, one dispatcher for all.

Klein holds the routes; `compiled` turns its map into a tree once per class, because Klein binds a
werkzeug adapter for each request, which costs more than everything else here. Errors, unknown paths
and methods included, leave in the envelope of the service they belong to.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import IO, Any, ClassVar, TypeVar
from urllib.parse import parse_qs, unquote

import msgspec
from attrs import field, frozen
from klein import Klein
from twisted.internet.interfaces import IPullProducer
from twisted.web.http import Request
from zope.interface import implementer

from svcd.embedded.cloud.records import Token

T = TypeVar("T")
_PIECE_BYTES = 65536


class Refusal(Exception):
    """The service says no. kind: Neutron's `type`; headers: extra ones."""

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
    """An answer. body: JSON value, or bytes as they are; pieces: streamed instead of `body`."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(factory=dict)
    content_type: str = "application/json"
    pieces: Iterator[bytes] | None = None

    def payload(self) -> bytes:
        """The body's bytes."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else msgspec.json.encode(self.body)


class Call:
    """One request as a service sees it. `token` is set for services that ask for one."""

    __slots__ = ("_query", "request", "token")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.token: Token | None = None
        self._query: dict[str, list[str]] | None = None

    @property
    def method(self) -> str:
        return str(self.request.method.decode("latin-1"))

    @property
    def me(self) -> Token:
        """The caller's token; only in services that require one."""
        if self.token is None:
            raise Refusal(401, "The request you have made requires authentication.")
        return self.token

    @property
    def project(self) -> str:
        """The caller's project, "" for an unscoped token."""
        return self.me.project_id or ""

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

    def tell(self, name: str, value: str) -> None:
        """A header of the answer, whatever that will be."""
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


def text_of(seconds: float, form: str) -> str:
    """A moment as the services write it: form `keystone`, `z` (…Z) or `bare` (microseconds)."""
    moment = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).replace(tzinfo=None)
    if form == "keystone":
        return moment.isoformat() + ".000000Z"
    return moment.isoformat() + ("Z" if form == "z" else ".000000")


def page(call: Call, rows: list[T], id_of: Callable[[T], str], most: int = 1000) -> list[T]:
    """`limit` and `marker` of the OpenStack APIs. Raises Refusal 400 for a bad one."""
    marker = call.one("marker")
    if marker:
        at = next((i for i, row in enumerate(rows) if id_of(row) == marker), None)
        if at is None:
            raise Refusal(400, f"marker [{marker}] not found")
        rows = rows[at + 1 :]
    limit = call.one("limit")
    if limit and not limit.isdigit():
        raise Refusal(400, f"Invalid input for query parameters limit. Value: {limit}.")
    return rows[: min(int(limit), most) if limit else most]


class Service:
    """Base of the embedded services.

    app: the routes, handlers are `def handler(self, call: Call, …) -> Reply`, or async.
    where: name in fault rules and counters. open_paths: first segments that need no token.
    """

    app: ClassVar[Klein]
    where: ClassVar[str]

    def authorize(self, call: Call, segments: list[str]) -> None:
        """Set `call.token`, or raise Refusal."""
        raise NotImplementedError

    def envelope(self, refusal: Refusal) -> Reply:
        """The error body of this service."""
        raise NotImplementedError


H = TypeVar("H", bound=Callable[..., Any])


def route(app: Klein, method: str, rule: str) -> Callable[[H], H]:
    """Register a handler; Klein's own decorator is typed for requests, ours take a `Call`."""
    return app.route(rule, methods=[method])


@frozen
class Route:
    """A handler with the names of its path parameters. rule: as declared."""

    handler: Callable[..., Reply | Coroutine[Any, Any, Reply]]
    names: tuple[str, ...]
    rule: str


class _Node:
    __slots__ = ("children", "methods", "one", "rest")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.one: _Node | None = None
        self.rest: _Node | None = None
        self.methods: dict[str, Route] = {}


@functools.cache
def compiled(service: Any) -> _Node:
    """The routes of a service class as a tree of path segments."""
    root = _Node()
    app = service.app
    for rule in app.url_map.iter_rules():
        node, names = root, []
        for segment in rule.rule.strip("/").split("/"):
            if segment.startswith("<path:"):
                node.rest = node = node.rest or _Node()
                names.append(segment[6:-1])
            elif segment.startswith("<"):
                node.one = node = node.one or _Node()
                names.append(segment[1:-1])
            elif segment:
                node = node.children.setdefault(segment, _Node())
        handler = getattr(service, rule.endpoint)
        for method in rule.methods or ():
            node.methods[method] = Route(handler, tuple(names), rule.rule)
    return root


def find(root: _Node, segments: list[str]) -> tuple[_Node, tuple[str, ...]] | None:
    """The node of a path and its parameters; plain segments before parameters."""
    stack: list[tuple[_Node, int, tuple[str, ...]]] = [(root, 0, ())]
    end = len(segments)
    while stack:
        node, at, values = stack.pop()
        if at == end:
            if node.methods:
                return node, values
            continue
        if node.rest is not None:
            stack.append((node.rest, end, (*values, "/".join(segments[at:]))))
        if node.one is not None and segments[at]:
            stack.append((node.one, at + 1, (*values, segments[at])))
        child = node.children.get(segments[at])
        if child is not None:
            stack.append((child, at + 1, values))
    return None


def split(path: str) -> list[str]:
    """Path below the service as segments, decoded; a slash at the end counts only for objects."""
    return [unquote(segment) for segment in path.split("/")]


@implementer(IPullProducer)
class _Pieces:
    """Writes an iterator to a request at the reader's pace."""

    def __init__(self, request: Request, pieces: Iterator[bytes]) -> None:
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
        """The reader has gone."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()


def send(request: Request, reply: Reply) -> None:
    """Write `reply` and finish the request."""
    request.setResponseCode(reply.status)
    for name, value in reply.headers.items():
        request.setHeader(name.encode("latin-1"), value.encode("utf-8"))
    if reply.pieces is not None:
        request.setHeader(b"content-type", reply.content_type.encode("utf-8"))
        if request.method == b"HEAD":
            request.finish()
            return
        request.registerProducer(_Pieces(request, reply.pieces), False)
        return
    payload = reply.payload()
    if payload or reply.status not in (204, 304):
        request.setHeader(b"content-type", reply.content_type.encode("utf-8"))
    if reply.status != 204 and not request.responseHeaders.hasHeader(b"content-length"):
        request.setHeader(b"content-length", b"%d" % len(payload))
    if payload:
        request.write(payload)
    request.finish()


def pieces_of(file: IO[bytes], size: int) -> Iterator[bytes]:
    """`size` bytes from where `file` stands, then it is closed."""
    try:
        while size > 0:
            piece = file.read(min(_PIECE_BYTES, size))
            if not piece:
                return
            size -= len(piece)
            yield piece
    finally:
        file.close()
