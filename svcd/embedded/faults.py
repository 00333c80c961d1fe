"""Failure injection as data: rules that the embedded services consult before they answer.

Deterministic: a rule matches by place, method and path, skips its first `after` hits and ends after
`times`. The first rule (in order of `add`) that takes a hit decides. Listeners hear of every call
before the rules are asked, and may answer with a rule of their own.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen


class Effect(enum.StrEnum):
    """What happens to a call that a rule takes."""

    ANSWER = "answer"  # `status`, `headers` and `body`; nothing is done
    TIMEOUT_BEFORE = "timeout_before"  # nothing is done, no answer ever
    TIMEOUT_AFTER = "timeout_after"  # it is done, no answer ever
    RESET_BEFORE = "reset_before"  # nothing is done, the connection breaks
    RESET_AFTER = "reset_after"  # it is done, the connection breaks
    REFUSED = "refused"  # nothing is done, nobody listens (over sockets: as RESET_BEFORE)
    GARBAGE = "garbage"  # it is done, the answer is 200 with `body`, or bytes that make no sense
    DELAY = "delay"  # it is done and answered, `delay_s` late, if somebody still waits then
    LATE = "late"  # the same, also when nobody waits any more (at machines and probes as DELAY)


@frozen(kw_only=True)
class FaultRule:
    """One rule.

    where: identity, compute, image, network, volume, object-store, engine, hdfs, yarn, ssh, store.
    method: HTTP method in capitals; "" is any.
    path: regular expression searched in the path with query (for ssh: in the command).
    times: how many hits it takes; None: all.
    after: hits that pass before the first one is taken.
    effect: what happens; `delay_s` is added before any effect.
    status, body, headers: the answer of Effect.ANSWER; body also of Effect.GARBAGE.
    """

    where: str
    method: str = ""
    path: str = ""
    times: int | None = None
    after: int = 0
    effect: Effect = field(default=Effect.ANSWER, converter=Effect)
    status: int = 500
    body: str = ""
    headers: Mapping[str, str] = field(factory=dict)
    delay_s: float = 0.0


Listener = Callable[[str, str, str], FaultRule | None]
"""Told where, method and path of a call; what it answers is played instead of the rules."""

Fault = FaultRule
"""What `Faults.match` answers: the rule whose effect applies."""

GARBAGE = b"\x00\x01not what you asked for\xff"


class _Live:
    """A rule that was added, with its counters."""

    __slots__ = ("hits", "pattern", "rule", "seen")

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self.pattern = re.compile(rule.path)
        self.seen = 0
        self.hits = 0

    def takes(self, where: str, method: str, path: str) -> bool:
        rule = self.rule
        if rule.where != where or (rule.method and rule.method != method):
            return False
        if not self.pattern.search(path):
            return False
        self.seen += 1
        if self.seen <= rule.after or (rule.times is not None and self.hits >= rule.times):
            return False
        self.hits += 1
        return True


@frozen
class Handle:
    """A rule in force: `remove()` ends it, `hits()` says how often it was taken."""

    rule: FaultRule
    hits: Callable[[], int]
    remove: Callable[[], None]


class Faults:
    """The rules in force."""

    def __init__(self) -> None:
        self._live: list[_Live] = []
        self._listeners: list[Listener] = []

    def add(self, rule: FaultRule | None = None, /, **fields: Any) -> Handle:
        """Put `rule`, or one made of `fields`, in force behind those that are.

        Raises re.error for a bad `path`.
        """
        rule = rule or FaultRule(**fields)
        live = _Live(rule)
        self._live.append(live)

        def remove() -> None:
            if live in self._live:
                self._live.remove(live)

        return Handle(rule, lambda: live.hits, remove)

    def listen(self, listener: Listener) -> None:
        """Tell `listener` of every call, in order, before it has any effect."""
        self._listeners.append(listener)

    def clear(self) -> None:
        """No rule any more; listeners stay."""
        self._live.clear()

    def rules(self) -> Sequence[tuple[FaultRule, int]]:
        """The rules in force with their hits."""
        return [(each.rule, each.hits) for each in self._live]

    def match(self, where: str, method: str, path: str) -> Fault | None:
        """The rule that takes this call, which then counts as a hit; None: behave."""
        for listener in self._listeners:
            told = listener(where, method, path)
            if told is not None:
                return told
        if not self._live:
            return None
        for live in self._live:
            if live.takes(where, method, path):
                return live.rule
        return None
