"""What must hold once everything is at rest, and once all clusters are gone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from attrs import evolve

from svcd.model.cluster import Cluster, ClusterStatus, Desired
from svcd.model.ids import seconds_of, timestamp
from svcd.model.lifetime import end_of
from svcd.provisioning.decide.failures import Code as ClusterCode
from svcd.workflow.decide.failures import Code as JobCode
from tests.simulation.process import Process
from tests.simulation.watch import TERMINAL
from tests.simulation.world import USERS, World

CLUSTER_CODES = frozenset(c.value for c in ClusterCode)
JOB_CODES = frozenset(c.value for c in JobCode)
_LATE_S = 900.0
"""svcd looks at a cluster's use at intervals, and warns before it deletes the cluster."""
_decode = msgspec.json.Decoder(Cluster).decode
_FOLDER = re.compile(r"/user/[^/]+/svcd/([^/]+)$")


def clusters(world: World) -> dict[str, Any]:
    """Cluster id -> record, as stored."""
    return {i: json.loads(r) for i, r in world.rows("select id, record from clusters")}


def executions(world: World) -> dict[str, Any]:
    return {i: json.loads(r) for i, r in world.rows("select id, record from executions")}


def records(world: World) -> list[Cluster]:
    """The clusters that nobody wants to delete."""
    rows = [_decode(record) for _, record in world.rows("select id, record from clusters")]
    return [row for row in rows if row.desired is Desired.ACTIVE]


def latest_end(row: Cluster) -> float:
    """When an unused cluster is being deleted at the latest, in epoch seconds; 0.0: never."""
    if row.idle_delete_s and row.idle_since is None and row.status is ClusterStatus.ACTIVE:
        since = seconds_of(row.updated_at or row.created_at)
        row = evolve(row, idle_since=timestamp(since))
    end = end_of(row)
    return 0.0 if end is None else end.at + _LATE_S


def overdue(world: World) -> Iterator[str]:
    """Clusters that should have ended by themselves."""
    for row in records(world):
        at = latest_end(row)
        if at and world.clock.seconds() > at:
            yield f"{world.name(row.id)} is {row.status}, and should have ended by itself"


def instances(cluster: Any) -> list[Any]:
    return [i for g in cluster["node_groups"] for i in g.get("instances", ())]


def busy(world: World) -> str:
    """What is still going on, "" at rest. A job that runs at its engine is going on."""
    activity = world.activity()
    for each in world.processes:
        if each.state != "up":
            return f"{each.name} is {each.state}"
    if any(a.status == 0 for a in world.asked):
        return "requests without an answer"
    for key in ("clusters", "executions", "calls"):
        if activity[key]:
            return f"{activity[key]} {key} under way"
    for id_, row in clusters(world).items():
        if row["generation"] > row["settled_generation"]:
            return f"{world.name(id_)} is not settled"
    for id_, row in executions(world).items():
        if row["status"] not in TERMINAL or row.get("delete_requested"):
            return f"{world.name(id_)} is {row['status']}"
    for cluster_id, due_at in world.rows("select cluster_id, due_at from loose_trusts"):
        return f"a trust of {world.name(cluster_id)} is looked for at {due_at}"
    for id_, due_at in world.rows("select execution_id, due_at from job_credentials"):
        return f"an application credential of {world.name(id_)} is looked for at {due_at}"
    return ""


def quiet(world: World, limit_s: float) -> str:
    """What is still going on after `limit_s`, "" as soon as nothing is."""
    end, by = world.now + limit_s, 1.0
    while True:
        trouble = busy(world)
        if not trouble or world.now >= end:
            return trouble
        world.advance(by)
        by = min(60.0, by * 1.3)


def _made_twice(world: World) -> Iterator[str]:
    """Records that no request with a key has answered, beside those whose last answer was lost."""
    told = [json.loads(content) for content in world.first.values()]
    known = {id_ for answer in told for each in answer.values() for id_ in _ids(each)}
    tables = ("clusters", "executions", "jobs", "job_binaries", "data_sources")
    rows = {str(i) for table in tables for (i,) in world.rows(f"select id from {table}")}
    unanswered = {a.key for a in world.asked if a.key and a.key not in world.first}
    unknown = rows - known
    if world.retries and len(unknown) > 2 * len(unanswered):  # an execution with its cluster
        names = ", ".join(world.name(id_) for id_ in sorted(unknown))
        yield f"made without an answer, with {len(unanswered)} keys unanswered: {names}"


def _ids(record: Mapping[str, Any]) -> set[str]:
    """The record's own id, and that of its transient cluster."""
    return {str(record[key]) for key in ("id", "cluster_id") if record.get(key)}


def at_rest(world: World, excused: frozenset[str]) -> list[str]:
    """What does not hold. excused: clusters that were harmed from outside.

    What forced deletions have left is looked at by `leftovers`.
    """
    faults: list[str] = list(_made_twice(world))
    rows = clusters(world)
    for id_, row in rows.items():
        name = world.name(id_)
        if row["status"] not in ("Active", "Error"):
            faults.append(f"{name} rests as {row['status']}")
        if row["status"] == "Error" and not row.get("status_description"):
            faults.append(f"{name} is in Error without a reason")
        faults += [f"{name}: {f}" for f in _codes_of(row)]
        faults += [f"{name}: {f}" for f in _counts(row)]
    faults += _events(world)
    faults += _cloud(world, rows, excused)
    faults += _executions(world, rows)
    faults += _timers(world)
    return faults


def _codes_of(row: Any) -> Iterator[str]:
    for line in row.get("status_description", "").splitlines()[:1]:  # the rest may be quoted
        code = line.partition(":")[0]
        if code not in CLUSTER_CODES:
            yield f"no known code in {line[:80]!r}"
        if code == ClusterCode.INTERNAL.value:
            yield f"a bug: {line[:200]!r}"


def _events(world: World) -> Iterator[str]:
    for cluster_id, record in world.rows("select cluster_id, record from cluster_events"):
        code = json.loads(record).get("code", "")
        if code and code not in CLUSTER_CODES | JOB_CODES:
            yield f"{world.name(cluster_id)}: event with the unknown code {code}"


def _counts(row: Any) -> Iterator[str]:
    for group in row["node_groups"]:
        mine = group.get("instances", ())
        if any(i.get("leaving") for i in mine) and row["status"] == "Active":
            yield f"group {group['name']} has instances that leave"
        elif len(mine) != group["count"] and row["status"] == "Active":
            yield f"group {group['name']} counts {group['count']} and has {len(mine)}"
    names = [i["instance_name"] for i in instances(row)]
    if len(set(names)) != len(names):
        yield f"two instances of one name: {names}"
    if row["status"] == "Active":
        for group in row["node_groups"]:
            ran = {i.get("scripts_done", 0) for i in group.get("instances", ())}
            if ran - {len(group.get("scripts", ()))}:
                yield f"group {group['name']} has run {ran} of its first-boot scripts"
    if row["status"] == "Active" and any(not i.get("server_id") for i in instances(row)):
        yield "Active with an instance without a server"


# ---- the cloud ----------------------------------------------------------------------------------


def _cloud(world: World, rows: Mapping[str, Any], excused: frozenset[str]) -> Iterator[str]:
    held = _held(world)
    for cluster_id in {**dict.fromkeys(held), **dict.fromkeys(rows)}:
        if cluster_id in excused or (cluster_id in world.told.left and cluster_id not in rows):
            continue
        row = rows.get(cluster_id)
        have = held.get(cluster_id, Counter())
        want = Counter() if row is None else _wanted(row)
        if row is not None and row["status"] == "Error":
            if row["desired"] == "deleted":
                continue  # its deletion has failed: it names what is left
            have = Counter({k: n for k, n in have.items() if k[0] == "server"})
            want = Counter({k: n for k, n in want.items() if k[0] == "server"})
        if have != want:
            what = "is gone" if row is None else f"is {row['status']}"
            surplus, missing = have - want, want - have
            yield world.named(
                f"{world.name(cluster_id)} {what}, the cloud has besides {_shown(surplus)}, "
                f"lacks {_shown(missing)}"
            )
    yield from _trusts(world, rows)
    for each in world.svcd.cloud.core.state.credentials.values():
        yield world.named(f"application credential {each.name} is left")


def _trusts(world: World, rows: Mapping[str, Any]) -> Iterator[str]:
    """Those of the rows, neither more nor fewer."""
    there = {t.id for t in world.svcd.cloud.core.state.trusts.values()}
    named = {row["trust_id"] for row in rows.values() if row.get("trust_id")}
    going = {row["trust_id"] for row in rows.values() if row["desired"] == "deleted"}
    if there - named:
        yield f"{len(there - named)} trusts of nobody"
    if named - there - going:
        yield f"{len(named - there - going)} rows name a trust that is gone"


def _shown(things: Counter[Any]) -> str:
    return ", ".join(" ".join(map(str, k)) for k in things) or "nothing"


def _held(world: World) -> dict[str, Counter[Any]]:
    state = world.svcd.cloud.core.state
    held: dict[str, Counter[Any]] = {}

    def add(cluster_id: str, *thing: Any) -> None:
        held.setdefault(cluster_id, Counter())[thing] += 1

    for server in state.servers.values():
        add(server.metadata.get("svcd_cluster_id", "nobody"), "server", server.id)
    for volume in state.volumes.values():
        owner = volume.metadata.get("svcd_cluster_id", "nobody")
        add(owner, "volume", volume.metadata.get("svcd_instance_id"), volume.server_id)
    ports = {p.id: p for p in state.ports.values()}
    for ip in state.floating_ips.values():
        _, _, rest = ip.description.partition(":")
        port = ports.get(ip.port_id or "")
        add(rest.partition(":")[0] or "nobody", "floating IP", port.device_id if port else None)
    for port in ports.values():
        if port.device_id not in {s.id for s in state.servers.values()}:
            add("nobody", "port", port.id)
    # A call that takes effect after its daemon has died, or its time, makes a second, empty group
    # of the cluster's name, by which both go with it.
    for name in {g.name: None for g in state.security_groups.values() if g.name != "default"}:
        add(name.removeprefix("svcd-"), "security group")
    for name in {g.name: None for g in state.server_groups.values()}:
        add(name.removeprefix("svcd-"), "server group")
    return held


def _wanted(row: Any) -> Counter[Any]:
    wanted: Counter[Any] = Counter()
    made = False
    for group in row["node_groups"]:
        for each in group.get("instances", ()):
            server_id = each.get("server_id")
            if not server_id:
                continue
            made = True
            wanted["server", server_id] += 1
            if group["volumes_per_node"]:
                wanted["volume", each["instance_id"], server_id] += group["volumes_per_node"]
            if group.get("floating_ip_pool"):
                wanted["floating IP", server_id] += 1
    if made:
        wanted["security group",] += 1
        if row.get("anti_affinity"):
            wanted["server group",] += 1
    return wanted


# ---- executions ---------------------------------------------------------------------------------


_TIMES: Final = ("startTime", "lastModTime", "endTime")


def _parts(shown: str) -> Sequence[Mapping[str, Any]]:
    """The engine's record of a workflow and of each of its actions, as a caller sees them."""
    info = json.loads(shown)["info"]
    return [info, *info.get("actions", ())]


def _executions(world: World, rows: Mapping[str, Any]) -> Iterator[str]:
    now = world.svcd.clock.seconds()
    known = executions(world)
    for id_, row in known.items():
        name = world.name(id_)
        if row["status"] not in TERMINAL:
            yield f"{name} rests as {row['status']}"
        failure = row.get("failure")
        if row["status"] == "FAILED" and not failure:
            yield f"{name} FAILED without a reason"
        if failure and failure["code"] not in JOB_CODES:
            yield f"{name}: unknown code {failure['code']}"
        if failure and failure["code"] == JobCode.INTERNAL.value:
            yield f"{name}: a bug: {failure['text']}"
        if failure and row["status"] == "SUCCEEDED":
            yield f"{name} SUCCEEDED with the failure {failure['code']}"
        if not row.get("cluster_id"):
            yield f"{name} does not say where it ran"
    for id_, text in world.rows("select id, wire from executions where ended = 1"):
        if any(part.get(time, "") is None for part in _parts(text) for time in _TIMES):
            yield f"{world.name(id_)} has ended with a time that is null"
    for cluster_id in rows:
        engine = world.svcd.engines.engine(cluster_id)
        for job in engine.jobs.values():
            if job.status(now) not in TERMINAL:
                yield f"a workflow of {world.name(job.external_id or '')} runs, nobody watches it"
        for path in engine.files.nodes:
            found = _FOLDER.match(path)
            left = [name for name, _ in engine.files.children(path)] if found else []
            if found and any(f"{path}/{name}" not in world.late for name in left):
                yield f"the folder of {world.name(found[1])} is left: {world.named(path)}"


# ---- the daemon ---------------------------------------------------------------------------------


def _timers(world: World) -> Iterator[str]:
    activity = world.activity()
    if activity != world.at_start:
        yield f"at rest {activity}, at the start {world.at_start}"
    for each in world.processes:
        for what, count in _kept(each).items():
            if count:
                yield f"{each.label}{what} is kept: {count}"
    yield from _lease(world)


def _kept(process: Process) -> Mapping[str, int]:
    daemon: Any = process.daemon
    kept = {
        "controller states": daemon.controller._states,
        "engines": daemon.executions._observer._engines,
        "questions about stalled steps": daemon.executions._observer._rounds.active(),
        "states of executions": daemon.executions._states,
    }
    return {what: len(where) for what, where in kept.items()}


def _lease(world: World) -> Iterator[str]:
    """One daemon holds it, and the database says the same."""
    sharing = [each for each in world.processes if each.keeper is not None]
    if not sharing:
        return
    [(holder, epoch)] = world.rows("select holder, epoch from lease")
    workers = [each.name for each in sharing if each.works()]
    if workers != [holder]:
        yield f"the lease is held by {holder!r}, and {workers} work"
    for each in sharing:
        keeper: Any = each.keeper
        believed = keeper.holding.epoch
        if believed is not None and (each.name, believed) != (holder, epoch):
            yield f"{each.name} believes in epoch {believed} of the lease, and it is {epoch}"
        if keeper.problem:
            yield f"{each.name}: {keeper.problem}"


def stopped(world: World) -> Iterator[str]:
    """After a stop of all processes: what is left of them."""
    for each in world.processes:
        if each.state != "down":
            yield f"{each.name} is {each.state} after its stop"
    [(holder,)] = world.rows("select holder from lease")
    [(daemons,)] = world.rows("select count(*) from daemons")
    if holder or daemons:
        yield f"after all have stopped {daemons} daemons are there, and {holder!r} has the lease"


def tenants(world: World) -> Iterator[str]:
    """Each tenant sees what is its own, and 404 for all else: what does not hold."""
    rows = clusters(world)
    for tenant in USERS:
        own = {i for i, r in rows.items() if r["tenant_id"] == tenant}
        listed = world.answer(world.ask(tenant, "GET", "/clusters"))
        seen = {c["id"] for c in listed.json["clusters"]} if listed.accepted else None
        if seen != own:
            yield f"{tenant} sees {len(seen or ())} clusters and has {len(own)}"
        for id_, row in rows.items():
            status = world.answer(world.ask(tenant, "GET", f"/clusters/{id_}")).status
            if status != (200 if row["tenant_id"] == tenant else 404):
                yield f"{tenant} gets {status} for {world.name(id_)} of {row['tenant_id']}"
        for id_, row in executions(world).items():
            status = world.answer(world.ask(tenant, "GET", f"/job-executions/{id_}")).status
            if status != (200 if row["tenant_id"] == tenant else 404):
                yield f"{tenant} gets {status} for {world.name(id_)} of {row['tenant_id']}"


def all_gone(world: World, excused: frozenset[str]) -> Sequence[str]:
    """After the deletion of every cluster: nothing is left anywhere."""
    faults = [f"{world.name(i)} is not gone: {r['status']}" for i, r in clusters(world).items()]
    for cluster_id, things in _held(world).items():
        if cluster_id not in excused:
            faults.append(f"left of {world.name(cluster_id)}: {_shown(things)}")
    trusts = len(world.svcd.cloud.core.state.trusts)
    if trusts:
        faults.append(f"{trusts} trusts are left")
    for id_, row in executions(world).items():
        if not row.get("cluster_id"):
            faults.append(f"{world.name(id_)} does not say where it ran")
    return faults
