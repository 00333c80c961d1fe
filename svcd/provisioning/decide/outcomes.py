"""Turns outcomes of steps into histories, events, a failure and fields of the row. Pure.

The random part of a back-off comes from the `rng` argument.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

from attrs import evolve, frozen

from svcd.model.backoff import Backoff
from svcd.model.cluster import Cluster, ClusterEvent, ClusterStatus, Desired, StepName
from svcd.model.ids import InstanceId
from svcd.provisioning.decide import events, lifecycle
from svcd.provisioning.decide.failures import Code
from svcd.provisioning.decide.planner import Plan
from svcd.provisioning.decide.removal import access_being_given_up
from svcd.provisioning.decide.steps import (
    NO_SPAN,
    AnyStep,
    Distribute,
    Done,
    Fail,
    Interrupted,
    Memory,
    Outcome,
    Prepare,
    Reach,
    Retry,
    RunScript,
    Span,
    Tried,
    Wait,
)
from svcd.settings import Provisioning

Outcomes = Sequence[tuple[AnyStep, Outcome]]

OBSERVE: Final = "observe"
"""Key of the reads of the cloud's lists in a cluster's memory."""
_RETRY: Final = Backoff(first_s=0.5, most_s=30.0)
_WAIT: Final = Backoff(first_s=0.2, most_s=2.0, jitter=0.1)
_FIRST_PASS_S: Final = 0.1
"""Time to the first pass after one that only waited; it grows with each pass."""
_MOST_REFUSALS: Final = 5
"""Refusals in a row of the cloud's lists; then the work fails."""
_PASSING: Final = frozenset({Code.CLOUD_UNAVAILABLE, Code.CLOUD_BUSY, Code.PHASE_TIMEOUT})
_NO_TIMES: Final[Mapping[str, tuple[float, float]]] = {}
_ON_MACHINES: Final = (Reach, Prepare, Distribute, RunScript)


@frozen(kw_only=True)
class Learned:
    """The results of outcomes. memory: with the histories. failure: the first one, or None."""

    memory: Memory
    events: Sequence[ClusterEvent]
    failure: Fail | None


def only_on_machines(steps: Sequence[AnyStep]) -> bool:
    """Whether the steps change only machines, and no servers, volumes or addresses in the cloud."""
    return all(isinstance(s, _ON_MACHINES) for s in steps)


def tried(before: Tried, outcome: Outcome, now: float, rng: random.Random) -> Tried:
    """The history of a step after one more outcome."""
    count = before.failures + 1
    match outcome:
        case Done(repeat_s=repeat_s):
            return Tried(done=True, not_before=now + repeat_s if repeat_s else 0.0)
        case Wait(reason=reason, code=code, seconds=seconds):
            delay = max(seconds, _WAIT.delay_s(count, rng))
            return Tried(failures=count, not_before=now + delay, reason=reason, code=code)
        case Retry(reason=reason, code=code, after_s=after_s):
            delay = max(after_s or 0.0, _RETRY.delay_s(count, rng))
            return Tried(failures=count, not_before=now + delay, reason=reason, code=code)
        case Fail(reason=reason, code=code):
            return Tried(failures=count, reason=reason, code=code)
        case Interrupted():
            return before
        case _:
            assert_never(outcome)


def observed(memory: Memory, trouble: Retry | None, now: float, rng: random.Random) -> Memory:
    """`memory` after a read of the cloud's lists. trouble: the reason of a failed read."""
    if trouble is None and OBSERVE not in memory.tried:
        return memory
    histories = {k: v for k, v in memory.tried.items() if k != OBSERVE}
    if trouble is not None:
        histories[OBSERVE] = tried(memory.of(OBSERVE), trouble, now, rng)
    return evolve(memory, tried=histories)


def _span(memory: Memory, step: AnyStep, times: tuple[float, float] | None) -> Span:
    """The span of the attempt that has ended now. times: begin and end of the last try."""
    if times is None:
        return NO_SPAN
    waited = memory.of(step.key).span  # without an end while the step waits
    if waited.began is not None and waited.ended is None:
        return evolve(waited, ended=times[1])
    return Span(began=times[0], ended=times[1], waited_for=memory.last)


def learned(
    cluster: Cluster,
    memory: Memory,
    outcomes: Outcomes,
    now: float,
    rng: random.Random,
    times: Mapping[str, tuple[float, float]] = _NO_TIMES,
) -> Learned:
    """The new memory, the events to record, and the failure of the work, if any.

    times: begin and end of each try, by the key of its step.
    """
    failure: Fail | None = None
    made: list[ClusterEvent] = []
    histories = dict(memory.tried)
    last, last_at = memory.last, 0.0

    def add(step: AnyStep, outcome: str, text: str = "", code: str = "", count: int = 0) -> None:
        made.append(
            lifecycle.event(
                cluster, step.what, outcome, now, text, step.machine, code, count, span=span
            )
        )

    for step, outcome in outcomes:
        span = _span(memory, step, times.get(step.key))
        if isinstance(outcome, Wait):
            span = evolve(span, ended=None)
        history = tried(memory.of(step.key), outcome, now, rng)
        if not isinstance(outcome, Interrupted):
            history = evolve(history, span=span)
        histories[step.key] = history
        count = history.failures
        match outcome:
            case Done(quiet=False, text=text):
                add(step, "done", text)
                if span.ended is not None and span.ended >= last_at:
                    last, last_at = StepName(step=step.what, machine=step.machine), span.ended
            case Wait(code=code, reason=reason):
                if count in events.RECORDED_WAITS:
                    add(step, "waiting", reason, code, count)
            case Retry(code=code, reason=reason, limit=limit):
                if count <= 3 or count % 10 == 0:
                    add(step, "retry", reason, code, count)
                if limit is not None and count >= limit and failure is None:
                    text = f"{reason} ({count} tries)"
                    failure = Fail(code=code, reason=text, machine=step.machine)
            case Fail(code=code, reason=reason):
                if not isinstance(step, Distribute):  # its stage has recorded it
                    add(step, "failed", reason, code)
                failure = failure or evolve(outcome, machine=outcome.machine or step.machine)
            case _:
                pass
    progress = any(isinstance(o, Done) for _, o in outcomes)
    after = evolve(memory, tried=histories, idle=0 if progress else memory.idle, last=last)
    return Learned(memory=after, events=made, failure=failure)


def known(cluster: Cluster, outcomes: Outcomes) -> Cluster:
    """`cluster` with the field values that the outcomes carry."""
    changes: dict[InstanceId, dict[str, Any]] = {}
    fields: dict[str, Any] = {}
    for _, outcome in outcomes:
        if isinstance(outcome, Done):
            fields.update(outcome.cluster)
        if isinstance(outcome, Done | Retry | Fail):
            for instance_id, change in outcome.instances.items():
                changes.setdefault(instance_id, {}).update(change)
    merged = lifecycle.with_instances(cluster, changes)
    return evolve(merged, **fields) if fields else merged


def hopeless(cluster: Cluster, memory: Memory) -> Fail | None:
    """The failure of the work when the cloud keeps refusing its lists; None: wait.

    A deletion waits in any case, unless its trust is lost: only a new request replaces the trust.
    """
    trouble = memory.of(OBSERVE)
    if trouble.code in _PASSING or trouble.failures < _MOST_REFUSALS:
        return None
    if cluster.desired is Desired.DELETED or cluster.status is ClusterStatus.ERROR:
        lost = trouble.code is Code.CREDENTIALS_EXPIRED and cluster.trust_id is not None
        if not lost or cluster.force_delete or access_being_given_up(cluster, memory):
            return None
    return Fail(code=trouble.code, reason=f"{trouble.reason} ({trouble.failures} tries)")


def wait_s(
    cluster: Cluster, planned: Plan, memory: Memory, settings: Provisioning, now: float
) -> float:
    """Seconds until the next pass: short at first, never past a deadline or a step's time."""
    delay = min(settings.poll_s, _FIRST_PASS_S * 1.5 ** min(memory.idle, 20))
    times = [memory.of(s.key).not_before - now for s in planned.steps]
    if OBSERVE in memory.tried:
        times.append(memory.of(OBSERVE).not_before - now)
    if times and not planned.waiting:
        delay = min(times)
    elif times:
        delay = min(delay, *times)
    left = lifecycle.remaining_s(cluster, settings, now)
    return max(0.01, min(delay, left + 0.001))
