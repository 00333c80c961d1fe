"""Builds the machines that a distribution gets, from a cluster's row. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence

from attrs import evolve

from svcd.model.cluster import Cluster, Instance, MachineFacts, NodeGroup
from svcd.model.ids import InstanceId
from svcd.model.template import Configs, merged
from svcd.provisioning.decide.shell import home_of
from svcd.provisioning.distributions.spi import Machine

_UNKNOWN = MachineFacts(home="")


def machine(cluster: Cluster, group: NodeGroup, instance: Instance, configs: Configs) -> Machine:
    """The machine of one instance. `configs`: the effective options of its group."""
    facts = instance.facts or _UNKNOWN
    own = cluster.own_user(instance)
    home = home_of(own) if own else facts.home or home_of(cluster.username)
    mounted = tuple(v.mount_point for v in instance.volumes if v.mount_point is not None)
    address = instance.internal_ip or ""
    return Machine(
        instance_id=instance.instance_id,
        name=instance.instance_name,
        group=group.name,
        address=address,
        public=instance.management_ip or address,
        user=cluster.username,
        home=home,
        storage=mounted or (f"{home}/data",),
        root=facts.root,
        prefix=facts.prefix,
        software=facts.software,
        processes=group.node_processes,
        ram_mib=group.flavor_ram_mib,
        vcpus=group.flavor_vcpus,
        runs_as=own,
        configs=configs,
    )


def machines(cluster: Cluster, absent: Container[InstanceId] = ()) -> Sequence[Machine]:
    """All machines that have an address, in the order of groups, without those in `absent`."""
    result: list[Machine] = []
    for group in cluster.node_groups:
        configs = merged(cluster.cluster_configs, group.node_configs)
        result.extend(
            machine(cluster, group, i, configs)
            for i in group.instances
            if i.internal_ip is not None and i.instance_id not in absent
        )
    return result


def seen(cluster: Cluster, instance_id: InstanceId, facts: MachineFacts) -> Machine:
    """The machine of an instance with facts that are not in the row yet. Its address may be ""."""
    group = next(
        g for g in cluster.node_groups for i in g.instances if i.instance_id == instance_id
    )
    instance = next(i for i in group.instances if i.instance_id == instance_id)
    configs = merged(cluster.cluster_configs, group.node_configs)
    return machine(cluster, group, evolve(instance, facts=facts), configs)


def planned(cluster: Cluster) -> Sequence[Machine]:
    """One imaginary machine of each group, for rules about processes."""
    result: list[Machine] = []
    for group in cluster.node_groups:
        instance = Instance(
            instance_id=InstanceId(f"{cluster.id}-{group.name}"),
            instance_name=group.name,
            index=1,
            internal_ip="0.0.0.0",
            created_at=cluster.created_at,
        )
        configs = merged(cluster.cluster_configs, group.node_configs)
        result.append(machine(cluster, group, instance, configs))
    return result
