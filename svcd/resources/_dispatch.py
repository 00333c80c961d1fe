"""Finds the route of a path in a tree of segments compiled from Klein's own url_map.

Every rule must be made of plain segments and `<name>`s; another kind is refused when compiled.

Note: why a tree. Werkzeug's bind and match cost more than the rest of a request together, and its
errors are HTML; the tree costs a few dictionary look-ups and knows the methods of a path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar
from urllib.parse import unquote_to_bytes

from attrs import define, field
from klein import Klein

R = TypeVar("R")

_HEX = frozenset(b"0123456789abcdefABCDEF")


@define(slots=True)
class Leaf(Generic[R]):
    """A path: its pattern, the names of its variable segments, and its route by method."""

    pattern: str
    names: tuple[str, ...]
    methods: dict[bytes, R] = field(factory=dict)


class _Node(Generic[R]):
    __slots__ = ("leaf", "static", "variable")

    def __init__(self) -> None:
        self.static: dict[bytes, _Node[R]] = {}
        self.variable: _Node[R] | None = None
        self.leaf: Leaf[R] | None = None


class Tree(Generic[R]):
    """The routes of one Klein app. routes: by the names of Klein's endpoints."""

    def __init__(self, app: Klein, routes: Mapping[str, R]) -> None:
        self._root: _Node[R] = _Node()
        for rule in app.url_map.iter_rules():
            plain = all(type(c).__name__ == "UnicodeConverter" for c in rule._converters.values())
            segments = rule.rule.split("/")[1:]
            partly = any("<" in s and (s[0] != "<" or s[-1] != ">") for s in segments)
            if rule.endpoint not in routes or not plain or partly:
                raise ValueError(f"the door cannot dispatch {rule.rule}")
            self._add(rule.rule, segments, routes[rule.endpoint], rule.methods or ())

    def _add(self, rule: str, segments: Sequence[str], endpoint: R, methods: Iterable[str]) -> None:
        node = self._root
        for segment in segments:
            if segment.startswith("<"):
                if node.variable is None:
                    node.variable = _Node()
                node = node.variable
            else:
                node = node.static.setdefault(segment.encode(), _Node())
        if node.leaf is None:
            names = tuple(s[1:-1] for s in segments if s.startswith("<"))
            node.leaf = Leaf(rule, names)
        for method in methods:
            node.leaf.methods[method.encode()] = endpoint

    def find(
        self, segments: Sequence[bytes], method: bytes
    ) -> tuple[Leaf[R], tuple[bytes, ...]] | None:
        """The leaf for the path, one that knows `method` before others; static before variable."""
        found: list[tuple[Leaf[R], tuple[bytes, ...]]] = []
        self._walk(self._root, segments, 0, (), found)
        if len(found) > 1:
            for each in found:
                if method in each[0].methods:
                    return each
        return found[0] if found else None

    def _walk(
        self,
        node: _Node[R],
        segments: Sequence[bytes],
        at: int,
        values: tuple[bytes, ...],
        found: list[tuple[Leaf[R], tuple[bytes, ...]]],
    ) -> None:
        while at < len(segments):
            segment = segments[at]
            static = node.static.get(segment)
            at += 1
            if node.variable is not None and segment:
                if static is not None:
                    self._walk(static, segments, at, values, found)
                node = node.variable
                values = (*values, segment)
            elif static is not None:
                node = static
            else:
                return
        if node.leaf is not None:
            found.append((node.leaf, values))


def segments_of(path: bytes) -> list[bytes] | None:
    """The decoded segments of a request path, without a trailing slash; None for a broken one."""
    if not path.startswith(b"/"):
        _, _, rest = path.partition(b"://")  # absolute form: GET http://host/path
        _, slash, path = rest.partition(b"/")
        if not slash and not rest:
            return None
        path = b"/" + path
    segments = path[1:].split(b"/")
    if len(segments) > 1 and not segments[-1]:
        segments.pop()
    if b"%" in path:
        decoded = []
        for segment in segments:
            if not _well_encoded(segment):
                return None
            segment = unquote_to_bytes(segment)
            if b"/" in segment:
                return None
            decoded.append(segment)
        segments = decoded
    return segments


def _well_encoded(segment: bytes) -> bool:
    return all(
        len(part) >= 2 and part[0] in _HEX and part[1] in _HEX for part in segment.split(b"%")[1:]
    )


def allowed(methods: Mapping[bytes, object]) -> str:
    """The value of `Allow`."""
    names = {m.decode() for m in methods} | {"OPTIONS"}
    if "GET" in names:
        names.add("HEAD")
    return ", ".join(sorted(names))
