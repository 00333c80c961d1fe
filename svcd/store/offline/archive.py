"""The backup file: one format for both drivers, written and read as a stream.

Note: the format. A line `svcd backup 1`, then frames: four bytes of length (big-endian) and a
MessagePack value. The first frame is the head (schema number, tables with their columns); then one
frame a row, `[table, row]`, the tables in the order of the head, the rows in the order of their
key; then the manifest, `[-1, {table: {rows, sha256}}]`. The last 32 bytes are the SHA-256 of all
bytes before them. So a reader finds a truncated file and every changed bit.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
from attrs import frozen

from svcd.store import migrations
from svcd.store.database import Row
from svcd.store.offline.content import Sum, Tally, differences, encode_row, read
from svcd.store.offline.drafts import draft_of, publish
from svcd.store.offline.session import OfflineError, Session, current
from svcd.store.offline.shape import Shape, TableShape, shape

_MAGIC = b"svcd backup 1\n"
_LENGTH = 4
_FRAME_LIMIT = 1 << 30
"""Largest frame in bytes; a greater length means damage."""
_END = -1
_HASH_BYTES = 32
"""Size of the SHA-256 at the end."""
_CHUNK = 1 << 20
"""Size in bytes of the buffer for reads and writes."""

_encode = msgspec.msgpack.Encoder().encode


@frozen(kw_only=True)
class Head:
    """The first frame of a backup. schema: number of the schema. at: time of the backup.

    release: release of the svcd that wrote the backup. key: fingerprints of the keys of the sealed
    secrets, with `+` between them. tables: names with their columns.
    """

    schema: int
    at: str
    release: str
    key: str
    tables: tuple[tuple[str, tuple[str, ...]], ...]


@frozen(kw_only=True)
class Manifest:
    """The digests of a backup that was read to its end and is undamaged."""

    head: Head
    sums: dict[str, Sum]
    bytes: int
    sha256: str


class ArchiveError(OfflineError):
    """The backup file cannot be used."""


# ---- writing ------------------------------------------------------------------------------------


class _Writer:
    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._digest = hashlib.sha256()

    def put(self, data: bytes) -> None:
        self._digest.update(data)
        self._out.write(data)

    def frame(self, data: bytes) -> None:
        self.put(len(data).to_bytes(_LENGTH, "big"))
        self.put(data)

    def end(self) -> None:
        self._out.write(self._digest.digest())


def write(session: Session, target: Path, at: str, release: str, key: str) -> Manifest:
    """Back the database up to `target`, which appears after it was written and verified.

    The backup shows the database at one point in time; others may write meanwhile. Raises
    OfflineError.
    """
    session.snapshot()
    number = current(session)
    if not number:
        raise OfflineError(f"{session.where} has no schema yet: there is nothing to back up")
    of = shape(number)
    head = Head(
        schema=number, at=at, release=release, key=key,
        tables=tuple((each.name, each.columns) for each in of.kept),
    )  # fmt: skip
    if target.exists():
        raise ArchiveError(f"{target} exists already: choose another name, or remove it first")
    with draft_of(target) as draft:
        with draft.open("r+b", buffering=_CHUNK) as out:
            _write(session, of, head, out)
            out.flush()
            os.fsync(out.fileno())
            with contextlib.suppress(OSError):  # so that `verify` reads the disk, not the cache
                os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        session.rollback()
        manifest = verify(draft)
        if target.exists():
            raise ArchiveError(f"another program has created {target}: choose another name")
        publish(draft, target)
    return manifest


def _write(session: Session, of: Shape, head: Head, out: IO[bytes]) -> None:
    writer, tally = _Writer(out), Tally()
    writer.put(_MAGIC)
    writer.frame(_encode(head))
    for number, table in enumerate(of.kept):
        start = b"\x92" + _encode(number)  # an array of two: the table's number, the encoded row
        for row in read(session, table):
            encoded = encode_row(row)
            tally.add(table.name, encoded)
            writer.frame(start + encoded)
    writer.frame(_encode([_END, tally.sums(of)]))
    writer.end()


# ---- reading ------------------------------------------------------------------------------------


class Reader:
    """Reads a backup file from its head to its end; `manifest` is known after the last row.

    Call `verify` on the file first: a reader finds damage only when it reaches it.
    """

    def __init__(self, path: Path) -> None:
        """Raises ArchiveError."""
        self._path = path
        self._digest = hashlib.sha256()
        self._tally = Tally()
        self._ahead: tuple[int, bytes] | None = None
        self._manifest: Manifest | None = None
        try:
            self._file = path.open("rb", buffering=_CHUNK)
        except OSError as error:
            raise ArchiveError(f"{path} cannot be read: {error.strerror}") from None
        try:
            self._size = os.fstat(self._file.fileno()).st_size
            if self._exactly(len(_MAGIC)) != _MAGIC:
                raise ArchiveError(f"{path} is no backup of svcd, or is from a later release")
            self.head = self._decoded_head()
            self.shape = self._known_shape()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        self._file.close()

    def rows(self, table: TableShape) -> Iterator[Row]:
        """The rows of one table. Read the tables in the order of the head."""
        wanted = [each.name for each in self.shape.kept].index(table.name)
        while True:
            number, encoded = self._next()
            if number != wanted:
                self._ahead = (number, encoded)
                return
            self._tally.add(table.name, encoded)
            row = self._value(encoded)
            if not isinstance(row, list) or len(row) != len(table.columns):
                raise self._broken(f"a row of {table.name} has another number of columns")
            yield tuple(row)

    def manifest(self) -> Manifest:
        """The manifest, after the last row. Raises ArchiveError when the file is damaged."""
        if self._manifest is not None:
            return self._manifest
        number, encoded = self._next()
        if number != _END:
            raise self._broken("its rows are not in the order of its head")
        promised = self._value(encoded, dict[str, Sum])
        faults = differences(promised, self._tally.sums(self.shape))
        if faults:
            raise self._broken("; ".join(faults))
        found = self._digest.digest()
        if self._raw(_HASH_BYTES) != found or self._file.read(1):
            raise self._broken("its SHA-256 does not match its content")
        self._manifest = Manifest(
            head=self.head, sums=promised, bytes=self._size, sha256=found.hex()
        )
        return self._manifest

    def _decoded_head(self) -> Head:
        head: Head = self._value(self._frame(), Head)
        return head

    def _known_shape(self) -> Shape:
        number = self.head.schema
        version, afresh = migrations.Version(number, number), "start with an empty database"
        if why := migrations.refusal(version, f"{self._path}", afresh):
            raise ArchiveError(why)
        found = shape(number)
        if tuple((each.name, each.columns) for each in found.kept) != self.head.tables:
            raise ArchiveError(
                f"{self._path} has other tables than schema {number} of this release:"
                f" restore it with svcd {self.head.release}"
            )
        return found

    def _next(self) -> tuple[int, bytes]:
        """The number of the table, and the encoded row."""
        if self._ahead is not None:
            ahead, self._ahead = self._ahead, None
            return ahead
        pair: list[msgspec.Raw] = self._value(self._frame(), list[msgspec.Raw])
        if len(pair) != 2:
            raise self._broken("a frame has the wrong form")
        return self._value(bytes(pair[0]), int), bytes(pair[1])

    def _value(self, encoded: bytes, kind: Any = Any) -> Any:
        try:
            return msgspec.msgpack.decode(encoded, type=kind)
        except (msgspec.MsgspecError, ValueError) as error:
            raise self._broken(str(error)) from None

    def _frame(self) -> bytes:
        length = int.from_bytes(self._exactly(_LENGTH), "big")
        if length > min(_FRAME_LIMIT, self._size):
            raise self._broken("the length of a frame is impossible")
        return self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        data = self._raw(size)
        self._digest.update(data)
        return data

    def _raw(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except OSError as error:
            raise ArchiveError(f"{self._path} cannot be read: {error.strerror}") from error
        if len(data) != size:
            raise self._broken("it ends too early")
        return data

    def _broken(self, why: str) -> ArchiveError:
        return ArchiveError(
            f"{self._path} is damaged: {why}; use another backup, nothing was changed"
        )


def verify(path: Path) -> Manifest:
    """Read the whole file. Raises ArchiveError when it is damaged."""
    reader = Reader(path)
    try:
        for table in reader.shape.kept:
            for _ in reader.rows(table):
                pass
        return reader.manifest()
    finally:
        reader.close()
