"""The route decorator of the door's resources, and the routes of their methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from attrs import field, frozen
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
_SUCCESS = {"GET": 200, "POST": 202, "PUT": 202, "DELETE": 204}


@frozen
class Raw:
    """Used in place of a shape: the handler gets the `Body` itself.

    types: the media types that a caller may name; empty: any. A caller need not name one.
    """

    types: tuple[str, ...] = ()


RAW = Raw()


@frozen(kw_only=True, eq=False)
class Spec:
    """How the door serves a handler.

    body: a compiled shape, RAW, or None when the door ignores the body. returns: the key that wraps
    the result, None for an unwrapped result. success: the status. exists: the method that the door
    awaits before it checks the body; raises NotFound. limit: the name of the body's limit in
    `Options.sizes`, None for `max_json_bytes`. streams: the handler reads the body while it
    arrives. plain: the handler returns an `Answer` or a `Download`. needs: what the policy asks of
    the caller; an OPEN route has no tenant. suffix: whether `.json` may follow the last segment.
    creates: a caller may send an Idempotency-Key, and the command keeps the answer under
    `Call.key`. plan: the method that serves the request with `?dry_run=true` (v1.1) in place of
    the handler; it returns a plan and changes nothing.
    query: the query parameters. login: the handler logs a user in or out: it names the user by
    `Call.act_as` or `Call.bearer`, and the audit log has its result. audited: the audit log has
    each accepted WRITE.

    For the description alone: operation: the id of the operation, "" for one made of the handler's
    name. raises: errors beside those that the door itself raises. media: the media type of a plain
    answer. headers: of the answer, with their meanings.
    """

    needs: Needs

    body: Shape[Any] | Raw | None = None
    returns: str | None = None
    success: int = 200
    exists: str | None = None
    limit: str | None = None
    streams: bool = False
    plain: bool = False
    suffix: bool = True
    creates: bool = False
    plan: str | None = None
    query: Queries = field(factory=Queries)
    login: bool = False
    audited: bool = True
    operation: str = ""
    raises: tuple[type[SvcdError], ...] = ()
    media: str = JSON.decode()
    headers: Mapping[str, str] = field(factory=dict)

    @property
    def waits(self) -> bool:
        """Whether a request may wait for something newer."""
        return any(each.name == "wait" for each in self.query.declared)


_SPEC: Final = "__svcd_spec__"
"""The attribute of a handler that holds its Spec."""


@frozen(kw_only=True, eq=False)
class Route(Endpoint):
    """A route of the door. handler, exists, plan: bound methods.

    limit: most bytes of a body, None for `max_json_bytes`. wrapper: the JSON text before and after
    the result. version: "1.1" or "1.0".
    """

    spec: Spec
    handler: Callable[..., Awaitable[object]]
    exists: Callable[..., Awaitable[None]] | None
    plan: Callable[..., Awaitable[View]] | None
    limit: int | None
    wrapper: tuple[bytes, bytes]
    version: str

    @property
    def changes(self) -> bool:
        """Whether a request of it changes something."""
        return self.spec.needs is Needs.WRITE or self.spec.login


def route(
    app: Klein,
    method: str,
    *paths: str,
    body: type | Raw | None = None,
    returns: str | None = None,
    success: int | None = None,
    since: str = "1.0",
    exists: str | None = None,
    streams: bool = False,
    limit: str | None = None,
    plain: bool = False,
    needs: Needs | None = None,
    suffix: bool = True,
    creates: bool = False,
    plan: str | None = None,
    query: tuple[Query, ...] = (),
    login: bool = False,
    audited: bool = True,
    operation: str = "",
    raises: tuple[type[SvcdError], ...] = (),
    media: str = JSON.decode(),
    headers: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """Registers a method of a resource class as the handler of `method` for all `paths`.

    paths: below `/v1.x/<tenant_id>` for every version from `since` on; absolute when the route is
    OPEN. Their `<name>` segments become keyword arguments. body: an attrs class of
    `svcd.model.requests` (argument `body`), or RAW. needs: by default READ for GET, WRITE for every
    other method. See `Spec` for the others.
    """
    if needs is None:
        needs = Needs.READ if method == "GET" else Needs.WRITE
    prefixes = (
        [""] if needs is Needs.OPEN else [f"/v{v}/<tenant_id>" for v in VERSIONS if v >= since]
    )
    spec = Spec(
        needs=needs,
        body=body if body is None or isinstance(body, Raw) else Shape(body),
        returns=returns,
        success=_SUCCESS[method] if success is None else success,
        exists=exists,
        limit=limit,
        streams=streams,
        plain=plain,
        suffix=suffix,
        creates=creates,
        plan=plan,
        query=Queries(query if plan is None else (*query, DRY_RUN)),
        login=login,
        audited=audited,
        operation=operation,
        raises=raises,
        media=media,
        headers=headers or {},
    )
    register = routing.route(
        app, [method], *(prefix + path for path in paths for prefix in prefixes)
    )

    def decorate(function: F) -> F:
        function.__dict__[_SPEC] = spec
        return register(function)

    return decorate


def bound(resource: HasRoutes, sizes: Mapping[str, int]) -> Iterator[Route]:
    """The routes of `resource`. sizes: the body limits by their names, in bytes.

    HEAD runs the handler of GET, and HEAD changes nothing. So a GET that is a WRITE has no HEAD.
    """
    for each in endpoints(resource):
        handler = getattr(resource, each.endpoint)
        spec: Spec = handler.__func__.__dict__[_SPEC]
        key = spec.returns
        writes = spec.needs is Needs.WRITE
        yield Route(
            app=each.app,
            run=each.run,
            endpoint=each.endpoint,
            pattern=each.pattern,
            method=each.method,
            methods=[name for name in each.methods if not (writes and name == "HEAD")],
            names=each.names,
            spec=spec,
            handler=handler,
            exists=getattr(resource, spec.exists) if spec.exists else None,
            plan=getattr(resource, spec.plan) if spec.plan else None,
            limit=sizes[spec.limit] if spec.limit else None,
            wrapper=(b"", b"") if key is None else (b'{"' + key.encode() + b'":', b"}"),
            version="1.1" if each.pattern.startswith("/v1.1") else "1.0",
        )


def rows_of(resources: Iterable[type[HasRoutes]]) -> Iterator[tuple[str, str, Needs]]:
    """Method, path and need of every route of the classes, in order, without their objects."""
    for cls in resources:
        for rule in cls.app.url_map.iter_rules():
            spec: Spec = getattr(cls, rule.endpoint).__dict__[_SPEC]
            (method,) = set(rule.methods or ()) - {"HEAD"}
            yield method, rule.rule, spec.needs
