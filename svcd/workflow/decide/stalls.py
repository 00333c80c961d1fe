"""Judges steps that run without a change, by answers of the cluster's ResourceManager. Pure.

The engine's record of a step shows RUNNING for hours while the step runs, and also while YARN has
no machine for the step or is gone. So svcd asks the ResourceManager about steps that have been
running for `QUIET_S`, every `LOOK_S`.

Note: the end of a stalled job. svcd kills a job at the engine only when no node takes work, or the
ResourceManager does not answer, for as long as an engine may be silent, and this daemon has found
this twice. A job that YARN holds back waits without a limit: a busy cluster is no fault.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from attrs import evolve, frozen

from svcd.model.engine_record import Action, Record, number_of
from svcd.model.failures import Code
from svcd.model.ids import ExecutionId, Timestamp, seconds_of, timestamp
from svcd.model.job import Execution, ExecutionStatus, Failure, Waiting
from svcd.workflow.decide import failures
from svcd.workflow.decide.lifecycle import waiting_for

QUIET_S: Final = 30.0
"""svcd does not ask about a step before it has run for this time."""

LOOK_S: Final = 20.0
"""Time between two rounds of requests to one ResourceManager."""

_SOON_S: Final = 5.0
"""The same while a new step of type java may have submitted a program that is not known yet."""

_NEW_S: Final = 90.0
"""A step is new for this time."""

_ROUNDS: Final = 2
"""Rounds in a row with a trouble; then svcd accepts it."""
_OURS: Final = frozenset(
    {Code.STEP_WAITS, Code.RESOURCES_UNREACHABLE, Code.NO_WORKERS, Code.NO_SPACE}
)
_HELD: Final = frozenset({"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED"})
SPARK: Final = "SPARK"
"""YARN's type of an application of Spark."""
LAUNCHER: Final = "oozie:launcher:"
"""The beginning of the name of an application that only starts an action's program or job."""
_BEGUN: Final = "AM container is launched"
"""YARN's words on an accepted application that has got its first container."""
_WHEN: Final = re.compile(r"^\[[^\]]*\] *")
_FULL: Final = re.compile(
    r"used space above threshold|free space below limit|no more usable space|No space left"
)
_MOST_NODES: Final = 10
"""Nodes that a text names."""

StepKey = tuple[str, str]
"""The key of one run of a step: id and name of the action."""


@frozen(kw_only=True)
class Node:
    """A node that takes no work. name: of its machine, else its host; report: on its health."""

    name: str
    state: str
    report: str = ""


@frozen(kw_only=True)
class Application:
    """A YARN application. age_s: since YARN has taken it.

    progress: 0.0 to 1.0, as the application's master has reported it.
    tags: those of the engine name the action that the application belongs to. kind: YARN's type,
    for example SPARK. tracking_url: a page about it. containers: that run, its master too; None
    when not known. wants: the containers for which YARN has no room yet, or "". logs: the page of
    its first container.
    """

    id: str
    name: str
    state: str
    age_s: float
    progress: float = 0.0
    tags: frozenset[str] = frozenset()
    diagnostics: str = ""
    kind: str = ""
    tracking_url: str = ""
    containers: int | None = None
    wants: str = ""
    logs: str = ""


@frozen(kw_only=True)
class ClusterMetrics:
    """Answers of the ResourceManager from one round of requests.

    error: why there was no answer, "" with one. active: number of nodes that take work, None when
    it is not known; idle: the other nodes, asked for only when none takes work. applications: None
    when they are not known, or not all.
    """

    error: str = ""
    active: int | None = None
    idle: Sequence[Node] = ()
    applications: Sequence[Application] | None = None

    @cached_property
    def _by_number(self) -> Mapping[str, Sequence[int]]:
        """The places of the applications in their list, by their numbers."""
        places: dict[str, list[int]] = {}
        for place, application in enumerate(self.applications or ()):
            places.setdefault(number_of(application.id), []).append(place)
        return places

    @cached_property
    def _by_tag(self) -> Mapping[str, Sequence[int]]:
        """The same by each of their tags."""
        places: dict[str, list[int]] = {}
        for place, application in enumerate(self.applications or ()):
            for tag in application.tags:
                places.setdefault(tag, []).append(place)
        return places

    def applications_of(self, action: Action) -> Sequence[Application]:
        """The applications of an action: its launcher, and the jobs that the launcher started."""
        places = set(self._by_tag.get(tag_of(action.id), ()))
        for number in action.numbers:
            places.update(self._by_number.get(number, ()))
        known = self.applications or ()
        return [known[place] for place in sorted(places)]


@frozen(kw_only=True)
class Verdict:
    """The judgement on a step. failure: the reason of a wait, or None. ends: the wait has a limit.

    sure: False when it is not known whether YARN holds the job back.
    """

    failure: Failure | None = None
    ends: bool = False
    sure: bool = True


@frozen(kw_only=True)
class Memory:
    """The memory of one daemon about the steps of one cluster; a restart may lose it.

    steps: the time when svcd first saw each running step. asked_at: the time of the last round of
    requests. troubles: rounds in a row in which no node could run a job. measured_at: the time of
    the last request for progress.
    """

    steps: Mapping[ExecutionId, tuple[StepKey, float]] = {}
    asked_at: float = float("-inf")
    troubles: int = 0
    measured_at: float = float("-inf")


def is_ours(row: Execution) -> bool:
    """Whether this module found the wait of `row`; the engine does not show such waits."""
    waiting = row.waiting
    if row.status is not ExecutionStatus.RUNNING or waiting is None or waiting.code not in _OURS:
        return False
    return row.engine_record.launched is not None


def kept(row: Execution, record: Record) -> Waiting | None:
    """The wait of `row` that its new record does not end: the same step still runs."""
    same = row.engine_record.running == record.running
    return row.waiting if same and is_ours(row) else None


def consider(
    memory: Memory, rows: Sequence[Execution], now: float
) -> tuple[Memory, Sequence[Execution]]:
    """The new memory, and the rows to ask the ResourceManager about now.

    rows: those of a cluster whose engine has just answered.
    """
    steps: dict[ExecutionId, tuple[StepKey, float]] = {}
    quiet = []
    for row in rows:
        if row.status is not ExecutionStatus.RUNNING or row.cancel_requested:
            continue
        step = row.engine_record.running
        if step is None:
            continue
        known = memory.steps.get(row.id)
        seen = steps[row.id] = (step, now) if known is None or known[0] != step else known
        waits = row.waiting is not None
        if is_ours(row) if waits else now - seen[1] >= QUIET_S:
            quiet.append(row)
    memory = evolve(memory, steps=steps)
    if not quiet:
        return evolve(memory, troubles=0), ()
    if now - memory.asked_at < LOOK_S:
        return memory, ()
    return evolve(memory, asked_at=now), quiet


def to_measure(
    memory: Memory, rows: Sequence[Execution], now: float, asks: bool
) -> tuple[Memory, Sequence[Execution]]:
    """The new memory, and the rows whose progress svcd reads now: all running ones, or none.

    memory: the result of `consider`. asks: svcd asks the ResourceManager in any case.
    """
    running = [row for row in rows if row.id in memory.steps]
    new = any(now - memory.steps[row.id][1] < _NEW_S and _may_submit(row) for row in running)
    pause_s = _SOON_S if new else LOOK_S
    if not running or (not asks and now - memory.measured_at < pause_s):
        return memory, ()
    return evolve(memory, measured_at=now), running


def _may_submit(row: Execution) -> bool:
    action = row.engine_record.launched
    return action is not None and action.type == "java" and not action.child_ids


def answered(memory: Memory, metrics: ClusterMetrics) -> Memory:
    """The memory after a round of requests."""
    troubled = bool(metrics.error) or metrics.active == 0
    return evolve(memory, troubles=memory.troubles + 1 if troubled else 0)


def is_accepted(memory: Memory, metrics: ClusterMetrics) -> bool:
    """Whether an answer may change rows. One lost answer may not: the peer may be busy."""
    return not metrics.error or memory.troubles >= _ROUNDS


def outlasted(row: Execution, memory: Memory, now: float) -> Failure | None:
    """The reason why no node will ever run `row`, once it has lasted for long enough."""
    waiting = row.waiting
    if waiting is None or waiting.until is None or row.cluster_id is None or not is_ours(row):
        return None
    if memory.troubles < _ROUNDS or now < seconds_of(waiting.until):
        return None
    text = f"given up after {now - seconds_of(waiting.since):.0f} s: {waiting.text}"
    return Failure(code=waiting.code, step=waiting.step, text=text)


def verdict(metrics: ClusterMetrics, record: Record) -> Verdict:
    """The judgement on the execution with this record, by `metrics`."""
    action = record.launched
    if action is None:
        return Verdict()
    step = action.step
    if metrics.error:
        text = f"the resource manager does not answer: {metrics.error}"
        return Verdict(failure=failures.failure(Code.RESOURCES_UNREACHABLE, step, text), ends=True)
    if metrics.active == 0:
        return Verdict(failure=_no_workers(metrics.idle, step), ends=True)
    if metrics.applications is None:
        return Verdict(sure=False)
    mine = metrics.applications_of(action)
    starved = next((a for a in mine if a.wants and is_alone(a)), None)
    if starved is not None:
        text = f"YARN runs only the driver of {starved.id}, and has no room for {starved.wants}"
        return Verdict(failure=failures.failure(Code.STEP_WAITS, step, text))
    held = _held(mine)
    if held is None:
        return Verdict()
    reason = _WHEN.sub("", held.diagnostics) or "it gives no reason"
    text = f"YARN has accepted {held.id} and not begun it: {reason}"
    return Verdict(failure=failures.failure(Code.STEP_WAITS, step, text))


def is_news(waiting: Waiting | None, verdict: Verdict) -> bool:
    """Whether svcd writes the row: the same text with other numbers is no change."""
    if waiting is None or verdict.failure is None:
        unsure = waiting is not None and waiting.until is None and not verdict.sure
        return (waiting is None) != (verdict.failure is None) and not unsure
    if waiting.code != verdict.failure.code or (waiting.until is not None) != verdict.ends:
        return True
    one, other = (re.sub(r"\d+", "", text) for text in (waiting.text, verdict.failure.text))
    return one != other and waiting.code != Code.RESOURCES_UNREACHABLE


def judged(
    row: Execution, asked: StepKey | None, verdict: Verdict, now: float, deadline_s: float
) -> Execution:
    """`row` with the wait of its step `asked`; unchanged when that step runs no more."""
    ours = row.waiting is None or is_ours(row)
    if not ours or row.cancel_requested or row.status is not ExecutionStatus.RUNNING:
        return row
    if row.engine_record.running != asked:
        return row
    return evolve(row, waiting=_waiting(row, verdict, timestamp(now), deadline_s))


def _waiting(row: Execution, verdict: Verdict, now: Timestamp, deadline_s: float) -> Waiting | None:
    """The wait of `row`. Two troubles that end a job, one after the other, share one limit."""
    if verdict.failure is None:
        return None
    waiting = waiting_for(row, verdict.failure, now, None)
    if not verdict.ends:
        return waiting
    if row.waiting is not None and row.waiting.until is not None:
        waiting = evolve(waiting, since=row.waiting.since)
    return evolve(waiting, until=timestamp(seconds_of(waiting.since) + deadline_s))


def tag_of(action_id: str) -> str:
    """The tag of an action's applications: `<workflow>@<name>` -> `oozie-<digest>`.

    Oozie writes the digest as a number, without leading zeros. Source: Oozie 5.2.
    """
    digest = hashlib.md5(action_id.encode(), usedforsecurity=False).hexdigest()
    return f"oozie-{digest.lstrip('0')}"


def _no_workers(idle: Sequence[Node], step: str) -> Failure:
    """The failure when no node takes work."""
    nodes = [
        f"{node.name} is {node.state}{f' ({node.report})' if node.report else ''}"
        for node in idle[:_MOST_NODES]
    ]
    if len(idle) > _MOST_NODES:
        nodes.append(f"and {len(idle) - _MOST_NODES} more")
    listed = ", ".join(nodes) or "no node manager has reported to the resource manager"
    ill = [node for node in idle if node.state == "UNHEALTHY"]
    full = bool(ill) and all(_FULL.search(node.report) for node in ill)
    code = Code.NO_SPACE if full else Code.NO_WORKERS
    return failures.failure(code, step, f"no worker of the cluster takes work: {listed}")


def is_alone(application: Application) -> bool:
    """Whether only the driver of a Spark program runs, and not just since now."""
    if application.kind != SPARK or application.state != "RUNNING":
        return False
    return application.containers == 1 and application.age_s >= QUIET_S


def _held(mine: Sequence[Application]) -> Application | None:
    """The application that YARN holds back, while no other one works. mine: of one action.

    A new application does not count. A running launcher is no work: it also runs while the job
    that it has launched waits.
    """
    if any(a.state not in _HELD and not a.name.startswith(LAUNCHER) for a in mine):
        return None
    return next((a for a in mine if _waits(a)), None)


def _waits(application: Application) -> bool:
    if application.state not in _HELD or application.age_s < QUIET_S:
        return False
    return _BEGUN not in application.diagnostics  # a slow machine starts its master
