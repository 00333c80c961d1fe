"""The interface of a distribution: of the built-in ones and of those of third parties.

A distribution decides, it never acts. From a cluster's records it returns values: topology faults,
files to write, commands to run, HTTP answers to await. `svcd.provisioning.act.perform` carries them
out over SSH and HTTP. So a distribution is tested with literal values, runs unchanged on loopback
machines and on a cloud's servers, and needs no asynchronous code.

A third party ships a module `twisted/plugins/NAME.py` with instances that provide `IDistribution`.
`svcd.provisioning.distributions.kit` is a trial mixin that checks one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from attrs import field, frozen
from twisted.plugin import IPlugin
from zope.interface import Attribute, Interface

from svcd.errors import SvcdError
from svcd.model.cluster import Cluster
from svcd.model.ids import InstanceId
from svcd.model.job import JobType
from svcd.model.template import ConfigValue
from svcd.ports.engine import Endpoints, Hint

__all__ = [
    "Action",
    "Chain",
    "Command",
    "ConfigEntry",
    "Endpoints",
    "Hint",
    "HttpProbe",
    "IDistribution",
    "IIdleProbes",
    "IImageCheck",
    "IPlugin",
    "IUnprivileged",
    "IWebPorts",
    "IdleProbe",
    "Machine",
    "Plan",
    "Scope",
    "Stage",
    "WriteFile",
    "image_fault",
    "web_ports",
]


class Scope(enum.StrEnum):
    """Where an option may be set: for single node groups, or for the whole cluster only."""

    NODE = "node"
    CLUSTER = "cluster"


@frozen(kw_only=True)
class ConfigEntry:
    """One configuration option. config_type: `string`, `bool`, `int`. priority: 1 shown first."""

    name: str
    description: str
    default_value: ConfigValue
    config_type: str
    applicable_target: str
    scope: Scope = Scope.NODE
    is_optional: bool = True
    priority: int = 2


@frozen(kw_only=True)
class Machine:
    """A machine of the cluster as a distribution sees it.

    address: internal address, used between machines. public: for links and for svcd itself.
    user: the login user; its name is also the user of daemons and jobs in Hadoop.
    runs_as: the system user who runs the commands and owns the files; "": the login user.
    home: home folder of this system user. storage: folders for data (the mounted volumes, or one
    folder below home), never empty. root: prefix of "/" on machines that are folders, else "".
    prefix: the folder of the installed software. software: names of the folders in it; empty where
    they are not known. ram_mib, vcpus: of the flavor.
    configs: the effective options of its group (cluster_configs merged with node_configs).
    """

    instance_id: InstanceId
    name: str
    group: str
    address: str
    public: str
    user: str
    home: str
    storage: tuple[str, ...]
    root: str
    prefix: str
    processes: tuple[str, ...]
    ram_mib: int
    vcpus: int
    software: tuple[str, ...] = ()
    runs_as: str = ""
    configs: Mapping[str, Mapping[str, ConfigValue]] = field(factory=dict, repr=False)


@frozen(kw_only=True)
class WriteFile:
    """Write `content` to the absolute `path`, atomically. svcd makes missing folders.

    token: `***` in the content stands for the token of the cluster (see
    `svcd.model.cluster_token`). Only the owner may read such a file, whatever `mode` says.
    """

    machine: InstanceId
    path: str
    content: bytes = field(repr=False)
    mode: int = 0o644
    token: bool = False


@frozen(kw_only=True)
class Command:
    """Run `script` by `sh -c` in the home folder. It must be safe to repeat.

    The system user is the machine's `runs_as`.

    what: a few words for the event ("format the name node"). A non-zero exit is a failure.
    log: absolute path of a log. svcd shows its last lines when the command fails.
    """

    machine: InstanceId
    what: str
    script: str
    timeout_s: float = 60.0
    stdin: bytes = field(default=b"", repr=False)
    log: str | None = None


@frozen(kw_only=True)
class HttpProbe:
    """Request `url` until `missing` returns "".

    missing: a pure function of status and body. It returns "" when the answer is good, else the
    part that is still missing ("2 of 3 data nodes"). log: see Command. alive: a script whose
    non-zero exit means that the daemon has died; svcd then stops waiting. svcd runs it also after
    a good answer: another program may have given it. every_s: time between two requests.
    identity: a text that only the page of this cluster's own daemon contains, for example the id
    of the cluster in its configuration. A good answer without this text is another program's:
    the work on the cluster ends, and svcd submits no job. In each plan every host and port that is
    probed has a probe with an identity.
    """

    machine: InstanceId
    what: str
    url: str
    missing: Callable[[int, bytes], str]
    log: str | None = None
    alive: str | None = None
    every_s: float = 0.25
    identity: str = ""

    def stranger(self, status: int, body: bytes) -> str:
        """The fault of a good answer that is not of the cluster's own daemon, else ""."""
        if not self.identity or self.identity.encode() in body:
            return ""
        return f"a program that is not of this cluster answers at {self.url} (status {status})"


def _no_mark(body: bytes) -> str:
    return ""


@frozen(kw_only=True)
class IdleProbe(HttpProbe):
    """A probe that shows whether the cluster is in use.

    missing: what is in use ("2 applications run in YARN"), "" when nothing is. mark: a text of the
    body that changes with each use that has begun, so that svcd also sees one that has ended
    between two probes.
    """

    mark: Callable[[bytes], str] = _no_mark


Action: TypeAlias = WriteFile | Command | HttpProbe
Chain: TypeAlias = tuple[Action, ...]
"""Actions that svcd performs one after the other."""


@frozen(kw_only=True)
class Stage:
    """Chains that run in parallel. The stage is done when all its chains are done.

    name: the event's step ("start hdfs"). deadline_s: for the whole stage. advice: for a person
    when the stage fails, right whatever the cause is; "" for none. While a stage runs, the
    cluster's status is `Configuring` for stages of `configure` and `Starting` for stages of
    `start`.
    """

    name: str
    chains: tuple[Chain, ...]
    deadline_s: float
    advice: str


Plan: TypeAlias = tuple[Stage, ...]
"""Stages that svcd runs one after the other."""


class IWebPorts(Interface):
    """A part of a distribution that is optional. Without it `open_ports` has this meaning."""

    def web_ports(version: str, processes: Sequence[str]) -> Sequence[int]:
        """TCP ports of pages for users, which svcd opens to the networks of cloud.web_cidrs.

        svcd itself needs no open port beside SSH.
        """


class IImageCheck(Interface):
    """A part of a distribution that is optional. Without it each image is good for each cluster."""

    def image_fault(cluster: Cluster, machine: Machine) -> str:
        """The software that the image of `machine` lacks, with the remedy; "" when nothing is.

        svcd asks in the status `Preparing`, when it has read `machine.software`; the address of the
        machine may be unknown. The text ends the work on the cluster.
        """


class IIdleProbes(Interface):
    """A part of a distribution that is optional. Its clusters may be deleted after idle time.

    Without it svcd refuses `idle_delete_s`.
    """

    def idle_probes(
        cluster: Cluster, machines: Sequence[Machine]
    ) -> Sequence[HttpProbe | IdleProbe | Command]:
        """Ask whether the Active cluster is in use, beside svcd's own job executions.

        The cluster is idle when each probe is satisfied and each command exits with 0: what cannot
        be asked is not idle. Like `check`, it writes nothing, and every host and port that is
        probed has a probe with an identity.
        """


class IUnprivileged(Interface):
    """A mark of a distribution whose commands and daemons never need root. It is optional.

    On servers svcd writes the files and runs the commands of such a distribution as a system user
    without sudo. Without the mark the login user does both, who may use sudo.
    """


class IDistribution(Interface):
    """A distribution of one or more versions. All methods are pure and fast."""

    name = Attribute("identifier used in paths and as `plugin_name`")
    title = Attribute("display title")
    description = Attribute("display text")
    versions = Attribute("tuple of installable versions")

    def node_processes(version: str) -> Mapping[str, Sequence[str]]:
        """Service name -> names of its processes."""

    def required_image_tags(version: str) -> Sequence[str]:
        """Tags that an image must carry."""

    def configs(version: str) -> Sequence[ConfigEntry]:
        """All options, in a stable order."""

    def job_types(version: str) -> Sequence[JobType]:
        """The job types that the workflow engine of the version can run."""

    def hints(version: str, job_type: JobType) -> Sequence[Hint]:
        """Names that are worth setting in the configuration of a job."""

    def open_ports(version: str, processes: Sequence[str]) -> Sequence[int]:
        """TCP ports of web pages. A distribution that provides `IWebPorts` is not asked."""

    def check_topology(cluster: Cluster) -> Sequence[SvcdError]:
        """All faults of a cluster as it will be after its creation or after scaling."""

    def check_scaling(before: Cluster, after: Cluster) -> Sequence[SvcdError]:
        """All faults of the change from `before` to `after`."""

    def configure(cluster: Cluster, machines: Sequence[Machine], on: Sequence[InstanceId]) -> Plan:
        """Write configuration on the machines `on`. The others are configured already.

        A plan may touch any machine, for example one that must know the new machines.
        """

    def start(cluster: Cluster, machines: Sequence[Machine], on: Sequence[InstanceId]) -> Plan:
        """Start the daemons of the machines `on` and wait until they serve. Safe to repeat."""

    def decommission(
        cluster: Cluster, machines: Sequence[Machine], leaving: Sequence[InstanceId]
    ) -> Plan:
        """Take the machines `leaving` out of service without loss; they are deleted afterwards.

        Each of them is one of `machines`, which lacks the machines whose server is gone.
        """

    def check(cluster: Cluster, machines: Sequence[Machine]) -> Plan:
        """Ask the daemons of an Active cluster whether they do their work.

        svcd runs this plan every few minutes for each cluster, its actions in any order. It writes
        nothing. Use HTTP probes with few URLs: svcd requests each URL once, however many probes
        share it. A command costs a login. `what` names the daemon ("namenode") and is unique on
        its machine. Put a daemon's own probe before the probes that depend on it; those are
        skipped while it does not answer. `machines` lacks the machines whose server is gone.
        """

    def links(cluster: Cluster, machines: Sequence[Machine]) -> Mapping[str, Mapping[str, str]]:
        """The cluster's `info`: target -> name -> URL."""

    def endpoints(cluster: Cluster, machines: Sequence[Machine]) -> Endpoints | None:
        """The addresses for jobs. None: the cluster has no engine."""


def web_ports(distribution: IDistribution, version: str, processes: Sequence[str]) -> Sequence[int]:
    """The web ports of processes of a distribution."""
    asked = IWebPorts(distribution, None)
    return (distribution.open_ports if asked is None else asked.web_ports)(version, processes)


def image_fault(distribution: IDistribution, cluster: Cluster, machine: Machine) -> str:
    """The software that the image of a machine lacks; "" also for a distribution without checks."""
    asked = IImageCheck(distribution, None)
    return "" if asked is None else str(asked.image_fault(cluster, machine))
