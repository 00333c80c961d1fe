"""`svcd doctor` before a cloud: whole, and with each thing broken."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.cloud_doctor import CloudDoctor, CloudUser, login
from svcd.cli.finding import Finding
from svcd.cli.http import Answer
from svcd.embedded.faults import FaultRule
from svcd.model.cloud import Opening
from svcd.model.ids import TenantId
from svcd.ports.cloud import Access, CloudSession
from svcd.settings import CloudSettings
from tests.support.http import AnsweredBy
from tests.unit.embedded.cloud.rig import ORIGIN, PLAIN_IMAGE_ID, Rig

TAGS = {"fake 0.1": ("fake", "0.1")}


class CloudDoctorTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.rig = Rig()

    def user(self, name: str = "alice") -> CloudUser:
        """A user of project alpha."""
        return CloudUser(self.rig.token(name, name, "alpha").reveal())

    def found(self, *users: CloudUser | None, **settings: Any) -> dict[str, Finding]:
        """Findings by their subject. users: the one of the doctor; without one Alice."""
        (user,) = users or (self.user(),)
        given: dict[str, Any] = {
            "auth_url": f"{ORIGIN}/identity/v3",
            "username": "svcd",
            "password": "svcd",
            "project": "service",
            **settings,
        }
        logins = AnsweredBy(lambda *_: Answer(401, {}, b"{}"))
        doctor = CloudDoctor(self.rig.agent, self.rig.clock, CloudSettings(**given), logins)
        findings = self.rig.run(doctor.examine(user, TAGS))
        self.assertEqual(len({f.what for f in findings}), len(findings))
        return {f.what: f for f in findings}

    def words(self, found: dict[str, Finding]) -> list[tuple[str, str]]:
        """What is not good."""
        return [(f.word, f.what) for f in found.values() if not f.good]

    def session(self) -> CloudSession:
        """Of Alice."""
        alice = self.rig.client("alice", "alice", "alpha")
        return alice.session(Access(tenant_id=TenantId("alpha")))

    def registered(self) -> None:
        """The plain image, with the tags."""
        properties = {"_svc_username": "u", "_svc_tag_fake": "True", "_svc_tag_0.1": "True"}
        self.rig.run(self.session().set_image_properties(PLAIN_IMAGE_ID, properties, []))

    def broken(self, where: str, path: str, status: int = 200, body: Any = "") -> None:
        """Another answer of the cloud in place of the former one."""
        self.rig.faults.clear()
        text = body if isinstance(body, str) else json.dumps(body)
        self.rig.faults.add(FaultRule(where=where, path=path, status=status, body=text))

    def test_a_cloud_without_a_fault(self) -> None:
        """Every check is told, and what was made for it is gone again."""
        self.registered()
        found = self.found()
        self.assertEqual(self.words(found), [])
        self.assertEqual(
            list(found),
            ["cloud.web_cidrs", "identity service", "svcd's user", "compute", "image", "network",
             "volume", "object-store", "tokens of users", "user", "trust", "job credential",
             "flavors", "network of clusters", "floating IPs", "key pairs", "quota",
             "security groups", "images for fake 0.1"],
        )  # fmt: skip
        self.assertEqual(
            found["compute"].text, f"{ORIGIN}/compute/v2.1 speaks 2.1 to 2.79, svcd uses 2.79"
        )
        self.assertEqual(found["user"].text, "alice in project alpha, roles: member, reader")
        self.assertEqual(found["images for fake 0.1"].text, "plain")
        self.assertEqual(found["quota"].text[:29], "left: servers 200, cores 800,")
        state = self.rig.cloud.core.state
        self.assertEqual([*state.trusts.values(), *state.credentials.values()], [])

    def test_pages_that_are_open_to_everybody(self) -> None:
        """A failure, unless the operator has accepted it; a network of users is fine."""
        for given, words in (
            ({"web_cidrs": ("192.0.2.0/24",)}, []),
            ({"web_cidrs": ("192.0.2.0/24", "0.0.0.0/0")}, [("fail", "cloud.web_cidrs")]),
            ({"web_cidrs": ("0.0.0.0/1", "128.0.0.0/1")}, [("fail", "cloud.web_cidrs")]),
            ({"web_cidrs": ("::/0",), "allow_public_web": True}, [("warn", "cloud.web_cidrs")]),
        ):
            self.registered()
            self.assertEqual(self.words(self.found(**given)), words)

    def test_groups_of_an_older_release(self) -> None:
        """Their names and open ports, and what closes them; a group with SSH alone is fine."""
        self.registered()
        session = self.session()
        ssh, pages = Opening(22, "0.0.0.0/0"), Opening(9870, "0.0.0.0/0")
        self.rig.run(session.create_security_group("svcd-new", "", [ssh]))
        self.rig.run(session.create_security_group("svcd-old", "", [ssh, pages]))
        self.rig.run(session.create_security_group("theirs", "", [ssh, pages]))
        found = self.found()
        self.assertEqual(self.words(found), [("warn", "security groups")])
        self.assertIn("svcd-old (ports 22, 9870)", found["security groups"].text)
        self.assertNotIn("svcd-new", found["security groups"].text)
        self.assertIn("resize", found["security groups"].remedy)

    def test_an_identity_service_that_is_none(self) -> None:
        """Another path, another version, something else, nothing."""
        for status, body, words in (
            (200, {}, "is not that of Keystone v3"),
            (200, {"version": {"id": "v2.0"}}, "speaks v2.0"),
            (300, "", "answered 300"),
        ):
            self.broken("identity", "/v3$", status, body)
            found = self.found()
            self.assertEqual(self.words(found), [("fail", "identity service")])
            self.assertIn(words, found["identity service"].text)
            self.assertIn("cloud.auth_url must be", found["identity service"].remedy)
        found = self.found(auth_url="http://nobody/v3")
        self.assertIn("http://nobody/v3 cannot be reached", found["identity service"].text)

    def test_services_that_cannot_be_used(self) -> None:
        """Those that clusters need fail, the others are warned of. A failure ends the checks."""
        found = self.found(region="Mars")
        needed = [("fail", name) for name in ("compute", "image", "network")]
        others = [("warn", name) for name in ("volume", "object-store")]
        self.assertEqual(self.words(found), [*needed, *others])
        self.assertIn("the regions RegionOne and the interfaces", found["compute"].remedy)
        self.assertNotIn("trust", found)
        newer = {"version": {"version": "2.120", "min_version": "2.90"}}
        self.broken("compute", "/v2.1/$", 200, newer)
        compute = self.found()["compute"]
        self.assertIn("speaks 2.90 to 2.120, svcd needs up to 2.79", compute.text)
        self.assertIn("another release", compute.remedy)
        for body, text in (
            ({"versions": [{"id": "v1.0"}]}, "does not speak v2"),
            ("nonsense", "answered without versions"),
        ):
            self.broken("image", "/image/$", 200, body)
            self.assertIn(text, self.found()["image"].text)
        self.rig.faults.add(FaultRule(where="network", effect="refused"))
        self.assertIn("connection refused", self.found()["network"].text)

    def test_the_user_of_svcd(self) -> None:
        """A wrong password is the only thing that is told; a role may be missing."""
        found = self.found(password="wrong")
        self.assertEqual(self.words(found), [("fail", "svcd's user")])
        self.assertIn("SVCD_CLOUD_PASSWORD", found["svcd's user"].remedy)
        bob = {"username": "bob", "password": "bob", "project": "beta"}
        role = "openstack role add --user bob --project beta service"
        self.registered()
        found = self.found(**bob)
        self.assertEqual(self.words(found), [("fail", "tokens of users")])
        self.assertIn("was answered 403", found["tokens of users"].text)
        self.assertIn(role, found["tokens of users"].remedy)
        found = self.found(None, **bob)
        self.assertEqual(self.words(found), [("fail", "tokens of users"), ("warn", "user")])
        self.assertEqual(found["tokens of users"].remedy, role)

    def test_users_that_cannot_be_looked_at(self) -> None:
        """Nobody, a wrong password, a garbled token."""
        self.assertIn("--token", self.found(None)["user"].remedy)
        wrong = {"OS_USERNAME": "alice", "OS_PASSWORD": "s3cret", "OS_PROJECT_NAME": "alpha"}
        found = self.found(CloudUser(variables=wrong))
        self.assertEqual(self.words(found), [("fail", "user")])
        self.assertIn("was refused with the status 401", found["user"].text)
        found = self.found(CloudUser(token="garbled"))
        self.assertEqual(found["user"].text, "the token is not valid")

    def test_a_reader_can_create_no_cluster(self) -> None:
        """A warning names role and setting."""
        trust = Finding(
            "trust", False, "the user may make no cluster: has none of member (cloud.trust_roles)",
            "openstack role add --user carol --project alpha member", True,
        )  # fmt: skip
        self.assertEqual(self.found(self.user("carol"))["trust"], trust)

    def test_job_credentials(self) -> None:
        """A warning when none can be made or removed, because not all jobs need one."""
        self.registered()
        path = "application_credentials"
        refused = self.found(job_roles=("other",))
        self.assertEqual(self.words(refused), [("warn", "job credential")])
        said = refused["job credential"]
        self.assertIn("has none of the roles other in project alpha", said.text)
        self.broken("identity", path, 404)
        self.assertEqual(
            self.found()["job credential"].remedy,
            "the cloud has no application credentials: --set cloud.job_credentials=password",
        )
        self.rig.faults.clear()
        self.rig.faults.add(FaultRule(where="identity", method="DELETE", path=path, status=403))
        kept = self.found()["job credential"]
        (left,) = self.rig.cloud.core.state.credentials.values()
        self.assertIn("created, but not removed: ", kept.text)
        self.assertEqual(kept.remedy, f"openstack application credential delete {left.name}")
        found = self.found(job_credentials="password")
        self.assertEqual(self.words(found), [("warn", "passwords of jobs")])

    def test_a_quota_that_is_used_up(self) -> None:
        """Servers are needed, floating IPs only by some."""
        for quotas, word, text in (
            ({"instances": 0}, "fail", "no servers left"),
            ({"floating_ips": 0, "volumes": 0}, "warn", "no volumes, no floating IPs left"),
        ):
            self.rig.raw("PUT", "/admin/quotas/alpha", quotas)
            found = self.found()["quota"]
            self.assertEqual((found.word, found.text), (word, text))

    def test_images_without_registration(self) -> None:
        """Tags alone are not enough either."""
        found = self.found()["images for fake 0.1"]
        self.assertEqual(found.word, "warn")
        self.assertIn("none of 2 images is registered with the tags fake, 0.1", found.text)
        remedy = "svcd image register IMAGE --user LOGIN --tag fake --tag 0.1"
        self.assertIn(remedy, found.remedy)


class LoginTests(SynchronousTestCase):
    def test_who_is_named(self) -> None:
        """The flag, then a token, an application credential, a password; else nobody."""
        self.assertEqual(login("", {}), None)
        self.assertEqual(login("", {"OS_USERNAME": "u"}), None)
        for given in (
            {"OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_PROJECT_NAME": "n"},
            {"OS_APPLICATION_CREDENTIAL_ID": "i", "OS_APPLICATION_CREDENTIAL_SECRET": "s"},
        ):
            self.assertEqual(login("", {"HOME": "/", **given}), CloudUser("", given))
        both = {"OS_TOKEN": "t", "OS_USERNAME": "u"}
        self.assertEqual(login("", both), CloudUser("t", both))
        self.assertEqual(login("given", both), CloudUser("given", both))
