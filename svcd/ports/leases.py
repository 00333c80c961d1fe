"""Which clusters and executions this daemon drives, as a Protocol."""

from __future__ import annotations

from collections.abc import (
    Coroutine,
)
from typing import Any, Protocol, TypeVar

from svcd.model.job import Execution

T = TypeVar("T")


class Leases(Protocol):
    """Which clusters and executions this daemon drives. key: of a cluster its id; see `lease_key`.

    Of all daemons that share a database exactly one drives a key: see `svcd.runtime.fencing`.
    """

    def holds(self, key: str) -> bool:
        """Whether this daemon drives `key` now."""
        ...

    async def drive(self, key: str, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which is cancelled when the lease is lost.

        Raises LeaseLost, also when it is not held in the first place.
        """
        ...


def lease_key(execution: Execution) -> str:
    """An execution belongs to the daemon of its cluster; one without a cluster is by itself."""
    return execution.cluster_id or execution.id
