"""Requests with an Idempotency-Key on the whole service: one acts, and all get its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import treq
from twisted.internet.defer import Deferred, gatherResults
from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import Answer, Effect, FakeService, FaultRule
from tests.support.fakes import WORKER, Api, cluster_body

SOURCE = {"name": "in", "type": "hdfs", "url": "/in"}
DAY_S = 24 * 3600


class _Case(SynchronousTestCase):
    settings: Mapping[str, str] = {}

    def setUp(self) -> None:
        self.svcd = FakeService(self.settings)
        self.addCleanup(self.svcd.close)
        self.api = Api(self.svcd)

    def cluster(self, name: str = "c1", **more: Any) -> dict[str, Any]:
        return cluster_body(self.svcd, name, 1, **more)

    def send(
        self, path: str, body: Any, key: str = "k", base: str = "/v1.1/demo", **headers: str
    ) -> Answer:
        sent = {"Idempotency-Key": key, **{k.replace("_", "-"): v for k, v in headers.items()}}
        return self.svcd.call("POST", base + path, json=body, headers=sent)

    def assert_replayed(self, first: Answer, again: Answer) -> None:
        self.assertEqual((first.status, again.status), (202, 202), first.body)
        self.assertEqual(first.body, again.body)
        self.assertNotIn("Idempotent-Replayed", first.headers)
        self.assertEqual(again.headers["Idempotent-Replayed"], "true")

    def assert_reused(self, answer: Answer) -> None:
        self.assertEqual(
            (answer.status, answer.json["error_name"]), (409, "IDEMPOTENCY_KEY_REUSED")
        )


class ReplayTests(_Case):
    def test_each_post_that_creates_answers_as_before(self) -> None:
        """Byte for byte, and it makes one thing; on both versions."""
        plugin = {"plugin_name": "fake", "engine_version": "0.1"}
        group = {"name": "w", **plugin, "flavor_id": "2", "node_processes": WORKER}
        template = {"name": "t", **plugin, "node_groups": self.cluster()["node_groups"]}
        binary = self.svcd.call("PUT", "/v1.1/demo/job-binary-internals/a.pig", data=b"-- a").json
        url = f"internaldb://{binary['job_binary_internal']['id']}"
        made = {}
        for path, body in (
            ("/node-group-templates", group),
            ("/cluster-templates", template),
            ("/clusters", self.cluster()),
            ("/data-sources", SOURCE),
            ("/data-sources", {**SOURCE, "name": "out", "url": "/out"}),
            ("/job-binaries", {"name": "a.pig", "url": url}),
            ("/jobs", lambda: {"name": "j", "type": "Pig", "mains": [made["/job-binaries"]]}),
        ):
            body = body() if callable(body) else body
            first, again = (self.send(path, body, key=body["name"]) for _ in range(2))
            self.assert_replayed(first, again)
            (record,) = first.json.values()
            made[path] = record["id"]
            family = self.api.get(path)
            (listed,) = family.values()
            self.assertEqual([each["id"] for each in listed].count(record["id"]), 1)
            self.assertEqual(len({each["name"] for each in listed}), len(listed))
        old = self.send("/clusters", self.cluster("c2"), base="/v1.0/demo")
        self.assert_replayed(old, self.send("/clusters", self.cluster("c2"), base="/v1.0/demo"))
        self.assertEqual(len(self.api.get("/clusters")["clusters"]), 2)

    def test_configuration_file_is_converted_once(self) -> None:
        """Another name in the path, or another query, is another request."""
        groups = self.cluster()["node_groups"]
        bundle = {"plugin_name": "fake", "engine_version": "0.1", "node_groups": groups}
        text = json.dumps(bundle)
        path = "/v1.1/demo/plugins/fake/0.1/convert-config/"

        def send(name: str) -> Answer:
            headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
            return self.svcd.call("POST", path + name, data=text, headers=headers)

        first = send("t1")
        self.assert_replayed(first, send("t1"))
        self.assert_reused(send("t2"))
        self.assert_reused(send("t1?flavor_id=1"))
        self.assertEqual(len(self.api.get("/cluster-templates")["cluster_templates"]), 1)

    def test_execution_is_submitted_once(self) -> None:
        """On a cluster, and with a transient one."""
        made = self.api.post("/clusters", self.cluster())["cluster"]["id"]
        self.api.until_status(made, "Active")
        job, (source, target) = self.api.new_job(), self.api.new_sources()
        body = {"input_id": source, "output_id": target}
        for more in ({"cluster_id": made}, {"cluster": self.cluster("short")}):
            key = next(iter(more))
            first, again = (
                self.send(f"/jobs/{job}/execute", {**body, **more}, key=key) for _ in range(2)
            )
            self.assert_replayed(first, again)
        self.assertEqual(len(self.api.get("/job-executions")["job_executions"]), 2)
        self.assertEqual(len(self.api.get("/clusters")["clusters"]), 2)

    def test_answer_with_hidden_credentials(self) -> None:
        """The replay masks them as the first answer does."""
        self.svcd.restart({"server.hide_credentials": "true"})
        account = {"credentials": {"user": "u", "password": "p"}}
        source = {**SOURCE, "type": "objstore", "url": "objstore://c/o", **account}
        first = self.send("/data-sources", source)
        self.assertNotIn('"u"', first.body.decode())
        self.assert_replayed(first, self.send("/data-sources", source))

    def test_other_request_with_the_key_is_refused(self) -> None:
        """Also by one blank; the same key on another route is another key."""
        self.send("/data-sources", SOURCE)
        self.assert_reused(self.send("/data-sources", {**SOURCE, "name": "other"}))
        headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
        text = json.dumps(SOURCE) + " "
        self.assert_reused(
            self.svcd.call("POST", "/v1.1/demo/data-sources", data=text, headers=headers)
        )
        answer = self.send("/clusters", self.cluster())
        self.assertEqual((answer.status, "Idempotent-Replayed" in answer.headers), (202, False))
        job, other = self.api.new_job("a.pig"), self.api.new_job("b.pig")
        source, target = self.api.new_sources()
        body = {
            "input_id": source, "output_id": target, "cluster_id": answer.json["cluster"]["id"]
        }  # fmt: skip
        self.assertEqual(self.send(f"/jobs/{job}/execute", body).status, 202)
        self.assert_reused(self.send(f"/jobs/{other}/execute", body))

    def test_answer_is_repeated_after_the_thing_has_gone(self) -> None:
        """Quotas and names do not matter to a replay."""
        first = self.send("/clusters", self.cluster())
        id_ = first.json["cluster"]["id"]
        self.api.until_status(id_, "Active")
        self.svcd.restart({"limits.clusters": "1"})
        self.assert_replayed(first, self.send("/clusters", self.cluster()))
        self.api.delete(f"/clusters/{id_}")
        self.svcd.advance(120)
        self.assert_replayed(first, self.send("/clusters", self.cluster()))
        self.assertEqual(self.api.get("/clusters")["clusters"], [])

    def test_failed_request_is_not_kept(self) -> None:
        """The same key then carries out the corrected one."""
        bad = self.send("/clusters", self.cluster(default_image_id="nope"))
        self.assertEqual(bad.status, 400)
        self.svcd.faults.add(where="compute", status=500)
        self.assertGreaterEqual(self.send("/clusters", self.cluster()).status, 500)
        self.svcd.faults.clear()
        good = self.send("/clusters", self.cluster())
        self.assert_replayed(good, self.send("/clusters", self.cluster()))

    def test_answer_is_forgotten_after_a_day(self) -> None:
        """The rows are deleted within an hour, and the request acts anew."""
        first = self.send("/data-sources", SOURCE)
        self.svcd.advance(DAY_S - 60)
        self.assert_replayed(first, self.send("/data-sources", SOURCE))
        self.svcd.advance(60)
        taken = self.send("/data-sources", SOURCE)
        self.assertEqual(taken.json["error_name"], "DATA_SOURCE_NAME_ALREADY_EXISTS")
        for number in range(120):  # more than one turn of the deletion takes
            self.send("/data-sources", {**SOURCE, "name": f"s{number}"}, key=f"k{number}")
        self.assertEqual(self.rows(), 120)  # the first is gone already
        self.svcd.advance(DAY_S + 3600)
        self.assertEqual(self.rows(), 0)

    def rows(self) -> int:
        connection = self.svcd._database._connection
        return int(connection.execute("select count(*) from kept_answers").fetchone()[0])

    def test_tenant_that_uses_too_many_keys(self) -> None:
        """It is refused with the setting's name, and nothing is made; others are not."""
        self.svcd.restart({"limits.idempotency_keys": "1"})
        first = self.send("/data-sources", SOURCE)
        refused = self.send("/data-sources", {**SOURCE, "name": "b"}, key="k2")
        self.assertEqual((refused.status, refused.json["error_name"]), (400, "QUOTA_ERROR"))
        self.assertIn("limits.idempotency_keys", refused.json["error_message"])
        self.assertEqual(len(self.api.get("/data-sources")["data_sources"]), 1)
        self.assert_replayed(first, self.send("/data-sources", SOURCE))
        self.assertEqual(self.send("/data-sources", SOURCE, base="/v1.1/other").status, 202)

    def test_hostile_keys(self) -> None:
        """A refusal names what is expected and shows nothing of the key."""
        for key in ("", " ", "a b", "k" * 256, "é", "k\t", "\x7f", "\x00"):
            answer = self.send("/data-sources", SOURCE, key=key)
            self.assertEqual(
                (answer.status, answer.json["error_name"]), (400, "VALIDATION_ERROR"), repr(key)
            )
            self.assertIn("1 to 255 visible ASCII", answer.json["error_message"])
        self.assertEqual(self.api.get("/data-sources")["data_sources"], [])
        for number, key in enumerate(("k" * 255, "'; drop table clusters; --", "%s:id{0}", "~!")):
            key = key.replace(" ", "")
            body = {**SOURCE, "name": f"s{number}"}
            first = self.send("/data-sources", body, key=key)
            self.assert_replayed(first, self.send("/data-sources", body, key=key))

    def test_two_keys_in_one_request(self) -> None:
        """Which one counts is not guessed."""
        sent = self.svcd.treq.post(
            f"{self.svcd.url}/v1.1/demo/data-sources",
            json=SOURCE,
            headers={"Idempotency-Key": ["a", "b"]},
        )
        answer = self.svcd.result_of(sent)
        self.assertEqual(answer.code, 400)
        self.svcd.result_of(treq.content(answer))

    def test_requests_that_make_no_row_take_no_key(self) -> None:
        """Reads, and changes that can be repeated without a key: the header changes nothing."""
        for method, path, body in (
            ("GET", "/clusters", None),
            ("POST", f"/images/{FakeService.image_id}", {"username": "u"}),
        ):
            for _ in range(2):
                answer = self.svcd.call(
                    method, f"/v1.1/demo{path}", json=body, headers={"Idempotency-Key": "a b"}
                )
                self.assertIn(answer.status, (200, 202))
                self.assertNotIn("Idempotent-Replayed", answer.headers)


class ScopeTests(_Case):
    settings = {"auth.mode": "keystone"}

    def test_keys_of_users_and_projects_are_their_own(self) -> None:
        """Two users of a project with one key make two things; so does one in another project."""
        alice, dave = (self.svcd.token(name, project="alpha") for name in ("alice", "dave"))
        bob = self.svcd.token("bob", project="beta")
        first = self.send("/data-sources", SOURCE, base="/v1.1/alpha", X_Auth_Token=alice)
        self.assertEqual(first.status, 202)
        taken = self.send("/data-sources", SOURCE, base="/v1.1/alpha", X_Auth_Token=dave)
        self.assertEqual(taken.json["error_name"], "DATA_SOURCE_NAME_ALREADY_EXISTS")
        other = {**SOURCE, "name": "other"}
        own = self.send("/data-sources", other, base="/v1.1/alpha", X_Auth_Token=dave)
        self.assertEqual(own.status, 202)
        for base, token, body in (
            ("/v1.1/alpha", alice, SOURCE), ("/v1.1/alpha", dave, other)
        ):  # fmt: skip
            again = self.send("/data-sources", body, base=base, X_Auth_Token=token)
            self.assertEqual(again.headers["Idempotent-Replayed"], "true")
        beta = self.send("/data-sources", SOURCE, base="/v1.1/beta", X_Auth_Token=bob)
        self.assertEqual((beta.status, "Idempotent-Replayed" in beta.headers), (202, False))

    def test_token_and_policy_come_first(self) -> None:
        """A caller without the right gets neither an earlier answer nor a fault of the key."""
        alice = self.svcd.token("alice", project="alpha")
        carol = self.svcd.token("carol", project="alpha")  # a reader
        self.send("/data-sources", SOURCE, base="/v1.1/alpha", X_Auth_Token=alice)
        for token, status in ((carol, 403), ("bad", 401)):
            for key in ("k", "a b"):
                answer = self.send(
                    "/data-sources", SOURCE, key, base="/v1.1/alpha", X_Auth_Token=token
                )
                self.assertEqual(answer.status, status)

    def test_replay_is_audited_as_one(self) -> None:
        """The record says that nothing was made."""
        token = self.svcd.token()
        for _ in range(2):
            self.send("/data-sources", SOURCE, X_Auth_Token=token)
        first, again = self.svcd.audited
        self.assertEqual((first.get("replayed"), again.get("replayed")), (None, True))
        self.assertNotIn("made", again)


class FaultTests(_Case):
    settings = {"auth.mode": "keystone"}

    def setUp(self) -> None:
        super().setUp()
        self.token = self.svcd.token()

    def start(self, body: Any) -> Deferred[Answer]:
        """A request under way: status, header and body of its answer."""

        async def run() -> tuple[int, bool, bytes]:
            answer = await self.svcd.treq.post(
                f"{self.svcd.url}/v1.1/demo/clusters",
                json=body,
                headers={"Idempotency-Key": "k", "X-Auth-Token": self.token},
            )
            replayed = answer.headers.hasHeader("Idempotent-Replayed")
            return answer.code, replayed, await treq.content(answer)

        return Deferred.fromCoroutine(run())

    def clusters(self) -> list[Any]:
        headers = {"X-Auth-Token": self.token}
        return list(self.svcd.call("GET", "/v1.1/demo/clusters", headers=headers).json["clusters"])

    def trusts(self) -> int:
        return len(self.svcd.cloud.core.state.trusts)

    def test_twins_at_once(self) -> None:
        """Both read the cloud; one acts, the other gets its answer and gives its trust back."""
        self.svcd.faults.add(where="compute", effect=Effect.DELAY, delay_s=2.0)
        found = self.svcd.result_of(gatherResults([self.start(self.cluster()) for _ in range(5)]))
        self.assertEqual(sorted(replayed for _, replayed, _ in found), [False] + [True] * 4)
        self.assertEqual({(code, body) for code, _, body in found}, {(202, found[0][2])})
        self.assertEqual(len(self.clusters()), 1)
        self.svcd.advance(5)
        self.assertEqual(self.trusts(), 1)

    def test_twin_whose_answer_cannot_be_read(self) -> None:
        """The other one may not hear of a conflict with it: it sends the request again."""
        given_back: list[str] = []
        refused: list[str] = []

        def refuse_the_look(where: str, kind: str, path: str) -> FaultRule | None:
            """The look comes after the twin has given its trust back."""
            if where == "identity" and kind == "DELETE":
                given_back.append(path)
            if where == "store" and kind == "read" and given_back and not refused:
                refused.append(kind)
                return FaultRule(where="store")
            return None

        self.svcd.faults.add(where="compute", effect=Effect.DELAY, delay_s=2.0)
        starting = [self.start(self.cluster()) for _ in range(2)]
        self.svcd.faults.listen(refuse_the_look)
        found = self.svcd.result_of(gatherResults(starting))
        self.assertEqual(sorted(code for code, _, _ in found), [202, 503])
        (first,) = [body for code, _, body in found if code == 202]
        self.assertEqual(self.svcd.result_of(self.start(self.cluster())), (202, True, first))
        self.assertEqual(len(self.clusters()), 1)

    def test_different_bodies_at_once(self) -> None:
        """One acts, the other is refused."""
        self.svcd.faults.add(where="compute", effect=Effect.DELAY, delay_s=2.0)
        bodies = [self.cluster("c1"), self.cluster("c2")]
        found = self.svcd.result_of(gatherResults([self.start(each) for each in bodies]))
        self.assertEqual(sorted(code for code, _, _ in found), [202, 409])
        self.assertEqual(len(self.clusters()), 1)

    def test_twin_of_a_request_that_fails(self) -> None:
        """It acts itself."""
        self.svcd.faults.add(where="compute", effect=Effect.DELAY, delay_s=2.0)
        self.svcd.faults.add(where="image", status=500, times=1)
        found = self.svcd.result_of(gatherResults([self.start(self.cluster()) for _ in range(2)]))
        codes = sorted(code for code, _, _ in found)
        self.assertEqual(codes[0], 202)
        self.assertGreaterEqual(codes[1], 500)
        self.assertEqual(len(self.clusters()), 1)
