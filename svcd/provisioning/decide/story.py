"""Tells the story of a cluster: its present work, its failure, its changes. Pure.

The story is made of the cluster's row and of its events, which svcd keeps up to a number. It says
nothing about the way to show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from svcd.model.cluster import RESTING, Cluster, ClusterEvent, ClusterStatus
from svcd.model.failures import explained
from svcd.model.step_kind import HEALTH, REQUEST, StepKind, kind_of
from svcd.model.wire import Event
from svcd.model.wire_story import (
    ChangeOutcome,
    ClusterChange,
    ClusterFailure,
    ClusterStory,
    ClusterWork,
    ServerWait,
)
from svcd.provisioning.decide.change_steps import change_steps
from svcd.provisioning.decide.events import REPLACE, WAIT_FOR_SERVER
from svcd.provisioning.decide.health import ALL_WELL

_FROM_REQUEST: Final = (ClusterStatus.WAITING, ClusterStatus.VALIDATING, ClusterStatus.DELETING)
"""The statuses that begin with a request, and have no event of their own."""
_WAITS_FOR_SERVERS: Final = (ClusterStatus.WAITING, ClusterStatus.SPAWNING)
_RUNS: Final = "ACTIVE"
"""The status of a server that runs."""
_OPEN: Final = ("started", "retry", "waiting")
"""The outcomes of a step that goes on."""
_MOST: Final = 10
"""Waits, and servers, that a story names."""


NEWEST: Final = 0
"""In place of the generation of a change: the newest one."""


def story_of(
    cluster: Cluster, events: Sequence[ClusterEvent], now: float, change: int | None = None
) -> ClusterStory:
    """The story. events: of the cluster, oldest first; the oldest may be missing.

    now: epoch seconds. change: generation of the change whose steps are told, None: of none.
    """
    changes = _changes(events)
    generation = changes[-1].generation if changes and change == NEWEST else change
    outcomes = {c.generation: c.outcome for c in changes}
    return ClusterStory(
        status=cluster.status,
        work=_work(cluster, events),
        failure=None
        if cluster.status is ClusterStatus.DELETING  # its text is the reason of the deletion
        else _failure(cluster.explained(), events),
        ailing=_ailing(cluster, events),
        changes=changes,
        change=change_steps(cluster, events, generation, outcomes[generation], now)
        if generation in outcomes
        else None,
    )


def _ailing(cluster: Cluster, events: Iterable[ClusterEvent]) -> str:
    """What health checks found before the present change, and did not find well again.

    svcd forgets it when the change begins, and looks again after it.
    """
    if cluster.status in (*RESTING, ClusterStatus.DELETING):
        return ""
    texts: list[str] = []
    for event in events:
        if event.step != HEALTH or event.generation != cluster.generation - 1:
            continue
        if event.outcome == "failed":
            texts.append(event.text)
        elif event.text.endswith(ALL_WELL):
            texts.clear()
    return "\n".join(texts)


def _work(cluster: Cluster, events: Sequence[ClusterEvent]) -> ClusterWork | None:
    """None for a cluster that rests, and without the event with which its status began."""
    if cluster.status in RESTING:
        return None
    numbers = range(len(events) - 1, -1, -1)
    begin = next((n for n in numbers if _begins(events[n], cluster.status)), None)
    if begin is None:
        return None
    later = events[begin + 1 :]
    waits = _unfinished(later)
    servers = _missing_servers(cluster)
    return ClusterWork(
        since=events[begin].at,
        until=events[begin].until,
        machines_done=_machines_done(cluster, later),
        waits=[Event.of(event) for event in waits[-_MOST:]],
        waits_in_all=len(waits),
        servers=servers[:_MOST],
        servers_in_all=len(servers),
    )


def _begins(event: ClusterEvent, status: ClusterStatus) -> bool:
    if status in _FROM_REQUEST:
        return event.step == REQUEST and event.outcome == "accepted"
    return event.step == status and event.outcome == "started"


def _unfinished(events: Iterable[ClusterEvent]) -> Sequence[ClusterEvent]:
    """The newest events of steps that started, waited or failed for now, without a later end."""
    steps: dict[tuple[str, str], ClusterEvent] = {}
    for event in events:
        key = (event.step, event.machine)
        if event.outcome in _OPEN:
            steps[key] = event
            continue
        steps.pop(key, None)
        if event.step == WAIT_FOR_SERVER:
            steps.pop((REPLACE, event.machine), None)
    return list(steps.values())


def _machines_done(cluster: Cluster, events: Iterable[ClusterEvent]) -> int:
    done = {event.machine for event in events if event.outcome == "done"}
    done -= {server.machine for server in _missing_servers(cluster)}
    return sum(instance.instance_name in done for instance in cluster.instances())


def _missing_servers(cluster: Cluster) -> list[ServerWait]:
    if cluster.status not in _WAITS_FOR_SERVERS:
        return []
    return [
        ServerWait(machine=instance.instance_name, status=instance.status or "")
        for instance in cluster.instances()
        if instance.status != _RUNS
    ]


def _failure(text: str, events: Sequence[ClusterEvent]) -> ClusterFailure | None:
    """The failure that the cluster shows. text: its `status_description`."""
    if not text:
        return None
    failed = [e for e in events if e.outcome == "failed" and e.code and e.code in text]
    code = failed[-1].code if failed else ""
    return ClusterFailure(
        code=code,
        machine=next((event.machine for event in reversed(failed) if event.machine), ""),
        by_health_check=bool(failed) and failed[-1].step == HEALTH,
        **explained(code, text),
    )


def _changes(events: Sequence[ClusterEvent]) -> list[ClusterChange]:
    by_generation: dict[int, list[ClusterEvent]] = {}
    for event in events:
        by_generation.setdefault(event.generation, []).append(event)
    newest = max(by_generation, default=0)
    return [_change(own, own[0].generation == newest) for own in by_generation.values()]


def _change(events: Sequence[ClusterEvent], is_newest: bool) -> ClusterChange:
    """A change with the events `events`."""
    first = events[0]
    outcome, code = _outcome(events)
    if outcome is None:
        outcome = ChangeOutcome.GOING_ON if is_newest else ChangeOutcome.REPLACED
    return ClusterChange(
        generation=first.generation,
        at=first.at,
        request=first.text if first.step == REQUEST else "",
        outcome=outcome,
        code=code,
    )


def _outcome(events: Sequence[ClusterEvent]) -> tuple[ChangeOutcome | None, str]:
    """How a change ended, and the code of a failure. What health checks find later is no end.

    A scaling that failed and was undone ends in Active, after a status that failed.
    """
    is_active = False
    for event in reversed(events):
        if event.step == HEALTH:
            continue
        if event.outcome == "failed" and (not is_active or kind_of(event.step) is StepKind.STATUS):
            return ChangeOutcome.FAILED, event.code
        is_active = is_active or event.step == ClusterStatus.ACTIVE
    return (ChangeOutcome.DONE if is_active else None), ""
