"""The records of the audit log: which requests have one, and what it says."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.job import Execution
from svcd.model.requests import NewNodeGroupTemplate
from svcd.testing import Effect, FakeService
from svcd.workflow.commands import Jobs
from tests.contract.store.rows import execution
from tests.unit.resources.bodies import LEAST

SOURCE = {"name": "in", "type": "hdfs", "url": "/in"}


class AuditTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.api = FakeService({"auth.mode": "keystone"})
        self.addCleanup(self.api.close)
        self.token = self.api.token()
        self.mine = {"X-Auth-Token": self.token, "X-Request-Id": "req-1"}
        self.user = self.api.cloud.core.users_by_name["demo"].id

    def record(self, method: str, path: str, tenant: str = "demo", **more: Any) -> dict[str, Any]:
        """The only record of a request."""
        before = len(self.api.audited)
        more.setdefault("headers", self.mine)
        self.api.call(method, f"/v1.1/{tenant}/{path}", **more)
        (record,) = self.api.audited[before:]
        return dict(record)

    def test_an_accepted_change(self) -> None:
        """When, who, from where, what, and with which result."""
        record = self.record("POST", "data-sources", json=SOURCE)
        made = record.pop("made")
        self.assertRegex(record.pop("request"), "^req-[0-9a-f]{12}-[0-9a-f]+$")
        self.assertEqual(
            record,
            {
                "time": "2026-01-01T00:00:00.000Z",
                "caller_request": "req-1",
                "user": self.user,
                "user_name": "demo",
                "project": "demo",
                "address": "127.0.0.1",
                "action": "POST /v1.1/<tenant_id>/data-sources",
                "target": "/v1.1/demo/data-sources",
                "outcome": "accepted",
                "status": 202,
            },
        )
        record = self.record("DELETE", f"data-sources/{made}")
        self.assertEqual(
            (record["target"], record["status"]), (f"/v1.1/demo/data-sources/{made}", 204)
        )
        self.assertNotIn("made", record)

    def test_a_caller_chooses_no_id_of_a_record(self) -> None:
        """Two requests with one `X-Request-Id` have records with two ids."""
        first, second = (
            self.record("POST", "data-sources", json={**SOURCE, "name": n}) for n in ("a", "b")
        )
        self.assertEqual([first["caller_request"], second["caller_request"]], ["req-1"] * 2)
        self.assertNotEqual(first["request"], second["request"])
        record = self.record("DELETE", "clusters/c1", headers={})
        self.assertNotIn("caller_request", record)

    def test_reads_and_wrong_requests_have_no_record(self) -> None:
        """They change nothing, and their senders had the authority."""
        for method, path in (
            ("GET", "clusters"),
            ("GET", "clusters/nope"),
            ("DELETE", "clusters/nope"),
            ("POST", "clusters"),
            ("GET", "job-executions/nope/cancel"),
            ("PATCH", "clusters"),
        ):
            answer = self.api.call(method, f"/v1.1/demo/{path}", headers=self.mine)
            self.assertNotIn(answer.status, (401, 403))
        self.assertEqual(list(self.api.audited), [])

    def test_a_status_that_is_read_from_the_engine_has_no_record(self) -> None:
        """`svcd run` asks twice a second: these would push the changes out of the log."""

        async def refresh(*_: object) -> Execution:
            return execution(1)

        self.patch(Jobs, "refresh", refresh)
        for method in ("GET", "POST"):
            path = "/v1.1/demo/job-executions/e-1/refresh-status"
            self.assertEqual(self.api.call(method, path, headers=self.mine).status, 200)
        self.assertEqual(list(self.api.audited), [])
        self.assertEqual(
            self.record("POST", "job-executions/e-1/refresh-status", headers={})["status"], 401
        )

    def test_refusals_of_authority(self) -> None:
        """No token, a wrong one, another tenant, a role that is too small; also of reads."""
        users = self.api.cloud.core.users_by_name
        bob = {"X-Auth-Token": self.api.token("bob", project="beta")}
        for headers, user, project, status in (
            ({}, "", "", 401),
            ({"X-Auth-Token": "bad"}, "", "", 401),
            (bob, users["bob"].id, "beta", 403),
        ):
            record = self.record("GET", "clusters", headers=headers)
            said = [record[name] for name in ("user", "project", "outcome", "status")]
            self.assertEqual(said, [user, project, "refused", status])
        carol = {"X-Auth-Token": self.api.token("carol", project="alpha")}
        record = self.record("DELETE", "clusters/c1", "alpha", headers=carol)
        self.assertEqual(
            (record["user"], record["action"], record["outcome"]),
            (users["carol"].id, "DELETE /v1.1/<tenant_id>/clusters/<cluster_id>", "refused"),
        )

    def test_a_change_that_may_have_happened(self) -> None:
        """A fault of svcd, and an answer that came too late."""

        async def broken(*_: object) -> None:
            raise RuntimeError("a bug")

        patch = self.patch(Jobs, "create_data_source", broken)
        record = self.record("POST", "data-sources", json=SOURCE)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.assertEqual((record["outcome"], record["status"]), ("unknown", 500))
        patch.restore()
        self.api.faults.add(where="compute", effect=Effect.DELAY, delay_s=20.0)
        self.api.restart({"server.request_timeout_s": "10"})
        template = LEAST[NewNodeGroupTemplate]
        record = self.record("POST", "node-group-templates", json=template)
        self.assertEqual((record["outcome"], record["status"]), ("unknown", 504))
        self.api.advance(200)
        self.assertEqual(self.api.audited[-1], record)

    def test_no_secret_of_the_request_is_in_a_record(self) -> None:
        """Neither the token nor the body nor the query."""
        new = {"name": "b", "url": "objstore-internal://c/o"}
        new = {**new, "extra": {"user": "u-secret", "password": "p-secret"}}  # type: ignore[dict-item]
        record = self.record("POST", "job-binaries?password=q-secret", json=new)
        for secret in ("secret", self.token):
            self.assertNotIn(secret, str(record))
