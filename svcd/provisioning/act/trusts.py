"""Trusts of clusters: svcd has a record of every trust that it makes, until it deletes the trust.

Note: recorded before it is made. A trust is real authority over a tenant, and no transaction covers
the call that makes it. So svcd first writes a row of `loose_trusts`, with the ownership tag by
which it finds the trust in the cloud. The transaction that writes the cluster's row removes this
row. When a request dies in between, or gets no answer, the row stays, and `TrustSweep` deletes the
trust.

Note: slow or dead. Time alone cannot distinguish a request that is slow from one that is dead.
So the sweep dooms the row before it touches the trust, and the transaction of the request succeeds
only with an undoomed row. One of the two wins, in the database, and the other one gives up. This
holds for any number of daemons.

Note: a second search. A call may take effect long after svcd gave up its answer, when the service
was stopped for a while. So svcd searches once more, much later, for a trust that it did not find.
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
from svcd.model.backoff import Backoff
from svcd.model.cloud import Caller
from svcd.model.cluster import Cluster
from svcd.model.ids import ClusterId, seconds_of, timestamp
from svcd.model.trust import GivenTrust, LooseTrust, TrustFigures
from svcd.ports.cloud import Cloud, CloudError
from svcd.ports.faults import Fault
from svcd.ports.lease import Lease
from svcd.ports.store import Store, Tx
from svcd.runtime.tasks import Loop, gather

log = Logger()

DUE_S: Final = 300.0
"""The sweep takes an older request for dead. All calls and waits of a request are shorter."""
SURE_S: Final = 3600.0
"""A call without an answer may take effect for this long."""
LOOK_S: Final = 60.0
"""Time between two turns of the sweep, and before the second try to delete a trust."""
_MOST_S: Final = 6 * 3600.0
"""Longest seconds before the next try to delete a trust."""
_BACKOFF: Final = Backoff(first_s=LOOK_S, most_s=_MOST_S)
_FARTHEST_S: Final = _MOST_S + LOOK_S
"""No row is due later than this; a later one was written before the clock was set back."""
_AT_ONCE: Final = 4
"""Trusts that one turn deletes in parallel."""
_LIMIT: Final = 1000
"""Rows that one turn reads."""
_UNSURE: Final = frozenset({Fault.TIMEOUT, Fault.SERVER_ERROR})


@frozen(kw_only=True)
class NewTrust:
    """A trust for a cluster whose row is not written yet. loose: its row of `loose_trusts`."""

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
        """Make a trust of the caller; None when svcd does not use tokens.

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
            expires_at=ownership_tags.trust_end(id_),
            asked_at=timestamp(now),
            due_at=timestamp(now + DUE_S),
        )
        await self._store.tx(lambda tx: tx.loose_trusts.add(loose))
        try:
            trust_id = await self._cloud.create_trust(caller, loose.expires_at)
        except CloudError as error:
            if error.kind not in _UNSURE:
                await _forget(self._store, loose)
            raise
        if trust_id is None:
            await _forget(self._store, loose)
            return None
        return NewTrust(id=trust_id, trustor_id=caller.user_id, loose=loose)

    async def take(self, tx: Tx, new: NewTrust | None) -> None:
        """In the transaction that writes the row: keep the trust.

        Raises ServiceUnavailable when the sweep has doomed it.
        """
        if new is not None and not await tx.loose_trusts.take(new.loose.id):
            raise ServiceUnavailable("making the trust has taken too long; try again")

    async def give_back(self, new: NewTrust | None) -> None:
        """Delete the trust, because the row was not written. The sweep repeats it after a fault."""
        if new is not None:
            await give_up(self._store, self._cloud, evolve(new.loose, trust_id=new.id))

    async def was_taken(self, new: NewTrust) -> bool:
        """After a commit without an answer: False when the commit failed and can no more succeed.

        Raises ServiceUnavailable when svcd cannot find out; then the sweep settles the trust.
        """
        return not await self._store.tx(lambda tx: tx.loose_trusts.doom(new.loose.id))


def released(cluster: Cluster, now: float) -> LooseTrust | None:
    """The trust that a row no longer needs: svcd drops the row, or the row gets another trust.

    Add it to `loose_trusts` in the transaction that does so.
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
    """Delete a trust of known id now, if possible; else the sweep deletes it."""
    try:
        await cloud.delete_trust(loose.trust_id)
    except CloudError as error:
        log.warn("A trust could not be deleted, svcd will try again: {text}", text=error.text)
        return
    await _forget(store, loose)


async def _forget(store: Store, loose: LooseTrust) -> None:
    try:
        await store.tx(lambda tx: tx.loose_trusts.forget(loose.id))
    except ServiceUnavailable as error:  # the sweep finds it settled
        log.info(
            "The record of a deleted trust could not be removed yet: {text}", text=error.message
        )


class TrustSweep:
    """Deletes unused trusts: those of requests that died, and of rows that svcd dropped.

    lease: the sweep works only while it is held. It deletes only
    trusts of this installation. It knows them by id, or by ownership tag, giver and project.
    """

    def __init__(
        self, store: Store, cloud: Cloud, clock: IReactorTime, lease: Lease | None = None
    ) -> None:
        self._store = store
        self._cloud = cloud
        self._clock = clock
        self._loop = Loop(clock, "loose trusts", LOOK_S, self._turn, lease)
        self.figures = TrustFigures()

    def start(self) -> None:
        self._loop.start(now=False)

    def wake(self) -> None:
        """Begin a turn now."""
        self._loop.wake()

    def forget(self) -> None:
        """Count no trusts, because this daemon has lost the lease."""
        self.figures = evolve(self.figures, loose=0)

    async def stop(self) -> None:
        await self._loop.stop()

    async def _turn(self) -> None:
        rows = await self._store.read(lambda tx: tx.loose_trusts.first(_LIMIT))
        now = self._clock.seconds()
        # See `_FARTHEST_S`.
        past, far = timestamp(now), timestamp(now + _FARTHEST_S)
        ripe = [r for r in rows if r.due_at <= past or r.due_at > far]
        self.figures = evolve(self.figures, loose=sum(r.doomed or r in ripe for r in rows))
        doomed = await self._doomed(ripe)
        if not doomed:
            return
        found: Mapping[str, Sequence[str]] | CloudError
        try:
            found = await self._find([r for r in doomed if not r.trust_id])
        except CloudError as error:
            found = error
        work = [partial(self._settle, r, found) for r in doomed]
        for failure in await gather(work, _AT_ONCE):
            if failure is not None:
                raise failure

    async def _doomed(self, due: Sequence[LooseTrust]) -> Sequence[LooseTrust]:
        """Doom the rows that are due, and return them without those that a request has taken."""
        if not due:
            return []

        async def work(tx: Tx) -> Sequence[LooseTrust]:
            return [r for r in due if r.doomed or await tx.loose_trusts.doom(r.id)]

        return await self._store.tx(work)

    async def _find(self, asked: Sequence[LooseTrust]) -> Mapping[str, Sequence[str]]:
        """Id of a row -> ids of the trusts that svcd made for it. Raises CloudError."""
        if not asked:
            return {}
        given = await self._cloud.given_trusts({r.expires_at for r in asked})
        return {r.id: [g.id for g in given if _asked_for(g) == _asked_for(r)] for r in asked}

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
            for id_ in ids:
                await self._cloud.delete_trust(id_)
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
                "Deleted {count} trusts of cluster {cluster}",
                count=len(ids),
                cluster=row.cluster_id,
            )
        self.figures = evolve(self.figures, returned=self.figures.returned + len(ids))

    async def _later(self, row: LooseTrust, error: CloudError, now: float) -> None:
        tries = row.tries + 1
        wait_s = _BACKOFF.delay_s(tries)
        log.warn(
            "A trust of user {user} in project {project} could not be deleted"
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


def _asked_for(trust: LooseTrust | GivenTrust) -> tuple[str, str, str]:
    """The values of the request for `trust`, by which svcd finds it in the cloud."""
    return trust.expires_at, trust.trustor_id, trust.tenant_id
