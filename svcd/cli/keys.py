"""`svcd keys`: the key that seals stored secrets, and a new one in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from svcd.cli.database import offline
from svcd.cli.database_target import of_settings
from svcd.settings import Settings
from svcd.store.offline.reseal import reseal, unopened
from svcd.store.offline.session import OfflineSession
from svcd.store.sealer import (
    FernetSealer,
    MemorySealer,
    SealerError,
    fingerprint,
    kept_key,
    key_file,
    load,
    replace,
)

keys: Final = click.Group("keys", help="The key that seals stored secrets.", no_args_is_help=False)


@keys.command("show")
@offline
def _show(settings: Settings) -> int:
    """Show the fingerprints of the keys in the key file."""
    path = key_file(settings)
    if not path.exists():
        raise SealerError(f"there is no {path}: the daemon creates it at its first start")
    keys_ = load(path)
    print(f"{fingerprint(keys_.seals)}  seals ({path})")
    for key in keys_.former:
        print(f"{fingerprint(key)}  former, only opens: run svcd keys rotate to its end")
    return 0


@keys.command("rotate")
@offline
def _rotate(settings: Settings) -> int:
    """Make a new key and seal all secrets with it; all daemons must be stopped.

    When it was interrupted, run it again: it continues. Until then the file has both keys, and
    daemons work with it.
    """
    path, place = key_file(settings), of_settings(settings)
    if not path.exists():
        raise SealerError(f"there is no {path}: copy the key of {place.shown} there")
    with place.alone("svcd keys rotate") as session:
        before = FernetSealer(path)
        _refuse_unopened(path, session, before)
        if before.keys.former:
            newest = fingerprint(before.keys.seals)
            print(f"continuing the rotation to {newest}, which was interrupted")
        else:
            replace(path, before.keys.renewed())
        sealer = FernetSealer(path)
        for line in reseal(session, sealer):
            print(f"  {line.table:20} {line.rows:9} rows sealed anew")
        last = sealer.keys.alone()
        _refuse_unopened(path, session, MemorySealer(last))
        replace(path, last)
    former = kept_key(path, fingerprint(sealer.keys.former[0]))
    print(
        f"{place.shown} is sealed with {fingerprint(last.seals)} ({path})\n"
        f"Former backups need the former key: {former}. Delete it with the last of them.\n"
        "Make a backup now, and keep a copy of the new key apart from it."
    )
    if place.path is None:
        print(
            f"Copy {path} to every other host of this database before its daemon starts, and keep"
            " the former key there too."
        )
    return 0


def _refuse_unopened(path: Path, session: OfflineSession, sealer: MemorySealer) -> None:
    if lost := unopened(session, sealer):
        raise SealerError(
            f"{len(lost)} stored secrets open with no key of {path} (first: {lost[0]}):"
            " use the key file of this database, on the host where a rotation was interrupted; or"
            " remove these rows (svcd db check names them)"
        )
