"""The database of a command, and how the command opens it: beside a daemon, or alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from svcd.model.redaction import without_passwords
from svcd.runtime.drafts import draft_of, give, publish
from svcd.runtime.preflight import check_database
from svcd.runtime.state_dir import StateFolderError, hold_database
from svcd.settings import Database, Settings
from svcd.store.offline.content import refuse_occupied
from svcd.store.offline.session import Damaged, OfflineError, OfflineSession, current
from svcd.store.offline.sqlite import SqliteSession

if TYPE_CHECKING:
    from svcd.store.offline.postgres import PostgresSession

ASIDE = ".before-restore"
"""End of the name under which a restore keeps the former file."""


@frozen(kw_only=True)
class Place:
    """A database. path: of the SQLite file, None for PostgreSQL."""

    settings: Database
    path: Path | None

    @property
    def shown(self) -> str:
        """The path, or the URL without a password."""
        return without_passwords(self.settings.url) if self.path is None else f"{self.path}"

    def reading(self, command: str) -> OfflineSession:
        """A session that reads beside a running daemon. Raises OfflineError."""
        if self.path is None:
            return _postgres(self.settings, command)
        self._check_exists()
        return SqliteSession(self.path, "look")

    @contextlib.contextmanager
    def alone(self, command: str) -> Iterator[OfflineSession]:
        """A session that keeps every daemon out of the database. Raises OfflineError."""
        if self.path is None:
            with contextlib.closing(_postgres(self.settings, command)) as owner:
                owner.alone()
                yield owner
            return
        self._check_exists()
        with _held(self.path), contextlib.closing(SqliteSession(self.path, "alone")) as session:
            yield session

    @contextlib.contextmanager
    def filled(self, command: str, replace: bool | None) -> Iterator[OfflineSession]:
        """A transaction for the block to write all rows; it is committed when the block succeeds.

        Raises OfflineError before any change while a daemon uses the database, and when rows would
        be lost without `replace`.
        """
        if self.path is not None:
            with _filled_file(self.path, replace) as session:
                yield session
            return
        with self.alone(command) as session:
            session.begin()
            current(session)  # refuses a newer schema, whose tables are unknown
            refuse_occupied(session, replace)
            yield session
            session.commit()

    def _check_exists(self) -> None:
        if self.path is not None and not self.path.exists():
            raise OfflineError(
                f"there is no database {self.path}: the daemon creates it at its first start;"
                " check database.url and server.state_dir"
            )


def of_settings(settings: Settings) -> Place:
    """The database of the settings. Raises SettingsError."""
    return of_url(settings.database.url, settings)


def of_url(url: str, settings: Settings) -> Place:
    """The database at `url`, with the time-outs of the settings. Raises SettingsError."""
    database = evolve(settings.database, url=url)
    check_database(database)
    return Place(settings=database, path=database.file(settings.server.state_dir))


@contextlib.contextmanager
def _filled_file(path: Path, replace: bool | None) -> Iterator[OfflineSession]:
    """A session on a new file, which replaces `path` at the end; the former file is kept."""
    path = path.resolve()  # a link stays, and the new file replaces its target
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _held(path), contextlib.ExitStack() as held:
        former: SqliteSession | None = None
        keep = False
        if path.exists() and path.stat().st_size:
            try:
                former = held.enter_context(contextlib.closing(SqliteSession(path, "alone")))
                keep = refuse_occupied(former, replace) > 0
            except Damaged as error:
                if not replace:
                    raise OfflineError(
                        f"{error}, or use --replace: it keeps the damaged file beside the new one"
                    ) from None
                keep = True
        draft = held.enter_context(draft_of(path))
        session = SqliteSession(draft, "new")
        with contextlib.closing(session):
            session.begin()
            yield session
            session.commit()
        if keep:
            _keep(path, former)
        elif former is not None:
            former.put_aside()
        elif path.exists() and path.stat().st_size:
            raise OfflineError(f"another program created {path} meanwhile: nothing was changed")
        give(draft, (path if path.exists() else path.parent).stat())  # the daemon must read it
        publish(draft, path)


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """Keep daemons and other commands out of a database, also while there is no file yet."""
    try:
        release = hold_database(path)
    except StateFolderError as error:
        raise OfflineError(str(error)) from None
    try:
        yield
    finally:
        release()


def _keep(path: Path, former: SqliteSession | None) -> None:
    """Give the former file a second name. The journal of a damaged file is kept too."""
    aside = path.with_name(path.name + ASIDE)
    for end in ("-wal", "-shm", ""):
        aside.with_name(aside.name + end).unlink(missing_ok=True)
    if former is not None:
        with contextlib.suppress(
            Damaged
        ):  # the damage is found only here; the file is kept as it is
            former.put_aside()
    aside.hardlink_to(path)
    for end in ("-wal", "-shm"):
        journal = path.with_name(path.name + end)
        if journal.exists():
            journal.rename(aside.with_name(aside.name + end))


def _postgres(settings: Database, command: str) -> PostgresSession:
    from svcd.store.offline.postgres import (
        PostgresSession,
    )  # imported here: its library is an optional dependency

    return PostgresSession(settings, command)
