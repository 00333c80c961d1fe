"""The lease as this daemon holds it, and the work under it. Implements ports.Lease.

Note: two clocks. The database's server decides when the lease ends. This daemon treats the lease as
in force for the lease's time less a margin, counted from before its request to the server. So the
daemon always stops before the server gives the lease to another one. It counts the time on two
clocks, and the earlier end counts: wall time can be set back, and the steady clock stands still
while a virtual machine is suspended. When wall time is set forward, the lease is out of force too,
because the daemon cannot distinguish this from a suspension. The next heartbeat brings it into
force again, and the work resumes.

Note: grace. After a holder has died, its last requests may still have an effect: for example a
create call that the cloud does not list yet. So the lease is used only when such requests are
`grace_s` old. Adoption by name and metadata, `requested_at` and the engine's external ids then find
the created objects. A holder that stops has waited for its work. It gives up a lease whose last
requests are the ones that the stop cut short, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from attrs import frozen
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from svcd.runtime.fencing import LeaseLost, under
from svcd.runtime.waits import Interrupt, Interrupted

T = TypeVar("T")

log = Logger()

_MARGIN: Final = 0.1
"""Fraction of the lease's time: for clocks of different speed, and for requests on their way."""


@frozen
class Moment:
    """A point in time on both clocks."""

    wall: float
    steady: float

    def after(self, seconds: float) -> Moment:
        return Moment(self.wall + seconds, self.steady + seconds)

    def is_before(self, other: Moment) -> bool:
        """Whether this moment is earlier than `other` on both clocks."""
        return self.wall < other.wall and self.steady < other.steady

    def longest_since(self, other: Moment) -> float:
        """Seconds since `other`, by the clock on which more time has passed."""
        return max(self.wall - other.wall, self.steady - other.steady)


class HeldTerm:
    """Implements fencing.Term. ready_at: when the grace is over (clock seconds)."""

    def __init__(self, holding: Holding, epoch: int, ready_at: float) -> None:
        self._holding = holding
        self.epoch = epoch
        self.ready_at = ready_at
        self.interrupt = Interrupt()

    @property
    def holder(self) -> str:
        return self._holding.name

    def check(self) -> None:
        """See fencing.Term."""
        if self.interrupt.fired or not self._holding.in_force():
            raise LeaseLost("the lease is not held any more")


class Holding:
    """The lease as one daemon knows it.

    name: the daemon's name in the database. steady: seconds of a clock that never decreases. wall:
    seconds of the machine's clock, which continues while a virtual machine is suspended; None: the
    reactor's clock.
    """

    def __init__(
        self,
        clock: IReactorTime,
        steady: Callable[[], float],
        name: str,
        lease_s: float,
        grace_s: float,
        wall: Callable[[], float] | None = None,
    ) -> None:
        self.name = name
        self._wall = wall or clock.seconds
        self._clock = clock
        self._steady = steady
        self._in_force_s = lease_s * (1.0 - _MARGIN)
        self._grace_s = grace_s
        self._term: HeldTerm | None = None
        self._until: Moment | None = None
        self._running = 0
        self._cut_at = float("-inf")  # when work under the lease was last cut short
        self._lapse: IDelayedCall | None = None
        self._grace: IDelayedCall | None = None
        self._gained: Callable[[], None] = _nothing
        self._lost: Callable[[], None] = _nothing

    def watch(self, gained: Callable[[], None], lost: Callable[[], None]) -> None:
        """gained, lost: called after the lease has become usable or unusable."""
        self._gained, self._lost = gained, lost

    # ---- ports.Lease ----

    @property
    def held(self) -> bool:
        return self._usable() is not None

    async def drive(self, work: Coroutine[Any, Any, T]) -> T:
        term = self._usable()
        if term is None:
            work.close()
            raise LeaseLost("the lease is not held")
        self._running += 1
        try:
            return await term.interrupt.guard(under(term, work))
        except Interrupted:
            if not term.interrupt.fired:
                raise
            self._cut_at = self._clock.seconds()
            raise LeaseLost("the lease was lost") from None
        except CancelledError:
            self._cut_at = self._clock.seconds()
            raise
        finally:
            self._running -= 1

    # ---- for the keeper ----

    def now(self) -> Moment:
        """The time on both clocks. The keeper reads it before its request to the server."""
        return Moment(self._wall(), self._steady())

    def in_force(self) -> bool:
        """Whether this daemon knows that the server counts it among the living."""
        return self._until is not None and self.now().is_before(self._until)

    @property
    def epoch(self) -> int | None:
        """The epoch of the lease that was taken, in force or not; None without the lease."""
        return None if self._term is None else self._term.epoch

    def quiet_s(self) -> float:
        """Seconds since the last request under the lease whose effect is not known."""
        return 0.0 if self._running else self._clock.seconds() - self._cut_at

    def renewed(self, asked: Moment) -> None:
        """Record that the server counts this daemon among the living since `asked`."""
        lapsed = not self.in_force()
        self._until = asked.after(self._in_force_s)
        if not self.in_force():  # the answer took too long
            self.lapse()
            return
        self._stop(self._lapse)
        left = self._until.steady - self._steady()
        self._lapse = self._clock.callLater(max(0.0, left), self._expired)
        term = self._term
        if lapsed and term is not None:  # the same lease, in force again
            if term.interrupt.fired:
                self._term = HeldTerm(self, term.epoch, term.ready_at)
            self._gained()

    def took(self, epoch: int, quiet_s: float) -> None:
        """Record that the server has given the lease to this daemon. quiet_s: at the taking."""
        quiet_s = max(0.0, quiet_s)  # below zero: the server's clock was set back
        wait_s = max(0.0, self._grace_s - quiet_s)
        now = self._clock.seconds()
        self._end()
        self._cut_at = now - quiet_s
        self._term = HeldTerm(self, epoch, now + wait_s)
        if wait_s:
            self._stop(self._grace)
            self._grace = self._clock.callLater(wait_s, lambda: self._gained())
        else:
            self._gained()

    def search(self) -> None:
        """Let the work search the rows, because notifications may have been lost."""
        if self.held:
            self._gained()

    def lose(self) -> None:
        """Record that another daemon holds the lease, or may take it now."""
        self._end()
        term, self._term = self._term, None
        if term is not None:
            self._lost()

    def lapse(self) -> None:
        """End the term, because the server does not confirm the lease in time."""
        self._stop(self._lapse)
        self._until = None
        if self._term is not None and not self._term.interrupt.fired:
            log.warn("The lease could not be renewed: the work was stopped")
            self._end()
            self._lost()

    def close(self) -> None:
        """Hold no lease from now on. Does not call `lost`."""
        self._stop(self._lapse)
        self._stop(self._grace)
        self._end()
        self._term = self._until = None
        self._gained = self._lost = _nothing

    # ---- inside ----

    def _usable(self) -> HeldTerm | None:
        term = self._term
        if term is None or term.interrupt.fired or not self.in_force():
            return None
        return term if self._clock.seconds() >= term.ready_at else None

    def _end(self) -> None:
        if self._term is not None and not self._term.interrupt.fired:
            self._term.interrupt.fire()

    def _expired(self) -> None:
        if not self.in_force():
            self.lapse()
        elif self._until is not None:  # the timer fired a little early
            left = max(0.001, self._until.steady - self._steady())
            self._lapse = self._clock.callLater(left, self._expired)

    @staticmethod
    def _stop(call: IDelayedCall | None) -> None:
        if call is not None and call.active():
            call.cancel()


def _nothing() -> None:
    """Do nothing: the callback before `watch`."""
