"""What must hold at every moment, looked at before each call of the daemon and after each step.

No server twice for an instance, no workflow twice for an execution, no end state left, `end_time`
set once. A breach is kept, with the moment, and told in the story.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from attrs import define

from svcd.model.cluster import Cluster
from svcd.model.ids import seconds_of
from svcd.model.lifetime import NOTICE_S, end_of
from svcd.runtime import fencing

if TYPE_CHECKING:
    from tests.simulation.process import Process
    from tests.simulation.world import Heard, World

_STAGING_S = 300.0
"""Between the look at a daemon's identity and the first folder: a login is made, calls are slow."""
_SUBMIT_S = 90.0
"""Between the look and a submit: a row is written, and the call is slow."""
_DRIFT_S = 3.0
"""Clocks of daemons differ by less."""
_decode = msgspec.json.Decoder(Cluster).decode
TERMINAL = frozenset({"SUCCEEDED", "KILLED", "FAILED"})


@define
class _Execution:
    version: int
    status: str
    end_time: str | None


class Watch:
    """breaches: what did not hold."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.breaches: list[str] = []
        self._executions: dict[str, _Execution] = {}
        self._clusters: dict[str, tuple[int, str]] = {}
        self._lives: dict[str, Cluster] = {}
        self._changes = -1
        self._servers_made = 0
        self._submitted = 0
        self.clusters_seen: dict[str, None] = {}

    def breach(self, text: str) -> None:
        told = self._world.named(text)
        if told not in self.breaches:
            self.breaches.append(told)
            self._world.tell(f"BREACH {told}")

    def look(self) -> None:
        self._rows()
        self._servers()
        self._workflows()

    # ---- rows ----

    def _rows(self) -> None:
        world = self._world
        changes = world.svcd._database._connection.total_changes
        if changes == self._changes:
            return
        self._changes = changes
        for id_, version, status in world.rows("select id, version, status from clusters"):
            if id_ not in self.clusters_seen:
                self.clusters_seen[id_] = None
            before = self._clusters.get(id_)
            if before is not None and before[0] == version:
                continue
            self._clusters[id_] = (version, status)
            self._life(id_)
            if before is None or before[1] != status:
                why = self.description(id_)
                world.tell(f"  {world.name(id_)} is {status}{': ' if why else ''}{why}")
        for id_, version, status in world.rows("select id, version, status from executions"):
            known = self._executions.get(id_)
            if known is None or known.version != version:
                self._changed(id_, version, status, known)

    def _life(self, cluster_id: str) -> None:
        """A cluster that svcd deletes by itself was due, was warned of, and nobody used it."""
        world = self._world
        [(record,)] = world.rows(f"select record from clusters where id = '{cluster_id}'")
        after, before = _decode(record), self._lives.get(cluster_id)
        self._lives[cluster_id] = after
        if before is None or after.is_transient or after.desired is before.desired:
            return
        path = f"/clusters/{cluster_id}"
        if any(a.method == "DELETE" and a.path.startswith(path) for a in world.asked):
            return
        end, now, name = end_of(before), world.clock.seconds() + _DRIFT_S, world.name(cluster_id)
        if end is None or before.warned_at is None or end.at > now:
            self.breach(f"{name} is deleted by itself at {now}, and not {end}")
        elif now - seconds_of(before.warned_at) < NOTICE_S:
            self.breach(f"{name} is deleted by itself too soon after {before.warned_at}")
        elif end.field == "idle_delete_s" and world.rows(
            f"select 1 from executions where cluster_id = '{cluster_id}' and ended = 0"
        ):
            self.breach(f"{name} is deleted by itself, and an execution uses it")
        else:
            world.tell(f"  {name} ends by itself")

    def description(self, cluster_id: str) -> str:
        """The code in a cluster's status_description."""
        found = self._world.rows(f"select record from clusters where id = '{cluster_id}'")
        text = json.loads(found[0][0]).get("status_description", "") if found else ""
        return text.partition(":")[0]

    def _changed(self, id_: str, version: int, status: str, known: _Execution | None) -> None:
        world = self._world
        [(record,)] = world.rows(f"select record from executions where id = '{id_}'")
        end_time = json.loads(record).get("end_time")
        now = _Execution(version, status, end_time)
        self._executions[id_] = now
        name = world.name(id_)
        if known is None or known.status != status:
            world.tell(f"  {name} is {status}")
        if (end_time is not None) != (status in TERMINAL):
            self.breach(f"{name} is {status} with end_time {end_time}")
        if known is None:
            return
        if known.status in TERMINAL and status != known.status:
            self.breach(f"{name} left {known.status} for {status}")
        if known.status not in TERMINAL and status in TERMINAL:
            self._left_in_yarn(id_, json.loads(record).get("failure") or {})
        if known.end_time is not None and end_time != known.end_time:
            self.breach(f"{name}: end_time {known.end_time} became {end_time}")

    def _left_in_yarn(self, id_: str, failure: Mapping[str, str]) -> None:
        """Nothing of a job whose launcher died, unless its failure says so."""
        told = failure.get("text", "")
        if failure.get("code") != "LAUNCHER_LOST" or "still running" in told or "not known" in told:
            return
        engines = [self._world.svcd.engines.engine(c) for c in self.clusters_seen]
        for job in (job for e in engines for job in e.jobs.values() if job.external_id == id_):
            if not job.child_killed:
                self.breach(f"{self._world.name(id_)} has ended, and its child runs: {told}")

    # ---- who acts ----

    def acts(self, by: Process, heard: Heard) -> None:
        """Under the newest term of the lease, or under none; and never for a stranger."""
        self._obeys(heard)
        term = fencing.current()
        if term is None or heard.where == "store":  # there the fence decides
            return
        rows = self._world.rows("select holder, epoch from lease")
        if rows != [(term.holder, term.epoch)] or term.holder != by.name:
            self.breach(f"{by.name} acts without its lease: {heard}")

    def _obeys(self, heard: Heard) -> None:
        """The engine of another cluster gets nothing, long after svcd could see whose it is.

        svcd asks whose it is before it makes a folder, before it submits, and before it removes.
        """
        if heard.where == "engine":
            changes, most_s = heard.method == "POST", _SUBMIT_S
        else:
            changes, most_s = "op=MKDIRS" in heard.path or heard.method == "DELETE", _STAGING_S
        if not changes:
            return
        for cluster_id, since in self._world.strangers.items():
            if cluster_id in heard.path and self._world.now - since > most_s:
                self.breach(f"work for a stranger in place of {cluster_id}: {heard}")

    # ---- the outside ----

    def _servers(self) -> None:
        cloud = self._world.svcd.cloud
        made = cloud.calls["compute POST /v2.1/servers"]
        if made == self._servers_made:
            return
        self._servers_made = made
        alive = Counter(
            s.metadata.get("svcd_instance_id", "")
            for s in cloud.core.state.servers.values()
            if s.status != "ERROR" and s.task_state != "deleting"
        )
        for instance_id, count in alive.items():
            if count > 1:
                self.breach(f"{count} servers for instance {instance_id}")

    def _workflows(self) -> None:
        engines = [self._world.svcd.engines.engine(c) for c in self.clusters_seen]
        submitted = sum(e.submissions for e in engines)
        if submitted == self._submitted:
            return
        self._submitted = submitted
        found: Counter[Any] = Counter(j.external_id for e in engines for j in e.jobs.values())
        for execution_id, count in found.items():
            if count > 1:
                self.breach(f"{count} workflows for execution {execution_id}")
