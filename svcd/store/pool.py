"""The pool of database sessions: hands out working sessions in order of request, after short waits.

The pool opens a session when a transaction asks and no session is free, up to its size. While the
server cannot be reached, the pool refuses at once, and tries to connect twice a second.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import ServiceUnavailable
from svcd.ports.store import DatabaseFigures
from svcd.runtime.tasks import DeadlineExceeded, Loop, with_deadline
from svcd.store.sessions import Lost, Session, Sessions

log = Logger()

_CHECK_S = 0.5
"""Time between two checks for missing sessions, and so between two attempts to connect."""
_WAITING = 2000
"""Most transactions that wait for a session; further ones get ServiceUnavailable."""
RETRY_AFTER_S = 2
"""Retry-After of each ServiceUnavailable of the pool."""


class Pool:
    """Sessions for transactions. size: most sessions. wait_s: longest wait for a session."""

    def __init__(self, clock: IReactorTime, sessions: Sessions, size: int, wait_s: float) -> None:
        self._clock = clock
        self._sessions = sessions
        self._size = size
        self._wait_s = wait_s
        self._idle: list[Session] = []
        self._busy: set[Session] = set()
        self._waiting: dict[Deferred[Session], None] = {}
        self._problem = ""
        self._failed_at = float("-inf")
        self._held = ""
        self._closing = False
        self._ended: Deferred[None] | None = None
        self._opened = self._broken = self._refused = self._waits = 0
        self._waited_s = 0.0
        self._grow = Loop(clock, "database connections", _CHECK_S, self._fill)

    def figures(self, repeated: int) -> DatabaseFigures:
        """The figures for the metrics. repeated: transactions that were run again."""
        return DatabaseFigures(
            busy=len(self._busy),
            idle=len(self._idle),
            most=self._size,
            waiting=len(self._waiting),
            reachable=not self._problem and not self._held,
            opened=self._opened,
            lost=self._broken,
            refused=self._refused,
            repeated=repeated,
            waits=self._waits,
            waited_s=self._waited_s,
        )

    def start(self) -> None:
        """Open sessions from now on."""
        self._grow.start()

    async def acquire(self) -> Session:
        """A working session; give it back with `release`. Raises ServiceUnavailable."""
        try:
            return await self._acquire()
        except ServiceUnavailable:
            self._refused += 1
            raise

    async def _acquire(self) -> Session:
        if self._closing:
            raise _stopping()
        while self._idle and not self._held:
            session = self._idle.pop()
            if session.fit:
                self._busy.add(session)
                return session
            self._broken += 1
            self._sessions.close(session)
        if self._problem and not self._busy:
            raise self._unreachable()
        if len(self._waiting) >= _WAITING:
            raise ServiceUnavailable("too many requests wait for the database", RETRY_AFTER_S)
        turn: Deferred[Session] = Deferred(self._forget)
        self._waiting[turn] = None
        self._grow.wake()
        began = self._clock.seconds()
        self._waits += 1
        try:
            return await with_deadline(self._clock, self._wait_s, "database", turn)
        except DeadlineExceeded:
            raise ServiceUnavailable(
                f"no database connection was free within {self._wait_s:g} s"
                f" ({self._held or f'{len(self._busy)} are in use'}):"
                " nothing was changed, try again later",
                RETRY_AFTER_S,
            ) from None
        finally:
            self._waited_s += self._clock.seconds() - began

    def release(self, session: Session) -> None:
        """Give a session back. The pool replaces it when it no longer works."""
        self._busy.discard(session)
        self._offer(session)
        if self._ended is not None and not self._busy:
            ended, self._ended = self._ended, None
            ended.callback(None)

    def hold(self, reason: str) -> None:
        """Hand out no session from now on: waiting transactions fail at their deadline."""
        self._held = reason

    async def close(self, limit_s: float) -> None:
        """Refuse new transactions and wait until the current ones have ended, at most `limit_s`."""
        self._closing = True
        self._refuse(_stopping)
        await self._grow.stop()
        if self._busy:
            self._ended = Deferred()
            try:
                await with_deadline(self._clock, limit_s, "transactions", self._ended)
            except DeadlineExceeded:
                self._ended = None
                log.warn("{n} transactions were cut off at the stop", n=len(self._busy))

    def _offer(self, session: Session) -> None:
        if not session.fit or self._closing:
            self._broken += not self._closing
            self._sessions.close(session)
            self._grow.wake()
        elif self._waiting and not self._held:
            turn = next(iter(self._waiting))
            del self._waiting[turn]
            self._busy.add(session)
            turn.callback(session)
        else:
            self._idle.append(session)

    def _forget(self, turn: Deferred[Session]) -> None:
        self._waiting.pop(turn, None)

    def _lost(self, session: Session, reason: str) -> None:
        """Replace a broken idle session. A busy one is replaced when it is given back."""
        if session in self._idle:
            self._idle.remove(session)
            self._broken += 1
            self._sessions.close(session)
            log.info("A database connection was lost: {reason}", reason=reason)
            self._grow.wake()

    async def _fill(self) -> None:
        if self._clock.seconds() < self._failed_at + _CHECK_S * 0.9:
            return
        while not self._closing and len(self._idle) + len(self._busy) < min(
            self._size, len(self._busy) + len(self._waiting) + 1
        ):
            try:
                session = await self._sessions.open(self._lost)
            except Lost as error:
                self._failed(str(error))
                return
            self._opened += 1
            if self._problem:
                log.info("The database answers again")
                self._problem = ""
            self._offer(session)

    def _failed(self, reason: str) -> None:
        if self._closing:
            return
        self._failed_at = self._clock.seconds()
        if reason != self._problem:
            log.warn("The database cannot be reached: {reason}", reason=reason)
        self._problem = reason
        if not self._busy:
            self._refuse(self._unreachable)

    def _unreachable(self) -> ServiceUnavailable:
        return ServiceUnavailable(
            f"the database cannot be reached: {self._problem}; nothing was changed, try again",
            RETRY_AFTER_S,
        )

    def _refuse(self, error: Callable[[], ServiceUnavailable]) -> None:
        waiting, self._waiting = self._waiting, {}
        for turn in waiting:
            turn.errback(error())


def _stopping() -> ServiceUnavailable:
    return ServiceUnavailable("the daemon is stopping; nothing was changed")
