"""Clusters that end by themselves, in a whole service on the virtual clock.

Transient ones after their last execution, others after a time without use or at an age. The times
themselves are in decide/test_endings by literals.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from svcd.model.ids import ClusterId, ExecutionId, seconds_of, timestamp
from svcd.ports.store import Tx
from svcd.provisioning.act.endings import AT_ONCE
from tests.support.cloud_watch import WatchedCloudTestCase
from tests.system.test_failures import START


class TransientTests(WatchedCloudTestCase):
    def transient(self) -> str:
        return self.create(is_transient=True)

    def execute(self, cluster_id: str) -> str:
        return self.api.execute(self.api.new_job(), cluster_id, self.api.new_sources())

    def status(self, cluster_id: str) -> Any:
        return self.api.cluster(cluster_id)["status"]

    def test_cluster_stays_until_it_has_had_an_execution(self) -> None:
        cluster_id = self.transient()
        self.api.until_status(cluster_id, "Active")
        self.svcd.advance(300)
        self.assertEqual(self.status(cluster_id), "Active")
        execution_id = self.execute(cluster_id)
        self.svcd.advance(3)
        self.assertEqual(self.status(cluster_id), "Active")
        self.api.until_over(execution_id)
        self.gone(cluster_id, 120)

    def test_cluster_stays_while_another_execution_goes_on(self) -> None:
        cluster_id = self.transient()
        short = self.execute(cluster_id)
        job = self.api.get("/jobs")["jobs"][0]["id"]
        sources = self.api.new_sources("more")
        long = self.api.execute(job, cluster_id, sources, {"svcd.fake.run_s": "200"})
        self.api.until_over(short)
        self.svcd.advance(100)
        self.assertEqual(self.status(cluster_id), "Active")
        self.api.until_over(long)
        self.gone(cluster_id, 120)

    def test_cluster_in_error_goes_too_unless_failures_are_kept(self) -> None:
        """Its executions have failed, and nobody can use it."""
        for on_failure in ("remove", "keep"):
            self.begin(provisioning__on_failure=on_failure)
            self.fault("ssh", path=START, status=1)
            cluster_id = self.transient()
            self.api.until_over(self.execute(cluster_id))
            if on_failure == "remove":
                self.gone(cluster_id, 200)
            else:
                self.svcd.advance(300)
                self.assertEqual(self.status(cluster_id), "Error")

    def test_cluster_whose_deletion_failed_is_left_to_its_owner(self) -> None:
        """Its description names what is left."""
        self.begin(provisioning__delete_deadline_s="100")
        stuck = self.fault("compute", method="DELETE", path="/servers/", status=500)
        cluster_id = self.transient()
        self.api.until_over(self.execute(cluster_id))
        self.assertIn("LEFTOVERS: ", self.failed(cluster_id))
        stuck.remove()
        self.svcd.advance(300)
        self.assertEqual(self.status(cluster_id), "Error")


class LimitedTests(WatchedCloudTestCase):
    """Idle time and age."""

    def begin(self, **more: str) -> None:
        super().begin(**more)
        self.fault("compute", method="DELETE", path="/servers/", effect="delay", delay_s=5.0)

    def version(self, cluster_id: str) -> int:
        """The number of writes of its row."""
        daemon: Any = self.svcd._daemon
        read = daemon.services.store.read(lambda tx: tx.clusters.endings())
        versions = self.successResultOf(Deferred.fromCoroutine(read))
        return int(versions[cluster_id])

    def shown(self, cluster_id: str) -> Any:
        """The cluster; None when it is gone."""
        found = [c for c in self.api.get("/clusters")["clusters"] if c["id"] == cluster_id]
        return found[0] if found else None

    def events(self, cluster_id: str) -> list[Any]:
        return list(self.api.get(f"/clusters/{cluster_id}/events")["events"])

    def warnings(self, cluster_id: str) -> list[tuple[str, str]]:
        found = [e for e in self.events(cluster_id) if e["step"] == "end"]
        return [(e["outcome"], e["until"] or "") for e in found]

    def idle(self, **more: Any) -> tuple[str, float]:
        """An Active cluster that nobody uses, with idle_delete_s 600; when svcd deletes it."""
        cluster_id = self.create(**{"idle_delete_s": 600, **more})
        self.api.until_status(cluster_id, "Active")
        self.until(lambda: "idle_since" in self.shown(cluster_id), 40)
        shown = self.shown(cluster_id)
        end = seconds_of(shown["delete_at"])
        self.assertEqual(end - seconds_of(shown["idle_since"]), 600)
        return cluster_id, end

    def put(self, cluster_id: str, status: int = 202, **body: Any) -> Any:
        return self.api.put(f"/clusters/{cluster_id}", body, status)

    def until_clock(self, moment: float) -> None:
        self.svcd.advance(moment - self.svcd.clock.seconds())

    def execute(self, cluster_id: str, run_s: int = 10) -> str:
        """The id of an execution."""
        configs = {"svcd.fake.run_s": str(run_s)}
        return self.api.execute(self.api.new_job(), cluster_id, self.api.new_sources(), configs)

    def test_idle_cluster_is_warned_of_and_deleted_at_the_time_it_shows(self) -> None:
        cluster_id, end = self.idle()
        version = self.version(cluster_id)
        self.until_clock(end - 60.5)
        self.assertEqual(self.warnings(cluster_id), [])
        self.assertEqual(self.version(cluster_id), version)  # a look writes nothing
        self.until_clock(end - 0.5)
        self.assertEqual([outcome for outcome, _ in self.warnings(cluster_id)], ["waiting"])
        self.assertEqual(self.shown(cluster_id)["status"], "Active")
        self.until_clock(end + 0.1)
        reason = "deleted by itself: it was not used for 10 min (idle_delete_s)"
        shown = self.shown(cluster_id)
        self.assertEqual((shown["status"], shown["status_description"]), ("Deleting", reason))
        self.assertNotIn("delete_at", shown)
        record = {k: v for k, v in self.svcd.audited[-1].items() if k != "time"}
        self.assertEqual(
            record,
            {
                "user_name": "svcd",
                "project": self.svcd.tenant,
                "action": "DELETE cluster",
                "target": cluster_id,
                "name": shown["name"],
                "reason": reason,
                "outcome": "accepted",
            },
        )
        asked = [e for e in self.events(cluster_id) if e["step"] == "request"]
        self.assertEqual(asked[-1]["text"], f"delete: {reason}")
        self.assertIsNone(self.api.get(f"/clusters/{cluster_id}/story")["story"]["failure"])
        self.put(cluster_id, 400, keep_until="2030-01-01T00:00Z")
        refused = self.api.post(
            f"/jobs/{self.api.new_job()}/execute", {"cluster_id": cluster_id}, 400
        )
        self.assertIn("Deleting", refused["error_message"])
        self.gone(cluster_id, 120)

    def test_job_keeps_it_and_the_time_begins_anew(self) -> None:
        cluster_id, end = self.idle()
        self.until_clock(end - 30)
        execution = self.execute(cluster_id, run_s=700)
        self.until_clock(end + 1)
        self.assertEqual(self.shown(cluster_id)["status"], "Active")
        self.assertEqual([o for o, _ in self.warnings(cluster_id)], ["waiting", "done"])
        ended = seconds_of(self.api.until_over(execution)["updated_at"])
        self.until(lambda: "idle_since" in self.shown(cluster_id), 90)
        self.assertGreaterEqual(seconds_of(self.shown(cluster_id)["idle_since"]), ended)
        self.gone(cluster_id, 800)

    def test_job_that_has_come_and_gone_between_two_looks_is_use(self) -> None:
        cluster_id, end = self.idle()
        self.svcd.advance(65)
        self.api.until_over(self.execute(cluster_id))
        self.until_clock(end + 1)
        self.assertEqual(self.shown(cluster_id)["status"], "Active")

    def test_use_that_cannot_be_asked_is_not_idle(self) -> None:
        cluster_id, end = self.idle()
        away = self.fault("engine", path="/admin/", status=500)
        self.until_clock(end + 600)
        self.assertNotIn("delete_at", self.shown(cluster_id))
        away.remove()
        self.gone(cluster_id, 800)

    def test_keep_until_prolongs_without_another_change(self) -> None:
        cluster_id, end = self.idle()
        before = self.shown(cluster_id)
        keep = end + 3600
        self.until_clock(end - 5)
        shown = self.put(cluster_id, keep_until=_iso(keep))["cluster"]
        self.assertEqual(seconds_of(shown["delete_at"]), keep)
        same = ("status", "generation", "accepted_at", "node_groups")
        self.assertEqual([shown.get(n) for n in same], [before.get(n) for n in same])
        last = self.events(cluster_id)[-1]
        self.assertEqual((last["step"], last["outcome"]), ("request", "done"))
        self.until_clock(keep - 1)
        self.assertEqual(self.shown(cluster_id)["status"], "Active")
        self.assertEqual([o for o, _ in self.warnings(cluster_id)], ["waiting", "waiting"])
        self.until_clock(keep + 0.1)
        self.assertEqual(self.shown(cluster_id)["status"], "Deleting")

    def test_age_ends_a_cluster_with_a_running_job(self) -> None:
        cluster_id = self.create(max_age_s=900)
        end = seconds_of(self.shown(cluster_id)["delete_at"])
        self.api.until_status(cluster_id, "Active")
        execution = self.execute(cluster_id, run_s=5000)
        self.until_clock(end - 0.5)
        self.assertEqual(self.shown(cluster_id)["status"], "Active")
        self.until_clock(end + 0.1)
        self.assertEqual(self.shown(cluster_id)["status"], "Deleting")
        shown = self.api.until_over(execution)
        self.assertEqual(shown["info"]["status"], "KILLED")
        self.assertIn("was deleted by itself: it is older than 15 min (max_age_s)", str(shown))
        self.gone(cluster_id, 120)

    def test_age_waits_for_no_place(self) -> None:
        """While slow clusters of others have all places for questions."""
        daemon: Any = self.svcd._daemon
        for number in range(AT_ONCE):
            taken = daemon.endings._places.take((f"tenant{number}",), number)
            self.assertFalse(self.successResultOf(Deferred.fromCoroutine(taken)))
        aged = self.create(max_age_s=900)
        idle = self.create(idle_delete_s=600, name="idle")
        end = seconds_of(self.shown(aged)["delete_at"])
        self.until_clock(end + 0.1)
        self.assertEqual(self.shown(aged)["status"], "Deleting")
        self.assertNotIn("idle_since", self.shown(idle))

    def test_age_that_is_over_already_warns_for_a_minute(self) -> None:
        cluster_id = self.api.active_cluster()
        self.svcd.advance(500)
        shown = self.put(cluster_id, max_age_s=60)["cluster"]
        end = seconds_of(shown["delete_at"])
        self.assertGreaterEqual(end, self.svcd.clock.seconds() + 59.9)
        self.assertEqual([o for o, _ in self.warnings(cluster_id)], ["waiting"])
        self.put(cluster_id, max_age_s=60)  # puts nothing off
        self.until_clock(end - 0.5)
        self.assertEqual(self.shown(cluster_id)["status"], "Active")
        self.assertEqual(seconds_of(self.shown(cluster_id)["delete_at"]), end)
        self.until_clock(end + 0.1)
        self.assertEqual(self.shown(cluster_id)["status"], "Deleting")
        self.assertEqual(len(self.warnings(cluster_id)), 1)

    def test_daemon_that_was_down_warns_first(self) -> None:
        cluster_id, end = self.idle()
        self.svcd.kill()
        self.until_clock(end + 5000)
        self.svcd.restart()
        self.svcd.advance(60)
        self.assertEqual([o for o, _ in self.warnings(cluster_id)], ["waiting"])
        self.assertEqual(self.shown(cluster_id)["status"], "Active")
        self.gone(cluster_id, 120)

    def test_next_daemon_ends_it_once_and_not_before_its_time(self) -> None:
        """The former one dies before and after the warning, in the last look, and in the deletion.

        The next one comes seconds later.
        """
        for moment in (-61.0, -58.0, -0.5, 0.5, 4.0):
            self.begin()
            cluster_id, end = self.idle()
            self.until_clock(end + min(moment, -1.0))
            slow = self.fault("engine", path="/admin/", effect="delay", delay_s=3.0)
            self.until_clock(end + moment)
            self.svcd.kill()
            slow.remove()
            self.svcd.advance(2.0)
            self.svcd.restart()
            while self.shown(cluster_id)["status"] == "Active":
                self.svcd.advance(0.5)
            self.assertGreaterEqual(self.svcd.clock.seconds(), end, moment)
            self.assertLess(self.svcd.clock.seconds(), end + 40, moment)
            asked = [e["text"][:6] for e in self.events(cluster_id) if e["step"] == "request"]
            self.assertEqual(asked[1:], ["delete"])
            self.assertEqual([o for o, _ in self.warnings(cluster_id)], ["waiting"])
            self.gone(cluster_id, 120)

    def test_execution_that_is_inserted_before_the_deletion_prevents_it(self) -> None:
        """Between the last look and its transaction."""
        cluster_id, end = self.idle()
        execution = self.api.until_over(self.execute(cluster_id))["id"]
        self.until(lambda: seconds_of(self.shown(cluster_id)["idle_since"]) > end - 600, 90)
        end = seconds_of(self.shown(cluster_id)["delete_at"])
        daemon: Any = self.svcd._daemon
        store = daemon.services.store

        async def insert(cluster: ClusterId) -> bool:
            async def work(tx: Tx) -> None:
                row = await tx.executions.find(execution)
                assert row is not None
                new = evolve(row, id=ExecutionId("new"), created_at=timestamp(end))
                await tx.executions.add(new)

            daemon.endings._held = None
            await store.tx(work)
            return False

        daemon.endings._held = insert
        self.until_clock(end + 5)
        self.assertEqual(self.shown(cluster_id)["status"], "Active")
        self.assertGreaterEqual(seconds_of(self.shown(cluster_id)["idle_since"]), end)

    def test_failed_cluster_goes_at_its_age_though_failures_are_kept(self) -> None:
        self.begin(provisioning__on_failure="keep")
        self.fault("ssh", path=START, status=1)
        cluster_id = self.create(max_age_s=3600, idle_delete_s=60, is_transient=True)
        self.failed(cluster_id, 1800)
        self.svcd.advance(600)
        self.assertEqual(self.shown(cluster_id)["status"], "Error")
        self.gone(cluster_id, 3600)

    def test_change_begins_the_idle_time_anew_and_keeps_the_age(self) -> None:
        """A cluster that is not Active is not idle."""
        cluster_id, end = self.idle()
        self.until_clock(end - 100)
        self.scale(cluster_id, 3)
        self.until_clock(end + 1)
        self.assertNotEqual(self.shown(cluster_id)["status"], "Deleting")

    def test_bad_values_are_refused_and_change_nothing(self) -> None:
        cluster_id = self.create(max_age_s=900)
        version = self.version(cluster_id)
        numbers = (None, -1, 1, 59, 315_360_001, 10**30, 1.5, "600", True, [600])
        times = (
            None,
            "",
            "tomorrow",
            "2030-13-01 00:00",
            "2000-01-01T00:00Z",
            "2030-01-01T00:00+01:00",
            5,
        )
        for name, values in {
            "idle_delete_s": numbers,
            "max_age_s": numbers,
            "keep_until": times,
        }.items():
            for value in values:
                refused = self.put(cluster_id, 400, **{name: value})
                self.assertIn(f"$.{name}: ", refused["error_message"])
                if name != "keep_until" and value is not None:
                    more = {name: value, "name": "other"}
                    self.api.post("/clusters", self.body(**more), 400)
        self.assertEqual(self.version(cluster_id), version)
        self.put(cluster_id, max_age_s=0, keep_until="9999-12-31T23:59:59Z")
        shown = self.shown(cluster_id)
        self.assertNotIn("max_age_s", shown)
        self.assertNotIn("delete_at", shown)

    def test_dry_run_shows_faults_and_no_work(self) -> None:
        cluster_id = self.create(max_age_s=900)
        plan = f"/clusters/{cluster_id}?dry_run=true"
        shown = self.api.ask("PUT", plan, 200, json={"max_age_s": 800})["plan"]
        self.assertEqual((shown["machines"], shown["stages"]), ([], []))
        self.api.ask("PUT", plan, 400, json={"max_age_s": 1})
        self.assertEqual(self.shown(cluster_id)["max_age_s"], 900)


class VersionTests(WatchedCloudTestCase):
    """v1.0 neither takes nor shows nor inherits them; the operator's maxima hold for it too."""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return self.svcd.call(method, f"/v1.0/{self.svcd.tenant}{path}", json=body)

    def test_v1_0(self) -> None:
        self.begin(provisioning__max_idle_s="3000", provisioning__max_age_s="9000")
        template = {**self.body(name="t"), "idle_delete_s": 600, "max_age_s": 700}
        del template["user_keypair_id"]
        made = self.api.post("/cluster-templates", template)["cluster_template"]
        refused = self.ask("POST", "/clusters", {**self.body(), "idle_delete_s": 600})
        self.assertEqual(refused.status, 400)
        self.assertIn("idle_delete_s: unknown field of v1.0", refused.json["error_message"])
        body = {**self.body(), "cluster_template_id": made["id"]}
        answer = self.ask("POST", "/clusters", body).json["cluster"]
        self.assertEqual({"idle_delete_s", "max_age_s", "delete_at"} & set(answer), set())
        shown = self.api.cluster(answer["id"])
        self.assertEqual((shown["idle_delete_s"], shown["max_age_s"]), (3000, 9000))
        of_1_1 = self.api.post("/clusters", {**body, "name": "other"})["cluster"]
        self.assertEqual((of_1_1["idle_delete_s"], of_1_1["max_age_s"]), (600, 700))
        put = self.ask("PUT", f"/clusters/{answer['id']}", {"keep_until": "2030-01-01T00:00Z"})
        self.assertEqual(put.status, 400)


def _iso(seconds: float) -> str:
    return timestamp(seconds).replace(" ", "T") + "Z"
