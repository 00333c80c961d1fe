"""Reads the facts that a request is checked against: from the cloud, and from the rows."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import cache, partial
from typing import Any, Final, TypeVar

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import NotFound, PlatformTimeout
from svcd.model.cloud import Caller
from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.ids import ClusterTemplateId, NodeGroupTemplateId, TenantId
from svcd.model.job import JobBinaryInternal
from svcd.model.requests import (
    NewCluster,
    NewClusterTemplate,
    NewNodeGroup,
    NewNodeGroupTemplate,
    ScaleRequest,
)
from svcd.model.template import ClusterTemplate, NodeGroupTemplate
from svcd.model.wire import is_registered
from svcd.ports.cloud import Access, Cloud, CloudError, CloudSession
from svcd.ports.faults import Fault
from svcd.ports.store import Page, Store, Tx
from svcd.provisioning.decide import rules
from svcd.provisioning.decide.facts import Facts
from svcd.provisioning.decide.node_groups import remakes
from svcd.provisioning.distributions.registry import Distributions
from svcd.runtime.coalesce import Coalescer
from svcd.runtime.tasks import DeadlineExceeded, gather, with_deadline

log = Logger()

T = TypeVar("T")

_Read = Callable[[], Coroutine[Any, Any, object]]

_FACTS_S: Final = 25.0
"""svcd reads the facts within this time, or the request fails."""

_CHOICES_S: Final = 5.0
"""svcd reads the choices within this time, or a refusal names none."""

_MOST_CHOICES: Final = 1000
"""Internal binaries whose names a refusal compares with the name of a script."""


class FactReader:
    """Reads facts from cloud and store, concurrently."""

    def __init__(
        self, store: Store, cloud: Cloud, distributions: Distributions, clock: IReactorTime
    ) -> None:
        self._store = store
        self._cloud = cloud
        self._distributions = distributions
        self._clock = clock
        self._shared = Coalescer(fresh_by=clock)

    def _session(self, caller: Caller) -> CloudSession:
        """A session of the cloud with the caller's own rights."""
        return self._cloud.session(Access(tenant_id=caller.tenant_id, token=caller.token))

    async def of_node_group_template(self, caller: Caller, new: NewNodeGroupTemplate) -> Facts:
        """The facts for a new node group template. Raises CloudError, PlatformTimeout."""
        facts = await self._scripts(Facts(), caller.tenant_id, [new])
        facts = self._plugin(facts, new.plugin_name)
        return await self._cloud_facts(facts, caller, networks=new.floating_ip_pool is not None)

    async def of_cluster_template(self, caller: Caller, new: NewClusterTemplate) -> Facts:
        """The facts for a new cluster template. Raises CloudError, PlatformTimeout."""
        facts = await self._templates(caller.tenant_id, None, new.node_groups)
        networks = new.neutron_management_network is not None or _needs_pool(new.node_groups, facts)
        return await self._cloud_facts(
            self._plugin(facts, new.plugin_name),
            caller,
            image_id=new.default_image_id,
            networks=networks,
        )

    async def of_cluster(self, caller: Caller, new: NewCluster) -> Facts:
        """The facts for a new cluster. Raises CloudError, PlatformTimeout."""
        own_groups = new.node_groups or ()
        facts = await self._templates(caller.tenant_id, new.cluster_template_id, own_groups)
        template = facts.cluster_template
        groups: Sequence[Any] = own_groups or (template.node_groups if template else ())
        whole = rules.with_template(new, template)
        networks = whole.neutron_management_network is not None or _needs_pool(groups, facts)
        return await self._cloud_facts(
            self._plugin(facts, new.plugin_name),
            caller,
            image_id=whole.default_image_id,
            keypair=new.user_keypair_id,
            networks=networks,
            quota=True,
        )

    async def of_scale(self, caller: Caller, cluster: Cluster, change: ScaleRequest) -> Facts:
        """The facts for a change of size; those of the cloud only when the cluster grows.

        Raises CloudError, PlatformTimeout.
        """
        facts = await self._templates(caller.tenant_id, None, change.add_node_groups)
        facts = self._plugin(facts, cluster.plugin_name)
        sizes = {g.name: g.count for g in cluster.node_groups}
        grows = (
            bool(change.add_node_groups)
            or any(r.count > sizes.get(r.name, 0) for r in change.resize_node_groups)
            or remakes(cluster, change)
        )
        if cluster.status is not ClusterStatus.ACTIVE or not grows:
            return facts
        return await self._cloud_facts(
            facts, caller, image_id=cluster.default_image_id, networks=True, quota=True
        )

    async def _templates(
        self,
        tenant_id: TenantId,
        cluster_template_id: str | None,
        groups: Iterable[NewNodeGroup],
    ) -> Facts:
        """The facts on the templates that a request names."""
        groups = tuple(groups)
        wanted = {g.node_group_template_id for g in groups} - {None}

        async def work(tx: Tx) -> Facts:
            template: ClusterTemplate | None = None
            if cluster_template_id is not None:
                id_ = ClusterTemplateId(cluster_template_id)
                template = await _or_none(tx.cluster_templates.get, tenant_id, id_)
            templates: dict[str, NodeGroupTemplate] = {}
            for template_id in sorted(id_ for id_ in wanted if id_ is not None):
                row = await _or_none(
                    tx.node_group_templates.get, tenant_id, NodeGroupTemplateId(template_id)
                )
                if row is not None:
                    templates[template_id] = row
            return Facts(cluster_template=template, node_group_templates=templates)

        facts = await self._store.read(work)
        template = facts.cluster_template
        own = groups or (template.node_groups if template else ())
        return await self._scripts(facts, tenant_id, [*own, *facts.node_group_templates.values()])

    async def _scripts(self, facts: Facts, tenant_id: TenantId, groups: Sequence[Any]) -> Facts:
        """`facts` with the first-boot scripts that groups or their templates name."""
        wanted = sorted({name for group in groups for name in group.init_scripts or ()})
        if not wanted:
            return facts

        async def work(tx: Tx) -> Facts:
            scripts: dict[str, JobBinaryInternal] = {}
            for name in wanted:
                for row in await tx.internals.page(tenant_id, Page(filters={"name": name})):
                    scripts[name] = row
            names: list[str] = []
            if len(scripts) < len(wanted):
                rows = await tx.internals.page(tenant_id, Page(limit=_MOST_CHOICES))
                names = [row.name for row in rows]
            return evolve(facts, scripts=scripts, script_names=names)

        return await self._store.read(work)

    def _plugin(self, facts: Facts, name: str) -> Facts:
        """`facts` with the distribution of that name, if there is one."""
        offered = tuple(d.name for d in self._distributions.all())
        try:
            return evolve(facts, plugins=offered, distribution=self._distributions.get(name))
        except NotFound:
            return evolve(facts, plugins=offered)

    async def _cloud_facts(
        self,
        facts: Facts,
        caller: Caller,
        *,
        image_id: str | None = None,
        keypair: str | None = None,
        networks: bool = False,
        quota: bool = False,
    ) -> Facts:
        """`facts` with the facts of the cloud that the arguments ask for, and always the flavors.

        Requests with the same token share one read that begins after all of them have arrived.
        Raises CloudError, PlatformTimeout.
        """
        # the session of the caller whose read the other requests share
        session = cache(partial(self._session, caller))
        who = (caller.tenant_id, caller.token.reveal() if caller.token is not None else "")

        async def flavors() -> object:
            return {f.id: f for f in await session().flavors()}

        wanted: dict[str, _Read] = {}

        def also(name: str, read: _Read, *key: str) -> None:
            async def shared() -> object:
                return await self._shared.get((name, *key, who), read)

            wanted[name] = shared

        also("flavors", flavors)
        if image_id is not None:
            also("image", lambda: _missing_is_none(session().image(image_id)), image_id)
        if keypair is not None:
            also("keypair", lambda: _missing_is_none(session().keypair(keypair)), keypair)
        if networks:
            also("networks", lambda: session().networks())
        if quota:
            also("quota", lambda: session().quota())

        try:
            results: list[Any] = await with_deadline(
                self._clock,
                _FACTS_S,
                "reading image, flavors, key pair, networks and quota",
                gather(wanted.values(), len(wanted)),
            )
        except DeadlineExceeded as late:
            raise PlatformTimeout(
                f"{late.args[0]} took longer than {late.args[1]:.0f} s; try again"
            ) from None
        for result in results:
            if isinstance(result, BaseException):
                raise result
        read: dict[str, Any] = dict(zip(wanted, results, strict=True))
        image_found = read.get("image")
        if image_id is not None and not (image_found and is_registered(image_found)):
            read["images"] = await self._choices(session().images())
        if keypair is not None and read["keypair"] is None:
            read["keypairs"] = await self._choices(session().keypairs())
        return evolve(facts, **read)

    async def _choices(self, reading: Coroutine[Any, Any, Sequence[T]]) -> Sequence[T]:
        """The choices that a refusal names; none when they cannot be read."""
        try:
            return await with_deadline(self._clock, _CHOICES_S, "reading the choices", reading)
        except (CloudError, DeadlineExceeded) as error:
            log.info("The choices for a refusal could not be read: {error}", error=error)
            return ()


def _needs_pool(groups: Sequence[Any], facts: Facts) -> bool:
    """Whether a group of a request, or a template that it names, has a floating IP pool."""
    named = (*groups, *facts.node_group_templates.values())
    return any(group.floating_ip_pool is not None for group in named)


async def _missing_is_none(work: Any) -> Any:
    try:
        return await work
    except CloudError as error:
        if error.kind in {Fault.NOT_FOUND, Fault.REFUSED}:
            return None
        raise


async def _or_none(get: Any, tenant_id: TenantId, id_: object) -> Any:
    try:
        return await get(tenant_id, id_)
    except NotFound:
        return None
