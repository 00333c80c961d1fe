"""The requests on clusters and templates: gather facts, check them, one write, one wake.

A request waits for the cloud only to read facts (for a bounded time) and to make a trust.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import InvalidReference, QuotaExceeded, ServiceUnavailable, SvcdError
from svcd.model import wire
from svcd.model.cloud import Caller
from svcd.model.cluster import Cluster, ClusterEvent, ClusterStatus
from svcd.model.idempotency import KeyedRequest
from svcd.model.ids import ClusterId, JobBinaryInternalId
from svcd.model.requests import (
    NewCluster,
    NewClusterTemplate,
    NewNodeGroupTemplate,
    ScaleRequest,
)
from svcd.model.template import ClusterTemplate, NodeGroupTemplate
from svcd.model.wire_plans import ClusterPlan
from svcd.ports.cloud import Cloud, CloudError
from svcd.ports.store import Also, Sealer, Store, Tx, added, until_saved
from svcd.provisioning.act import rows
from svcd.provisioning.act.controller import Controller
from svcd.provisioning.act.facts import FactReader
from svcd.provisioning.act.trusts import NewTrust, Trusts, released
from svcd.provisioning.decide import endings, events, lifecycle, rules
from svcd.provisioning.decide.facts import Bounds, Facts, as_registered
from svcd.provisioning.decide.failures import Code
from svcd.provisioning.decide.preview import preview
from svcd.provisioning.decide.rules import Made
from svcd.provisioning.distributions.registry import Distributions
from svcd.runtime.keys import new_key_pair
from svcd.settings import Provisioning

log = Logger()

T = TypeVar("T")


def _accepted(checked: T | list[SvcdError], path: str = "$") -> T:
    if isinstance(checked, list):
        raise rules.joined(checked).below(path)
    return checked


async def _refuse_without_scripts(tx: Tx, after: Cluster, before: Cluster | None = None) -> None:
    """Raise InvalidReference when a new script was deleted after the check of the request."""
    names, old = _scripts(after), {} if before is None else _scripts(before)
    wanted = sorted(names.keys() - old.keys())
    left = {row.id for row in await tx.internals.several(after.tenant_id, wanted)}
    if gone := sorted(names[id_] for id_ in wanted if id_ not in left):
        raise InvalidReference(f"job binary internal {', '.join(gone)} was deleted meanwhile")


def _scripts(cluster: Cluster) -> Mapping[JobBinaryInternalId, str]:
    return {script.internal_id: script.name for g in cluster.node_groups for script in g.scripts}


class _Commands:
    """The common part: how a request is checked."""

    def __init__(
        self,
        store: Store,
        cloud: Cloud,
        distributions: Distributions,
        clock: IReactorTime,
        new_id: Callable[[], str],
        settings: Provisioning | None = None,
    ) -> None:
        self._settings = settings or Provisioning()
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._bounds = Bounds(
            groups=self._settings.max_groups,
            nodes=self._settings.max_nodes,
            most_idle_s=self._settings.max_idle_s,
            most_age_s=self._settings.max_age_s,
        )
        self._reader = FactReader(store, cloud, distributions, clock)

    def _made(self, caller: Caller, id_: str | None = None) -> Made:
        """The values of a record that do not come from the request. id_: None: a new one."""
        return Made(
            id=id_ or self._new_id(),
            tenant_id=caller.tenant_id,
            now=self._clock.seconds(),
            new_id=self._new_id,
        )


class Clusters(_Commands):
    """The requests on clusters: create, scale, delete."""

    def __init__(
        self,
        store: Store,
        cloud: Cloud,
        distributions: Distributions,
        controller: Controller,
        sealer: Sealer,
        clock: IReactorTime,
        new_id: Callable[[], str],
        settings: Provisioning,
        most_instances: int = 0,
    ) -> None:
        """most_instances: of all clusters of a tenant; 0: any number."""
        super().__init__(store, cloud, distributions, clock, new_id, settings)
        self._most_instances = most_instances
        self._controller = controller
        self._sealer = sealer
        self._trusts = Trusts(store, cloud, clock, new_id)

    async def create(
        self,
        caller: Caller,
        new: NewCluster,
        also: Also[Cluster] | None = None,
        *,
        key: KeyedRequest | None = None,
        path: str = "$",
        inherits_life: bool = True,
    ) -> Cluster:
        """Accept a cluster. Returns the record in status Waiting with named instances.

        also: further writes in its transaction. key: of the request whose answer is the cluster.
        path: JSON path of `new` in the body of the request. inherits_life: whether the times of the
        cluster template hold after which svcd deletes it by itself; a caller of v1.0 sees none.
        Raises the leaves of behaviour 3 (all faults at once), ClusterNameTaken, CloudError,
        PlatformTimeout.
        """
        cluster, _ = await self._checked(caller, new, path, inherits_life=inherits_life)
        public, private = new_key_pair(f"svcd {cluster.name}")
        trust = await self._trusts.ask(caller, cluster.id)
        cluster = evolve(
            cluster,
            management_public_key=public,
            management_private_key=self._sealer.seal(private),
            trust_id=trust.id if trust is not None else None,
            trustor_id=trust.trustor_id if trust is not None else None,
        )
        await self._add(cluster, trust, also, key)
        log.info("Accepted cluster {name} {id}", name=cluster.name, id=cluster.id)
        self._controller.wake(cluster.id)
        return cluster

    async def plan(
        self,
        caller: Caller,
        new: NewCluster,
        also: Also[Cluster] | None = None,
        path: str = "$",
        image_user: str = "",
    ) -> ClusterPlan:
        """The dry run of `create`: the same checks, and nothing is written or made.

        also: further checks, with the record that `create` would write. image_user: see
        `facts.as_registered`; "" for the image as it is.
        """
        cluster, facts = await self._checked(caller, new, path, image_user)

        async def check(tx: Tx) -> None:
            await self._refuse_too_many(tx, cluster)
            await tx.clusters.check_new(cluster)
            if also is not None:
                await also(tx, cluster)

        await self._store.read(check)
        return preview(cluster, facts)

    async def _checked(
        self,
        caller: Caller,
        new: NewCluster,
        path: str,
        image_user: str = "",
        inherits_life: bool = True,
    ) -> tuple[Cluster, Facts]:
        """The record of a request without faults, without keys and trust, and its facts."""
        facts = await self._reader.of_cluster(caller, new)
        if not inherits_life and facts.cluster_template is not None:
            template = evolve(facts.cluster_template, idle_delete_s=None, max_age_s=None)
            facts = evolve(facts, cluster_template=template)
        if image_user:
            facts = as_registered(facts, image_user, new.engine_version)
        checked = rules.check_cluster(new, facts, self._bounds, self._made(caller))
        return _accepted(checked, path), facts

    async def scale(self, caller: Caller, cluster_id: ClusterId, change: ScaleRequest) -> Cluster:
        """Accept a new size (status Validating); an empty request is a retry.

        A request with a lifetime alone is no work for the controller, and needs no facts of the
        cloud. Raises NotFound, the leaves of behaviour 3, CloudError, PlatformTimeout.
        """
        facts: Facts | None = None

        async def attempt() -> tuple[bool, Cluster]:
            nonlocal facts
            row = await self._store.read(lambda tx: tx.clusters.get(caller.tenant_id, cluster_id))
            if facts is None:
                facts = await self._reader.of_scale(caller, row, change)
            after = _accepted(
                rules.check_scale(row, change, facts, self._bounds, self._made(caller, row.id))
            )
            trust: NewTrust | None = None
            if not change.is_only_life:
                after, trust = await self._with_fresh_trust(caller, row, after)
            warnings: Sequence[ClusterEvent] = ()
            if change.life:
                after, warnings = endings.warned(after, self._clock.seconds())
            saved = await self._save(row, after, trust, warnings)
            return saved, evolve(after, version=row.version + 1)

        after = await until_saved("the cluster", attempt)
        what = "lifetime" if change.is_only_life else "size"
        log.info(
            "Accepted new {what} of cluster {name} {id}", what=what, name=after.name, id=after.id
        )
        if not change.is_only_life:
            self._controller.wake(after.id)
        return after

    async def plan_scale(
        self, caller: Caller, cluster_id: ClusterId, change: ScaleRequest
    ) -> ClusterPlan:
        """The dry run of `scale`: the same checks, and nothing is written or made."""
        row = await self._store.read(lambda tx: tx.clusters.get(caller.tenant_id, cluster_id))
        facts = await self._reader.of_scale(caller, row, change)
        values = self._made(caller, row.id)
        after = _accepted(rules.check_scale(row, change, facts, self._bounds, values))
        if change.is_only_life:
            return preview(evolve(after, node_groups=()), facts)  # the machines stay as they are
        if after.size > row.size:
            await self._store.read(lambda tx: self._refuse_too_many(tx, after))
        return preview(after, facts)

    async def delete(self, caller: Caller, cluster_id: ClusterId, force: bool) -> None:
        """Deletion becomes the desired state. A repeated request while Deleting changes nothing.

        force: svcd drops the row even if it cannot remove an object. Raises NotFound.
        """

        async def attempt() -> tuple[bool, Cluster | None]:
            row = await self._store.read(lambda tx: tx.clusters.get(caller.tenant_id, cluster_id))
            after = lifecycle.delete(row, force, self._clock.seconds())
            if after is row:
                return True, None
            after, trust = await self._with_fresh_trust(caller, row, after)
            return await self._save(row, after, trust), after

        accepted = await until_saved("the cluster", attempt)
        if accepted is not None:
            log.info(
                "Accepted deletion of cluster {name} {id}, force {force}",
                name=accepted.name,
                id=accepted.id,
                force=force,
            )
            self._controller.wake(accepted.id)

    async def _with_fresh_trust(
        self, caller: Caller, before: Cluster, after: Cluster
    ) -> tuple[Cluster, NewTrust | None]:
        """Give a cluster that stopped without valid credentials a new trust of this caller."""
        lost = str(Code.CREDENTIALS_EXPIRED) in before.explained()
        at_rest = before.status in (ClusterStatus.ERROR, ClusterStatus.ACTIVE)
        if not lost or not at_rest:
            return after, None
        try:
            trust = await self._trusts.ask(caller, before.id)
        except CloudError as error:
            log.warn(
                "The new trust for cluster {id} could not be made: {text}",
                id=before.id,
                text=error.text,
            )
            return after, None
        if trust is None:
            return after, None
        return evolve(after, trust_id=trust.id, trustor_id=trust.trustor_id), trust

    async def _commit(
        self,
        work: Callable[[Tx], Awaitable[bool]],
        cluster: Cluster,
        trust: NewTrust | None,
        *,
        is_new: bool = False,
    ) -> bool:
        """Write a cluster and its new trust in one transaction, or delete the trust.

        False: another writer of the row was faster. is_new: the cluster has no row yet. Raises
        ServiceUnavailable, and the errors of `work`.
        """
        try:
            written = await self._store.tx(work)
        except ServiceUnavailable:  # the commit may have succeeded
            if not (is_new or trust) or not await self._was_written(cluster, trust):
                raise
            return True
        except SvcdError:
            await self._trusts.give_back(trust)
            raise
        if not written:
            await self._trusts.give_back(trust)
        return written

    async def _was_written(self, cluster: Cluster, trust: NewTrust | None) -> bool:
        """After a commit without an answer: whether its row, or its trust in the row, is there.

        False: the commit has failed and can no more succeed; svcd deletes the trust. Raises
        ServiceUnavailable.
        """
        if trust is not None and not await self._trusts.was_taken(trust):
            await self._trusts.give_back(trust)
            return False
        row = await self._store.read(lambda tx: tx.clusters.find(cluster.id))
        return row is not None and (trust is None or row.trust_id == trust.id)

    async def _refuse_too_many(self, tx: Tx, cluster: Cluster) -> None:
        """Raise QuotaExceeded when the tenant's clusters would have too many instances."""
        if not self._most_instances:
            return
        others = await tx.clusters.instances_of_others(cluster)
        if others + cluster.size > self._most_instances:
            raise QuotaExceeded(
                f"the cluster has {cluster.size} instances and the tenant's other clusters"
                f" have {others}; all together may have {self._most_instances} (limits.instances)"
            )

    async def _add(
        self,
        cluster: Cluster,
        trust: NewTrust | None,
        also: Also[Cluster] | None,
        key: KeyedRequest | None,
    ) -> None:
        event = events.made(cluster, self._settings, self._clock.seconds())

        async def work(tx: Tx) -> bool:
            await self._refuse_too_many(tx, cluster)
            await _refuse_without_scripts(tx, cluster)
            await tx.clusters.add(cluster)
            await self._trusts.take(tx, trust)
            await tx.clusters.add_events(cluster.id, [event])
            await self._controller.notify(tx, cluster.id)
            if also is not None:
                await also(tx, cluster)
            if key is not None:
                await tx.kept_answers.add(key, wire.Cluster.of(cluster).encoded())
            return True

        await self._commit(work, cluster, trust, is_new=True)

    async def _save(
        self,
        before: Cluster,
        after: Cluster,
        trust: NewTrust | None,
        more: Sequence[ClusterEvent] = (),
    ) -> bool:
        """Write by compare-and-set. When the race is lost, delete the trust that was made for it.

        more: events after that of the request. The sweep later deletes the trust that the row had
        before. Raises QuotaExceeded, when the cluster grows beyond the tenant's limit.
        """
        now = self._clock.seconds()
        event = events.changed(before, after, self._settings, now)
        former = released(before, now) if trust is not None else None

        async def work(tx: Tx) -> bool:
            if after.size > before.size:
                await self._refuse_too_many(tx, after)
            await _refuse_without_scripts(tx, after, before)
            if not await rows.save(tx, after, [event, *more]):
                return False
            await self._trusts.take(tx, trust)
            if former is not None:
                await tx.loose_trusts.add(former)
            await self._controller.notify(tx, after.id)
            return True

        return await self._commit(work, after, trust)


class Templates(_Commands):
    """The requests on node group templates and cluster templates."""

    async def create_node_group_template(
        self,
        caller: Caller,
        new: NewNodeGroupTemplate,
        key: KeyedRequest | None = None,
        dry: bool = False,
    ) -> NodeGroupTemplate:
        """Create a node group template; dry: only check that it could be created.

        Raises the leaves of behaviour 3 (all faults at once), NodeGroupTemplateNameTaken.
        """
        facts = await self._reader.of_node_group_template(caller, new)
        record = _accepted(rules.check_node_group_template(new, facts, self._made(caller)))
        answer = wire.NodeGroupTemplate.of
        return await added(
            self._store, lambda tx: tx.node_group_templates, record, answer, key, dry=dry
        )

    async def create_cluster_template(
        self,
        caller: Caller,
        new: NewClusterTemplate,
        key: KeyedRequest | None = None,
        dry: bool = False,
    ) -> ClusterTemplate:
        """Create a cluster template; dry: only check that it could be created.

        Raises the leaves of behaviour 3 (all faults at once), ClusterTemplateNameTaken.
        """
        facts = await self._reader.of_cluster_template(caller, new)
        record = _accepted(
            rules.check_cluster_template(new, facts, self._bounds, self._made(caller))
        )
        answer = wire.ClusterTemplate.of
        return await added(
            self._store, lambda tx: tx.cluster_templates, record, answer, key, dry=dry
        )
