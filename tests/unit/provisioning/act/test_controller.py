"""The controller on a virtual clock: a cluster's whole life, restarts, requests, faults."""

from __future__ import annotations

from itertools import count
from urllib.parse import urlsplit

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.scripted import Said, ScriptedProbe
from svcd.errors import ServiceUnavailable
from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.ids import seconds_of
from svcd.model.requests import NewNodeGroup, ResizeGroup, ScaleRequest
from svcd.ports.faults import Fault
from svcd.ports.machines import Location, ProbeError
from svcd.provisioning.decide import lifecycle, rules
from svcd.provisioning.decide.facts import Bounds, Facts
from svcd.provisioning.decide.rules import Made
from tests.unit.provisioning.cloud import POOL
from tests.unit.provisioning.support import FLAVORS, NOW, TENANT, Site, cluster, group, run

S = ClusterStatus
CREATE_TENTHS = 23
DELETE_TWENTIETHS = 14
SCALE_TENTHS = 20
"""Moments up to the end, and some after it: the tests check that the end is among them."""


def rich() -> Cluster:
    """Two workers, each with two volumes and a floating address, kept apart."""
    return cluster(group(volumes_per_node=2, floating_ip_pool=POOL), anti_affinity=("datanode",))


def delete(row: Cluster) -> Cluster:
    return lifecycle.delete(row, False, NOW)


def resize(site: Site, **counts: int) -> None:
    """A scale request, as the commands write it."""
    facts = run_facts(site)
    numbers = count(100 * site.row.generation)
    made = Made(
        id="c1",
        tenant_id=TENANT,
        now=site.clock.seconds(),
        new_id=lambda: f"n{next(numbers)}",
    )
    known = {g.name for g in site.row.node_groups}
    change = ScaleRequest(
        resize_node_groups=tuple(
            ResizeGroup(name=n, count=c) for n, c in counts.items() if n in known
        ),
        add_node_groups=tuple(
            NewNodeGroup(name=n, count=c, flavor_id="2", node_processes=("datanode",))
            for n, c in counts.items()
            if n not in known
        ),
    )
    after = rules.check_scale(site.row, change, facts, Bounds(), made)
    assert isinstance(after, Cluster), after
    site.change(lambda row: after)


def _kind(command: str) -> str:
    """What a command on a machine is for, or who runs it."""
    if "svcd-facts" in command:
        return "facts"
    if "account()" in command:
        return "prepare with user" if "\naccount svcd /home/svcd\n" in command else "prepare"
    return "svcd" if "su -s /bin/sh svcd -c" in command else "login user"


def run_facts(site: Site) -> Facts:
    flavors = {f.id: f for f in FLAVORS}
    return Facts(distribution=site.distribution, flavors=flavors, image=site.cloud.image)


class ControllerTestCase(SynchronousTestCase):
    def active(self, row: Cluster | None = None, **settings: object) -> Site:
        site = Site(**settings)
        site.add(row or cluster())
        site.advance(30)
        self.assertEqual(site.row.status, S.ACTIVE, site.row.status_description)
        return site

    def assertConverged(self, site: Site, machines: int) -> None:
        self.assertEqual(site.row.status, S.ACTIVE, site.row.status_description)
        self.assertEqual(site.row.settled_generation, site.row.generation)
        self.assertEqual(len(site.cloud.made), machines)
        self.assertEqual(
            sorted(i.server_id or "" for i in site.row.instances()), sorted(site.cloud.made)
        )

    def assertGone(self, site: Site) -> None:
        self.assertTrue(site.gone)
        self.assertEqual(site.leftovers(), [])


class CreateTests(ControllerTestCase):
    """A cluster that is made."""

    def test_accepted_cluster_becomes_active(self) -> None:
        """Without any trouble the cluster is Active in a moment, with links and addresses."""
        site = Site()
        site.add(cluster())
        site.advance(1.0)
        self.assertConverged(site, 2)
        address = site.row.instances()[0].internal_ip
        self.assertEqual(site.row.info, {"HDFS": {"Web UI": f"http://{address}:9870"}})
        self.assertEqual([i.step for i in site.row.instances()], ["started", "started"])
        self.assertEqual(site.settled, ["c1"])

    def test_statuses_follow_one_another(self) -> None:
        """The story tells every status, in order."""
        site = self.active()
        statuses = [e[0] for e in site.events() if e[0] in set(S)]
        self.assertEqual(statuses, ["Spawning", "Preparing", "Configuring", "Starting", "Active"])

    def test_volumes_and_addresses_are_there_when_it_is_active(self) -> None:
        """Each machine has its volumes mounted in order and is reached by its public address."""
        site = self.active(rich())
        for each in site.row.instances():
            self.assertEqual(
                [(v.device, v.mount_point) for v in each.volumes],
                [("/dev/vdb", "/volumes/disk1"), ("/dev/vdc", "/volumes/disk2")],
            )
            self.assertTrue((each.management_ip or "").startswith("127.2."))
        self.assertEqual(len(site.cloud.server_groups), 1)

    def test_daemons_have_a_user_that_the_preparation_makes(self) -> None:
        """Only the preparation and the first look are the login user's own commands."""
        site = self.active(cluster(group(count=1), daemon_user="svcd"))
        kinds = [_kind(ran.command) for ran in site.remote.ran]
        self.assertEqual(
            kinds, ["facts", "prepare with user", "svcd", "svcd", "svcd", "svcd"], site.remote.ran
        )

    def test_cluster_keeps_the_login_user_of_an_older_release(self) -> None:
        """For the machines that it is given later, too."""
        site = self.active(cluster(group(count=1)))
        resize(site, worker=2)
        site.advance(30)
        self.assertConverged(site, 2)
        self.assertEqual(
            {_kind(ran.command) for ran in site.remote.ran}, {"facts", "prepare", "login user"}
        )

    def test_few_writes_are_needed(self) -> None:
        """A cluster is written per pass, not per instance: 20 machines cost what 2 cost."""
        small = self.active(cluster(group(count=2))).store.clusters.saves
        large = self.active(cluster(group(count=20))).store.clusters.saves
        self.assertEqual(small, large)
        self.assertLessEqual(large, 14)

    def test_slow_boot_is_waited_for(self) -> None:
        """Servers in BUILD are asked for again and again, but not more often than poll_s."""
        site = Site()
        site.cloud.set(boot_s=100.0)
        site.add(cluster())
        site.advance(99)
        self.assertEqual(site.row.status, S.SPAWNING)
        self.assertLess(site.cloud.calls["servers"], 120)
        site.advance(5)
        self.assertConverged(site, 2)

    def test_lagging_list_makes_no_second_server(self) -> None:
        """The cloud shows servers late: they are waited for."""
        site = Site()
        site.cloud.set(list_lag_s=20.0)
        site.add(cluster())
        site.advance(60)
        self.assertConverged(site, 2)
        self.assertEqual(site.cloud.calls["create_server"], 2)

    def test_unanswered_create_is_adopted(self) -> None:
        """The call was carried out but its answer was lost: the server is found by metadata."""
        site = Site()
        site.cloud.fail("create_server", Fault.TIMEOUT, after=True)
        site.add(cluster())
        site.advance(60)
        self.assertConverged(site, 2)
        self.assertEqual(site.cloud.calls["create_server"], 2)

    def test_unanswered_create_that_was_not_done_is_repeated(self) -> None:
        """The call was lost: after the time that a list may lag, it is made again."""
        site = Site()
        site.cloud.fail("create_server", Fault.TIMEOUT)
        site.add(cluster())
        site.advance(20)
        self.assertEqual(site.cloud.calls["create_server"], 2)
        site.advance(40)
        self.assertConverged(site, 2)
        self.assertEqual(site.cloud.calls["create_server"], 3)

    def test_refused_connection_is_repeated_soon(self) -> None:
        """Nothing was done, so nothing is waited for."""
        site = Site()
        site.cloud.fail("create_server", Fault.UNREACHABLE, times=3)
        site.add(cluster())
        site.advance(10)
        self.assertConverged(site, 2)

    def test_late_second_server_is_removed(self) -> None:
        """Two servers for one instance: the surplus one is deleted."""
        site = Site()
        site.cloud.set(boot_s=50.0)
        site.add(cluster())
        site.advance(5)
        site.cloud.make_again(next(iter(site.cloud.made.values())))
        site.advance(80)
        self.assertConverged(site, 2)

    def test_broken_server_is_replaced(self) -> None:
        """A server in ERROR is deleted and made again."""
        site = Site()
        site.cloud.broken.update({"demo-worker-001": 2})
        site.add(cluster())
        site.advance(60)
        self.assertConverged(site, 2)
        self.assertEqual(site.cloud.calls["create_server"], 4)

    def test_server_that_stays_broken_fails_and_leaves_nothing(self) -> None:
        """After two replacements the create fails with the cloud's own words; all is removed."""
        site = Site()
        site.cloud.broken.update({"demo-worker-001": 99})
        site.add(rich())
        site.advance(120)
        self.assertEqual(site.row.status, S.ERROR)
        self.assertIn("SERVER_ERROR", site.row.status_description)
        self.assertIn("No valid host was found", site.row.status_description)
        self.assertEqual(site.leftovers(), [])
        self.assertEqual(site.row.settled_generation, 1)

    def test_failed_create_is_kept_when_told_so(self) -> None:
        """With on_failure=keep everything stays for inspection."""
        site = Site(on_failure="keep")
        site.cloud.broken.update({"demo-worker-001": 99})
        site.add(cluster())
        site.advance(120)
        self.assertEqual(site.row.status, S.ERROR)
        self.assertEqual(len(site.cloud.made), 2)

    def test_quota_of_the_cloud_fails_at_once(self) -> None:
        """No use in repeating what the quota forbids."""
        site = Site()
        site.cloud.fail("create_server", Fault.QUOTA, text="Quota exceeded for instances")
        site.add(cluster())
        site.advance(10)
        self.assertIn("QUOTA: create server", site.row.status_description)
        self.assertEqual(site.leftovers(), [])

    def test_boot_that_never_ends_misses_its_deadline(self) -> None:
        """Every status has a deadline; the reason says what was waited for."""
        site = Site(spawn_deadline_s=100.0)
        site.cloud.set(boot_s=10_000.0)
        site.add(cluster())
        site.advance(120)
        self.assertEqual(site.row.status, S.ERROR)
        self.assertIn("BOOT_TIMEOUT: Spawning took longer than 100 s", site.row.status_description)
        self.assertIn("server demo-worker-001 is BUILD", site.row.status_description)
        self.assertEqual(site.leftovers(), [])

    def test_machine_without_ssh_misses_its_deadline(self) -> None:
        """The last word of SSH is in the reason."""
        site = Site(prepare_deadline_s=50.0)
        site.cut_off()
        site.add(cluster())
        site.advance(40)
        self.assertEqual(site.row.status, S.PREPARING)
        site.advance(30)
        self.assertEqual(site.row.status, S.ERROR)
        self.assertIn("SSH_TIMEOUT", site.row.status_description)
        self.assertIn("no route to host", site.row.status_description)
        self.assertEqual(site.leftovers(), [])

    def test_machine_that_boots_slowly_is_reached(self) -> None:
        """SSH is tried until it answers."""
        site = Site()
        site.cut_off()
        site.add(cluster())
        site.advance(30)
        site.connect()
        site.advance(4)
        self.assertConverged(site, 2)

    def test_every_step_on_a_machine_can_be_drawn(self) -> None:
        """From begin to end, and from the last step back to the first by `waited_for`."""
        site = Site()
        site.cut_off()
        site.add(cluster())
        site.advance(30)
        site.connect()
        site.advance(4)
        self.assertConverged(site, 2)
        drawn = {(e.step, e.machine): e for e in site.stored_events() if e.ended is not None}
        for machine in ("demo-worker-001", "demo-worker-002"):
            steps = [step for step, of in drawn if of == machine]
            self.assertEqual(
                steps[:4], ["create server", "wait for server", "log in", "prepare machine"]
            )
            tried = drawn["log in", machine]
            self.assertLess(seconds_of(tried.began or ""), NOW + 5)
            self.assertGreater(seconds_of(tried.ended or ""), NOW + 30)
        at = drawn["start nodes", ""]
        path = []
        while at.waited_for is not None:
            path.append(at.waited_for.step)
            before = drawn[at.waited_for.step, at.waited_for.machine]
            self.assertLessEqual(before.ended or "", at.began or "")
            at = before
        self.assertEqual(
            path,
            [
                "configure node",
                "prepare machine",
                "log in",
                "wait for server",
                "create server",
                "create security group",
            ],
        )

    def test_vanished_server_is_made_again(self) -> None:
        """Somebody deletes a server while the machines are being prepared."""
        site = Site()
        site.cut_off()
        site.add(cluster())
        site.advance(40)
        lost = site.row.instances()[0]
        site.cloud.lose(lost.server_id or "")
        site.connect(lost.internal_ip or "")
        site.advance(20)
        self.assertConverged(site, 2)

    def test_cloud_that_is_away_for_a_while_is_waited_for(self) -> None:
        """Passing faults are repeated until the deadline."""
        site = Site()
        site.cloud.fail("servers", Fault.UNREACHABLE, times=6)
        site.add(cluster())
        site.advance(60)
        self.assertConverged(site, 2)

    def test_cloud_that_stays_away_misses_the_deadline(self) -> None:
        """The reason carries the cloud's fault."""
        site = Site(spawn_deadline_s=300.0, delete_deadline_s=300.0)
        site.cloud.fail("servers", Fault.UNREACHABLE, times=10_000)
        site.add(cluster())
        site.advance(350)
        self.assertEqual(site.row.status, S.ERROR)
        self.assertIn("CLOUD_UNAVAILABLE", site.row.status_description)
        site.advance(400)
        self.assertEqual(site.row.settled_generation, 1)

    def test_lost_trust_fails_soon(self) -> None:
        """Credentials that are refused again and again are given up after some tries."""
        site = Site(delete_deadline_s=100.0)
        site.add(cluster(trust_id="t"))
        site.advance(60)
        self.assertEqual(site.row.status, S.ERROR)
        self.assertIn("CREDENTIALS_EXPIRED", site.row.status_description)

    def test_failing_prepare_is_repeated_then_fails(self) -> None:
        """A command that fails on a machine gets some tries."""
        site = Site()
        site.remote.script("svcd begin|as_root", Said(exit_code=1, stderr="sudo: no tty"))
        site.add(cluster())
        site.advance(120)
        self.assertIn("PREPARE_FAILED: demo-worker-00", site.row.status_description)
        self.assertEqual(site.leftovers(), [])

    def test_dead_daemon_is_reported_at_once_with_its_log(self) -> None:
        """Later failures keep the servers; the log's last lines are in the reason."""
        site = Site()
        site.probe.answer(":9870", 503, b"")
        site.remote.script("^alive worker2", Said(exit_code=1))
        site.remote.script("^tail ", Said(stdout="java.net.BindException: port in use\n"))
        site.add(cluster())
        site.advance(5)
        self.assertEqual(site.row.status, S.ERROR)
        self.assertIn("DAEMON_DIED: start nodes on demo-worker-002", site.row.status_description)
        self.assertIn("BindException", site.row.status_description)
        self.assertEqual(len(site.cloud.made), 2)

    def test_daemon_that_never_serves_misses_the_stages_deadline(self) -> None:
        """What is still missing is said."""
        site = Site()
        site.probe.answer(":9870", 503, b"")
        site.add(cluster())
        site.advance(110)
        self.assertIn("DAEMON_TIMEOUT", site.row.status_description)
        self.assertIn("daemon serves: status 503", site.row.status_description)

    def test_error_is_retried_from_where_it_stopped(self) -> None:
        """An empty resize goes on: nothing is made again that is there."""
        site = Site()
        site.probe.answer(":9870", 503, b"")
        site.add(cluster())
        site.advance(110)
        self.assertEqual(site.row.status, S.ERROR)
        site.probe.answer(":9870", 200, b"")
        site.change(lambda r: lifecycle.retry(r, site.clock.seconds()))
        site.advance(5)
        self.assertConverged(site, 2)
        self.assertEqual(site.cloud.calls["create_server"], 2)

    def test_cleaned_error_is_retried_from_the_beginning(self) -> None:
        """After a clean-up everything is made anew."""
        site = Site()
        site.cloud.fail("create_server", Fault.QUOTA)
        site.add(rich())
        site.advance(30)
        self.assertEqual(site.leftovers(), [])
        site.change(lambda r: lifecycle.retry(r, site.clock.seconds()))
        site.advance(30)
        self.assertConverged(site, 2)

    def test_disabled_plugin_fails_with_advice(self) -> None:
        """The distribution was taken out of the settings meanwhile."""
        site = Site()
        site.add(cluster(plugin_name="gone"))
        site.advance(5)
        self.assertIn("PLUGIN_GONE", site.row.status_description)


class ScaleTests(ControllerTestCase):
    """Growing, shrinking, and going back."""

    def test_growing_touches_the_new_machine_only(self) -> None:
        """Old machines learn the new hosts and nothing else."""
        site = self.active()
        before = len(site.commands())
        resize(site, worker=3)
        site.advance(10)
        self.assertConverged(site, 3)
        later = site.commands()[before:]
        self.assertEqual(sum("as_root" in c for c in later), 3)
        self.assertEqual([c for c in later if c.startswith("start ")], ["start n100"])
        self.assertEqual([c for c in later if c.startswith("configure ")], ["configure n100"])

    def test_shrinking_decommissions_then_deletes(self) -> None:
        """The highest numbers leave the cluster before their servers go."""
        site = self.active(cluster(group(count=3, volumes_per_node=1)))
        resize(site, worker=1)
        site.advance(30)
        self.assertConverged(site, 1)
        self.assertIn("leave worker3", site.commands())
        self.assertIn("leave worker2", site.commands())
        self.assertEqual(len(site.cloud.disks), 1)

    def test_group_resized_to_none_disappears(self) -> None:
        """Its instances leave, then the group."""
        site = self.active(cluster(group("master", 1), group("worker", 2)))
        resize(site, worker=0)
        site.advance(30)
        self.assertConverged(site, 1)
        self.assertEqual([g.name for g in site.row.node_groups], ["master"])

    def test_shrink_comes_before_growth(self) -> None:
        """One group shrinks and another is added: first Decommissioning, then Spawning."""
        site = self.active()
        began = len(site.events())
        resize(site, worker=1, more=1)
        site.advance(30)
        self.assertConverged(site, 2)
        statuses = [e[0] for e in site.events()[began:] if e[0] in set(S)]
        self.assertEqual(
            statuses,
            ["Decommissioning", "Spawning", "Preparing", "Configuring", "Starting", "Active"],
        )

    def test_failed_growth_goes_back_to_active(self) -> None:
        """What was added is removed, the reason stays readable."""
        site = self.active()
        site.cloud.broken.update({"demo-worker-003": 99})
        resize(site, worker=3)
        site.advance(120)
        self.assertConverged(site, 2)
        self.assertIn("SERVER_ERROR", site.row.status_description)
        self.assertEqual(site.row.node_groups[0].count, 2)

    def test_failed_new_group_disappears_again(self) -> None:
        """The quota is used up: back to what it had."""
        site = self.active()
        site.cloud.fail("create_server", Fault.QUOTA)
        resize(site, more=2)
        site.advance(60)
        self.assertConverged(site, 2)
        self.assertEqual([g.name for g in site.row.node_groups], ["worker"])

    def test_growth_that_fails_to_start_goes_back_too(self) -> None:
        """Also after Configuring a scale keeps what it had."""
        site = self.active()
        site.remote.script("^start n100", Said(exit_code=3, stderr="no java"))
        resize(site, worker=3)
        site.advance(60)
        self.assertConverged(site, 2)
        self.assertIn("COMMAND_FAILED", site.row.status_description)
        self.assertIn("no java", site.row.status_description)

    def test_failed_decommission_keeps_the_nodes(self) -> None:
        """Nodes that do not leave stay."""
        site = self.active(cluster(group(count=3)))
        site.remote.script("^leave", Said(exit_code=1, stderr="under-replicated"))
        resize(site, worker=2)
        site.advance(60)
        self.assertConverged(site, 3)
        self.assertIn("under-replicated", site.row.status_description)
        self.assertEqual(site.commands().count("start worker3"), 2)
        self.assertEqual(site.row.node_groups[0].count, 3)

    def test_vanished_machine_can_be_shrunk_away(self) -> None:
        """What is gone is not asked to leave."""
        site = self.active(cluster(group(count=3)))
        site.advance(60)
        site.cloud.lose(site.row.instances()[2].server_id or "")
        resize(site, worker=2)
        site.advance(60)
        self.assertConverged(site, 2)
        self.assertNotIn("leave worker3", site.commands())

    def test_vanished_machine_stops_growth(self) -> None:
        """A cluster that has lost a machine does not grow, and says why."""
        site = self.active()
        site.advance(60)
        lost = site.row.instances()[0].server_id or ""
        site.cloud.lose(lost)
        resize(site, worker=3)
        site.advance(60)
        self.assertEqual(site.row.status, S.ACTIVE)
        self.assertIn(f"SERVER_VANISHED: server {lost}", site.row.status_description)
        self.assertEqual(len(site.cloud.made), 1)

    def test_next_scale_clears_the_reason(self) -> None:
        """A reason belongs to the request that failed."""
        site = self.active()
        site.cloud.fail("create_server", Fault.QUOTA)
        resize(site, worker=3)
        site.advance(60)
        self.assertIn("QUOTA", site.row.status_description)
        resize(site, worker=3)
        site.advance(60)
        self.assertConverged(site, 3)
        self.assertEqual(site.row.status_description, "")


class DeleteTests(ControllerTestCase):
    """Deletion always ends."""

    def test_deleted_cluster_leaves_nothing(self) -> None:
        """Executions are killed, everything in the cloud goes, then trust and row."""
        site = self.active(rich())
        site.store.clusters.rows[site.row.id] = evolve(site.row, trust_id=site.cloud.give())
        site.change(delete)
        site.advance(30)
        self.assertGone(site)
        self.assertEqual(site.killed, ["c1"])

    def test_delete_at_any_moment_of_a_create_leaves_nothing(self) -> None:
        """The same holds whenever the request comes."""
        for tenths in range(CREATE_TENTHS):
            site = Site()
            site.cloud.slow(0.05)
            site.remote.latency_s = 0.1
            site.cloud.set(boot_s=0.5)
            site.add(rich())
            site.advance(tenths / 10)
            before = site.row.status
            site.change(delete)
            site.advance(120)
            self.assertTrue(site.gone, tenths)
            self.assertEqual(site.leftovers(), [], tenths)
        self.assertEqual(before, S.ACTIVE)

    def test_delete_interrupts_a_long_wait(self) -> None:
        """A command that would take minutes does not hold the deletion up."""
        site = Site()
        site.remote.script("^configure", Said(delay_s=50))
        site.add(cluster())
        site.advance(5)
        self.assertEqual(site.row.status, S.CONFIGURING)
        site.change(delete)
        site.advance(1)
        self.assertEqual(site.cloud.made, {})
        site.advance(30)
        self.assertGone(site)

    def test_slow_deletion_is_waited_for(self) -> None:
        """Groups go when no server is in them any more."""
        site = self.active(rich())
        site.cloud.set(delete_s=40.0)
        site.change(delete)
        site.advance(20)
        self.assertEqual(site.row.status, S.DELETING)
        self.assertEqual(len(site.cloud.security), 1)
        site.advance(60)
        self.assertGone(site)

    def test_failing_deletion_is_repeated(self) -> None:
        """Each resource is tried again until it goes."""
        site = self.active(rich())
        for method in (
            "delete_server",
            "delete_volume",
            "delete_floating_ip",
            "delete_security_group",
            "delete_server_group",
            "find_security_groups",
            "servers",
        ):
            site.cloud.fail(method, Fault.SERVER_ERROR, times=3)
        site.change(delete)
        site.advance(200)
        self.assertGone(site)

    def test_deletion_that_cannot_end_becomes_an_error_that_names_it(self) -> None:
        """The deadline passes: Error, with what is left and why."""
        site = Site(delete_deadline_s=120.0)
        site.add(rich())
        site.advance(30)
        site.cloud.fail("delete_volume", Fault.REFUSED, times=10_000, text="volume is stuck")
        site.change(lambda r: lifecycle.delete(r, False, site.clock.seconds()))
        site.advance(200)
        self.assertEqual(site.row.status, S.ERROR)
        self.assertIn("LEFTOVERS", site.row.status_description)
        self.assertIn("volume volume_demo-worker-001_1", site.row.status_description)
        self.assertIn("volume is stuck", site.row.status_description)
        self.assertEqual(site.row.settled_generation, site.row.generation)

    def test_error_of_a_deletion_can_be_deleted_again(self) -> None:
        """A second delete tries once more."""
        site = Site(delete_deadline_s=60.0)
        site.add(rich())
        site.advance(30)
        site.cloud.fail("delete_volume", Fault.REFUSED, times=30)
        site.change(lambda r: lifecycle.delete(r, False, site.clock.seconds()))
        site.advance(100)
        self.assertEqual(site.row.status, S.ERROR)
        site.cloud.faults.clear()
        site.change(lambda r: lifecycle.delete(r, False, site.clock.seconds()))
        site.advance(60)
        self.assertGone(site)

    def test_forced_deletion_drops_the_record(self) -> None:
        """With force the row goes although something stays."""
        site = self.active(rich())
        site.cloud.fail("delete_volume", Fault.REFUSED, times=10_000)
        site.change(lambda r: lifecycle.delete(r, True, site.clock.seconds()))
        site.advance(60)
        self.assertTrue(site.gone)
        self.assertEqual(len(site.cloud.disks), 4)
        self.assertEqual(site.cloud.made, {})

    def test_forced_deletion_needs_no_cloud(self) -> None:
        """The cloud does not answer at all: the row goes all the same."""
        site = self.active()
        site.cloud.fail("servers", Fault.UNREACHABLE, times=10_000)
        site.change(lambda r: lifecycle.delete(r, True, site.clock.seconds()))
        site.advance(90)
        self.assertTrue(site.gone)

    def test_delete_of_a_failed_create(self) -> None:
        """An Error cluster with nothing left is deleted."""
        site = Site()
        site.cloud.fail("create_server", Fault.QUOTA)
        site.add(cluster())
        site.advance(30)
        self.assertEqual(site.row.status, S.ERROR)
        site.change(delete)
        site.advance(30)
        self.assertGone(site)

    def test_delete_wins_against_a_failure(self) -> None:
        """The request comes while the step that fails is under way."""
        site = Site()
        site.remote.script("^configure", Said(delay_s=5, exit_code=1))
        site.add(cluster())
        site.advance(3)
        site.change(delete)
        site.advance(30)
        self.assertGone(site)

    def test_server_whose_create_was_not_answered_goes_too(self) -> None:
        """It shows up after the deletion began."""
        site = Site()
        site.cloud.set(list_lag_s=15.0)
        site.cloud.fail("create_server", Fault.TIMEOUT, after=True, times=2)
        site.add(cluster())
        site.advance(2)
        site.change(delete)
        site.advance(60)
        self.assertGone(site)


class RestartTests(ControllerTestCase):
    """A restart needs no recovery code."""

    def site(self) -> Site:
        site = Site()
        site.cloud.slow(0.05)
        site.remote.latency_s = 0.1
        site.cloud.set(boot_s=0.5)
        return site

    def test_restart_at_any_moment_of_a_create(self) -> None:
        """However often it is interrupted, nothing is made twice or lost."""
        for tenths in range(CREATE_TENTHS):
            site = self.site()
            site.add(rich())
            site.advance(tenths / 10)
            before = site.row.status
            site.restart()
            site.advance(120)  # what may have been asked for is waited for
            self.assertConverged(site, 2)
            self.assertEqual((len(site.cloud.disks), len(site.cloud.addresses)), (4, 2), tenths)
        self.assertEqual(before, S.ACTIVE)

    def test_restart_at_any_moment_of_a_deletion(self) -> None:
        """It goes on until all is gone."""
        for twentieths in range(DELETE_TWENTIETHS):
            site = self.site()
            site.add(rich())
            site.advance(30)
            site.change(delete)
            site.advance(twentieths / 20)
            over = site.gone
            site.restart()
            site.advance(120)
            self.assertGone(site)
        self.assertTrue(over)

    def test_restart_at_any_moment_of_a_scale(self) -> None:
        """Shrink and growth in one."""
        for tenths in range(SCALE_TENTHS):
            site = self.site()
            site.add(cluster(group(count=2)))
            site.advance(30)
            resize(site, worker=1, more=2)
            site.advance(tenths / 10)
            before = site.row.status
            site.restart()
            site.advance(120)
            self.assertConverged(site, 3)
        self.assertEqual(before, S.ACTIVE)

    def test_restart_during_the_clean_up_of_a_failed_create(self) -> None:
        """The clean-up goes on, and the reason stays."""
        site = self.site()
        site.cloud.set(delete_s=5.0)
        site.remote.script("as_root", Said(exit_code=1))
        site.add(rich())
        for _ in range(200):
            site.advance(0.5)
            if site.row.status is S.ERROR:
                break
        self.assertLess(site.row.settled_generation, 1)
        site.restart()
        site.advance(60)
        self.assertEqual(site.leftovers(), [])
        self.assertEqual(site.row.settled_generation, 1)
        self.assertIn("PREPARE_FAILED", site.row.status_description)

    def test_stop_leaves_no_timer(self) -> None:
        """A parked controller does nothing any more."""
        site = self.site()
        site.add(cluster())
        site.advance(1)
        self.assertNotEqual(site.own_clock.timers(), [])
        run(site.controller.stop())
        self.assertEqual(site.own_clock.timers(), [])


class FirewallTests(ControllerTestCase):
    def test_next_change_gives_the_group_the_openings_of_the_settings(self) -> None:
        """Rules of ports that the settings do not open are closed."""
        site = Site()
        site.add(cluster(openings=()))
        site.advance(60)
        (name,) = site.cloud.security
        site.cloud.open_port(name, 9870)
        site.change(lambda row: evolve(row, openings=(*row.openings, "9870 0.0.0.0/0")))
        resize(site, worker=2)
        site.advance(60)
        self.assertConverged(site, 2)
        self.assertEqual(list(site.cloud.openings.values()), [["22 0.0.0.0/0"]])
        self.assertEqual(site.row.openings, ("22 0.0.0.0/0",))

    def test_new_machine_that_does_not_forward_fails_at_its_first_login(self) -> None:
        """The reason says what to set in the image; no file was written, no daemon started."""
        site = Site()
        site.probe = ForbiddingProbe(site.clock)
        site.restart()
        site.add(cluster(group(count=1)))
        site.advance(60)
        self.assertEqual(site.row.status, S.ERROR)
        self.assertEqual(
            site.row.status_description,
            "MACHINE_UNREACHABLE: demo-worker-001: check AllowTcpForwarding. svcd reaches the "
            "daemons of a machine through its SSH server: set `AllowTcpForwarding yes` in "
            "/etc/ssh/sshd_config of the image",
        )
        self.assertEqual({_kind(ran.command) for ran in site.remote.ran}, {"facts"})
        self.assertEqual(site.leftovers(), [])


class ForbiddingProbe(ScriptedProbe):
    """Machines whose SSH servers do not forward."""

    async def get(self, at: Location, timeout_s: float) -> tuple[int, bytes]:
        if urlsplit(at.url).port == 22:
            raise ProbeError(Fault.FORBIDDEN, "check AllowTcpForwarding")
        return await super().get(at, timeout_s)


class ConflictTests(ControllerTestCase):
    """Who else writes the row."""

    def test_user_who_deletes_between_two_writes_wins(self) -> None:
        """The controller loses the race, keeps what it learned, and deletes."""
        for moment in range(8):
            site = Site()
            site.store.clusters.conflict_next = [lambda r: r] * moment + [delete]
            site.add(cluster())
            site.advance(60)
            self.assertTrue(site.gone, moment)
            self.assertEqual(site.leftovers(), [], moment)

    def test_retry_during_the_clean_up_uses_nothing_that_is_gone(self) -> None:
        """The security group that was removed already is made again."""
        site = Site()
        site.cloud.set(delete_s=5.0)
        site.cloud.fail("create_server", Fault.QUOTA)
        site.add(cluster())
        site.advance(1)
        self.assertEqual((site.row.status, len(site.cloud.made)), (S.ERROR, 1))

        def other(row: Cluster) -> Cluster:
            self.assertEqual(site.cloud.security, {})
            return lifecycle.retry(row, site.clock.seconds())

        site.store.clusters.conflict_next = [other]
        site.advance(120)
        self.assertConverged(site, 2)
        self.assertEqual([site.row.security_group_id], list(site.cloud.security.values()))

    def test_lost_races_lose_no_server(self) -> None:
        """A conflict at every write: still two servers and no third."""
        site = Site()
        site.store.clusters.conflict_next = [lambda r: r] * 12
        site.add(cluster())
        site.advance(60)
        self.assertConverged(site, 2)
        self.assertEqual(site.cloud.calls["create_server"], 2)

    def test_lost_race_records_a_failure_once(self) -> None:
        """The lost write takes its events with it."""
        site = Site()
        site.cloud.slow(0.1)
        site.cloud.fail("create_server", Fault.QUOTA)
        site.add(cluster())
        while "create_server" not in site.cloud.calls:
            site.advance(0.02)
        site.store.clusters.conflict_next = [lambda r: r] * 3
        site.advance(60)
        failed = [step for step, _, outcome in site.events() if outcome == "failed"]
        self.assertEqual(failed, ["create server", "Spawning"])


class BugTests(ControllerTestCase):
    """No exception leaves a cluster silent."""

    def test_bug_is_repeated_then_shown_with_an_incident(self) -> None:
        """After some tries the cluster is in Error with the id that the log has too."""
        site = Site()

        def broken(*_: object) -> object:
            raise ZeroDivisionError("a bug")

        site.distribution.configure = broken  # type: ignore[method-assign, assignment]
        site.add(cluster())
        site.advance(120)
        self.assertEqual(site.row.status, S.ERROR)
        self.assertIn(
            "INTERNAL: ZeroDivisionError in 5 tries, incident", site.row.status_description
        )
        incidents = self.flushLoggedErrors(ZeroDivisionError)
        self.assertEqual(len(incidents), 5)

    def test_database_that_is_away_is_waited_for(self) -> None:
        """No cluster fails because the store did."""
        site = Site()
        site.add(cluster())
        site.store.down = ServiceUnavailable("no database")
        site.advance(300)
        site.store.down = None
        site.advance(120)
        self.assertConverged(site, 2)

    def test_machine_that_is_another_one_is_not_trusted(self) -> None:
        """A changed host key ends the work."""
        site = self.active()
        for each in site.row.instances():
            site.remote.rebuild(each.internal_ip or "")
        resize(site, worker=3)
        site.advance(300)
        self.assertEqual(site.row.status, S.ACTIVE)
        self.assertIn("HOST_KEY_CHANGED", site.row.status_description)
