"""The embedded cloud's memory: one table for each family, copied to SQLite if there is a folder.

Reads never touch the disk. A change inside `State.transaction` is on the disk when the block ends,
any other change at once. So an acknowledged change survives a `kill -9`.

Note: a full disk. A change that cannot be written stays in memory, and is written together with the
next change that can be written. Meanwhile `problem` gives the reason, and no service acknowledges a
change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, ValuesView
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec
from twisted.logger import Logger

from svcd.embedded.cloud.records import (
    ApplicationCredential,
    Container,
    FloatingIp,
    Image,
    KeyPair,
    Port,
    Project,
    Quotas,
    SecurityGroup,
    Server,
    ServerGroup,
    StoredObject,
    Token,
    Trust,
    Volume,
)

log = Logger()

_SCHEMA = """
create table if not exists record (
    family text not null, id text not null, body blob not null, unique (family, id)
)
"""
_PUT = (
    "insert into record (family, id, body) values (?, ?, ?) "
    "on conflict (family, id) do update set body = excluded.body"
)
_REMOVE = "delete from record where family = ? and id = ?"
_LOAD = "select body from record where family = ? order by rowid"


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=_HasId)


class _Journal:
    """Changes that wait to be written. problem: the reason why they cannot be written, or ""."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self.problem = ""
        self.held = False
        self._unwritten: dict[tuple[str, str], bytes | None] = {}

    def change(self, family: str, id_: str, body: bytes | None) -> None:
        """Note the new content of a record; None: it was removed."""
        self._unwritten.pop((family, id_), None)
        self._unwritten[family, id_] = body
        if not self.held:
            self.write()

    def write(self) -> None:
        """Write all changes together, or none of them for now."""
        if not self._unwritten:
            return
        try:
            self.database.execute("begin")
            for (family, id_), body in self._unwritten.items():
                if body is None:
                    self.database.execute(_REMOVE, (family, id_))
                else:
                    self.database.execute(_PUT, (family, id_, body))
            self.database.execute("commit")
        except sqlite3.OperationalError as error:
            if self.database.in_transaction:
                self.database.execute("rollback")
            if not self.problem:
                log.warn("The embedded cloud cannot write: {error}; make room", error=error)
            self.problem = str(error)
            return
        self._unwritten.clear()
        if self.problem:
            log.info("The embedded cloud can write again")
        self.problem = ""


class Table(Generic[R]):
    """The records of one family by id, in order of insertion.

    group: a second key, by which `having` finds records without a search.
    """

    def __init__(
        self,
        family: str,
        kind: type[R],
        journal: _Journal | None,
        group: Callable[[R], str | None] = lambda _: None,
    ) -> None:
        self._family = family
        self._journal = journal
        self._group = group
        self._rows: dict[str, R] = {}
        self._groups: dict[str, dict[str, R]] = {}
        if journal is not None:
            decoder = msgspec.json.Decoder(kind)
            for (body,) in journal.database.execute(_LOAD, (family,)):
                self._remember(decoder.decode(body))

    def get(self, id_: str) -> R | None:
        """The record, None when there is none."""
        return self._rows.get(id_)

    def put(self, record: R) -> None:
        """Add or replace a record."""
        self._forget(record.id)
        self._remember(record)
        if self._journal is not None:
            self._journal.change(self._family, record.id, msgspec.json.encode(record))

    def remove(self, id_: str) -> None:
        """Remove a record. An unknown id is no fault."""
        known = id_ in self._rows
        self._forget(id_)
        self._rows.pop(id_, None)
        if known and self._journal is not None:
            self._journal.change(self._family, id_, None)

    def having(self, group: str) -> list[R]:
        """The records whose second key is `group`."""
        return list(self._groups.get(group, {}).values())

    def _remember(self, record: R) -> None:
        self._rows[record.id] = record
        group = self._group(record)
        if group is not None:
            self._groups.setdefault(group, {})[record.id] = record

    def _forget(self, id_: str) -> None:
        """Remove a record from its group; a replaced record keeps its place in the order."""
        before = self._rows.get(id_)
        group = None if before is None else self._group(before)
        if group is not None:
            members = self._groups[group]
            del members[id_]
            if not members:
                del self._groups[group]

    def values(self) -> ValuesView[R]:
        """All records; copy before changing the table in a loop over it."""
        return self._rows.values()

    def __len__(self) -> int:
        return len(self._rows)


class State:
    """All tables. folder: holds `cloud.sqlite`; None: memory only."""

    def __init__(self, folder: Path | None) -> None:
        self._journal: _Journal | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            database = sqlite3.connect(folder / "cloud.sqlite", isolation_level=None)
            database.execute("pragma locking_mode = exclusive")
            database.execute("pragma journal_mode = wal")
            database.execute("pragma synchronous = normal")
            database.execute(_SCHEMA)
            self._journal = _Journal(database)
        db = self._journal
        self.projects = Table("project", Project, db)
        self.tokens = Table("token", Token, db)
        self.trusts = Table("trust", Trust, db)
        self.credentials = Table("application_credential", ApplicationCredential, db)
        self.keypairs = Table("keypair", KeyPair, db)
        self.images = Table("image", Image, db)
        self.servers = Table("server", Server, db, lambda server: server.group_id)
        self.server_groups = Table("server_group", ServerGroup, db)
        self.security_groups = Table("security_group", SecurityGroup, db)
        self.ports = Table("port", Port, db, lambda port: port.device_id)
        self.floating_ips = Table("floating_ip", FloatingIp, db, lambda ip: ip.port_id)
        self.volumes = Table("volume", Volume, db, lambda volume: volume.server_id)
        self.quotas = Table("quota", Quotas, db)
        self.containers = Table("container", Container, db)
        self.objects = Table(
            "object", StoredObject, db, lambda found: f"{found.account}/{found.container}"
        )

    @property
    def problem(self) -> str:
        """The reason why changes cannot be written to the disk, or ""."""
        return "" if self._journal is None else self._journal.problem

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write the changes of the block together, also when the block raises."""
        journal = self._journal
        if journal is None or journal.held:
            yield
            return
        journal.held = True
        try:
            yield
        finally:
            journal.held = False
            journal.write()

    def close(self) -> None:
        """Write the rest of the changes and release the file."""
        if self._journal is not None:
            self._journal.write()
            self._journal.database.close()
            self._journal = None
