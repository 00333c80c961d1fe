"""Dry runs: the plan of a request, with its checks, and without any effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.cloud.core import VANILLA_IMAGE_ID
from svcd.testing import Answer, FakeService
from tests.support.fakes import MASTER, WORKER, Api, cluster_body

ADDRESS = {"path": "/home/svcd/svcd-fake/processes", "mode": "0644"}


class DryRunCase(SynchronousTestCase):
    """Asks for plans, and proves that they change nothing."""

    settings: Mapping[str, str] = {}

    def setUp(self) -> None:
        self.svcd = FakeService(self.settings)
        self.addCleanup(self.svcd.close)
        self.api = Api(self.svcd)
        self.headers: dict[str, str] = {}
        self.changes: list[str] = []
        self.svcd.faults.listen(self.hear)

    def hear(self, where: str, method: str, path: str) -> None:
        login = method == "POST" and path.endswith("/auth/tokens")
        if where == "store":
            if method != "read":
                self.changes.append(f"{where} {method}")
        elif method not in ("GET", "HEAD") and not login:
            self.changes.append(f"{where} {method} {path}")

    def dry(self, path: str, body: Any, method: str = "POST", more: str = "") -> Answer:
        """The dry run of a request. It changes nothing: neither outside nor in the database."""
        rows = list(self.svcd._database._connection.iterdump())
        self.changes.clear()
        answer = self.svcd.call(
            method, f"/v1.1/demo{path}?dry_run=true{more}", json=body, headers=self.headers
        )
        self.assertEqual(self.changes, [])
        self.assertEqual(list(self.svcd._database._connection.iterdump()), rows)
        return answer

    def plan(self, path: str, body: Any, method: str = "POST", more: str = "") -> Any:
        answer = self.dry(path, body, method, more)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json["plan"]

    def assert_same_refusal(self, path: str, body: Any, method: str = "POST") -> str:
        """The error's name; the real request is refused in the same words."""
        dry = self.dry(path, body, method)
        real = self.svcd.call(method, f"/v1.1/demo{path}", json=body, headers=self.headers)
        self.assertGreaterEqual(real.status, 400, path)
        self.assertEqual((dry.status, dry.json), (real.status, real.json))
        return str(real.json["error_name"])

    def cluster(self, name: str = "c1", workers: int = 2, **more: Any) -> dict[str, Any]:
        return cluster_body(self.svcd, name, workers, **more)


class FakeClusterTests(DryRunCase):
    def test_plan_of_a_new_cluster(self) -> None:
        """Machines, volumes, addresses, quota, files and daemons."""
        body = self.cluster()
        body["node_groups"][1] |= {"volumes_per_node": 1, "volumes_size": 5}
        body["node_groups"][0]["floating_ip_pool"] = "public"
        plan = self.plan("/clusters", body)
        for stage in plan["stages"]:
            for file in stage["files"]:  # the cluster's id is not known before
                file["content"] = file["content"].partition("\n")[2]
        names = ["c1-master-001", "c1-worker-001", "c1-worker-002"]
        groups = ["master", "worker", "worker"]
        of_group = {"master": MASTER, "worker": WORKER}

        def machine(name: str, group: str) -> dict[str, Any]:
            return {
                "name": name, "change": "create", "node_group": group, "flavor_id": "2",
                "node_processes": of_group[group],
            }  # fmt: skip

        def work(group: str, machines: list[str]) -> dict[str, Any]:
            what = f"start {', '.join(of_group[group])}"
            return {"what": what, "node_group": group, "machines": machines}

        def file(group: str, machines: list[str]) -> dict[str, Any]:
            lines = [f"address={machines[0]}", *of_group[group]]
            content = "".join(f"{line}\n" for line in lines)
            return {**ADDRESS, "node_group": group, "machines": machines, "content": content}

        self.assertEqual(
            plan,
            {
                "name": "c1",
                "machines": [machine(*each) for each in zip(names, groups, strict=True)],
                "volumes": [
                    {"machine": name, "change": "create", "size_gib": 5,
                     "mount_point": "/volumes/disk1"}
                    for name in names[1:]
                ],
                "addresses": [
                    {"machine": names[0], "change": "create", "floating_ip_pool": "public"}
                ],
                "quota": [
                    {"resource": "instances", "needed": 3, "left": 200, "left_after": 197},
                    {"resource": "cores", "needed": 3, "left": 800, "left_after": 797},
                    {"resource": "ram_mib", "needed": 6144, "left": 1638400,
                     "left_after": 1632256},
                    {"resource": "volumes", "needed": 2, "left": 400, "left_after": 398},
                    {"resource": "volume_gib", "needed": 10, "left": 40000, "left_after": 39990},
                    {"resource": "floating_ips", "needed": 1, "left": 50, "left_after": 49},
                ],
                "stages": [
                    {"phase": "configure", "name": "configure", "deadline_s": 120.0,
                     "files": [file("master", names[:1]), file("worker", names[1:])],
                     "commands": [], "awaited": []},
                    {"phase": "start", "name": "start", "deadline_s": 120.0, "files": [],
                     "commands": [work("master", names[:1]), work("worker", names[1:])],
                     "awaited": []},
                ],
            },
        )  # fmt: skip

    def test_plan_is_what_is_made(self) -> None:
        """The machines of the real cluster, and the quota that is left after it."""
        body = self.cluster(workers=3)
        plan = self.plan("/clusters", body)
        id_ = self.api.post("/clusters", body)["cluster"]["id"]
        made = self.api.until_status(id_, "Active")
        names = [i["instance_name"] for g in made["node_groups"] for i in g["instances"]]
        self.assertEqual([m["name"] for m in plan["machines"]], names)
        left = {
            q["resource"]: q["left"] for q in self.plan("/clusters", self.cluster("c2"))["quota"]
        }
        after = {q["resource"]: q["left_after"] for q in plan["quota"]}
        self.assertEqual(left, after)

    def test_plan_of_another_size(self) -> None:
        """Leaving machines are decommissioned first; the others are not touched."""
        id_ = self.api.active_cluster("c1", 2)
        body = {
            "resize_node_groups": [{"name": "worker", "count": 1}],
            "add_node_groups": [
                {"name": "more", "count": 2, "flavor_id": "2", "node_processes": ["nodemanager"]}
            ],
        }
        plan = self.plan(f"/clusters/{id_}", body, "PUT")
        self.assertEqual(
            [(m["change"], m["name"]) for m in plan["machines"]],
            [("delete", "c1-worker-002"), ("create", "c1-more-001"), ("create", "c1-more-002")],
        )
        quota = {q["resource"]: (q["needed"], q["left"], q["left_after"]) for q in plan["quota"]}
        self.assertEqual(quota["instances"], (1, 197, 196))
        shown = [
            (s["phase"], [w["what"] for w in s["commands"]], [f["machines"] for f in s["files"]])
            for s in plan["stages"]
        ]
        self.assertEqual(
            shown,
            [
                ("decommission", ["stop datanode, nodemanager"], []),
                ("configure", [], [["c1-more-001", "c1-more-002"]]),
                ("start", ["start nodemanager"], []),
            ],
        )
        smaller = {"resize_node_groups": [{"name": "worker", "count": 1}]}
        plan = self.plan(f"/clusters/{id_}", smaller, "PUT")
        self.assertEqual(plan["quota"][0], {
            "resource": "instances", "needed": -1, "left": None, "left_after": None,
        })  # fmt: skip
        self.assertEqual(len(self.api.cluster(id_)["node_groups"]), 2)

    def test_plan_with_an_image_that_is_not_registered(self) -> None:
        """As if it were, with the given login; only a dry run takes the parameter."""
        body = self.cluster(default_image_id=VANILLA_IMAGE_ID)
        self.assertEqual(self.assert_same_refusal("/clusters", body), "INVALID_REFERENCE")
        self.assertEqual(self.plan("/clusters", body, more="&image_user=svcd")["name"], "c1")
        self.assertEqual(len(self.api.get("/images")["images"]), 1)
        real = self.svcd.call("POST", "/v1.1/demo/clusters?image_user=svcd", json=body)
        self.assertEqual((real.status, real.json["error_name"]), (400, "VALIDATION_ERROR"))

    def test_refusals_are_those_of_the_request(self) -> None:
        """Of its shape, its references, the topology, names, quotas and limits."""
        taken = self.api.active_cluster("taken", 1)
        groups = self.cluster()["node_groups"]
        for more, name in (
            ({"name": 7}, "VALIDATION_ERROR"),
            ({"default_image_id": "none", "user_keypair_id": "none"}, "INVALID_REFERENCE"),
            ({"node_groups": groups[1:]}, "INVALID_COMPONENT_COUNT"),
            ({"name": "TAKEN"}, "CLUSTER_NAME_ALREADY_EXISTS"),
            ({"node_groups": [groups[0], {**groups[1], "count": 900}]}, "QUOTA_ERROR"),
        ):
            self.assertEqual(
                self.assert_same_refusal("/clusters", {**self.cluster(), **more}), name
            )
        for path, body in (
            ("/clusters/none", {}),
            (f"/clusters/{taken}", {"resize_node_groups": [{"name": "none", "count": 1}]}),
            (f"/clusters/{taken}", {"resize_node_groups": [{"name": "master", "count": 2}]}),
        ):
            self.assert_same_refusal(path, body, "PUT")
        self.svcd.restart({"limits.instances": "3"})
        self.assertEqual(self.assert_same_refusal("/clusters", self.cluster()), "QUOTA_ERROR")
        grown = {"resize_node_groups": [{"name": "worker", "count": 9}]}
        self.assertEqual(
            self.assert_same_refusal(f"/clusters/{taken}", grown, "PUT"), "QUOTA_ERROR"
        )
        self.svcd.restart({"limits.instances": "0", "limits.clusters": "1"})
        self.assertEqual(self.assert_same_refusal("/clusters", self.cluster()), "QUOTA_ERROR")

    def test_dry_run_has_two_values_in_one_version(self) -> None:
        """Everything else is refused: the request would be carried out."""
        body = self.cluster()
        for path in (
            "/v1.0/demo/clusters?dry_run=true",
            "/v1.0/demo/clusters?dry_run=false",
            "/v1.1/demo/clusters?dry_run=",
            "/v1.1/demo/clusters?dry_run=1",
            "/v1.1/demo/clusters?dry_run=True",
            "/v1.1/demo/clusters?dry_run=true&dry_run=false",
            "/v1.1/demo/clusters?dryrun=true",
            "/v1.1/demo/images/none?dry_run=true",
        ):
            answer = self.svcd.call("POST", path, json=body)
            self.assertEqual(
                (answer.status, answer.json["error_name"]), (400, "VALIDATION_ERROR"), path
            )
            self.assertIn("dry_run", answer.json["error_message"])
        self.assertEqual(self.api.get("/clusters")["clusters"], [])
        made = self.svcd.call("POST", "/v1.1/demo/clusters?dry_run=false", json=body)
        self.assertEqual(made.status, 202)

    def test_misspelled_dry_run_changes_nothing(self) -> None:
        """Under v1.1, of every request that changes something, with or without dry runs."""
        body = self.cluster()
        kept = self.api.post("/clusters", self.cluster("kept"))["cluster"]["id"]
        junk = "&".join(f"x{n}=1" for n in range(30))
        for method, path, name in (
            ("POST", "/clusters", "dryrun"),
            ("POST", "/clusters", "dry-run"),
            ("POST", "/clusters", "Dry_Run"),
            ("POST", "/clusters", "dry"),
            ("POST", "/clusters", "dri_run"),
            ("POST", "/clusters", "is_dry_run"),
            ("POST", f"/clusters?{junk}", "dryRun"),
            ("PUT", f"/clusters/{kept}", "dryrun"),
            ("DELETE", f"/clusters/{kept}", "dryrun"),
            ("POST", "/cluster-templates", "dry-run"),
            ("PUT", "/job-binary-internals/a", "dryrun"),
        ):
            path = f"/v1.1/demo{path}{'&' if '?' in path else '?'}{name}=true"
            answer = self.svcd.call(method, path, json=body)
            self.assertEqual(
                (answer.status, answer.json["error_name"]), (400, "VALIDATION_ERROR"), path
            )
            self.assertIn(f"?{name}: ", answer.json["error_message"])
            self.assertIn("dry_run", answer.json["error_message"])
            self.assertIn("nothing was done", answer.json["error_message"])
        (cluster,) = self.api.get("/clusters")["clusters"]
        self.assertEqual(cluster["id"], kept)
        self.assertEqual(self.api.get("/cluster-templates")["cluster_templates"], [])
        self.assertEqual(self.api.get("/job-binary-internals")["binaries"], [])

    def test_other_unknown_parameters_are_ignored(self) -> None:
        """As the interface says; v1.0 and requests that change nothing have no dry runs at all."""
        for method, path, status in (
            ("POST", "/v1.1/demo/clusters?zzz=true", 202),
            ("GET", "/v1.1/demo/clusters?dryrun=true", 200),
            ("GET", "/v1.0/demo/clusters?dryrun=true", 200),
            ("POST", "/v1.0/demo/clusters?dryrun=true", 202),
        ):
            body = self.cluster(f"c{path[4]}") if method == "POST" else None
            self.assertEqual(self.svcd.call(method, path, json=body).status, status, path)

    def test_idempotency_key_belongs_to_the_request_itself(self) -> None:
        """A dry run takes no key, and a key that was used does not hide a plan."""
        self.headers = {"Idempotency-Key": "k"}
        self.plan("/clusters", self.cluster())
        made = self.svcd.call(
            "POST", "/v1.1/demo/clusters", json=self.cluster(), headers=self.headers
        )
        self.assertEqual((made.status, "Idempotent-Replayed" in made.headers), (202, False))
        self.plan("/clusters", self.cluster("c2"))


class VanillaTests(DryRunCase):
    settings = {"plugins.enabled": "vanilla"}

    def test_plan_of_hadoop(self) -> None:
        """Files of each group once, with masked secrets; daemons, and what they are waited for."""
        tags = {"tags": ["vanilla", "3.5.0"]}
        self.api.ask("POST", f"/images/{self.svcd.image_id}/tag", 202, json=tags)
        body = self.cluster(plugin_name="vanilla", engine_version="3.5.0")
        body["cluster_configs"] = {
            "JobFlow": {"oozie.email.smtp.password": "geheim"},
            "HDFS": {"dfs.replication": 2, "dfs.block.access.token.enable": "true"},
        }
        body["node_groups"][1]["node_configs"] = {
            "MapReduce": {"mapreduce.job.send-token-conf": "ge"}
        }
        answer = self.dry("/clusters", body)
        self.assertNotIn("geheim", answer.body.decode())
        configure, ports, start = answer.json["plan"]["stages"]
        self.assertEqual((ports["phase"], ports["name"]), ("start", "check the ports"))
        self.assertEqual(
            (configure["phase"], configure["name"], configure["commands"]),
            ("configure", "write the configuration", []),
        )
        home = "/home/svcd/svcd"
        files = {(f["node_group"], f["path"].removeprefix(home)): f for f in configure["files"]}
        self.assertEqual(
            sorted(path for group, path in files if group == "worker"),
            ["/bin/daemon", "/conf/capacity-scheduler.xml", "/conf/core-site.xml",
             "/conf/hdfs-site.xml", "/conf/log4j.properties", "/conf/log4j2.properties",
             "/conf/mapred-site.xml", "/conf/spark-defaults.conf",
             "/conf/yarn-site.xml", "/env.sh"],
        )  # fmt: skip
        self.assertEqual(files["worker", "/env.sh"]["machines"], ["c1-worker-001", "c1-worker-002"])
        self.assertEqual(files["worker", "/bin/daemon"]["mode"], "0755")
        oozie = files["master", "/conf/oozie/oozie-site.xml"]["content"]
        self.assertIn("<name>oozie.email.smtp.password</name><value>***</value>", oozie)
        mapred = files["worker", "/conf/mapred-site.xml"]["content"]
        self.assertIn("<name>mapreduce.job.send-token-conf</name><value>***</value>", mapred)
        hdfs = files["worker", "/conf/hdfs-site.xml"]["content"]
        self.assertIn("<name>dfs.replication</name><value>2</value>", hdfs)
        self.assertIn("<value>true</value>", hdfs)
        core = files["worker", "/conf/core-site.xml"]["content"]
        self.assertIn("<value>hdfs://c1-master-001:8020</value>", core)
        self.assertEqual((start["phase"], start["name"]), ("start", "start the daemons"))
        self.assertEqual(
            [(w["what"], w["machines"]) for w in start["commands"] if w["node_group"] == "worker"],
            [("start datanode", ["c1-worker-001", "c1-worker-002"]),
             ("start nodemanager", ["c1-worker-001", "c1-worker-002"])],
        )  # fmt: skip
        self.assertIn("Oozie", [w["what"] for w in start["awaited"]])


class ExecuteTests(DryRunCase):
    def setUp(self) -> None:
        super().setUp()
        self.cluster_id = self.api.active_cluster("c1", 1)
        self.job, (self.source, self.target) = self.api.new_job(), self.api.new_sources()
        self.path = f"/jobs/{self.job}/execute"
        self.body: dict[str, Any] = {
            "cluster_id": self.cluster_id,
            "input_id": self.source,
            "output_id": self.target,
            "job_configs": {
                "configs": {"my.password": "geheim", "mapreduce.job.reduces": "3"},
                "params": {"SECRET": "x1"},
                "args": ["-token", "t-geheim"],
            },
        }

    def test_plan_of_an_execution(self) -> None:
        """What is staged, the definition without secrets, the data, and the job's login."""
        answer = self.dry(self.path, self.body)
        for secret in ("geheim", "x1", "demo-password"):
            self.assertNotIn(secret, answer.body.decode())
        plan = answer.json["plan"]
        workflow = plan.pop("workflow")
        for part in (
            "<pig>",
            "<script>count.pig</script>",
            "<file>svcd-values#svcd-values</file>",
            "<name>mapreduce.job.reduces</name><value>3</value>",
            "<name>my.password</name><value>***</value>",
        ):
            self.assertIn(part, workflow)
        url = plan["staged"][0].pop("url")
        self.assertTrue(url.startswith("internaldb://"))

        def data(id_: str, end: str) -> dict[str, str]:
            url = f"objstore://demo.svcd/data/{end}"
            return {"id": id_, "name": f"data-{end}", "type": "objstore", "url": url}

        self.assertEqual(
            plan,
            {
                "job_id": self.job,
                "job_type": "Pig",
                "cluster_id": self.cluster_id,
                "cluster": None,
                "staged": [{"name": "count.pig", "role": "main"}],
                "input": data(self.source, "in"),
                "output": data(self.target, "out"),
                "job_credentials": 1,
            },
        )
        self.assertEqual(self.api.get("/job-executions")["job_executions"], [])

    def test_plan_with_a_new_cluster(self) -> None:
        """It holds the plan of the transient cluster."""
        body = {**self.body, "cluster": self.cluster("short", 1)}
        del body["cluster_id"]
        plan = self.plan(self.path, body)
        self.assertIsNone(plan["cluster_id"])
        names = [m["name"] for m in plan["cluster"]["machines"]]
        self.assertEqual(names, ["short-master-001", "short-worker-001"])

    def test_refusals_are_those_of_the_request(self) -> None:
        """Of the execution and of its new cluster."""
        for more in (
            {"cluster_id": "none"},
            {"input_id": "none", "output_id": "none"},
            {"input_id": self.target},
            {"job_configs": {"configs": {"a\x01": "b"}}},
            {"cluster": self.cluster()},
        ):
            self.assert_same_refusal(self.path, {**self.body, **more})
        self.assertEqual(self.assert_same_refusal("/jobs/none/execute", self.body), "NOT_FOUND")
        rest = {k: v for k, v in self.body.items() if k != "cluster_id"}
        for cluster in (self.cluster("c1"), self.cluster("c2", default_image_id="none")):
            self.assert_same_refusal(self.path, {**rest, "cluster": cluster})
        self.svcd.restart({"limits.executions": "1"})
        body = {**self.body, "job_configs": {"configs": {"svcd.fake.run_s": "900"}}}
        self.api.post(self.path, body)
        self.assertEqual(self.assert_same_refusal(self.path, self.body), "QUOTA_ERROR")


class RecordTests(DryRunCase):
    """Templates, data sources, job binaries and jobs: their dry run is the check alone."""

    def setUp(self) -> None:
        super().setUp()
        upload = self.svcd.call("PUT", "/v1.1/demo/job-binary-internals/x", data=b"x")
        self.internal = upload.json["job_binary_internal"]["id"]
        kept = {"name": "kept.pig", "url": f"internaldb://{self.internal}"}
        self.binary = self.api.post("/job-binaries", kept)["job_binary"]["id"]

    def bodies(self) -> Mapping[str, dict[str, Any]]:
        """A request for each kind, by its path."""
        group = {"flavor_id": "2", "node_processes": ["datanode"]}
        plugin = {"plugin_name": "fake", "engine_version": "0.1"}
        groups = [{"name": "all", "count": 1, "flavor_id": "2", "node_processes": MASTER + WORKER}]
        return {
            "/node-group-templates": {"name": "n", **plugin, **group},
            "/cluster-templates": {"name": "t", **plugin, "node_groups": groups},
            "/data-sources": {"name": "d", "type": "hdfs", "url": "hdfs:///d"},
            "/job-binaries": {"name": "b.pig", "url": f"internaldb://{self.internal}"},
            "/jobs": {"name": "j", "type": "Pig", "mains": [self.binary]},
        }

    def test_plan_is_the_name_of_the_record(self) -> None:
        """The real request is accepted afterwards, and once."""
        for path, body in self.bodies().items():
            self.assertEqual(self.plan(path, body), {"name": body["name"]}, path)
            self.api.post(path, body)
            name = self.assert_same_refusal(path, body)
            self.assertTrue(name.endswith("_NAME_ALREADY_EXISTS"), name)

    def test_refusals_by_rows_are_those_of_the_request(self) -> None:
        """All others come before any row is read, dry or not."""
        bodies = self.bodies()
        for path, more in (
            ("/job-binaries", {"url": "internaldb://none"}),
            ("/jobs", {"libs": ["none"]}),
        ):
            name = self.assert_same_refusal(path, {**bodies[path], **more})
            self.assertEqual(name, "INVALID_REFERENCE", path)
        self.svcd.restart({"limits.rows": "1"})
        self.api.post("/data-sources", bodies["/data-sources"])
        other = {**bodies["/data-sources"], "name": "other"}
        self.assertEqual(self.assert_same_refusal("/data-sources", other), "QUOTA_ERROR")


class PolicyTests(DryRunCase):
    settings = {"auth.mode": "keystone"}

    def test_dry_run_needs_the_role_of_the_request(self) -> None:
        """A reader is refused; a writer's dry run leaves no record in the audit log."""
        for name, status in (("carol", 403), ("alice", 200)):
            headers = {"X-Auth-Token": self.svcd.token(name, project="alpha")}
            before = len(self.svcd.audited)
            answer = self.svcd.call(
                "POST", "/v1.1/alpha/clusters?dry_run=true",
                json=self.cluster(user_keypair_id=None), headers=headers,
            )  # fmt: skip
            self.assertEqual(answer.status, status, answer.body)
            self.assertEqual(len(self.svcd.audited) - before, int(status == 403))
