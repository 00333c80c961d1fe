"""Every route with every kind of caller: who is let in, who is not, and what a refusal says."""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from svcd.model import ownership_tags
from svcd.testing import CLOUD_URL, FakeService
from tests.support.api import daemon_of

OPEN = {"/", "/healthz", "/readyz", "/metrics", "/openapi.json"} | {
    "/console",
    "/console/<file_name>",
    "/console/setup",
    "/console/login",
    "/console/logout",
}
CHANGES_BY_GET = ("/refresh-status", "/cancel")
_ID = "0b3a6f0e-8a0e-4ff5-9f0e-1f0a1c2d3e4f"


class PolicyTests(SynchronousTestCase):
    """The roles of the embedded cloud's users in project alpha."""

    def setUp(self) -> None:
        self.svcd = FakeService({"auth.mode": "keystone"})
        self.addCleanup(self.svcd.close)
        self.routes = [
            (each.method, re.sub("<tenant_id>", "alpha", each.pattern))
            for each in daemon_of(self.svcd).resource.routes()
        ]
        self.inner = [(m, re.sub(r"<\w+>", "v", p)) for m, p in self.routes if p not in OPEN]
        stream = self.inner.index(("GET", "/v1.1/alpha/watch"))
        self.inner[stream] = "GET", "/v1.1/alpha/watch?kinds=none"  # its answer would not end

    def token(self, user: str, project: str = "alpha") -> dict[str, str]:
        return {"X-Auth-Token": self.svcd.token(user, project=project)}

    def answers(self, headers: dict[str, str]) -> list[tuple[str, str, int, str]]:
        """Method, path, status and `error_name` of the answer of every route with a tenant."""
        found = []
        for method, path in self.inner:
            answer = self.svcd.call(method, path, headers=headers)
            name = answer.json["error_name"] if answer.status >= 400 else ""
            found.append((method, path, answer.status, name))
        return found

    def test_the_open_routes_are_these(self) -> None:
        """All others are below a tenant."""
        self.assertEqual({p for _, p in self.routes if p in OPEN}, OPEN)
        self.assertEqual({p.split("/")[2] for _, p in self.inner}, {"alpha"})
        self.assertGreater(len(self.inner), 70)

    def test_without_a_token(self) -> None:
        """Every route with a tenant answers 401."""
        for method, path, status, name in self.answers({}):
            self.assertEqual((status, name), (401, "UNAUTHORIZED"), (method, path))

    def test_a_token_of_another_tenant(self) -> None:
        """Every route answers 403, whatever the role there."""
        for method, path, status, name in self.answers(self.token("bob", "beta")):
            self.assertEqual((status, name), (403, "FORBIDDEN"), (method, path))

    def test_a_reader(self) -> None:
        """It reads, and every change answers 403, also the changes by GET."""
        for method, path, status, name in self.answers(self.token("carol")):
            if method == "GET" and not path.endswith(CHANGES_BY_GET):
                self.assertNotIn(status, (401, 403), (method, path))
            else:
                self.assertEqual((status, name), (403, "FORBIDDEN"), (method, path))

    def test_a_member_and_an_admin(self) -> None:
        """No route refuses them."""
        for user in ("alice", "dave"):
            for method, path, status, _ in self.answers(self.token(user)):
                self.assertNotIn(status, (401, 403), (user, method, path))

    def test_a_caller_without_a_known_role(self) -> None:
        """Every route of its own tenant answers 403."""
        self.svcd.cloud.core.users_by_name["alice"].roles["alpha"] = ("observer",)
        token = self.token("alice")
        for method, path in self.inner:
            answer = self.svcd.call(method, path, headers=token)
            self.assertEqual(answer.status, 403, (method, path))
            self.assertIn("observer", answer.json["error_message"])

    def test_the_login_of_a_job(self) -> None:
        """Every route answers 403: programs on a machine could read passwords with it."""
        headers = self.login(ownership_tags.credential_name(_ID, "0" * 16, _ID, 1))
        for method, path, status, name in self.answers(headers):
            self.assertEqual((status, name), (403, "FORBIDDEN"), (method, path))
        answer = self.svcd.call("GET", "/v1.1/alpha/data-sources", headers=headers)
        self.assertIn("application credential of a job", answer.json["error_message"])

    def test_an_application_credential_of_a_user(self) -> None:
        """It is as good as its roles, but cannot give the trust that a cluster needs."""
        headers = self.login("mine")
        answer = self.svcd.call("GET", "/v1.1/alpha/data-sources", headers=headers)
        self.assertEqual(answer.status, 200)
        made = self.svcd.call("POST", "/v1.1/alpha/clusters", json=self.cluster(), headers=headers)
        self.assertEqual((made.status, made.json["error_name"]), (403, "FORBIDDEN"))
        self.assertIn("log in with a password", made.json["error_message"])

    def login(self, name: str) -> dict[str, str]:
        """A token of an application credential of alice with this name."""
        mine, identity = self.token("alice"), f"{CLOUD_URL}/identity/v3"
        user_id = self.svcd.cloud.core.users_by_name["alice"].id
        made = self.svcd.call(
            "POST",
            f"{identity}/users/{user_id}/application_credentials",
            json={"application_credential": {"name": name}},
            headers=mine,
        ).json["application_credential"]
        known = {"id": made["id"], "secret": made["secret"]}
        given = {"methods": ["application_credential"], "application_credential": known}
        answer = self.svcd.call(
            "POST", f"{identity}/auth/tokens", json={"auth": {"identity": given}}
        )
        return {"X-Auth-Token": answer.headers["X-Subject-Token"]}

    def test_a_refusal_names_role_and_setting(self) -> None:
        """The reader learns what is missing and where it is set."""
        answer = self.svcd.call(
            "DELETE", "/v1.1/alpha/clusters/v", headers=self.token("carol")
        ).json
        self.assertEqual(
            answer["error_message"],
            "DELETE /v1.1/<tenant_id>/clusters/<cluster_id> needs one of the roles admin, member"
            " (setting auth.write_roles), and the token has reader: get one of them in the"
            " project, then a new token",
        )

    def test_the_roles_are_settings(self) -> None:
        """Without regard to case; a role of one list is not a role of the other."""
        self.svcd.restart({"auth.write_roles": "Reader", "auth.read_roles": "ADMIN"})
        for user, method, status in (
            ("carol", "GET", 403),
            ("carol", "POST", 400),
            ("dave", "GET", 200),
            ("alice", "GET", 403),
        ):
            answer = self.svcd.call(method, "/v1.1/alpha/jobs", headers=self.token(user))
            self.assertEqual(answer.status, status, (user, method))

    def test_credentials_are_shown_to_writers_only(self) -> None:
        """Of data sources and job binaries, also inside URLs and jobs, one by one and in lists."""
        secret = {"user": "u-visible", "password": "p-visible"}
        alice = self.token("alice")
        new = {"name": "in", "type": "objstore", "credentials": secret}
        new["url"] = "objstore://u-visible:p-visible@c/o"
        source = self.made("data-sources", new)
        url = "objstore-internal://c/o"
        binary = self.made("job-binaries", {"name": "b", "url": url, "extra": secret})
        job = self.made("jobs", {"name": "j", "type": "Pig", "mains": [binary], "libs": []})
        for path in (
            "data-sources",
            f"data-sources/{source}",
            "job-binaries",
            f"job-binaries/{binary}",
            "jobs",
            f"jobs/{job}",
        ):
            for who, shown in ((alice, True), (self.token("carol"), False)):
                answer = self.svcd.call("GET", f"/v1.1/alpha/{path}", headers=who)
                self.assertEqual(answer.status, 200)
                for each in (b"u-visible", b"p-visible"):
                    self.assertEqual(each in answer.body, shown, (path, shown))

    def made(self, family: str, body: dict[str, object]) -> str:
        answer = self.svcd.call(
            "POST", f"/v1.1/alpha/{family}", json=body, headers=self.token("alice")
        )
        self.assertEqual(answer.status, 202, answer.body)
        (made,) = answer.json.values()
        return str(made["id"])

    def test_a_reader_changes_nothing_of_a_cluster(self) -> None:
        """Scaling and deleting would run on the trust of the cluster's creator."""
        path, body = "/v1.1/alpha/clusters", self.cluster()
        made = self.svcd.call("POST", path, json=body, headers=self.token("alice"))
        self.assertEqual(made.status, 202, made.body)
        self.svcd.advance(600)
        one = f"{path}/{made.json['cluster']['id']}"
        before = self.svcd.call("GET", one, headers=self.token("carol"))
        self.assertEqual(before.json["cluster"]["status"], "Active")
        size = {"resize_node_groups": [{"name": "workers", "count": 2}]}
        for method, given in (("PUT", size), ("DELETE", None)):
            answer = self.svcd.call(method, one, json=given, headers=self.token("carol"))
            self.assertEqual(answer.status, 403)
        self.svcd.advance(600)
        after = self.svcd.call("GET", one, headers=self.token("carol"))
        then, now = ({**answer.json["cluster"], "usage": None} for answer in (before, after))
        self.assertEqual(now, then)

    def test_a_trust_carries_no_role_but_those_of_the_setting(self) -> None:
        """The trust of an admin carries member, and never admin."""
        path = "/v1.1/alpha/clusters"
        made = self.svcd.call("POST", path, json=self.cluster(), headers=self.token("dave"))
        self.assertEqual(made.status, 202, made.body)
        (trust,) = self.svcd.cloud.core.state.trusts.values()
        self.assertEqual(trust.roles, ("member",))

    def test_a_caller_without_a_role_for_the_trust_makes_no_cluster(self) -> None:
        """The refusal names the setting of the trust's roles."""
        self.svcd.restart({"cloud.trust_roles": "builder"})
        made = self.svcd.call(
            "POST", "/v1.1/alpha/clusters", json=self.cluster(), headers=self.token("alice")
        )
        self.assertEqual((made.status, made.json["error_name"]), (403, "FORBIDDEN"))
        self.assertIn("cloud.trust_roles", made.json["error_message"])
        self.assertEqual(list(self.svcd.cloud.core.state.trusts.values()), [])

    def cluster(self) -> dict[str, object]:
        group = {"count": 1, "flavor_id": self.svcd.flavor_id}
        return {
            "name": "c",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "default_image_id": self.svcd.image_id,
            "user_keypair_id": self.svcd.keypair,
            "node_groups": [
                {"name": "masters", "node_processes": ["namenode"], **group},
                {"name": "workers", "node_processes": ["datanode"], **group},
            ],
        }
