"""Active clusters are looked at: what dies under them is told, and told again when it is well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svcd.embedded.faults import Effect
from svcd.embedded.scripted import Said
from svcd.model.failures import Code
from svcd.ports.machines import Host
from tests.support.cloud_watch import WatchedCloudTestCase
from tests.system.test_failures import START

LOOK = "test -s running"
"""Part of the command by which the fake distribution looks at a machine."""
EVERY_S = 300.0
LISTS = "compute GET /v2.1/servers/detail"


class HealthTestCase(WatchedCloudTestCase):
    """A cluster `mine` with one master and two workers; `address`: machine name -> address."""

    def setUp(self) -> None:
        super().setUp()
        self.cluster_id = self.create()
        self.api.until_status(self.cluster_id, "Active")
        self.address = {i["instance_name"]: i["management_ip"] for i in self.instances().values()}

    def shown(self) -> Any:
        return self.api.cluster(self.cluster_id)

    def instances(self) -> Mapping[str, Any]:
        groups = self.api.cluster(self.cluster_id)["node_groups"]
        return {i["instance_name"]: i for g in groups for i in g["instances"]}

    def why(self) -> str:
        return str(self.shown()["status_description"])

    def story(self) -> list[tuple[str, str, str, str]]:
        """What was told of health: outcome, code, machine, first line of the text."""
        events = self.api.get(f"/clusters/{self.cluster_id}/events")["events"]
        return [
            (e["outcome"], e["code"], e["machine"], e["text"].splitlines()[0])
            for e in events
            if e["step"] == "health"
        ]

    def version(self) -> int:
        connection = self.svcd._database._connection
        row = connection.execute("select version from clusters").fetchone()
        return int(row[0])

    def server(self, name: str) -> Any:
        return next(s for s in self.servers() if s.name == name)

    def take(self, name: str) -> str:
        """Somebody deletes the server of a machine; its id."""
        server = self.server(name)
        self.ask_cloud("DELETE", f"/compute/v2.1/servers/{server.id}")
        return str(server.id)

    def act(self, name: str, what: str) -> None:
        path = f"/compute/v2.1/servers/{self.server(name).id}/action"
        self.ask_cloud("POST", path, {what: None})

    def kill(self, name: str) -> None:
        """The daemons of a machine are dead."""
        address = self.address[name]

        def answer(host: Host, command: str, stdin: bytes) -> Said:
            return Said(exit_code=1) if host.address == address else Said()

        self.svcd.remote.script(LOOK, answer)

    def heal(self) -> None:
        self.svcd.remote.script(LOOK, Said())

    def metric(self) -> float:
        text = self.svcd.call("GET", "/metrics").body.decode()
        [line] = [x for x in text.splitlines() if x.startswith("svcd_clusters_unwell ")]
        return float(line.split()[1])


class ServerTests(HealthTestCase):
    def test_a_deleted_server_is_told_and_its_instance_shows_it(self) -> None:
        """One look suffices: the cloud is asked for the server itself."""
        server_id = self.take("mine-worker-002")
        self.svcd.advance(EVERY_S + 15)
        shown = self.shown()
        self.assertEqual(shown["status"], "Active")
        reason = f"server {server_id} of mine-worker-002 is gone"
        self.assertEqual(
            shown["status_description"],
            f"SERVER_VANISHED: {reason} ({Code.SERVER_VANISHED.advice})",
        )
        self.assertEqual(self.instances()["mine-worker-002"]["status"], "DELETED")
        self.assertEqual(self.instances()["mine-worker-001"]["status"], "ACTIVE")
        told = ("failed", "SERVER_VANISHED", "mine-worker-002", shown["status_description"])
        self.assertEqual(self.story(), [told])
        self.assertEqual(self.metric(), 1.0)

    def test_an_empty_resize_replaces_it_at_once(self) -> None:
        """What was found needs no second request; afterwards nothing is told any more."""
        self.take("mine-worker-002")
        self.svcd.advance(EVERY_S + 15)
        self.api.put(f"/clusters/{self.cluster_id}", {})
        self.api.until_status(self.cluster_id, "Active")
        self.assertEqual(self.why(), "")
        self.assertEqual(
            sorted(self.instances()), ["mine-master-001", "mine-worker-001", "mine-worker-003"]
        )
        self.svcd.advance(2 * EVERY_S)
        self.assertEqual(self.why(), "")
        self.assertEqual(self.metric(), 0.0)

    def test_nothing_new_writes_nothing(self) -> None:
        """Neither when all is well nor when the same is found again."""
        before = self.version()
        self.svcd.advance(3 * EVERY_S)
        self.assertEqual(self.version(), before)
        self.take("mine-worker-002")
        self.svcd.advance(EVERY_S + 15)
        once, updated = self.version(), self.shown()["updated_at"]
        self.assertEqual(once, before + 1)
        self.svcd.advance(3 * EVERY_S)
        self.assertEqual((self.version(), self.shown()["updated_at"]), (once, updated))
        self.assertEqual(len(self.story()), 1)

    def test_a_server_that_a_list_lacks_is_not_missed(self) -> None:
        """Lists lag; asked for by its id the server is there."""
        answer = '{"servers": []}'
        self.fault("compute", method="GET", path="/servers/detail", effect=Effect.ANSWER,
                   status=200, body=answer, times=50)  # fmt: skip
        self.svcd.advance(2 * EVERY_S)
        self.assertEqual((self.why(), self.story()), ("", []))

    def test_a_stopped_server_is_told_after_two_looks_until_it_runs(self) -> None:
        """Its status is shown meanwhile; the story tells beginning and end."""
        self.act("mine-worker-001", "os-stop")
        self.svcd.advance(EVERY_S + 60)
        server_id = self.server("mine-worker-001").id
        self.assertTrue(
            self.why().startswith(
                f"SERVER_DOWN: server {server_id} of mine-worker-001 is SHUTOFF\nstart the server"
            )
        )
        self.assertEqual(self.instances()["mine-worker-001"]["status"], "SHUTOFF")
        self.act("mine-worker-001", "os-start")
        self.svcd.advance(75)
        self.assertEqual(self.why(), "")
        self.assertEqual(self.instances()["mine-worker-001"]["status"], "ACTIVE")
        begun, ended = self.story()
        self.assertEqual(begun[:3], ("failed", "SERVER_DOWN", "mine-worker-001"))
        self.assertEqual(ended[:3], ("done", "", "mine-worker-001"))
        self.assertRegex(
            ended[3], r"\Aserver of mine-worker-001 is well again after \d+ s; all is well\Z"
        )
        self.assertEqual(self.metric(), 0.0)


class DaemonTests(HealthTestCase):
    def test_a_dead_daemon_is_told_until_it_lives(self) -> None:
        """With the machine, the processes, and what the distribution advises."""
        self.kill("mine-worker-001")
        self.svcd.advance(EVERY_S + 60)
        self.assertEqual(
            self.why(),
            "DAEMON_DOWN: datanode, nodemanager on mine-worker-001: exit code 1\n"
            "log in to the machine and check the folder svcd-fake in the home folder",
        )
        self.assertEqual(self.shown()["status"], "Active")
        self.assertEqual(self.metric(), 1.0)
        self.heal()
        self.svcd.advance(75)
        self.assertEqual(self.why(), "")
        outcomes = [(o, c) for o, c, _, _ in self.story()]
        self.assertEqual(outcomes, [("failed", "DAEMON_DOWN"), ("done", "")])

    def test_a_daemon_that_is_restarted_between_two_looks_is_not_told(self) -> None:
        """The first look finds it dead, the second one alive."""
        self.kill("mine-worker-001")
        self.until(lambda: any(LOOK in r.command for r in self.svcd.remote.ran), 400.0, 1.0)
        self.heal()
        self.svcd.advance(2 * EVERY_S)
        self.assertEqual((self.why(), self.story()), ("", []))

    def test_a_second_trouble_is_told_beside_the_first(self) -> None:
        """And the first ends by itself."""
        self.kill("mine-worker-001")
        self.svcd.advance(EVERY_S + 60)
        self.take("mine-worker-002")
        self.svcd.advance(75)
        self.assertIn("SERVER_VANISHED: ", self.why())
        self.assertIn("DAEMON_DOWN: ", self.why())
        self.heal()
        self.svcd.advance(75)
        self.assertIn("SERVER_VANISHED: ", self.why())
        self.assertNotIn("DAEMON_DOWN: ", self.why())
        self.assertNotIn("all is well", self.story()[-1][3])

    def test_a_machine_that_cannot_be_reached_is_told(self) -> None:
        """The cloud calls its server ACTIVE."""
        self.svcd.remote.take_down(self.address["mine-worker-001"])
        self.svcd.advance(EVERY_S + 60)
        self.assertTrue(self.why().startswith("MACHINE_UNREACHABLE: "), self.why())
        self.svcd.remote.bring_up(self.address["mine-worker-001"])
        self.svcd.advance(75)
        self.assertEqual(self.why(), "")

    def test_a_silent_engine_is_told(self) -> None:
        """It is asked by HTTP."""
        self.fault("probe", path="/oozie/v1/admin/os-env", effect=Effect.REFUSED, times=10**6)
        self.svcd.advance(EVERY_S + 60)
        self.assertTrue(
            self.why().startswith("DAEMON_DOWN: the workflow engine on mine-master-001: ")
        )

    def test_a_job_that_waits_in_vain_has_its_cluster_looked_at_soon(self) -> None:
        """Within a minute and not within five."""
        self.svcd.advance(EVERY_S + 60)
        self.fault("engine", effect=Effect.REFUSED, times=1000)
        self.fault("probe", path="/oozie/v1/admin/os-env", effect=Effect.REFUSED, times=10**6)
        began = self.svcd.clock.seconds()
        self.api.execute(self.api.new_job(), self.cluster_id, self.api.new_sources())
        self.until(lambda: "the workflow engine on" in self.why(), 120.0, 1.0)
        self.assertLess(self.svcd.clock.seconds() - began, 60.0)


class CloudTests(HealthTestCase):
    def test_a_cloud_that_is_away_changes_nothing(self) -> None:
        """Not even when servers are gone; it is told once it answers again."""
        self.take("mine-worker-002")
        away = self.fault("compute", effect=Effect.REFUSED, times=10**6)
        before = self.version()
        self.svcd.advance(4 * EVERY_S)
        self.assertEqual((self.why(), self.version()), ("", before))
        away.remove()
        self.svcd.advance(EVERY_S + 75)
        self.assertIn("SERVER_VANISHED", self.why())


class TrustTests(HealthTestCase):
    settings = {"auth.mode": "keystone"}

    def test_a_lost_trust_is_told_and_a_request_brings_a_new_one(self) -> None:
        """As its own reason; the daemons are looked at all the same."""
        for trust in list(self.state.trusts.values()):
            self.state.trusts.remove(trust.id)
        for token in list(self.state.tokens.values()):
            self.state.tokens.remove(token.id)
        self.kill("mine-worker-001")
        self.svcd.advance(EVERY_S + 60)
        self.assertIn("CREDENTIALS_EXPIRED: ", self.why())
        self.assertIn("DAEMON_DOWN: ", self.why())
        self.heal()
        self.api.put(f"/clusters/{self.cluster_id}", {})
        self.api.until_status(self.cluster_id, "Active")
        self.svcd.advance(2 * EVERY_S)
        self.assertEqual(self.why(), "")
        self.delete(self.cluster_id)


class RequestTests(HealthTestCase):
    """What is asked for while a look is under way wins."""

    def during_a_look(self) -> None:
        """A look has begun, found the workers' daemons dead once, and waits for an answer."""
        self.kill("mine-worker-001")
        self.until(lambda: any(LOOK in r.command for r in self.svcd.remote.ran), 400.0, 1.0)
        looks = self.made(LISTS)
        self.fault("ssh", path=LOOK, effect=Effect.DELAY, delay_s=20.0, times=3)
        self.until(lambda: self.made(LISTS) > looks, 60.0, 0.5)

    def test_a_resize_is_not_disturbed(self) -> None:
        """What the look has found of the old size is dropped, and found again later."""
        self.during_a_look()
        self.scale(self.cluster_id, 3)
        shown = self.api.until_status(self.cluster_id, "Active", 200.0)
        self.assertEqual(shown["status_description"], "")
        self.assertEqual(len(self.instances()), 4)
        self.svcd.advance(EVERY_S + 60)
        self.assertIn("datanode, nodemanager on mine-worker-001", self.why())

    def test_a_deletion_is_not_disturbed(self) -> None:
        """The cluster goes, and so does what was remembered of it."""
        self.during_a_look()
        self.delete(self.cluster_id, 200.0)
        self.svcd.advance(2 * EVERY_S)
        daemon: Any = self.svcd._daemon
        self.assertEqual(daemon.health_checks._kept, {})

    def test_a_restart_begins_anew(self) -> None:
        """What was told stays told, and ends when it is well."""
        self.kill("mine-worker-001")
        self.svcd.advance(EVERY_S + 60)
        self.svcd.restart()
        self.assertIn("DAEMON_DOWN", self.why())
        self.svcd.advance(EVERY_S + 15)
        self.assertEqual(len(self.story()), 1)
        self.heal()
        self.svcd.advance(75)
        self.assertEqual(self.why(), "")

    def test_a_failed_resize_stays_told_beside(self) -> None:
        """The reason of a request is not emptied by a look."""
        self.svcd.remote.script(START, Said(exit_code=1))
        self.scale(self.cluster_id, 3)
        self.svcd.advance(1.0)
        self.api.until_status(self.cluster_id, "Active")
        failed = self.why()
        self.assertTrue(failed.startswith("COMMAND_FAILED: "), failed)
        self.kill("mine-worker-001")
        self.svcd.advance(EVERY_S + 60)
        self.assertTrue(self.why().startswith(failed + "\nDAEMON_DOWN: "), self.why())
        self.heal()
        self.svcd.advance(75)
        self.assertEqual(self.why(), failed)


class NeverTests(HealthTestCase):
    settings = {"provisioning.health_poll_s": "0"}

    def test_without_looks_nothing_is_found(self) -> None:
        """Zero turns them off."""
        self.take("mine-worker-002")
        looks = self.made(LISTS)
        self.svcd.advance(3 * EVERY_S)
        self.assertEqual((self.why(), self.made(LISTS)), ("", looks))
