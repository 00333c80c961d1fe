"""Finds the route of a path: a stage before the check of the token, and a stage after it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen

from svcd.errors import MethodNotAllowed, NotFound
from svcd.resources._answers import Answer, shown
from svcd.resources._policy import Needs
from svcd.resources._route import Route
from svcd.web.tree import Leaf, Tree, allowed, segments_of

_JSON_SUFFIX: Final = b".json"
_CONTROL: Final = re.compile("[\x00-\x1f\x7f]")


@frozen
class Target:
    """The routes and values of a path.

    tenant: of the path, None without one. pattern: of the routes. routes: by their methods; empty
    for an unknown path, and for one with a malformed value. values: of the other names in the path.
    is_open: no token is needed. suffix: whether `.json` was removed from the path.
    """

    tenant: str | None
    pattern: str = "unknown"
    routes: Mapping[bytes, Route] = field(factory=dict)
    values: Mapping[str, str] = field(factory=dict)
    is_open: bool = False
    suffix: bool = False


def find(
    tree: Tree[Route], path: bytes, method: bytes
) -> tuple[Leaf[Route], tuple[bytes, ...], bool] | None:
    """The leaf of a path, the values in the path, and whether the suffix `.json` was removed."""
    segments = segments_of(path)
    if segments is None:
        return None
    if segments[-1].endswith(_JSON_SUFFIX):
        leaf = tree.find([*segments[:-1], segments[-1][: -len(_JSON_SUFFIX)]], method)
        if leaf is not None:
            route = leaf[0].methods.get(method)
            if route is None or route.spec.suffix:
                return (*leaf, True)
    leaf = tree.find(segments, method)
    return None if leaf is None else (*leaf, False)


def target_of(tree: Tree[Route], path: bytes, method: bytes) -> Target:
    """The target of `path`. An unknown path may have a tenant too: its token is checked first."""
    target = find(tree, path, method)
    if target is None:
        return Target(_tenant_in(path))
    leaf, raw, suffix = target
    route = leaf.methods.get(method) or next(iter(leaf.methods.values()))
    is_open = route.spec.needs is Needs.OPEN
    values = _decoded(route.names, raw)
    if values is None:
        return Target(None, route.pattern, is_open=is_open)
    tenant = None if is_open else values.pop("tenant_id")
    return Target(tenant, route.pattern, leaf.methods, values, is_open, suffix)


def route_at(target: Target, request: Any) -> Route | Answer:
    """The route of `request`, or the answer to OPTIONS. Raises NotFound, MethodNotAllowed."""
    if not target.routes:
        raise NotFound(f"path {shown(request.path)} not found")
    method: bytes = request.method
    route = target.routes.get(method)
    if route is not None:
        return route
    allow = {"Allow": allowed(target.routes)}
    if method == b"OPTIONS":
        return Answer(200, headers=allow)
    raise MethodNotAllowed(f"{shown(method)} is not a method of this path", allow)


def _tenant_in(path: bytes) -> str | None:
    """The tenant in a path without a route: the token is checked before the path gets a 404."""
    segments = segments_of(path) or []
    if len(segments) > 2 and segments[0] in (b"v1.0", b"v1.1"):
        return segments[1].decode("utf-8", "replace")
    return None


def _decoded(names: Sequence[str], values: tuple[bytes, ...]) -> dict[str, str] | None:
    """The values in the path as text; None when one is not UTF-8 or has a control character."""
    try:
        result = {n: v.decode("utf-8") for n, v in zip(names, values, strict=True)}
    except UnicodeDecodeError:
        return None
    for value in result.values():
        if _CONTROL.search(value):
            return None
    return result
