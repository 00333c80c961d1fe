"""`svcd doctor` for the database: server, clock, key, schema, daemons, clusters. Reads only."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from svcd.cli.database_target import of_settings
from svcd.cli.finding import Finding, Scene, fail, ok
from svcd.cli.start_doctor import there, writable
from svcd.model.choices import listed
from svcd.model.loopback import is_loopback_url
from svcd.settings import Settings
from svcd.store import migrations
from svcd.store.offline.session import OfflineError, OfflineSession, schema_of
from svcd.store.sealer import FernetSealer, SealerError, key_file, missing

SEAL: Final = "select sealed from seals where id = 1"
_SKEW_S: Final = 3.0
"""Largest difference between the clocks of this machine and of the database server."""
_POSTGRES_OLDEST: Final = 120_000
"""The oldest PostgreSQL that svcd uses, as `server_version_num`."""
_SERVER: Final = """
select current_setting('server_version_num'), pg_encoding_to_char(encoding),
       not pg_is_in_recovery(),
       coalesce(has_schema_privilege(current_schema(), 'create'), false),
       cast(extract(epoch from clock_timestamp()) as double precision)
  from pg_database where datname = current_database()
"""
_DAEMONS: Final = """
select about, knows from daemons
 where until_s > extract(epoch from clock_timestamp()) order by about
"""
_CLUSTERS: Final = "select name, tenant_id, record from clusters order by tenant_id, name, id"
_USUAL_PORT: Final = 22


def examine_database(scene: Scene) -> Iterator[Finding]:
    """The findings; the first fault of the database itself is the last one."""
    settings = scene.settings
    place = of_settings(settings)
    if place.path is not None and not there(place.path):
        yield _key(settings, ())
        yield _new(settings, place.path)
        return
    try:
        with contextlib.closing(place.reading("svcd doctor")) as session:
            session.snapshot()
            if place.path is None:
                yield from _shared(settings, session)
            else:
                yield from _file(settings, session, place.path)
    except OfflineError as error:
        if place.path is None:
            yield fail("database", str(error))
        else:
            yield _key(settings, ())
            yield fail("database", str(error), "svcd db check")


def _new(settings: Settings, path: Path) -> Finding:
    """The database does not exist yet."""
    if settings.database.url and not writable(path.parent):
        return fail(
            "database",
            f"cannot make {path}: its folder does not exist or is not writable",
            "set another database.url",
        )
    return ok("database", "the daemon will create it at its start")


def _file(settings: Settings, session: OfflineSession, path: Path) -> Iterator[Finding]:
    sealed = _sealed(session)
    refusal = migrations.refusal(schema_of(session), f"{path}")
    yield _key(settings, sealed)
    if refusal:
        yield fail("database", refusal, "svcd db current")
        return
    yield ok("database", f"{path} can be used")
    yield from _ports(settings, session)


def _shared(settings: Settings, session: OfflineSession) -> Iterator[Finding]:
    """A database of PostgreSQL, which several daemons may use."""
    row = session.one(_SERVER)
    assert row is not None
    here_s = time.time()  # noqa: TID251 - a command has no clock but the system's
    server = _server(row)
    yield server
    if not server.good:
        return
    yield _clock(abs(here_s - float(row[4])))
    version = schema_of(session)
    refusal = migrations.refusal(version)
    yield _key(settings, () if refusal else _sealed(session))
    if refusal:
        yield fail("schema", refusal, "svcd db current")
        return
    daemons = list(session.rows(_DAEMONS)) if version.number else []
    yield _schema(version, daemons)
    if daemons:
        names = "; ".join(about for about, _ in daemons)
        yield ok("daemons", f"{len(daemons)} share the database: {names}")
    yield from _ports(settings, session)


def _server(row: Sequence[Any]) -> Finding:
    what, (version, encoding, takes_writes, may_create, *_) = "database", row
    if int(version) < _POSTGRES_OLDEST:
        return fail(what, f"PostgreSQL {version} is too old", "use PostgreSQL 12 or newer")
    if encoding != "UTF8":
        remedy = "createdb --encoding UTF8 --template template0 NAME"
        return fail(what, f"its encoding is {encoding}", remedy)
    if not takes_writes:
        return fail(what, "the server is a standby and accepts no writes")
    if not may_create:
        remedy = "as an administrator: alter database NAME owner to USER"
        return fail(what, "its user has no right to create tables", remedy)
    return ok(what, f"PostgreSQL {int(version) // 10_000} answers")


def _clock(off_s: float) -> Finding:
    text = f"differs by {off_s:.1f} s from the clock of the database server"
    if off_s <= _SKEW_S:
        return ok("clock", text)
    remedy = "run a time service (NTP) on both machines: daemons compare their clocks with it"
    return fail("clock", text, remedy)


def _schema(version: migrations.Version, daemons: Sequence[Sequence[Any]]) -> Finding:
    """daemons: name of each, and the newest schema that it knows."""
    what, newest = "schema", migrations.newest()
    older = "; ".join(about for about, knows in daemons if knows < migrations.needed())
    if older and version.number < newest:
        return fail(
            what,
            f"{version.number}: the daemon would upgrade it to {newest}, which these cannot use:"
            f" {older}",
            "stop them first",
        )
    text = f"{version.number}, this release has {newest}" if version.number else "not made yet"
    return ok(what, text)


# ---- the key ------------------------------------------------------------------------------------


def _sealed(session: OfflineSession) -> Sequence[str]:
    """Texts that the key of the daemon must open."""
    if "seals" not in session.tables():
        return ()
    return [str(row[0]) for row in session.rows(SEAL)]


def _key(settings: Settings, sealed: Sequence[str]) -> Finding:
    """Whether the seal key of this daemon opens what the database has."""
    what, path = "seal key", key_file(settings)
    try:
        if not (path.exists() or path.is_symlink()):
            near = next(folder for folder in path.parents if there(folder))
            if not writable(near):  # the daemon makes the folders below
                text = f"{path} cannot be made: {near} is not a folder that can be written"
                return fail(what, text, "set another server.seal_key")
            if not sealed:
                return ok(what, f"the daemon will create {path} at its start")
            text, _, remedy = str(missing(path)).partition(": ")
            return fail(what, text, remedy)
        sealer = FernetSealer(path)
        for text in sealed:
            sealer.open(text)
    except SealerError as error:
        return fail(what, str(error), f"ls -l {path}")
    except OSError as error:
        text = f"{path} cannot be read: {error.strerror}"
        return fail(what, text, "set another server.seal_key")
    return ok(what, f"{path} " + ("opens the sealed data" if sealed else "holds a key"))


# ---- the clusters -------------------------------------------------------------------------------


def _ports(settings: Settings, session: OfflineSession) -> Iterator[Finding]:
    """The finding about the SSH ports of the clusters; none on a development cloud."""
    cloud = settings.cloud
    if cloud.kind != "openstack" or is_loopback_url(cloud.auth_url):
        return  # svcd does not restrict the ports there
    if "clusters" in session.tables():
        yield refused_ports(
            cloud.ssh_ports,
            [
                (str(name), str(tenant), int(json.loads(record).get("ssh_port", _USUAL_PORT)))
                for name, tenant, record in session.rows(_CLUSTERS)
            ],
        )


def refused_ports(allowed: Sequence[str], clusters: Iterable[tuple[str, str, int]]) -> Finding:
    """The finding about `clusters`: name, project and SSH port of each."""
    what, ports = "cloud.ssh_ports", {int(port) for port in allowed}
    refused = [(name, tenant, port) for name, tenant, port in clusters if port not in ports]
    if not refused:
        return ok(what, f"{', '.join(allowed)}: every cluster uses one of them")
    wanted = [*allowed, *map(str, sorted({port for _, _, port in refused}))]
    names = [f"{name} (project {tenant}, port {port})" for name, tenant, port in refused]
    return fail(
        what,
        f"svcd refuses the machines of these clusters, whose images named another port in"
        f" _svc_ssh_port: {listed(names)}",
        f"--set {what}={','.join(wanted)}, if these ports are intended",
    )
