"""Finds the endpoint for a path in a tree of path segments.

Note: why a tree. Werkzeug's bind and match cost more than the rest of a request together, and its
errors are HTML. The tree costs a few dictionary look-ups and knows the methods of a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Generic, TypeVar
from urllib.parse import unquote_to_bytes

from attrs import define, field

R = TypeVar("R")

_HEX = frozenset(b"0123456789abcdefABCDEF")
_NAME = re.compile(r"<(?P<rest>path:)?(?P<name>[A-Za-z_]\w*)>")
_STATIC, _VARIABLE, _REST = "static", "variable", "rest"
_RULES_KEPT: Final = 1024
"""Parsed rules in memory. The rules of one process are a few hundred."""


@define(slots=True)
class Leaf(Generic[R]):
    """The end of a rule in the tree. methods: the endpoint for each method."""

    rule: str
    methods: dict[bytes, R] = field(factory=dict)


class _Node(Generic[R]):
    __slots__ = ("leaf", "rest", "static", "variable")

    def __init__(self) -> None:
        self.static: dict[bytes, _Node[R]] = {}
        self.variable: _Node[R] | None = None
        self.rest: _Node[R] | None = None
        self.leaf: Leaf[R] | None = None


class Tree(Generic[R]):
    """The endpoints by path and method. `add` fills the tree; endpoints: all, in that order."""

    def __init__(self) -> None:
        self.endpoints: list[R] = []
        self._root: _Node[R] = _Node()

    def add(self, rule: str, methods: Iterable[str], endpoint: R) -> None:
        """Serve `methods` of `rule` by `endpoint`.

        Raises ValueError for a rule with an unknown form, and for a rule that is served already.
        """
        node = self._root
        for kind, segment in _parsed(rule)[1]:
            if kind is _STATIC:
                found = node.static.get(segment)
                if found is None:
                    found = node.static[segment] = _Node()
                node = found
            elif kind is _VARIABLE:
                node.variable = node = node.variable or _Node()
            else:
                node.rest = node = node.rest or _Node()
        if node.leaf is None:
            node.leaf = Leaf(rule)
        for method in methods:
            if node.leaf.methods.setdefault(method.encode(), endpoint) is not endpoint:
                raise ValueError(f"{method} {rule} is served already")
        self.endpoints.append(endpoint)

    def find(
        self, segments: Sequence[bytes], method: bytes
    ) -> tuple[Leaf[R], tuple[bytes, ...]] | None:
        """The leaf for the path, and the values of its variables; None without a leaf.

        A leaf with `method` comes before others. Plain segments come before variables, and
        variables before `<path:name>`.
        """
        leaves: list[tuple[Leaf[R], tuple[bytes, ...]]] = []
        self._walk(self._root, segments, 0, (), leaves)
        if len(leaves) > 1:
            for match in leaves:
                if method in match[0].methods:
                    return match
        return leaves[0] if leaves else None

    def _walk(
        self,
        node: _Node[R],
        segments: Sequence[bytes],
        at: int,
        values: tuple[bytes, ...],
        leaves: list[tuple[Leaf[R], tuple[bytes, ...]]],
    ) -> None:
        while at < len(segments):
            segment = segments[at]
            static = node.static.get(segment)
            if node.rest is not None and node.rest.leaf is not None:
                if static is not None:
                    self._walk(static, segments, at + 1, values, leaves)
                if node.variable is not None and segment:
                    self._walk(node.variable, segments, at + 1, (*values, segment), leaves)
                leaves.append((node.rest.leaf, (*values, b"/".join(segments[at:]))))
                return
            at += 1
            if node.variable is not None and segment:
                if static is not None:
                    self._walk(static, segments, at, values, leaves)
                node = node.variable
                values = (*values, segment)
            elif static is not None:
                node = static
            else:
                return
        if node.leaf is not None:
            leaves.append((node.leaf, values))


def names_in(rule: str) -> tuple[str, ...]:
    """The names of the variables of a rule.

    Raises ValueError for a rule with other segments than plain ones, `<name>`, and `<path:name>` at
    its end.
    """
    return _parsed(rule)[0]


@lru_cache(_RULES_KEPT)
def _parsed(rule: str) -> tuple[tuple[str, ...], tuple[tuple[str, bytes], ...]]:
    """The names of the variables, and the kind and the text of each segment. See `names_in`."""
    names: list[str] = []
    steps: list[tuple[str, bytes]] = []
    segments = rule.split("/")[1:]
    for at, segment in enumerate(segments, 1):
        if "<" not in segment and ">" not in segment:
            steps.append((_STATIC, segment.encode()))
            continue
        variable = _NAME.fullmatch(segment)
        if variable is None or (variable["rest"] and at < len(segments)):
            raise ValueError(f"the tree cannot find {rule}")
        names.append(variable["name"])
        steps.append((_REST if variable["rest"] else _VARIABLE, b""))
    if not rule.startswith("/") or (not segments[-1] and rule != "/"):
        raise ValueError(f"the tree cannot find {rule}: begin with a slash and end without one")
    return tuple(names), tuple(steps)


def segments_of(path: bytes) -> list[bytes] | None:
    """The decoded segments of a request path, without a trailing slash; None when malformed."""
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
    """The value of the header `Allow` for `methods`."""
    return ", ".join(sorted({m.decode() for m in methods} | {"OPTIONS"}))
