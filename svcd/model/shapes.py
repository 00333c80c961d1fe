"""Checks a request body by the annotations of its class, and reports all its faults at once.

msgspec decodes the JSON into a tree without types. The checks of a class, compiled once from its
annotations, walk the tree and collect every fault with its JSON path. Without a fault msgspec
converts the tree into the class by the same annotations; what it refuses is reported with its text.

Note: bounded cost. A body of a megabyte holds a hundred thousand values, and a check takes
microseconds for each. So objects of options are checked as a whole, by their types and one search.
Groups beyond the operator's limit are counted and not checked. The walk ends after `MAX_FAULTS`.

Note: control characters. A `str` without constraints is a text: an option's value, an argument. It
may contain tab and line feed, as may a `str` whose constraints are marked with `lines`: a
description. A text that is marked with `given` is for a program: it may contain any but U+0000, at
which texts of Linux end. Any other `str` with constraints is a name, a reference or a part of an
account: it may contain no control character. A key may contain none either.

Note: why the garbage collector is off while a large body is decoded. The values of a body are a
tree, so the collector can free no part of it, but it walks the growing tree again and again: a
megabyte of empty arrays takes 0.2 s instead of 0.02 s (measured), in which svcd serves no other
request.

Duplicate keys: the last one wins, as in every JSON library.
"""

from __future__ import annotations

import enum
import gc
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import attrs
import msgspec

from svcd.errors import MalformedBody, ValidationError
from svcd.model import fields, names
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
_SCALARS = frozenset({str, int, bool})
_LARGE_BYTES = 65_536
"""Size of a body from which the garbage collector is off while it is decoded."""
_MOST_KEY = 60
"""Most characters of a key in a path."""
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_untyped: msgspec.json.Decoder[Any] = msgspec.json.Decoder()

_Check = Callable[[Any, str, Limits], Iterator[str]]
"""(value, its JSON path, limits) -> the faults."""


class Shape(Generic[T]):
    """The shape `cls` of a body. Its checks are compiled when the first such body comes."""

    def __init__(self, cls: type[T]) -> None:
        self.cls = cls

    @cached_property
    def _check(self) -> _Check:
        return _check_of(self.cls)

    def decode(self, body: bytes, limits: Limits) -> T:
        """The request. Raises MalformedBody, or ValidationError with one line for each fault."""
        return self.convert(_tree_of(body), limits)

    def convert(self, tree: Any, limits: Limits) -> T:
        """The request of a decoded body. Raises ValidationError."""
        faults = self.faults(tree, limits)
        if faults:
            raise ValidationError.of(faults)
        try:
            return msgspec.convert(tree, self.cls)
        except msgspec.ValidationError as error:
            raise ValidationError(str(error)) from None

    def faults(self, tree: Any, limits: Limits) -> list[str]:
        """All faults of the decoded JSON `tree`, each with its JSON path."""
        faults_: list[str] = []
        for fault in self._check(tree, "$", limits):
            faults_.append(fault)
            if len(faults_) == MAX_FAULTS:
                return [*faults_, "and more"]
        return faults_


def _tree_of(body: bytes) -> Any:
    quiet = len(body) >= _LARGE_BYTES and gc.isenabled()
    if quiet:
        gc.disable()
    try:
        return _untyped.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(body, error) from None
    finally:
        if quiet:
            gc.enable()


def _malformed(body: bytes, error: Exception) -> MalformedBody:
    if not body.strip():
        return MalformedBody("the body is empty: send a JSON object")
    if isinstance(error, UnicodeDecodeError):
        return MalformedBody("the body is not UTF-8 JSON: it contains bytes that are not UTF-8")
    if isinstance(error, RecursionError):
        return MalformedBody("the body is not usable JSON: it is nested too deeply")
    return MalformedBody(f"the body is not UTF-8 JSON: {str(error)[:200]}")


# ---- the checks of a type -----------------------------------------------------------------------


def _check_of(hint: Any, secret: bool = False) -> _Check:
    """The check of a value where `hint` is expected. secret: no fault may show the value."""
    controls, expected = _controls(hint), _expected(hint)
    hidden = secret or _holds_secrets(hint)
    checks: dict[type, _Check] = {}
    for choice in _alternatives(hint):
        checks.setdefault(_json_type(choice), _choice_check(choice, secret))

    def check(value: Any, path: str, limits: Limits) -> Iterator[str]:
        if type(value) is str and (control := controls.search(value)):
            yield f"{path}: control character U+{ord(control.group()):04X} is not allowed"
        elif (choice := checks.get(type(value))) is not None:
            yield from choice(value, path, limits)
        else:
            yield f"{path}: expected {expected}, got {_got(value, hidden)}"

    return check


def _json_type(hint: Any) -> type:
    """The type of a decoded value of `hint`, which is no union."""
    bare = _bare(hint)
    origin = typing.get_origin(bare)
    if bare in (bool, int, str, types.NoneType):
        return typing.cast("type", bare)
    if origin is typing.Literal or (isinstance(bare, type) and issubclass(bare, enum.Enum)):
        return str
    return list if origin is tuple else dict


def _choice_check(hint: Any, secret: bool) -> _Check:
    """The check of a value that has the JSON type of `hint`, which is no union."""
    bare = _bare(hint)
    if attrs.has(bare):
        return _object_check(bare)
    kind = _json_type(hint)
    if kind is list:
        return _bounded(hint, _items_check(typing.get_args(bare)[0], secret))
    if kind is dict:
        return _bounded(hint, _options_check(typing.get_args(bare)[1]))
    allowed, metas = _allowed(bare), _metas(hint)

    def check(value: Any, path: str, limits: Limits) -> Iterator[str]:
        broken = _constraint(value, allowed, metas)
        if broken:
            yield f"{path}: expected {broken}, got {_got(value, secret)}"

    return check


def _bounded(hint: Any, inner: _Check) -> _Check:
    """The check of an array or object: `inner`, when it has no more items than `hint` allows."""
    metas = _metas(hint)

    def check(value: Any, path: str, limits: Limits) -> Iterator[str]:
        broken = _constraint(value, (), metas)
        if broken:  # a hundred thousand items may follow
            yield f"{path}: expected {broken}, got {len(value)}"
        else:
            yield from inner(value, path, limits)

    return check


def _items_check(item: Any, secret: bool) -> _Check:
    """The check of the items of an array."""
    texts, controls = item is str or _is_given(item), _controls(item)
    is_object = attrs.has(_bare(item))
    inner = _check_of(item, secret)

    def check(value: Any, path: str, limits: Limits) -> Iterator[str]:
        if texts and _plain_texts(value, controls):
            return
        # the cross-field check reports too many objects
        for index, element in enumerate(value[: limits.groups] if is_object else value):
            if texts and type(element) is str and not controls.search(element):
                continue
            yield from inner(element, f"{path}[{index}]", limits)

    return check


def _options_check(item: Any) -> _Check:
    """The check of an object with any keys whose values are `item`."""
    scalars, controls = _takes_scalars(item), _controls(item)
    of_scalars = not scalars and _takes_scalars(typing.get_args(_bare(item))[1])
    inner = _check_of(item, secret=True)

    def check(value: Any, path: str, limits: Limits) -> Iterator[str]:
        if scalars and _plain_options(value, controls):
            return
        for key, option in value.items():
            kind = type(option)
            if _CONTROL.search(key):
                yield f"{path}{step(key)}: {name_fault(key)}"
            elif not (
                (scalars and kind in _SCALARS and not (kind is str and controls.search(option)))
                or (of_scalars and kind is dict and _plain_options(option, _CONTROL_IN_TEXT))
            ):
                yield from inner(option, path + step(key), limits)

    return check


def _object_check(cls: type) -> _Check:
    """The check of an object with the fields of `cls`."""
    hints = typing.get_type_hints(cls, include_extras=True)
    secret = bool(getattr(cls, "secret", False))
    known = {a.name: _check_of(hints[a.name], secret) for a in attrs.fields(cls)}
    needed = {
        a.name: _expected(hints[a.name]) for a in attrs.fields(cls) if a.default is attrs.NOTHING
    }
    cross = getattr(cls, "cross_faults", None)
    of_1_0 = {name: inner for name, inner in known.items() if name not in fields.SINCE_1_1}

    def check(value: Any, path: str, limits: Limits) -> Iterator[str]:
        fitting = known if limits.since_1_1 else of_1_0
        if not value.keys() <= fitting.keys():
            for key in value:
                if key not in fitting:
                    yield f"{path}{step(key)}: unknown field{_unknown(key, known, fitting)}"
        for name, inner in fitting.items():
            if name in value:
                yield from inner(value[name], f"{path}.{name}", limits)
            elif name in needed:
                yield f"{path}.{name}: missing, expected {needed[name]}"
        if cross is not None:
            yield from cross(value, path, limits)

    return check


# ---- what the annotations say -------------------------------------------------------------------


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def _alternatives(hint: Any) -> tuple[Any, ...]:
    bare = _bare(hint)
    if typing.get_origin(bare) in (typing.Union, types.UnionType):
        return tuple(part for part in typing.get_args(bare) if part is not msgspec.UnsetType)
    return (hint,)


def _holds_secrets(hint: Any) -> bool:
    """Whether a value of this type may be a secret: credentials, options."""
    return any(
        getattr(bare, "secret", False) or typing.get_origin(bare) is Mapping
        for bare in map(_bare, _alternatives(hint))
    )


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


def _takes_scalars(hint: Any) -> bool:
    """Whether the type is the union of str, int and bool, as of options."""
    return frozenset(map(_bare, _alternatives(hint))) == _SCALARS


def _plain_options(value: Mapping[str, Any], controls: re.Pattern[str]) -> bool:
    """Whether an object of options has no fault. It uses no loop in Python."""
    if not _SCALARS.issuperset(map(type, value.values())):
        return False
    texts = "".join(item for item in value.values() if type(item) is str)
    return not _CONTROL.search("".join(value)) and not controls.search(texts)


def _plain_texts(value: Sequence[Any], controls: re.Pattern[str]) -> bool:
    """Whether a list of texts has no fault."""
    return {str}.issuperset(map(type, value)) and not controls.search("".join(value))


def step(key: str) -> str:
    """The step of a JSON path for the key of an object."""
    cut = "…" if len(key) > _MOST_KEY else ""
    if not cut and _PLAIN_KEY.match(key):
        return "." + key
    shown = _CONTROL.sub("?", key[:_MOST_KEY]).replace('"', "'")
    return f'["{shown}{cut}"]'


def _unknown(key: str, known: Iterable[str], fitting: Iterable[str]) -> str:
    """The remedy for an unknown field. fitting: the known ones of the version of the request."""
    if key in known:
        return " of v1.0; send the request to v1.1"
    near = nearest(key, fitting)
    return f"; did you mean {near}?" if near else f"; known are {', '.join(fitting)}"


def _constraint(value: Any, allowed: Sequence[str], metas: Sequence[msgspec.Meta]) -> str:
    """The constraint that `value`, of the right JSON type, breaks; "" when none."""
    if allowed and value not in allowed:
        return "one of " + ", ".join(allowed)
    for meta in metas:
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
