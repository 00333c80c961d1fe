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
from svcd.model.ids import ClusterTemplateId, NodeGroupTemplateId, TenantId
from svcd.model.requests import NewNodeGroup
from svcd.model.template import ClusterTemplate, NodeGroupTemplate
from svcd.model.wire import is_registered
from svcd.ports.cloud import Access, Cloud, CloudError, CloudSession
from svcd.ports.faults import Fault
from svcd.ports.store import Store, Tx
from svcd.provisioning.decide.facts import Facts
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

    def session(self, caller: Caller) -> CloudSession:
        """A session of the cloud with the caller's own rights."""
        return self._cloud.session(Access(tenant_id=caller.tenant_id, token=caller.token))

    async def templates(
        self,
        tenant_id: TenantId,
        cluster_template_id: str | None,
        groups: Iterable[NewNodeGroup],
    ) -> Facts:
        """The facts on the templates that a request names."""
        wanted = {g.node_group_template_id for g in groups} - {None}

        async def work(tx: Tx) -> Facts:
            template: ClusterTemplate | None = None
            if cluster_template_id is not None:
                id_ = ClusterTemplateId(cluster_template_id)
                template = await _or_none(tx.cluster_templates.get, tenant_id, id_)
            found: dict[str, NodeGroupTemplate] = {}
            for each in sorted(w for w in wanted if w is not None):
                row = await _or_none(
                    tx.node_group_templates.get, tenant_id, NodeGroupTemplateId(each)
                )
                if row is not None:
                    found[each] = row
            return Facts(cluster_template=template, node_group_templates=found)

        return await self._store.read(work)

    def plugin(self, facts: Facts, name: str) -> Facts:
        """`facts` with the distribution of that name, if there is one."""
        offered = tuple(d.name for d in self._distributions.all())
        try:
            return evolve(facts, plugins=offered, distribution=self._distributions.get(name))
        except NotFound:
            return evolve(facts, plugins=offered)

    async def cloud(
        self,
        facts: Facts,
        caller: Caller,
        *,
        image_id: str | None = None,
        keypair: str | None = None,
        networks: bool = False,
        quota: bool = False,
    ) -> Facts:
        """`facts` with the facts of the cloud; flavors always.

        Requests with the same token share one read that begins after all of them have arrived.
        Raises CloudError, PlatformTimeout.
        """
        # made by the caller whose read the others share
        session = cache(partial(self.session, caller))
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
        for each in results:
            if isinstance(each, BaseException):
                raise each
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
