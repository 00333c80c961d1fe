"""The embedded cloud's memory: one table for each family, with one journal in SQLite.

Reads never touch the disk. A change inside `CloudJournal.transaction` is on the disk when the block
ends, any other change at once. So an acknowledged change survives a `kill -9`.

Note: a full disk. A change that cannot be written stays in memory, and is written together with the
next change that can be written. Meanwhile `problem` gives the reason, and no service acknowledges a
change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Hashable, Iterable, Iterator, ValuesView
from contextlib import AbstractContextManager, contextmanager
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
    Rule,
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
Key: TypeAlias = tuple[str, Hashable]
"""The name of a key and its value."""


class CloudJournal:
    """Changes that wait to be written to a database; without one nothing is written.

    problem: the reason why they cannot be written, or "".
    """

    def __init__(self, folder: Path | None) -> None:
        self.problem = ""
        self.database: sqlite3.Connection | None = None
        self._held = False
        self._unwritten: dict[tuple[str, str], bytes | None] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.database = sqlite3.connect(folder / "cloud.sqlite", isolation_level=None)
            self.database.execute("pragma locking_mode = exclusive")
            self.database.execute("pragma journal_mode = wal")
            self.database.execute("pragma synchronous = normal")
            self.database.execute(_SCHEMA)

    def load(self, family: str) -> list[bytes]:
        """The records of a family, in order of insertion."""
        rows = self.database.execute(_LOAD, (family,)) if self.database is not None else ()
        return [body for (body,) in rows]

    def change(self, family: str, id_: str, record: object) -> None:
        """Note the new content of a record; None: it was removed."""
        if self.database is None:
            return
        self._unwritten.pop((family, id_), None)
        self._unwritten[family, id_] = None if record is None else msgspec.json.encode(record)
        if not self._held:
            self._write(self.database)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write the changes of the block together, also when the block raises."""
        if self.database is None or self._held:
            yield
            return
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self._write(self.database)

    def close(self) -> None:
        """Write the rest of the changes and release the file."""
        if self.database is not None:
            self._write(self.database)
            self.database.close()
            self.database = None

    def _write(self, database: sqlite3.Connection) -> None:
        """Write all changes together, or none of them for now."""
        if not self._unwritten:
            return
        try:
            database.execute("begin")
            for (family, id_), body in self._unwritten.items():
                if body is None:
                    database.execute(_REMOVE, (family, id_))
                else:
                    database.execute(_PUT, (family, id_, body))
            database.execute("commit")
        except sqlite3.OperationalError as error:
            if database.in_transaction:
                database.execute("rollback")
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

    keys: the keys under which `having` finds a record, which make a request about few records as
    cheap in a large cloud as in a small one.
    rows_read: the number of records that callers have asked for so far.
    """

    def __init__(
        self,
        family: str,
        kind: type[R],
        journal: CloudJournal,
        keys: Callable[[R], Iterable[Key]] = lambda _: (),
    ) -> None:
        self.rows_read = 0
        self._family = family
        self._journal = journal
        self._keys = keys
        self._rows: dict[str, R] = {}
        self._by_key: dict[Key, R | dict[str, R]] = {}  # one alone without a dictionary: memory
        for body in journal.load(family):
            self._remember(msgspec.json.decode(body, type=kind))

    def get(self, id_: str) -> R | None:
        """The record, None when there is none."""
        self.rows_read += 1
        return self._rows.get(id_)

    def put(self, record: R) -> None:
        """Add or replace a record. A replaced record keeps its place in the order."""
        self._remember(record)
        self._journal.change(self._family, record.id, record)

    def remove(self, id_: str) -> None:
        """Remove a record. An unknown id is no fault."""
        record = self._rows.pop(id_, None)
        if record is not None:
            self._forget(id_, set(self._keys(record)))
            self._journal.change(self._family, id_, None)

    def having(self, name: str, value: Hashable) -> list[R]:
        """The records with this key, in the order in which they got it."""
        members = self._by_key.get((name, value), {})
        records = list(members.values()) if isinstance(members, dict) else [members]
        self.rows_read += len(records)
        return records

    def count(self, name: str, value: Hashable) -> int:
        """The number of records with this key."""
        members = self._by_key.get((name, value), {})
        return len(members) if isinstance(members, dict) else 1

    def values(self) -> ValuesView[R]:
        """All records; copy before changing the table in a loop over it."""
        self.rows_read += len(self._rows)
        return self._rows.values()

    def __len__(self) -> int:
        return len(self._rows)

    def _remember(self, record: R) -> None:
        before, keys = self._rows.get(record.id), set(self._keys(record))
        if before is not None:
            self._forget(record.id, set(self._keys(before)) - keys)
        self._rows[record.id] = record
        for key in keys:
            members = self._by_key.get(key)
            if isinstance(members, dict):
                members[record.id] = record
            elif members is None or members.id == record.id:
                self._by_key[key] = record
            else:
                self._by_key[key] = {members.id: members, record.id: record}

    def _forget(self, id_: str, keys: Iterable[Key]) -> None:
        for key in keys:
            members = self._by_key[key]
            if isinstance(members, dict):
                del members[id_]
            if not isinstance(members, dict) or not members:
                del self._by_key[key]


def _of_project(record: _Owned) -> Iterator[Key]:
    yield "project", record.project_id


def _of_trust(trust: Trust) -> Iterator[Key]:
    yield "same", (trust.trustor_id, trust.trustee_id, trust.project_id, trust.expires_at)
    yield "trustor", trust.trustor_id
    yield "trustee", trust.trustee_id


def _of_credential(credential: ApplicationCredential) -> Iterator[Key]:
    yield "user", credential.user_id
    yield "name", (credential.user_id, credential.name)


def _of_server(server: Server) -> Iterator[Key]:
    """Also each beginning of the server's name that ends at a hyphen."""
    yield "project", server.project_id
    yield "flavor", (server.project_id, server.flavor_id)
    if server.group_id:
        yield "group", server.group_id
    at = server.name.find("-")
    while at >= 0:
        yield "prefix", (server.project_id, server.name[: at + 1])
        at = server.name.find("-", at + 1)


def _of_security_group(group: SecurityGroup) -> Iterator[Key]:
    yield "project", group.project_id
    yield "name", (group.project_id, group.name.lower())


def _of_rule(rule: Rule) -> Iterator[Key]:
    yield "project", rule.project_id
    yield "group", rule.group_id


def _of_port(port: Port) -> Iterator[Key]:
    yield "project", port.project_id
    yield "device", port.device_id
    yield "address", port.address
    for group_id in port.security_groups:
        yield "security_group", group_id


def _of_floating_ip(ip: FloatingIp) -> Iterator[Key]:
    yield "project", ip.project_id
    yield "address", ip.address
    if ip.port_id:
        yield "port", ip.port_id


def _of_volume(volume: Volume) -> Iterator[Key]:
    yield "project", volume.project_id
    if volume.server_id:
        yield "server", volume.server_id


class State:
    """All tables. folder: holds `cloud.sqlite`; None: memory only."""

    def __init__(self, folder: Path | None) -> None:
        self.journal = journal = CloudJournal(folder)
        self.projects = Table("project", Project, journal)
        self.tokens = Table("token", Token, journal)
        self.trusts = Table("trust", Trust, journal, _of_trust)
        credentials = ("application_credential", ApplicationCredential, journal, _of_credential)
        self.credentials = Table(*credentials)
        self.keypairs = Table("keypair", KeyPair, journal, lambda k: (("user", k.user_id),))
        self.images = Table("image", Image, journal)
        self.servers = Table("server", Server, journal, _of_server)
        self.server_groups = Table("server_group", ServerGroup, journal, _of_project)
        self.security_groups = Table("security_group", SecurityGroup, journal, _of_security_group)
        self.rules = Table("security_group_rule", Rule, journal, _of_rule)
        self.ports = Table("port", Port, journal, _of_port)
        self.floating_ips = Table("floating_ip", FloatingIp, journal, _of_floating_ip)
        self.volumes = Table("volume", Volume, journal, _of_volume)
        self.quotas = Table("quota", Quotas, journal)
        self.containers = Table(
            "container", Container, journal, lambda c: (("account", c.account),)
        )
        self.objects = Table(
            "object",
            StoredObject,
            journal,
            lambda o: (("container", f"{o.account}/{o.container}"),),
        )

    @property
    def rows_read(self) -> int:
        """The number of records that callers have asked all tables for so far."""
        return sum(table.rows_read for table in vars(self).values() if isinstance(table, Table))

    @property
    def problem(self) -> str:
        """The reason why changes cannot be written to the disk, or ""."""
        return self.journal.problem

    def transaction(self) -> AbstractContextManager[None]:
        """Write the changes of the block together, also when the block raises."""
        return self.journal.transaction()

    def close(self) -> None:
        """Write the rest of the changes and release the file."""
        self.journal.close()
