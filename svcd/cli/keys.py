"""`svcd keys`: the key that seals stored secrets, and a new one in its place."""

from __future__ import annotations

from typing import Final

import click

from svcd.cli.database import offline
from svcd.cli.database_target import held, of_settings
from svcd.settings import Settings
from svcd.store.offline.reseal import reseal
from svcd.store.sealer import (
    FernetSealer,
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
    found = load(path)
    print(f"{fingerprint(found.seals)}  seals ({path})")
    for each in found.former:
        print(f"{fingerprint(each)}  former, only opens: run svcd keys rotate to its end")
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
    with held(place), place.alone("svcd keys rotate") as session:
        found = load(path)
        before = fingerprint(found.former[0] if found.former else found.seals)
        if found.former:
            print(f"continuing the rotation to {fingerprint(found.seals)}, which was interrupted")
        else:
            replace(path, found.renewed())
        sealer = FernetSealer(path)
        for each in reseal(session, sealer):
            print(f"  {each.table:20} {each.rows:9} rows sealed anew")
        replace(path, sealer.keys.alone())
    print(
        f"{place.shown} is sealed with {fingerprint(sealer.keys.seals)} ({path})\n"
        f"Former backups need the former key: {kept_key(path, before)}. Delete it with the last"
        " of them.\nMake a backup now, and keep a copy of the new key apart from it."
    )
    if place.path is None:
        print(f"Copy {path} to every other host of this database before its daemon starts.")
    return 0
