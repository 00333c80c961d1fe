"""The embedded cloud's memory: one table for each family, copied to SQLite if there is a folder.

Reads never touch the disk. A change inside `State.transaction` is on the disk when the block ends,
any other change at once. So an acknowledged change survives a `kill -9`.

Note: a full disk. A change that cannot be written stays in memory, and is written together with the
next change that can be written. Meanwhile `problem` gives the reason, and no service acknowledges a
change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, ValuesView
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, Protocol, TypeAlias, TypeVar

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


class _Owned(Protocol):
    @property
    def project_id(self) -> str: ...


R = TypeVar("R", bound=_HasId)
_Index: TypeAlias = dict[Hashable, R | dict[str, R]]
"""The records of each key by id; a single record without a dictionary, which would take more."""


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

    keys: by name, a function that returns the keys under which `having` finds a record. amounts:
    what a record adds to the sums of `total`, by key. Both make a request about few records as
    cheap in a large cloud as in a small one.
    rows_read: the number of records that callers have asked for so far.
    """

    def __init__(
        self,
        family: str,
        kind: type[R],
        journal: _Journal | None,
        keys: Mapping[str, Callable[[R], Iterable[Hashable]]] | None = None,
        amounts: Callable[[R], Iterable[tuple[Hashable, int]]] = lambda _: (),
    ) -> None:
        self._family = family
        self._journal = journal
        self._amounts = amounts
        self._rows: dict[str, R] = {}
        self._indexes: list[tuple[Callable[[R], Iterable[Hashable]], _Index[R]]] = []
        self._named: dict[str, _Index[R]] = {}
        for name, keys_of in (keys or {}).items():
            self._named[name] = {}
            self._indexes.append((keys_of, self._named[name]))
        self._totals: dict[Hashable, int] = {}
        self.rows_read = 0
        if journal is not None:
            decoder = msgspec.json.Decoder(kind)
            for (body,) in journal.database.execute(_LOAD, (family,)):
                self._remember(decoder.decode(body))

    def get(self, id_: str) -> R | None:
        """The record, None when there is none."""
        self.rows_read += 1
        return self._rows.get(id_)

    def put(self, record: R) -> None:
        """Add or replace a record. A replaced record keeps its place in the order."""
        self._remember(record)
        if self._journal is not None:
            self._journal.change(self._family, record.id, msgspec.json.encode(record))

    def remove(self, id_: str) -> None:
        """Remove a record. An unknown id is no fault."""
        before = self._rows.pop(id_, None)
        if before is None:
            return
        for keys_of, index in self._indexes:
            for key in set(keys_of(before)):
                _drop(index, key, id_)
        self._add(before, -1)
        if self._journal is not None:
            self._journal.change(self._family, id_, None)

    def having(self, name: str, key: Hashable) -> list[R]:
        """The records with this key, in the order in which they got it. name: of its function."""
        members = self._named[name].get(key)
        if members is None:
            return []
        found = list(members.values()) if isinstance(members, dict) else [members]
        self.rows_read += len(found)
        return found

    def count(self, name: str, key: Hashable) -> int:
        """The number of records with this key."""
        members = self._named[name].get(key)
        return len(members) if isinstance(members, dict) else int(members is not None)

    def total(self, key: Hashable) -> int:
        """The sum of the amounts of all records for this key."""
        return self._totals.get(key, 0)

    def _remember(self, record: R) -> None:
        before = self._rows.get(record.id)
        self._rows[record.id] = record
        for keys_of, index in self._indexes:
            keys = frozenset(keys_of(record))
            if before is not None:
                for key in set(keys_of(before)):
                    if key not in keys:
                        _drop(index, key, record.id)
            for key in keys:
                members = index.get(key)
                if isinstance(members, dict):
                    members[record.id] = record
                elif members is None or members.id == record.id:
                    index[key] = record
                else:
                    index[key] = {members.id: members, record.id: record}
        if before is not None:
            self._add(before, -1)
        self._add(record, 1)

    def _add(self, record: R, sign: int) -> None:
        for key, amount in self._amounts(record):
            total = self._totals.get(key, 0) + sign * amount
            if total:
                self._totals[key] = total
            else:
                self._totals.pop(key, None)

    def values(self) -> ValuesView[R]:
        """All records; copy before changing the table in a loop over it."""
        self.rows_read += len(self._rows)
        return self._rows.values()

    def __len__(self) -> int:
        return len(self._rows)


def _drop(index: _Index[R], key: Hashable, id_: str) -> None:
    members = index[key]
    if isinstance(members, dict):
        del members[id_]
    if not isinstance(members, dict) or not members:
        del index[key]


def _of_project(record: _Owned) -> tuple[str]:
    return (record.project_id,)


def _prefixes(server: Server) -> Iterator[Hashable]:
    """The project with each beginning of the server's name that ends at a hyphen."""
    at = server.name.find("-")
    while at >= 0:
        yield server.project_id, server.name[: at + 1]
        at = server.name.find("-", at + 1)


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
        self.trusts = Table(
            "trust",
            Trust,
            db,
            {
                "same": lambda t: ((t.trustor_id, t.trustee_id, t.project_id, t.expires_at),),
                "trustor": lambda trust: (trust.trustor_id,),
                "trustee": lambda trust: (trust.trustee_id,),
            },
        )
        self.credentials = Table(
            "application_credential",
            ApplicationCredential,
            db,
            {"name": lambda made: ((made.user_id, made.name),), "user": lambda m: (m.user_id,)},
        )
        self.keypairs = Table("keypair", KeyPair, db, {"user": lambda pair: (pair.user_id,)})
        self.images = Table("image", Image, db)
        self.servers = Table(
            "server",
            Server,
            db,
            {
                "group": lambda server: (server.group_id,) if server.group_id else (),
                "project": _of_project,
                "prefix": _prefixes,
            },
            lambda server: (((server.project_id, server.flavor_id), 1),),
        )
        self.server_groups = Table("server_group", ServerGroup, db, {"project": _of_project})
        self.security_groups = Table(
            "security_group",
            SecurityGroup,
            db,
            {
                "project": _of_project,
                "name": lambda group: ((group.project_id, group.name.lower()),),
                "rule": lambda group: (rule.id for rule in group.rules),
            },
            lambda group: ((group.project_id, len(group.rules)),),
        )
        self.ports = Table(
            "port",
            Port,
            db,
            {
                "project": _of_project,
                "device": lambda port: (port.device_id,),
                "security_group": lambda port: port.security_groups,
            },
            lambda port: ((port.address, 1),),
        )
        self.floating_ips = Table(
            "floating_ip",
            FloatingIp,
            db,
            {"project": _of_project, "port": lambda ip: (ip.port_id,) if ip.port_id else ()},
            lambda ip: ((ip.address, 1),),
        )
        self.volumes = Table(
            "volume",
            Volume,
            db,
            {
                "project": _of_project,
                "server": lambda volume: (volume.server_id,) if volume.server_id else (),
            },
            lambda volume: ((volume.project_id, volume.size_gib),),
        )
        self.quotas = Table("quota", Quotas, db)
        self.containers = Table("container", Container, db, {"account": lambda c: (c.account,)})
        self.objects = Table(
            "object",
            StoredObject,
            db,
            {"container": lambda found: (f"{found.account}/{found.container}",)},
            lambda found: ((f"{found.account}/{found.container}", found.size),),
        )

    @property
    def rows_read(self) -> int:
        """The number of records that callers have asked all tables for so far."""
        tables = (each for each in vars(self).values() if isinstance(each, Table))
        return sum(table.rows_read for table in tables)

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
