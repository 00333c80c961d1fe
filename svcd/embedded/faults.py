"""Failure injection as data: rules that the embedded services consult before they answer.

Deterministic: a rule matches by place, method and path, skips its first `after` hits and ends after
`times`. The first rule (in order of `add`) that takes a hit decides. Listeners get every call
before the rules, and may return a rule of their own.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen

from svcd.model.choices import nearest

PLACES: Final = (
    "identity",
    "compute",
    "image",
    "network",
    "volume",
    "object-store",
    "engine",
    "hdfs",
    "yarn",
    "ssh",
    "probe",
    "store",
)
"""Where a rule can apply."""


class Effect(enum.StrEnum):
    """The effect of a rule on a call that it takes."""

    ANSWER = "answer"  # `status`, `headers` and `body`; nothing is done
    TIMEOUT_BEFORE = "timeout_before"  # the service does nothing and never answers
    TIMEOUT_AFTER = "timeout_after"  # the service acts and never answers
    RESET_BEFORE = "reset_before"  # the service does nothing, the connection breaks
    RESET_AFTER = "reset_after"  # the service acts, the connection breaks
    REFUSED = "refused"  # no service listens (over sockets: as RESET_BEFORE)
    GARBAGE = "garbage"  # the service acts and answers 200 with `body`, or with nonsense
    DELAY = "delay"  # the service acts and answers after `delay_s`, if the caller waits
    LATE = "late"  # the same, also if the caller has gone (machines, probes: DELAY)


def _place(text: str) -> str:
    return _known(text, PLACES, "where", "places")


def _effect(text: str) -> Effect:
    return Effect(_known(text, list(Effect), "effect", "effects"))


def _known(text: str, known: Sequence[str], field_name: str, plural: str) -> str:
    if text in known:
        return text
    near = nearest(str(text), known)
    hint = f"did you mean {near}? " if near else ""
    raise ValueError(
        f"a fault rule cannot have {field_name}={text[:80]!r}: {hint}"
        f"known {plural} are {', '.join(known)}"
    )


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(
            f"a fault rule cannot have path={text[:80]!r}: it is no regular expression: {error}"
        ) from None
    return text


@frozen(kw_only=True)
class FaultRule:
    """One rule. Raises ValueError for a place, effect or path that cannot be.

    where: one of PLACES.
    method: HTTP method in capitals; "" is any.
    path: regular expression searched in the path with query (for ssh: in the command).
    times: how many hits it takes; None: all.
    after: hits that pass before the first one is taken.
    effect: what happens; `delay_s` is added before any effect.
    status, body, headers: the answer of Effect.ANSWER, for ssh the exit code and the output; body
    also of Effect.GARBAGE.
    """

    where: str = field(converter=_place)
    method: str = ""
    path: str = field(default="", converter=_expression)
    times: int | None = None
    after: int = 0
    effect: Effect = field(default=Effect.ANSWER, converter=_effect)
    status: int = 500
    body: str = ""
    headers: Mapping[str, str] = field(factory=dict)
    delay_s: float = 0.0

    def __attrs_post_init__(self) -> None:
        if self.where != "ssh" and self.status < 100:
            raise ValueError(f"status {self.status}: only ssh has exit codes; expected 100 to 599")


Listener = Callable[[str, str, str], FaultRule | None]
"""Gets where, method and path of a call. A rule that it returns replaces the added rules."""

GARBAGE = b"\x00\x01not what you asked for\xff"


class Handle:
    """A rule in force: `remove()` ends it, `hits()` counts the calls that it took."""

    def __init__(self, rule: FaultRule, in_force: list[Handle]) -> None:
        self.rule = rule
        self._in_force = in_force
        self._pattern = re.compile(rule.path)
        self._seen = 0
        self._hits = 0

    def hits(self) -> int:
        return self._hits

    def remove(self) -> None:
        """End the rule. Idempotent."""
        if self in self._in_force:
            self._in_force.remove(self)

    def takes(self, where: str, method: str, path: str) -> bool:
        """Whether the rule takes this call; then it counts."""
        rule = self.rule
        if rule.where != where or (rule.method and rule.method != method):
            return False
        if not self._pattern.search(path):
            return False
        self._seen += 1
        if self._seen <= rule.after or (rule.times is not None and self._hits >= rule.times):
            return False
        self._hits += 1
        return True


class Faults:
    """The rules in force."""

    def __init__(self) -> None:
        self._live: list[Handle] = []
        self._listeners: list[Listener] = []

    def add(self, rule: FaultRule | None = None, /, **fields: Any) -> Handle:
        """Add `rule`, or a rule made of `fields`, after the rules in force.

        Raises ValueError as FaultRule does.
        """
        rule = rule or FaultRule(**fields)
        handle = Handle(rule, self._live)
        self._live.append(handle)
        return handle

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every call, in order, before the call has any effect."""
        self._listeners.append(listener)

    def clear(self) -> None:
        """Remove all rules; listeners stay."""
        self._live.clear()

    def rules(self) -> Sequence[tuple[FaultRule, int]]:
        """The rules in force with their hits."""
        return [(handle.rule, handle.hits()) for handle in self._live]

    def match(self, where: str, method: str, path: str) -> FaultRule | None:
        """The rule that takes this call, and count the hit; None: the service behaves normally."""
        for listener in self._listeners:
            given = listener(where, method, path)
            if given is not None:
                return given
        for handle in self._live:
            if handle.takes(where, method, path):
                return handle.rule
        return None
