"""Events of a cluster that belong to no single step: requests, changes of status, waits. Pure.

Together with the events of steps they show a person the requests, the progress, the reasons and
limits of waits, and the place of each failure (`svcd why`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import evolve

from svcd.model.cluster import Cluster, ClusterEvent, ClusterStatus, Desired, StepName
from svcd.model.ids import seconds_of
from svcd.model.step_kind import REQUEST
from svcd.provisioning.decide import lifecycle
from svcd.provisioning.decide.planner import Plan
from svcd.provisioning.decide.spawning import create_key
from svcd.provisioning.decide.steps import CreateServer, Memory, Span
from svcd.settings import Provisioning

REPLACE: Final = "replace"
RECORDED_WAITS: Final = frozenset({10, 30, 100, 300, 1000})
"""The counts of waits for one step that become events (the first after some 15 s)."""
WAIT_FOR_SERVER: Final = "wait for server"
"""The step from the create call until the server runs with its addresses and volumes."""
_MOST: Final = 10
"""Waits that one event names."""


def made(cluster: Cluster, settings: Provisioning, now: float) -> ClusterEvent:
    """The event of a create request. until: the deadline of the status after the request."""
    sizes = ", ".join(f"{g.name} {g.count}" for g in cluster.node_groups)
    text = f"create with {cluster.plugin_name} {cluster.engine_version}: {sizes}"
    until = now + lifecycle.remaining_s(cluster, settings, now)
    return lifecycle.event(cluster, REQUEST, "accepted", now, text, until=until)


def changed(before: Cluster, after: Cluster, settings: Provisioning, now: float) -> ClusterEvent:
    """The event of a request for another size, a retry, a deletion or another lifetime.

    Outcome `done`: the request has no work, because it changes only the lifetime.
    """
    if after.generation == before.generation:
        return lifecycle.event(after, REQUEST, "done", now, f"set {_life(before, after)}")
    until = now + lifecycle.remaining_s(after, settings, now)
    return lifecycle.event(after, REQUEST, "accepted", now, _wish(before, after), until=until)


def _wish(before: Cluster, after: Cluster) -> str:
    if after.desired is Desired.DELETED:
        by_itself = f": {after.status_description}" if after.status_description else ""
        return "delete, by force" if after.force_delete else f"delete{by_itself}"
    sizes = {g.name: g.count for g in before.node_groups}
    sizes_asked = [
        f"{g.name} {sizes[g.name]} -> {g.count}" if g.name in sizes else f"{g.name} {g.count} (new)"
        for g in after.node_groups
        if sizes.get(g.name) != g.count
    ]
    wish = "resize: " + ", ".join(sizes_asked) if sizes_asked else "retry"
    life = _life(before, after)
    return f"{wish}; set {life}" if life else wish


def _life(before: Cluster, after: Cluster) -> str:
    """The changed fields that say when svcd deletes the cluster by itself."""
    changed = (
        f"{name} {getattr(after, name)}"
        for name in ("idle_delete_s", "max_age_s", "keep_until")
        if getattr(after, name) != getattr(before, name)
    )
    return ", ".join(changed)


def moved(
    before: Cluster, after: Cluster, settings: Provisioning, now: float
) -> Sequence[ClusterEvent]:
    """The event of a change of status, with its deadline. Error has its own event."""
    if before.status is after.status or after.status is ClusterStatus.ERROR:
        return []
    if after.status is ClusterStatus.ACTIVE:
        return [lifecycle.event(after, after.status, "done", now)]
    until = now + lifecycle.remaining_s(after, settings, now)
    return [lifecycle.event(after, after.status, "started", now, until=until)]


def replaced(before: Cluster, planned: Plan, now: float) -> Sequence[ClusterEvent]:
    """The events of servers and volumes that svcd gives up and replaces."""
    attempts = {i.instance_id: i.attempts for i in before.instances()}
    new_events = []
    for instance in planned.cluster.instances():
        if instance.attempts <= attempts.get(instance.instance_id, instance.attempts):
            continue
        name = instance.instance_name
        reasons = (reason for reason in planned.waiting if name in reason)
        text = next(reasons, "") or "its server or a volume of it is gone or in error"
        new_events.append(
            lifecycle.event(
                planned.cluster, REPLACE, "retry", now, text, name, attempt=instance.attempts
            )
        )
    return new_events


def spawned(
    before: Cluster, after: Cluster, memory: Memory, now: float
) -> tuple[Sequence[ClusterEvent], Memory]:
    """The events of servers that run from now on, and the memory with the last one of them."""
    waited = [i for i in before.instances() if not lifecycle.has_reached(i, lifecycle.SPAWNED)]
    old = {i.instance_id: i for i in waited}
    new_events, last = [], memory.last
    for instance in after.instances():
        if instance.instance_id not in old or not lifecycle.has_reached(
            instance, lifecycle.SPAWNED
        ):
            continue
        name, asked = instance.instance_name, old[instance.instance_id].requested_at
        created = memory.of(create_key(instance)).span.ended  # a restart forgets it
        if created is None and asked is not None:
            created = min(seconds_of(asked), now)
        create = StepName(step=CreateServer.words, machine=name)
        span = Span(began=created, ended=now, waited_for=create)
        new_events.append(
            lifecycle.event(
                after,
                WAIT_FOR_SERVER,
                "done",
                now,
                machine=name,
                attempt=instance.attempts and instance.attempts + 1,
                span=span,
            )
        )
        last = StepName(step=WAIT_FOR_SERVER, machine=name)
    return new_events, evolve(memory, last=last)


def waiting(
    cluster: Cluster, planned: Plan, memory: Memory, settings: Provisioning, now: float
) -> Sequence[ClusterEvent]:
    """The event of a wait, at some counts: its reasons, and the time when svcd gives up."""
    if memory.idle not in RECORDED_WAITS:
        return []
    # an event `retry` has this reason
    troubles = [t.reason for t in memory.tried.values() if t.reason]
    waits = [w for w in planned.waiting if w in troubles or not any(t in w for t in troubles)]
    if not waits:
        return []
    text = "; ".join(waits[:_MOST])
    if len(waits) > _MOST:
        text += f"; and {len(waits) - _MOST} more"
    left = lifecycle.remaining_s(cluster, settings, now)
    until = None if left == float("inf") else now + left
    step = cluster.status
    return [lifecycle.event(cluster, step, "waiting", now, text, attempt=memory.idle, until=until)]
