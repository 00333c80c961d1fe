"""Sessions for those who ask: only fit ones, in order of asking, and never after a long wait.

It grows when somebody asks and none is free, up to its size. While the server cannot be reached
it refuses at once, and tries again twice a second.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import ServiceUnavailable
from svcd.runtime.tasks import DeadlineExceeded, Loop, with_deadline
from svcd.store.database import DatabaseFigures
from svcd.store.sessions import Lost, Session, Sessions

log = Logger()

_LOOK_S = 0.5
_WAITING = 2000
_RETRY_AFTER_S = 2


class Pool:
    """size: most sessions. wait_s: most time that one waits for a session."""

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
        self._grow = Loop(clock, "database connections", _LOOK_S, self._fill)

    def figures(self, repeated: int) -> DatabaseFigures:
        """For the metrics."""
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
        self._grow.start()

    async def acquire(self) -> Session:
        """A fit session, to be given back by `release`. Raises ServiceUnavailable."""
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
            raise ServiceUnavailable("too many requests wait for the database", _RETRY_AFTER_S)
        turn: Deferred[Session] = Deferred(self._forget)
        self._waiting[turn] = None
        self._grow.poke()
        began = self._clock.seconds()
        self._waits += 1
        try:
            return await with_deadline(self._clock, self._wait_s, "database", turn)
        except DeadlineExceeded:
            raise ServiceUnavailable(
                f"no database connection was free within {self._wait_s:g} s"
                f" ({self._held or f'{len(self._busy)} are in use'}):"
                " nothing was changed, try again later",
                _RETRY_AFTER_S,
            ) from None
        finally:
            self._waited_s += self._clock.seconds() - began

    def release(self, session: Session) -> None:
        """Give one back. It is replaced when it is not fit any more."""
        self._busy.discard(session)
        self._offer(session)
        if self._ended is not None and not self._busy:
            ended, self._ended = self._ended, None
            ended.callback(None)

    def hold(self, reason: str) -> None:
        """Hand out nothing until `resume`; who asks waits for it."""
        self._held = reason

    def resume(self) -> None:
        """Hand out again."""
        self._held = ""
        idle, self._idle = self._idle, []
        for session in idle:
            self._offer(session)
        self._grow.poke()

    async def close(self, limit_s: float) -> None:
        """Refuse new users and wait until the present ones have ended, at most `limit_s`."""
        self._closing = True
        self._refuse(_stopping)
        await self._grow.stop()
        if self._busy:
            self._ended = Deferred()
            try:
                await with_deadline(self._clock, limit_s, "transactions", self._ended)
            except DeadlineExceeded:
                self._ended = None
                log.warn("{n} transactions were cut at stop", n=len(self._busy))

    def _offer(self, session: Session) -> None:
        if not session.fit or self._closing:
            self._broken += not self._closing
            self._sessions.close(session)
            self._grow.poke()
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
        """An idle one broke; a busy one is found out when it comes back."""
        if session in self._idle:
            self._idle.remove(session)
            self._broken += 1
            self._sessions.close(session)
            log.info("A database connection was lost: {reason}", reason=reason)
            self._grow.poke()

    async def _fill(self) -> None:
        if self._clock.seconds() < self._failed_at + _LOOK_S * 0.9:
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
            _RETRY_AFTER_S,
        )

    def _refuse(self, error: Callable[[], ServiceUnavailable]) -> None:
        waiting, self._waiting = self._waiting, {}
        for turn in waiting:
            turn.errback(error())


def _stopping() -> ServiceUnavailable:
    return ServiceUnavailable("the daemon is stopping; nothing was changed")
