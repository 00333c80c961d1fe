# mypy: allow-untyped-calls
"""Sessions: connections to PostgreSQL, opened and watched with deadlines.

Note: no deadlines in txpostgres. It cannot give up a connect or a statement whose server does not
answer. Only closing the connection ends the wait, and the waiting statement then fails. See also
`connection`.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import psycopg2
from psycopg2 import errorcodes
from psycopg2.extensions import (
    TRANSACTION_STATUS_IDLE,
    TRANSACTION_STATUS_INERROR,
    TRANSACTION_STATUS_INTRANS,
    make_dsn,
    parse_dsn,
)
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IReactorTime
from twisted.internet.threads import deferToThreadPool

from svcd.model.redaction import of_url, without_passwords
from svcd.model.secret import Secret
from svcd.runtime.tasks import DeadlineExceeded, Loop, apart, with_deadline
from svcd.settings import Database as DatabaseSettings
from svcd.store.connection import Connection
from svcd.store.database import SchemaError

_FAILED = int(TRANSACTION_STATUS_INERROR)
_OPEN = (int(TRANSACTION_STATUS_INTRANS), _FAILED)
# tells at once that the server has hung up; a busy reactor would notice it too late
_HUNG_UP = getattr(select, "POLLRDHUP", 0)
_WATCH_S = 0.5
"""Time between two checks for statements past their deadline."""
_SLACK_S = 2.0
"""Added to the deadline of a statement: a server that answers applies its own time-out first."""
AWAKE: Final = (
    "select set_config(name, '0', false) from pg_settings where name = 'idle_session_timeout'"
)
"""The server, or the user's default, may end idle sessions. Server 13 does not know the name."""

ENCODING: Final = (
    "select pg_encoding_to_char(encoding) from pg_database where datname = current_database()"
)
_NO_RIGHTS = frozenset({errorcodes.INSUFFICIENT_PRIVILEGE, errorcodes.INVALID_SCHEMA_NAME})


class Lost(Exception):
    """The connection broke, or could not be opened. args[0]: one line that says why."""


class Session:
    """One connection, used by one transaction at a time. lost: called once when it breaks."""

    def __init__(
        self, reactor: Any, limit_s: float, lost: Callable[[Session, str], None] | None = None
    ) -> None:
        self._reactor = reactor
        self._limit_s = limit_s
        self._lost = lost
        self._until: float | None = None
        self._overdue = False
        self._hung_up = select.poll()
        self._connection = Connection(reactor, self._broken)

    async def open(self, dsn: str, limit_s: float) -> None:
        """Connect within `limit_s`. Raises Lost."""
        late = False

        def expire() -> None:
            nonlocal late
            late = True
            self._shut()

        timer = self._reactor.callLater(limit_s, expire)
        try:
            await self._cut_short(self._connection.connect(dsn))
            self._hung_up.register(self._connection.pollable().fileno(), _HUNG_UP)
        except (psycopg2.Error, ConnectionDone) as error:
            self.close()
            reason = f"no answer within {limit_s:g} s" if late else line_of(error)
            raise Lost(reason) from None
        except BaseException:
            self.close()
            raise
        finally:
            if timer.active():
                timer.cancel()

    async def execute(
        self,
        text: str | bytes,
        parameters: Mapping[str, object] | None = None,
        unlimited: bool = False,
        raw: bool = False,
    ) -> Any:
        """The cursor with the answer of the last statement in `text`. raw: texts stay bytes.

        Raises psycopg2.Error, ValueError for a text that the database cannot hold, and Lost.
        """
        if not unlimited:
            self._until = self._reactor.seconds() + self._limit_s + _SLACK_S
        try:
            cursor = await self._cut_short(self._connection.query(text, parameters, raw))
        except ConnectionDone:
            reason = "the server does not answer" if self._overdue else "closed"
            raise Lost(reason) from None
        except psycopg2.Error as error:
            if self._connection.pollable().closed:
                raise Lost(line_of(error)) from None
            raise
        finally:
            self._until = None
        return cursor

    def filled(self, text: str, parameters: Mapping[str, object] | None) -> bytes:
        """`text` with its parameters filled in, for `execute`. Raises the errors of `execute`."""
        if parameters is None:
            return text.encode()
        try:
            return cast("bytes", self._connection.pollable().cursor().mogrify(text, parameters))
        except psycopg2.InterfaceError as error:
            raise Lost(line_of(error)) from None

    def listen(self, hear: Callable[[str], None]) -> None:
        """hear: called with the text of each notification that this connection listens for."""
        self._connection.addNotifyObserver(lambda notice: hear(notice.payload))

    @property
    def fit(self) -> bool:
        """Whether the connection is open at both ends, without a transaction."""
        pollable = self._connection.pollable()
        return bool(
            pollable is not None
            and not pollable.closed
            and pollable.get_transaction_status() == TRANSACTION_STATUS_IDLE
            and not self._hung_up.poll(0)
        )

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; it may have failed."""
        return self._status() in _OPEN

    @property
    def failed(self) -> bool:
        """Whether a statement of the transaction failed: it can only be rolled back."""
        return self._status() == _FAILED

    def watch(self, now: float) -> None:
        """Give up a statement whose server has not answered within its deadline."""
        if self._until is not None and now > self._until:
            self._overdue = True
            self._shut()

    def close(self) -> None:
        """Close the connection without a call of `lost`."""
        self._lost = None
        self._shut()

    def _cut_short(self, running: Deferred[Any]) -> Deferred[Any]:
        """Make `running` cancellable by closing the connection.

        A cancel request to the server would block the reactor.
        """
        return apart(running, lambda _: self._shut())

    def _status(self) -> int:
        pollable = self._connection.pollable()
        return -1 if pollable.closed else int(pollable.get_transaction_status())

    def _shut(self) -> None:
        if self._connection.pollable() is not None:
            self._connection.close()

    def _broken(self, error: BaseException) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            self._shut()
            lost(self, line_of(error))


class Sessions:
    """Opens sessions with the connection settings, and gives up statements past their deadline."""

    def __init__(self, reactor: Any, settings: DatabaseSettings, name: str = "") -> None:
        """name: the application_name of this daemon's connections at the server.

        Raises SchemaError when the URL cannot be understood.
        """
        self._reactor = reactor
        self._settings = settings
        self._dsn = connection_text(settings, name)
        self._known = [Secret(secret) for secret in of_url(settings.url)]  # see model.secret
        self._open: set[Session] = set()
        clock: IReactorTime = reactor
        self._watch = Loop(clock, "database watch", _WATCH_S, self._check)

    async def open(
        self, lost: Callable[[Session, str], None], statement_s: float | None = None
    ) -> Session:
        """A new session. statement_s: replaces the setting's time-out. Raises Lost."""
        dsn, limit_s = await self._resolved(), self._settings.connect_timeout_s
        statement_s = self._settings.statement_timeout_s if statement_s is None else statement_s
        session = Session(self._reactor, statement_s, lost)
        await session.open(dsn, limit_s)
        self._open.add(session)
        with closing(self, session):
            try:
                await session.execute(AWAKE)
            except psycopg2.Error as error:
                raise Lost(line_of(error)) from None
        return session

    def close(self, session: Session) -> None:
        """Close `session` and forget it."""
        self._open.discard(session)
        session.close()

    def start(self) -> None:
        """Watch the deadlines of statements from now on."""
        self._watch.start(now=False)

    async def stop(self) -> None:
        """Close all open sessions."""
        await self._watch.stop()
        for session in list(self._open):
            self.close(session)

    async def _resolved(self) -> str:
        """The connection text with the addresses of its host: libpq would block to resolve them."""
        given = parse_dsn(self._dsn)
        host = given.get("host", "")
        if given.get("hostaddr") or not host or any(c in host for c in "/,@:"):
            return self._dsn
        limit_s = self._settings.connect_timeout_s
        try:
            ips = await with_deadline(
                self._reactor, limit_s, "host name", addresses(self._reactor, host)
            )
        except (OSError, UnicodeError) as error:
            raise Lost(f"{host!r} has no address: {error}") from None
        except DeadlineExceeded:
            raise Lost(f"{host!r} was not resolved within {limit_s:g} s") from None
        hosts, ports = ",".join([host] * len(ips)), given.get("port", "")
        return str(make_dsn(self._dsn, host=hosts, hostaddr=",".join(ips), port=ports or None))

    async def _check(self) -> None:
        now = self._reactor.seconds()
        for session in list(self._open):
            session.watch(now)


def addresses(reactor: Any, host: str) -> Deferred[list[str]]:
    """All IP addresses of `host`, in the order in which a client tries them."""

    def resolve() -> list[str]:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(row[4][0]) for row in found))

    return deferToThreadPool(reactor, reactor.getThreadPool(), resolve)


def connection_text(settings: DatabaseSettings, name: str = "") -> str:
    """The connection text for libpq. Raises SchemaError.

    Both sides notice a lost peer within half a minute. The server ends statements that take too
    long. It accepts writes only in transactions that svcd begins as `read write`.
    """
    try:
        given = parse_dsn(settings.url)
    except psycopg2.Error as error:
        raise SchemaError(f"database.url cannot be understood: {line_of(error)}") from None
    limit_ms = int(settings.statement_timeout_s * 1000)
    options = " ".join(
        f"-c {option}"
        for option in (
            f"statement_timeout={limit_ms}",
            f"idle_in_transaction_session_timeout={limit_ms * 2}",
            "default_transaction_read_only=on",
            "tcp_keepalives_idle=10",
            "tcp_keepalives_interval=5",
            "tcp_keepalives_count=3",
        )
    )
    more = {
        "keepalives_idle": "10",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": "20000",
        "application_name": "svcd",
    }
    given["options"] = f"{options} {given.get('options', '')}".strip()
    given["client_encoding"] = "UTF8"
    if name:
        given["application_name"] = name
    given.pop("connect_timeout", None)
    return str(make_dsn(**{**more, **given}))


def encoding_refusal(where: str, encoding: str) -> str:
    """The reason why svcd must not use the database `where`, or "".

    encoding: the answer to ENCODING.
    """
    if encoding == "UTF8":
        return ""
    return (
        f"{where} has the encoding {encoding}: create a database with UTF8"
        " (createdb --encoding UTF8 --template template0 NAME)"
    )


def remedy_of(error: BaseException) -> str:
    """The remedy for a refused change of the schema."""
    if getattr(error, "pgcode", None) in _NO_RIGHTS:
        return "make the user of database.url the owner of the database"
    return "read the server's log, or run svcd doctor"


def line_of(error: BaseException) -> str:
    """The first line of the error's text, without passwords."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return without_passwords(lines[0] if lines else type(error).__name__)


@contextlib.contextmanager
def closing(sessions: Sessions, session: Session) -> Any:
    """Close `session` when the block fails."""
    try:
        yield
    except BaseException:
        sessions.close(session)
        raise
