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

    def test_a_cloud_without_a_fault(self) -> None:
        """Every check is told, and the trust is gone again."""
        self.registered()
        found = self.found()
        self.assertEqual(self.words(found), [])
        self.assertEqual(
            list(found),
            [
                "cloud.web_cidrs",
                "identity service",
                "svcd's user",
                "compute",
                "image",
                "network",
                "volume",
                "object-store",
                "tokens of users",
                "user",
                "trust",
                "job credential",
                "flavors",
                "network of clusters",
                "floating IPs",
                "key pairs",
                "quota",
                "security groups",
                "images for fake 0.1",
            ],
        )
        self.assertEqual(
            found["compute"].text, f"{ORIGIN}/compute/v2.1 speaks 2.1 to 2.79, svcd uses 2.79"
        )
        self.assertEqual(found["user"].text, "alice in project alpha, roles: member, reader")
        self.assertEqual(found["images for fake 0.1"].text, "plain")
        self.assertEqual(found["quota"].text[:29], "left: servers 200, cores 800,")
        self.assertEqual(list(self.rig.cloud.core.state.trusts.values()), [])
        self.assertEqual(list(self.rig.cloud.core.state.credentials.values()), [])

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

    def test_nobody_is_given(self) -> None:
        """Then the roles of svcd's user tell."""
        found = self.found(None)
        self.assertEqual(self.words(found), [("warn", "user")])
        self.assertIn("--token", found["user"].remedy)
        found = self.found(None, username="bob", password="bob", project="beta")
        self.assertEqual(self.words(found), [("fail", "tokens of users"), ("warn", "user")])
        self.assertEqual(
            found["tokens of users"].remedy, "openstack role add --user bob --project beta service"
        )

    def test_the_identity_service(self) -> None:
        """Not there, another path, another version, something else."""
        for body, status, words in (
            ("{}", 200, "is not that of Keystone v3"),
            (json.dumps({"version": {"id": "v2.0"}}), 200, "speaks v2.0"),
            ("", 300, "answered 300"),
            ("", 404, "answered 404"),
        ):
            rule = FaultRule(where="identity", path="/v3$", status=status, body=body, times=1)
            self.rig.faults.add(rule)
            found = self.found()
            self.assertEqual(self.words(found), [("fail", "identity service")])
            self.assertIn(words, found["identity service"].text)
            self.assertIn("cloud.auth_url must be", found["identity service"].remedy)
        found = self.found(auth_url="http://nobody/v3")
        self.assertIn("http://nobody/v3 cannot be reached", found["identity service"].text)

    def test_a_wrong_password(self) -> None:
        """The only thing that is told then."""
        found = self.found(password="wrong")
        self.assertEqual(self.words(found), [("fail", "svcd's user")])
        self.assertIn("SVCD_CLOUD_PASSWORD", found["svcd's user"].remedy)

    def test_a_role_that_is_missing(self) -> None:
        """Keystone says so when a user's token is there to be looked at."""
        found = self.found(username="bob", password="bob", project="beta")
        self.assertEqual(self.words(found), [("fail", "tokens of users")])
        self.assertIn("was answered 403", found["tokens of users"].text)
        self.assertIn("--user bob --project beta service", found["tokens of users"].remedy)

    def test_a_region_that_is_not_there(self) -> None:
        """Those that are; no cluster could be made, so the tenant is not checked."""
        found = self.found(region="Mars")
        self.assertEqual(
            self.words(found),
            [
                ("fail", "compute"),
                ("fail", "image"),
                ("fail", "network"),
                ("warn", "volume"),
                ("warn", "object-store"),
            ],
        )
        self.assertIn("the regions RegionOne and the interfaces", found["compute"].remedy)
        self.assertNotIn("trust", found)

    def test_services_that_are_down(self) -> None:
        """Those that clusters need fail, the others are warned of."""
        for service, word in (("compute", "fail"), ("network", "fail"), ("volume", "warn")):
            handle = self.rig.faults.add(FaultRule(where=service, effect="refused"))
            found = self.found()
            self.assertIn((word, service), self.words(found))
            self.assertIn("connection refused", found[service].text)
            handle.remove()

    def test_a_silent_service(self) -> None:
        """It is not waited for for ever."""
        self.rig.faults.add(FaultRule(where="image", effect="timeout_before"))
        found = self.found()
        self.assertIn("had no complete answer within 30 s", found["image"].text)

    def test_services_of_other_versions(self) -> None:
        """Too new, too old, none at all."""
        document: Any = {"version": {"version": "2.120", "min_version": "2.90"}}
        self.answer("compute", "/v2.1/$", document)
        found = self.found()
        self.assertIn("speaks 2.90 to 2.120, svcd needs up to 2.79", found["compute"].text)
        self.assertIn("another release", found["compute"].remedy)
        self.rig.faults.clear()
        self.answer("image", "/image/$", {"versions": [{"id": "v1.0"}]})
        self.assertIn("does not speak v2", self.found()["image"].text)
        self.rig.faults.clear()
        self.answer("image", "/image/$", "nonsense")
        self.assertIn("answered without versions", self.found()["image"].text)

    def answer(self, where: str, path: str, body: Any) -> None:
        text = json.dumps(body)
        self.rig.faults.add(FaultRule(where=where, path=path, status=200, body=text, times=9))

    def test_users_that_cannot_be_looked_at(self) -> None:
        """A wrong password, a garbled token, one of no project."""
        wrong = {"OS_USERNAME": "alice", "OS_PASSWORD": "s3cret", "OS_PROJECT_NAME": "alpha"}
        found = self.found(CloudUser(variables=wrong))
        self.assertEqual(self.words(found), [("fail", "user")])
        self.assertIn("was refused with the status 401", found["user"].text)
        found = self.found(CloudUser(token="garbled"))
        self.assertEqual(found["user"].text, "the token is not valid")

    def test_a_reader(self) -> None:
        """A warning says that the user can create no cluster, and names role and setting."""
        found = self.found(self.user("carol"))
        self.assertEqual(
            found["trust"],
            Finding(
                "trust",
                False,
                "the user may make no cluster: has none of member (cloud.trust_roles)",
                "openstack role add --user carol --project alpha member",
                True,
            ),
        )

    def test_a_job_credential_that_cannot_be_made(self) -> None:
        """By the roles, or by the cloud; a warning, because not all jobs need one."""
        self.registered()
        known = "the cloud has no application credentials: --set cloud.job_credentials=password"
        for rule, words, remedy in (
            (None, "has none of the roles other in project alpha", ""),
            (
                FaultRule(where="identity", path="application_credentials", status=404),
                "404",
                known,
            ),
        ):
            if rule is not None:
                self.rig.faults.add(rule)
            found = self.found(job_roles=("other",) if rule is None else ("member",))
            self.assertEqual(self.words(found), [("warn", "job credential")])
            self.assertIn(words, found["job credential"].text)
            self.assertEqual(found["job credential"].remedy, remedy)

    def test_a_job_credential_that_cannot_be_deleted(self) -> None:
        """The user deletes it by its name; it has no tag, so `svcd orphans` does not find it."""
        self.registered()
        path = "application_credentials"
        rule = FaultRule(where="identity", method="DELETE", path=path, status=403)
        self.rig.faults.add(rule)
        found = self.found()["job credential"]
        (left,) = self.rig.cloud.core.state.credentials.values()
        self.assertIn("created, but not removed: ", found.text)
        self.assertEqual(found.remedy, f"openstack application credential delete {left.name}")

    def test_jobs_that_get_passwords(self) -> None:
        """The operator has chosen so."""
        self.registered()
        found = self.found(job_credentials="password")
        self.assertEqual(self.words(found), [("warn", "passwords of jobs")])

    def test_a_trust_that_cannot_be_given(self) -> None:
        """By a restricted application credential."""
        token = self.rig.token("alice", "alice", "alpha").reveal()
        user = self.rig.cloud.core.users_by_name["alice"].id
        made = self.rig.raw(
            "POST",
            f"/identity/v3/users/{user}/application_credentials",
            {"application_credential": {"name": "c"}},
            token=token,
        ).json()["application_credential"]
        given = {key: made[key] for key in ("id", "secret")}
        identity = {"methods": ["application_credential"], "application_credential": given}
        answer = self.rig.raw("POST", "/identity/v3/auth/tokens", {"auth": {"identity": identity}})
        found = self.found(CloudUser(answer.header("x-subject-token")))
        self.assertFalse(found["trust"].good)
        self.assertEqual(found["trust"].remedy, "")

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
