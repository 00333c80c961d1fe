"""Places for connections, calls and work: one bound for all tenants, and a share of it for each.

Note: shares. Peers that do not answer keep their places in use. So a tenant gets another place only
while it uses fewer places than are left for all. One such tenant uses half of them at most, a
second one a quarter, and so on. Where the owner of a place is a cluster of a tenant, the cluster
gets another place only while it uses fewer than are left for its tenant: those left for all, less
those that the tenant uses. One such cluster uses a third of all places at most.

Note: the queue. Callers without a place wait in one queue: the tenants take turns, the clusters of
one tenant take turns, and the callers of one owner come in their order. Callers of the same thing
(a machine) share one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import TypeAlias

from svcd.runtime.waits import Waiters

Owner: TypeAlias = tuple[str, ...]
"""The id of a tenant, or those of a tenant and of its cluster."""


class Places:
    """The places for one kind of peer. most: of all tenants.

    later: calls a function in a later turn of the reactor: a caller that gets its place may give
    back others.
    """

    def __init__(self, most: int, later: Callable[[Callable[[], object]], object]) -> None:
        self.most = most
        self._later = later
        self._in_use: Counter[Owner] = Counter()  # places of a tenant, and of its cluster
        self._used = 0
        self._users: Counter[Hashable] = Counter()  # callers of a place, by its thing
        self._queues: dict[Owner, dict[Hashable, Waiters]] = {}  # callers without one
        self._calling = False

    @asynccontextmanager
    async def place(self, owner: Owner, thing: Hashable) -> AsyncIterator[bool]:
        """A place while the block runs. The value: whether the caller had to wait for it."""
        waited = await self.take(owner, thing)
        try:
            yield waited
        finally:
            self.leave(owner, thing)

    async def take(self, owner: Owner, thing: Hashable) -> bool:
        """Wait for a place of the owner for `thing`, or share one. Give it back by `leave`.

        The result: whether the caller had to wait.
        """
        waits = owner in self._queues or not self._may_use_one(owner)
        waits = waits and not self._users[thing]
        if waits:
            queue = self._queues.setdefault(owner, {})
            turn = queue.setdefault(thing, Waiters()).wait()
            self._wake()
            await turn
        if not self._users[thing]:
            self._count(owner, 1)
        self._users[thing] += 1
        return waits

    def leave(self, owner: Owner, thing: Hashable) -> None:
        """Give back a place; the last one of its callers frees it."""
        self._users[thing] -= 1
        if self._users[thing]:
            return
        del self._users[thing]
        self._count(owner, -1)
        self._wake()

    def used_by(self, owner: Owner) -> int:
        """Places that the owner uses now."""
        return self._in_use[owner]

    def used(self) -> int:
        """Places that all tenants use now."""
        return self._used

    def waiting(self) -> int:
        """Things whose callers wait for a place."""
        return sum(map(len, self._queues.values()))

    def _may_use_one(self, owner: Owner) -> bool:
        """Whether the owner may use one place more, see the note."""
        left = self.most - self._used
        for part in _parts(owner):
            used = self._in_use[part]
            if used >= left:
                return False
            left -= used
        return True

    def _count(self, owner: Owner, change: int) -> None:
        self._used += change
        for part in _parts(owner):
            self._in_use[part] += change
            if not self._in_use[part]:
                del self._in_use[part]

    def _wake(self) -> None:
        if self._queues and not self._calling:
            self._calling = True
            self._later(self._call)

    def _call(self) -> None:
        """Call the callers of the first thing that may have a place."""
        self._calling = False
        for owner, queue in list(self._queues.items()):
            while queue and not queue[first := next(iter(queue))]:  # its callers have given up
                del queue[first]
            if not queue:
                del self._queues[owner]
            elif self._may_use_one(owner):
                callers = queue.pop(next(iter(queue)))
                self._had_turn(owner)
                callers.fire()
                self._wake()  # there may be another place
                return

    def _had_turn(self, owner: Owner) -> None:
        """Put the queues of the owner's tenant behind the others, and its own one last."""
        queues = self._queues
        for other in [other for other in queues if other[0] == owner[0] and other != owner]:
            queues[other] = queues.pop(other)
        queue = queues.pop(owner)
        if queue:
            queues[owner] = queue


def _parts(owner: Owner) -> list[Owner]:
    """The tenant, then its cluster."""
    return [owner[: number + 1] for number in range(len(owner))]
