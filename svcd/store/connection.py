# mypy: allow-untyped-calls, allow-subclassing-any
"""A connection of txpostgres that asks the reactor for less, and tells its owner when it breaks.

Note: what a cursor of txpostgres costs. For each statement it takes the connection out of the
reactor and puts it back, and gives each answer a turn of its own later: more than half of what a
small statement takes. Here the connection stays in the reactor, and the answer is given when it has
come. It can be used again by who gets it, for the statement is over by then.

Note: the socket's number. libpq closes the socket by itself when it finds it broken, and a number
that is closed cannot be taken out of epoll any more. So the reactor watches a copy of ours.

Note: why `except Exception` is here. A statement can fail with errors of psycopg2 and with whatever
the library raises while it converts parameters and values. All of them belong to the caller of
`query`, who waits for a Deferred: an error that does not reach it would leave it waiting for ever.

Note: an idle connection that the server closes raises into the reactor, which would log a
traceback.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import psycopg2
from psycopg2.extensions import BYTES, POLL_OK, POLL_WRITE, register_type
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure
from txpostgres import txpostgres

_OK = int(POLL_OK)
_WRITE = int(POLL_WRITE)


class Connection(txpostgres.Connection):
    """lost: called each time the connection is found broken while nobody waits."""

    def __init__(self, reactor: Any, lost: Callable[[BaseException], None]) -> None:
        super().__init__(reactor)
        self._lost = lost
        self._copy = -1
        self._waiting: tuple[Any, Deferred[Any]] | None = None

    def connect(self, *arguments: Any, **more: Any) -> Deferred[Any]:
        """See txpostgres."""

        def connected(connection: Any) -> Any:
            self.reactor.removeReader(self)
            self._copy = os.dup(self._connection.fileno())
            self.reactor.addReader(self)
            return connection

        connecting: Deferred[Any] = super().connect(*arguments, **more)
        return connecting.addCallback(connected)

    def close(self) -> None:
        """See txpostgres."""
        super().close()
        copy, self._copy = self._copy, -1
        if copy >= 0:
            os.close(copy)

    def fileno(self) -> int:
        return self._copy if self._copy >= 0 else int(super().fileno())

    def query(
        self, text: str | bytes, parameters: Mapping[str, object] | None, raw: bool = False
    ) -> Deferred[Any]:
        """Fires with the plain cursor that holds the answer of the last statement in `text`.

        raw: texts come as bytes. One at a time. Fails with psycopg2.Error, ConnectionDone when it
        was closed meanwhile, and
        what the library raises for parameters.
        """
        done: Deferred[Any] = Deferred()
        try:
            if self._waiting is not None:
                raise psycopg2.ProgrammingError("a statement is under way")
            cursor = self._connection.cursor()
            if raw:
                register_type(BYTES, cursor)
            cursor.execute(text, parameters)
        except Exception:  # the caller's: see the note
            done.errback()
            return done
        self._waiting = cursor, done
        self._go_on()
        return done

    def _go_on(self) -> None:
        """What has come of the answer is taken; when it is whole, it is given."""
        if self._waiting is None:
            return
        cursor, done = self._waiting
        try:
            state = self._connection.poll()
        except Exception:  # the caller's: see the note
            self._waiting = None
            done.errback()
            return
        if state == _OK:
            self._waiting = None
            self.checkForNotifies()  # they may have come with the answer
            done.callback(cursor)
        elif state == _WRITE:
            self.reactor.addWriter(self)
        else:
            self.reactor.addReader(self)

    def doRead(self) -> None:
        if self._waiting is not None:
            self._go_on()
            return
        self.reactor.removeReader(self)
        if not self._connection.closed:
            self.continuePolling()
            self.checkForNotifies()
        if self._copy >= 0 and not self._connection.closed:  # not one that failed to connect
            self.reactor.addReader(self)

    def doWrite(self) -> None:
        if self._waiting is None:
            super().doWrite()
        else:
            self.reactor.removeWriter(self)
            self._go_on()

    def continuePolling(self, swallowErrors: bool = False) -> None:
        try:
            super().continuePolling(swallowErrors)
        except psycopg2.Error as error:
            self._lost(error)

    def connectionLost(self, reason: Failure) -> None:
        if self._waiting is not None:
            if not self._connection.closed:
                self._go_on()  # it reports what is wrong
                return
            _, done = self._waiting
            self._waiting = None
            done.errback(reason)
        super().connectionLost(reason)
        if self._connection.closed:
            self._lost(reason.value or ConnectionDone())
