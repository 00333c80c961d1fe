"""A trial mixin that checks any distribution against the interface.

    class TestMine(DistributionKit, SynchronousTestCase):
        def distribution(self) -> IDistribution:
            return Mine()

        def groups(self, version: str) -> Sequence[NodeGroup]:
            return (group("master", 1, "boss"), group("worker", 2, "hand"))

The kit makes clusters of `groups()` with machines of literal values, calls every method and checks
the results. Equal arguments give equal plans. Plans name only the machines that they were given.
Each stage has a deadline. Every script parses, and quotes homes with a blank in their
name.
"""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from attrs import evolve
from zope.interface.verify import verifyObject

from svcd.errors import SvcdError
from svcd.model.cluster import Cluster, Instance, MachineFacts, NodeGroup
from svcd.model.ids import ClusterId, InstanceId, TenantId, Timestamp
from svcd.model.job import JobType
from svcd.provisioning.distributions.describe import describe
from svcd.provisioning.distributions.spi import (
    Command,
    Endpoints,
    HttpProbe,
    IDistribution,
    IdleProbe,
    IIdleProbes,
    Machine,
    Plan,
    Scope,
    Stage,
    WriteFile,
    image_fault,
    web_ports,
)

if TYPE_CHECKING:
    from unittest import TestCase as _Base
else:
    _Base = object

NOW = Timestamp("2026-11-20 12:00:00.000000")
_LONGEST_STAGE_S = 24 * 3600.0
"""The longest deadline that the kit accepts for a stage or a command."""
_ANSWERS = (
    (500, b""), (503, b"<html>"), (200, b""), (200, b"\xff"), (200, b"[1]"), (200, b'{"apps": 1}')
)  # fmt: skip
_TYPES = {"string": str, "bool": bool, "int": int}


def group(name: str, count: int, *processes: str, **fields: Any) -> NodeGroup:
    """A node group with its instances, for a test."""
    node_group = NodeGroup(
        name=name, count=count, flavor_id="3", flavor_ram_mib=4096, flavor_vcpus=2,
        node_processes=processes, created_at=NOW, **fields,
    )  # fmt: skip
    instances = tuple(
        Instance(
            instance_id=InstanceId(f"{name}-{n}"),
            instance_name=f"c1-{name}-{n:03}",
            index=n,
            facts=MachineFacts(home="/home/user one"),
            created_at=NOW,
        )
        for n in range(1, count + 1)
    )
    return evolve(node_group, instances=instances)


def cluster(distribution: IDistribution, *groups: NodeGroup, **fields: Any) -> Cluster:
    """A cluster of `groups` with the distribution's first version, for a test."""
    return Cluster(
        id=ClusterId("6d9bbbb8-8bd5-4f5c-b3dc-3b2c5a4b5d31"),
        tenant_id=TenantId("t1"),
        name="c1",
        plugin_name=distribution.name,
        engine_version=distribution.versions[0],
        default_image_id="i1",
        username="user",
        node_groups=groups,
        status_since=NOW,
        created_at=NOW,
        **fields,
    )


def machines(of: Cluster, root: str = "", home: str = "/home/user one") -> tuple[Machine, ...]:
    """The machines of a cluster with addresses 10.0.0.2 and following, or 127.4.0.2 with a root."""
    machines_: list[Machine] = []
    for g in of.node_groups:
        for instance in g.instances:
            number = len(machines_) + 2
            where = f"{root}/{instance.instance_id}" if root else ""
            address = f"127.4.0.{number}" if root else f"10.0.0.{number}"
            machines_.append(
                Machine(
                    instance_id=instance.instance_id,
                    name=instance.instance_name,
                    group=g.name,
                    address=address,
                    public=address if root else f"203.0.113.{number}",
                    user="user",
                    home=f"{where}/home" if root else home,
                    storage=(f"{where}/volumes/disk1",) if root else (f"{home}/data",),
                    root=where,
                    prefix="/opt/svcd/vanilla",
                    processes=g.node_processes,
                    ram_mib=g.flavor_ram_mib,
                    vcpus=g.flavor_vcpus,
                    configs={**of.cluster_configs, **g.node_configs},
                )
            )
    return tuple(machines_)


class DistributionKit(ABC, _Base):
    """The checks of one distribution; see the module's docstring for their use."""

    @abstractmethod
    def distribution(self) -> IDistribution:
        """Return a new object of the distribution to check, at each call."""

    @abstractmethod
    def groups(self, version: str) -> Sequence[NodeGroup]:
        """Return groups of a faultless cluster; the last one is scalable and has two machines."""

    def _cases(self) -> Iterator[tuple[IDistribution, Cluster, tuple[Machine, ...]]]:
        for version in self.distribution().versions:
            distribution = self.distribution()
            made = cluster(distribution, *self.groups(version))
            made = evolve(made, engine_version=version)
            yield distribution, made, machines(made)
            yield distribution, made, machines(made, root="/srv/cloud one")

    def _plans(self) -> Iterator[tuple[str, Plan, tuple[Machine, ...], IDistribution, Cluster]]:
        for distribution, made, all_ in self._cases():
            ids = [m.instance_id for m in all_]
            last = ids[-1:]
            for name, plan in (
                ("configure", distribution.configure(made, all_, ids)),
                ("configure one", distribution.configure(made, all_, last)),
                ("start", distribution.start(made, all_, ids)),
                ("start one", distribution.start(made, all_, last)),
                ("decommission", distribution.decommission(made, all_, last)),
                ("check", distribution.check(made, all_)),
                ("idle probes", _idle_plan(distribution, made, all_)),
            ):
                yield name, plan, all_, distribution, made

    # ---- descriptions -----------------------------------------------------------------------

    def test_kit_the_object_provides_the_interface(self) -> None:
        """Names and signatures are those of IDistribution."""
        verifyObject(IDistribution, self.distribution())

    def test_kit_names_are_usable_in_paths(self) -> None:
        """Name and versions hold only characters that paths and image tags allow."""
        distribution = self.distribution()
        self.assertTrue(distribution.versions)
        for word in (distribution.name, *distribution.versions):
            self.assertRegex(word, r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z")
        self.assertTrue(distribution.title and distribution.description)

    def test_kit_process_names_are_unique(self) -> None:
        """A process belongs to one service."""
        for version in self.distribution().versions:
            names = [p for ps in self.distribution().node_processes(version).values() for p in ps]
            self.assertEqual(sorted(names), sorted(set(names)))

    def test_kit_config_entries_are_sane(self) -> None:
        """Names are unique in their target, defaults have their type, targets exist."""
        distribution = self.distribution()
        for version in distribution.versions:
            entries = distribution.configs(version)
            keys = [(e.applicable_target, e.name) for e in entries]
            self.assertEqual(len(keys), len(set(keys)))
            targets = {*distribution.node_processes(version), "general"}
            for entry in entries:
                self.assertIn(entry.applicable_target, targets, entry.name)
                self.assertIs(type(entry.default_value), _TYPES[entry.config_type], entry.name)
                self.assertIn(entry.scope, Scope)
                self.assertIn(entry.priority, (1, 2))

    def test_kit_hints_are_given_for_each_job_type(self) -> None:
        """Hints are text, and none is named twice."""
        distribution = self.distribution()
        for version in distribution.versions:
            for job_type in JobType:
                names = [h.name for h in distribution.hints(version, job_type)]
                self.assertEqual(len(names), len(set(names)), job_type)

    def test_kit_web_ports_are_ports(self) -> None:
        """The ports of every process are valid TCP ports."""
        distribution = self.distribution()
        for version in distribution.versions:
            for processes in distribution.node_processes(version).values():
                for port in web_ports(distribution, version, processes):
                    self.assertTrue(0 < port < 65536)

    # ---- rules ------------------------------------------------------------------------------

    def test_kit_a_good_cluster_has_no_fault(self) -> None:
        """A cluster of `groups()` passes the topology check."""
        for distribution, made, _ in self._cases():
            self.assertEqual([str(f) for f in distribution.check_topology(made)], [])

    def test_kit_topology_faults_are_errors_with_a_text(self) -> None:
        """Each process alone is accepted, or refused by SvcdErrors; no exception is raised."""
        for distribution, made, _ in self._cases():
            for processes in distribution.node_processes(made.engine_version).values():
                for process in processes:
                    odd = evolve(made, node_groups=(group("odd", 2, process),))
                    for fault in distribution.check_topology(odd):
                        self.assertIsInstance(fault, SvcdError)
                        self.assertTrue(fault.message)

    def test_kit_the_last_group_can_grow_and_shrink(self) -> None:
        """One machine more and one less are no faults of the last group."""
        for distribution, made, _ in self._cases():
            *rest, last = made.node_groups
            for count in (last.count + 1, last.count - 1):
                after = evolve(made, node_groups=(*rest, evolve(last, count=count)))
                faults = distribution.check_scaling(made, after)
                self.assertEqual([str(f) for f in faults], [])

    def test_kit_scaling_faults_are_errors_with_a_text(self) -> None:
        """Each group may shrink to nothing, or SvcdErrors with a text refuse it."""
        for distribution, made, _ in self._cases():
            for index, node_group in enumerate(made.node_groups):
                groups = list(made.node_groups)
                groups[index] = evolve(node_group, count=0)
                for fault in distribution.check_scaling(
                    made, evolve(made, node_groups=tuple(groups))
                ):
                    self.assertIsInstance(fault, SvcdError)
                    self.assertTrue(fault.message)

    def test_kit_image_faults_are_texts(self) -> None:
        """Each machine is judged by the folders of its software, also before it has an address."""
        for distribution, made, all_ in self._cases():
            for machine in all_:
                for software in ((), ("bin",)):
                    asked = evolve(machine, address="", public="", software=software)
                    self.assertIsInstance(image_fault(distribution, made, asked), str)

    # ---- plans ------------------------------------------------------------------------------

    def test_kit_equal_arguments_give_equal_plans(self) -> None:
        """A second object returns the same plans, and `missing` of their probes is equal too."""
        first = [(name, plan) for name, plan, *_ in self._plans()]
        second = [(name, plan) for name, plan, *_ in self._plans()]
        for (name, one), (_, other) in zip(first, second, strict=True):
            self.assertEqual(describe(one), describe(other), name)
            self.assertEqual(one, other, name)

    def test_kit_stages_have_names_and_deadlines(self) -> None:
        """Each stage has a name and ends at a deadline."""
        for name, plan, *_ in self._plans():
            for stage in plan:
                self.assertTrue(stage.name, name)
                self.assertTrue(0 < stage.deadline_s <= _LONGEST_STAGE_S, name)
                self.assertTrue(stage.chains and all(stage.chains), name)

    def test_kit_plans_name_only_machines_they_were_given(self) -> None:
        """Every action's machine is one of the cluster."""
        for name, plan, all_, *_ in self._plans():
            known = {m.instance_id for m in all_}
            for stage in plan:
                for chain in stage.chains:
                    for action in chain:
                        self.assertIn(action.machine, known, name)

    def test_kit_files_are_written_to_homes_only(self) -> None:
        """Paths are absolute and below the machine's home or storage."""
        for name, plan, all_, *_ in self._plans():
            by_id = {m.instance_id: m for m in all_}
            for action in _actions(plan):
                if isinstance(action, WriteFile):
                    machine = by_id[action.machine]
                    allowed = tuple(f"{f}/" for f in (machine.home, *machine.storage))
                    self.assertTrue(action.path.startswith(allowed), f"{name}: {action.path}")
                    self.assertNotIn("..", action.path)

    def test_kit_configure_touches_only_the_machines_asked_for(self) -> None:
        """The plan writes files on the machines `on` only."""
        for name, plan, all_, *_ in self._plans():
            if name == "configure one":
                touched = {a.machine for a in _actions(plan)}
                self.assertEqual(touched, {all_[-1].instance_id})

    def test_kit_commands_end_and_parse(self) -> None:
        """Each script has a time-out and is shell text, also with a blank in the home's name."""
        scripts: set[str] = set()
        for name, plan, *_ in self._plans():
            for action in _actions(plan):
                if isinstance(action, Command):
                    self.assertTrue(action.what and 0 < action.timeout_s <= _LONGEST_STAGE_S, name)
                    scripts.add(action.script)
                if isinstance(action, HttpProbe) and action.alive:
                    scripts.add(action.alive)
        for script in sorted(scripts):
            done = subprocess.run(
                ["sh", "-n", "-c", script], capture_output=True, text=True, check=False, timeout=10
            )
            self.assertEqual(done.returncode, 0, f"{script}\n{done.stderr}")
            for blank in ("/home/user one", "/srv/cloud one"):
                for part in _unquoted(script):
                    self.assertNotIn(blank, part, script)

    def test_kit_probes_are_patient(self) -> None:
        """`missing` accepts any answer and names the missing part."""
        for name, plan, *_ in self._plans():
            for action in _actions(plan):
                if isinstance(action, HttpProbe):
                    self.assertRegex(action.url, r"\Ahttps?://")
                    self.assertTrue(action.every_s > 0)
                    for status, body in _ANSWERS:
                        missing = action.missing(status, body)
                        self.assertIsInstance(missing, str)
                        if isinstance(action, IdleProbe):
                            self.assertIsInstance(action.mark(body), str)
                    self.assertTrue(action.missing(500, b""), f"{name}: {action.what}")

    def test_kit_daemons_prove_whose_they_are(self) -> None:
        """Each host and port that a plan probes shows an identity: the cluster's own, and written.

        Equal daemons of another cluster at the same address have another identity. svcd submits
        jobs to the endpoints, so `check` asks for the identity of each.
        """
        for distribution, made, all_ in self._cases():
            ids = [m.instance_id for m in all_]
            files = _actions(distribution.configure(made, all_, ids))
            written = b"".join(a.content for a in files if isinstance(a, WriteFile))
            other = evolve(made, id=ClusterId("0c3bb4a7-3ad5-4a34-8f0b-6e4be53bd1c2"))
            check = distribution.check(made, all_)
            foreign = {a.identity for a in identities(distribution.check(other, all_))}
            for name, plan in (
                ("start", distribution.start(made, all_, ids)),
                ("start one", distribution.start(made, all_, ids[-1:])),
                ("decommission", distribution.decommission(made, all_, ids[-1:])),
                ("check", check),
                ("idle probes", _idle_plan(distribution, made, all_)),
            ):
                probes = [a for a in _actions(plan) if isinstance(a, HttpProbe)]
                proven = {_place(a.url) for a in probes if a.identity}
                self.assertEqual({_place(a.url) for a in probes} - proven, set(), name)
                for identity in {a.identity for a in probes if a.identity}:
                    self.assertIn(identity.encode(), written, f"{name}: in no file")
                    self.assertNotIn(identity, foreign, f"{name}: the same for another cluster")
            endpoints = distribution.endpoints(made, all_)
            if endpoints is not None:
                proven = {_place(identity.url) for identity in endpoints.identities}
                for url in filter(None, (endpoints.engine, endpoints.webhdfs, endpoints.history)):
                    self.assertIn(_place(url), proven, f"endpoints: {url} proves no identity")

    # ---- what users see ---------------------------------------------------------------------

    def test_kit_a_check_only_asks_and_names_each_part_once(self) -> None:
        """svcd checks Active clusters regularly, and findings carry the names of the parts."""
        for plan in (plan for name, plan, *_ in self._plans() if name in ("check", "idle probes")):
            named = [(action.machine, action.what) for action in _actions(plan)
                     if not isinstance(action, WriteFile)]  # fmt: skip
            self.assertEqual(len(named), len(list(_actions(plan))), "a check writes nothing")
            self.assertEqual(sorted(named), sorted(set(named)))

    def test_kit_links_are_urls(self) -> None:
        """`info` maps a target to names and URLs, and each target is a service."""
        for distribution, made, all_ in self._cases():
            links = distribution.links(made, all_)
            self.assertTrue(set(links) <= set(distribution.node_processes(made.engine_version)))
            for urls in links.values():
                for url in urls.values():
                    self.assertRegex(url, r"\A[a-z]+://[^/ ]+")

    def test_kit_endpoints_are_bases_without_a_slash_at_the_end(self) -> None:
        """A cluster with endpoints has job types and a user."""
        for distribution, made, all_ in self._cases():
            endpoints = distribution.endpoints(made, all_)
            if endpoints is not None:
                self.assertIsInstance(endpoints, Endpoints)
                self.assertTrue(endpoints.engine.endswith("/oozie"))
                self.assertFalse(endpoints.webhdfs.endswith("/"))
                self.assertTrue(endpoints.name_node.startswith("hdfs://"))
                self.assertTrue(endpoints.user)
                self.assertTrue(distribution.job_types(made.engine_version))

    def test_kit_a_cluster_without_machines_has_no_links(self) -> None:
        """The methods accept a cluster whose machines are not known yet."""
        for distribution, made, _ in self._cases():
            self.assertEqual(dict(distribution.links(made, ())), {})
            self.assertIsNone(distribution.endpoints(made, ()))


def _idle_plan(distribution: IDistribution, made: Cluster, all_: Sequence[Machine]) -> Plan:
    """The idle probes as a plan; empty for a distribution without them."""
    asked = IIdleProbes(distribution, None)
    chain = () if asked is None else tuple(asked.idle_probes(made, all_))
    return (Stage(name="idle", chains=(chain,), deadline_s=60.0, advice=""),) if chain else ()


def _actions(plan: Plan) -> Iterator[WriteFile | Command | HttpProbe]:
    for stage in plan:
        for chain in stage.chains:
            yield from chain


def identities(plan: Plan) -> Sequence[HttpProbe]:
    """The probes of a plan that prove that a daemon is the cluster's own."""
    return [a for a in _actions(plan) if isinstance(a, HttpProbe) and a.identity]


def _place(url: str) -> str:
    """The host and port of a URL."""
    return urlsplit(url).netloc


def _unquoted(script: str) -> Iterator[str]:
    """Yield the parts of shell text that are outside of quotes."""
    part, quote = "", ""
    for letter in script:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
            yield part
            part = ""
        else:
            part += letter
    yield part
