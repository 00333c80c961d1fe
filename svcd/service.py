# mypy: allow-untyped-calls
"""The composition root: this module alone connects the rooms.

`Daemon` is the service over given ports, on any clock. The real service and the fake one differ
only in these arguments. `twistd` runs `DaemonService` and `CloudService`.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attrs import evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IListeningPort, IReactorTime
from twisted.logger import Logger
from twisted.web.client import Agent

from svcd.clients.cloud import OpenStack
from svcd.clients.connections import Connections
from svcd.clients.http import HttpClient
from svcd.clients.oozie import OozieClient, engine_error
from svcd.clients.probe import HttpProbe
from svcd.clients.webhdfs import WebHdfsClient
from svcd.errors import NotFound
from svcd.model.cluster import Cluster
from svcd.model.cluster_token import ClusterTokens
from svcd.model.connect_rules import ConnectRules
from svcd.model.idempotency import KEEP_S
from svcd.model.ids import ClusterId, ExecutionId, timestamp
from svcd.model.job import JobType
from svcd.model.loopback import is_loopback_url
from svcd.open_database import open_database
from svcd.ports.cloud import ApplicationCredentials, Cloud, Identity, ObjectStore
from svcd.ports.engine import Engine, FileSystem
from svcd.ports.leases import Leases
from svcd.ports.machines import Probe, Remote
from svcd.ports.store import Sealer
from svcd.provisioning.act.controller import RESCAN_S, Controller
from svcd.provisioning.act.health_checks import HealthChecks
from svcd.provisioning.act.perform import Ports
from svcd.provisioning.act.transient import Transient
from svcd.provisioning.act.trusts import TrustSweep
from svcd.provisioning.commands import Clusters, Templates
from svcd.provisioning.decide.firewall import Firewall
from svcd.provisioning.decide.machines_view import machines, planned
from svcd.provisioning.distributions.registry import DistributionError, Distributions
from svcd.provisioning.distributions.spi import Endpoints, Hint, IDistribution
from svcd.resources import api
from svcd.runtime import audit as audits
from svcd.runtime import open_files
from svcd.runtime.audit import Audit, AuditError
from svcd.runtime.fencing import Alone
from svcd.runtime.first_command import first_command
from svcd.runtime.listening import EndpointError, ListenError, listen, origin_of, url_of
from svcd.runtime.metrics import Metrics
from svcd.runtime.preflight import SettingsRefused, StartError
from svcd.runtime.pulse import Pulse
from svcd.runtime.slices import Slices
from svcd.runtime.state_dir import CLOUD_LOCK, StateFolder, StateFolderError
from svcd.runtime.systemd import ServiceManager
from svcd.runtime.tasks import Loop, sleep
from svcd.runtime.work_metrics import Census
from svcd.settings import CloudSettings, Loaded, Settings
from svcd.store.database import SchemaError
from svcd.store.sealer import FernetSealer, SealerError, key_file
from svcd.store.store import SqlStore
from svcd.workflow.act.controller import Controller as JobController
from svcd.workflow.commands import Jobs
from svcd.workflow.decide.object_store import ObjectStoreAccess

if TYPE_CHECKING:
    from svcd.embedded.host import EmbeddedHost
    from svcd.store.leases.keeper import LeaseKeeper

log = Logger()

_YOUNG = 10_000
"""New objects that cause a look for garbage. With Python's default, a tick of a few dozen jobs
causes several looks: what the tick still needs counts as old then, and the old objects, which take
long, are looked through too often."""
_SWEEP_S = 3600.0
"""Time between two removals of dead uploads, old changes and old answers."""


@frozen(kw_only=True)
class Outside:
    """The outside of a daemon: its clock, its database and the clients of its peers.

    identity: None with `auth.mode=none`. keeper: None when no other daemon shares the database.
    audit: None when it is off.
    """

    clock: IReactorTime
    store: SqlStore
    identity: Identity | None
    cloud: Cloud
    object_store: ObjectStore
    credentials: ApplicationCredentials
    remote: Remote
    probe: Probe
    engine: Engine
    files: FileSystem
    sealer: Sealer
    new_id: Callable[[], str]
    rng: random.Random
    cloud_ready: Callable[[], Any] | None = None
    installation: str = ""
    audit: Audit | None = None
    keeper: LeaseKeeper | None = None
    metrics: Metrics = field(factory=Metrics)


class Engines:
    """Implements ports.engine.Engines by means of the distributions."""

    def __init__(self, distributions: Distributions) -> None:
        self._distributions = distributions

    def endpoints(self, cluster: Cluster) -> Endpoints | None:
        made_by = self._of(cluster)
        return None if made_by is None else made_by.endpoints(cluster, machines(cluster))

    def has_engine(self, cluster: Cluster) -> bool:
        made_by = self._of(cluster)
        return made_by is not None and made_by.endpoints(cluster, planned(cluster)) is not None

    def job_types(self, cluster: Cluster) -> Sequence[JobType]:
        made_by = self._of(cluster)
        return () if made_by is None else made_by.job_types(cluster.engine_version)

    def hints(self, job_type: JobType) -> Sequence[Hint]:
        found: dict[str, Hint] = {}
        for each in self._distributions.all():
            for version in each.versions:
                for hint in each.hints(version, job_type):
                    found.setdefault(hint.name, hint)
        return list(found.values())

    def _of(self, cluster: Cluster) -> IDistribution | None:
        """The distribution of `cluster`; None when it is no longer enabled.

        Clusters of a disabled distribution can still be deleted.
        """
        try:
            return self._distributions.get(cluster.plugin_name)
        except NotFound:
            return None


class Daemon:
    """All rooms of one daemon. `site` serves a port, `resource` serves an agent in memory.

    services: what the API is built of.
    """

    def __init__(
        self, outside: Outside, settings: Settings, distributions: Distributions, auth_url: str
    ) -> None:
        self._outside = outside
        metrics = outside.metrics
        access = ObjectStoreAccess(
            auth_url=auth_url, region=settings.cloud.region, interface=settings.cloud.interface
        )
        engines = Engines(distributions)
        clock, store, new_id, rng = outside.clock, outside.store, outside.new_id, outside.rng
        keeper = outside.keeper
        leases: Leases = Alone() if keeper is None else keeper.holdings
        own_login = settings.cloud.job_credentials == "application"
        self.executions = JobController(
            store=store,
            engine=outside.engine,
            files=outside.files,
            object_store=outside.object_store,
            credentials=outside.credentials if own_login else None,
            installation=outside.installation,
            engines=engines,
            probe=outside.probe,
            sealer=outside.sealer,
            clock=clock,
            settings=settings.workflow,
            access=access,
            idle=self._check_idle_clusters,
            noticed=self._check_health,
            rng=rng,
            leases=leases,
            metrics=metrics.work,
        )
        ports = Ports(
            store=store,
            cloud=outside.cloud,
            remote=outside.remote,
            probe=outside.probe,
            distributions=distributions,
            sealer=outside.sealer,
            kill_executions=self.executions.jobs.kill_all_of,
            installation=outside.installation,
            firewall=Firewall(
                ssh_cidrs=settings.cloud.ssh_cidrs, web_cidrs=settings.cloud.web_cidrs
            ),
            metrics=metrics.work,
        )
        self.controller = Controller(
            ports,
            clock,
            settings.provisioning,
            rng,
            settled=self._settled,
            leases=leases,
            rescan_s=RESCAN_S if keeper is None else settings.database.rescan_s,
        )
        self.health_checks = HealthChecks(ports, clock, settings.provisioning, rng, leases)
        self.transient = Transient(
            store,
            self.controller,
            clock,
            settings.provisioning,
            leases,
            self.executions.kept_logs.holds,
        )
        self.trusts = TrustSweep(store, outside.cloud, clock, leases)
        metrics.watch_work(Census(store, clock))
        metrics.unwell(self.health_checks.unwell)
        metrics.watch_trusts(lambda: self.trusts.figures)
        self._sweeps = Loop(clock, "sweeps of the store", _SWEEP_S, self._sweep)
        if keeper is not None:
            metrics.leases(keeper.holdings.count)
            keeper.holdings.watch(self._gained, self._lost)
            keeper.notified, keeper.declared_dead = self._notified, self._sweeps.wake
        self.clusters = Clusters(
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
        self.jobs = Jobs(
            store=store,
            engine=outside.engine,
            engines=engines,
            controller=self.executions,
            create_cluster=partial(self.clusters.create, path="$.cluster"),
            plan_cluster=partial(self.clusters.plan, path="$.cluster"),
            clock=clock,
            new_id=new_id,
            settings=settings.workflow,
            access=access,
        )
        self.services = api.ApiServices(
            store=store,
            identity=outside.identity,
            cloud=outside.cloud,
            object_store=outside.object_store,
            clusters=self.clusters,
            templates=Templates(
                store, outside.cloud, distributions, clock, new_id, settings.provisioning
            ),
            jobs=self.jobs,
            distributions=distributions,
            clock=clock,
            tokens=ClusterTokens(outside.sealer.digest),
            settings=settings,
            readiness=self._readiness,
            new_id=new_id,
            installation=outside.installation,
            metrics=metrics,
            audit=outside.audit,
        )
        metrics.watch_database(store.figures)
        metrics.watchers(self.services.feeds.count)
        self.resource, self.site = api.build(self.services)
        has_own = bool(settings.server.admin_listen)
        self.admin_site = api.build_admin(self.services) if has_own else None

    async def start(self) -> None:
        """Resume unfinished work. The caller opens the port after this."""
        await self.controller.start()
        self.executions.start()
        self.transient.start()
        self.health_checks.start()
        self.trusts.start()
        self._sweeps.start(now=False)

    async def drain(self, seconds: float) -> None:
        """Answer the waiting requests now, and all others within `seconds`."""
        self.services.waits.end()
        await self.site.drain(seconds)

    async def stop(self) -> None:
        """Park all work. The next start resumes it from the rows."""
        self.services.waits.end()
        self.resource.end_streams()
        await self.services.feeds.stop()
        await self._sweeps.stop()
        await self.health_checks.stop()
        await self.trusts.stop()
        await self.transient.stop()
        await self.executions.stop()
        await self.controller.stop()
        await self._outside.remote.close()

    def activity(self) -> Mapping[str, int]:
        """How many clusters and executions have a running task now."""
        return {"clusters": self.controller.active(), "executions": self.executions.active()}

    async def _sweep(self) -> None:
        clock, store = self._outside.clock, self._outside.store
        now = clock.seconds()
        await store.sweep(now)
        while await store.prune_feed(now):
            await sleep(clock, 0.0)
        while await store.prune_answers(timestamp(now - KEEP_S)):
            await sleep(clock, 0.0)

    def _gained(self) -> None:
        """This daemon has got leases: the queries of a start find the work of their rows."""
        self.controller.wake_all()
        self.executions.gained()
        self.transient.wake()
        self.trusts.wake()

    def _lost(self) -> None:
        self.controller.forget()
        self.executions.forget()
        self.health_checks.forget()

    def _notified(self, text: str) -> None:
        """Another daemon has changed a row; see `notify` of both controllers."""
        match text.split():
            case ["cluster", id_]:
                self.controller.wake(ClusterId(id_))
            case ["execution", id_, key]:
                self.executions.notified(ExecutionId(id_), key)
                self.transient.wake()
            case ["changed", sender, *tenants]:
                self._outside.store.heard(sender, tenants)
            case _:
                log.warn("Another daemon sent an unknown notification: {text}", text=text[:80])

    def _check_idle_clusters(self) -> None:
        self.transient.wake()

    def _check_health(self, cluster_id: ClusterId) -> None:
        self.health_checks.wake(cluster_id)

    def _settled(self, cluster_id: ClusterId) -> None:
        self.executions.wake()

    async def _readiness(self) -> Mapping[str, str]:
        parts = {"store": await self._outside.store.ready()}
        if self._outside.keeper is not None:
            parts["leases"] = self._outside.keeper.problem
        if self._outside.cloud_ready is not None:
            parts["cloud"] = await self._outside.cloud_ready()
        return parts


class DaemonService:
    """The service of `twistd svcd`: the daemon with its real clients, on the reactor.

    broken: fails with StartError when the daemon cannot continue.
    """

    def __init__(self, reactor: Any, loaded: Loaded) -> None:
        self._reactor = reactor
        self._settings = loaded.settings
        self._folder: StateFolder | None = None
        self._machines: StateFolder | None = None
        self._host: EmbeddedHost | None = None
        self._store: SqlStore | None = None
        self._daemon: Daemon | None = None
        self._port: IListeningPort | None = None
        self._admin_port: IListeningPort | None = None
        self._pulse: Pulse | None = None
        self._manager = ServiceManager({}, 0)
        self.broken: Deferred[None] = Deferred()

    async def start(self) -> None:
        """Open everything, resume unfinished work and listen. Raises StartError."""
        self._manager = ServiceManager(os.environ, os.getpid())
        self._settings = settings = open_files.fitted(self._settings)
        try:
            self._folder = StateFolder(settings.server.state_dir)
            audit = audits.opened(
                self._reactor, settings.log.audit, self._folder.path, settings.log.audit_bytes
            )
            sealer = FernetSealer(key_file(settings))
            opened = await open_database(
                self._reactor, settings, self._folder, self._database_taken
            )
            self._store = store = opened.store(sealer, settings.limits)
            try:
                await store.open(timestamp(self._reactor.seconds()))
            except SealerError as error:
                raise sealer.refused(error) from None
            cloud_settings = settings.cloud
            if settings.cloud.kind == "embedded":
                self._machines = StateFolder(settings.server.state_dir, CLOUD_LOCK)
                self._host = _embedded(self._reactor, settings, self._folder)
                await self._host.start()
                cloud_settings = self._host.client_settings()
            distributions = Distributions(
                settings.plugins.enabled,
                fake_engine_url=settings.fake.engine_url
                or origin_of(cloud_settings.auth_url) + "/engine",
            )
        except (DistributionError, EndpointError) as error:
            raise SettingsRefused(str(error)) from error
        except (StateFolderError, SealerError, SchemaError, ListenError, AuditError) as error:
            raise StartError(str(error)) from error
        self._daemon = Daemon(
            evolve(self._outside(store, sealer, cloud_settings), keeper=opened.keeper, audit=audit),
            settings,
            distributions,
            cloud_settings.auth_url,
        )
        if opened.keeper is not None:
            await opened.keeper.begin()
        await self._daemon.start()
        self._daemon.resource.compile()  # a route that exists twice ends the start
        self._daemon.site.noisy = False
        try:
            self._port = await listen(
                self._reactor, "server.listen", settings.server.listen, self._daemon.site
            )
            if self._daemon.admin_site is not None:
                self._admin_port = await self._listen_admin(self._daemon.admin_site)
        except EndpointError as error:
            raise SettingsRefused(str(error)) from error
        except ListenError as error:
            raise StartError(str(error)) from error
        base = url_of(self._port, settings.server.listen)
        self._folder.write_endpoints(
            {
                "api": base,
                **self._admin_endpoint(),
                **(self._host.endpoints() if self._host is not None else {}),
                "pid": os.getpid(),
            }
        )
        if self._pulse is not None:
            self._pulse.start()
        _freeze()
        gc.set_threshold(_YOUNG)
        self._manager.ready(f"Serving {base}")
        command = first_command(base, settings, _activate(), Path.cwd())
        log.info("Serving {base}; try in another shell: {command}", base=base, command=command)

    async def stop(self) -> None:
        """Stop the listener, then requests, then tasks, then the embedded cloud and the store."""
        self._manager.stopping()
        if self._folder is not None:
            self._folder.remove_endpoints()
        for port in (self._port, self._admin_port):
            if port is not None:
                await cast("Any", port.stopListening())
        if self._daemon is not None:
            await self._daemon.drain(self._settings.server.drain_s)
            await self._daemon.stop()
        if self._pulse is not None:
            await self._pulse.stop()
        if self._host is not None:
            await self._host.stop()
        if self._store is not None:
            await self._store.close()
        for folder in (self._machines, self._folder):
            if folder is not None:
                folder.release()

    def _beat(self, metrics: Metrics, late_s: float) -> None:
        metrics.lagged(late_s)
        self._manager.alive()

    async def _listen_admin(self, site: api.ApiSite) -> IListeningPort:
        site.noisy = False
        return await listen(
            self._reactor, "server.admin_listen", self._settings.server.admin_listen, site
        )

    def _admin_endpoint(self) -> Mapping[str, str]:
        """The part of endpoints.json about `server.admin_listen`."""
        if self._admin_port is None:
            return {}
        return {"admin": url_of(self._admin_port, self._settings.server.admin_listen)}

    def _database_taken(self, reason: str) -> None:
        if not self.broken.called:
            self.broken.errback(StartError(reason))

    def _outside(self, store: SqlStore, sealer: FernetSealer, cloud: CloudSettings) -> Outside:
        from svcd.clients.ssh import SshRemote  # here: a FakeService needs no SSH

        reactor, settings = self._reactor, self._settings
        slices = Slices(reactor)
        pool = Connections(reactor, slices=slices)
        pool.maxPersistentPerHost = max(2, settings.cloud.calls_at_once)
        pool.cachedConnectionTimeout = 20  # below the keep-alive of the peers
        agent = Agent(reactor, pool=pool, connectTimeout=10.0)
        metrics = Metrics()
        database = "postgresql" if settings.database.url.startswith("postgres") else "sqlite"
        metrics.of_process({"cloud": settings.cloud.kind, "database": database})
        self._pulse = Pulse(reactor, partial(self._beat, metrics))
        platform = OpenStack(agent, reactor, cloud, metrics.work.cloud_called)
        rules = connect_rules(settings.cloud)
        remote = SshRemote(reactor, reactor, settings.ssh, rules, slices)
        engine_http = HttpClient(
            agent,
            reactor,
            engine_error,
            max_body_bytes=settings.limits.answer_bytes,
            setting="limits.answer_bytes",
            machines=remote,
        )
        return Outside(
            clock=reactor,
            store=store,
            identity=platform.identity(settings.auth) if settings.auth.mode == "keystone" else None,
            cloud=platform,
            object_store=platform,
            credentials=platform,
            remote=remote,
            probe=HttpProbe(agent, reactor, remote),
            engine=OozieClient(engine_http),
            files=WebHdfsClient(engine_http),
            sealer=sealer,
            new_id=lambda: str(uuid.uuid4()),
            rng=random.Random(),
            cloud_ready=platform.ready,
            installation=sealer.installation,
            metrics=metrics,
        )


class CloudService:
    """The service of `twistd svcd-cloud`: the embedded cloud without the daemon."""

    def __init__(self, reactor: Any, loaded: Loaded) -> None:
        self._reactor = reactor
        self._settings = loaded.settings
        self._folder: StateFolder | None = None
        self._host: EmbeddedHost | None = None

    async def start(self) -> None:
        """Start the embedded cloud. Raises StartError."""
        try:
            self._folder = StateFolder(self._settings.server.state_dir, CLOUD_LOCK)
            self._host = _embedded(self._reactor, self._settings, self._folder, admin=True)
            await self._host.start()
        except EndpointError as error:
            raise SettingsRefused(str(error)) from error
        except (StateFolderError, ListenError) as error:
            raise StartError(str(error)) from error
        self._folder.write_endpoints({**self._host.endpoints(), "pid": os.getpid()})
        _freeze()
        log.info("Serving identity at {url}", url=self._host.client_settings().auth_url)

    async def stop(self) -> None:
        """Stop the embedded cloud. Its machines continue to run."""
        if self._folder is not None:
            self._folder.remove_endpoints()
        if self._host is not None:
            await self._host.stop()
        if self._folder is not None:
            self._folder.release()


def _freeze() -> None:
    """Keep the collector from what lives as long as the process.

    A full collection of it would stall the reactor. Frees the garbage of the imports and the start.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _embedded(
    reactor: Any, settings: Settings, folder: StateFolder, *, admin: bool = False
) -> EmbeddedHost:
    from svcd.embedded import installations  # here: only with `cloud.kind=embedded`
    from svcd.embedded.host import EmbeddedHost

    for left in installations.leftovers(installations.running(), but=str(folder.path)):
        log.warn("{text}", text=left.warning)
    return EmbeddedHost(reactor, settings, folder.path, _image_problem, admin=admin)


def _image_problem(prefix: Path) -> str:
    from svcd.provisioning.distributions.vanilla.image import build  # here: only embedded machines

    return build.problem(prefix) or ""


def connect_rules(cloud: CloudSettings) -> ConnectRules | None:
    """The machines that svcd may connect to; None: all.

    The machines of a development cloud are loopback, so only given networks are a rule there.
    """
    is_development = is_loopback_url(cloud.auth_url) and not cloud.machine_cidrs
    if cloud.kind == "embedded" or is_development:
        return None
    return ConnectRules.of(cloud.machine_cidrs, cloud.ssh_ports)


def _activate() -> Path | None:
    """The script of the virtual environment that the daemon runs in; None outside of one."""
    script = Path(sys.prefix, "bin", "activate")
    return script if script.exists() else None
