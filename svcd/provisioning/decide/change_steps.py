"""The steps of one change of a cluster: attempts, statuses, the longest path, faults. Pure.

Note: the longest path. It goes back from the step that ended last, from each step to the step that
it waited for: these steps decided how long the change took. A stage is no step of the path: its
span is around those of its steps on machines.

Note: waits for servers. Such a wait has one event, at its end. Until then the wait of a server
begins with the end of the create call.

Note: replacements. A server that svcd gave up while it waited for it has the event of its
replacement. The story tells it as the end of that wait, and the next server waited for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import evolve, frozen

from svcd.model.cluster import RESTING, Cluster, ClusterEvent, ClusterStatus, StepName
from svcd.model.ids import Timestamp, seconds_of, timestamp
from svcd.model.step_kind import StepKind, kind_of
from svcd.model.wire import StepName as StepNameView
from svcd.model.wire_story import (
    ChangeOutcome,
    ChangeSteps,
    StoryFault,
    StoryMachine,
    StoryPhase,
    StoryStep,
)
from svcd.provisioning.decide.events import REPLACE, WAIT_FOR_SERVER
from svcd.provisioning.decide.lifecycle import SPAWNED, has_reached
from svcd.provisioning.decide.steps import CreateServer

_SAME_S: Final = 0.001
"""A step that begins within this time before the end of another one may have waited for it."""
_REPLACED: Final = "replaced"
"""The outcome of a wait for a server that svcd gave up."""


@frozen(eq=False)
class _Attempt:
    """An attempt of a step. begin, end: epoch seconds; an open attempt ends with the change."""

    event: ClusterEvent
    begin: float
    end: float
    is_open: bool

    @property
    def name(self) -> StepName:
        """The step and its machine."""
        return StepName(step=self.event.step, machine=self.event.machine)

    @property
    def is_trouble(self) -> bool:
        """Whether it failed, or svcd tried it again or gave it up."""
        return self.event.outcome in ("failed", "retry", _REPLACED)

    def is_done_since(self, began: float) -> bool:
        """Whether it was done, not before `began`."""
        return self.event.outcome == "done" and not self.is_open and self.end >= began


def change_steps(
    cluster: Cluster,
    events: Sequence[ClusterEvent],
    generation: int,
    outcome: ChangeOutcome,
    now: float,
) -> ChangeSteps | None:
    """The steps of the change `generation`; None when none of its events is kept.

    events: of the cluster, oldest first. outcome: of the change. now: epoch seconds.
    """
    kept = [e for e in events if e.generation == generation and _is_work(e)]
    if not kept:
        return None
    own = _with_replacements(kept)
    is_over = outcome is not ChangeOutcome.GOING_ON
    begin = seconds_of(own[0].at)
    ends = [seconds_of(e.ended or e.at) for e in own if kind_of(e.step) is not StepKind.HEALTH]
    last = max([begin, *ends])
    end = last if is_over else max(last, now)
    attempts = _attempts(own, end)
    if not is_over:
        attempts += _server_waits(attempts, end)
    path = _longest_path(attempts)
    on_path = frozenset(path)
    phases = _phases(own, timestamp(last) if is_over else None)
    numbers = {attempt: number for number, attempt in enumerate(attempts)}
    return ChangeSteps(
        generation=generation,
        outcome=outcome,
        began=timestamp(min([begin, *(attempt.begin for attempt in attempts)])),
        ended=timestamp(last) if is_over else None,
        phases=phases,
        machines=_machines(cluster, attempts, path, None if is_over else phases),
        steps=[_step(attempt, attempt in on_path) for attempt in attempts],
        longest_path=[numbers[attempt] for attempt in path],
        faults=_faults(own),
    )


def _is_work(event: ClusterEvent) -> bool:
    """Whether the event is of the change, and not of the use or the lifetime of the cluster."""
    kind = kind_of(event.step)
    only_life = kind is StepKind.REQUEST and event.outcome == "done"
    return not only_life and kind not in (StepKind.JOB, StepKind.END)


def _with_replacements(events: Sequence[ClusterEvent]) -> Sequence[ClusterEvent]:
    """`events` with the spans of the servers that svcd replaced."""
    created: dict[str, ClusterEvent] = {}
    """The create calls of servers that do not run yet, by their machine."""
    replaced: dict[str, StepName] = {}
    told = []
    for event in events:
        machine = event.machine
        if event.step == CreateServer.words and event.outcome == "done":
            event = evolve(event, waited_for=replaced.pop(machine, event.waited_for))
            created[machine] = event
        elif event.step == WAIT_FOR_SERVER:
            created.pop(machine, None)
        elif event.step == REPLACE:
            create = created.pop(machine, None)
            event = evolve(event, outcome=_REPLACED, began=event.at, ended=event.at)
            if create is not None:
                event = evolve(
                    event,
                    step=WAIT_FOR_SERVER,
                    began=create.ended or create.at,
                    waited_for=StepName(step=create.step, machine=machine),
                )
            replaced[machine] = StepName(step=event.step, machine=machine)
        told.append(event)
    return told


def _machines(
    cluster: Cluster,
    attempts: Sequence[_Attempt],
    path: Iterable[_Attempt],
    phases: Sequence[StoryPhase] | None,
) -> list[StoryMachine]:
    """The machines of the change. phases: of a change that goes on; None when it has ended.

    A machine is done with its newest step, in a change that goes on: of the present status.
    """
    steps: dict[str, list[_Attempt]] = {}
    for attempt in sorted(attempts, key=lambda attempt: (attempt.end, attempt.begin)):
        steps.setdefault(attempt.event.machine, []).append(attempt)
    steps.pop("", None)
    groups = {
        instance.instance_name: group.name
        for group in cluster.node_groups
        for instance in group.instances
        if instance.instance_name in steps or not (phases is None or has_reached(instance, SPAWNED))
    }
    groups |= {name: _group_of(cluster, name) for name in steps if name not in groups}
    notable = {attempt.event.machine for attempt in path}
    notable |= {name for name, own in steps.items() if any(a.is_trouble for a in own)}
    if phases is None:
        notable |= _slowest(groups, steps)
    began = seconds_of(Timestamp(phases[-1].began)) if phases else 0.0
    return [
        StoryMachine(
            machine=name,
            group=group,
            done=name in steps and steps[name][-1].is_done_since(began),
            replaced=sum(a.event.outcome == _REPLACED for a in steps.get(name, ())),
            notable=name in notable,
        )
        for name, group in groups.items()
    ]


def _slowest(groups: Mapping[str, str], steps: Mapping[str, Iterable[_Attempt]]) -> set[str]:
    """Of each group the machine whose steps took longest. groups: by machine."""
    spent = {name: sum(a.end - a.begin for a in steps.get(name, ())) for name in groups}
    slowest: dict[str, str] = {}
    for name, group in groups.items():
        if spent[name] > spent.get(slowest.get(group, ""), -1.0):
            slowest[group] = name
    return set(slowest.values())


def _group_of(cluster: Cluster, machine: str) -> str:
    """The group of a machine that the cluster has no more, by its name."""
    return machine.removeprefix(f"{cluster.name}-".lower()).rpartition("-")[0]


def _attempts(events: Sequence[ClusterEvent], end: float) -> list[_Attempt]:
    """The attempts in the order of their begins. An attempt has two events, begin and end."""
    newest: dict[tuple[str, str, Timestamp], ClusterEvent] = {}
    for event in events:
        if event.began is None:
            continue
        key = (event.step, event.machine, event.began)
        if event.ended or key not in newest or not newest[key].ended:
            newest[key] = event
    attempts = []
    for (_, _, began), event in newest.items():
        begin, ended = seconds_of(began), seconds_of(event.ended) if event.ended else end
        attempts.append(_Attempt(event, begin, max(begin, ended), event.ended is None))
    return sorted(attempts, key=lambda attempt: (attempt.begin, attempt.end))


def _server_waits(attempts: Sequence[_Attempt], end: float) -> list[_Attempt]:
    """The waits for servers whose create call is the last step of their machine."""
    last = {attempt.event.machine: attempt for attempt in attempts}
    replaced = Counter(a.event.machine for a in attempts if a.event.outcome == _REPLACED)
    waits = []
    for machine, create in last.items():
        if create.event.step != CreateServer.words or create.event.outcome != "done":
            continue
        event = ClusterEvent(
            at=create.event.at,
            generation=create.event.generation,
            step=WAIT_FOR_SERVER,
            machine=machine,
            outcome="started",
            attempt=replaced[machine] and replaced[machine] + 1,
            began=create.event.ended,
            waited_for=StepName(step=create.event.step, machine=machine),
        )
        waits.append(_Attempt(event, create.end, end, True))
    return waits


def _longest_path(attempts: Sequence[_Attempt]) -> Sequence[_Attempt]:
    others: dict[StepName, list[_Attempt]] = {}
    """The attempts that are not in the path, by their step and machine."""
    for attempt in attempts:
        others.setdefault(attempt.name, []).append(attempt)
    path: list[_Attempt] = []
    at = _last_step(attempts)
    while at is not None:
        others[at.name].remove(at)
        path.append(at)
        wanted = at.event.waited_for
        at = None if wanted is None else _before(at, others.get(wanted, ()))
    return path[::-1]


def _last_step(attempts: Sequence[_Attempt]) -> _Attempt | None:
    """The step that ended last, of several the one that began last."""
    machines = [attempt for attempt in attempts if attempt.event.machine]
    latest = sorted(attempts, key=lambda attempt: (attempt.end, attempt.begin), reverse=True)
    steps = (
        attempt
        for attempt in latest
        if attempt.event.machine or not any(_is_in(other, attempt) for other in machines)
    )
    return next(steps, None)


def _is_in(attempt: _Attempt, stage: _Attempt) -> bool:
    return attempt.begin >= stage.begin and attempt.end <= stage.end


def _before(attempt: _Attempt, others: Iterable[_Attempt]) -> _Attempt | None:
    """The attempt of `others` that ended last before the begin of `attempt`."""
    over = (other for other in others if other.end <= attempt.begin + _SAME_S)
    return max(over, key=lambda other: other.end, default=None)


def _step(attempt: _Attempt, is_on_path: bool) -> StoryStep:
    event = attempt.event
    return StoryStep.filled(
        event,
        kind=kind_of(event.step),
        waited_for=event.waited_for and StepNameView.filled(event.waited_for),
        longest_path=is_on_path,
    )


def _phases(events: Sequence[ClusterEvent], ended: Timestamp | None) -> list[StoryPhase]:
    """The statuses, each up to the next one; without the last one in which the cluster rests."""
    moves = [
        event
        for event in events
        if kind_of(event.step) is StepKind.STATUS and event.outcome != "waiting"
    ]
    ends = [*(move.at for move in moves[1:]), ended]
    phases = [
        StoryPhase(
            status=ClusterStatus(move.step),
            began=move.at,
            ended=end,
            until=move.until,
            failed=move.outcome == "failed",
        )
        for move, end in zip(moves, ends, strict=False)
    ]
    if phases and (phases[-1].status in RESTING or phases[-1].failed):
        phases.pop()
    return phases


def _faults(events: Sequence[ClusterEvent]) -> list[StoryFault]:
    """The faults of steps. The failure of a status repeats that of a step, and is left out."""
    faults: dict[tuple[str, str, str], list[ClusterEvent]] = {}
    for event in events:
        kind = kind_of(event.step)
        is_trouble = event.outcome == _REPLACED or (event.outcome == "retry" and event.code)
        is_fault = event.outcome == "failed" or is_trouble
        if not is_fault or kind is StepKind.HEALTH or (kind is StepKind.STATUS and faults):
            continue
        faults.setdefault((event.step, event.code, event.outcome), []).append(event)
    return [
        StoryFault(
            step=step,
            kind=kind_of(step),
            code=code,
            outcome=outcome,
            text=same[-1].text,
            times=len(same),
            machines=list(dict.fromkeys(event.machine for event in same if event.machine)),
        )
        for (step, code, outcome), same in faults.items()
    ]
