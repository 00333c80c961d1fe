"""Decodes a request body into its shape, or reports all faults of the body at once.

Note: two passes. In the fast pass msgspec decodes directly into the attrs class. The pass then
walks the untyped tree once for checks that msgspec does not make for attrs classes: unknown keys,
cross-field checks, control characters. Only when the fast pass finds a fault, the slow pass walks
the tree with the same classes and collects every fault with its JSON path. Both read the same
annotations, so they cannot disagree; a body that only the fast pass refuses is reported with
msgspec's own text.

Note: bounded cost. A body of a megabyte holds a hundred thousand values, and the slow pass takes
microseconds for each. So objects of options are checked as a whole, by their types and one search.
Groups beyond the operator's limit are counted and not checked. The pass ends after `MAX_FAULTS`.
An escape sequence in a text alone does not start the slow pass: the fast pass first searches the
whole body for control characters.

Note: control characters. A `str` without constraints is a text: an option's value, an argument. It
may contain tab and line feed, as may a `str` whose constraints are marked with `lines`: a
description. A text that is marked with `given` is for a program: it may contain any but U+0000, at
which texts of Linux end. Any other `str` with constraints is a name, a reference or a part of an
account: it may contain no control character. A key may contain none either.

Note: why the garbage collector is off while a large body is decoded. The values of a body are a
tree, so the collector can free no part of it, but it walks the growing tree again and again. With
a megabyte of empty arrays in a daemon that costs 0.2 s beside 0.07 s of decoding (measured), in
which no other request is served. A limit on the number of arrays and objects would need a decoder
of its own, because texts may hold brackets too. The decoder is synchronous, so no other code runs
meanwhile, and `finally` turns the collector on again. If it is off already, it stays off.

Duplicate keys: the last one wins, as in every JSON library.
"""

from __future__ import annotations

import enum
import gc
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

import attrs
import msgspec

from svcd.errors import MalformedBody, ValidationError
from svcd.model import names
from svcd.model.choices import nearest
from svcd.model.controls import name_fault
from svcd.model.job import GIVEN
from svcd.model.requests import Limits

T = TypeVar("T")

MAX_FAULTS = 100
"""Most faults in one answer."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_GIVEN = re.compile("\x00")
_CONTROL_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ESCAPED_CONTROL = re.compile(rb"\\[^\"\\/]|\x7f|\xc2[\x80-\x9f]")
"""Finds control characters in msgspec's JSON after the removal of doubled backslashes."""
_SCALARS = frozenset({str, int, bool})
_LARGE_BYTES = 65_536
"""Size of a body from which the garbage collector is off during decoding."""
_MOST_KEY = 60
"""Most characters of a key in a path."""
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_untyped: msgspec.json.Decoder[Any] = msgspec.json.Decoder()

_Check = Callable[[Any, str], Iterator[str]]


class Shape(Generic[T]):
    """The shape `cls` of a body, compiled once, when the first such body comes."""

    def __init__(self, cls: type[T]) -> None:
        self.cls = cls
        self._slow = _Slow()

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[T]:
        return msgspec.json.Decoder(self.cls)

    @cached_property
    def _strict(self) -> _Strict:
        return _compile_strict(self.cls)

    def decode(self, body: bytes, limits: Limits) -> T:
        """The request. Raises MalformedBody, or ValidationError with one line for each fault."""
        if len(body) < _LARGE_BYTES or not gc.isenabled():
            return self._decode(body, limits)
        gc.disable()
        try:
            return self._decode(body, limits)
        finally:
            gc.enable()

    def _decode(self, body: bytes, limits: Limits) -> T:
        problem = ""
        try:
            value = self._decoder.decode(body)
            tree = _untyped.decode(body)
            if self._strict(tree, limits) and not _holds_controls(body, tree):
                return value
        except msgspec.ValidationError as error:
            problem = str(error)
            tree = _tree_of(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _malformed(body, error) from None
        faults = self.faults(tree, limits)
        if faults:
            raise ValidationError.of(faults)
        if problem:
            raise ValidationError(problem)
        return value

    def faults(self, tree: Any, limits: Limits) -> list[str]:
        """All faults of the decoded JSON `tree`, each with its JSON path."""
        found: list[str] = []
        for fault in self._slow.of(tree, self.cls, "$", limits):
            found.append(fault)
            if len(found) == MAX_FAULTS:
                return [*found, "and more"]
        return found


def _tree_of(body: bytes) -> Any:
    try:
        return _untyped.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(body, error) from None


def _malformed(body: bytes, error: Exception) -> MalformedBody:
    if not body.strip():
        return MalformedBody("the body is empty: send a JSON object")
    if isinstance(error, UnicodeDecodeError):
        return MalformedBody("the body is not UTF-8 JSON: it contains bytes that are not UTF-8")
    if isinstance(error, RecursionError):
        return MalformedBody("the body is not usable JSON: it is nested too deeply")
    return MalformedBody(f"the body is not UTF-8 JSON: {str(error)[:200]}")


def _holds_controls(body: bytes, tree: Any) -> bool:
    """Whether any text or key of the decoded `body` contains a control character."""
    if b"\\" not in body and b"\x7f" not in body and b"\xc2" not in body:
        return False  # JSON escapes all other control characters
    written = msgspec.json.encode(tree).replace(b"\\\\", b"")
    return _ESCAPED_CONTROL.search(written) is not None


# ---- fast pass: keys and cross checks -----------------------------------------------------------

_Strict = Callable[[Any, Limits], bool]


def _compile_strict(cls: type) -> _Strict:
    """A check of a tree that msgspec has accepted: only known keys, no cross-field fault."""
    hints = typing.get_type_hints(cls)
    known = frozenset(hints) & frozenset(a.name for a in attrs.fields(cls))
    single: list[tuple[str, _Strict]] = []
    many: list[tuple[str, _Strict]] = []
    for name in known:
        inner, is_list = _inner_class(hints[name])
        if inner is not None:
            (many if is_list else single).append((name, _compile_strict(inner)))
    cross = getattr(cls, "cross_faults", None)

    def check(tree: Any, limits: Limits) -> bool:
        if not tree.keys() <= known:
            return False
        for name, inner in single:
            value = tree.get(name)
            if value is not None and not inner(value, limits):
                return False
        for name, inner in many:
            for value in tree.get(name) or ():
                if not inner(value, limits):
                    return False
        return cross is None or next(cross(tree, "$", limits), None) is None

    return check


def _inner_class(hint: Any) -> tuple[type | None, bool]:
    """The attrs class in `C`, `C | None`, `tuple[C, ...]`, and whether it is a list of them."""
    for part in _alternatives(hint):
        part = _bare(part)
        if attrs.has(part):
            return part, False
        if typing.get_origin(part) is tuple:
            item = _bare(typing.get_args(part)[0])
            if attrs.has(item):
                return item, True
    return None, False


@lru_cache(maxsize=1024)
def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


@lru_cache(maxsize=1024)
def _alternatives(hint: Any) -> tuple[Any, ...]:
    bare = _bare(hint)
    if typing.get_origin(bare) in (typing.Union, types.UnionType):
        return typing.get_args(bare)
    return (hint,)


@lru_cache(maxsize=1024)
def _holds_secrets(hint: Any) -> bool:
    """Whether a value of this type may be a secret: credentials, options."""
    return any(
        getattr(bare, "secret", False) or typing.get_origin(bare) is Mapping
        for bare in map(_bare, _alternatives(hint))
    )


@lru_cache(maxsize=1024)
def _controls(hint: Any) -> re.Pattern[str]:
    """The control characters that a text of this type may not contain."""
    parts = _alternatives(hint)
    if any(_is_given(part) for part in parts):
        return _CONTROL_IN_GIVEN
    lines = any(part is str or _holds_lines(part) for part in parts)
    return _CONTROL_IN_TEXT if lines else _CONTROL


def _holds_lines(hint: Any) -> bool:
    return any((meta.extra or {}).get("lines") for meta in _metas(hint))


def _is_given(hint: Any) -> bool:
    return GIVEN in getattr(hint, "__metadata__", ())


def _metas(hint: Any) -> Sequence[msgspec.Meta]:
    """The constraints of a type."""
    return [m for m in getattr(hint, "__metadata__", ()) if isinstance(m, msgspec.Meta)]


@lru_cache(maxsize=1024)
def _takes_scalars(hint: Any) -> bool:
    """Whether the type is the union of str, int and bool, as of options."""
    return frozenset(map(_bare, _alternatives(hint))) == _SCALARS


def _plain_options(value: Mapping[str, Any], controls: re.Pattern[str]) -> bool:
    """Whether an object of options has no fault. It uses no loop in Python."""
    if not _SCALARS.issuperset(map(type, value.values())):
        return False
    texts = "".join(each for each in value.values() if type(each) is str)
    return not _CONTROL.search("".join(value)) and not controls.search(texts)


def _plain_texts(value: Sequence[Any], controls: re.Pattern[str]) -> bool:
    """Whether a list of texts has no fault."""
    return {str}.issuperset(map(type, value)) and not controls.search("".join(value))


# ---- slow pass: every fault ---------------------------------------------------------------------


class _Slow:
    """Walks an untyped tree by the annotations of the classes."""

    def __init__(self) -> None:
        self._hints: dict[type, Mapping[str, Any]] = {}

    def of(
        self, value: Any, hint: Any, path: str, limits: Limits, secret: bool = False
    ) -> Iterator[str]:
        """Faults of `value` where `hint` is expected."""
        if isinstance(value, str):
            control = _controls(hint).search(value)
            if control:
                yield f"{path}: control character U+{ord(control.group()):04X} is not allowed"
                return
        choices = [c for c in _alternatives(hint) if _same_kind(value, c)]
        if not choices:
            hidden = secret or _holds_secrets(hint)
            yield f"{path}: expected {_expected(hint)}, got {_got(value, hidden)}"
            return
        choice = choices[0]
        bare = _bare(choice)
        if attrs.has(bare):
            yield from self._object(value, bare, path, limits)
            return
        broken = _constraint(value, choice)
        if broken:
            several = isinstance(value, (list, dict))
            got = str(len(value)) if several else _got(value, secret)
            yield f"{path}: expected {broken}, got {got}"
            if several:
                return  # there may be a hundred thousand items
        origin = typing.get_origin(bare)
        if origin is tuple:
            item = typing.get_args(bare)[0]
            texts, controls = item is str or _is_given(item), _controls(item)
            if texts and _plain_texts(value, controls):
                return
            bounded = attrs.has(_bare(item))  # the cross-field check reports too many items
            for index, each in enumerate(value[: limits.groups] if bounded else value):
                if texts and type(each) is str and not controls.search(each):
                    continue
                yield from self.of(each, item, f"{path}[{index}]", limits, secret)
        elif isinstance(value, dict):
            yield from self._options(value, typing.get_args(bare)[1], path, limits)

    def _options(
        self, value: Mapping[str, Any], item: Any, path: str, limits: Limits
    ) -> Iterator[str]:
        """Faults of an object with any keys whose values are `item`."""
        scalars, controls = _takes_scalars(item), _controls(item)
        if scalars and _plain_options(value, controls):
            return
        of_scalars = not scalars and _takes_scalars(typing.get_args(_bare(item))[1])
        for key, each in value.items():
            if _CONTROL.search(key):
                yield f"{path}{step(key)}: {name_fault(key)}"
                continue
            kind = type(each)
            if scalars and kind in _SCALARS and not (kind is str and controls.search(each)):
                continue
            if of_scalars and kind is dict and _plain_options(each, _CONTROL_IN_TEXT):
                continue
            yield from self.of(each, item, path + step(key), limits, secret=True)

    def _object(self, value: Any, cls: type, path: str, limits: Limits) -> Iterator[str]:
        hints = self._hints.get(cls)
        if hints is None:
            hints = self._hints[cls] = typing.get_type_hints(cls, include_extras=True)
        known = {a.name: a for a in attrs.fields(cls)}
        secret = bool(getattr(cls, "secret", False))
        for key in value:
            if key not in known:
                yield f"{path}{step(key)}: unknown field{_advice(key, list(known))}"
        for name, attribute in known.items():
            if name in value:
                yield from self.of(value[name], hints[name], f"{path}.{name}", limits, secret)
            elif attribute.default is attrs.NOTHING:
                yield f"{path}.{name}: missing, expected {_expected(hints[name])}"
        cross = getattr(cls, "cross_faults", None)
        if cross is not None:
            yield from cross(value, path, limits)


def step(key: str) -> str:
    """The step of a JSON path for the key of an object."""
    cut = "…" if len(key) > _MOST_KEY else ""
    if not cut and _PLAIN_KEY.match(key):
        return "." + key
    shown = _CONTROL.sub("?", key[:_MOST_KEY]).replace('"', "'")
    return f'["{shown}{cut}"]'


def _advice(key: str, known: list[str]) -> str:
    near = nearest(key, known)
    return f"; did you mean {near}?" if near else f"; known are {', '.join(known)}"


def _same_kind(value: Any, hint: Any) -> bool:
    """Whether `value` has the JSON type of `hint`."""
    bare = _bare(hint)
    origin = typing.get_origin(bare)
    if bare is type(None):
        return value is None
    if bare is bool:
        return isinstance(value, bool)
    if bare is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if bare is str or origin is typing.Literal:
        return isinstance(value, str)
    if isinstance(bare, type) and issubclass(bare, enum.Enum):
        return isinstance(value, str)
    if origin is tuple:
        return isinstance(value, list)
    return isinstance(value, dict)


def _constraint(value: Any, hint: Any) -> str:
    """The constraint of `hint` that `value`, of the right JSON type, breaks; "" when none."""
    bare = _bare(hint)
    allowed = _allowed(bare)
    if allowed and value not in allowed:
        return "one of " + ", ".join(allowed)
    for meta in _metas(hint):
        if meta.ge is not None and value < meta.ge:
            return f"int >= {meta.ge}"
        if meta.le is not None and value > meta.le:
            return f"int <= {meta.le}"
        unit = "characters" if isinstance(value, str) else "items"
        if meta.min_length is not None and len(value) < meta.min_length:
            return f"at least {meta.min_length} {unit[:-1] if meta.min_length == 1 else unit}"
        if meta.max_length is not None and len(value) > meta.max_length:
            return f"at most {meta.max_length} {unit}"
        if meta.pattern is not None and not re.search(meta.pattern, value):
            return names.DESCRIPTIONS.get(meta.pattern, f"text matching {meta.pattern}")
    return ""


def _allowed(bare: Any) -> tuple[str, ...]:
    if typing.get_origin(bare) is typing.Literal:
        return typing.get_args(bare)
    if isinstance(bare, type) and issubclass(bare, enum.Enum):
        return tuple(str(member.value) for member in bare)
    return ()


def _expected(hint: Any) -> str:
    words: list[str] = []
    for choice in _alternatives(hint):
        bare = _bare(choice)
        if bare is type(None):
            continue
        origin = typing.get_origin(bare)
        allowed = _allowed(bare)
        if allowed:
            words.append("one of " + ", ".join(allowed))
        elif bare is bool:
            words.append("bool")
        elif bare is int:
            low = [m.ge for m in _metas(choice) if m.ge is not None]
            words.append(f"int >= {low[0]}" if low else "int")
        elif bare is str:
            words.append("string")
        else:
            words.append("array" if origin is tuple else "object")
    return " or ".join(words)


def _got(value: Any, secret: bool) -> str:
    """A short text for `value`: the start of a text, and only the type of a secret."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    if secret:
        return "a string" if isinstance(value, str) else type(value).__name__
    if isinstance(value, str):
        text = msgspec.json.encode(value[:60]).decode("utf-8")
        return f"{text}… ({len(value)} characters)" if len(value) > 60 else text
    return msgspec.json.encode(value).decode("utf-8")[:60]
