"""`svcd doctor`: checks this machine for the given settings, and names the command that helps.

It writes only a test file in the state folder, and a trust and an application credential of a given
user, and removes them again. The checks of an OpenStack cloud are in `cloud_doctor`.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path

import click

from svcd.cli.cloud_doctor import CloudUser, examine_cloud, login
from svcd.cli.clusters_doctor import examine_clusters
from svcd.cli.command import (
    OperatorCommand,
    form_of,
    form_option,
    settings_of,
    settings_options,
)
from svcd.cli.door import running
from svcd.cli.embedded_doctor import examine_embedded, examine_machines
from svcd.cli.exits import DONE, FAILED
from svcd.cli.finding import Finding, fail, ok, warn
from svcd.cli.openings import examine_openings
from svcd.cli.output import write
from svcd.cli.shared_doctor import examine_shared
from svcd.cli.show import as_text
from svcd.cli.start_doctor import examine_start
from svcd.declaration import SettingsError
from svcd.embedded import installations
from svcd.embedded.host import image_prefix
from svcd.model.redaction import without_passwords
from svcd.provisioning.distributions.registry import DistributionError, Distributions
from svcd.provisioning.distributions.vanilla.image import class_data
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from svcd.provisioning.distributions.vanilla.image.jdk import find_jre
from svcd.provisioning.distributions.vanilla.image.layout import (
    build_command,
    has_spark,
    read_record,
    verify,
)
from svcd.runtime.listeners import WILDCARDS, listeners
from svcd.runtime.preflight import check
from svcd.settings import Database, Settings

_ROOM_BYTES = 2 * 2**30
"""Free space that the state folder needs at least."""
_MEMORY_MIB = 3000
"""Free memory that a small cluster of the embedded cloud needs."""
_POSTGRES_OLDEST = 120_000
"""The oldest PostgreSQL that svcd uses, as `server_version_num`."""
_POSTGRES = """
select current_setting('server_version_num'), pg_encoding_to_char(encoding),
       not pg_is_in_recovery(),
       coalesce(has_schema_privilege(current_schema(), 'create'), false)
  from pg_database where datname = current_database()
"""


def examine(
    settings: Settings, user: CloudUser | None = None, unknown: Sequence[str] = ()
) -> list[Finding]:
    """All findings, the good ones too, the most important first.

    user: the user of the cloud whose rights are checked too; with the embedded cloud, its login.
    unknown: see `Loaded`.
    """
    return list(_findings(settings, user, unknown))


def _findings(
    settings: Settings, user: CloudUser | None, unknown: Sequence[str]
) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield ok("python", version)
    for each in unknown:
        yield warn("environment", each, "correct its name, or unset it")
    try:
        check(settings)
    except SettingsError as error:
        yield fail("settings", str(error), "svcd config show")
        return  # the other checks need valid settings
    yield ok("settings", "valid")
    yield from examine_openings(settings)
    yield _state_folder(settings.server.state_dir)
    if settings.database.url.startswith("postgres"):
        found = _postgres(settings.database)
        yield found
        if found.good:
            yield from examine_shared(settings)
            yield from examine_clusters(settings)
    else:
        yield from examine_clusters(settings)
    known = running(settings.server.state_dir)
    yield from examine_start(settings, known)
    if settings.cloud.kind == "embedded":
        yield from examine_embedded(settings, user, known)
        yield from examine_machines(installations.running())
        yield _loopback(settings)
        if "vanilla" in settings.plugins.enabled:
            yield _jre()
            yield _tree(image_prefix(settings, settings.server.state_dir.absolute()))
            yield _memory()
    else:
        try:
            offered = Distributions(settings.plugins.enabled).all()
        except DistributionError:
            return  # examine_start reports it
        tags = {
            f"{each.name} {version}": tuple(each.required_image_tags(version))
            for each in offered
            for version in each.versions
        }
        yield from examine_cloud(settings.cloud, user, tags)


def _state_folder(folder: Path) -> Finding:
    what = f"state folder {folder}"
    there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=there, prefix=".doctor-"):
            pass
        free = shutil.disk_usage(there).free
    except OSError as error:
        return fail(
            what,
            f"cannot be written: {error.strerror}",
            f"set another server.state_dir, or: chown {_user()} {folder}",
        )
    if free < _ROOM_BYTES:
        return fail(what, f"only {free >> 20} MiB free", "free at least 2 GiB on that disk")
    return ok(what, f"writable, {free >> 30} GiB free")


def _postgres(database: Database) -> Finding:
    import psycopg2  # an optional dependency; preflight has found it

    what = "database"
    try:
        connection = psycopg2.connect(
            database.url, connect_timeout=max(2, int(database.connect_timeout_s))
        )
        try:
            with connection.cursor() as cursor:
                cursor.execute(_POSTGRES)
                version, encoding, writable, may_create = cursor.fetchone()
        finally:
            connection.close()
    except psycopg2.Error as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = without_passwords(lines[0] if lines else type(error).__name__)
        return fail(what, said)
    if int(version) < _POSTGRES_OLDEST:
        return fail(what, f"PostgreSQL {version} is too old", "use PostgreSQL 12 or newer")
    if encoding != "UTF8":
        return fail(
            what,
            f"its encoding is {encoding}",
            "createdb --encoding UTF8 --template template0 NAME",
        )
    if not writable:
        return fail(what, "the server is a standby and accepts no writes")
    if not may_create:
        return fail(
            what,
            "its user has no right to create tables",
            "as an administrator: alter database NAME owner to USER",
        )
    return ok(what, f"PostgreSQL {int(version) // 10_000} answers")


def _loopback(settings: Settings) -> Finding:
    network = ip_network(settings.embedded.network)
    address = str(network[10])
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            remedy = "use a part of 127.0.0.0/8: --set embedded.network=127.1.0.0/16"
            if error.errno == errno.EADDRNOTAVAIL and not address.startswith("127."):
                remedy = f"ip addr add {address} dev lo, or " + remedy
            return fail("loopback addresses", f"{address}: {error.strerror}", remedy)
    used = {listener.address for listener in listeners()} - WILDCARDS
    busy = sum(ip_address(address) in network for address in used)
    more = (
        f"; programs listen on {busy} of its addresses, a new machine gets another" if busy else ""
    )
    return ok("loopback addresses", f"{settings.embedded.network} can be used{more}")


def _jre() -> Finding:
    try:
        java = find_jre()
    except ImageError as error:
        return fail("java", str(error), "apt-get install openjdk-17-jre-headless")
    return ok("java", f"{java.version} in {java.home}")


def _tree(prefix: Path) -> Finding:
    problems = verify(prefix, run=False)
    if problems:
        return fail("vanilla software", problems[0], build_command(prefix))
    spark = "" if has_spark(read_record(prefix)) else ", without Spark"
    if why := class_data.fault(prefix):
        return warn(
            "vanilla software",
            f"complete, but daemons and jobs start later: {why}",
            class_data.remedy(prefix),
        )
    return ok("vanilla software", f"complete in {prefix}{spark}")


def _memory() -> Finding:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return ok("memory", "not checked")
    lines = dict(line.split(":", 1) for line in text.splitlines())
    mib = int(lines["MemAvailable"].split()[0]) // 1024
    if mib < _MEMORY_MIB:
        return fail(
            "memory",
            f"{mib} MiB available, but a small cluster needs {_MEMORY_MIB}",
            "stop other programs, or use a larger machine",
        )
    return ok("memory", f"{mib} MiB available")


def _user() -> str:
    return os.environ.get("USER") or str(os.getuid())


@click.command("doctor", cls=OperatorCommand)
@click.option(
    "--token",
    default="",
    help="check also for this user of the cloud (default: OS_TOKEN, OS_USERNAME …)",
)
@form_option
@settings_options
def doctor(token: str, form: str | None, config: Path | None, flags: Sequence[str]) -> int:
    """Check this machine and the cloud for svcd; show the remedy of each fault."""
    loaded = settings_of(config, flags)
    findings = examine(loaded.settings, login(token, os.environ), loaded.unknown)
    well = all(each.good or each.warning for each in findings)
    if form_of(form) == "table":
        for finding in findings:
            remedy = f" - {finding.remedy}" if finding.remedy else ""
            print(f"{finding.word:4}  {finding.what}: {finding.text}{remedy}")
    else:
        rows = [
            {"what": each.what, "result": each.word, "text": each.text, "remedy": each.remedy}
            for each in findings
        ]
        write(as_text({"well": well, "findings": rows}, form_of(form)))
    return DONE if well else FAILED
