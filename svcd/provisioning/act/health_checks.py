"""Checks Active clusters at intervals, and writes the findings that `decide.health` judges.

A check only reads: it repairs nothing and starts nothing. It never runs beside an operation: when
the row has changed meanwhile, the check writes nothing, and the next check begins anew. When the
cloud does not answer, the checks change no row; they log one line.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from functools import partial
from typing import Final

from attrs import define, field
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import NotFound
from svcd.model.cloud import Server
from svcd.model.cluster import Cluster, ClusterEvent
from svcd.model.ids import ClusterId, Timestamp, timestamp
from svcd.ports.cloud import Access, CloudError, CloudSession
from svcd.ports.faults import Fault
from svcd.ports.lease import Lease
from svcd.provisioning.act.perform import Ports
from svcd.provisioning.act.questions import Questions
from svcd.provisioning.act.rows import Rows
from svcd.provisioning.decide import health, lifecycle
from svcd.provisioning.decide.failures import code_of
from svcd.provisioning.decide.health import Judged, Key, Seen
from svcd.provisioning.decide.machines_view import machines
from svcd.runtime.fencing import Alone
from svcd.runtime.logs import about
from svcd.runtime.places import Places
from svcd.runtime.tasks import DeadlineExceeded, KeyedTasks, Loop, with_deadline
from svcd.settings import Provisioning

log = Logger()

AT_ONCE: Final = 60
"""Clusters that svcd checks in parallel, those of one tenant at most half of them."""
_TICK_S: Final = 10.0
"""The longest time between two searches for clusters that are due."""
_CHECK_S: Final = 120.0
"""Deadline of the check of one cluster."""
_AGAIN_S: Final = 30.0
"""Seconds to the second check, which confirms or clears a suspicion."""
_UNWELL_S: Final = 60.0
"""Seconds to the next check of a cluster that is not well."""
_RARELY_S: Final = 30.0
"""Shortest seconds between two checks of a cluster that `wake` names."""
_SPREAD_S: Final = 0.3
"""Seconds between the first checks of two clusters after a start."""
_MOST_ASKED: Final = 20
"""Servers missing in the list that one check reads by id."""


@define(kw_only=True)
class _Kept:
    """The memory of an Active cluster; a restart may lose it.

    due, checked: clock seconds. suspected: ailments that one check has found, in `generation`.
    unwell: the result of the last check.
    """

    due: float
    checked: float = float("-inf")
    generation: int = 0
    suspected: Mapping[Key, Timestamp] = field(factory=dict)
    unwell: bool = False


class HealthChecks:
    """Checks each Active cluster every `health_poll_s`; 0: never.

    lease: svcd checks clusters only while it is held.
    """

    def __init__(
        self,
        ports: Ports,
        clock: IReactorTime,
        settings: Provisioning,
        rng: random.Random,
        lease: Lease | None = None,
    ) -> None:
        self._lease: Lease = lease or Alone()
        self._ports = ports
        self._rows = Rows(ports.store, ports.metrics)
        self._questions = Questions(ports)
        self._clock = clock
        self._settings = settings
        self._rng = rng
        self._every_s = settings.health_poll_s
        self._kept: dict[ClusterId, _Kept] = {}
        self._turned = False
        self._outage_logged = False
        tick_s = min(_TICK_S, max(self._every_s / 10, 0.5))
        self._loop = Loop(clock, "health checks", tick_s, self._turn, self._lease)
        self._places = Places(AT_ONCE, partial(clock.callLater, 0.0))
        self._checks: KeyedTasks[ClusterId] = KeyedTasks(
            clock, "health check", self._visit, limit=sys.maxsize, rng=rng, lease=self._lease
        )

    def start(self) -> None:
        """Begin. Clusters that are Active now are checked soon, later ones within one period.

        The findings in the rows may be old: machines have ended or come back meanwhile.
        """
        if self._every_s > 0:
            self._loop.start(now=False)

    async def stop(self) -> None:
        """Stop. Running checks end without a result."""
        await self._loop.stop()
        await self._checks.stop()

    def wake(self, cluster_id: ClusterId) -> None:
        """Check this cluster soon; at most once every 30 s."""
        kept = self._kept.get(cluster_id)
        if self._every_s <= 0 or not self._lease.held:
            return
        now = self._clock.seconds()
        if kept is None:
            kept = self._kept[cluster_id] = _Kept(due=now)
        due = max(now, kept.checked + _RARELY_S)
        if due < kept.due or kept.checked == float("-inf"):
            kept.due = due
            if due <= now:
                self._loop.wake()

    def forget(self) -> None:
        """Drop the memory of all clusters, because this daemon has lost the lease."""
        self._kept.clear()
        self._turned = False

    def unwell(self) -> int:
        """The number of this daemon's Active clusters that were not well at their last check."""
        return sum(kept.unwell for kept in self._kept.values())

    # ---- which ----

    async def _turn(self) -> None:
        """Wake the checks of the clusters that are due. A check delays no other one."""
        active = await self._ports.store.read(lambda tx: tx.clusters.active())
        now = self._clock.seconds()
        kept = self._kept
        spread = self._every_s if self._turned else min(self._every_s, _SPREAD_S * len(active))
        self._turned = True
        self._kept = {
            id_: kept.get(id_) or _Kept(due=now + self._rng.random() * spread) for id_ in active
        }
        for id_, known in self._kept.items():
            if known.due <= now:
                self._checks.wake(id_)

    async def _visit(self, cluster_id: ClusterId) -> None:
        cluster = await self._ports.store.read(lambda tx: tx.clusters.find(cluster_id))
        if cluster is None:
            return
        async with self._places.place((cluster.tenant_id,), cluster_id):
            kept, now = self._kept.get(cluster_id), self._clock.seconds()
            if kept is None or kept.due > now:
                return
            kept.checked, kept.due = now, now + self._every_s
            await self._check_now(cluster_id, kept)

    async def _check_now(self, cluster_id: ClusterId, kept: _Kept) -> None:
        try:
            await self._bounded(cluster_id, kept)
        except (CloudError, DeadlineExceeded) as error:
            self._log_outage(error)
            return
        if self._outage_logged:
            self._outage_logged = False
            log.info("The cloud shows the servers of Active clusters again")

    def _log_outage(self, error: CloudError | DeadlineExceeded) -> None:
        """Log the first fault of an outage of the cloud."""
        if not self._outage_logged:
            self._outage_logged = True
            text = error.text if isinstance(error, CloudError) else f"{error.args[0]} timed out"
            log.warn("The health of Active clusters cannot be checked now: {why}", why=text)

    # ---- one cluster ----

    async def _bounded(self, cluster_id: ClusterId, kept: _Kept) -> None:
        cluster = await self._ports.store.read(lambda tx: tx.clusters.find(cluster_id))
        if cluster is None or not lifecycle.may_be_checked(cluster):
            kept.suspected = {}
            return
        with about(tenant=cluster.tenant_id, cluster=cluster_id):
            if kept.generation != cluster.generation:
                kept.generation, kept.suspected = cluster.generation, {}
            check = self._check(cluster, kept.suspected)
            judged = await with_deadline(self._clock, _CHECK_S, "a health check", check)
            if judged.cluster != cluster:
                # False: the row has changed since the check began
                if not await self._rows.write(cluster, judged.cluster, judged.events):
                    kept.suspected = {}
                    return
                for event in judged.events:
                    _log(cluster, event)
        kept.suspected = judged.suspected
        kept.unwell = judged.unwell
        if judged.suspected:
            kept.due = min(kept.due, self._clock.seconds() + _AGAIN_S)
        elif judged.unwell:
            kept.due = min(kept.due, self._clock.seconds() + _UNWELL_S)

    async def _check(self, cluster: Cluster, suspected: Mapping[Key, Timestamp]) -> Judged:
        """The result of one check. Raises CloudError when the cloud does not answer."""
        now = timestamp(self._clock.seconds())
        access = Access(tenant_id=cluster.tenant_id, trust_id=cluster.trust_id)
        try:
            seen = await self._servers(cluster, self._ports.cloud.session(access))
        except CloudError as error:
            own = cluster.trust_id is None and error.kind is Fault.UNAUTHORIZED
            # the cloud refuses svcd's own user, which is no fault of this cluster
            if error.passing or own:
                raise
            seen = health.of_cloud(code_of(error), error.text, now)
        down = {a.machine for a in seen.bad if a.what == health.SERVER}
        absent = {i.instance_id for i in cluster.instances() if i.instance_name in down}
        parts: frozenset[Key] = frozenset()
        try:
            distribution = self._ports.distributions.get(cluster.plugin_name)
        except NotFound as error:
            seen = seen.and_of(health.of_missing_distribution(error.message, now))
            parts = health.keys_of(cluster, ())
        else:
            asked = health.questions(distribution.check(cluster, machines(cluster, absent)))
            answers = await self._questions.ask(cluster, [question for question, _ in asked])
            seen = seen.and_of(health.of_daemons(cluster, asked, answers, now))
            parts = health.keys_of(cluster, distribution.check(cluster, machines(cluster)))
        return health.judged(cluster, seen, parts, suspected, self._clock.seconds())

    async def _servers(self, cluster: Cluster, session: CloudSession) -> Seen:
        """Read the list of servers. Read servers that it lacks by id, because lists lag."""
        prefix = f"{cluster.name}-".lower()
        shown = list(await session.servers(cluster.id, prefix))
        gone: list[str] = []
        for server_id in health.unlisted(cluster, shown)[:_MOST_ASKED]:
            server = await _server(session, server_id)
            if server is None:
                gone.append(server_id)
            else:
                shown.append(server)
        now = timestamp(self._clock.seconds())
        return health.of_servers(cluster, shown, gone, now).and_of(health.CLOUD_ANSWERS)


def _log(cluster: Cluster, event: ClusterEvent) -> None:
    name, first = cluster.name, event.text.splitlines()[0]
    if event.outcome == "failed":
        log.warn("Cluster {name} {id} is not well: {why}", name=name, id=cluster.id, why=first)
    else:
        log.info("Cluster {name} {id}: {what}", name=name, id=cluster.id, what=first)


async def _server(session: CloudSession, server_id: str) -> Server | None:
    """The server, or None when the cloud does not have it."""
    try:
        return await session.server(server_id)
    except CloudError as error:
        if error.kind is Fault.NOT_FOUND:
            return None
        raise
