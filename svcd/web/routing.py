# mypy: allow-untyped-calls
"""Registers handlers with Klein, and serves Klein apps.

A resource class holds `app = Klein()`, and `route` registers its methods as handlers. `Routed`
serves exactly the routes that Klein knows: it compiles its tree from the public `url_map` of each
app and runs a handler by `execute_endpoint`. It replaces only the matching of Klein's resource. It
compiles the tree when the first request needs it.

A handler gets the `call` that its resource makes from the request, and not Klein's request. So a
handler cannot write an answer without its resource.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from attrs import frozen
from klein import Klein
from klein.resource import KleinResource

from svcd.web.tree import Tree, names_in

F = TypeVar("F", bound=Callable[..., Any])


class HasRoutes(Protocol):
    """An object whose class registers its methods with `app`. It must not have slots."""

    app: ClassVar[Klein]


def route(app: Klein, methods: Sequence[str], *rules: str) -> Callable[[F], F]:
    """Registers a method `(self, call, **names)` as the handler of `methods` for all `rules`.

    A rule has plain segments and `<name>` segments, and may end with `<path:name>`.
    """

    def decorate(function: F) -> F:
        for rule in rules:
            app.route(rule, methods=list(methods))(function)
        return function

    return decorate


@frozen(kw_only=True, eq=False)
class Endpoint:
    """A rule of a Klein app.

    app: bound to the object that has the handler. endpoint: name of the handler there. methods:
    with HEAD if GET is one of them. method: the first method. names: names of the rule's variables.
    run: `run(call, **values)` is the handler's result, or a Deferred of it for a coroutine.
    """

    app: Klein
    run: Callable[..., Any]
    endpoint: str
    pattern: str
    method: str
    methods: Sequence[str]
    names: Sequence[str]


def endpoints(resource: HasRoutes) -> Iterator[Endpoint]:
    """The endpoints of `resource`, in the order of registration. Raises ValueError."""
    app = resource.app
    for rule in app.url_map.iter_rules():
        methods = sorted(rule.methods or ())
        if not methods:
            raise ValueError(f"{rule.rule} has no methods")
        yield Endpoint(
            app=app,
            run=functools.partial(app.execute_endpoint, rule.endpoint),
            endpoint=rule.endpoint,
            pattern=rule.rule,
            method=methods[0],
            methods=methods,
            names=names_in(rule.rule),
        )


E = TypeVar("E", bound=Endpoint)


class Routed(KleinResource, ABC, Generic[E]):
    """A resource that serves the routes of `first` and of `others`.

    The `render` of a subclass finds an endpoint in the tree and runs it.
    """

    def __init__(self, first: HasRoutes, *others: HasRoutes) -> None:
        super().__init__(first.app)
        self._resources = (first, *others)

    @functools.cached_property
    def tree(self) -> Tree[E]:
        """All endpoints by path and method. Raises ValueError for a route that exists twice."""
        tree: Tree[E] = Tree()
        for resource in self._resources:
            for endpoint in self.endpoints_of(resource):
                tree.add(endpoint.pattern, endpoint.methods, endpoint)
        return tree

    def routes(self) -> Sequence[E]:
        """All endpoints, in the order of the resources. Raises ValueError as `tree`."""
        return self.tree.endpoints

    @abstractmethod
    def endpoints_of(self, resource: HasRoutes) -> Iterable[E]:
        """The endpoints of `resource` as this resource runs them."""

    @abstractmethod
    def render(self, request: Any) -> Any:
        """Answer `request`, see IResource."""
