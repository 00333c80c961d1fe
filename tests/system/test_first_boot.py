"""First-boot scripts of node groups, from the request to the machines, in memory."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.faults import Effect
from svcd.testing import FakeServiceMixin, FaultRule
from tests.support.fakes import WORKER, Api, cluster_body

FIRST, SECOND = "a.sh mine-worker-00", "b.sh mine-worker-00"


class FirstBootTests(FakeServiceMixin, SynchronousTestCase):
    def setUp(self) -> None:
        self.svcd = self.fake_service()
        self.api = Api(self.svcd)
        self.ids = {name: self.stored(name) for name in ("a.sh", "b.sh")}

    def stored(self, name: str, content: bytes = b"echo begin\n") -> str:
        answer = self.api.ask("PUT", f"/job-binary-internals/{name}", 202, data=content)
        return str(answer["job_binary_internal"]["id"])

    def body(self, *scripts: str, workers: int = 2) -> dict[str, Any]:
        body = cluster_body(self.svcd, "mine", workers)
        body["node_groups"][1]["init_scripts"] = list(scripts)
        return body

    def created(self, *scripts: str) -> str:
        return str(self.api.post("/clusters", self.body(*scripts))["cluster"]["id"])

    def runs(self) -> list[str]:
        """Script and machine of each run so far."""
        said = []
        for ran in self.svcd.remote.ran:
            first = ran.command.partition("\n")[0]
            if first.startswith(": svcd-script "):
                said.append(first.removeprefix(": svcd-script "))
                self.assertEqual(ran.stdin, b"echo begin\n")
        return said

    def broken(self, path: str, **fault: Any) -> None:
        self.svcd.faults.add(FaultRule(where="ssh", path=path, **fault))

    def events(self, cluster_id: str, step: str) -> list[tuple[str, str, str]]:
        events = self.api.get(f"/clusters/{cluster_id}/events")["events"]
        return [(e["machine"], e["outcome"], e["text"]) for e in events if e["step"] == step]

    def test_scripts_run_in_order_before_the_daemons_and_on_added_machines(self) -> None:
        cluster_id = self.created("b.sh", "a.sh")
        self.api.until_status(cluster_id, "Active")
        first = [SECOND + n for n in "12"] + [FIRST + n for n in "12"]
        self.assertEqual(self.runs(), first)
        commands = [ran.command for ran in self.svcd.remote.ran]
        last = max(n for n, text in enumerate(commands) if "svcd-script" in text)
        started = next(n for n, text in enumerate(commands) if "processes running" in text)
        self.assertLess(last, started)
        told = self.events(cluster_id, "run script a.sh")
        self.assertEqual([t[1] for t in told], ["started", "started", "done", "done"])
        sizes = [{"name": "worker", "count": 3}]
        more = [{"name": "more", "count": 1, "flavor_id": self.svcd.flavor_id,
                 "node_processes": WORKER, "init_scripts": ["a.sh"]}]  # fmt: skip
        self.api.put(
            f"/clusters/{cluster_id}", {"resize_node_groups": sizes, "add_node_groups": more}
        )
        self.api.until_status(cluster_id, "Active")
        new = self.runs()[len(first) :]
        self.assertEqual(new, [SECOND + "3", "a.sh mine-more-001", FIRST + "3"])

    def test_retry_runs_only_where_a_script_has_not_succeeded(self) -> None:
        """The reason has the last lines; a failure of the script is not repeated."""
        self.broken("svcd-script a.sh mine-worker-002", status=3, body="disk\x1b[31m is full")
        cluster_id = self.created("a.sh", "b.sh")
        shown = self.api.until_status(cluster_id, "Error")
        reason = "SCRIPT_FAILED: run script a.sh on mine-worker-002: exit code 3: disk\\x1b[31m is"
        self.assertIn(reason, shown["status_description"])
        self.svcd.advance(3600)
        self.assertEqual(self.runs(), [FIRST + "1"])  # the fault answered in place of the other
        self.svcd.faults.clear()
        self.api.put(f"/clusters/{cluster_id}", {})
        self.api.until_status(cluster_id, "Active")
        self.assertEqual(self.runs()[1:], [SECOND + "1", FIRST + "2", SECOND + "2"])

    def test_lost_connection_is_repeated_and_a_scaling_that_fails_leaves_no_machine(self) -> None:
        self.broken("svcd-script a.sh", effect=Effect.RESET_BEFORE, times=3)
        cluster_id = self.created("a.sh")
        self.api.until_status(cluster_id, "Active")
        self.broken("svcd-script a.sh", status=1)
        sizes = [{"name": "worker", "count": 3}]
        self.api.put(f"/clusters/{cluster_id}", {"resize_node_groups": sizes})
        self.svcd.advance(120)
        shown = self.api.until_status(cluster_id, "Active")
        self.assertIn("SCRIPT_FAILED", shown["status_description"])
        self.assertEqual([g["count"] for g in shown["node_groups"]], [1, 2])

    def test_script_in_use_cannot_be_deleted(self) -> None:
        """A template does not keep it; a create from that template is then refused."""
        template = self.body("a.sh")
        for name in ("user_keypair_id",):
            template.pop(name)
        made = self.api.post("/cluster-templates", template)["cluster_template"]["id"]
        cluster_id = self.created("a.sh")
        path = f"/job-binary-internals/{self.ids['a.sh']}"
        refused = self.api.ask("DELETE", path, 400)
        self.assertIn("is used by cluster 'mine': delete these first", refused["error_message"])
        self.api.until_status(cluster_id, "Active")
        self.api.delete(f"/clusters/{cluster_id}")
        self.svcd.until(lambda: not self.api.get("/clusters")["clusters"])
        self.api.delete(path)
        wish = {"plugin_name": "fake", "engine_version": "0.1", "name": "again"}
        refused = self.api.post("/clusters", {**wish, "cluster_template_id": made}, 400)
        place = "$.cluster_template_id.node_groups[1].init_scripts[0]: job binary internal 'a.sh'"
        self.assertIn(f"{place} not found", refused["error_message"])

    def test_delete_amid_a_create_makes_the_create_fail(self) -> None:
        """svcd reads the flavors between the look at the script and the write of the cluster."""

        def delete(where: str, method: str, path: str) -> None:
            if where == "compute" and "/flavors" in path:
                self.svcd._database._connection.execute("delete from internals")

        self.svcd.faults.listen(delete)
        text = self.api.post("/clusters", self.body("a.sh"), 400)["error_message"]
        self.assertEqual(text, "job binary internal a.sh was deleted meanwhile")
        self.assertEqual(self.api.get("/clusters")["clusters"], [])

    def test_secret_in_the_output_is_masked(self) -> None:
        """One of the cluster's options, which a script has read and printed."""
        self.broken("svcd-script a.sh", status=1, body="login as smtp-pass-word failed")
        body = self.body("a.sh")
        secret = {"oozie.email.smtp.password": "smtp-pass-word"}
        body["cluster_configs"] = {"JobFlow": secret}
        cluster_id = self.api.post("/clusters", body)["cluster"]["id"]
        shown = self.api.until_status(cluster_id, "Error")
        self.assertIn("exit code 1: login as *** failed", shown["status_description"])
        self.assertNotIn("smtp-pass-word", str(self.events(cluster_id, "run script a.sh")))

    def test_faults_of_a_request_name_the_place(self) -> None:
        self.stored("big.sh", bytes(1_048_577))
        body = self.body("b.s", "big.sh", "a.sh", "a.sh")
        for path in ("/clusters", "/cluster-templates"):
            if path == "/cluster-templates":
                body.pop("user_keypair_id")
            text = self.api.post(path, body, 400)["error_message"]
            for fault in (
                "$.node_groups[1].init_scripts: given more than once: a.sh",
                "$.node_groups[1].init_scripts[0]: job binary internal 'b.s' not found;"
                " did you mean b.sh?",
                "$.node_groups[1].init_scripts[1]: 'big.sh' has 1048577 bytes",
            ):
                self.assertIn(fault, text)

    def test_template_runs_its_scripts_also_by_v1_0(self) -> None:
        """v1.0 neither takes nor shows the field. The dry run of v1.1 shows the scripts."""
        template = self.body("a.sh")
        template.pop("user_keypair_id")
        made = self.api.post("/cluster-templates", template)["cluster_template"]["id"]
        wish = {"plugin_name": "fake", "engine_version": "0.1", "name": "mine"}
        wish["cluster_template_id"] = made
        plan = self.api.ask("POST", "/clusters?dry_run=true", 200, json=wish)["plan"]
        (stage,) = [s for s in plan["stages"] if s["name"] == "first-boot scripts"]
        (command,) = stage["commands"]
        self.assertEqual(command["what"], "run script a.sh")
        self.assertEqual(command["machines"], ["mine-worker-001", "mine-worker-002"])
        answer = self.svcd.call("POST", f"/v1.0/{self.svcd.tenant}/clusters", json=wish)
        self.assertEqual(answer.status, 202, answer.body)
        self.assertNotIn(b"init_scripts", answer.body)
        self.api.until_status(answer.json["cluster"]["id"], "Active")
        self.assertEqual(self.runs(), [FIRST + "1", FIRST + "2"])

    def test_changed_content_does_not_run(self) -> None:
        """svcd compares what its store gives with the digest that the cluster has."""
        cluster_id = self.created("a.sh")
        self.svcd._database._connection.execute("update pieces set content = x'41'")
        shown = self.api.until_status(cluster_id, "Error")
        self.assertIn("no longer has the content", shown["status_description"])
        self.assertEqual(self.runs(), [])
