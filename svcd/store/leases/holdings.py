"""What this daemon believes to hold, and work under it. Implements ports.Leases.

Note: two clocks. The database's server decides when a lease ends; here it is believed in for the
same time, counted from before the server was asked, less a margin. So this daemon always stops
believing first. The time is counted on two clocks, and the belief ends with the first of them: wall
time can be set back, and the steady clock of a machine stands still where wall time goes on
(a suspended virtual machine). So when the wall is set forward the belief ends too, for nobody can
tell the two apart; it comes back with the next heartbeat, and with it the work.

Note: grace. When a holder has died or hung, what it sent last may still be on its way: a create
call that the cloud has not listed yet. So a lease that was not given up in peace is used only when
it has been free for `grace_s`. Adoption by name and metadata, `requested_at` and the engine's
external ids then find what was made.
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
"""Of a lease's time: clocks run differently, and what was let go needs a moment to get out."""


@frozen
class Moment:
    """A point in time on both clocks."""

    wall: float
    steady: float

    def after(self, seconds: float) -> Moment:
        return Moment(self.wall + seconds, self.steady + seconds)

    def is_before(self, other: Moment) -> bool:
        """On both clocks."""
        return self.wall < other.wall and self.steady < other.steady

    def longest_since(self, other: Moment) -> float:
        """Seconds since `other`, by the clock that says more."""
        return max(self.wall - other.wall, self.steady - other.steady)


@frozen(kw_only=True)
class Taken:
    """A lease that has been got. free_s: for how long nobody had it, by the server's clock."""

    shard: int
    epoch: int
    free_s: float


class _Unrest:
    """What may still be done under a lease, in this term of it and in those before.

    running: pieces of work. quiet_since: when the last one ended, here or at a former holder.
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
        if self.over or not self._owner.believes():
            raise LeaseLost(f"the lease of shard {self.shard} is not held any more")


class Holdings:
    """The leases of one daemon.

    name: the daemon's in the database. steady: seconds of a clock that never goes back. wall: of
    the machine's clock, which goes on while a virtual machine is suspended; None: the reactor's.
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
        self._believed_s = lease_s * (1.0 - _MARGIN)
        self._grace_s = grace_s
        self._terms: dict[int, HeldTerm] = {}
        self._until: Moment | None = None
        self._lapse: IDelayedCall | None = None
        self._waits: set[IDelayedCall] = set()
        self._gained: Callable[[], None] = _nothing
        self._lost: Callable[[], None] = _nothing

    def watch(self, gained: Callable[[], None], lost: Callable[[], None]) -> None:
        """gained, lost: told after something has become held or is not held any more."""
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

    # ---- what the keeper sees ----

    def now(self) -> Moment:
        """To be asked before the server is."""
        return Moment(self._wall(), self._steady())

    def believes(self) -> bool:
        """Whether the leases are known to be in force."""
        return self._until is not None and self.now().is_before(self._until)

    def count(self) -> int:
        """Leases that are held and used."""
        return sum(self._term(shard) is not None for shard in self._terms)

    def epochs(self) -> Mapping[int, int]:
        """Shard -> epoch of all that were got, whether they are believed in or not."""
        return {shard: term.epoch for shard, term in self._terms.items()}

    def busy(self) -> Collection[int]:
        """Shards with work under way."""
        return {shard for shard, term in self._terms.items() if term.unrest.running}

    def peaceful(self) -> Collection[int]:
        """Shards for which nothing can be on its way any more."""
        calm = self._clock.seconds() - self._grace_s
        unrests = [(shard, term.unrest) for shard, term in self._terms.items()]
        return {shard for shard, u in unrests if not u.running and u.quiet_since < calm}

    def renewed(self, asked: Moment) -> None:
        """The server has prolonged all leases, and was asked to at `asked`."""
        lapsed = not self.believes()
        self._until = asked.after(self._believed_s)
        if not self.believes():  # the answer took too long
            self.lapse()
            return
        self._stop(self._lapse)
        left = self._until.steady - self._steady()
        self._lapse = self._clock.callLater(max(0.0, left), self._expired)
        if lapsed and self._terms:
            self.resume(anew=True)  # the same leases, a new stretch of belief

    def took(self, leases: Iterable[Taken]) -> None:
        """These have been got."""
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
        """These (None: all) are another's now."""
        gone = [self._terms.pop(s, None) for s in (list(self._terms) if shards is None else shards)]
        for term in gone:
            self._end(term)
        if any(gone):
            self._lost()

    def lapse(self) -> None:
        """The server cannot be asked: nobody acts while nobody can know."""
        self._stop(self._lapse)
        self._until = None
        live = [term for term in self._terms.values() if not term.over]
        if live:
            log.warn("{n} leases could not be renewed: their work rests", n=len(live))
        for term in live:
            self._end(term)
        if live:
            self._lost()

    def park(self, shards: Iterable[int]) -> Sequence[int]:
        """Stop using these; returns those under which no work is left."""
        parked = [self._terms[shard] for shard in shards if shard in self._terms]
        used = [term for term in parked if not term.over]
        for term in used:
            self._end(term)
        if used:
            self._lost()
        return [term.shard for term in parked if not term.unrest.running]

    def resume(self, anew: bool = False) -> None:
        """Use again what was parked, and is not to be given any more.

        anew: nothing was believed in for a while, and work may have been turned away.
        """
        parked = [term for term in self._terms.values() if term.over]
        for term in parked:
            resumed = HeldTerm(self, term.shard, term.epoch, term.ready_at, term.unrest)
            self._terms[term.shard] = resumed
        if (parked or anew) and self.believes():
            self._gained()

    def given(self, shards: Iterable[int]) -> None:
        """These are not ours any more, or will not be in a moment."""
        for shard in shards:
            self._end(self._terms.pop(shard, None))

    def close(self) -> None:
        """Believe in nothing any more, without a word."""
        for call in (self._lapse, *self._waits):
            self._stop(call)
        self._until = None
        self._gained = self._lost = _nothing

    # ---- inside ----

    def _term(self, shard: int) -> HeldTerm | None:
        term = self._terms.get(shard)
        if term is None or term.over or not self.believes():
            return None
        return term if self._clock.seconds() >= term.ready_at else None

    @staticmethod
    def _end(term: HeldTerm | None) -> None:
        if term is not None and not term.over:
            term.over = True
            term.interrupt.fire()

    def _expired(self) -> None:
        if not self.believes():
            self.lapse()
        elif self._until is not None:  # the reactor was a little early
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
    """Told before anybody listens."""
