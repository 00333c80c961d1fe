"""Servers of a real cloud: lists that lag, boots that fail, machines that others touch.

Each test ends by comparing what is in the cloud with what the API shows
(`tests.support.cloud_watch`).
"""

from __future__ import annotations

from typing import Any

from svcd.model.secret import Secret
from tests.support.cloud_watch import NEVER, WatchedCloudTestCase

NO_HOST = "No valid host was found. "


class LaggingListTests(WatchedCloudTestCase):
    """What was made is listed late, what was deleted is listed for a while."""

    def check_life(self, lag_s: float) -> None:
        self.begin(embedded__list_lag_s=str(lag_s), embedded__boot_s="2", embedded__delete_s="2")
        cluster_id = self.create(workers=2, volumes=2)
        self.active(cluster_id)
        self.assertEqual(self.made("compute POST /v2.1/servers"), 3)
        self.assertEqual(self.made("volume POST /v3/<project>/volumes"), 4)
        self.scale(cluster_id, 4)
        self.active(cluster_id)
        self.scale(cluster_id, 1)
        self.active(cluster_id)
        self.assertEqual(self.made("compute POST /v2.1/servers"), 5)
        self.assertEqual(self.made("volume POST /v3/<project>/volumes"), 8)
        self.delete(cluster_id)

    def test_lists_that_are_late(self) -> None:
        """Nothing doubled, nothing lost, by create, scale both ways, delete."""
        for lag_s in (1.0, 12.0, 28.0):  # a list that is 30 s late would be believed
            self.check_life(lag_s)

    def test_delete_while_nothing_is_listed_yet(self) -> None:
        """At any moment of a create or a scale: also what no list shows goes."""
        creating = (0.05, 0.3, 1.0, 3.0, 7.0, 12.0, 13.0, 14.0, 20.0, 25.0, 26.5)
        scaling = (0.05, 1.0, 12.5, 13.0, 14.0, 25.0)
        for scaled, delay_s in [(False, at) for at in creating] + [(True, at) for at in scaling]:
            self.begin(embedded__list_lag_s="12")
            cluster_id = self.create(workers=1, volumes=1, pool="public")
            if scaled:
                self.active(cluster_id)
                self.scale(cluster_id, 2)
            self.svcd.advance(delay_s)
            self.delete(cluster_id)
            self.svcd.advance(60)
            self.check()

    def test_delete_while_only_servers_are_listed(self) -> None:
        """Volumes and addresses that were just asked for are waited for, then removed."""
        for where, path in (("volume", "/volumes/detail"), ("network", "/floatingips")):
            self.begin()
            body = '{"volumes": [], "floatingips": []}'
            late = self.fault(where, method="GET", path=path, status=200, body=body)
            cluster_id = self.create(workers=1, volumes=1, pool="public")
            self.svcd.advance(3)
            self.api.delete(f"/clusters/{cluster_id}")
            self.svcd.advance(15)
            late.remove()
            self.gone(cluster_id)

    def test_unanswered_creates_and_late_lists(self) -> None:
        """What was asked for is waited for, adopted, and not asked for again."""
        self.begin(embedded__list_lag_s="5")
        self.fault("compute", method="POST", path="/servers$", times=3, effect="timeout_after")
        cluster_id = self.create(workers=2)
        self.active(cluster_id)
        self.assertEqual(self.made("compute POST /v2.1/servers"), 3)
        self.delete(cluster_id)


class BootTests(WatchedCloudTestCase):
    """POST /servers is answered 202 before anybody knows whether it works."""

    settings = {"embedded.boot_s": "2"}

    def test_server_in_error_is_replaced(self) -> None:
        """And its remains are removed."""
        cluster_id = self.create()
        self.break_boots(NO_HOST, 2)
        self.active(cluster_id)
        self.assertEqual(self.made("compute POST /v2.1/servers"), 5)
        self.delete(cluster_id)

    def test_ninth_member_of_eight_hosts(self) -> None:
        """Anti-affinity that the cloud cannot keep."""
        self.svcd.cloud.core.hosts = 3
        cluster_id = self.create(workers=4, anti_affinity=["datanode"])
        reason = self.failed(cluster_id)
        self.assertIn("SERVER_ERROR", reason)
        self.assertIn(NO_HOST.strip(), reason)
        self.assertIn("anti_affinity keeps it off the hosts", reason)
        self.check(cluster_id)
        self.delete(cluster_id)

    def test_quota_told_by_the_fault_of_a_server(self) -> None:
        """No use in trying again."""
        cluster_id = self.create(workers=1)
        self.break_boots("Quota exceeded for cores", 1)
        reason = self.failed(cluster_id)
        self.assertTrue(reason.startswith("QUOTA: "), reason)
        self.assertEqual(self.made("compute POST /v2.1/servers"), 2)
        self.check(cluster_id)

    def test_boot_that_never_ends_while_scaling(self) -> None:
        """Back to Active with what it had."""
        cluster_id = self.create(workers=1)
        self.active(cluster_id)
        self.scale(cluster_id, 2)
        self.until(lambda: len(self.servers()) == 3)
        self.change_server(self.servers()[-1], due_at=NEVER)
        self.svcd.advance(60)
        shown = self.active(cluster_id)
        self.assertIn("BOOT_TIMEOUT", shown["status_description"])
        self.assertEqual(len(self.names(cluster_id)), 2)
        self.delete(cluster_id)

    def test_server_group_at_its_limit(self) -> None:
        """403 is a quota here."""
        text = '{"forbidden": {"code": 403, "message": "Quota exceeded, too many server groups."}}'
        self.fault("compute", method="POST", path="/os-server-groups$", status=403, body=text)
        cluster_id = self.create(anti_affinity=["datanode"])
        reason = self.failed(cluster_id)
        self.assertTrue(reason.startswith("QUOTA: "), reason)
        self.assertIn("too many server groups", reason)
        self.check(cluster_id)

    def test_port_in_use(self) -> None:
        """A 409 is not the end: somebody else's race."""
        text = '{"conflictingRequest": {"code": 409, "message": "Port 7 is still in use."}}'
        self.fault("compute", method="POST", path="/servers$", times=2, status=409, body=text)
        cluster_id = self.create()
        self.active(cluster_id)
        self.delete(cluster_id)


class SshTests(WatchedCloudTestCase):
    """ACTIVE is not the same as answering."""

    def test_machine_that_refuses_our_key_at_first(self) -> None:
        """cloud-init has not written it yet."""
        self.svcd.remote.only_key = Secret("not ours")
        cluster_id = self.create(workers=1)
        self.svcd.advance(45)
        self.assertEqual(self.api.cluster(cluster_id)["status"], "Preparing")
        self.svcd.remote.only_key = None
        self.active(cluster_id)
        self.delete(cluster_id)

    def test_machine_that_hangs_while_being_prepared(self) -> None:
        """A command without an end is repeated."""
        self.fault("ssh", path="hosts", times=2, effect="timeout_after")
        cluster_id = self.create(workers=1)
        self.active(cluster_id)
        self.delete(cluster_id)


class HandInTheCloudTests(WatchedCloudTestCase):
    """Servers that others delete or stop."""

    settings = {"embedded.boot_s": "3", "embedded.delete_s": "3"}

    def remove(self, server: Any) -> None:
        self.ask_cloud("DELETE", f"/compute/v2.1/servers/{server.id}")

    def stop(self, server: Any) -> None:
        self.ask_cloud("POST", f"/compute/v2.1/servers/{server.id}/action", {"os-stop": None})
        (port,) = self.state.ports.having("device", server.id)
        self.svcd.remote.take_down(port.address)

    def test_deleted_while_booting(self) -> None:
        """Made again."""
        cluster_id = self.create(workers=2)
        self.svcd.advance(1)
        self.remove(self.servers()[1])
        self.active(cluster_id)
        self.delete(cluster_id)

    def test_deleted_while_being_prepared(self) -> None:
        """Made again, with its volumes and address."""
        self.svcd.remote.only_key = Secret("not ours")
        cluster_id = self.create(workers=2, volumes=1, pool="public")
        self.until(lambda: self.api.cluster(cluster_id)["status"] == "Preparing")
        self.remove(self.servers()[1])
        self.svcd.advance(60)
        self.svcd.remote.only_key = None
        self.active(cluster_id)
        self.delete(cluster_id)

    def test_stopped_while_booting(self) -> None:
        """The deadline ends it; the reason says that it is stopped."""
        cluster_id = self.create(workers=1)
        self.until(lambda: any(s.status == "ACTIVE" for s in self.servers()), by=0.01)
        self.stop(self.servers()[1])
        reason = self.failed(cluster_id)
        self.assertIn("mine-worker-001", reason)
        self.check(cluster_id)
        self.delete(cluster_id)

    def test_deleted_while_active_then_replaced(self) -> None:
        """One empty resize finds it, the next puts another in its place."""
        cluster_id = self.create(workers=3, volumes=1, pool="public")
        self.active(cluster_id)
        self.remove(next(s for s in self.servers() if s.name == "mine-worker-002"))
        self.svcd.advance(40)
        self.api.put(f"/clusters/{cluster_id}", {})
        self.svcd.advance(10)
        shown = self.api.until_status(cluster_id, "Active")
        self.assertRegex(shown["status_description"], "^SERVER_VANISHED: .* of mine-worker-002 is")
        workers = shown["node_groups"][1]["instances"]
        self.assertEqual([i["status"] for i in workers], ["ACTIVE", "DELETED", "ACTIVE"])
        events = self.api.get(f"/clusters/{cluster_id}/events")["events"]
        self.assertIn(
            ("SERVER_VANISHED", "mine-worker-002"), [(e["code"], e["machine"]) for e in events]
        )
        self.api.put(f"/clusters/{cluster_id}", {})
        self.svcd.advance(10)
        shown = self.active(cluster_id)
        self.assertEqual(shown["status_description"], "")
        names = [
            f"mine-{name}" for name in ("master-001", "worker-001", "worker-003", "worker-004")
        ]
        self.assertEqual(self.names(cluster_id), names)
        self.delete(cluster_id)

    def test_master_deleted_while_active(self) -> None:
        """Its data is gone with it: it is named, and no new one is made."""
        cluster_id = self.create(workers=1)
        self.active(cluster_id)
        self.remove(next(s for s in self.servers() if s.name == "mine-master-001"))
        self.svcd.advance(40)
        self.scale(cluster_id, 1)
        self.svcd.advance(10)
        shown = self.api.until_status(cluster_id, "Active")
        self.assertIn("mine-master-001", shown["status_description"])
        refused = self.api.ask("PUT", f"/clusters/{cluster_id}", 400, json={})
        self.assertEqual(refused["error_name"], "NODE_GROUP_CANNOT_BE_SCALED")
        self.delete(cluster_id)

    def test_deleted_while_active_then_shrunk_or_deleted(self) -> None:
        """What is gone needs no removing."""
        cluster_id = self.create(workers=2, volumes=1)
        self.active(cluster_id)
        self.remove(self.servers()[2])
        self.svcd.advance(10)
        self.scale(cluster_id, 1)
        self.active(cluster_id)
        self.remove(self.servers()[0])
        self.svcd.advance(10)
        self.delete(cluster_id)

    def test_stopped_while_active_then_grown(self) -> None:
        """Back to Active with the reason; started again, growing works."""
        cluster_id = self.create(workers=2)
        self.active(cluster_id)
        victim = self.servers()[1]
        self.stop(victim)
        self.svcd.advance(10)
        self.scale(cluster_id, 3)
        self.svcd.advance(60)
        shown = self.active(cluster_id, 3 * 3600)
        self.assertIn(victim.name, shown["status_description"])
        self.assertEqual(len(self.names(cluster_id)), 3)
        self.ask_cloud("POST", f"/compute/v2.1/servers/{victim.id}/action", {"os-start": None})
        (port,) = self.state.ports.having("device", victim.id)
        self.svcd.remote.bring_up(port.address)
        self.svcd.advance(10)
        self.scale(cluster_id, 3)
        self.svcd.advance(60)
        shown = self.active(cluster_id)
        self.assertEqual((len(self.names(cluster_id)), shown["status_description"]), (4, ""))
        self.delete(cluster_id)

    def test_deleted_or_stopped_while_being_deleted(self) -> None:
        """It goes all the same."""
        cluster_id = self.create(workers=3, volumes=1, pool="public")
        self.active(cluster_id)
        self.stop(self.servers()[2])
        self.api.delete(f"/clusters/{cluster_id}")
        self.remove(self.servers()[1])
        self.gone(cluster_id)

    def test_error_while_being_deleted(self) -> None:
        """Deleted again until it is gone."""
        cluster_id = self.create(workers=2, volumes=1, pool="public")
        self.active(cluster_id)
        self.api.delete(f"/clusters/{cluster_id}")
        self.svcd.advance(1)
        for server in self.servers():
            self.assertEqual(server.task_state, "deleting")
            self.change_server(
                server, status="ERROR", desired="ACTIVE", task_state=None, fault="no connection"
            )
        self.gone(cluster_id)
        self.assertGreaterEqual(self.made("compute DELETE /v2.1/servers/<server_id>"), 6)
