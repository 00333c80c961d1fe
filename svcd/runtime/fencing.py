"""Whether work may still act for what it works on, when several daemons share one database.

Note: terms. A daemon drives a cluster, and the executions on it, for as long as it holds their
lease: one stretch of that is a `Term`. `Leases.drive` runs a piece of work under the term, which
travels with it in a context variable. So nobody below has to pass it on, and nobody can forget it:

- a transaction of such work first makes sure, in the database, that the term is still the newest
  (`svcd.store.store`), so a holder that wakes up late can write nothing;
- a call to the outside is let go only while the term is believed in (`check`, asked by the HTTP
  connections and by SSH at the last moment), so such a holder sends nothing either;
- when the term ends, the work under it is cancelled.

Requests of callers run under no term. They may write on every daemon: their transactions are
compare-and-set.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any, Protocol, TypeVar

from svcd.ports.leases import Leases
from svcd.runtime.tasks import Parked

T = TypeVar("T")


class LeaseLost(Parked):
    """Another daemon drives it now, or may do so: nothing is done, and nobody is told."""


class Term(Protocol):
    """A stretch of time in which this daemon holds the lease of one shard.

    holder, epoch: as in the lease's row while the term is the newest.
    """

    @property
    def shard(self) -> int: ...
    @property
    def holder(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    def check(self) -> None:
        """Raises LeaseLost when the term is not believed in at this moment."""
        ...


_TERM: ContextVar[Term | None] = ContextVar("term", default=None)


def current() -> Term | None:
    """The term that the present work runs under."""
    return _TERM.get()


def check() -> None:
    """Raises LeaseLost when the present work may not act any more."""
    term = _TERM.get()
    if term is not None:
        term.check()


async def under(term: Term, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. To be run as a Deferred of its own, so that the term stays inside."""
    _TERM.set(term)
    return await work


async def if_held(leases: Leases, key: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
    """The result of `work` under the lease of `key`; None: it is not held, or was lost meanwhile.

    For rounds over many keys, of which every daemon does its own. Work that has a task of its own
    gets its lease from `KeyedTasks`.
    """
    try:
        return await leases.drive(key, work())
    except LeaseLost:
        return None


def detached(start: Callable[[], T]) -> T:
    """The result of `start`; what it starts belongs to nobody's term (nor request)."""
    return Context().run(start)


class Alone:
    """Implements ports.Leases for a daemon that has its database to itself: it holds them all."""

    def holds(self, key: str) -> bool:
        return True

    async def drive(self, key: str, work: Coroutine[Any, Any, T]) -> T:
        return await work
