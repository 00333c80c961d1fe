"""The plan that a dry run of a cluster request shows. Pure.

The record is the one that the real request would write, and the distribution is asked for its
stages as at the real work. Only the cloud knows addresses, so a new machine has its name in place
of its address, and the folders of a server of the cloud.

Note: one machine for its group. The files of a group's machines are alike, and writing them for a
thousand machines takes seconds. So the distribution configures only the first new machine of each
node group.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, fields

from svcd.model.cloud import Flavor, Quota
from svcd.model.cluster import Cluster, Instance, MachineFacts, NodeGroup, Volume
from svcd.model.ids import InstanceId
from svcd.model.redaction import masked_document, named_in
from svcd.model.secret import Secret
from svcd.model.step_kind import RUN_SCRIPT
from svcd.model.wire_plans import (
    ClusterPlan,
    PlannedAddress,
    PlannedFile,
    PlannedMachine,
    PlannedQuota,
    PlannedStage,
    PlannedVolume,
    PlannedWork,
)
from svcd.provisioning.decide import lifecycle
from svcd.provisioning.decide.checks import needed
from svcd.provisioning.decide.facts import Facts
from svcd.provisioning.decide.lifecycle import has_reached, with_instances
from svcd.provisioning.decide.machines_view import machines
from svcd.provisioning.decide.shell import DEFAULT_PREFIX, home_of
from svcd.provisioning.decide.steps import Distribute
from svcd.provisioning.distributions.spi import (
    Action,
    Command,
    HttpProbe,
    IDistribution,
    Machine,
    Stage,
    WriteFile,
)
from svcd.settings import Provisioning

CREATE: Final = "create"
DELETE: Final = "delete"
_MOST_BYTES: Final = 2_097_152
"""Bytes of all shown files together."""


def preview(cluster: Cluster, facts: Facts) -> ClusterPlan:
    """The plan for `cluster`, the record that the request would write.

    It has no stages when the distribution of the cluster is not enabled any more.
    """
    distribution = facts.distribution
    changed = [
        (group, instance, DELETE if instance.leaving else CREATE)
        for group in cluster.node_groups
        for instance in group.instances
        if instance.leaving or instance.server_id is None
    ]
    return ClusterPlan(
        name=cluster.name,
        machines=[
            PlannedMachine(
                name=instance.instance_name,
                change=change,
                node_group=group.name,
                flavor_id=group.flavor_id,
                node_processes=group.node_processes,
            )
            for group, instance, change in changed
        ],
        volumes=[
            PlannedVolume(
                machine=instance.instance_name,
                change=change,
                size_gib=group.volumes_size,
                mount_point=point,
            )
            for group, instance, change in changed
            for point in _mount_points(group)
        ],
        addresses=[
            PlannedAddress(
                machine=instance.instance_name,
                change=change,
                floating_ip_pool=group.floating_ip_pool,
            )
            for group, instance, change in changed
            if group.floating_ip_pool is not None
        ],
        quota=_quota(cluster, facts),
        stages=[] if distribution is None else _stages(cluster, distribution),
    )


def _mount_points(group: NodeGroup) -> Sequence[str]:
    return [group.mount_point(n) for n in range(1, group.volumes_per_node + 1)]


def _quota(cluster: Cluster, facts: Facts) -> list[PlannedQuota]:
    """The demand of the new machines without that of the leaving ones."""
    flavors = {
        g.flavor_id: Flavor(id=g.flavor_id, name="", ram_mib=g.flavor_ram_mib, vcpus=g.flavor_vcpus)
        for g in cluster.node_groups
    }
    known = evolve(facts, flavors=flavors)

    def need(leaving: bool) -> Mapping[str, int]:
        counted = [
            evolve(g, count=sum(i.leaving is leaving for i in g.instances if leaving or _new(i)))
            for g in cluster.node_groups
        ]
        return needed(counted, known)

    used, freed = need(False), need(True)
    return [
        PlannedQuota(
            resource=part.name,
            needed=(demand := used[part.name] - freed[part.name]),
            left=(left := getattr(facts.quota, part.name)),
            left_after=None if left is None else left - demand,
        )
        for part in fields(Quota)
    ]


def _new(instance: Instance) -> bool:
    return instance.server_id is None and not instance.leaving


def _stages(cluster: Cluster, distribution: IDistribution) -> list[PlannedStage]:
    files = _Files(named_in(cluster.options()))
    planned: list[PlannedStage] = []
    for row, step in _phases(cluster):
        view = machines(row)
        alike: Mapping[InstanceId, Sequence[str]] = {}
        if step.verb == "configure":
            alike = _by_group(view, step.on)
            step = evolve(step, on=tuple(alike))
        for stage in step.plan(distribution, row, view):
            planned.append(_shown(step.verb, stage, view, files, alike))
        scripts = _scripts(row)
        if step.verb == "configure" and scripts:
            planned.append(scripts)
    return planned


def _scripts(cluster: Cluster) -> PlannedStage | None:
    """The first-boot scripts of the new machines, group by group; None without one."""
    commands = []
    for group in cluster.node_groups:
        names = [i.instance_name for i in group.instances if _new(i)]
        for script in group.scripts if names else ():
            what = f"{RUN_SCRIPT} {script.name}"
            commands.append(PlannedWork(what=what, node_group=group.name, machines=names))
    if not commands:
        return None
    return PlannedStage(
        phase="configure",
        name="first-boot scripts",
        deadline_s=Provisioning().script_deadline_s * len(commands),
        files=[],
        commands=commands,
        awaited=[],
    )


def _phases(cluster: Cluster) -> Iterator[tuple[Cluster, Distribute]]:
    """The steps of the distribution in the planner's order, each with the row at its time."""
    leaving = [i for i in cluster.instances() if i.leaving]
    serving = tuple(i.instance_id for i in leaving if lifecycle.serves(i))
    if serving:
        yield cluster, Distribute(verb="decommission", on=serving, reached=lifecycle.DECOMMISSIONED)
    gone = frozenset(i.instance_id for i in leaving)
    after = _imagined(lifecycle.without_instances(cluster, gone))
    for verb, reached in (("configure", lifecycle.CONFIGURED), ("start", lifecycle.STARTED)):
        on = tuple(i.instance_id for i in after.instances() if not has_reached(i, reached))
        if on:
            yield after, Distribute(verb=verb, on=on, reached=reached)


def _by_group(
    seen: Sequence[Machine], on: Container[InstanceId]
) -> Mapping[InstanceId, Sequence[str]]:
    """The first machine of each group among `on`, with the names of all of them."""
    first: dict[str, InstanceId] = {}
    names: dict[InstanceId, list[str]] = {}
    for machine in seen:
        if machine.instance_id in on:
            id_ = first.setdefault(machine.group, machine.instance_id)
            names.setdefault(id_, []).append(machine.name)
    return names


def _imagined(cluster: Cluster) -> Cluster:
    """The cluster with new machines as they will be, as far as svcd knows it before."""
    changes: dict[InstanceId, dict[str, Any]] = {}
    for group in cluster.node_groups:
        for instance in group.instances:
            if not _new(instance):
                continue
            changes[instance.instance_id] = {
                "internal_ip": instance.instance_name,
                "facts": MachineFacts(
                    home=home_of(cluster.username),
                    prefix=DEFAULT_PREFIX,
                    cores=group.flavor_vcpus,
                    memory_mib=group.flavor_ram_mib,
                ),
                "volumes": tuple(
                    Volume(volume_id=point, mount_point=point) for point in _mount_points(group)
                ),
            }
    return with_instances(cluster, changes)


def _shown(
    phase: str,
    stage: Stage,
    seen: Sequence[Machine],
    files: _Files,
    alike: Mapping[InstanceId, Sequence[str]],
) -> PlannedStage:
    """Equal actions on machines of one node group are shown once.

    alike: machines that stand for others, with the names of all.
    """
    by_id = {m.instance_id: m for m in seen}
    grouped: dict[tuple[str, ...], tuple[Action, dict[str, None]]] = {}
    for action in _actions(stage):
        machine = by_id[action.machine]
        key = (type(action).__name__, machine.group, *_identity(action))
        names = alike.get(machine.instance_id, [machine.name])
        grouped.setdefault(key, (action, {}))[1].update(dict.fromkeys(names))
    works: dict[str, list[Any]] = {"WriteFile": [], "Command": [], "HttpProbe": []}
    for (kind, group, *_), (action, on) in grouped.items():
        names = list(on)
        if isinstance(action, WriteFile):
            works[kind].append(files.shown(action, group, names))
        else:
            works[kind].append(PlannedWork(what=action.what, node_group=group, machines=names))
    return PlannedStage(
        phase=phase,
        name=stage.name,
        deadline_s=stage.deadline_s,
        files=works["WriteFile"],
        commands=works["Command"],
        awaited=works["HttpProbe"],
    )


def _actions(stage: Stage) -> Iterator[Action]:
    return (action for chain in stage.chains for action in chain)


def _identity(action: Action) -> tuple[str, ...]:
    match action:
        case WriteFile(path=path, mode=mode):
            return path, f"{mode:04o}"
        case Command(what=what) | HttpProbe(what=what):
            return (what,)


class _Files:
    """Shows files until their contents have `_MOST_BYTES`."""

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self._secrets = secrets
        self._left = _MOST_BYTES

    def shown(self, file: WriteFile, group: str, names: list[str]) -> PlannedFile:
        self._left -= len(file.content)
        content: str | None = None
        if self._left >= 0:
            text = file.content.decode("utf-8", "replace")
            content = masked_document(text, self._secrets)
        return PlannedFile(
            path=file.path,
            mode=f"{file.mode:04o}",
            node_group=group,
            machines=names,
            content=content,
        )
