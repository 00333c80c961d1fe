"""What the door still has open: a drain waits for its end."""

from __future__ import annotations

from twisted.internet.defer import Deferred


class Running:
    """Counts connections; or handlers, downloads and streams."""

    def __init__(self) -> None:
        self._count = 0
        self._idle: list[Deferred[None]] = []

    def begun(self) -> None:
        """One more runs."""
        self._count += 1

    def ended(self) -> None:
        """One of them has ended."""
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
