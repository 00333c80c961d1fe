"""`svcd backup`, `svcd restore` and `svcd db …`: work on the database for the operator.

Exit codes: 0 success (`db current`: the schema is up to date; `db check`: no fault), 1 failure, 2
wrong settings or usage. The commands never print passwords or secrets.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from svcd.cli.command import settings_of, settings_options, version
from svcd.cli.database_doctor import SEAL
from svcd.cli.database_target import ASIDE, of_settings, of_url
from svcd.model.ids import timestamp
from svcd.settings import Settings
from svcd.store import migrations
from svcd.store.offline import archive, content
from svcd.store.offline.check import Counted, Fault, check
from svcd.store.offline.session import OfflineError, current, schema_of, upgrade
from svcd.store.offline.sqlite import SqliteSession
from svcd.store.sealer import FernetSealer, Keys, SealerError, fingerprint, kept_key, key_file

_SHOWN = 200
"""Faults that `svcd db check` prints."""
_MIB = 1 << 20


def offline(run: Callable[..., int]) -> Callable[..., int]:
    """A command on the settings' database. run: takes the settings first."""

    @functools.wraps(run)
    def guarded(config: Path | None, flags: Sequence[str], **given: Any) -> int:
        settings = settings_of(config, flags).settings
        try:
            return run(settings, **given)
        except (OfflineError, SealerError) as error:
            print(f"{click.get_current_context().command_path}: {error}", file=sys.stderr)
            return 1
        except OSError as error:
            if error.filename is None:  # the fault is of the output
                raise
            where = click.get_current_context().command_path
            print(f"{where}: {error.filename}: {error.strerror}", file=sys.stderr)
            return 1

    return settings_options(guarded)


db: Final = click.Group("db", help="The database: schema, check, copy.", no_args_is_help=False)
_FILE = click.Path(path_type=Path)


def _now() -> str:
    return timestamp(time.time())  # noqa: TID251 - a command has no clock but the system's


# ---- backup and restore -------------------------------------------------------------------------


@click.command("backup")
@click.argument("file", type=_FILE)
@offline
def backup(settings: Settings, file: Path) -> int:
    """Write all rows to FILE, a new file; the daemon may be running.

    It ends with 1 when the key file does not open the secrets of the database.
    """
    place = of_settings(settings)
    key = key_file(settings)
    session = place.reading("svcd backup")
    try:
        written = archive.write(session, file, _now(), version(), "+".join(_fingerprints(key)))
        sealed = session.one(SEAL) if "seals" in session.tables() else None
    finally:
        session.close()
    print(f"{place.shown} is backed up to {file}; svcd read the file again and it is complete")
    _show(written.manifest.rows)
    print(f"  schema {written.manifest.schema}, {_size(written.bytes)}, SHA-256 {written.sha256}")
    if key.exists():
        if sealed:
            # otherwise the operator would keep a wrong key with the backup
            FernetSealer(key).open(str(sealed[0]))
        print(
            f"Keep a copy of {key} too, in another place: it seals the credentials in the backup\n"
            f"(fingerprint {written.manifest.key}); without the key they cannot be recovered."
        )
    else:
        print(f"There is no {key}: the credentials in the backup need the key of its daemon.")
    return 0


@click.command("restore")
@click.argument("file", type=_FILE)
@click.option("--replace", is_flag=True, help="replace the rows of the database")
@click.option("--verify-only", is_flag=True, help="check the backup and change nothing")
@offline
def restore(settings: Settings, file: Path, replace: bool, verify_only: bool) -> int:
    """Write the rows of a backup into the database; the daemon must be stopped."""
    manifest = archive.verify(file).manifest
    print(
        f"{file} is complete: schema {manifest.schema}, written {manifest.at}"
        f" by svcd {manifest.release}"
    )
    _show(manifest.rows)
    if verify_only:
        return 0
    place = of_settings(settings)
    with contextlib.closing(SqliteSession(file, "look")) as rows_from:
        rows_from.snapshot()
        with place.filled("svcd restore", replace) as rows_to:
            content.copy(rows_from, rows_to, _now())
            upgrade(rows_to, _now())
    print(f"{place.shown} now has these rows, with schema {migrations.newest()}")
    if place.path is not None and (aside := place.path.with_name(place.path.name + ASIDE)).exists():
        print(f"  the former file is kept as {aside}")
    _check_key(settings, manifest.key)
    return 0


def _fingerprints(key_file: Path) -> tuple[str, ...]:
    """The fingerprints of the keys in the file, the sealing key first; () without a key."""
    try:
        keys = Keys.parsed(key_file.read_bytes())
    except (OSError, ValueError):  # the daemon tells what is wrong with the file
        return ()
    return tuple(map(fingerprint, (keys.seals, *keys.former)))


def _check_key(settings: Settings, wanted: str) -> None:
    key = key_file(settings)
    absent = [part for part in wanted.split("+") if part and part not in _fingerprints(key)]
    if not absent:
        return
    fault = "is not the key of the backup" if key.exists() else "is missing"
    kept = kept_key(key, absent[0])
    where = f"it is {kept}" if kept.exists() else f"fingerprint {wanted}"
    print(
        f"The key {key} {fault}: before you start the daemon, copy the key of the backup there"
        f" ({where}, mode 0600)."
    )


# ---- db -----------------------------------------------------------------------------------------


@db.command("current")
@offline
def _current(settings: Settings) -> int:
    """Show the schema number, and whether an upgrade is needed."""
    place = of_settings(settings)
    session = place.reading("svcd db current")
    try:
        version = schema_of(session)
    finally:
        session.close()
    number, newest = version.number, migrations.newest()
    if why := migrations.refusal(version, place.shown):
        print(why)
        return 1
    if number == newest:
        state = "up to date"
    elif number > newest:
        state = "a newer release upgraded it; daemons of this one can use it"
    else:
        beside = "can go on beside it" if migrations.needed() <= number else "must be stopped first"
        state = (
            "needs an upgrade (svcd db upgrade, or a start of the daemon);"
            f" daemons of the former release {beside}"
        )
    print(f"{place.shown}: schema {number}, this release has {newest}: {state}")
    return 0 if number >= newest else 1


@db.command("upgrade")
@offline
def _upgrade(settings: Settings) -> int:
    """Bring the schema up to date; the daemon must be stopped."""
    place = of_settings(settings)
    with place.alone("svcd db upgrade") as session:
        session.begin()
        version, newest = schema_of(session), migrations.newest()
        if version.number > newest and not migrations.refusal(version):
            print(f"{place.shown}: schema {version.number} of a newer release serves this one")
            return 0
        before = upgrade(session, _now())
        session.commit()
    if before == newest:
        print(f"{place.shown}: schema {newest} is up to date")
    else:
        print(f"{place.shown}: schema {before} was upgraded to {newest}")
    return 0


@db.command("check")
@offline
def _check(settings: Settings) -> int:
    """Read every row and list the faults."""
    place = of_settings(settings)
    key = key_file(settings)
    sealer = None
    faults = 0
    if key.exists():
        try:
            sealer = FernetSealer(key)
        except SealerError as error:
            faults += 1
            print(f"fault  {error}")
    else:
        faults += 1
        print(
            f"fault  there is no {key}: sealed credentials were not checked\n"
            "       copy the key of this database there"
        )
    session = place.reading("svcd db check")
    try:
        for result in check(session, sealer):
            if isinstance(result, Counted):
                print(f"{result.table:20} {result.rows:9} rows read")
                continue
            faults += 1
            if faults <= _SHOWN:
                _show_fault(result)
    finally:
        session.close()
    if faults > _SHOWN:
        print(f"and {faults - _SHOWN} more faults")
    print(f"{place.shown}: " + (f"{faults} fault{'s' * (faults > 1)}" if faults else "no faults"))
    return 1 if faults else 0


def _show_fault(fault: Fault) -> None:
    print(f"fault  {fault.where}: {fault.what}\n       {fault.remedy}")


@db.command("copy")
@click.option(
    "--from", "from_url", required=True, metavar="URL", help="sqlite:///PATH or postgresql://…"
)
@click.option(
    "--to", "to_url", required=True, metavar="URL", help="sqlite:///PATH or postgresql://…"
)
@offline
def _copy(settings: Settings, from_url: str, to_url: str) -> int:
    """Copy all rows into another, empty database; the daemon must be stopped."""
    source, target = of_url(from_url, settings), of_url(to_url, settings)
    files = [place.path.resolve() for place in (source, target) if place.path is not None]
    if source == target or (len(files) == 2 and files[0] == files[1]):
        raise OfflineError(f"{source.shown} is both the source and the target")
    with source.alone("svcd db copy") as rows_from:
        rows_from.snapshot()
        if not current(rows_from):
            raise OfflineError(
                f"{rows_from.where} has no schema of svcd, so it has nothing to copy"
            )
        with target.filled("svcd db copy", replace=None) as rows_to:
            sums = content.copy(rows_from, rows_to, _now())
            upgrade(rows_to, _now())
    print(f"{source.shown} was copied to {target.shown}; counts and digests are equal")
    _show({table: sum_.rows for table, sum_ in sums.items()})
    url = target.shown if target.path is None else f"sqlite:///{target.path}"
    print(
        f'Next: set database.url = "{url}" (section [database] of the settings file, or'
        f" SVCD_DATABASE_URL),\nkeep seal.key in the state folder, and start the daemon.\n"
        f"{source.shown} was not changed: remove it when the daemon works."
    )
    return 0


def _show(rows: Mapping[str, int]) -> None:
    for table, count in rows.items():
        print(f"  {table:20} {count:9} rows")


def _size(size: int) -> str:
    return f"{size / _MIB:.1f} MiB" if size >= _MIB else f"{size} bytes"
