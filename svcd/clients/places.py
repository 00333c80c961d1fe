"""Places for connections and calls: one bound for all tenants, and a share of it for each.

Note: shares. Peers that do not answer keep their places in use. So a tenant gets another place only
while it uses fewer than are left for all. One such tenant uses half of them at most, a second one a
quarter, and so on.

Note: the queue. Callers without a place wait in one queue: the tenants take turns, and the callers
of one tenant come in their order. Callers of the same thing (a machine) share one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable

from svcd.runtime.waits import Waiters


class Places:
    """The places for one kind of peer. most: of all tenants.

    later: calls a function in a later turn of the reactor: a caller that gets its place may give
    back others.
    """

    def __init__(self, most: int, later: Callable[[Callable[[], object]], object]) -> None:
        self.most = most
        self._later = later
        self._in_use: Counter[str] = Counter()  # places, by tenant
        self._users: Counter[Hashable] = Counter()  # callers of a place, by its thing
        self._queues: dict[str, dict[Hashable, Waiters]] = {}  # callers without one, by tenant
        self._calling = False

    async def take(self, tenant_id: str, thing: Hashable) -> None:
        """Wait for a place of the tenant for `thing`, or share one. Give it back by `leave`."""
        waits = tenant_id in self._queues or not self._may_use_one(tenant_id)
        if waits and not self._users[thing]:
            queue = self._queues.setdefault(tenant_id, {})
            turn = queue.setdefault(thing, Waiters()).wait()
            self._wake()
            await turn
        if not self._users[thing]:
            self._in_use[tenant_id] += 1
        self._users[thing] += 1

    def leave(self, tenant_id: str, thing: Hashable) -> None:
        """Give back a place; the last one of its callers frees it."""
        self._users[thing] -= 1
        if self._users[thing]:
            return
        del self._users[thing]
        self._in_use[tenant_id] -= 1
        if not self._in_use[tenant_id]:
            del self._in_use[tenant_id]
        self._wake()

    def used_by(self, tenant_id: str) -> int:
        """Places that the tenant uses now."""
        return self._in_use[tenant_id]

    def used(self) -> int:
        """Places that all tenants use now."""
        return self._in_use.total()

    def waiting(self) -> int:
        """Things whose callers wait for a place."""
        return sum(map(len, self._queues.values()))

    def _may_use_one(self, tenant_id: str) -> bool:
        """Whether the tenant may use one place more, see the note."""
        return self._in_use[tenant_id] < self.most - self._in_use.total()

    def _wake(self) -> None:
        if self._queues and not self._calling:
            self._calling = True
            self._later(self._call)

    def _call(self) -> None:
        """Call the callers of the first thing that may have a place."""
        self._calling = False
        for tenant_id, queue in list(self._queues.items()):
            while queue and not queue[first := next(iter(queue))]:  # its callers have given up
                del queue[first]
            if queue and not self._may_use_one(tenant_id):
                continue
            del self._queues[tenant_id]
            if queue:
                callers = queue.pop(next(iter(queue)))
                if queue:
                    self._queues[tenant_id] = queue  # behind the other tenants
                callers.fire()
                self._wake()  # there may be another place
                return
