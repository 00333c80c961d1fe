"""The route decorator of the door's resources, and the routes of their methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from attrs import Factory, asdict, field, frozen
from klein import Klein

from svcd.errors import SvcdError
from svcd.model.shapes import Shape
from svcd.model.wire import View
from svcd.resources._answers import JSON
from svcd.resources._policy import Needs
from svcd.resources._query import DRY_RUN, Queries, Query
from svcd.web import routing
from svcd.web.routing import Endpoint, HasRoutes, endpoints

F = TypeVar("F", bound=Callable[..., Awaitable[object]])

VERSIONS = ("1.0", "1.1")
JSON_BODY: Final = "json"
"""The limit of a body that a route does not name."""
_SUCCESS = {"GET": 200, "POST": 202, "PUT": 202, "DELETE": 204}


@frozen
class Raw:
    """Used in place of a shape: the handler gets the `Body` itself.

    types: the media types that a caller may name; empty: any. A caller need not name one.
    """

    types: tuple[str, ...] = ()


RAW = Raw()


def _body_of(body: type | Raw | None) -> Shape[Any] | Raw | None:
    return body if body is None or isinstance(body, Raw) else Shape(body)


@frozen(eq=False)
class route:
    """Registers a method of a resource class as a handler, and says how the door serves it.

    path: below `/v1.x/<tenant_id>` for every version from `since` on; absolute when the route is
    OPEN. Its `<name>` segments become keyword arguments. Several paths may have one handler.
    body: a class of `svcd.model.requests` (argument `body`), RAW, or None when the door ignores the
    body. returns: the key that wraps the result, None for an unwrapped result. success: the status.
    exists: the method that the door awaits before it checks the body; raises NotFound. limit: the
    name of the body's limit in `Options.sizes`. streams: the handler
    reads the body while it arrives. plain: the handler returns an `Answer` or a `Download`. needs:
    what the policy asks of the caller; an OPEN route has no tenant. suffix: whether `.json` may
    follow the last segment. creates: a caller may send an Idempotency-Key, and the command keeps
    the answer under `Call.key`. plan: the method that serves the request with `?dry_run=true`
    (v1.1) in place of the handler; it returns a plan and changes nothing. query: the query
    parameters. login: the handler logs a user in or out: it sets `Call.caller`, and
    the audit log has its result. audited: the audit log has each accepted WRITE.

    For the description alone: operation: the id of the operation, "" for one made of the handler's
    name. raises: errors beside those that the door itself raises. media: the media type of a plain
    answer. headers: of the answer, with their meanings.
    """

    app: Klein
    method: str
    path: str | tuple[str, ...]
    body: Shape[Any] | Raw | None = field(default=None, converter=_body_of)
    returns: str | None = None
    success: int = Factory(lambda self: _SUCCESS[self.method], takes_self=True)
    since: str = "1.0"
    exists: str | None = None
    limit: str = JSON_BODY
    streams: bool = False
    plain: bool = False
    needs: Needs = Factory(
        lambda self: Needs.READ if self.method == "GET" else Needs.WRITE, takes_self=True
    )
    suffix: bool = True
    creates: bool = False
    plan: str | None = None
    query: tuple[Query, ...] = ()
    login: bool = False
    audited: bool = True
    operation: str = ""
    raises: tuple[type[SvcdError], ...] = ()
    media: str = JSON.decode()
    headers: Mapping[str, str] = field(factory=dict)
    queries: Queries = field(
        init=False,
        default=Factory(
            lambda self: Queries(self.query + ((DRY_RUN,) if self.plan else ())), takes_self=True
        ),
    )

    def __call__(self, function: F) -> F:
        """Decorate a method `(self, call, **values)`."""
        function.__dict__[_ROUTE] = self
        return routing.route(self.app, [self.method], *self._rules())(function)

    def _rules(self) -> Iterator[str]:
        prefixes = [""]
        if self.needs is not Needs.OPEN:
            prefixes = [f"/v{version}/<tenant_id>" for version in VERSIONS if version >= self.since]
        for path in (self.path,) if isinstance(self.path, str) else self.path:
            yield from (prefix + path for prefix in prefixes)

    @property
    def waits(self) -> bool:
        """Whether a request may wait for something newer."""
        return any(parameter.name == "wait" for parameter in self.query)


_ROUTE: Final = "__svcd_route__"
"""The attribute of a handler that holds its `route`."""


@frozen(kw_only=True, eq=False)
class Route(Endpoint):
    """A route of the door. handler, exists, plan: bound methods.

    limit: most bytes of a body. wrapper: the JSON text before and after
    the result. version: "1.1" or "1.0".
    """

    spec: route
    handler: Callable[..., Awaitable[object]]
    exists: Callable[..., Awaitable[None]] | None
    plan: Callable[..., Awaitable[View]] | None
    limit: int
    wrapper: tuple[bytes, bytes]
    version: str

    @property
    def changes(self) -> bool:
        """Whether a request of it changes something."""
        return self.spec.needs is Needs.WRITE or self.spec.login


def bound(resource: HasRoutes, sizes: Mapping[str, int]) -> Iterator[Route]:
    """The routes of `resource`. sizes: the body limits by their names, in bytes.

    HEAD runs the handler of GET, and HEAD changes nothing. So a GET that is a WRITE has no HEAD.
    """
    for endpoint in endpoints(resource):
        handler = getattr(resource, endpoint.endpoint)
        spec: route = handler.__func__.__dict__[_ROUTE]
        key = spec.returns
        writes = spec.needs is Needs.WRITE
        yield Route(
            **{
                **asdict(endpoint, recurse=False),
                "methods": [name for name in endpoint.methods if not (writes and name == "HEAD")],
            },
            spec=spec,
            handler=handler,
            exists=getattr(resource, spec.exists) if spec.exists else None,
            plan=getattr(resource, spec.plan) if spec.plan else None,
            limit=sizes[spec.limit],
            wrapper=(b"", b"") if key is None else (b'{"' + key.encode() + b'":', b"}"),
            version="1.1" if endpoint.pattern.startswith("/v1.1") else "1.0",
        )


def rows_of(resources: Iterable[type[HasRoutes]]) -> Iterator[tuple[str, str, Needs]]:
    """Method, path and need of every route of the classes, in order, without their objects."""
    for cls in resources:
        for rule in cls.app.url_map.iter_rules():
            spec: route = getattr(cls, rule.endpoint).__dict__[_ROUTE]
            (method,) = set(rule.methods or ()) - {"HEAD"}
            yield method, rule.rule, spec.needs
