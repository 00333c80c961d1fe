# mypy: allow-untyped-calls
"""The services of `twistd svcd` and `twistd svcd-cloud`: a daemon with its real clients and ports.

What is opened at the start is closed at the stop in reverse order, also when the start fails.

Note: alone or shared. The embedded cloud is a part of its daemon, and no other daemon can control
its machines. So daemons can share a PostgreSQL database when their cloud is an OpenStack. A daemon
with an embedded cloud has its own database.
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import socket
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import Logger
from twisted.web.client import Agent

from svcd.clients.cloud import OpenStack
from svcd.clients.connections import Connections
from svcd.clients.http import HttpClient
from svcd.clients.oozie import OozieClient, engine_error
from svcd.clients.probe import HttpProbe
from svcd.clients.webhdfs import WebHdfsClient
from svcd.daemon import Daemon, Outside
from svcd.model.connect_rules import ConnectRules
from svcd.model.ids import timestamp
from svcd.model.loopback import is_loopback_url
from svcd.provisioning.distributions.registry import DistributionError, Distributions
from svcd.resources import api
from svcd.runtime import audit as audits
from svcd.runtime import open_files
from svcd.runtime.audit import AuditError
from svcd.runtime.clock import steady_seconds, wall_seconds
from svcd.runtime.first_command import first_command
from svcd.runtime.listening import EndpointError, ListenError, listen, origin_of, url_of
from svcd.runtime.metrics import Metrics
from svcd.runtime.preflight import SettingsRefused, StartError
from svcd.runtime.pulse import Pulse
from svcd.runtime.slices import Slices
from svcd.runtime.state_dir import CLOUD_LOCK, StateFolder, StateFolderError, hold_database
from svcd.runtime.systemd import ServiceManager
from svcd.settings import CloudSettings, Loaded, Settings
from svcd.store.database import SchemaError
from svcd.store.sealer import FernetSealer, SealerError, key_file
from svcd.store.sqlite import SqliteDatabase
from svcd.store.store import SqlStore

if TYPE_CHECKING:
    from svcd.embedded.host import EmbeddedHost
    from svcd.store.lease.keeper import LeaseKeeper

log = Logger()

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""
_KEPT_BYTES = 64 << 20
"""Most freed memory that the process keeps at the end of its heap."""
_FROM_HEAP_BYTES = 32 << 20
"""Size of a block from which it is not taken from the heap; glibc takes no larger value."""
_YOUNG = 10_000
"""New objects that cause a look for garbage. With Python's default, a tick of a few dozen jobs
causes several looks: what the tick still needs counts as old then, and the old objects, which take
long, are looked through too often."""


class DaemonService:
    """The service of `twistd svcd`: the daemon with its real clients, on the reactor.

    broken: fails with StartError when the daemon cannot continue.
    """

    def __init__(self, reactor: Any, loaded: Loaded) -> None:
        self._reactor = reactor
        self._settings = loaded.settings
        self._folder: StateFolder | None = None
        self._opened = AsyncExitStack()
        self._manager = ServiceManager({}, 0)
        self.broken: Deferred[None] = Deferred()

    async def start(self) -> None:
        """Open everything, resume unfinished work and listen. Raises StartError."""
        self._manager = ServiceManager(os.environ, os.getpid())
        self._settings = settings = open_files.fitted(self._settings)
        with _refusals():
            self._folder = folder = StateFolder(settings.server.state_dir)
            self._opened.callback(folder.release)
            audit = audits.opened(
                self._reactor, settings.log.audit, folder.path, settings.log.audit_bytes
            )
            sealer = FernetSealer(key_file(settings))
            store, keeper = await _store(
                self._reactor, settings, folder, sealer, self._database_taken, self._opened
            )
            self._opened.push_async_callback(store.close)
            try:
                await store.open(timestamp(self._reactor.seconds()))
            except SealerError as error:
                raise sealer.refused(error) from None
            host = None
            if settings.cloud.kind == "embedded":
                self._opened.callback(StateFolder(folder.path, CLOUD_LOCK).release)
                host = await _embedded(self._reactor, settings, folder, self._opened)
            cloud = settings.cloud if host is None else host.client_settings()
            distributions = Distributions(
                settings.plugins.enabled,
                fake_engine_url=settings.fake.engine_url or origin_of(cloud.auth_url) + "/engine",
            )
            outside = evolve(self._outside(store, sealer, cloud), keeper=keeper, audit=audit)
            pulse = Pulse(self._reactor, partial(self._beat, outside.metrics))
            self._opened.push_async_callback(pulse.stop)
            daemon = Daemon(outside, settings, distributions, cloud.auth_url)
            self._opened.push_async_callback(self._stop, daemon)
            if keeper is not None:
                await keeper.begin()
            await daemon.start()
            daemon.resource.routes()  # a route that exists twice ends the start
            urls = {"api": await self._listen("server.listen", settings.server.listen, daemon.site)}
            if daemon.admin_site is not None:
                urls["admin"] = await self._listen(
                    "server.admin_listen", settings.server.admin_listen, daemon.admin_site
                )
        more = {} if host is None else host.endpoints()
        folder.write_endpoints({**urls, **more, "pid": os.getpid()})
        pulse.start()
        _freeze()
        gc.set_threshold(_YOUNG)
        _keep_freed_memory()
        base = urls["api"]
        self._manager.ready(f"Serving {base}")
        command = first_command(base, settings, _activate(), Path.cwd())
        log.info("Serving {base}; try in another shell: {command}", base=base, command=command)

    async def stop(self) -> None:
        """Stop the listener, then requests, then tasks, then the embedded cloud and the store."""
        self._manager.stopping()
        if self._folder is not None:
            self._folder.remove_endpoints()
        await self._opened.aclose()

    async def _stop(self, daemon: Daemon) -> None:
        await daemon.drain(self._settings.server.drain_s)
        await daemon.stop()

    async def _listen(self, setting: str, text: str, site: api.ApiSite) -> str:
        """Serve `site` at the endpoint of the setting, and return its URL."""
        site.noisy = False
        port = await listen(self._reactor, setting, text, site)
        self._opened.push_async_callback(maybeDeferred, port.stopListening)
        return url_of(port, text)

    def _beat(self, metrics: Metrics, late_s: float) -> None:
        metrics.lagged(late_s)
        self._manager.alive()

    def _database_taken(self, reason: str) -> None:
        if not self.broken.called:
            self.broken.errback(StartError(reason))

    def _outside(self, store: SqlStore, sealer: FernetSealer, cloud: CloudSettings) -> Outside:
        from svcd.clients.ssh import SshRemote  # here: a FakeService needs no SSH

        reactor, settings = self._reactor, self._settings
        slices = Slices(reactor)
        pool = Connections(reactor, slices=slices)
        agent = Agent(reactor, pool=pool, connectTimeout=10.0)
        metrics = Metrics()
        file = settings.database.file(settings.server.state_dir)
        database = "postgresql" if file is None else "sqlite"
        metrics.of_process({"cloud": settings.cloud.kind, "database": database})
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
            cloud=OpenStack(agent, reactor, cloud, metrics.work.cloud_called),
            remote=remote,
            probe=HttpProbe(agent, reactor, remote),
            engine=OozieClient(engine_http),
            files=WebHdfsClient(engine_http),
            sealer=sealer,
            new_id=lambda: str(uuid.uuid4()),
            rng=random.Random(),
            installation=sealer.installation,
            metrics=metrics,
        )


class CloudService:
    """The service of `twistd svcd-cloud`: the embedded cloud without the daemon."""

    def __init__(self, reactor: Any, loaded: Loaded) -> None:
        self._reactor = reactor
        self._settings = loaded.settings
        self._opened = AsyncExitStack()

    async def start(self) -> None:
        """Start the embedded cloud. Raises StartError."""
        with _refusals():
            folder = StateFolder(self._settings.server.state_dir, CLOUD_LOCK)
            self._opened.callback(folder.release)
            host = await _embedded(self._reactor, self._settings, folder, self._opened, admin=True)
        folder.write_endpoints({**host.endpoints(), "pid": os.getpid()})
        self._opened.callback(folder.remove_endpoints)
        _freeze()
        log.info("Serving identity at {url}", url=host.client_settings().auth_url)

    async def stop(self) -> None:
        """Stop the embedded cloud. Its machines continue to run."""
        await self._opened.aclose()


@contextmanager
def _refusals() -> Iterator[None]:
    """Name what a person has to change before the next start."""
    try:
        yield
    except (DistributionError, EndpointError) as error:
        raise SettingsRefused(str(error)) from error
    except (StateFolderError, SealerError, SchemaError, ListenError, AuditError) as error:
        raise StartError(str(error)) from error


def _freeze() -> None:
    """Keep the collector from what lives as long as the process.

    A full collection of it would stall the reactor. Frees the garbage of the imports and the start.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next long answers; nothing on another C library.

    By default it returns the memory of a long list to the system after the answer. To get it again
    took a third of the time of each list (measured).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _FROM_HEAP_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


async def _store(
    reactor: Any,
    settings: Settings,
    folder: StateFolder,
    sealer: FernetSealer,
    taken: Callable[[str], None],
    opened: AsyncExitStack,
) -> tuple[SqlStore, LeaseKeeper | None]:
    """The store in `database.url`, and the keeper of the lease on PostgreSQL.

    taken: called with a line of text when another daemon has taken the database for itself.
    Raises SchemaError, and StateFolderError when another process uses the file.
    """
    path, limits = settings.database.file(folder.path), settings.limits
    if path is not None:
        with suppress(OSError):  # opening the database reports the fault
            opened.callback(hold_database(path))
            path.touch(0o600)  # SQLite itself makes the file readable for all users
        file = SqliteDatabase(path, clock=reactor)
        return SqlStore(file, sealer, limits=limits, seconds=reactor.seconds), None
    from svcd.store.lease.keeper import Me, require  # here: their libraries are an extra
    from svcd.store.postgres import PostgresDatabase

    about = f"{socket.gethostname()}, process {os.getpid()}"
    alone = settings.cloud.kind != "openstack"
    me = Me(f"svcd-{folder.place}", about, steady_seconds, wall_seconds, alone)
    database = PostgresDatabase(reactor, settings.database, taken, me=me)
    await database.open()
    store = SqlStore(database, sealer, me.name, require, limits, seconds=reactor.seconds)
    return store, database.keeper


async def _embedded(
    reactor: Any,
    settings: Settings,
    folder: StateFolder,
    opened: AsyncExitStack,
    *,
    admin: bool = False,
) -> EmbeddedHost:
    """Start the embedded cloud. opened: will stop it."""
    from svcd.embedded import installations  # here: only with `cloud.kind=embedded`
    from svcd.embedded.host import EmbeddedHost

    for left in installations.leftovers(installations.running(), but=str(folder.path)):
        log.warn("{text}", text=left.warning)
    host = EmbeddedHost(reactor, settings, folder.path, _image_problem, admin=admin)
    opened.push_async_callback(host.stop)
    await host.start()
    return host


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
