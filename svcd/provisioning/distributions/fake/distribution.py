"""`Fake`: a distribution whose plans run at once, on machines without software."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from zope.interface import implementer

from svcd.errors import SvcdError
from svcd.model import cluster_token
from svcd.model.cluster import Cluster
from svcd.model.ids import InstanceId
from svcd.model.job import JobType
from svcd.provisioning.distributions.spi import (
    Command,
    ConfigEntry,
    Endpoints,
    Hint,
    HttpProbe,
    IDistribution,
    IIdleProbes,
    IUnprivileged,
    Machine,
    Plan,
    Stage,
    WriteFile,
)
from svcd.provisioning.distributions.vanilla import daemons, probes, topology
from svcd.provisioning.distributions.vanilla.entries import entries
from svcd.provisioning.distributions.vanilla.hints import hints

_ADVICE = "log in to the machine and check the folder svcd-fake in the home folder"
_STAGE_S = 120.0
"""Deadline of each stage."""
_COMMAND_S = 30.0
"""Deadline of each command."""


@implementer(IDistribution, IIdleProbes, IUnprivileged)
class Fake:
    """The distribution `fake`.

    engine_url: base URL without a slash at the end. Each cluster has an engine of its own below it
    (`<engine_url>/<cluster_id>/oozie` and `/webhdfs`). Empty: clusters have no engine.
    """

    name = "fake"
    title = "Fake"
    description = (
        "Starts no daemons and runs jobs on a scripted engine, for tests of svcd and of its users. "
        "It has the processes, options and rules of vanilla."
    )
    versions = ("0.1",)

    def __init__(self, engine_url: str = "") -> None:
        self._engine_url = engine_url.rstrip("/")

    def node_processes(self, version: str) -> Mapping[str, Sequence[str]]:
        return daemons.PROCESSES

    def required_image_tags(self, version: str) -> Sequence[str]:
        return ()

    def configs(self, version: str) -> Sequence[ConfigEntry]:
        return entries()

    def job_types(self, version: str) -> Sequence[JobType]:
        return tuple(JobType)

    def hints(self, version: str, job_type: JobType) -> Sequence[Hint]:
        return hints(job_type)

    def open_ports(self, version: str, processes: Sequence[str]) -> Sequence[int]:
        return ()

    def check_topology(self, cluster: Cluster) -> Sequence[SvcdError]:
        return topology.creation_faults(cluster)

    def check_scaling(self, before: Cluster, after: Cluster) -> Sequence[SvcdError]:
        return topology.scaling_faults(before, after)

    def configure(
        self, cluster: Cluster, machines: Sequence[Machine], on: Sequence[InstanceId]
    ) -> Plan:
        chosen = [m for m in machines if m.instance_id in on]
        return _stage("configure", *(tuple(_configuration(cluster, m)) for m in chosen))

    def start(
        self, cluster: Cluster, machines: Sequence[Machine], on: Sequence[InstanceId]
    ) -> Plan:
        chosen = [m for m in machines if m.instance_id in on]
        return _stage("start", *((_start(m),) for m in chosen))

    def decommission(
        self, cluster: Cluster, machines: Sequence[Machine], leaving: Sequence[InstanceId]
    ) -> Plan:
        chosen = [m for m in machines if m.instance_id in leaving]
        return _stage("decommission", *((_stop(m),) for m in chosen))

    def check(self, cluster: Cluster, machines: Sequence[Machine]) -> Plan:
        """A command on each machine, and an HTTP probe of the engine."""
        chains: list[tuple[Command | HttpProbe, ...]] = [(_check(m),) for m in machines]
        oozie = _holder(machines, daemons.OOZIE)
        if oozie and self._engine_url:
            chains.append((self._own_engine(cluster, oozie),))
        return _stage("check", *chains)

    def idle_probes(self, cluster: Cluster, machines: Sequence[Machine]) -> Sequence[HttpProbe]:
        """A probe of the engine, whose jobs are all svcd's own."""
        oozie = _holder(machines, daemons.OOZIE)
        return [self._own_engine(cluster, oozie)] if oozie and self._engine_url else []

    def links(
        self, cluster: Cluster, machines: Sequence[Machine]
    ) -> Mapping[str, Mapping[str, str]]:
        namenode = _holder(machines, daemons.NAMENODE)
        links: dict[str, Mapping[str, str]] = {}
        if namenode:
            links[daemons.HDFS] = {"NameNode": f"hdfs://{namenode.address}:8020"}
        endpoints = self.endpoints(cluster, machines)
        if endpoints:
            links[daemons.JOBFLOW] = {"Oozie": endpoints.engine.removesuffix("/oozie")}
        if connect := _holder(machines, daemons.SPARKCONNECT):
            links[daemons.SPARK] = {"Connect": cluster_token.link(f"sc://{connect.address}:15002/")}
        return links

    def endpoints(self, cluster: Cluster, machines: Sequence[Machine]) -> Endpoints | None:
        oozie = _holder(machines, daemons.OOZIE)
        namenode = _holder(machines, daemons.NAMENODE)
        manager = _holder(machines, daemons.RESOURCEMANAGER)
        if not (self._engine_url and oozie and namenode and manager):
            return None
        base = f"{self._engine_url}/{cluster.id}"
        return Endpoints(
            engine=f"{base}/oozie",
            webhdfs=base,
            name_node=f"hdfs://{namenode.address}:8020",
            resource_manager=f"{manager.address}:8032",
            history="",
            user=oozie.user,
            identities=(self._own_engine(cluster, oozie),),
        )

    def _own_engine(self, cluster: Cluster, oozie: Machine) -> HttpProbe:
        return HttpProbe(
            machine=oozie.instance_id,
            what="the workflow engine",
            url=f"{self._engine_url}/{cluster.id}/oozie/v1/admin/os-env",
            missing=probes.Shows("the workflow engine"),
            identity=cluster.id,
        )


def _holder(machines: Sequence[Machine], process: str) -> Machine | None:
    return next((m for m in machines if process in m.processes), None)


def _stage(name: str, *chains: tuple[Command | WriteFile | HttpProbe, ...]) -> Plan:
    if not chains:
        return ()
    return (Stage(name=name, chains=chains, deadline_s=_STAGE_S, advice=_ADVICE),)


def _folder(machine: Machine) -> str:
    return f"{machine.home}/svcd-fake"


def _configuration(cluster: Cluster, machine: Machine) -> Iterator[WriteFile]:
    lines = [f"cluster={cluster.id}", f"address={machine.address}", *machine.processes]
    yield WriteFile(
        machine=machine.instance_id,
        path=f"{_folder(machine)}/processes",
        content="".join(f"{line}\n" for line in lines).encode(),
    )
    if daemons.SPARKCONNECT in machine.processes:
        yield WriteFile(
            machine=machine.instance_id,
            path=f"{_folder(machine)}/token",
            content=cluster_token.CONTENT,
            mode=0o600,
            token=True,
        )


def _command(machine: Machine, what: str, script: str) -> Command:
    return Command(
        machine=machine.instance_id,
        what=what,
        script=f"cd {shlex.quote(_folder(machine))} && {script}",
        timeout_s=_COMMAND_S,
        log=f"{_folder(machine)}/processes",
    )


def _start(machine: Machine) -> Command:
    what = f"start {', '.join(machine.processes)}"
    return _command(machine, what, "test -s processes && cp processes running")


def _stop(machine: Machine) -> Command:
    return _command(machine, f"stop {', '.join(machine.processes)}", "rm -f running")


def _check(machine: Machine) -> Command:
    return _command(machine, ", ".join(machine.processes), "test -s running")
