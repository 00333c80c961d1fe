"""Every call to the outside of an operation, and everything that can befall it, one case each.

The trace of an operation is recorded once, undisturbed. Then, for each position in it, the
operation runs anew in a world of its own with one crash or one fault at that call, and must end as
the table of the interface says, with nothing left behind.

The same with two daemons on one database, where the one that makes the call dies or is frozen until
long after the other has taken over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import evolve, frozen

from svcd.embedded.faults import Effect, FaultRule
from tests.simulation import leftovers, requests, rest
from tests.simulation.answers import page, told
from tests.simulation.world import Asked, Freeze, Heard, World

TENANT = "alpha"
REST_S = 4 * 3600.0
TIDY_S = 5.0
"""After rest: what an operation leaves behind is tidied up within this time."""

_STUCK_S = 400.0

_FATAL: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("503", "garbage", "time-out before", "time-out after"), frozenset({"ssh"})),
    "401": frozenset({"engine", "hdfs"}),
    "403": frozenset({"identity", "compute", "image", "network", "volume", "engine", "hdfs"}),
}
"""Variant -> where it ends the work with a code: a command that fails or does not end in its time,
and a peer that knows who asks, and says no."""

_NO = frozenset({"401", "403"})
_SAID_NO = frozenset(
    ("STAGING_FAILED", "ENGINE_REFUSED", "FORBIDDEN", "BINARY_UNREADABLE", "JOB_CREDENTIAL")
)
"""Codes of executions that a peer has refused."""

_LATE = re.compile(r"the folder of run is left")
"""A folder that a call makes once more after its time-out goes with the cluster's HDFS."""

_CLOUD = frozenset({"identity", "compute", "image", "network", "volume", "object-store"})
_WORKFLOW = frozenset({"engine", "hdfs", "probe"})
_HTTP = _CLOUD | _WORKFLOW
AWAY_S = 30.0
FROZEN_S = 40.0

_LEASES: Mapping[str, str] = {
    "database.lease_s": "5",
    "database.renew_s": "1.5",
    "database.rescan_s": "15",
}


@frozen
class Variant:
    """What befalls one call: a fault rule, an answer of its peer, or what is done to who calls.

    places: where it makes sense. methods: and for which, empty: for all. daemons: in the world.
    """

    name: str
    places: frozenset[str] = _HTTP
    methods: frozenset[str] = frozenset()
    rule: Mapping[str, Any] = {}
    answer: Callable[[str], Mapping[str, Any]] | None = None
    befall: Callable[[World, int], None] | None = None
    daemons: int = 1

    def fits(self, heard: Heard) -> bool:
        """Whether it makes sense for such a call."""
        return heard.where in self.places and (not self.methods or heard.method in self.methods)

    def plan(self, world: World, number: int) -> None:
        """Have it befall the call with that number."""
        if self.befall is not None:
            self.befall(world, number)
        else:
            world.plan.rules[number] = self._rule

    def _rule(self, heard: Heard) -> FaultRule:
        more = self.rule if self.answer is None else self.answer(heard.where)
        return FaultRule(where=heard.where, **more)


def _crash(done: bool) -> Callable[[World, int], None]:
    return lambda world, number: world.plan.crashes.update({number: done})


def _freeze(before: bool) -> Callable[[World, int], None]:
    freeze = Freeze(before=before, seconds=FROZEN_S, timers_first=before)
    return lambda world, number: world.plan.freezes.update({number: freeze})


def _away(world: World, number: int) -> None:
    """The database goes, with the answer to this call, and comes back."""

    def go() -> None:
        world.server.go_away()
        world.clock.callLater(AWAY_S, world.server.come_back)

    world.plan.calls[number] = go


_ALL = _HTTP | {"ssh", "store"}
_OUTSIDE = _HTTP | {"ssh"}
_WRITES = frozenset({"POST", "PUT", "DELETE", "PATCH"})
_TX = frozenset({"tx"})

VARIANTS = (
    Variant("crash before", _ALL, befall=_crash(False)),
    Variant("crash after", _ALL, befall=_crash(True)),
    Variant("stop", _ALL, befall=lambda world, number: world.plan.stops.add(number)),
    Variant("refused", _ALL, rule={"effect": Effect.REFUSED}),
    Variant("time-out before", _OUTSIDE, rule={"effect": Effect.TIMEOUT_BEFORE}),
    Variant("time-out after", _OUTSIDE, rule={"effect": Effect.TIMEOUT_AFTER}),
    Variant("answer lost", frozenset({"store"}), _TX, rule={"effect": Effect.TIMEOUT_AFTER}),
    Variant("database away", frozenset({"store"}), befall=_away),
    Variant("503", _OUTSIDE, rule={"effect": Effect.ANSWER, "status": 503}),
    Variant("500", answer=partial(told, 500)),
    Variant("502 page", answer=partial(page, 502)),
    Variant("429", answer=partial(told, 429, **{"Retry-After": "7"})),
    Variant("garbage", _OUTSIDE, rule={"effect": Effect.GARBAGE}),
    Variant("slow", _ALL, rule={"effect": Effect.DELAY, "delay_s": 20.0}),
    Variant("late", methods=_WRITES, rule={"effect": Effect.LATE, "delay_s": 45.0}),
    Variant("401", answer=partial(told, 401)),
    Variant("403", answer=partial(told, 403)),
    Variant("dead", _ALL, _WRITES | _TX | {""}, befall=_crash(True), daemons=2),
    Variant("frozen before", _ALL, _WRITES | _TX | {""}, befall=_freeze(True), daemons=2),
    Variant("frozen after", _ALL, _WRITES | _TX | {""}, befall=_freeze(False), daemons=2),
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
    """prepare: what must be there before. act: the request. judge: what is wrong at the end.

    theirs: peers to which the user's own credentials are shown, so that a no is for good.
    """

    name: str
    prepare: Callable[[World], Ready]
    act: Callable[[World, Ready], Asked]
    judge: Callable[[World, Ready, Asked, bool], Iterator[str]]
    theirs: frozenset[str] = frozenset()


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


def world_of(operation: Operation, daemons: int = 1) -> tuple[World, Ready]:
    """A world in which the operation can begin."""
    settings = {"auth.mode": "keystone", "provisioning.poll_s": "3", **_LEASES}
    world = World(1, settings, daemons)
    world.downtime_s = lambda: 1.0 if daemons == 1 else FROZEN_S
    return world, operation.prepare(world)


def trace(operation: Operation, daemons: int = 1) -> list[Heard]:
    """The calls of an undisturbed run, up to rest."""
    world, ready = world_of(operation, daemons)
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
        for daemons in (1, 2)
        for position, heard in enumerate(trace(operation, daemons))
        for variant in VARIANTS
        if variant.daemons == daemons and variant.fits(heard)
    ]


def play(case: Case) -> Result:
    """One case from beginning to end."""
    operation = OPERATIONS[case.operation]
    variant = next(v for v in VARIANTS if v.name == case.variant)
    world, ready = world_of(operation, variant.daemons)
    try:
        number = len(world.calls) + 1 + case.position
        variant.plan(world, number)
        asked = operation.act(world, ready)
        _settle(world)
        call = str(world.calls[number - 1])
        place = call.partition(" ")[0]
        excusable = place in _FATAL.get(variant.name, ()) or (
            variant.name in _NO and place in operation.theirs
        )
        for each in (
            *operation.judge(world, ready, asked, excusable),
            *rest.at_rest(world, frozenset()),
            *leftovers.at_rest(world, frozenset()),
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
        for each in (*leftovers.removed(world), *rest.all_gone(world, frozenset())):
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


def _stored(world: World) -> Ready:
    """The job's script lies in the tenant's object store."""
    return evolve(_active(1)(world), job_id=requests.stored_job(world, TENANT))


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
        return evolve(ready, cluster_id=made["cluster"]["id"])

    return prepare


def _running(world: World) -> Ready:
    ready = _active(1)(world)
    asked = _execute(world, ready, run_s="300")
    execution_id = requests.made(world, asked)["job_execution"]["id"]
    world.advance(12.0)
    return evolve(ready, execution_id=execution_id)


# ---- operations ----------------------------------------------------------------------------------


def _create(world: World, ready: Ready) -> Asked:
    body = requests.cluster("mine", _worker(), anti_affinity=["datanode"])
    return world.ask(TENANT, "POST", "/clusters", body, name="mine")


def _resize(count: int) -> Callable[[World, Ready], Asked]:
    body = {"resize_node_groups": [{"name": "worker", "count": count}]}
    return lambda world, ready: world.ask(TENANT, "PUT", f"/clusters/{ready.cluster_id}", body)


def _add_group(world: World, ready: Ready) -> Asked:
    body = {"add_node_groups": [requests.group("extra", 1, init_scripts=["a.pig"])]}
    return world.ask(TENANT, "PUT", f"/clusters/{ready.cluster_id}", body)


def _delete(world: World, ready: Ready) -> Asked:
    return world.ask(TENANT, "DELETE", f"/clusters/{ready.cluster_id}")


def _force(world: World, ready: Ready) -> Asked:
    """Its volume cannot be removed for a while."""
    stuck = world.svcd.faults.add(where="volume", method="DELETE", status=500)
    world.clock.callLater(_STUCK_S, stuck.remove)
    return world.ask(TENANT, "DELETE", f"/clusters/{ready.cluster_id}?force=true")


def _execute(world: World, ready: Ready, run_s: str = "3", outcome: str = "succeed") -> Asked:
    execution = requests.execution(ready.sources, run_s=run_s, outcome=outcome)
    body = {"cluster_id": ready.cluster_id, **execution}
    return world.ask(TENANT, "POST", f"/jobs/{ready.job_id}/execute", body, name="run")


def _execute_failing(world: World, ready: Ready) -> Asked:
    return _execute(world, ready, outcome="fail")


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


def _ends_well(world: World, _: Ready, asked: Asked, excusable: bool) -> Iterator[str]:
    """Accepted: SUCCEEDED. Not accepted: absent, or only the answer was lost."""
    yield from _ends_as(world, asked, excusable, "SUCCEEDED", "")


def _ends_well_alone(world: World, ready: Ready, asked: Asked, excusable: bool) -> Iterator[str]:
    """The same, and its cluster is gone; a cluster without an execution is gone too."""
    if not excusable:
        yield from _ends_well(world, ready, asked, excusable)
    for row in rest.clusters(world).values():
        yield f"its cluster is {row['status']}: {row['status_description'][:200]}"


def _ends_badly(world: World, _: Ready, asked: Asked, excusable: bool) -> Iterator[str]:
    """Accepted: KILLED by the engine, with the reason. Not accepted: as above."""
    yield from _ends_as(world, asked, excusable, "KILLED", "EXCEPTION")


def _ends_as(world: World, asked: Asked, excusable: bool, status: str, code: str) -> Iterator[str]:
    rows = list(rest.executions(world).values())
    if asked.accepted and not rows:
        yield "the accepted execution is not there"
    for row in rows:
        found = (row.get("failure") or {}).get("code", "")
        said_no = excusable and found in _SAID_NO
        if (row["status"], found) != (status, code) and not said_no:
            yield f"it ends as {row['status']}: {row.get('failure')}"


def _ends_killed(world: World, ready: Ready, asked: Asked, _: bool) -> Iterator[str]:
    """Accepted, or recorded: KILLED. Not recorded: it has gone on to its end."""
    row = rest.executions(world)[ready.execution_id]
    wished = asked.accepted or row.get("cancel_requested")
    if row["status"] != ("KILLED" if wished else "SUCCEEDED"):
        yield f"it ends as {row['status']} with cancel_requested {wished}"
    if row.get("failure") and wished:
        yield f"a cancel is told as the failure {row['failure']}"


_ONE, _TWO = {"master": 1, "worker": 1}, {"master": 1, "worker": 2}
_USERS_OWN = frozenset({"identity", "object-store"})

OPERATIONS: Mapping[str, Operation] = {
    each.name: each
    for each in (
        Operation("create", _nothing, _create, _ends_active),
        Operation("scale up", _active(1), _resize(2), _sizes(_ONE, _TWO)),
        Operation("scale down", _active(2), _resize(1), _sizes(_TWO, _ONE)),
        Operation("add group", _active(1), _add_group, _sizes(_ONE, {**_ONE, "extra": 1})),
        Operation("delete", _active(1), _delete, _ends_gone),
        Operation("force", _active(1), _force, _ends_gone),
        Operation("execute", _active(1), _execute, _ends_well),
        Operation("execute stored", _stored, _execute, _ends_well, _USERS_OWN),
        Operation("execute failing", _active(1), _execute_failing, _ends_badly),
        Operation("cancel", _running, _cancel, _ends_killed),
        Operation("transient", _nothing, _transient, _ends_well_alone),
    )
}
