"""Performs steps with the ports, and turns their results into outcomes. Thin.

Only this module turns a fault of a port into an outcome. The planner and the controller decide what
the outcome means for the cluster.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, assert_never

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import NotFound
from svcd.model import ownership_tags
from svcd.model.cloud import Firewall, Network
from svcd.model.cluster import Cluster, MachineFacts, Volume
from svcd.model.ids import ClusterId, InstanceId, Timestamp, timestamp
from svcd.ports.cloud import Access, Cloud, CloudError, CloudSession
from svcd.ports.faults import Fault, PortError
from svcd.ports.machines import (
    CommandResult,
    Host,
    Location,
    Probe,
    ProbeError,
    Remote,
    RemoteError,
)
from svcd.ports.store import Sealer, Store, Tx
from svcd.provisioning.act.first_boot import run_script
from svcd.provisioning.act.rows import Journal
from svcd.provisioning.act.runner import PlanRunner
from svcd.provisioning.act.shells import Shells
from svcd.provisioning.act.trusts import give_up, released
from svcd.provisioning.decide import lifecycle, shell
from svcd.provisioning.decide.failures import Code, code_of
from svcd.provisioning.decide.machines_view import machines, seen
from svcd.provisioning.decide.observed import VISIBLE_S, Observed
from svcd.provisioning.decide.steps import (
    AnyStep,
    AssociateFloatingIp,
    AttachVolumes,
    CreateFloatingIp,
    CreateServer,
    CreateVolumes,
    DeleteFloatingIp,
    DeleteGroups,
    DeleteServer,
    DeleteTrust,
    DeleteVolume,
    Distribute,
    Done,
    DropRow,
    EnsureSecurityGroup,
    EnsureServerGroup,
    Fail,
    KillExecutions,
    Outcome,
    Prepare,
    Reach,
    Retry,
    RunScript,
    Span,
    Wait,
)
from svcd.provisioning.decide.steps import (
    Interrupted as WasInterrupted,
)
from svcd.provisioning.distributions.registry import Distributions
from svcd.provisioning.distributions.spi import image_fault
from svcd.runtime.tasks import DeadlineExceeded, gather, with_deadline
from svcd.runtime.waits import Interrupt, Interrupted
from svcd.runtime.work_metrics import WorkMetrics
from svcd.settings import Provisioning

log = Logger()

_REACH_S = 20.0
"""Time-out of the first login on a machine."""
_PREPARE_S = 180.0
"""Time-out of the command that writes hosts and mounts volumes."""
_KILL_S = 30.0
"""Time-out for killing all executions of a cluster."""
_LIMITED = 5
"""Tries of a step after a fault that rarely goes away by itself."""

_TRUST_GONE = Done(cluster={"trust_id": None})
_FORWARD_ADVICE = (
    "svcd reaches the daemons of a machine through its SSH server: set `AllowTcpForwarding yes` in "
    "/etc/ssh/sshd_config of the image"
)
_GROUPS_GONE = Done(cluster={"security_group_id": None, "openings": (), "server_group_id": None})
REMOVING = (DeleteServer, DeleteFloatingIp, DeleteVolume, DeleteGroups, DeleteTrust)


@frozen(kw_only=True)
class Ports:
    """The services outside of the room that provisioning uses.

    kill_executions: kills the running executions of a cluster and writes their end (behaviour 25).
    It may raise PortError; svcd then repeats it a few times. installation: see
    svcd.model.ownership_tags.
    """

    store: Store
    cloud: Cloud
    remote: Remote
    probe: Probe
    distributions: Distributions
    sealer: Sealer
    kill_executions: Callable[[ClusterId, str], Awaitable[None]]
    installation: str = ""
    firewall: Firewall = field(factory=Firewall)
    metrics: WorkMetrics = field(factory=WorkMetrics)


class Performer:
    """Performs the steps of one cluster, with the present content of its row."""

    def __init__(
        self,
        ports: Ports,
        cluster: Cluster,
        clock: IReactorTime,
        settings: Provisioning,
        rng: random.Random,
        interrupt: Interrupt,
        journal: Journal,
    ) -> None:
        self._ports = ports
        self._cluster = cluster
        self._clock = clock
        self._settings = settings
        self._rng = rng
        self._interrupt = interrupt
        self._journal = journal
        self._session: CloudSession | None = None
        self._shells: Shells | None = None
        self._networks: Sequence[Network] | None = None

    # ---- observing ----

    async def observe(self) -> Observed:
        """Read the servers, volumes and addresses of the cluster. Raises CloudError."""
        cluster, session, at = self._cluster, self._cloud(), self._clock.seconds()
        groups = cluster.node_groups
        prefix = f"{cluster.name}-".lower()
        stored = any(g.volumes_per_node for g in groups)
        addressed = any(g.floating_ip_pool is not None for g in groups)
        if not stored and not addressed:
            return Observed(at=at, servers=tuple(await session.servers(cluster.id, prefix)))

        async def servers() -> object:
            return await session.servers(cluster.id, prefix)

        async def volumes() -> object:
            return await session.volumes(cluster.id) if stored else ()

        async def floating_ips() -> object:
            return await session.floating_ips() if addressed else ()

        results = await gather([servers, volumes, floating_ips], 3)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        listed: Any = results
        mine = f"svcd:{cluster.id}:"
        return Observed(
            at=at,
            servers=tuple(listed[0]),
            volumes=tuple(listed[1]),
            floating_ips=tuple(f for f in listed[2] if f.description.startswith(mine)),
        )

    # ---- acting ----

    async def perform(self, step: AnyStep) -> Outcome:
        """Perform one step. Faults of ports become outcomes."""
        try:
            return await self._dispatch(step)
        except CloudError as error:
            return _cloud_trouble(step, error, self._now())
        except RemoteError as error:
            if error.kind is Fault.HOST_KEY:
                reason = f"{step.machine}: {error.text}"
                return Fail(code=Code.HOST_KEY_CHANGED, reason=reason, machine=step.machine)
            return Retry(code=Code.MACHINE_UNREACHABLE, reason=f"{step.machine}: {error.text}")
        except PortError as error:
            return Retry(code=Code.INTERNAL, reason=error.text)
        except Interrupted:
            return WasInterrupted()

    async def _dispatch(self, step: AnyStep) -> Outcome:
        match step:
            case Reach():
                return await self._interrupt.guard(self._reach(step))
            case Prepare():
                return await self._interrupt.guard(self._prepare(step))
            case Distribute():
                return await self._interrupt.guard(self._distribute(step))
            case RunScript():
                return await self._interrupt.guard(self._run_script(step))
            case KillExecutions():
                return await self._kill()
            case DeleteTrust():
                await self._ports.cloud.delete_trust(step.trust_id)
                return _TRUST_GONE
            case DropRow():
                return await self._drop(step)
            case _:
                return await self._in_cloud(step, self._cloud())

    async def _in_cloud(
        self,
        step: EnsureSecurityGroup
        | EnsureServerGroup
        | CreateServer
        | DeleteServer
        | CreateFloatingIp
        | AssociateFloatingIp
        | DeleteFloatingIp
        | CreateVolumes
        | AttachVolumes
        | DeleteVolume
        | DeleteGroups,
        session: CloudSession,
    ) -> Outcome:
        match step:
            case EnsureSecurityGroup():
                return await self._secure(step, session)
            case EnsureServerGroup():
                found = await session.find_server_groups(step.name)
                group = found[0] if found else await session.create_server_group(step.name)
                return Done(cluster={"server_group_id": group})
            case CreateServer():
                server = await session.create_server(step.new)
                asked = {"server_id": server, "requested_at": self._now()}
                return Done(instances={step.instance: asked})
            case DeleteServer():
                await session.delete_server(step.server_id)
                return Done(repeat_s=10.0)
            case CreateFloatingIp():
                pool = await self._pool(step.pool, session)
                made = await session.create_floating_ip(pool, step.description)
                change = {"floating_ip_id": made.id}
                return Done(instances={step.instance: change}, repeat_s=VISIBLE_S)
            case AssociateFloatingIp():
                await session.associate_floating_ip(step.floating_ip_id, step.server_id)
                return Done(repeat_s=5.0)
            case DeleteFloatingIp():
                await session.delete_floating_ip(step.floating_ip_id)
                return Done(repeat_s=5.0)
            case CreateVolumes():
                return await self._volumes(step, session)
            case AttachVolumes():
                return await self._attach(step, session)
            case DeleteVolume():
                await session.delete_volume(step.volume_id)
                return Done(repeat_s=10.0)
            case DeleteGroups():
                return await self._delete_groups(step, session)
            case _:
                assert_never(step)

    async def _delete_groups(self, step: DeleteGroups, session: CloudSession) -> Outcome:
        """Delete the groups that lists show. Read the list again after "not found".

        A program between svcd and the cloud can give this answer, too.
        """
        deleted = [
            await session.delete_security_group(group_id)
            for group_id in await session.find_security_groups(step.name)
        ]
        if self._cluster.anti_affinity:
            deleted += [
                await session.delete_server_group(group_id)
                for group_id in await session.find_server_groups(step.name)
            ]
        if not all(deleted):
            return Retry(code=Code.LEFTOVERS, reason=f"{step.name} is listed, but not found")
        return _GROUPS_GONE

    async def _secure(self, step: EnsureSecurityGroup, session: CloudSession) -> Outcome:
        """Create the group or change its rules."""
        text = ownership_tags.group_text(self._cluster.name, self._ports.installation)
        group = await session.create_security_group(step.name, text, step.openings, step.others)
        openings = tuple(map(str, step.openings))
        return Done(cluster={"security_group_id": group, "openings": openings})

    async def _forward_fault(self, machine: Host) -> ProbeError | None:
        """The fault of a forward to the machine's own SSH port, which is open on every machine.

        Other kinds than FORBIDDEN say nothing: the SSH server does not speak HTTP.
        """
        at = Location(f"http://{machine.internal}:{machine.port}/", machine)
        try:
            await self._ports.probe.get(at, _REACH_S)
        except ProbeError as error:
            return error
        return None

    async def _pool(self, given: str, session: CloudSession) -> str:
        """The id of an external network that a user named by id or name."""
        if self._networks is None:
            self._networks = await session.networks()
        named = [n.id for n in self._networks if n.external and given in (n.id, n.name)]
        return named[0] if named else given

    async def _volumes(self, step: CreateVolumes, session: CloudSession) -> Outcome:
        """Create volumes. After a fault the next try waits until lists show the created ones."""
        for number, (name, metadata) in enumerate(step.volumes):
            try:
                await session.create_volume(name, step.size_gib, metadata)
            except CloudError as error:
                trouble = _cloud_trouble(step, error, self._now())
                if number > 0 and isinstance(trouble, Retry):
                    trouble = evolve(trouble, after_s=max(trouble.after_s or 0.0, VISIBLE_S))
                return trouble
        return Done(repeat_s=VISIBLE_S)

    async def _attach(self, step: AttachVolumes, session: CloudSession) -> Outcome:
        devices: dict[str, str] = {}
        for volume_id in step.volumes:
            devices[volume_id] = await session.attach_volume(step.server_id, volume_id)
        row = next(i for i in self._cluster.instances() if i.instance_id == step.instance)
        volumes = tuple(evolve(v, device=devices.get(v.volume_id, v.device)) for v in row.volumes)
        return Done(instances={step.instance: {"volumes": volumes}}, repeat_s=5.0)

    async def _kill(self) -> Outcome:
        how = self._cluster.status_description or "deleted"

        async def killed() -> None:
            await self._ports.kill_executions(self._cluster.id, how)

        try:
            await with_deadline(self._clock, _KILL_S, "killing the executions", killed())
        except DeadlineExceeded:
            return Retry(code=Code.LEFTOVERS, reason=f"executions not killed in {_KILL_S:.0f} s")
        return Done()

    async def _drop(self, step: DropRow) -> Outcome:
        cluster = self._cluster
        if step.leftovers:
            log.warn(
                "Cluster {name} {id} was dropped by force; left in the cloud: {left}",
                name=cluster.name,
                id=cluster.id,
                left=", ".join(step.leftovers),
            )
        trust = released(cluster, self._clock.seconds())

        async def work(tx: Tx) -> None:
            await tx.clusters.drop(cluster.id)
            if trust is not None:
                await tx.loose_trusts.add(trust)

        await self._ports.store.tx(work)
        self._ports.metrics.cluster_left(cluster, self._clock.seconds())
        if trust is not None:
            await give_up(self._ports.store, self._ports.cloud, trust)
        return Done(quiet=True)

    # ---- on machines ----

    async def _reach(self, step: Reach) -> Outcome:
        shells = self._machines()
        if shells.instance(step.instance).host_key is None:
            shells.forget(step.instance)  # an address may have belonged to another machine
        try:
            result = await shells.run(step.instance, shell.FACTS, timeout_s=_REACH_S)
        except RemoteError as error:
            if error.kind is Fault.HOST_KEY:
                reason = f"{step.machine}: {error.text}"
                return Fail(code=Code.HOST_KEY_CHANGED, reason=reason, machine=step.machine)
            if error.kind is Fault.FORBIDDEN:  # the settings refuse the address
                reason = f"{step.machine}: {error.text}"
                return Fail(code=Code.MACHINE_UNREACHABLE, reason=reason, machine=step.machine)
            return Wait(seconds=0.2, reason=f"{step.machine}: {error.text}", code=Code.SSH_TIMEOUT)
        facts = shell.facts(result.stdout)
        if result.exit_code != 0 or facts is None:
            reason = f"{step.machine} did not report its facts: {result.stderr[-500:].strip()}"
            return Wait(seconds=1.0, reason=reason, code=Code.PREPARE_FAILED)
        machine = evolve(shells.host(step.instance), host_key=result.host_key)
        fault = await self._forward_fault(machine)
        if fault is not None and fault.kind is Fault.FORBIDDEN:
            reason = f"{step.machine}: {fault.text}. {_FORWARD_ADVICE}"
            return Fail(code=Code.MACHINE_UNREACHABLE, reason=reason, machine=step.machine)
        if lacks := self._image_fault(step.instance, facts):
            reason = f"{step.machine}: {lacks}"
            return Fail(code=Code.SOFTWARE_MISSING, reason=reason, machine=step.machine)
        return Done(instances={step.instance: {"facts": facts, "host_key": result.host_key}})

    def _image_fault(self, instance_id: InstanceId, facts: MachineFacts) -> str:
        """The software that the image of the machine lacks; "" when nothing is missing."""
        cluster = self._cluster
        try:
            distribution = self._ports.distributions.get(cluster.plugin_name)
        except NotFound:
            return ""  # a later step fails for this reason
        return image_fault(distribution, cluster, seen(cluster, instance_id, facts))

    async def _prepare(self, step: Prepare) -> Outcome:
        shells = self._machines()
        row = shells.instance(step.instance)
        mounts: list[tuple[str, str, str]] = []
        volumes: list[Volume] = []
        if step.mount:
            group = next(g for g in self._cluster.node_groups if row in g.instances)
            root = row.facts.root if row.facts is not None else ""
            for number, volume in enumerate(row.volumes, start=1):
                point = group.mount_point(number)
                mounts.append((volume.device or "", volume.volume_id, point))
                volumes.append(evolve(volume, mount_point=root + point))
        result = await shells.run(
            step.instance,
            shell.prepare(mounts, self._cluster.own_user(row) if step.mount else ""),
            stdin=step.hosts.encode(),
            timeout_s=_PREPARE_S,
        )
        if result.exit_code != 0:
            return Retry(
                code=Code.PREPARE_FAILED,
                reason=f"{step.machine}: {_said(result)}",
                limit=_LIMITED,
            )
        if not step.mount:
            return Done(quiet=True)
        change = {"step": lifecycle.PREPARED, "volumes": tuple(volumes)}
        return Done(instances={step.instance: change})

    async def _distribute(self, step: Distribute) -> Outcome:
        cluster = self._cluster
        try:
            distribution = self._ports.distributions.get(cluster.plugin_name)
        except NotFound as error:
            return Fail(code=Code.PLUGIN_GONE, reason=error.message)
        view = machines(cluster, step.absent)
        runner = PlanRunner(
            self._machines(), self._ports.probe, self._clock, self._rng, self._journal
        )
        left = lifecycle.remaining_s(cluster, self._settings, self._clock.seconds())
        outcome = await runner.run(step.plan(distribution, cluster, view), left)
        if isinstance(outcome, Fail):
            return outcome
        changes: dict[InstanceId, Mapping[str, Any]] = {i: {"step": step.reached} for i in step.on}
        links = {"info": distribution.links(cluster, view)} if step.verb == "start" else {}
        return Done(instances=changes, cluster=links, quiet=True)

    async def _run_script(self, step: RunScript) -> Outcome:
        began, limit_s = self._clock.seconds(), self._settings.script_deadline_s
        span = Span(began=began, waited_for=self._journal.last)
        until = began + limit_s
        self._journal.report(step.what, "started", machine=step.machine, until=until, span=span)
        await self._journal.flush()
        return await run_script(self._ports.store, self._machines(), step, limit_s)

    def _now(self) -> Timestamp:
        return timestamp(self._clock.seconds())

    # ---- connections ----

    def _cloud(self) -> CloudSession:
        if self._session is None:
            cluster = self._cluster
            access = Access(tenant_id=cluster.tenant_id, trust_id=cluster.trust_id)
            self._session = self._ports.cloud.session(access)
        return self._session

    def _machines(self) -> Shells:
        if self._shells is None:
            at_once = self._settings.machines_at_once
            self._shells = Shells.of(self._ports.remote, self._ports.sealer, self._cluster, at_once)
        return self._shells


def _said(result: CommandResult) -> str:
    return (result.stderr.strip() or result.stdout.strip() or f"exit code {result.exit_code}")[
        -500:
    ]


def _cloud_trouble(step: AnyStep, error: CloudError, now: Timestamp) -> Outcome:
    """The outcome of a step after a fault of the cloud.

    It takes an intent back, unless the cloud may have carried out the call. Then lists may show the
    result late, and the time for this begins `now`.
    """
    code = code_of(error)
    where = f"{step.what} {step.machine}".strip()
    reason = f"{where}: {error.text}"
    if isinstance(step, REMOVING):
        return Retry(code=code, reason=reason, after_s=error.retry_after_s)
    undo: Mapping[InstanceId, Mapping[str, Any]] = {}
    unsure = error.kind in {Fault.TIMEOUT, Fault.SERVER_ERROR}
    if isinstance(step, CreateServer):
        undo = {step.instance: {"requested_at": now if unsure else None}}
    final = {Fault.QUOTA, Fault.FORBIDDEN}
    if isinstance(step, CreateServer):  # for other steps a 400 can mean "not in this state yet"
        final.add(Fault.REFUSED)
    if error.kind in final:
        return Fail(code=code, reason=reason, instances=undo)
    after_s = error.retry_after_s
    if isinstance(step, CreateVolumes | CreateFloatingIp) and unsure:  # lists may show it late
        after_s = max(after_s or 0.0, VISIBLE_S)
    limit = None if error.passing else _LIMITED
    return Retry(code=code, reason=reason, after_s=after_s, instances=undo, limit=limit)
