"""Counts the open connections and answers of the door: a drain waits for their end."""

from __future__ import annotations

from twisted.internet.defer import Deferred


class Running:
    """Counts connections; or handlers, downloads and streams."""

    def __init__(self) -> None:
        self._count = 0
        self._idle: list[Deferred[None]] = []

    def begun(self) -> None:
        """Count a connection, or a handler, that begins."""
        self._count += 1

    def ended(self) -> None:
        """Count the end of one."""
        self._count -= 1
        if not self._count:
            idle, self._idle = self._idle, []
            for waiter in idle:
                waiter.callback(None)

    def idle(self) -> Deferred[None]:
        """Fires when none runs any more."""
        done: Deferred[None] = Deferred()
        if self._count:
            self._idle.append(done)
        else:
            done.callback(None)
        return done
