"""What a row of the suite is, how an answer is matched, and how a chapter runs.

A row is one request with the sentence of the interface (or of the behaviour page) that it shows.
Texts may hold `{names}`: of the target, or saved by an earlier row of the chapter. A chapter runs
to its end and reports every row that failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from attrs import field, frozen


class Answer(Protocol):
    """headers: lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any: ...


class Target(Protocol):
    """A running service.

    values: `tenant`, `image_id`, `flavor_id`, `keypair`, `plugin`, `version`, `run` (part of names,
    unique). features: of {"commands", "build", "engine"}: what is behind the door.
    """

    values: Mapping[str, str]
    features: frozenset[str]

    async def call(
        self,
        method: str,
        path: str,
        json: Any = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer: ...

    async def wait(self, seconds: float) -> None:
        """Let the service work."""
        ...


@frozen
class Only:
    """An object with exactly these keys; those in `optional` may be missing."""

    keys: Mapping[str, Any]
    optional: Mapping[str, Any] = field(factory=dict)


@frozen
class Each:
    """An array whose items all match."""

    item: Any


@frozen
class Has:
    """An array with an item that matches."""

    item: Any


@frozen
class Either:
    """One of several."""

    choices: tuple[Any, ...]


@frozen
class Holds:
    """A text that holds all of these."""

    parts: tuple[str, ...]


class _Absent:
    """The key must not be there."""


ABSENT = _Absent()
STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\Z")
STAMP_T = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\Z")
ID = re.compile(r".+\Z")


def mismatch(value: Any, pattern: Any, path: str = "$") -> str:
    """What is wrong with `value`; "" when it matches.

    A class: of that type (bool is no int). A compiled pattern: a text that it matches. An object:
    at least these keys. Else: equal.
    """
    if isinstance(pattern, Either):
        tried = [mismatch(value, each, path) for each in pattern.choices]
        return "" if "" in tried else " / ".join(tried)
    if isinstance(pattern, Holds):
        missing = [p for p in pattern.parts if not isinstance(value, str) or p not in value]
        return f"{path}: {value!r} does not hold {missing}" if missing else ""
    if isinstance(pattern, (Each, Has)):
        if not isinstance(value, list):
            return f"{path}: {value!r} is no array"
        tried = [mismatch(v, pattern.item, f"{path}[{i}]") for i, v in enumerate(value)]
        if isinstance(pattern, Each):
            return next((t for t in tried if t), "")
        return "" if "" in tried else f"{path}: no item matches {pattern.item!r}"
    if isinstance(pattern, Only):
        if not isinstance(value, dict):
            return f"{path}: {value!r} is no object"
        extra = set(value) - set(pattern.keys) - set(pattern.optional)
        if extra:
            return f"{path}: unexpected {sorted(extra)}"
        given = {k: p for k, p in pattern.optional.items() if k in value}
        return mismatch(value, {**pattern.keys, **given}, path)
    if isinstance(pattern, dict):
        if not isinstance(value, dict):
            return f"{path}: {value!r} is no object"
        for key, each in pattern.items():
            if each is ABSENT:
                if key in value:
                    return f"{path}.{key}: should not be there"
            elif key not in value:
                return f"{path}.{key}: missing"
            else:
                wrong = mismatch(value[key], each, f"{path}.{key}")
                if wrong:
                    return wrong
        return ""
    if isinstance(pattern, list):
        if not isinstance(value, list) or len(value) != len(pattern):
            return f"{path}: {value!r} is not {len(pattern)} items"
        pairs = enumerate(zip(value, pattern, strict=True))
        return next((w for i, (v, p) in pairs if (w := mismatch(v, p, f"{path}[{i}]"))), "")
    if isinstance(pattern, type):
        right = type(value) is pattern
        return "" if right else f"{path}: {value!r} is no {pattern.__name__}"
    if isinstance(pattern, re.Pattern):
        right = isinstance(value, str) and pattern.match(value) is not None
        return "" if right else f"{path}: {value!r} does not match {pattern.pattern}"
    right = type(value) is type(pattern) and value == pattern
    return "" if right else f"{path}: {value!r} is not {pattern!r}"


@frozen(kw_only=True)
class Row:
    """One request and what its answer must be.

    status: of the answer. body: pattern of its JSON. error: `error_name` (then the body must have
    the three attributes and no others). headers: patterns by lower-case name. raw: the exact body.
    save: name -> path of keys in the JSON. needs: features without which the row is left out.
    wait_s: time given to the service before. until: repeat with waits until the answer is right.
    """

    says: str
    method: str = "GET"
    path: str
    json: Any = None
    data: bytes | None = None
    send: Mapping[str, str] = field(factory=dict)
    status: int = 200
    body: Any = None
    error: str | None = None
    message: Any = str
    headers: Mapping[str, Any] = field(factory=dict)
    raw: bytes | None = None
    save: Mapping[str, Sequence[str | int]] = field(factory=dict)
    needs: frozenset[str] = frozenset()
    until: bool = False
    wait_s: float = 0.0


def filled(value: Any, values: Mapping[str, str]) -> Any:
    """`value` with the `{names}` in its texts replaced."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda m: values.get(m.group(1), m.group(0)), value)
    if isinstance(value, dict):
        return {filled(k, values): filled(v, values) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(filled(v, values) for v in value)
    if isinstance(value, Only):
        return Only(filled(value.keys, values), filled(value.optional, values))
    if isinstance(value, Each):
        return Each(filled(value.item, values))
    if isinstance(value, Has):
        return Has(filled(value.item, values))
    if isinstance(value, Either):
        return Either(filled(value.choices, values))
    if isinstance(value, Holds):
        return Holds(filled(value.parts, values))
    return value


def _filled_bytes(data: bytes | None, values: Mapping[str, str]) -> bytes | None:
    return None if data is None else filled(data.decode("latin-1"), values).encode("latin-1")


def fault(row: Row, answer: Answer, values: Mapping[str, str]) -> str:
    """What is wrong with the answer; "" when nothing."""
    if answer.status != row.status:
        return f"status {answer.status}, not {row.status}: {answer.body[:300]!r}"
    for name, pattern in {"x-request-id": ID, **row.headers}.items():
        if pattern is ABSENT:
            if name in answer.headers:
                return f"header {name} should not be there"
        elif name not in answer.headers:
            return f"header {name} is missing"
        else:
            wrong = mismatch(answer.headers[name], filled(pattern, values), name)
            if wrong:
                return wrong
    if row.raw is not None and answer.body != row.raw:
        return f"the body is {answer.body[:100]!r}"
    if row.error is not None:
        if answer.headers.get("content-type") != "application/json":
            return f"content type {answer.headers.get('content-type')} of an error"
        pattern = Only(
            {"error_code": row.status, "error_name": row.error, "error_message": row.message}
        )
        return mismatch(answer.json, filled(pattern, values))
    if row.body is not None:
        return mismatch(answer.json, filled(row.body, values))
    return ""


async def run(rows: Sequence[Row], target: Target, log: Callable[[str], None] = print) -> list[str]:
    """Run a chapter; the faults, each with its row's sentence and request."""
    values = dict(target.values)
    faults: list[str] = []
    for row in rows:
        if not row.needs <= target.features:
            continue
        path = filled(row.path, values)
        if row.wait_s:
            await target.wait(row.wait_s)
        for _ in range(600 if row.until else 1):
            answer = await target.call(
                row.method,
                path,
                json=filled(row.json, values),
                data=_filled_bytes(row.data, values),
                headers=filled(dict(row.send), values),
            )
            wrong = fault(row, answer, values)
            if not wrong or not row.until:
                break
            await target.wait(1.0)
        if wrong:
            faults.append(f"{row.says}\n    {row.method} {path}: {wrong}")
            continue
        for name, keys in row.save.items():
            found = answer.json
            for key in keys:
                found = found[key]
            values[name] = str(found)
    return faults
