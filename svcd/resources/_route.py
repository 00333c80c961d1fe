"""The route decorator, and what it makes of a method: values only, nothing acts here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from attrs import field, frozen

from svcd.model.cloud import Caller
from svcd.model.requests import Limits
from svcd.model.shapes import Shape

F = TypeVar("F", bound=Callable[..., Awaitable[object]])

VERSIONS = ("1.0", "1.1")
_SUCCESS = {"GET": 200, "POST": 202, "PUT": 202, "DELETE": 204}


class Raw:
    """In place of a shape: the handler gets the `Body` itself, whatever its media type."""


RAW = Raw()


@frozen(kw_only=True, eq=False)
class Route:
    """One method of one path.

    body: a compiled shape, RAW, or None when a body is ignored. limit: most bytes of it, None for
    the usual. streams: the handler reads the body while it arrives. returns: the key that wraps the
    result, None for none. exists: awaited before the body is looked at; raises NotFound. plain:
    the result is an `Answer` or `Download` made by the handler. open: no token, no tenant.
    suffix: whether `.json` may follow the last segment.
    """

    method: str
    path: str
    handler: Callable[..., Awaitable[object]]
    body: Shape[Any] | Raw | None = None
    limit: int | None = None
    streams: bool = False
    returns: str | None = None
    success: int = 200
    since: str = "1.0"
    exists: Callable[..., Awaitable[None]] | None = None
    plain: bool = False
    open: bool = False
    suffix: bool = True
    wrapper: tuple[bytes, bytes] = (b"", b"")
    pattern: str = ""
    names: tuple[str, ...] = ()

    @property
    def endpoint(self) -> str:
        """Its name in the Klein app."""
        return endpoint(self.method, self.pattern)


def endpoint(method: str, pattern: str) -> str:
    """The name of a route in the Klein app."""
    return f"{method} {pattern}"


def route(
    method: str,
    path: str,
    *,
    body: type | Raw | None = None,
    returns: str | None = None,
    success: int | None = None,
    since: str = "1.0",
    exists: str | None = None,
    streams: bool = False,
    limit: str | None = None,
    plain: bool = False,
    open: bool = False,
    suffix: bool = True,
) -> Callable[[F], F]:
    """Marks a method of a resource class as the handler of `method` `path`.

    path: below `/v1.x/<tenant_id>`, with `<name>` segments that become keyword arguments; absolute
    when `open`. body: an attrs class of `svcd.model.requests` (argument `body`), or RAW. exists:
    name of the method that checks the ids. limit: name of the server setting with the most bytes.
    See `Route` for the rest.
    """

    def mark(function: F) -> F:
        marks: list[dict[str, Any]] = function.__dict__.setdefault("__routes__", [])
        marks.append(
            {
                "method": method,
                "path": path,
                "body": body,
                "returns": returns,
                "success": _SUCCESS[method] if success is None else success,
                "since": since,
                "exists": exists,
                "streams": streams,
                "limit": limit,
                "plain": plain,
                "open": open,
                "suffix": suffix,
            }
        )
        return function

    return mark


@lru_cache(maxsize=256)
def declared(cls: type) -> Sequence[Mapping[str, Any]]:
    """The fields of the routes that `cls` marks, one for each version; shapes are compiled.

    handler, exists and limit are names still: `bound` looks them up for an instance.
    """
    found: list[Mapping[str, Any]] = []
    for name in dir(cls):
        for mark in getattr(getattr(cls, name), "__routes__", ()):
            shape, key = mark["body"], mark["returns"]
            fields = {
                **mark,
                "handler": name,
                "body": shape if shape is None or isinstance(shape, Raw) else Shape(shape),
                "wrapper": (b"", b"") if key is None else (b'{"' + key.encode() + b'":', b"}"),
            }
            versions = [v for v in VERSIONS if v >= mark["since"]]
            for prefix in [""] if mark["open"] else [f"/v{v}/<tenant_id>" for v in versions]:
                pattern = prefix + mark["path"]
                names = tuple(s[1:-1] for s in pattern.split("/") if s.startswith("<"))
                found.append({**fields, "pattern": pattern, "names": names})
    return found


def bound(resource: object, sizes: Mapping[str, int]) -> Iterator[Route]:
    """The routes of `resource`. sizes: the limits by their names."""
    cls: type = type(resource)
    for fields in declared(cls):
        exists, limit = fields["exists"], fields["limit"]
        yield Route(
            **{
                **fields,
                "handler": getattr(resource, fields["handler"]),
                "exists": getattr(resource, exists) if exists else None,
                "limit": sizes[limit] if limit else None,
            }
        )


class Call:
    """What a handler knows of its request beside the path and the body.

    version: "1.0" or "1.1". query: all query parameters, decoded.
    """

    __slots__ = ("_args", "caller", "tenant_id", "version")

    def __init__(self, caller: Caller, version: str, args: Mapping[bytes, Sequence[bytes]]) -> None:
        self.caller = caller
        self.tenant_id = caller.tenant_id
        self.version = version
        self._args = args

    def all(self, name: str) -> list[str]:
        """Every value of a query parameter."""
        return [v.decode("utf-8", "replace") for v in self._args.get(name.encode(), ())]

    def one(self, name: str) -> str | None:
        """The last value of a query parameter."""
        values = self.all(name)
        return values[-1] if values else None

    @property
    def has_query(self) -> bool:
        """Whether there are any query parameters."""
        return bool(self._args)


@frozen(kw_only=True)
class Options:
    """What the door takes from the settings.

    stall_s: a peer that reads nothing of a download for so long is dropped. sizes: bytes by the
    `limit` names of routes.
    """

    request_timeout_s: float = 60.0
    stall_s: float = 60.0
    max_json_bytes: int = 1_048_576
    limits: Limits = field(factory=Limits)
    access_log: bool = True
    sizes: Mapping[str, int] = field(factory=dict)
