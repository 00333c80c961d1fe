"""The backup file: a SQLite file with the rows, and behind it a line about its content.

Note: the line. SQLite ignores what follows its last page. The line is `svcd backup 2`, the manifest
as JSON, and the SHA-256 of all bytes before that digest. So a reader finds a truncated file and
every changed bit, and a backup of either database is restored into the other one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec
from attrs import frozen

from svcd.runtime.drafts import draft_of, publish
from svcd.store import migrations
from svcd.store.offline.content import copy
from svcd.store.offline.session import OfflineError, OfflineSession, current
from svcd.store.offline.sqlite import SqliteSession

_MAGIC = b"\nsvcd backup 2 "
_LINE_BYTES = 65_536
"""The line is within this many last bytes of the file."""
_DIGEST_BYTES = 65
"""The SHA-256 in hex, and the end of the line."""
_CHUNK = 1 << 20


@frozen(kw_only=True)
class Manifest:
    """The content of a backup. schema: number of the schema. at: time of the backup.

    release: release of the svcd that wrote the backup. key: fingerprints of the keys of the sealed
    secrets, with `+` between them. rows: the number of rows by table.
    """

    schema: int
    at: str
    release: str
    key: str
    rows: Mapping[str, int]


@frozen(kw_only=True)
class Verified:
    """A backup that was read to its end and is undamaged. bytes: its size."""

    manifest: Manifest
    bytes: int
    sha256: str


class ArchiveError(OfflineError):
    """The backup file cannot be used."""


def write(session: OfflineSession, target: Path, at: str, release: str, key: str) -> Verified:
    """Back the database up to `target`, which appears after it was written and verified.

    The backup shows the database at one point in time; others may write meanwhile. Raises
    OfflineError.
    """
    session.snapshot()
    schema = current(session)
    if not schema:
        raise OfflineError(f"{session.where} has no schema yet: there is nothing to back up")
    if target.exists():
        raise ArchiveError(f"{target} exists already: choose another name, or remove it first")
    with draft_of(target) as draft:
        with contextlib.closing(SqliteSession(draft, "new")) as backup:
            backup.begin()
            sums = copy(session, backup, at)
            backup.commit()
        session.rollback()
        rows = {table: of.rows for table, of in sums.items()}
        _finish(draft, Manifest(schema=schema, at=at, release=release, key=key, rows=rows))
        verified = verify(draft)
        if target.exists():
            raise ArchiveError(f"another program has created {target}: choose another name")
        publish(draft, target)
    return verified


def _finish(draft: Path, manifest: Manifest) -> None:
    """Write the line, and the file to the disk, so that `verify` does not read the cache."""
    with draft.open("r+b") as file:
        digest = hashlib.file_digest(file, "sha256")
        line = _MAGIC + msgspec.json.encode(manifest) + b" "
        digest.update(line)
        file.write(line + digest.hexdigest().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
        with contextlib.suppress(OSError):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def verify(path: Path) -> Verified:
    """Read the whole file. Raises ArchiveError when svcd cannot restore it."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ArchiveError(f"{path} is a pipe or a device: svcd restores from a file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _LINE_BYTES))
            _, magic, line = file.read().rpartition(_MAGIC)
            if not magic:
                raise ArchiveError(f"{path} is no backup of svcd, or is cut off")
            digest = _digest(file, size - _DIGEST_BYTES)
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror}") from None
    text, _, written = line.rpartition(b" ")
    if written != f"{digest}\n".encode():
        raise ArchiveError(
            f"{path} is damaged: its SHA-256 does not match its content; use another backup,"
            " nothing was changed"
        )
    manifest = msgspec.json.decode(text, type=Manifest)
    version = migrations.Version(manifest.schema, manifest.schema)
    if why := migrations.refusal(version, f"{path}", "start with an empty database"):
        raise ArchiveError(why)
    return Verified(manifest=manifest, bytes=size, sha256=digest)


def _digest(file: BinaryIO, size: int) -> str:
    """The SHA-256 of the first `size` bytes, in hex."""
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (chunk := file.read(min(_CHUNK, size))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest()
