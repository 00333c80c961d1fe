"""A step runs for a while and nothing is heard of it: what the cluster's resource manager says.

The engine's record of a step says RUNNING for hours while the step runs, and just so while YARN has
no machine for it or is gone. So the resource manager is asked: one task per cluster, LOOK_S apart,
to which the tick hands the rows; it never waits for the answer.

Note: what ends a job. Only that nobody is there to run it: no node takes work, or the resource
manager is silent, for as long as an engine may be silent, and this daemon has seen it twice. Then
the job is killed at the engine with that failure. One that YARN holds back waits as long as it
takes: a busy cluster is no fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime

from svcd.model.cluster import Cluster
from svcd.model.ids import ClusterId, ExecutionId, Timestamp, seconds_of, timestamp
from svcd.model.job import Execution, ExecutionStatus, Failure, Waiting
from svcd.ports import Leases, Probe
from svcd.tasks import KeyedTasks
from svcd.workflow import failures
from svcd.workflow.engines import Endpoints
from svcd.workflow.failures import Code
from svcd.workflow.manager import Application, Manager, Node, Word, tag_of
from svcd.workflow.masking import masked_text
from svcd.workflow.waiting import Story, waiting_for
from svcd.workflow.whereabouts import Whereabouts

QUIET_S: Final = 30.0
"""A step that was first seen to run since then is not asked about."""

LOOK_S: Final = 20.0
"""Between two looks at one resource manager."""

_AT_ONCE: Final = 5
_LOOKS: Final = 2
_OURS: Final = frozenset(
    {Code.STEP_WAITS, Code.RESOURCES_UNREACHABLE, Code.NO_WORKERS, Code.NO_SPACE}
)
_HELD: Final = frozenset({"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED"})
_LAUNCHER: Final = "oozie:launcher:"
_APPLICATION: Final = re.compile(r"(?:application|job)_(\d+_\d+)\Z")
_WHEN: Final = re.compile(r"^\[[^\]]*\] *")
_FULL: Final = re.compile(
    r"used space above threshold|free space below limit|no more usable space|No space left"
)
_MOST_NODES: Final = 10


@frozen(kw_only=True)
class Verdict:
    """failure: what holds a job up, None when nothing does. ends: it may not last for ever.

    sure: False when it is not known whether YARN holds the job back.
    """

    failure: Failure | None = None
    ends: bool = False
    sure: bool = True


def verdict(word: Word, record: Mapping[str, object]) -> Verdict:
    """What `word` means for the execution with this record."""
    action = launched(record)
    if action is None:
        return Verdict()
    step = str(action.get("name") or "workflow")
    if word.silent:
        text = f"the resource manager does not answer: {word.silent}"
        return Verdict(failure=failures.failure(Code.RESOURCES_UNREACHABLE, step, text), ends=True)
    if word.active == 0:
        return Verdict(failure=_nobody(word.idle, step), ends=True)
    if word.applications is None:
        return Verdict(sure=False)
    held = _held(action, word.applications)
    if held is None:
        return Verdict()
    reason = _WHEN.sub("", held.diagnostics) or "it gives no reason"
    text = f"YARN has accepted {held.id} and not begun it: {reason}"
    return Verdict(failure=failures.failure(Code.STEP_WAITS, step, text))


def launched(record: Mapping[str, object]) -> Mapping[str, object] | None:
    """The action that the engine has handed to YARN and that runs there, or None."""
    actions = record.get("actions")
    for action in actions if isinstance(actions, list | tuple) else ():
        if isinstance(action, dict) and action.get("status") == "RUNNING" and _numbers(action):
            return action
    return None


def is_told(row: Execution) -> bool:
    """Whether what `row` waits for was told here; the record of the engine does not show it."""
    waiting = row.waiting
    runs = row.status is ExecutionStatus.RUNNING and launched(row.record) is not None
    return runs and waiting is not None and waiting.code in _OURS


def kept(row: Execution, record: Mapping[str, object]) -> Waiting | None:
    """What `row` goes on waiting for with its new record: as long as the same step runs."""
    return row.waiting if is_told(row) and _key(row.record) == _key(record) else None


class Quiet:
    """Looks at quiet executions. deadline_s: see the note; leases: only what they hold."""

    def __init__(
        self,
        *,
        probe: Probe,
        clock: IReactorTime,
        story: Story,
        whereabouts: Whereabouts,
        leases: Leases,
        deadline_s: float,
    ) -> None:
        self._manager = Manager(probe)
        self._clock = clock
        self._story = story
        self._whereabouts = whereabouts
        self._leases = leases
        self._deadline_s = deadline_s
        self._handed: dict[ClusterId, tuple[Cluster, Endpoints, Sequence[Execution]]] = {}
        self._steps: dict[ClusterId, Mapping[ExecutionId, tuple[object, float]]] = {}
        self._looked: dict[ClusterId, float] = {}
        self._troubles: dict[ClusterId, int] = {}
        self._tasks: KeyedTasks[ClusterId] = KeyedTasks(
            clock, "quiet executions", self._look, limit=_AT_ONCE
        )

    async def stop(self) -> None:
        await self._tasks.stop()

    def retain(self, wanted: Callable[[ClusterId], bool]) -> None:
        """Forget what is known of all other clusters."""
        known: Sequence[dict[ClusterId, Any]] = (self._steps, self._looked, self._troubles)
        for each in (*known, self._handed):
            for cluster_id in [key for key in each if not wanted(key)]:
                del each[cluster_id]

    def consider(self, cluster: Cluster, endpoints: Endpoints, rows: Sequence[Execution]) -> None:
        """rows: those of the cluster whose engine has just answered."""
        now = self._clock.seconds()
        before, steps = self._steps.get(cluster.id, {}), {}
        quiet = []
        for row in rows:
            step = _key(row.record) if row.status is ExecutionStatus.RUNNING else None
            if step is None or row.cancel_requested:
                continue
            known, since = before.get(row.id, (step, now))
            steps[row.id] = (step, since if known == step else now)
            if is_told(row) or (row.waiting is None and now - steps[row.id][1] >= QUIET_S):
                quiet.append(row)
        self._steps[cluster.id] = steps
        if not quiet:
            self._troubles.pop(cluster.id, None)
        elif now - self._looked.get(cluster.id, -LOOK_S) >= LOOK_S:
            self._looked[cluster.id] = now
            self._handed[cluster.id] = (cluster, endpoints, quiet)
            self._tasks.wake(cluster.id)

    def outlasted(self, row: Execution) -> Failure | None:
        """Why nobody will ever run `row`, once that has lasted for long enough."""
        waiting = row.waiting
        if waiting is None or waiting.until is None or row.cluster_id is None or not is_told(row):
            return None
        seen = self._troubles.get(row.cluster_id, 0)
        if seen < _LOOKS or self._clock.seconds() < seconds_of(waiting.until):
            return None
        lasted = self._clock.seconds() - seconds_of(waiting.since)
        text = f"given up after {lasted:.0f} s: {waiting.text}"
        return Failure(code=waiting.code, step=waiting.step, text=text)

    async def _look(self, cluster_id: ClusterId) -> None:
        handed = self._handed.pop(cluster_id, None)
        if handed is not None and self._leases.holds(cluster_id):
            await self._leases.drive(cluster_id, self._ask(*handed))

    async def _ask(self, cluster: Cluster, endpoints: Endpoints, rows: Sequence[Execution]) -> None:
        action = launched(rows[0].record) or {}
        word = await self._manager.word(cluster, endpoints, str(action.get("consoleUrl") or ""))
        troubled = bool(word.silent) or word.active == 0
        seen = self._troubles.get(cluster.id, 0) + 1 if troubled else 0
        self._troubles[cluster.id] = seen
        if word.silent and seen < _LOOKS:
            return  # it may be busy, or being started
        now = timestamp(self._clock.seconds())
        for row in rows:
            found = verdict(word, row.record)
            if _is_news(row.waiting, found):
                await self._tell(row, found, now)

    async def _tell(self, row: Execution, found: Verdict, now: Timestamp) -> None:
        failure = found.failure
        if failure is not None:  # YARN may quote the programs of a job
            secrets = await self._whereabouts.secrets(row)
            failure = evolve(failure, text=masked_text(failure.text, secrets))

        def change(current: Execution) -> Execution:
            ours = current.waiting is None or is_told(current)
            if not ours or current.cancel_requested or _key(current.record) != _key(row.record):
                return current
            if current.status is not ExecutionStatus.RUNNING:
                return current
            return evolve(current, waiting=self._waiting(current, failure, found.ends, now))

        await self._story.apply(row.id, change)

    def _waiting(
        self, row: Execution, failure: Failure | None, ends: bool, now: Timestamp
    ) -> Waiting | None:
        """Two troubles that end a job, one after the other, end it together."""
        if failure is None:
            return None
        found = waiting_for(row, failure, now, None)
        if not ends:
            return found
        if row.waiting is not None and row.waiting.until is not None:
            found = evolve(found, since=row.waiting.since)
        return evolve(found, until=timestamp(seconds_of(found.since) + self._deadline_s))


def _is_news(waiting: Waiting | None, found: Verdict) -> bool:
    """Whether a row is to be written: the same words with other numbers are nothing new."""
    if waiting is None or found.failure is None:
        unsure = waiting is not None and waiting.until is None and not found.sure
        return (waiting is None) != (found.failure is None) and not unsure
    if waiting.code != found.failure.code or (waiting.until is not None) != found.ends:
        return True
    one, other = (re.sub(r"\d+", "", text) for text in (waiting.text, found.failure.text))
    return one != other and waiting.code != Code.RESOURCES_UNREACHABLE


def _nobody(idle: Sequence[Node], step: str) -> Failure:
    """No node takes work."""
    nodes = [
        f"{node.name} is {node.state}{f' ({node.report})' if node.report else ''}"
        for node in idle[:_MOST_NODES]
    ]
    if len(idle) > _MOST_NODES:
        nodes.append(f"and {len(idle) - _MOST_NODES} more")
    told = ", ".join(nodes) or "no node manager has reported to the resource manager"
    ill = [node for node in idle if node.state == "UNHEALTHY"]
    full = bool(ill) and all(_FULL.search(node.report) for node in ill)
    code = Code.NO_SPACE if full else Code.NO_WORKERS
    return failures.failure(code, step, f"no worker of the cluster takes work: {told}")


def _held(action: Mapping[str, object], applications: Sequence[Application]) -> Application | None:
    """The application of an action that YARN does not begin, while no other one of it works.

    One that is new is on its way. The launcher of a step runs while the job that it has launched
    waits, which is no work.
    """
    numbers, tag = _numbers(action), tag_of(str(action.get("id") or ""))
    mine = [a for a in applications if _number(a.id) in numbers or tag in a.tags]
    if any(a.state not in _HELD and not a.name.startswith(_LAUNCHER) for a in mine):
        return None
    return next((a for a in mine if a.state in _HELD and a.age_s >= QUIET_S), None)


def _numbers(action: Mapping[str, object]) -> frozenset[str]:
    """Of the applications that the engine knows of."""
    ids = [action.get("externalId"), *str(action.get("externalChildIDs") or "").split(",")]
    return frozenset(filter(None, (_number(str(each or "").strip()) for each in ids)))


def _number(id_: str) -> str:
    found = _APPLICATION.match(id_)
    return "" if found is None else found.group(1)


def _key(record: Mapping[str, object]) -> object:
    """Which run of which step it is that runs."""
    action = launched(record)
    return None if action is None else (action.get("id"), action.get("name"))
