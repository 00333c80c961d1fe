"""The records of the audit log: which requests have one, and what it says."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.settings import Server, Settings
from tests.support.api import StandInIdentity, StandInService

MINE = {"X-Auth-Token": "token-demo", "X-Request-Id": "req-1"}
SOURCE = {"name": "in", "type": "hdfs", "url": "/in"}


class AuditTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.identity = StandInIdentity()
        self.api = StandInService(identity=self.identity)
        self.addCleanup(self.api.close)

    def record(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        """The only record of a request."""
        self.api.audited.clear()
        more.setdefault("headers", MINE)
        self.api.call(method, f"/v1.1/demo/{path}", **more)
        (record,) = self.api.audited
        return dict(record)

    def test_an_accepted_change(self) -> None:
        """When, who, from where, what, and with which result."""
        record = self.record("POST", "data-sources", json=SOURCE)
        made = record.pop("made")
        self.assertEqual(
            record,
            {
                "time": "2026-01-01T00:00:00.000Z",
                "request": "req-1",
                "user": "u",
                "user_name": "",
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
            answer = self.api.call(method, f"/v1.1/demo/{path}", headers=MINE)
            self.assertNotIn(answer.status, (401, 403))
        self.assertEqual(self.api.audited, [])

    def test_refusals_of_authority(self) -> None:
        """No token, a wrong one, another tenant, a role that is too small; also of reads."""
        for headers, user, project, status in (
            ({}, "", "", 401),
            ({"X-Auth-Token": "bad"}, "", "", 401),
            ({"X-Auth-Token": "token-other"}, "u", "other", 403),
        ):
            record = self.record("GET", "clusters", headers=headers)
            said = [record[name] for name in ("user", "project", "outcome", "status")]
            self.assertEqual(said, [user, project, "refused", status])
        self.identity.roles = ("reader",)
        record = self.record("DELETE", "clusters/c1")
        self.assertEqual(
            (record["user"], record["action"], record["outcome"]),
            ("u", "DELETE /v1.1/<tenant_id>/clusters/<cluster_id>", "refused"),
        )

    def test_a_change_that_may_have_happened(self) -> None:
        """A fault of svcd, and an answer that came too late."""
        self.api.jobs.raises = RuntimeError("a bug")
        record = self.record("POST", "data-sources", json=SOURCE)
        self.flushLoggedErrors(RuntimeError)
        self.assertEqual((record["outcome"], record["status"]), ("unknown", 500))
        self.api.jobs.raises = None
        self.api.jobs.wait_s = 100.0
        self.api.audited.clear()
        self.api.start("POST", "/v1.1/demo/data-sources", json=SOURCE, headers=MINE)
        self.api.clock.advance(200)  # type: ignore[attr-defined]
        self.assertEqual([r["status"] for r in self.api.audited], [504])

    def test_no_secret_of_the_request_is_in_a_record(self) -> None:
        """Neither the token nor the body nor the query."""
        new = {"name": "b", "url": "objstore-internal://c/o"}
        new = {**new, "extra": {"user": "u-secret", "password": "p-secret"}}  # type: ignore[dict-item]
        record = self.record("POST", "job-binaries?password=q-secret", json=new)
        for secret in ("secret", "token-demo"):
            self.assertNotIn(secret, str(record))

    def test_the_address_behind_a_trusted_proxy(self) -> None:
        """The last entry that no trusted proxy has written; others may be invented."""
        for trusted, sent, address in (
            ((), "1.1.1.1", "127.0.0.1"),
            (("127.0.0.0/8",), "1.1.1.1", "1.1.1.1"),
            (("127.0.0.1",), "9.9.9.9, 1.1.1.1", "1.1.1.1"),
            (("127.0.0.1", "1.1.1.1"), "9.9.9.9, 1.1.1.1", "9.9.9.9"),
            (("127.0.0.1",), "::ffff:1.1.1.1", "1.1.1.1"),
            (("127.0.0.1",), "nonsense", "127.0.0.1"),
            (("10.0.0.0/8",), "1.1.1.1", "127.0.0.1"),
        ):
            settings = evolve(Settings(), server=Server(trusted_proxies=trusted))
            self.api = StandInService(settings=settings)
            self.addCleanup(self.api.close)
            record = self.record(
                "POST", "data-sources", headers={"X-Forwarded-For": sent}, json=SOURCE
            )
            self.assertEqual((record["address"], record["user"]), (address, "anonymous"), trusted)
