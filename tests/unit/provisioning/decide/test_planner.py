"""The planner with literal values: one situation, one plan. No fake, no clock."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cloud import Firewall, FloatingIp, Opening, Server, VolumeState
from svcd.model.cluster import Cluster, ClusterStatus, InitScript, Instance, MachineFacts, Volume
from svcd.model.ids import JobBinaryInternalId, timestamp
from svcd.provisioning.decide import lifecycle
from svcd.provisioning.decide.failures import Code
from svcd.provisioning.decide.observed import CALL_S, VISIBLE_S, Observed
from svcd.provisioning.decide.planner import Plan, World, needs_sight, plan
from svcd.provisioning.decide.steps import (
    AssociateFloatingIp,
    AttachVolumes,
    CreateFloatingIp,
    CreateServer,
    CreateVolumes,
    DeleteFloatingIp,
    DeleteGroups,
    DeleteTrust,
    DeleteVolume,
    Distribute,
    DropRow,
    EnsureSecurityGroup,
    Memory,
    Prepare,
    Reach,
    RunScript,
    Tried,
)
from svcd.settings import Provisioning
from tests.unit.provisioning.support import NOW, cluster, group, instance

T = TypeVar("T")

S = ClusterStatus
LONG_AGO = timestamp(NOW - 3600)
JUST_NOW = timestamp(NOW - 2)
ASKED = {"create-server:worker1": Tried(done=True)}
FACTS = MachineFacts(home="/home/debian")

SSH = Opening(22, "0.0.0.0/0")
BOOTED = instance(1, requested_at=JUST_NOW, server_id="s1")
FREE = FloatingIp(id="f1", address="203.0.113.1", pool_id="p", description="svcd:c1:worker1")


def spawning(*instances: Instance, **fields: Any) -> Cluster:
    """One group of these instances, its security group made."""
    group_fields = {k: fields.pop(k) for k in list(fields) if k in GROUP_FIELDS}
    made = group(count=len(instances), instances=instances, **group_fields)
    return cluster(made, status=S.SPAWNING, security_group_id="sg", **fields)


GROUP_FIELDS = {"volumes_per_node", "floating_ip_pool", "volumes_size"}


def server(number: int, status: str = "ACTIVE", owner: str = "worker1", **fields: Any) -> Server:
    made = Server(
        id=f"s{number}",
        name="demo-worker-001",
        status=status,
        addresses=((f"10.0.0.{number}", "fixed"),) if status == "ACTIVE" else (),
        metadata={"svcd_cluster_id": "c1", "svcd_instance_id": owner},
    )
    return evolve(made, **fields)


def volume(number: int, index: int = 1, status: str = "available", **fields: Any) -> VolumeState:
    made = VolumeState(
        id=f"v{number}",
        name=f"volume_demo-worker-001_{index}",
        status=status,
        size_gib=10,
        metadata={"svcd_instance_id": "worker1", "svcd_volume_index": str(index)},
    )
    return evolve(made, **fields)


def look(
    row: Cluster,
    *servers: Server,
    volumes: tuple[VolumeState, ...] = (),
    ips: tuple[FloatingIp, ...] = (),
    tried: dict[str, Tried] | None = None,
    now: float = NOW,
    blind: bool = False,
    **settings: Any,
) -> Plan:
    seen = None if blind else Observed(servers=servers, volumes=volumes, floating_ips=ips)
    return plan(
        row,
        World(
            observed=seen,
            memory=Memory(tried=tried or {}),
            settings=Provisioning(**settings),
            web_ports=(9870,),
            now=now,
        ),
    )


def kinds(planned: Plan) -> list[str]:
    return [type(s).__name__ for s in planned.steps]


def only(kind: type[T], planned: Plan) -> T:
    """The one step of a plan."""
    (step,) = planned.steps
    assert isinstance(step, kind), step
    return step


class PlannerTestCase(SynchronousTestCase):
    def assertFails(self, planned: Plan, code: Code, reason: str = "") -> None:
        """The plan gives up. reason: the whole of it, unless it is ""."""
        assert planned.fail is not None
        self.assertEqual(planned.fail.code, code)
        self.assertEqual(planned.fail.reason, reason or planned.fail.reason)


class SpawnTests(PlannerTestCase):
    """Servers, addresses, volumes."""

    def first(self, planned: Plan) -> Instance:
        return planned.cluster.instances()[0]

    def test_accepted_cluster_gets_its_groups_first(self) -> None:
        """Only SSH is opened; no server before that. A server group only with anti-affinity."""
        planned = look(cluster())
        self.assertEqual(planned.cluster.status, S.SPAWNING)
        step = only(EnsureSecurityGroup, planned)
        self.assertEqual((step.name, step.openings), ("svcd-c1", (SSH,)))
        planned = look(cluster(anti_affinity=("datanode",)))
        self.assertEqual(kinds(planned), ["EnsureSecurityGroup", "EnsureServerGroup"])

    def test_web_ports_are_opened_to_their_networks(self) -> None:
        """And SSH to its own."""
        firewall = Firewall(ssh_cidrs=("10.0.0.0/8",), web_cidrs=("192.0.2.0/24",))
        world = World(firewall=firewall, web_ports=(9870, 8088), now=NOW)
        step = only(EnsureSecurityGroup, plan(cluster(), world))
        self.assertEqual(
            [str(opening) for opening in step.openings],
            ["22 10.0.0.0/8", "8088 192.0.2.0/24", "9870 192.0.2.0/24"],
        )

    def test_create_is_preceded_by_its_intent(self) -> None:
        """requested_at is in the row that is written before the call."""
        planned = look(spawning(instance(1), user_keypair_id="demo"))
        step = only(CreateServer, planned)
        self.assertEqual(self.first(planned).requested_at, timestamp(NOW + CALL_S))
        self.assertEqual(step.new.name, "demo-worker-001")
        self.assertEqual(
            step.new.metadata, {"svcd_cluster_id": "c1", "svcd_instance_id": "worker1"}
        )
        self.assertEqual((step.new.security_groups, step.new.keypair), (("sg",), "demo"))

    def test_only_anti_affine_groups_are_kept_apart(self) -> None:
        """The server group is a hint for the groups that run such a process."""
        for process, hint in (("namenode", None), ("datanode", "g")):
            row = spawning(instance(1), anti_affinity=(process,), server_group_id="g")
            self.assertEqual(only(CreateServer, look(row)).new.server_group_id, hint)

    def test_servers_of_an_instance(self) -> None:
        """Situation, fields of the instance, servers that are listed: steps, waiting, server kept.

        An unknown server is one whose create call was never answered. Of two, one that is ready
        saves time; a server of no instance is left over from a growth that failed.
        """
        create, delete = "create-server:worker1", "delete-server:"
        new, old = {"requested_at": JUST_NOW}, {"requested_at": timestamp(NOW - VISIBLE_S)}
        known = {**new, "server_id": "s2"}
        deleted = server(1, "DELETED")
        for situation, fields, listed, steps, waiting, kept in (
            ("never asked for", {}, [], [create], "", None),
            ("still listed as deleted", {}, [deleted], [create], "", None),
            ("asked for lately", new, [], [], "is not listed yet", None),
            ("answered lately", known, [], [], "is not listed yet", "s2"),
            ("asked for long ago", old, [], [create], "", None),
            ("unknown", new, [server(7, "BUILD")], [], "is BUILD", "s7"),
            ("without address", new, [server(7, addresses=())], [], "has no address", "s7"),
            ("known and surplus", known, [server(1), server(2, "BUILD")], [f"{delete}s1"],
             "is BUILD", "s2"),
            ("two unknown", new, [server(1, "BUILD"), server(2)], [f"{delete}s1"], "", "s2"),
            ("of no instance", new, [server(7), server(9, owner="nobody")], [f"{delete}s9"], "",
             "s7"),
        ):  # fmt: skip
            planned = look(spawning(instance(1, **fields), instance(2, **new)), *listed)
            told = [each for each in planned.waiting if "worker-001" in each]
            self.assertEqual([step.key for step in planned.steps], steps, situation)
            self.assertEqual(
                told, [f"server demo-worker-001 {waiting}"] if waiting else [], situation
            )
            self.assertEqual(self.first(planned).server_id, kept, situation)

    def test_create_that_failed_lately_is_not_intended_again_yet(self) -> None:
        """Back-off: no intent without a call."""
        tried = {"create-server:worker1": Tried(failures=1, not_before=NOW + 5, reason="busy")}
        planned = look(spawning(instance(1)), tried=tried)
        self.assertEqual((planned.steps, planned.waiting), ((), ("server demo-worker-001: busy",)))
        self.assertIsNone(self.first(planned).requested_at)

    def test_server_in_error_is_given_up_and_counted(self) -> None:
        """It is deleted; a new one is made only when it is gone."""
        row = spawning(BOOTED)
        planned = look(row, server(1, "ERROR", fault="no host"))
        self.assertEqual(kinds(planned), ["DeleteServer"])
        after = self.first(planned)
        self.assertEqual((after.attempts, after.server_id, after.requested_at), (1, None, None))
        again = look(planned.cluster, server(1, "ERROR", fault="no host"))
        self.assertEqual(kinds(again), ["DeleteServer"])
        self.assertEqual(self.first(again).attempts, 1)
        gone = look(planned.cluster)
        self.assertEqual(kinds(gone), ["CreateServer"])

    def test_third_server_in_error_fails(self) -> None:
        """The cloud's own words are in the reason."""
        row = spawning(instance(1, requested_at=JUST_NOW, server_id="s3", attempts=2))
        self.assertFails(
            look(row, server(3, "ERROR", fault="no host")),
            Code.SERVER_ERROR,
            "server s3 of demo-worker-001 is in ERROR: no host; gave up",
        )

    def test_quota_fault_of_a_server_fails_at_once(self) -> None:
        """Some clouds tell of the quota only then."""
        row = spawning(BOOTED)
        self.assertFails(
            look(row, server(1, "ERROR", fault="Quota exceeded for cores")), Code.QUOTA
        )

    def test_ready_server_is_spawned(self) -> None:
        """Without pool the management address is the internal one."""
        row = spawning(instance(1, requested_at=JUST_NOW), instance(2))
        after = self.first(look(row, server(1)))
        self.assertEqual(
            (after.step, after.internal_ip, after.management_ip),
            ("spawned", "10.0.0.1", "10.0.0.1"),
        )

    def test_floating_address_is_allocated_then_associated_then_known(self) -> None:
        """Three looks; the address comes from the network service, not from the server."""
        row = spawning(BOOTED, floating_ip_pool="public")
        made = only(CreateFloatingIp, look(row, server(1), tried=ASKED))
        self.assertEqual((made.pool, made.description), ("public", "svcd:c1:worker1"))
        joined = only(AssociateFloatingIp, look(row, server(1), ips=(FREE,)))
        self.assertEqual((joined.floating_ip_id, joined.server_id), ("f1", "s1"))
        after = self.first(look(row, server(1), ips=(evolve(FREE, port_id="p1"),)))
        self.assertEqual(
            (after.step, after.internal_ip, after.management_ip),
            ("spawned", "10.0.0.1", "203.0.113.1"),
        )

    def test_doubled_floating_address_is_released_the_used_one_kept(self) -> None:
        """Made twice because an answer was lost."""
        row = spawning(BOOTED, floating_ip_pool="public")
        used = evolve(FREE, id="f2", address="203.0.113.2", port_id="p1")
        planned = look(row, server(1), ips=(FREE, used))
        self.assertEqual([s.key for s in planned.steps], ["delete-floating-ip:f1"])
        self.assertEqual(self.first(planned).management_ip, "203.0.113.2")

    def test_volumes_are_made_attached_and_known(self) -> None:
        """Missing ones are made, free ones attached, busy ones awaited."""
        row = spawning(BOOTED, volumes_per_node=2)
        made = only(CreateVolumes, look(row, server(1), volumes=(volume(1),), tried=ASKED))
        self.assertEqual([n for n, _ in made.volumes], ["volume_demo-worker-001_2"])
        free = (volume(1), volume(2, 2))
        attach = only(AttachVolumes, look(row, server(1), volumes=free))
        self.assertEqual(attach.volumes, ("v1", "v2"))
        busy = (volume(1, status="attaching"), volume(2, 2, status="in-use"))
        self.assertEqual(
            look(row, server(1), volumes=busy).waiting,
            ("volume v1 of demo-worker-001 is attaching",),
        )
        used = tuple(
            volume(n, n, status="in-use", attached_to="s1", device=f"/dev/vd{n}") for n in (1, 2)
        )
        after = self.first(look(row, server(1), volumes=used))
        self.assertEqual(after.step, "spawned")
        self.assertEqual([v.device for v in after.volumes], ["/dev/vd1", "/dev/vd2"])

    def test_what_a_former_daemon_may_have_asked_for_is_waited_for(self) -> None:
        """This one has not asked for the server: more may be under way than lists show."""
        for fields in ({"volumes_per_node": 1}, {"floating_ip_pool": "public"}):
            row = spawning(BOOTED, **fields)
            planned = look(row, server(1))
            self.assertEqual((planned.steps, len(planned.waiting)), ((), 1))
            self.assertIn("may have been asked for, not listed yet", planned.waiting[0])
            later = look(row, server(1), now=NOW + VISIBLE_S)
            self.assertEqual(len(later.steps), 1)

    def test_doubled_volume_is_deleted_the_attached_one_kept(self) -> None:
        """Made twice because an answer was lost."""
        row = spawning(BOOTED, volumes_per_node=1)
        planned = look(
            row,
            server(1),
            volumes=(volume(1), volume(2, status="in-use", attached_to="s1", device="/dev/vdb")),
        )
        step = only(DeleteVolume, planned)
        self.assertEqual((step.volume_id, self.first(planned).step), ("v1", "spawned"))

    def test_volume_in_error_is_replaced_then_fails(self) -> None:
        """Counted like servers."""
        row = spawning(BOOTED, volumes_per_node=1)
        planned = look(row, server(1), volumes=(volume(1, status="error"),), tried=ASKED)
        self.assertEqual(kinds(planned), ["DeleteVolume", "CreateVolumes"])
        self.assertEqual(self.first(planned).attempts, 1)
        self.assertEqual(self.first(planned).requested_at, timestamp(NOW + CALL_S))
        tired = spawning(evolve(BOOTED, attempts=2), volumes_per_node=1)
        self.assertFails(
            look(tired, server(1), volumes=(volume(1, status="error"),)), Code.VOLUME_ERROR
        )

    def test_known_device_is_not_forgotten(self) -> None:
        """The attach call told it; the list does not yet."""
        attached = evolve(BOOTED, volumes=(Volume(volume_id="v1", device="/dev/vdb"),))
        row = spawning(attached, volumes_per_node=1)
        after = self.first(look(row, server(1), volumes=(volume(1, status="in-use"),)))
        self.assertEqual(after.volumes[0].device, "/dev/vdb")

    def test_deadline_names_what_was_waited_for(self) -> None:
        """And never passes silently."""
        row = evolve(
            spawning(instance(1, requested_at=LONG_AGO, server_id="s1")),
            status_since=timestamp(NOW - 1800),
        )
        self.assertFails(
            look(row, server(1, "BUILD")),
            Code.BOOT_TIMEOUT,
            "Spawning took longer than 1800 s: server demo-worker-001 is BUILD",
        )

    def test_deadline_is_called_after_what_holds_the_calls_up(self) -> None:
        """Also when it passes between two tries, and no step is due."""
        row = evolve(spawning(instance(1)), status_since=timestamp(NOW - 1800))
        busy = Tried(failures=7, not_before=NOW + 20, reason="port in use", code=Code.CLOUD_BUSY)
        self.assertFails(look(row, tried={"create-server:worker1": busy}), Code.CLOUD_BUSY)

    def test_blind_planner_waits_with_the_clouds_words(self) -> None:
        """Until the deadline."""
        trouble = {
            "observe": Tried(
                failures=3, not_before=NOW, reason="compute: down", code=Code.CLOUD_UNAVAILABLE
            )
        }
        row = spawning(instance(1, requested_at=JUST_NOW))
        self.assertEqual(look(row, blind=True, tried=trouble).waiting, ("compute: down",))
        late = evolve(row, status_since=timestamp(NOW - 1801))
        self.assertFails(look(late, blind=True, tried=trouble), Code.CLOUD_UNAVAILABLE)


def machine(number: int, step: str = "spawned", **fields: Any) -> Instance:
    return instance(
        number,
        step=step,
        server_id=f"s{number}",
        requested_at=LONG_AGO,
        internal_ip=f"10.0.0.{number}",
        management_ip=f"10.0.0.{number}",
        **fields,
    )


def servers(*numbers: int) -> list[Server]:
    return [server(n, owner=f"worker{n}") for n in numbers]


class MachineTests(PlannerTestCase):
    """Preparing, Configuring, Starting."""

    def row(self, *instances: Instance, **fields: Any) -> Cluster:
        return cluster(group(count=len(instances), instances=instances), **fields)

    def test_unknown_machines_are_reached_first(self) -> None:
        """Only those whose facts are not known."""
        row = self.row(machine(1), machine(2, facts=FACTS), status=S.SPAWNING)
        planned = look(row, *servers(1, 2))
        self.assertEqual(planned.cluster.status, S.PREPARING)
        self.assertEqual(
            [(type(s), s.machine) for s in planned.steps], [(Reach, "demo-worker-001")]
        )

    def test_then_all_are_prepared(self) -> None:
        """Every machine gets the hosts of all."""
        row = self.row(machine(1, facts=FACTS), machine(2, facts=FACTS), status=S.PREPARING)
        planned = look(row, *servers(1, 2))
        self.assertEqual(kinds(planned), ["Prepare", "Prepare"])
        step = planned.steps[0]
        assert isinstance(step, Prepare)
        self.assertIn("10.0.0.2 demo-worker-002", step.hosts)
        self.assertTrue(step.mount)

    def test_serving_machines_learn_the_hosts_before_the_new_ones(self) -> None:
        """The new ones' step ends the phase, so they come last."""
        row = self.row(
            machine(1, "started", facts=FACTS), machine(2, facts=FACTS), status=S.PREPARING
        )
        first = look(row, *servers(1, 2))
        self.assertEqual([s.machine for s in first.steps], ["demo-worker-001"])
        done = {first.steps[0].key: Tried(done=True)}
        second = look(row, *servers(1, 2), tried=done)
        self.assertEqual([s.machine for s in second.steps], ["demo-worker-002"])

    def test_prepared_machines_are_configured_then_started(self) -> None:
        """Each verb on those that lack it."""
        row = self.row(machine(1, "started"), machine(2, "prepared"), status=S.PREPARING)
        planned = look(row, *servers(1, 2))
        step = only(Distribute, planned)
        self.assertEqual((step.verb, step.on), ("configure", ("worker2",)))
        self.assertEqual(planned.cluster.status, S.CONFIGURING)
        row = self.row(machine(1, "started"), machine(2, "configured"), status=S.CONFIGURING)
        planned = look(row, *servers(1, 2))
        step = only(Distribute, planned)
        self.assertEqual((step.verb, step.on), ("start", ("worker2",)))
        self.assertEqual(planned.cluster.status, S.STARTING)

    def test_scripts_run_between_configuration_and_start(self) -> None:
        """The next one of each new machine; machines that have started run none."""
        scripts = tuple(
            InitScript(name=n, internal_id=JobBinaryInternalId(n), sha256=n) for n in "ab"
        )
        new = machine(2, "configured"), machine(3, "configured", scripts_done=1)
        row = self.row(machine(1, "started"), *new, status=S.CONFIGURING)
        group = evolve(row.node_groups[0], scripts=scripts)
        planned = look(evolve(row, node_groups=(group,)), *servers(1, 2, 3))
        steps = [s for s in planned.steps if isinstance(s, RunScript)]
        self.assertEqual(
            [(s.key, s.what, s.machine) for s in steps],
            [
                ("run-script:worker2:0", "run script a", "demo-worker-002"),
                ("run-script:worker3:1", "run script b", "demo-worker-003"),
            ],
        )
        self.assertEqual(lifecycle.BLANK["scripts_done"], 0)
        limits = [
            lifecycle.limit_s(evolve(planned.cluster, status=status), Provisioning())
            for status in (S.CONFIGURING, S.STARTING)
        ]
        self.assertEqual(limits, [600.0 + 2 * 600.0, 900.0])
        done = [evolve(i, scripts_done=2) for i in group.instances]
        row = evolve(row, node_groups=(evolve(group, instances=tuple(done)),))
        self.assertEqual(only(Distribute, look(row, *servers(1, 2, 3))).verb, "start")

    def test_group_gets_the_openings_of_the_settings_at_a_change(self) -> None:
        """Before anything else, once for a request; the ports of Hadoop lose their rules."""
        row = self.row(machine(1, "started"), machine(2, "started"), status=S.STARTING)
        old = evolve(row, security_group_id="sg", openings=("9870 0.0.0.0/0",))
        step = only(EnsureSecurityGroup, look(old, *servers(1, 2)))
        self.assertEqual((step.openings, step.others), ((SSH,), (9870,)))
        again = look(old, *servers(1, 2), tried={step.key: Tried(done=True)})
        self.assertEqual((again.steps, again.settled), ((), True))

    def test_all_started_is_settled(self) -> None:
        """Active, with the generation that was read; a reason stays readable."""
        row = self.row(
            machine(1, "started"), status=S.STARTING, generation=3, status_description="why"
        )
        planned = look(row)
        self.assertTrue(planned.settled)
        after = planned.cluster
        self.assertEqual(
            (after.status, after.settled_generation, after.status_description),
            (S.ACTIVE, 3, "why"),
        )

    def test_machine_lost_on_the_way_is_made_again(self) -> None:
        """Back to Spawning, from nothing, counted."""
        row = self.row(machine(1, "configured", facts=FACTS), machine(2, "configured"))
        planned = look(evolve(row, status=S.STARTING, security_group_id="sg"), *servers(2))
        self.assertEqual(planned.cluster.status, S.SPAWNING)
        self.assertEqual(kinds(planned), ["CreateServer"])
        after = planned.cluster.instances()[0]
        self.assertEqual((after.attempts, after.facts, after.step), (1, None, ""))

    def test_serving_machine_that_is_lost_fails_a_growth(self) -> None:
        """Its data is gone; the user must know."""
        row = self.row(machine(1, "started"), machine(2, "prepared"), status=S.SPAWNING)
        self.assertFails(look(row, *servers(2)), Code.SERVER_VANISHED)

    def test_each_request_looks_whether_what_serves_is_there(self) -> None:
        """All that is gone is named and marked, also when nothing else is to be done."""
        row = self.row(
            machine(1, "started"), machine(2, "started"), machine(3, "started"), status=S.VALIDATING
        )
        planned = look(row, *servers(2))
        self.assertFails(
            planned,
            Code.SERVER_VANISHED,
            "server s1 of demo-worker-001 is gone; server s3 of demo-worker-003 is gone",
        )
        assert planned.fail is not None
        self.assertEqual(
            planned.fail.instances,
            {"worker1": {"status": "DELETED"}, "worker3": {"status": "DELETED"}},
        )

    def test_what_was_listed_is_missed_however_new_it_is(self) -> None:
        """Lists show late what is new, not what they have shown."""
        new = evolve(machine(1, "started"), requested_at=JUST_NOW)
        self.assertFails(look(self.row(new, status=S.VALIDATING)), Code.SERVER_VANISHED)
        booted = evolve(machine(1, "spawned"), requested_at=JUST_NOW)
        again = look(self.row(booted, security_group_id="sg", status=S.PREPARING))
        self.assertEqual(kinds(again), ["CreateServer"])

    def test_each_request_learns_the_status_of_servers(self) -> None:
        """A stopped one is shown as such, and one that was taken as lost is there again."""
        row = self.row(
            machine(1, "started", status="ACTIVE"),
            machine(2, "started", status="DELETED"),
            status=S.VALIDATING,
        )
        planned = look(row, server(1, "SHUTOFF", owner="worker1"), *servers(2))
        self.assertTrue(planned.settled)
        self.assertEqual([i.status for i in planned.cluster.instances()], ["SHUTOFF", "ACTIVE"])

    def test_stopped_server_that_is_waited_for_is_named(self) -> None:
        """Nobody can log in to it; what is gone on the way is another matter."""
        row = self.row(machine(1), machine(2), status=S.PREPARING)
        planned = look(row, server(1, "SHUTOFF", owner="worker1"), *servers(2))
        self.assertEqual(kinds(planned), ["Reach", "Reach"])
        self.assertEqual(planned.waiting, ("server demo-worker-001 is SHUTOFF",))

    def test_sight_is_needed_only_between_request_and_start(self) -> None:
        """Before the first call and after the last start the cloud is not asked."""
        self.assertTrue(needs_sight(self.row(machine(1, "started"), status=S.VALIDATING)))
        self.assertFalse(needs_sight(cluster()))
        self.assertFalse(needs_sight(self.row(machine(1, "started"))))
        self.assertTrue(needs_sight(self.row(machine(1, "prepared"))))
        self.assertTrue(needs_sight(self.row(instance(1, attempts=1))))
        self.assertTrue(needs_sight(self.row(machine(1, "started", leaving=True))))
        self.assertTrue(needs_sight(lifecycle.delete(cluster(), False, NOW)))
        given_up = lifecycle.delete(cluster(trustor_id="u1"), False, NOW)
        self.assertFalse(needs_sight(given_up))
        self.assertTrue(needs_sight(evolve(given_up, trust_id="t1")))


class ShrinkTests(PlannerTestCase):
    def row(self, *instances: Instance) -> Cluster:
        staying = sum(not i.leaving for i in instances)
        return cluster(group(count=staying, instances=instances), status=S.VALIDATING)

    def test_serving_nodes_are_taken_out_of_service_first(self) -> None:
        """All of them in one plan."""
        row = self.row(
            machine(1, "started"), *(machine(n, "started", leaving=True) for n in (2, 3))
        )
        planned = look(row, *servers(1, 2, 3))
        step = only(Distribute, planned)
        self.assertEqual(
            (step.verb, step.on, step.absent), ("decommission", ("worker2", "worker3"), ())
        )
        self.assertEqual(planned.cluster.status, S.DECOMMISSIONING)

    def test_shrink_does_not_ask_a_lost_node(self) -> None:
        """Machines that are gone are absent from the plan's view."""
        row = self.row(
            machine(1, "started"), *(machine(n, "started", leaving=True) for n in (2, 3))
        )
        step = only(Distribute, look(row, *servers(1, 2)))
        self.assertEqual((step.on, step.absent), (("worker2",), ("worker3",)))

    def test_node_that_never_served_is_only_removed(self) -> None:
        """The way back from a failed growth."""
        row = self.row(machine(1, "started"), machine(2, "spawned", leaving=True))
        planned = look(row, *servers(1, 2))
        self.assertEqual([s.key for s in planned.steps], ["delete-server:s2"])

    def test_gone_nodes_leave_the_row(self) -> None:
        """Then the next pass sees what is left."""
        row = self.row(machine(1, "started"), machine(2, "decommissioned", leaving=True))
        planned = look(row, *servers(1))
        self.assertEqual(planned.steps, ())
        self.assertEqual([i.instance_id for i in planned.cluster.instances()], ["worker1"])


class DeleteTests(PlannerTestCase):
    """Removing everything, in order."""

    DONE = {"kill-executions": Tried(done=True)}

    def row(self, *instances: Instance, force: bool = False, **fields: Any) -> Cluster:
        made = cluster(group(count=len(instances), instances=instances), **fields)
        return lifecycle.delete(made, force, NOW)

    def test_executions_are_killed_before_anything_goes(self) -> None:
        """While the engine still runs. After three failures the deletion goes on."""
        for failures, expected in ((0, ["KillExecutions"]), (3, ["DeleteServer"])):
            tried = {"kill-executions": Tried(failures=failures)}
            planned = look(self.row(machine(1)), *servers(1), tried=tried)
            self.assertEqual(kinds(planned), expected)

    def test_addresses_and_volumes_wait_for_their_server(self) -> None:
        """What nothing holds goes at once; of a server in ERROR the address goes too."""
        held = volume(1, status="in-use", attached_to="s1")
        planned = look(
            self.row(machine(1)),
            *servers(1),
            volumes=(held, volume(2)),
            ips=(FREE,),
            tried=self.DONE,
        )
        self.assertEqual(
            [s.key for s in planned.steps],
            ["delete-server:s1", "delete-volume:v2"],
        )
        self.assertIn("volume volume_demo-worker-001_1 is in-use", planned.waiting)
        self.assertIn("floating IP 203.0.113.1 is of a server being deleted", planned.waiting)
        self.assertIn("floating IP 203.0.113.1 (f1)", planned.left)
        gone = look(self.row(machine(1)), ips=(FREE,), tried=self.DONE)
        self.assertIsInstance(gone.steps[0], DeleteFloatingIp)
        broken = server(1, status="ERROR")
        planned = look(self.row(machine(1)), broken, ips=(FREE,), tried=self.DONE)
        self.assertEqual(
            [s.key for s in planned.steps], ["delete-server:s1", "delete-floating-ip:f1"]
        )

    def test_server_that_may_still_appear_is_waited_for(self) -> None:
        """Its create call has not been answered."""
        row = self.row(instance(1, requested_at=JUST_NOW))
        planned = look(row, tried=self.DONE)
        self.assertEqual(planned.steps, ())
        self.assertEqual(planned.waiting, ("a server for demo-worker-001 may still appear",))
        later = look(row, tried=self.DONE, now=NOW + VISIBLE_S)
        self.assertEqual(kinds(later), ["DeleteGroups"])

    def test_server_that_is_not_listed_yet_is_deleted_by_its_id(self) -> None:
        """Once."""
        row = self.row(BOOTED)
        self.assertEqual([s.key for s in look(row, tried=self.DONE).steps], ["delete-server:s1"])
        done = {**self.DONE, "delete-server:s1": Tried(done=True)}
        self.assertEqual(kinds(look(row, tried=done)), ["DeleteGroups"])

    def test_groups_then_trust_then_row(self) -> None:
        """The trust goes last of all that needs it."""
        row = self.row(instance(1), trust_id="t1")
        groups = only(DeleteGroups, look(row, tried=self.DONE))
        self.assertEqual(groups.name, "svcd-c1")
        tried = {**self.DONE, "delete-groups": Tried(done=True)}
        trust = only(DeleteTrust, look(row, tried=tried))
        self.assertEqual(trust.trust_id, "t1")
        tried["delete-trust"] = Tried(done=True)
        drop = only(DropRow, look(row, tried=tried))
        self.assertEqual(drop.leftovers, ())

    def test_deadline_names_all_that_is_left(self) -> None:
        """So that a person can remove it."""
        tried = {**self.DONE, "delete-server:s1": Tried(failures=9, reason="delete server: 500")}
        late = evolve(self.row(machine(1)), status_since=timestamp(NOW - 1801))
        failure = look(late, *servers(1), tried=tried).fail
        assert failure is not None
        self.assertEqual(failure.code, Code.LEFTOVERS)
        self.assertIn("server demo-worker-001 (s1, ACTIVE)", failure.reason)
        self.assertIn("delete server: 500", failure.reason)

    def test_clean_up_of_a_failed_create_ends_blank(self) -> None:
        """Ids and names stay, everything else is as accepted; the reason stays too."""
        row = evolve(
            cluster(group(count=1, instances=[machine(1, attempts=3)])),
            status=S.ERROR,
            status_description="why",
            security_group_id="sg",
        )
        planned = look(row, tried={"delete-groups": Tried(done=True)})
        self.assertTrue(planned.settled)
        after = planned.cluster
        self.assertEqual(after.instances(), (instance(1),))
        self.assertEqual(
            (
                after.status,
                after.status_description,
                after.settled_generation,
                after.security_group_id,
            ),
            (S.ERROR, "why", 1, None),
        )
