"""The controller in a whole service on the virtual clock: what the cloud's and machines' side see.

The awkward answers of clouds are in tests/system (`test_cloud_behaviour` and `test_failures`); a
daemon that dies or loses the lease at any call, and requests at any moment, in tests/simulation.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from svcd import testing
from svcd.embedded.scripted import ScriptedProbe
from svcd.ports.faults import Fault
from svcd.ports.machines import Location, ProbeError
from tests.support.cloud_watch import WatchedCloudTestCase
from tests.system.test_failures import START

SERVERS = "compute POST /v2.1/servers"


class LifeTestCase(WatchedCloudTestCase):
    def events(self, cluster_id: str) -> Any:
        return self.api.get(f"/clusters/{cluster_id}/events")["events"]

    def statuses(self, cluster_id: str, since: int = 0) -> list[str]:
        """The statuses that the story tells after so many events."""
        steps = [event["step"] for event in self.events(cluster_id)[since:]]
        return [step for step in steps if step[:1].isupper()]

    def commands(self, word: str, since: int = 0) -> list[str]:
        """The addresses of the machines that ran a command with this word, in that order."""
        return [ran.address for ran in self.svcd.remote.ran[since:] if word in ran.command]


class CreateTests(LifeTestCase):
    def test_longest_path_leads_from_the_last_step_back_to_the_first_call(self) -> None:
        """A machine that boots slowly is reached in the end; the story tells the wait."""
        self.svcd.remote.latency_s = 0.1
        self.fault("ssh", path="svcd-facts", times=10, effect="refused")
        cluster_id = self.create(workers=1)
        self.active(cluster_id)
        self.assertEqual(
            self.statuses(cluster_id),
            ["Spawning", "Preparing", "Configuring", "Starting", "Active"],
        )
        told = self.api.get(f"/clusters/{cluster_id}/story?change=1")["story"]["change"]
        path = [told["steps"][n]["step"] for n in told["longest_path"]]
        self.assertEqual(
            path,
            [
                "create security group",
                "create server",
                "wait for server",
                "log in",
                "prepare machine",
                "configure",
                "start namenode, resourcemanager, oozie, historyserver",
            ],
        )

    def test_preparation_makes_the_daemons_user_and_mounts_the_volumes_in_order(self) -> None:
        cluster_id = self.create(workers=1, volumes=2)
        self.active(cluster_id)
        worker = self.api.cluster(cluster_id)["node_groups"][1]["instances"][0]
        one, two = worker["volumes"]
        (prepared,) = (ran for ran in self.svcd.remote.ran if f"/dev/vdb {one}" in ran.command)
        self.assertEqual(prepared.address, worker["management_ip"])
        self.assertEqual(
            prepared.command.splitlines()[-3:],
            [
                "account svcd /home/svcd",
                f"volume /dev/vdb {one} /volumes/disk1",
                f"volume /dev/vdc {two} /volumes/disk2",
            ],
        )

    def test_story_tells_what_a_status_waits_for(self) -> None:
        self.begin(embedded__boot_s="100")
        cluster_id = self.create(workers=1)
        self.svcd.advance(60)
        waits = [event for event in self.events(cluster_id) if event["outcome"] == "waiting"]
        self.assertEqual(
            {(event["step"], event["text"]) for event in waits},
            {("Spawning", "server mine-master-001 is BUILD; server mine-worker-001 is BUILD")},
        )

    def test_fast_cloud_is_never_waited_for(self) -> None:
        """What a call has changed is listed at once; work on machines asks for no list."""
        cluster_id = self.create(workers=4, volumes=1)
        self.api.until_status(cluster_id, "Active", 2)
        self.assertLessEqual(self.made("compute GET /v2.1/servers/detail"), 6)
        self.scale(cluster_id, 3)
        self.api.until_status(cluster_id, "Active", 2)
        self.delete(cluster_id, 2)

    def test_rows_are_written_a_pass_not_a_machine(self) -> None:
        """Twenty machines cost as many writes as two."""
        versions = []
        for workers in (2, 20):
            self.begin()
            self.active(self.create(workers=workers))
            connection = self.svcd._database._connection
            (version,) = connection.execute("select version from clusters").fetchone()
            versions.append(version)
        self.assertEqual(versions[0], versions[1])
        self.assertLessEqual(versions[0], 15)

    def test_database_that_is_away_fails_no_cluster(self) -> None:
        cluster_id = self.create()
        away = self.fault("store", effect="refused")
        self.svcd.advance(300)
        away.remove()
        self.active(cluster_id, limit_s=120)

    def test_machine_that_does_not_forward_fails_at_its_first_login(self) -> None:
        """The reason says what to set in the image; no file was written, no daemon started."""
        self.patch(testing, "ScriptedProbe", ForbiddingProbe)
        self.begin()
        told = self.failed(self.create())
        self.assertRegex(
            told,
            "^MACHINE_UNREACHABLE: mine-[a-z]+-00[12]: check AllowTcpForwarding. svcd reaches the "
            "daemons of a machine through its SSH server: set `AllowTcpForwarding yes` in "
            "/etc/ssh/sshd_config of the image",
        )
        self.assertTrue(all("svcd-facts" in ran.command for ran in self.svcd.remote.ran))


class ForbiddingProbe(ScriptedProbe):
    """Machines whose SSH servers do not forward."""

    async def get(self, at: Location, timeout_s: float) -> tuple[int, bytes]:
        if urlsplit(at.url).port == 2222:
            raise ProbeError(Fault.FORBIDDEN, "check AllowTcpForwarding")
        return await super().get(at, timeout_s)


class RetryTests(LifeTestCase):
    def test_login_that_runs_no_commands_is_told_with_its_words(self) -> None:
        """An image that greets and hangs up: the command seems to succeed."""
        self.fault("ssh", path="svcd-facts", status=0, body="Please log in as debian.")
        told = self.failed(self.create(workers=1))
        self.assertTrue(told.startswith("PREPARE_FAILED: "), told)
        self.assertIn(" did not report its facts: Please log in as debian.", told)

    def test_retry_goes_on_where_a_late_failure_stopped(self) -> None:
        """Servers stay after a failed start, and none is made again."""
        fault = self.fault("ssh", path=START, status=1, body="no java")
        cluster_id = self.create()
        self.assertIn("COMMAND_FAILED: ", self.failed(cluster_id))
        fault.remove()
        self.api.put(f"/clusters/{cluster_id}", {"resize_node_groups": []})
        self.assertEqual(self.active(cluster_id)["status_description"], "")
        self.assertEqual(self.made(SERVERS), 3)

    def test_retry_begins_anew_after_the_clean_up_of_an_early_failure(self) -> None:
        self.fault("compute", method="POST", path="/servers$", status=403, times=1, body="Quota ex")
        cluster_id = self.create(volumes=1)
        self.failed(cluster_id)
        self.check()
        self.api.put(f"/clusters/{cluster_id}", {"resize_node_groups": []})
        self.active(cluster_id)

    def test_failed_create_is_kept_when_the_settings_say_so(self) -> None:
        self.begin(provisioning__on_failure="keep")
        self.fault("ssh", path="hosts", status=1, body="sudo: a password is required")
        self.assertIn("PREPARE_FAILED: ", self.failed(self.create()))
        self.assertEqual(len(self.servers()), 3)


class ScaleTests(LifeTestCase):
    def test_growth_touches_the_new_machine_alone(self) -> None:
        """Old machines learn the new hosts and nothing else."""
        cluster_id = self.create()
        self.active(cluster_id)
        before = len(self.svcd.remote.ran)
        self.scale(cluster_id, 3)
        shown = self.active(cluster_id)
        new = shown["node_groups"][1]["instances"][2]["management_ip"]
        self.assertEqual(len(self.commands("as_root", before)), 4)
        self.assertEqual(self.commands("as_root", before)[-1], new)
        self.assertEqual(self.commands(START, before), [new])

    def test_shrink_comes_before_growth(self) -> None:
        """The highest numbers leave the cluster before their servers go; then a group is added."""
        cluster_id = self.create(workers=3, volumes=1)
        self.active(cluster_id)
        began = len(self.events(cluster_id))
        change = {
            "resize_node_groups": [{"name": "worker", "count": 1}],
            "add_node_groups": [{"name": "more", "count": 1, "flavor_id": self.svcd.flavor_id,
                                 "node_processes": ["datanode"]}],
        }  # fmt: skip
        leaving = [
            i["management_ip"]
            for i in self.api.cluster(cluster_id)["node_groups"][1]["instances"][1:]
        ]
        self.api.put(f"/clusters/{cluster_id}", change)
        self.active(cluster_id)
        self.assertEqual(
            self.statuses(cluster_id, began),
            ["Decommissioning", "Spawning", "Preparing", "Configuring", "Starting", "Active"],
        )
        self.assertEqual(sorted(self.commands("rm -f running")), sorted(leaving))
        self.assertEqual(
            self.names(cluster_id), ["mine-master-001", "mine-worker-001", "mine-more-001"]
        )

    def test_growth_that_fails_goes_back_to_active(self) -> None:
        """The added machine is removed; the next request takes its reason away."""
        cluster_id = self.create()
        self.active(cluster_id)
        fault = self.fault("ssh", path=START, status=1, body="no java")
        self.scale(cluster_id, 3)
        self.until(lambda: self.api.cluster(cluster_id)["status"] == "Decommissioning")
        fault.remove()
        self.assertIn("no java", self.active(cluster_id)["status_description"])
        self.assertEqual(self.names(cluster_id)[-1], "mine-worker-002")
        self.scale(cluster_id, 3)
        self.assertEqual(self.active(cluster_id)["status_description"], "")

    def test_next_change_gives_the_security_group_the_openings_of_the_settings(self) -> None:
        cluster_id = self.create()
        self.active(cluster_id)
        self.svcd.restart({"cloud.ssh_cidrs": "10.0.0.0/8"})
        self.scale(cluster_id, 3)
        self.active(cluster_id)
        rules = [r for r in self.state.rules.values() if r.port_min == 2222]
        self.assertEqual({rule.remote_prefix for rule in rules}, {"10.0.0.0/8"})


class DeleteTests(LifeTestCase):
    def test_delete_ends_a_command_that_would_take_long(self) -> None:
        self.fault("ssh", path=START, effect="delay", delay_s=50.0)
        cluster_id = self.create()
        self.until(lambda: self.api.cluster(cluster_id)["status"] == "Starting")
        self.api.delete(f"/clusters/{cluster_id}")
        self.svcd.advance(1)
        self.assertEqual(self.servers(), [])
        self.gone(cluster_id)
