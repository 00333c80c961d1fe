"""`svcd backup`, `svcd restore` and `svcd db …`: work on the database for the operator.

Exit codes: 0 success (`db current`: the schema is up to date; `db check`: no fault), 1 failure, 2
wrong settings or usage. The commands never print passwords or secrets.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from svcd.cli.database_target import ASIDE, held, of_settings, of_url
from svcd.model.ids import timestamp
from svcd.settings import Settings, load
from svcd.store import migrations
from svcd.store.database import Row
from svcd.store.offline import archive, content
from svcd.store.offline.check import Counted, Fault, check
from svcd.store.offline.session import OfflineError, current, number_of, upgrade
from svcd.store.offline.shape import TableShape, shape
from svcd.store.sealer import FernetSealer, SealerError, key_file

_SHOWN = 200
"""Faults that `svcd db check` prints."""
_MIB = 1 << 20


def add_commands(
    commands: Any, settings_options: Callable[[argparse.ArgumentParser], None], release: str
) -> None:
    """Add the parsers of these commands to `commands`, the sub-parsers of `svcd`."""

    def add(where: Any, name: str, run: Callable[..., int], text: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = where.add_parser(name, help=text, description=text)
        settings_options(parser)
        parser.set_defaults(run=_guarded(parser.prog, run), release=release)
        return parser

    backup = add(commands, "backup", _backup, "write all rows to FILE; the daemon may be running")
    backup.add_argument("file", type=Path, metavar="FILE", help="a new file")
    restore = add(
        commands,
        "restore",
        _restore,
        "write the rows of a backup into the database; the daemon must be stopped",
    )
    restore.add_argument("file", type=Path, metavar="FILE", help="a file of svcd backup")
    restore.add_argument("--replace", action="store_true", help="replace the rows of the database")
    restore.add_argument(
        "--verify-only", action="store_true", help="check the backup and change nothing"
    )
    db = commands.add_parser("db", help="the database: schema, check, copy").add_subparsers(
        required=True
    )
    add(db, "current", _current, "show the schema number, and whether an upgrade is needed")
    add(db, "upgrade", _upgrade, "bring the schema up to date; the daemon must be stopped")
    add(db, "check", _check, "read every row and list the faults")
    copy = add(
        db, "copy", _copy, "copy all rows into another, empty database; the daemon must be stopped"
    )
    copy.add_argument(
        "--from",
        required=True,
        dest="source",
        metavar="URL",
        help="sqlite:///PATH or postgresql://…",
    )
    copy.add_argument(
        "--to", required=True, dest="target", metavar="URL", help="sqlite:///PATH or postgresql://…"
    )


def _guarded(
    name: str, run: Callable[[argparse.Namespace, Settings], int]
) -> Callable[[argparse.Namespace], int]:
    def guarded(options: argparse.Namespace) -> int:
        settings = load(options.config, os.environ, options.set).settings
        former = signal.signal(
            signal.SIGTERM, _interrupt
        )  # SIGTERM then removes drafts as Ctrl-C does
        try:
            return run(options, settings)
        except OfflineError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        finally:
            signal.signal(signal.SIGTERM, former)

    return guarded


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _now() -> str:
    return timestamp(time.time())  # noqa: TID251 - a command has no clock but the system's


# ---- backup and restore -------------------------------------------------------------------------


def _backup(options: argparse.Namespace, settings: Settings) -> int:
    place = of_settings(settings)
    key = key_file(settings)
    session = place.reading("svcd backup")
    try:
        made = archive.write(session, options.file, _now(), options.release, fingerprint(key))
    finally:
        session.close()
    print(
        f"{place.shown} is backed up to {options.file}; svcd read the file again and it is complete"
    )
    _show(made.sums)
    print(f"  schema {made.head.schema}, {_size(made.bytes)}, SHA-256 {made.sha256}")
    if key.exists():
        print(
            f"Keep a copy of {key} too, in another place: it seals the credentials in the backup\n"
            f"(fingerprint {made.head.key}); without the key they cannot be recovered."
        )
    else:
        print(f"There is no {key}: the credentials in the backup need the key of its daemon.")
    return 0


def _restore(options: argparse.Namespace, settings: Settings) -> int:
    manifest = archive.verify(options.file)
    print(
        f"{options.file} is complete: schema {manifest.head.schema}, written {manifest.head.at}"
        f" by svcd {manifest.head.release}"
    )
    _show(manifest.sums)
    if options.verify_only:
        return 0
    place = of_settings(settings)
    reader = archive.Reader(options.file)
    try:
        with held(place), place.filled("svcd restore", options.replace) as session:
            content.load(session, reader.shape, reader.rows, lambda: reader.manifest().sums, _now())
    finally:
        reader.close()
    print(f"{place.shown} now has these rows, with schema {migrations.newest()}")
    if place.path is not None and (aside := place.path.with_name(place.path.name + ASIDE)).exists():
        print(f"  the former file is kept as {aside}")
    _check_key(settings, manifest.head.key)
    return 0


def fingerprint(key_file: Path) -> str:
    """Identifies a seal key without revealing it; "" when there is no key."""
    try:
        key = key_file.read_bytes().strip()
    except OSError:
        return ""
    return hashlib.sha256(b"svcd seal key\0" + key).hexdigest()[:16]


def _check_key(settings: Settings, wanted: str) -> None:
    key = key_file(settings)
    if not wanted or fingerprint(key) == wanted:
        return
    fault = "is not the key of the backup" if key.exists() else "is missing"
    print(
        f"The key {key} {fault}: before you start the daemon, copy the key of the backup there"
        f" (fingerprint {wanted}, mode 0600)."
    )


# ---- db -----------------------------------------------------------------------------------------


def _current(options: argparse.Namespace, settings: Settings) -> int:
    place = of_settings(settings)
    session = place.reading("svcd db current")
    try:
        number = number_of(session)
    finally:
        session.close()
    newest = migrations.newest()
    if number == newest:
        state = "up to date"
    elif number > newest:
        state = "a newer release wrote it; use that release"
    else:
        state = "needs an upgrade (svcd db upgrade, or a start of the daemon)"
    print(f"{place.shown}: schema {number}, this release has {newest}: {state}")
    return 0 if number == newest else 1


def _upgrade(options: argparse.Namespace, settings: Settings) -> int:
    place = of_settings(settings)
    with held(place), place.alone("svcd db upgrade") as session:
        session.begin()
        before = upgrade(session, _now())
        session.commit()
    newest = migrations.newest()
    if before == newest:
        print(f"{place.shown}: schema {newest} is up to date")
    else:
        print(f"{place.shown}: schema {before} was upgraded to {newest}")
    return 0


def _check(options: argparse.Namespace, settings: Settings) -> int:
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
        for found in check(session, sealer):
            if isinstance(found, Counted):
                print(f"{found.table:20} {found.rows:9} rows read")
                continue
            faults += 1
            if faults <= _SHOWN:
                _show_fault(found)
    finally:
        session.close()
    if faults > _SHOWN:
        print(f"and {faults - _SHOWN} more faults")
    print(f"{place.shown}: " + (f"{faults} fault{'s' * (faults > 1)}" if faults else "no faults"))
    return 1 if faults else 0


def _show_fault(fault: Fault) -> None:
    print(f"fault  {fault.where}: {fault.what}\n       {fault.remedy}")


def _copy(options: argparse.Namespace, settings: Settings) -> int:
    source, target = of_url(options.source, settings), of_url(options.target, settings)
    if source == target or (source.path is not None and source.path == target.path):
        raise OfflineError(f"{source.shown} is both the source and the target")
    with held(source, target), source.alone("svcd db copy") as rows_from:
        rows_from.snapshot()
        number = current(rows_from)
        if not number:
            raise OfflineError(
                f"{rows_from.where} has no schema of svcd, so it has nothing to copy"
            )
        of, tally = shape(number), content.Tally()

        def rows_of(table: TableShape) -> Iterator[Row]:
            for row in content.read(rows_from, table):
                tally.add(table.name, content.encode_row(row))
                yield row

        with target.filled("svcd db copy", replace=None) as rows_to:
            content.load(rows_to, of, rows_of, lambda: tally.sums(of), _now())
    print(f"{source.shown} was copied to {target.shown}; counts and digests are equal")
    _show(tally.sums(of))
    url = target.shown if target.path is None else f"sqlite:///{target.path}"
    print(
        f'Next: set database.url = "{url}" (section [database] of the settings file, or'
        f" SVCD_DATABASE_URL),\nkeep seal.key in the state folder, and start the daemon.\n"
        f"{source.shown} was not changed: remove it when the daemon works."
    )
    return 0


def _show(sums: Mapping[str, content.Sum]) -> None:
    for name, each in sums.items():
        print(f"  {name:20} {each.rows:9} rows")


def _size(size: int) -> str:
    return f"{size / _MIB:.1f} MiB" if size >= _MIB else f"{size} bytes"
