"""Login and log-out of the console: answers, refusals, and records in the audit log."""

from __future__ import annotations

from typing import Any

from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import Answer, FakeService

ALICE = {"user": "alice", "domain": "Default", "password": "alice"}


class ConsoleLoginTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.api = self.service(auth__mode="keystone")

    def service(self, **settings: str) -> FakeService:
        """settings: `section__key`."""
        made = FakeService({key.replace("__", "."): value for key, value in settings.items()})
        self.addCleanup(made.close)
        return made

    def post(self, body: Any, **headers: str) -> Answer:
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        return self.api.call("POST", "/console/login", json=body, headers=sent)

    def refused(self, status: int, body: Any, **headers: str) -> str:
        answer = self.post(body, **headers)
        self.assertEqual(answer.status, status, answer.body)
        return str(answer.json["error_message"])

    def test_a_user_chooses_a_project_and_gets_a_token_for_it(self) -> None:
        """No cache keeps the answers."""
        answer = self.post(ALICE)
        self.assertEqual((answer.status, answer.headers["Cache-Control"]), (200, "no-store"))
        first = answer.json
        (project,) = first["projects"]
        self.assertEqual(
            (first["user_name"], first["expires_at"], first["project"], project["name"]),
            ("alice", "2026-01-02T00:00:00Z", None, "alpha"),
        )
        second = self.post({**ALICE, "project": project["id"]}).json
        self.assertEqual(second["project"], project)
        for login, status in ((first, 403), (second, 200)):
            token = {"X-Auth-Token": login["token"]}
            path = f"/v1.1/{project['id']}/clusters"
            self.assertEqual(self.api.call("GET", path, headers=token).status, status)

    def test_the_records_of_the_audit_log(self) -> None:
        """Success and refusal, with the user, and never with the password."""
        self.post({**ALICE, "project": "alpha"})
        self.post({**ALICE, "password": "wr0ng"})
        good, bad = self.api.audited
        known = {"action": "POST /console/login", "user_name": "alice", "address": "127.0.0.1"}
        user = self.api.cloud.core.users_by_name["alice"].id
        self.assertEqual(
            {key: good[key] for key in (*known, "user", "project", "outcome", "status")},
            {**known, "user": user, "project": "alpha", "outcome": "accepted", "status": 200},
        )
        self.assertEqual(
            {key: bad[key] for key in (*known, "user", "project", "outcome", "status")},
            {**known, "user": "", "project": "", "outcome": "refused", "status": 401},
        )
        self.assertNotIn("wr0ng", repr(self.api.audited))

    def test_a_log_out_ends_the_token(self) -> None:
        """Here at once; the audit log has it. A token of no project ends too, others stay."""
        for body in (ALICE, {**ALICE, "project": "alpha"}):
            login = self.post(body).json
            other = self.post({**ALICE, "project": "alpha"}).json["token"]
            mine = {"X-Auth-Token": login["token"]}
            path = "/v1.1/alpha/clusters"
            self.api.call("GET", path, headers=mine)  # it is kept as a valid one
            answer = self.api.call("POST", "/console/logout", headers=mine)
            self.assertEqual(answer.status, 204, answer.body)
            record = self.api.audited[-1]
            self.assertEqual(
                {key: record[key] for key in ("action", "user_name", "outcome")},
                {"action": "POST /console/logout", "user_name": "alice", "outcome": "accepted"},
            )
            self.assertIsNone(self.api.cloud.core.living_token(login["token"]))
            self.assertEqual(self.api.call("GET", path, headers=mine).status, 401)
            still = self.api.call("GET", path, headers={"X-Auth-Token": other})
            self.assertEqual(still.status, 200)
            again = self.api.call("POST", "/console/logout", headers=mine)
            self.assertEqual(again.status, 401)

    def test_a_log_out_that_the_identity_service_does_not_take(self) -> None:
        """The token is as valid as before."""
        mine = {"X-Auth-Token": self.post({**ALICE, "project": "alpha"}).json["token"]}
        self.assertEqual(self.api.call("POST", "/console/logout").status, 401)
        self.api.faults.add(where="identity", effect="refused", method="DELETE")
        answer = self.api.call("POST", "/console/logout", headers=mine)
        self.assertEqual(answer.status, 503)
        self.assertIn("cannot end the token now", answer.json["error_message"])
        self.assertEqual(self.api.call("GET", "/v1.1/alpha/clusters", headers=mine).status, 200)

    def test_wrong_bodies(self) -> None:
        """All faults at once, by their paths; no value is repeated."""
        text = self.refused(400, {"user": "", "password": ["geheim"], "more": 1})
        for path in ("$.user", "$.domain", "$.password", "$.more"):
            self.assertIn(path, text)
        self.assertNotIn("geheim", text)
        self.refused(413, {**ALICE, "password": "x" * 4096})

    def test_a_password_travels_only_with_encryption(self) -> None:
        """A proxy on this machine that has received it without TLS is refused."""
        text = self.refused(403, ALICE, X_Forwarded_Proto="http")
        self.assertIn("open the console with https", text)
        self.assertEqual(self.post(ALICE, X_Forwarded_Proto="https").status, 200)

    def test_too_many_wrong_passwords(self) -> None:
        """429 with the time to wait."""
        for _ in range(5):
            self.refused(401, {**ALICE, "password": "x"})
        answer = self.post(ALICE)
        self.assertEqual(answer.status, 429)
        self.assertEqual(answer.headers["Retry-After"], "60")

    def test_faults_of_the_identity_service_do_not_show_its_address(self) -> None:
        """Nor to a caller with an unknown token; the log has it."""
        for effect, status, reason in (
            ("refused", 503, "svcd does not reach it"),
            ("timeout_before", 504, "it has not answered in time"),
            ("reset_before", 503, "it has given no usable answer"),
        ):
            handle = self.api.faults.add(where="identity", effect=effect)
            with capturedLogs() as events:
                unknown = {"X-Auth-Token": f"unknown {effect}"}
                check = self.api.call("GET", "/v1.1/alpha/clusters", headers=unknown)
                login = self.post(ALICE)
            handle.remove()
            for answer, what in ((check, "check the token"), (login, "log anybody in")):
                self.assertEqual(
                    (answer.status, answer.json["error_message"]),
                    (
                        status,
                        f"the identity service cannot {what} now: {reason}; try again, or see the"
                        " log of svcd",
                    ),
                )
            logged = [each["text"] for each in events if "could not {what}" in each["log_format"]]
            self.assertEqual(len(logged), 2)
            for each in logged:
                self.assertIn("http://cloud.test:8387/identity/v3/auth/tokens", each)

    def test_where_there_is_no_login_it_says_so(self) -> None:
        """Without tokens, without the setting, without the console."""
        self.api = self.service()
        self.assertIn("auth.mode=none", self.refused(404, ALICE))
        self.assertEqual(self.api.call("POST", "/console/logout").status, 404)
        self.api = self.service(auth__mode="keystone", console__password_login="false")
        self.assertIn("console.password_login", self.refused(404, ALICE))
        setup = self.api.call("GET", "/console/setup").json
        self.assertEqual((setup["auth"], setup["password_login"]), ("keystone", False))
        self.api = self.service(auth__mode="keystone", console__enabled="false")
        self.assertIn("X-Auth-Token is missing", self.refused(401, ALICE))
