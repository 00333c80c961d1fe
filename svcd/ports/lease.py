"""The lease: a Protocol for the right to do the work on a database."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Lease(Protocol):
    """The right to do the work: to drive clusters and executions, and to sweep.

    Of all daemons that share a database, at most one holds it: see `svcd.runtime.fencing`.
    """

    @property
    def held(self) -> bool:
        """Whether this daemon does the work now."""
        ...

    async def drive(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which is cancelled when the lease is lost.

        Raises LeaseLost when the lease is lost, or was not held at the call.
        """
        ...
