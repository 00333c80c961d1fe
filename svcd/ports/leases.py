"""The leases: a Protocol for the clusters and executions that this daemon drives."""

from __future__ import annotations

from collections.abc import (
    Coroutine,
)
from typing import Any, Protocol, TypeVar

from svcd.model.job import Execution

T = TypeVar("T")


class Leases(Protocol):
    """The clusters and executions that this daemon drives. key: a cluster's id, or `lease_key`.

    Of all daemons that share a database, at most one drives a key: see `svcd.runtime.fencing`.
    """

    def holds(self, key: str) -> bool:
        """Whether this daemon drives `key` now."""
        ...

    async def drive(self, key: str, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which is cancelled when the lease is lost.

        Raises LeaseLost when the lease is lost, or was not held at the call.
        """
        ...


def lease_key(execution: Execution) -> str:
    """The lease key of an execution: its cluster's id, or its own id without a cluster."""
    return execution.cluster_id or execution.id
