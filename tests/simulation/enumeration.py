"""Every call to the outside of an operation, and everything that can befall it, one case each.

The trace of an operation is recorded once, undisturbed. Then, for each position in it, the
operation runs anew in a world of its own with one crash or one fault at that call, and must end as
the table of the interface says, with nothing left behind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

from svcd.embedded.faults import Effect, FaultRule
from tests.simulation import requests, rest
from tests.simulation.world import Asked, Heard, World

TENANT = "alpha"
REST_S = 4 * 3600.0
TIDY_S = 5.0
"""After rest: what an operation leaves behind is tidied up within this time."""

_FATAL_FOR_COMMANDS = frozenset({"503", "garbage", "time-out before", "time-out after"})
"""A command that fails, or does not end in its time, ends the work with a code."""

_LATE = re.compile(r"the folder of run is left")
"""An empty folder that a call makes once more after its time-out goes with the cluster's HDFS."""

_CLOUD = frozenset({"identity", "compute", "image", "network", "volume"})
_WORKFLOW = frozenset({"engine", "hdfs"})


@frozen
class Variant:
    """What befalls one call. crash: "before" or "after" its effect, else a rule."""

    name: str
    crash: str = ""
    rule: Mapping[str, Any] = {}

    def fits(self, heard: Heard) -> bool:
        """Whether it makes sense for such a call."""
        if self.crash or self.name == "refused":
            return True
        if heard.where == "store":
            return self.name == "time-out after" and heard.method == "tx"
        if self.name == "401":
            return heard.where in _CLOUD
        if self.name == "late":
            return heard.where in _CLOUD | _WORKFLOW and heard.method != "GET"
        return True


VARIANTS = (
    Variant("crash before", crash="before"),
    Variant("crash after", crash="after"),
    Variant("refused", rule={"effect": Effect.REFUSED}),
    Variant("time-out before", rule={"effect": Effect.TIMEOUT_BEFORE}),
    Variant("time-out after", rule={"effect": Effect.TIMEOUT_AFTER}),
    Variant("503", rule={"effect": Effect.ANSWER, "status": 503}),
    Variant("garbage", rule={"effect": Effect.GARBAGE}),
    Variant("slow", rule={"effect": Effect.DELAY, "delay_s": 20.0}),
    Variant("late", rule={"effect": Effect.LATE, "delay_s": 45.0}),
    Variant("401", rule={"effect": Effect.ANSWER, "status": 401}),
)


@frozen
class Ready:
    """What an operation begins with."""

    cluster_id: str = ""
    job_id: str = ""
    sources: tuple[str, str] = ("", "")
    execution_id: str = ""


@frozen
class Operation:
    """prepare: what must be there before. act: the request. judge: what is wrong at the end."""

    name: str
    prepare: Callable[[World], Ready]
    act: Callable[[World, Ready], Asked]
    judge: Callable[[World, Ready, Asked, bool], Iterator[str]]


@frozen(kw_only=True)
class Case:
    """position: of the call in the operation's trace, from 0."""

    operation: str
    position: int
    variant: str


@frozen(kw_only=True)
class Result:
    case: Case
    call: str
    story: tuple[str, ...]
    breaches: tuple[str, ...]


def world_of(operation: Operation) -> tuple[World, Ready]:
    """A world in which the operation can begin."""
    world = World(1, {"auth.mode": "keystone", "provisioning.poll_s": "3"})
    return world, operation.prepare(world)


def trace(operation: Operation) -> list[Heard]:
    """The calls of an undisturbed run, up to rest."""
    world, ready = world_of(operation)
    try:
        before = len(world.calls)
        operation.act(world, ready)
        rest.quiet(world, REST_S)
        world.advance(TIDY_S)
        return world.calls[before:]
    finally:
        world.close()


def cases(operation: Operation) -> list[Case]:
    """All of an operation, in order."""
    return [
        Case(operation=operation.name, position=position, variant=variant.name)
        for position, heard in enumerate(trace(operation))
        for variant in VARIANTS
        if variant.fits(heard)
    ]


def play(case: Case) -> Result:
    """One case from beginning to end."""
    operation = OPERATIONS[case.operation]
    variant = next(v for v in VARIANTS if v.name == case.variant)
    world, ready = world_of(operation)
    try:
        number = len(world.calls) + 1 + case.position
        if variant.crash:
            world.plan.crashes[number] = variant.crash == "after"
        else:
            world.plan.rules[number] = FaultRule(where="", **variant.rule)
        asked = operation.act(world, ready)
        _settle(world)
        call = str(world.calls[number - 1])
        excusable = call.startswith("ssh") and variant.name in _FATAL_FOR_COMMANDS
        for each in (
            *operation.judge(world, ready, asked, excusable),
            *rest.at_rest(world, frozenset()),
        ):
            if variant.name != "late" or not _LATE.search(each):
                world.watch.breach(each)
        if asked.status == 500:
            world.watch.breach("answered as a bug")
        for id_ in rest.clusters(world):
            world.ask(TENANT, "DELETE", f"/clusters/{id_}")
        trouble = rest.quiet(world, REST_S)
        if trouble:
            world.watch.breach(f"not all gone: {trouble}")
        world.advance(60.0)
        for each in rest.all_gone(world, frozenset()):
            world.watch.breach(each)
        shown = world.named(call)
    finally:
        world.close()
    return Result(
        case=case, call=shown, story=tuple(world.story), breaches=tuple(world.watch.breaches)
    )


def _settle(world: World) -> None:
    trouble = rest.quiet(world, REST_S)
    if trouble:
        world.watch.breach(f"no rest within {REST_S:.0f} s: {trouble}")
    world.advance(60.0)  # a daemon that died at the end is back by then


# ---- what operations begin with ------------------------------------------------------------------


def _nothing(world: World) -> Ready:
    job_id, sources = requests.job(world, TENANT)
    return Ready(job_id=job_id, sources=sources)


def _worker(count: int = 1) -> dict[str, Any]:
    return requests.group(
        "worker", count, volumes_per_node=1, volumes_size=10, floating_ip_pool="public"
    )


def _active(workers: int) -> Callable[[World], Ready]:
    def prepare(world: World) -> Ready:
        ready = _nothing(world)
        body = requests.cluster("mine", _worker(workers))
        made = requests.made(world, world.ask(TENANT, "POST", "/clusters", body, name="mine"))
        _settle(world)
        return Ready(cluster_id=made["cluster"]["id"], job_id=ready.job_id, sources=ready.sources)

    return prepare


def _running(world: World) -> Ready:
    ready = _active(1)(world)
    asked = _execute(world, ready, run_s="300")
    execution_id = requests.made(world, asked)["job_execution"]["id"]
    world.advance(12.0)
    return Ready(
        cluster_id=ready.cluster_id,
        job_id=ready.job_id,
        sources=ready.sources,
        execution_id=execution_id,
    )


# ---- operations ----------------------------------------------------------------------------------


def _create(world: World, ready: Ready) -> Asked:
    body = requests.cluster("mine", _worker(), anti_affinity=["datanode"])
    return world.ask(TENANT, "POST", "/clusters", body, name="mine")


def _resize(count: int) -> Callable[[World, Ready], Asked]:
    body = {"resize_node_groups": [{"name": "worker", "count": count}]}
    return lambda world, ready: world.ask(TENANT, "PUT", f"/clusters/{ready.cluster_id}", body)


def _add_group(world: World, ready: Ready) -> Asked:
    body = {"add_node_groups": [requests.group("extra", 1)]}
    return world.ask(TENANT, "PUT", f"/clusters/{ready.cluster_id}", body)


def _delete(world: World, ready: Ready) -> Asked:
    return world.ask(TENANT, "DELETE", f"/clusters/{ready.cluster_id}")


def _execute(world: World, ready: Ready, run_s: str = "3") -> Asked:
    body = {"cluster_id": ready.cluster_id, **requests.execution(ready.sources, run_s=run_s)}
    return world.ask(TENANT, "POST", f"/jobs/{ready.job_id}/execute", body, name="run")


def _transient(world: World, ready: Ready) -> Asked:
    cluster = requests.cluster("short", requests.group("worker", 1))
    body = {"cluster": cluster, **requests.execution(ready.sources, run_s="3")}
    return world.ask(TENANT, "POST", f"/jobs/{ready.job_id}/execute", body, name="run")


def _cancel(world: World, ready: Ready) -> Asked:
    return world.ask(TENANT, "GET", f"/job-executions/{ready.execution_id}/cancel")


# ---- how they must end ---------------------------------------------------------------------------


def _ends_active(world: World, _: Ready, asked: Asked, excusable: bool) -> Iterator[str]:
    """Accepted: Active. Not accepted: absent, or Active when only the answer was lost."""
    rows = list(rest.clusters(world).values())
    if asked.accepted and not rows:
        yield "the accepted cluster is not there"
    for row in rows:
        if row["status"] != "Active" and not excusable:
            yield f"it ends as {row['status']}: {row['status_description'][:200]}"


def _sizes(before: Mapping[str, int], after: Mapping[str, int]) -> Any:
    def judge(world: World, ready: Ready, asked: Asked, excusable: bool) -> Iterator[str]:
        """Accepted: the new sizes. Not accepted: the old ones, or only the answer was lost."""
        row = rest.clusters(world).get(ready.cluster_id)
        if row is None:
            yield "the cluster is gone"
            return
        sizes = {g["name"]: g["count"] for g in row["node_groups"]}
        allowed = [after] if asked.accepted and not excusable else [before, after]
        if row["status"] != "Active" or sizes not in allowed:
            yield f"{row['status']} with {sizes}: {row['status_description'][:200]}"

    return judge


def _ends_gone(world: World, ready: Ready, asked: Asked, _: bool) -> Iterator[str]:
    rows = rest.clusters(world)
    if asked.accepted and rows:
        yield f"it is still there: {rows[ready.cluster_id]['status']}"


def _ends_well(world: World, _: Ready, asked: Asked, __: bool) -> Iterator[str]:
    """Accepted: SUCCEEDED. Not accepted: absent, or only the answer was lost."""
    rows = list(rest.executions(world).values())
    if asked.accepted and not rows:
        yield "the accepted execution is not there"
    for row in rows:
        if row["status"] != "SUCCEEDED":
            yield f"it ends as {row['status']}: {row.get('failure')}"


def _ends_well_alone(world: World, ready: Ready, asked: Asked, excusable: bool) -> Iterator[str]:
    """The same, and its cluster is gone; a cluster without an execution is gone too."""
    if not excusable:
        yield from _ends_well(world, ready, asked, excusable)
    for row in rest.clusters(world).values():
        yield f"its cluster is {row['status']}: {row['status_description'][:200]}"


def _ends_killed(world: World, ready: Ready, asked: Asked, _: bool) -> Iterator[str]:
    """Accepted, or recorded: KILLED. Not recorded: it has gone on to its end."""
    row = rest.executions(world)[ready.execution_id]
    wished = asked.accepted or row.get("cancel_requested")
    if row["status"] != ("KILLED" if wished else "SUCCEEDED"):
        yield f"it ends as {row['status']} with cancel_requested {wished}"
    if row.get("failure") and wished:
        yield f"a cancel is told as the failure {row['failure']}"


OPERATIONS: Mapping[str, Operation] = {
    each.name: each
    for each in (
        Operation("create", _nothing, _create, _ends_active),
        Operation(
            "scale up",
            _active(1),
            _resize(2),
            _sizes({"master": 1, "worker": 1}, {"master": 1, "worker": 2}),
        ),
        Operation(
            "scale down",
            _active(2),
            _resize(1),
            _sizes({"master": 1, "worker": 2}, {"master": 1, "worker": 1}),
        ),
        Operation(
            "add group",
            _active(1),
            _add_group,
            _sizes({"master": 1, "worker": 1}, {"master": 1, "worker": 1, "extra": 1}),
        ),
        Operation("delete", _active(1), _delete, _ends_gone),
        Operation("execute", _active(1), _execute, _ends_well),
        Operation("cancel", _running, _cancel, _ends_killed),
        Operation("transient", _nothing, _transient, _ends_well_alone),
    )
}
