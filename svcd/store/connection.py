# mypy: allow-untyped-calls, allow-subclassing-any
"""A connection of txpostgres that uses the reactor less, and reports to its owner when it breaks.

Note: the cost of a txpostgres cursor. For each statement the cursor removes the connection from the
reactor and adds it again, and it delivers each answer in a later turn. Both together take more than
half of the time of a small statement. Here the connection stays in the reactor, and the answer is
delivered as soon as it has arrived. The receiver can use the connection again at once.

Note: the socket's number. libpq closes a socket that it finds broken, and epoll cannot remove the
number of a closed socket. So the reactor watches a duplicate of the socket.

Note: idle connections. When the server closes an idle connection, txpostgres raises into the
reactor, which would log a traceback. `continuePolling` calls `lost` instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import psycopg2
from psycopg2.extensions import BYTES, POLL_OK, POLL_WRITE, register_type
from twisted.internet.defer import Deferred, execute, maybeDeferred
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure
from txpostgres import txpostgres

_OK = int(POLL_OK)
_WRITE = int(POLL_WRITE)


class Connection(txpostgres.Connection):
    """A connection to PostgreSQL. It runs one statement at a time.

    lost: called each time the connection is found broken while no statement runs.
    """

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

    def poll(self) -> Deferred[Any]:
        """See txpostgres, which polls a connection while it opens.

        txpostgres delivers the last answer in a later turn. Fails with ConnectionDone when the
        connection was closed in between: the reactor refuses a socket without a number.
        """

        def still_open(result: Any) -> Any:
            if self.fileno() < 0:
                raise ConnectionDone
            return result

        polling: Deferred[Any] = super().poll()
        return polling.addCallback(still_open)

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

        raw: texts are returned as bytes. Fails with psycopg2.Error, with ConnectionDone when the
        connection was closed meanwhile, and with any error of the library for parameters.
        """
        return maybeDeferred(self._begin, text, parameters, raw)

    def _begin(
        self, text: str | bytes, parameters: Mapping[str, object] | None, raw: bool
    ) -> Deferred[Any]:
        if self._waiting is not None:
            raise psycopg2.ProgrammingError("a statement is under way")
        cursor = self._connection.cursor()
        if raw:
            register_type(BYTES, cursor)
        cursor.execute(text, parameters)
        done: Deferred[Any] = Deferred()
        self._waiting = cursor, done
        self._receive()
        return done

    def _receive(self) -> None:
        """Read the part of the answer that has arrived; deliver the answer when it is complete."""
        if self._waiting is None:
            return
        cursor, done = self._waiting

        def polled(state: int) -> None:
            if state == _OK:
                self._waiting = None
                self.checkForNotifies()  # notifications may have arrived with the answer
                done.callback(cursor)
            elif state == _WRITE:
                self.reactor.addWriter(self)
            else:
                self.reactor.addReader(self)

        def failed(failure: Failure) -> None:
            self._waiting = None
            done.errback(failure)

        execute(self._connection.poll).addCallbacks(polled, failed)

    def doRead(self) -> None:
        if self._waiting is not None:
            self._receive()
            return
        self.reactor.removeReader(self)
        if not self._connection.closed:
            self.continuePolling()
            self.checkForNotifies()
        if self._copy >= 0 and not self._connection.closed:  # -1: the connect failed
            self.reactor.addReader(self)

    def doWrite(self) -> None:
        if self._waiting is None:
            super().doWrite()
        else:
            self.reactor.removeWriter(self)
            self._receive()

    def continuePolling(self, swallowErrors: bool = False) -> None:
        try:
            super().continuePolling(swallowErrors)
        except psycopg2.Error as error:
            self._lost(error)

    def connectionLost(self, reason: Failure) -> None:
        if self._waiting is not None:
            if not self._connection.closed:
                self._receive()  # `_receive` reports the error
                return
            _, done = self._waiting
            self._waiting = None
            done.errback(reason)
        super().connectionLost(reason)
        if self._connection.closed:
            self._lost(reason.value or ConnectionDone())
