"""Trusts of clusters: svcd knows every trust that it has made until the trust is given back.

Note: recorded before it is made. A trust is real authority over a tenant, made by a call that no
transaction covers. So a row of `loose_trusts` is written first, with the mark by which the trust
can be found in the cloud; the transaction that writes the cluster's row takes it away again. What
dies in between, or gets no answer, leaves it behind, and `TrustSweep` gives the trust back.

Note: slow or dead. Time alone cannot distinguish a request that is slow from one that is dead.
So the sweep dooms the row before it touches the trust, and the transaction of the request insists
on taking an undoomed one: one of the two wins, in the database, and the other one gives up. That
holds for any number of daemons.

Note: a second search. A call may take effect long after its answer was given up, when the service
was stopped for a while. So a trust that is not found is searched for once more, much later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import ServiceUnavailable
from svcd.model import ownership_tags
from svcd.model.cloud import Caller
from svcd.model.cluster import Cluster
from svcd.model.ids import ClusterId, seconds_of, timestamp
from svcd.model.trust import LooseTrust
from svcd.ports.cloud import Cloud, CloudError
from svcd.ports.faults import Fault
from svcd.ports.leases import Leases
from svcd.ports.store import Store, Tx
from svcd.runtime.fencing import Alone, if_held
from svcd.runtime.tasks import Loop, gather

log = Logger()

DUE_S: Final = 300.0
"""A request that is older is taken for dead: longer than all its calls and waits together."""
SURE_S: Final = 3600.0
"""Until then a call that was not answered may still take effect."""
LOOK_S: Final = 60.0
_MOST_S: Final = 6 * 3600.0
_FARTHEST_S: Final = _MOST_S + LOOK_S
_AT_ONCE: Final = 4
_LIMIT: Final = 1000
_UNSURE: Final = frozenset({Fault.TIMEOUT, Fault.SERVER_ERROR})


@frozen(kw_only=True)
class NewTrust:
    """A trust that was made for a row not yet written. loose: its row of `loose_trusts`."""

    id: str = field(repr=False)
    trustor_id: str
    loose: LooseTrust


class Trusts:
    """Makes trusts for requests."""

    def __init__(
        self, store: Store, cloud: Cloud, clock: IReactorTime, new_id: Callable[[], str]
    ) -> None:
        self._store = store
        self._cloud = cloud
        self._clock = clock
        self._new_id = new_id

    async def ask(self, caller: Caller, cluster_id: ClusterId) -> NewTrust | None:
        """A trust of the caller; None where tokens are not in use.

        Raises CloudError, ServiceUnavailable.
        """
        if caller.token is None:
            return None
        id_, now = self._new_id(), self._clock.seconds()
        loose = LooseTrust(
            id=id_,
            cluster_id=cluster_id,
            tenant_id=caller.tenant_id,
            trustor_id=caller.user_id,
            mark=ownership_tags.trust_end(id_),
            asked_at=timestamp(now),
            due_at=timestamp(now + DUE_S),
        )
        await self._store.tx(lambda tx: tx.loose_trusts.add(loose))
        try:
            trust_id = await self._cloud.create_trust(caller, loose.mark)
        except CloudError as error:
            if error.kind not in _UNSURE:
                await _forget(self._store, loose)
            raise
        if trust_id is None:
            await _forget(self._store, loose)
            return None
        return NewTrust(id=trust_id, trustor_id=caller.user_id, loose=loose)

    async def take(self, tx: Tx, new: NewTrust | None) -> None:
        """In the transaction that writes the row. Raises ServiceUnavailable: it comes too late."""
        if new is not None and not await tx.loose_trusts.take(new.loose.id):
            raise ServiceUnavailable("making the trust has taken too long; try again")

    async def give_back(self, new: NewTrust | None) -> None:
        """The row was not written. What cannot be done now is done later."""
        if new is not None:
            await give_up(self._store, self._cloud, evolve(new.loose, trust_id=new.id))

    async def was_taken(self, new: NewTrust) -> bool:
        """After a commit without an answer: False when it was not done, and never will be.

        Raises ServiceUnavailable when that cannot be found out: then the sweep does.
        """
        return not await self._store.tx(lambda tx: tx.loose_trusts.doom(new.loose.id))


def released(cluster: Cluster, now: float) -> LooseTrust | None:
    """The trust of a row that is dropped, or gets another one: it has no use any more.

    To be added in the transaction that does so.
    """
    if cluster.trust_id is None:
        return None
    return LooseTrust(
        id=cluster.trust_id,
        cluster_id=cluster.id,
        tenant_id=cluster.tenant_id,
        trustor_id=cluster.trustor_id or "",
        trust_id=cluster.trust_id,
        doomed=True,
        asked_at=timestamp(now),
        due_at=timestamp(now + LOOK_S),
    )


async def give_up(store: Store, cloud: Cloud, loose: LooseTrust) -> None:
    """Give a trust of known id back now, if possible; else the sweep does it."""
    try:
        await cloud.delete_trust(loose.trust_id)
    except CloudError as error:
        log.warn("A trust will be given back later: {text}", text=error.text)
        return
    await _forget(store, loose)


async def _forget(store: Store, loose: LooseTrust) -> None:
    try:
        await store.tx(lambda tx: tx.loose_trusts.forget(loose.id))
    except ServiceUnavailable as error:  # the sweep finds it settled
        log.info("A trust stays noted: {text}", text=error.message)


@frozen(kw_only=True)
class TrustFigures:
    """loose: trusts to be given back, at the last turn. returned, failed: tries since the start."""

    loose: int = 0
    returned: int = 0
    failed: int = 0


class TrustSweep:
    """Gives back trusts without a use: of requests that died, of rows that were dropped.

    leases: each of several daemons gives back those of its own clusters. Only trusts are touched
    that this installation has asked for: by their id, or by their mark, giver and project.
    """

    def __init__(
        self, store: Store, cloud: Cloud, clock: IReactorTime, leases: Leases | None = None
    ) -> None:
        self._store = store
        self._cloud = cloud
        self._clock = clock
        self._leases: Leases = leases or Alone()
        self._loop = Loop(clock, "loose trusts", LOOK_S, self._turn)
        self.figures = TrustFigures()

    def start(self) -> None:
        self._loop.start(now=False)

    def wake(self) -> None:
        """Look now."""
        self._loop.poke()

    async def stop(self) -> None:
        await self._loop.stop()

    async def _turn(self) -> None:
        rows = await self._store.read(lambda tx: tx.loose_trusts.first(_LIMIT))
        now = self._clock.seconds()
        # One that is due later than any can be was noted before a clock was set back.
        past, far = timestamp(now), timestamp(now + _FARTHEST_S)
        ripe = [r for r in rows if r.due_at <= past or r.due_at > far]
        self.figures = evolve(self.figures, loose=sum(r.doomed or r in ripe for r in rows))
        due = [r for r in ripe if self._leases.holds(r.cluster_id)]
        doomed = await self._doomed(due)
        if not doomed:
            return
        found: Mapping[str, Sequence[str]] | CloudError
        try:
            found = await self._find([r for r in doomed if not r.trust_id])
        except CloudError as error:
            found = error
        work = [
            partial(if_held, self._leases, r.cluster_id, partial(self._settle, r, found))
            for r in doomed
        ]
        for failure in await gather(work, _AT_ONCE):
            if failure is not None:
                raise failure

    async def _doomed(self, due: Sequence[LooseTrust]) -> Sequence[LooseTrust]:
        """Those that no row has taken, nor ever will."""
        if not due:
            return []

        async def work(tx: Tx) -> Sequence[LooseTrust]:
            return [r for r in due if r.doomed or await tx.loose_trusts.doom(r.id)]

        return await self._store.tx(work)

    async def _find(self, asked: Sequence[LooseTrust]) -> Mapping[str, Sequence[str]]:
        """Row -> ids of the trusts that were made for it. Raises CloudError."""
        if not asked:
            return {}
        given = await self._cloud.given_trusts({r.mark for r in asked})
        return {
            r.id: [
                g.id
                for g in given
                if (g.mark, g.trustor_id, g.tenant_id) == (r.mark, r.trustor_id, r.tenant_id)
            ]
            for r in asked
        }

    async def _settle(
        self, row: LooseTrust, found: Mapping[str, Sequence[str]] | CloudError
    ) -> None:
        now = self._clock.seconds()
        try:
            if row.trust_id:
                ids: Sequence[str] = [row.trust_id]
            elif isinstance(found, CloudError):
                raise found
            else:
                ids = found[row.id]
            for each in ids:
                await self._cloud.delete_trust(each)
        except CloudError as error:
            await self._later(row, error, now)
            return
        sure_at = seconds_of(row.asked_at) + SURE_S
        if not ids and now < sure_at:
            sure_at = min(sure_at, now + SURE_S)
            later = evolve(row, due_at=timestamp(sure_at), tries=0, trouble="")
            await self._store.tx(lambda tx: tx.loose_trusts.delay(later))
            return
        await self._store.tx(lambda tx: tx.loose_trusts.forget(row.id))
        if ids:
            log.info(
                "Gave back {count} trusts of cluster {cluster}",
                count=len(ids),
                cluster=row.cluster_id,
            )
        self.figures = evolve(self.figures, returned=self.figures.returned + len(ids))

    async def _later(self, row: LooseTrust, error: CloudError, now: float) -> None:
        tries = row.tries + 1
        wait_s = min(_MOST_S, LOOK_S * 2.0 ** min(row.tries, 12))
        log.warn(
            "A trust of user {user} in project {project} could not be given back"
            " ({n} tries, again in {s:.0f} s): {text}",
            user=row.trustor_id,
            project=row.tenant_id,
            n=tries,
            s=wait_s,
            text=error.text,
        )
        self.figures = evolve(self.figures, failed=self.figures.failed + 1)
        later = evolve(row, due_at=timestamp(now + wait_s), tries=tries, trouble=error.text[:500])
        await self._store.tx(lambda tx: tx.loose_trusts.delay(later))
