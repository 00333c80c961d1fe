"""The fence: stops work of a daemon that has lost its lease, when daemons share one database.

Note: terms. Of the daemons on one database one does the work: it drives clusters and executions
while it holds the lease. One uninterrupted time of holding is a `Term`. `Lease.drive` runs a piece
of work under the term, and a context variable carries the term along. So no function has to pass
the term on, and none can forget it:

- a transaction of such work first checks in the database that the term is still the newest
  (`svcd.store.store`), so a holder that was suspended and resumes late can write nothing;
- a call to the outside is sent only while the daemon knows that the term is in force (`Term.check`
  at the last moment, in `svcd.clients.connections` for HTTP and in `svcd.clients.ssh` for
  commands), so such a holder sends nothing either;
- when the term ends, the work under it is cancelled.

Requests of callers run under no term. They may write on every daemon: their transactions are
compare-and-set.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any, Protocol, TypeVar

from svcd.runtime.tasks import Parked

T = TypeVar("T")


class LeaseLost(Parked):
    """Another daemon drives the work now, or may do so: the work ends here without a report."""


class Term(Protocol):
    """One uninterrupted time for which this daemon holds the lease.

    holder, epoch: their values in the lease's row while the term is the newest.
    """

    @property
    def holder(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    def check(self) -> None:
        """Raises LeaseLost when the daemon does not know that the term is in force now."""
        ...


_TERM: ContextVar[Term | None] = ContextVar("term", default=None)


def current() -> Term | None:
    """The term of the current work, or None."""
    return _TERM.get()


async def under(term: Term, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. Run it as a Deferred of its own, so that only `work` gets the term."""
    _TERM.set(term)
    return await work


def detached(start: Callable[[], T]) -> T:
    """The result of `start`. The work that it starts belongs to no term and to no request."""
    return Context().run(start)


class Alone:
    """Implements ports.Lease for a daemon that does not share its database: it holds the lease."""

    held = True

    async def drive(self, work: Coroutine[Any, Any, T]) -> T:
        return await work
