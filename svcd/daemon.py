"""A daemon: this module alone connects the rooms.

`Daemon` is the service over given ports, on any clock. The real service (`svcd.service`) and the
fake one (`svcd.testing`) differ only in these arguments.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from attrs import field, frozen
from twisted.internet.defer import maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.clients.cloud import OpenStack
from svcd.model.cloud import Firewall
from svcd.model.cluster_token import ClusterTokens
from svcd.model.ids import ClusterId, ExecutionId
from svcd.ports.engine import Engine, FileSystem
from svcd.ports.lease import Lease
from svcd.ports.machines import Probe, Remote
from svcd.ports.store import Sealer
from svcd.provisioning.act.controller import RESCAN_S, Controller
from svcd.provisioning.act.endings import Endings
from svcd.provisioning.act.health_checks import HealthChecks
from svcd.provisioning.act.perform import Ports
from svcd.provisioning.act.trusts import TrustSweep
from svcd.provisioning.commands import Clusters, Templates
from svcd.provisioning.distributions.registry import Distributions
from svcd.provisioning.engines import Engines
from svcd.resources import api
from svcd.runtime.audit import Audit
from svcd.runtime.fencing import Alone
from svcd.runtime.metrics import Metrics
from svcd.runtime.work_metrics import Census
from svcd.settings import Settings
from svcd.store.store import SqlStore
from svcd.store.sweeps import Sweeps
from svcd.workflow.act.controller import Controller as JobController
from svcd.workflow.commands import Jobs
from svcd.workflow.decide.object_store import ObjectStoreAccess

if TYPE_CHECKING:
    from svcd.store.lease.keeper import LeaseKeeper

log = Logger()


@frozen(kw_only=True)
class Outside:
    """The outside of a daemon: its clock, its database and the clients of its peers.

    keeper: None on SQLite. audit: None when it is off.
    """

    clock: IReactorTime
    store: SqlStore
    cloud: OpenStack
    remote: Remote
    probe: Probe
    engine: Engine
    files: FileSystem
    sealer: Sealer
    new_id: Callable[[], str]
    rng: random.Random
    installation: str = ""
    audit: Audit | None = None
    keeper: LeaseKeeper | None = None
    metrics: Metrics = field(factory=Metrics)


class Part(Protocol):
    """A part of a daemon that works on its own, from what it finds in the rows."""

    def start(self) -> Awaitable[None] | None: ...
    async def stop(self) -> None: ...


class Daemon:
    """All rooms of one daemon. `site` serves a port, `resource` serves an agent in memory.

    services: what the API is built of. The parts that work on their own start in the order in which
    they are made, and stop in reverse.
    """

    def __init__(
        self, outside: Outside, settings: Settings, distributions: Distributions, auth_url: str
    ) -> None:
        self._outside, self._settings = outside, settings
        self._distributions = distributions
        self._engines = Engines(distributions)
        self._access = ObjectStoreAccess(
            auth_url=auth_url, region=settings.cloud.region, interface=settings.cloud.interface
        )
        store, clock, rng = outside.store, outside.clock, outside.rng
        provisioning, keeper = settings.provisioning, outside.keeper
        lease: Lease = Alone() if keeper is None else keeper.holding
        self._lease = lease
        self.executions = self._executions()
        ports = self._ports()
        self.controller = Controller(
            ports,
            clock,
            provisioning,
            rng,
            settled=lambda _: self.executions.wake(),
            lease=lease,
            rescan_s=RESCAN_S if keeper is None else settings.database.rescan_s,
        )
        self.endings = Endings(
            ports,
            self.controller,
            clock,
            provisioning,
            rng,
            lease,
            self.executions.kept_logs.holds,
            outside.audit,
        )
        self.health_checks = HealthChecks(ports, clock, provisioning, rng, lease)
        self.trusts = TrustSweep(store, outside.cloud, clock, lease)
        self.sweeps = Sweeps(store, clock, lease)
        self._parts: Sequence[Part] = (
            self.controller,
            self.executions,
            self.endings,
            self.health_checks,
            self.trusts,
            self.sweeps,
        )
        self.services = self._services()
        self.resource, self.site = api.build(self.services)
        has_own = bool(settings.server.admin_listen)
        self.admin_site = api.build_admin(self.services) if has_own else None
        self._measure()
        if keeper is not None:
            keeper.holding.watch(self._gained, self._lost)
            keeper.notified = self._notified

    async def start(self) -> None:
        """Resume unfinished work. The caller opens the port after this."""
        for part in self._parts:
            await maybeDeferred(part.start)

    async def drain(self, seconds: float) -> None:
        """Answer the waiting requests now, and all others within `seconds`."""
        self.services.waits.end()
        await self.site.drain(seconds)

    async def stop(self) -> None:
        """Park all work. The next start resumes it from the rows."""
        self.services.waits.end()
        self.resource.end_streams()
        await self.services.feeds.stop()
        for part in reversed(self._parts):
            await part.stop()
        await self._outside.remote.close()

    def activity(self) -> Mapping[str, int]:
        """How many clusters and executions have a running task now."""
        return {"clusters": self.controller.active(), "executions": self.executions.active()}

    # ---- the parts ----

    def _executions(self) -> JobController:
        outside, settings = self._outside, self._settings
        own_login = settings.cloud.job_credentials == "application"
        return JobController(
            store=outside.store,
            engine=outside.engine,
            files=outside.files,
            object_store=outside.cloud,
            credentials=outside.cloud if own_login else None,
            installation=outside.installation,
            engines=self._engines,
            probe=outside.probe,
            sealer=outside.sealer,
            clock=outside.clock,
            settings=settings.workflow,
            access=self._access,
            noticed=self._noticed,
            rng=outside.rng,
            lease=self._lease,
            metrics=outside.metrics.work,
        )

    def _noticed(self, cluster_id: ClusterId) -> None:
        """An execution waits for the cluster, or a transient cluster may have no more to do."""
        self.endings.wake()
        self.health_checks.wake(cluster_id)

    def _ports(self) -> Ports:
        outside, cloud = self._outside, self._settings.cloud
        return Ports(
            store=outside.store,
            cloud=outside.cloud,
            remote=outside.remote,
            probe=outside.probe,
            distributions=self._distributions,
            sealer=outside.sealer,
            kill_executions=self.executions.kill_all_of,
            installation=outside.installation,
            firewall=Firewall(ssh_cidrs=cloud.ssh_cidrs, web_cidrs=cloud.web_cidrs),
            metrics=outside.metrics.work,
        )

    def _services(self) -> api.ApiServices:
        outside, settings, distributions = self._outside, self._settings, self._distributions
        store, clock, new_id = outside.store, outside.clock, outside.new_id
        with_tokens = settings.auth.mode == "keystone"
        clusters = Clusters(
            store,
            outside.cloud,
            distributions,
            self.controller,
            outside.sealer,
            clock,
            new_id,
            settings.provisioning,
            settings.limits.instances,
        )
        jobs = Jobs(
            store=store,
            engines=self._engines,
            controller=self.executions,
            create_cluster=partial(clusters.create, path="$.cluster"),
            plan_cluster=partial(clusters.plan, path="$.cluster"),
            clock=clock,
            new_id=new_id,
            settings=settings.workflow,
            access=self._access,
        )
        return api.ApiServices(
            store=store,
            identity=outside.cloud.identity(settings.auth) if with_tokens else None,
            cloud=outside.cloud,
            object_store=outside.cloud,
            clusters=clusters,
            templates=Templates(
                store, outside.cloud, distributions, clock, new_id, settings.provisioning
            ),
            jobs=jobs,
            distributions=distributions,
            clock=clock,
            tokens=ClusterTokens(outside.sealer.digest),
            settings=settings,
            readiness=self._readiness,
            new_id=new_id,
            installation=outside.installation,
            metrics=outside.metrics,
            audit=outside.audit,
        )

    def _measure(self) -> None:
        """Let the metrics show what the parts know."""
        metrics, outside = self._outside.metrics, self._outside
        metrics.watch_work(Census(outside.store, outside.clock))
        metrics.watch_database(outside.store.figures)
        metrics.watch_trusts(lambda: self.trusts.figures)
        metrics.unwell(self.health_checks.unwell)
        metrics.watchers(self.services.feeds.count)
        if outside.keeper is not None:
            holding = outside.keeper.holding
            metrics.lease(lambda: holding.held)

    # ---- other daemons ----

    def _gained(self) -> None:
        """This daemon has got the lease: each part searches its rows for work, as after a start.

        Unsettled clusters; executions that run, or have a folder or a deletion left; lost job
        credentials; clusters that end by themselves; trusts without a cluster; dead uploads and old
        rows.
        Health checks and the removal of old executions begin at their usual times.
        """
        self.controller.gained()
        self.executions.gained()
        self.endings.wake()
        self.trusts.wake()
        self.sweeps.wake()

    def _lost(self) -> None:
        self.controller.forget()
        self.executions.forget()
        self.health_checks.forget()
        self.endings.forget()
        self.trusts.forget()

    def _notified(self, text: str) -> None:
        """Another daemon has changed a row; see `notify` of both controllers."""
        match text.split():
            case ["cluster", id_]:
                self.controller.wake(ClusterId(id_))
            case ["execution", id_]:
                self.executions.notified(ExecutionId(id_))
                self.endings.wake()
            case ["changed", sender, *tenants]:
                self._outside.store.heard(sender, tenants)
            case _:
                log.warn("Another daemon sent an unknown notification: {text}", text=text[:80])

    async def _readiness(self) -> Mapping[str, str]:
        parts = {"store": await self._outside.store.ready()}
        if self._outside.keeper is not None:
            parts["lease"] = self._outside.keeper.problem
        parts["cloud"] = await self._outside.cloud.ready()
        return parts
