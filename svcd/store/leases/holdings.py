"""The leases that this daemon holds, and the work under them. Implements ports.Leases.

Note: two clocks. The database's server decides when a lease ends. This daemon treats a lease as in
force for the lease's time less a margin, counted from before its request to the server. So the
daemon always stops before the server gives the lease to another one. It counts the time on two
clocks, and the earlier end counts: wall time can be set back, and the steady clock stands still
while a virtual machine is suspended. When wall time is set forward, the leases are out of force
too, because the daemon cannot distinguish this from a suspension. The next heartbeat brings them
into force again, and the work resumes.

Note: grace. After a holder has died or hung, its last requests may still have an effect: for
example a create call that the cloud does not list yet. So a lease that no holder gave up in good
order is used only after it has been free for `grace_s`. Adoption by name and metadata,
`requested_at` and the engine's external ids then find the created things.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from attrs import frozen
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from svcd.runtime.fencing import LeaseLost, under
from svcd.runtime.tasks import Interrupt, Interrupted
from svcd.store.leases.shares import shard_of

T = TypeVar("T")

log = Logger()

_MARGIN: Final = 0.1
"""Fraction of a lease's time: for clocks of different speed, and for requests being sent."""


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


@frozen(kw_only=True)
class Taken:
    """A lease that this daemon took. free_s: time without a holder, by the server's clock."""

    shard: int
    epoch: int
    free_s: float


class _Unrest:
    """Work that may still have an effect under a lease, from this term or from earlier ones.

    running: pieces of work. quiet_since: end of the last piece, here or at a former holder.
    """

    __slots__ = ("quiet_since", "running")

    def __init__(self, quiet_since: float) -> None:
        self.running = 0
        self.quiet_since = quiet_since


class HeldTerm:
    """Implements fencing.Term."""

    def __init__(
        self, owner: Holdings, shard: int, epoch: int, ready_at: float, unrest: _Unrest
    ) -> None:
        self._owner = owner
        self.shard = shard
        self.epoch = epoch
        self.ready_at = ready_at
        self.unrest = unrest
        self.over = False
        self.interrupt = Interrupt()

    @property
    def holder(self) -> str:
        return self._owner.name

    def check(self) -> None:
        """See fencing.Term."""
        if self.over or not self._owner.in_force():
            raise LeaseLost(f"the lease of shard {self.shard} is not held any more")


class Holdings:
    """The leases of one daemon.

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
        self._terms: dict[int, HeldTerm] = {}
        self._until: Moment | None = None
        self._lapse: IDelayedCall | None = None
        self._waits: set[IDelayedCall] = set()
        self._gained: Callable[[], None] = _nothing
        self._lost: Callable[[], None] = _nothing

    def watch(self, gained: Callable[[], None], lost: Callable[[], None]) -> None:
        """gained, lost: called after leases have become usable or unusable."""
        self._gained, self._lost = gained, lost

    # ---- ports.Leases ----

    def holds(self, key: str) -> bool:
        return self._term(shard_of(key)) is not None

    async def drive(self, key: str, work: Coroutine[Any, Any, T]) -> T:
        term = self._term(shard_of(key))
        if term is None:
            work.close()
            raise LeaseLost(f"the lease of {key} is not held")
        unrest = term.unrest
        unrest.running += 1
        try:
            return await term.interrupt.guard(under(term, work))
        except Interrupted:
            if not term.interrupt.fired:
                raise
            raise LeaseLost(f"the lease of {key} was lost") from None
        finally:
            unrest.running -= 1
            if not unrest.running:
                unrest.quiet_since = self._clock.seconds()

    # ---- for the keeper ----

    def now(self) -> Moment:
        """The time on both clocks. The keeper reads it before its request to the server."""
        return Moment(self._wall(), self._steady())

    def in_force(self) -> bool:
        """Whether this daemon knows that its leases are in force."""
        return self._until is not None and self.now().is_before(self._until)

    def count(self) -> int:
        """The number of leases that are held and usable."""
        return sum(self._term(shard) is not None for shard in self._terms)

    def epochs(self) -> Mapping[int, int]:
        """Shard -> epoch of all leases that were taken, in force or not."""
        return {shard: term.epoch for shard, term in self._terms.items()}

    def busy(self) -> Collection[int]:
        """Shards with running work."""
        return {shard for shard, term in self._terms.items() if term.unrest.running}

    def peaceful(self) -> Collection[int]:
        """Shards whose last work ended more than the grace time ago: no request is outstanding."""
        calm = self._clock.seconds() - self._grace_s
        unrests = [(shard, term.unrest) for shard, term in self._terms.items()]
        return {shard for shard, u in unrests if not u.running and u.quiet_since < calm}

    def renewed(self, asked: Moment) -> None:
        """Record that the server has renewed all leases, by a request sent at `asked`."""
        lapsed = not self.in_force()
        self._until = asked.after(self._in_force_s)
        if not self.in_force():  # the answer took too long
            self.lapse()
            return
        self._stop(self._lapse)
        left = self._until.steady - self._steady()
        self._lapse = self._clock.callLater(max(0.0, left), self._expired)
        if lapsed and self._terms:
            self.resume(anew=True)  # the same leases, in force again

    def took(self, leases: Iterable[Taken]) -> None:
        """Record leases that the server has given to this daemon."""
        now = self._clock.seconds()
        waits: set[float] = set()
        for each in leases:
            free_s = max(0.0, each.free_s)  # below zero: the server's clock was set back
            wait_s = max(0.0, self._grace_s - free_s)
            unrest = _Unrest(now - free_s)
            term = HeldTerm(self, each.shard, each.epoch, now + wait_s, unrest)
            self._end(self._terms.pop(each.shard, None))
            self._terms[each.shard] = term
            waits.add(wait_s)
        for wait_s in waits:
            if wait_s > 0:
                self._after(wait_s)
        if 0.0 in waits:
            self._gained()

    def lose(self, shards: Iterable[int] | None = None) -> None:
        """Record that another daemon holds the leases of `shards` (None: of all) now."""
        gone = [self._terms.pop(s, None) for s in (list(self._terms) if shards is None else shards)]
        for term in gone:
            self._end(term)
        if any(gone):
            self._lost()

    def lapse(self) -> None:
        """End all terms, because the server does not confirm the leases in time."""
        self._stop(self._lapse)
        self._until = None
        live = [term for term in self._terms.values() if not term.over]
        if live:
            log.warn("{n} leases could not be renewed: their work was stopped", n=len(live))
        for term in live:
            self._end(term)
        if live:
            self._lost()

    def park(self, shards: Iterable[int]) -> Sequence[int]:
        """Stop using the leases of `shards`; returns the shards without running work."""
        parked = [self._terms[shard] for shard in shards if shard in self._terms]
        used = [term for term in parked if not term.over]
        for term in used:
            self._end(term)
        if used:
            self._lost()
        return [term.shard for term in parked if not term.unrest.running]

    def resume(self, anew: bool = False) -> None:
        """Use parked leases again, which this daemon keeps after all.

        anew: the leases were out of force for a time, and work may have been refused.
        """
        parked = [term for term in self._terms.values() if term.over]
        for term in parked:
            resumed = HeldTerm(self, term.shard, term.epoch, term.ready_at, term.unrest)
            self._terms[term.shard] = resumed
        if (parked or anew) and self.in_force():
            self._gained()

    def given(self, shards: Iterable[int]) -> None:
        """Forget the leases of `shards`, which this daemon gives up now."""
        for shard in shards:
            self._end(self._terms.pop(shard, None))

    def close(self) -> None:
        """Hold no lease from now on. Does not call `lost`."""
        for call in (self._lapse, *self._waits):
            self._stop(call)
        self._until = None
        self._gained = self._lost = _nothing

    # ---- inside ----

    def _term(self, shard: int) -> HeldTerm | None:
        term = self._terms.get(shard)
        if term is None or term.over or not self.in_force():
            return None
        return term if self._clock.seconds() >= term.ready_at else None

    @staticmethod
    def _end(term: HeldTerm | None) -> None:
        if term is not None and not term.over:
            term.over = True
            term.interrupt.fire()

    def _expired(self) -> None:
        if not self.in_force():
            self.lapse()
        elif self._until is not None:  # the timer fired a little early
            left = max(0.001, self._until.steady - self._steady())
            self._lapse = self._clock.callLater(left, self._expired)

    def _after(self, wait_s: float) -> None:
        def ready() -> None:
            self._waits.discard(call)
            self._gained()

        call = self._clock.callLater(wait_s, ready)
        self._waits.add(call)

    @staticmethod
    def _stop(call: IDelayedCall | None) -> None:
        if call is not None and call.active():
            call.cancel()


def _nothing() -> None:
    """Do nothing: the callback before `watch`."""
