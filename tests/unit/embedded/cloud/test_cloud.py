"""The embedded cloud as a whole: envelopes, faults, time, restarts, guests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.http import Answer
from svcd.embedded.cloud.core import fixed_id
from svcd.embedded.cloud.guests import AddressTaken, GuestError, Guests, GuestSpec
from svcd.embedded.faults import FaultRule
from svcd.model.cloud import NewServer
from svcd.model.ids import ClusterId, TenantId
from svcd.ports.cloud import Access, CloudError, CloudSession
from svcd.ports.faults import Fault
from svcd.runtime.clock import VirtualClock
from svcd.settings import Embedded
from tests.unit.embedded.cloud.rig import PLAIN_IMAGE_ID, Rig

C = ClusterId("c")


def plain(**more: Any) -> NewServer:
    return NewServer(
        name="s",
        image_id=PLAIN_IMAGE_ID,
        flavor_id="1",
        keypair="demo",
        metadata={"svcd_cluster_id": "c"},
        **more,
    )


class RecordingGuests(Guests):
    """Remembers what it was told; may be told to fail.

    failing: the fault of each boot; taken: addresses of other programs; late: those that they take
    after svcd has looked.
    """

    def __init__(self) -> None:
        self.said: list[tuple[object, ...]] = []
        self.specs: list[GuestSpec] = []
        self.failing = ""
        self.taken: set[str] = set()
        self.late: set[str] = set()

    async def boot(self, spec: GuestSpec) -> None:
        self.specs.append(spec)
        self.said.append(("boot", spec.addresses))
        if self.failing:
            raise GuestError(self.failing)
        for address in spec.addresses:
            if address in self.taken | self.late:
                raise AddressTaken(f"{address} is taken", address)

    def occupied(self) -> Callable[[str], bool]:
        return self.taken.__contains__

    async def halt(self, server_id: str) -> None:
        self.said.append(("halt",))

    async def destroy(self, server_id: str) -> None:
        self.said.append(("destroy",))

    async def attach(self, server_id: str, volume_id: str, device: str) -> None:
        self.said.append(("attach", device))

    async def detach(self, server_id: str, volume_id: str) -> None:
        self.said.append(("detach",))

    async def destroy_volume(self, volume_id: str) -> None:
        self.said.append(("destroy_volume",))


class CloudCase(SynchronousTestCase):
    def rig_of(self, **more: Any) -> tuple[Rig, CloudSession]:
        rig = Rig(**more)
        cloud = rig.client("demo", "demo", "demo")
        return rig, cloud.session(Access(tenant_id=TenantId("t")))


class DelegationTests(CloudCase):
    """Neither a trust nor an application credential gives more than its maker has."""

    def setUp(self) -> None:
        self.rig = Rig()
        core = self.rig.cloud.core
        self.ids = {name: user.id for name, user in core.users_by_name.items()}

    def trust(self, who: str, home: str, project_id: str, role: str) -> tuple[int, str]:
        """Status and message of `who`, with a token of `home`, making a trust to itself."""
        me = self.ids[who]
        trust = {"trustor_user_id": me, "trustee_user_id": me, "impersonation": True}
        body = {"trust": {**trust, "project_id": project_id, "roles": [{"name": role}]}}
        token = self.rig.token(who, who, home).reveal()
        answer = self.rig.raw("POST", "/identity/v3/OS-TRUST/trusts", body, token=token)
        return answer.status, answer.json().get("error", {}).get("message", "")

    def login(self, method: str, given: dict[str, Any], **scope: Any) -> Answer:
        """The answer for a login by one method."""
        identity = {"methods": [method], method: given}
        body = {"auth": {"identity": identity, **scope}}
        return self.rig.raw("POST", "/identity/v3/auth/tokens", body)

    def test_a_trust_in_a_project_without_a_role_there_is_refused(self) -> None:
        """404 for the role, as Keystone says it, and no trust is kept."""
        missing = f"Could not find role: {fixed_id('role', 'member')}."
        for project_id in ("alpha", "service", "no-such-project"):
            self.assertEqual(self.trust("bob", "beta", project_id, "member"), (404, missing))
        self.assertEqual(len(self.rig.cloud.core.state.trusts), 0)

    def test_the_token_of_an_application_credential_is_not_exchanged(self) -> None:
        """403 with any scope; the token of a password is exchanged."""
        password = self.rig.token("alice", "alice", "alpha").reveal()
        path = f"/identity/v3/users/{self.ids['alice']}/application_credentials"
        new = {"application_credential": {"name": "n", "roles": [{"name": "reader"}]}}
        made = self.rig.raw("POST", path, new, token=password).json()["application_credential"]
        given = {"id": made["id"], "secret": made["secret"]}
        weak = self.login("application_credential", given).header("x-subject-token")
        for scope in ({}, {"scope": {"project": {"id": "alpha"}}}, {"scope": "unscoped"}):
            answer = self.login("token", {"id": weak}, **scope)
            self.assertEqual((answer.status, answer.header("x-subject-token")), (403, ""), scope)
        answer = self.login("token", {"id": password}, scope={"project": {"id": "alpha"}})
        roles = sorted(role["name"] for role in answer.json()["token"]["roles"])
        self.assertEqual((answer.status, roles), (201, ["member", "reader"]))


class FaultTests(CloudCase):
    """Rules as data."""

    def kind(self, rule: FaultRule, work: Any) -> Fault:
        rig, session = self.rig
        rig.faults.clear()
        rig.faults.add(rule)
        return self.assertRaises(CloudError, rig.run, work(session)).kind

    def setUp(self) -> None:
        self.rig = self.rig_of()

    def servers(self) -> int:
        rig, session = self.rig
        rig.faults.clear()
        return len(rig.run(session.servers(C)))

    def test_each_effect_on_a_create(self) -> None:
        """BEFORE leaves nothing behind, AFTER and GARBAGE do."""
        for effect, kind, made in (
            ("answer", Fault.SERVER_ERROR, 0),
            ("timeout_before", Fault.TIMEOUT, 0),
            ("timeout_after", Fault.TIMEOUT, 1),
            ("reset_before", Fault.SERVER_ERROR, 1),
            ("reset_after", Fault.SERVER_ERROR, 2),
            ("garbage", Fault.SERVER_ERROR, 3),
        ):
            rule = FaultRule(where="compute", method="POST", path="/servers$", effect=effect)
            self.assertEqual(self.kind(rule, lambda s: s.create_server(plain())), kind, effect)
            self.assertEqual(self.servers(), made, effect)


class LifeTests(CloudCase):
    """Servers and volumes in time, and what the machines are told."""

    def test_states_take_their_time(self) -> None:
        """BUILD, ACTIVE, deleting, gone; lists come late."""
        rig, session = self.rig_of(embedded=Embedded(boot_s=5.0, delete_s=3.0, list_lag_s=2.0))
        server_id = rig.run(session.create_server(plain()))
        self.assertEqual(rig.run(session.server(server_id)).status, "BUILD")
        self.assertEqual(list(rig.run(session.servers(C))), [])
        rig.clock.advance(4.9)
        self.assertEqual([s.status for s in rig.run(session.servers(C))], ["BUILD"])
        rig.clock.advance(0.2)
        self.assertEqual(rig.run(session.server(server_id)).status, "ACTIVE")
        rig.run(session.delete_server(server_id))
        self.assertEqual(rig.run(session.server(server_id)).task_state, "deleting")
        rig.clock.advance(3.1)
        self.assertRaises(CloudError, rig.run, session.server(server_id))
        self.assertEqual(len(rig.run(session.servers(C))), 1)
        rig.clock.advance(2.0)
        self.assertEqual(list(rig.run(session.servers(C))), [])

    def test_volumes_and_addresses_reach_the_machine(self) -> None:
        """In order; the server's end frees what it held."""
        guests = RecordingGuests()
        rig, session = self.rig_of(guests=guests)
        server_id = rig.run(session.create_server(plain()))
        rig.clock.run_due()
        volume_id = rig.run(session.create_volume("v", 3, {"svcd_cluster_id": "c"}))
        rig.clock.run_due()
        self.assertEqual(rig.run(session.attach_volume(server_id, volume_id)), "/dev/vdb")
        rig.clock.run_due()
        ip = rig.run(session.create_floating_ip("public", ""))
        rig.run(session.associate_floating_ip(ip.id, server_id))
        rig.clock.run_due()
        rig.run(session.delete_floating_ip(ip.id))
        rig.clock.run_due()
        rig.run(session.delete_server(server_id))
        rig.clock.run_due()
        self.assertEqual(
            guests.said,
            [
                ("boot", ("127.1.0.10",)),
                ("attach", "/dev/vdb"),
                ("boot", ("127.1.0.10", ip.address)),
                ("attach", "/dev/vdb"),
                ("boot", ("127.1.0.10",)),
                ("attach", "/dev/vdb"),
                ("destroy",),
            ],
        )
        self.assertEqual([v.status for v in rig.run(session.volumes(C))], ["available"])

    def test_a_machine_boots_as_soon_as_it_can(self) -> None:
        """Its server is ACTIVE then, without a word of the fault."""
        guests = RecordingGuests()
        guests.failing = "the port is taken"
        rig, session = self.rig_of(guests=guests)
        server_id = rig.run(session.create_server(plain()))
        rig.clock.run_due()
        rig.clock.advance(100.0)
        tries = len(guests.said)
        self.assertEqual(tries, 21)
        self.assertEqual(rig.run(session.server(server_id)).status, "ERROR")
        guests.failing = ""
        rig.clock.advance(5.0)
        server = rig.run(session.server(server_id))
        self.assertEqual((server.status, server.fault), ("ACTIVE", ""))
        rig.clock.advance(100.0)
        self.assertEqual(len(guests.said), tries + 1)

    def test_an_address_that_another_program_uses_is_not_given(self) -> None:
        """Neither to a server nor as a floating one; without a free one both are refused."""
        guests = RecordingGuests()
        guests.taken = {"127.1.0.10", "127.1.0.11", "127.1.0.42"}
        rig, session = self.rig_of(guests=guests, embedded=Embedded(network="127.1.0.0/27"))
        rig.run(session.create_server(plain()))
        rig.clock.run_due()
        servers = rig.run(session.servers(C))
        self.assertEqual([s.addresses[0][0] for s in servers], ["127.1.0.12"])
        ip = rig.run(session.create_floating_ip("public", ""))
        self.assertEqual(ip.address, "127.1.0.43")
        guests.taken |= {f"127.1.0.{n}" for n in range(64)}
        server_id = rig.run(session.create_server(plain()))
        rig.clock.run_due()
        server = rig.run(session.server(server_id))
        text = "No valid host was found. No address of 127.1.0.0/27 is free"
        self.assertEqual((server.status, server.fault), ("ERROR", text))
        with self.assertRaises(CloudError):
            rig.run(session.create_floating_ip("public", ""))

    def test_a_new_server_whose_address_was_taken_gets_another(self) -> None:
        """Nobody has seen the first one."""
        guests = RecordingGuests()
        guests.late = {"127.1.0.10", "127.1.0.11"}
        rig, session = self.rig_of(guests=guests)
        rig.run(session.create_server(plain()))
        rig.clock.run_due()
        server = rig.run(session.servers(C))[0]
        self.assertEqual((server.status, server.addresses[0][0]), ("ACTIVE", "127.1.0.12"))
        ports = rig.cloud.core.state.ports.values()
        self.assertEqual([(p.address, p.mac) for p in ports], [("127.1.0.12", "fa:16:7f:01:00:0c")])

    def test_quotas_are_refused_in_the_services_words(self) -> None:
        """Servers, volumes, floating IPs."""
        rig, session = self.rig_of(
            embedded=Embedded(quota_instances=1, quota_volumes=0, quota_floating_ips=0)
        )
        rig.run(session.create_server(plain()))
        for work in (
            session.create_server(plain()),
            session.create_volume("v", 1, {}),
            session.create_floating_ip("public", ""),
        ):
            error = self.assertRaises(CloudError, rig.run, work)
            self.assertEqual(error.kind, Fault.QUOTA, error.text)
        quota = rig.run(session.quota())
        self.assertEqual((quota.instances, quota.volumes, quota.floating_ips), (0, 0, 0))

    def test_projects_share_the_servers_of_a_machine(self) -> None:
        """The quota of a project is what the others have left, whatever it uses itself."""
        rig, session = self.rig_of(most_servers=2)
        other = rig.client("demo", "demo", "demo").session(Access(tenant_id=TenantId("u")))
        self.assertEqual(rig.run(session.quota()).instances, 2)
        for each in (session, other):
            rig.run(each.create_server(plain()))
        for each in (session, other):
            self.assertEqual(rig.run(each.quota()).instances, 0)
            error = self.assertRaises(CloudError, rig.run, each.create_server(plain()))
            self.assertEqual(error.kind, Fault.QUOTA)
            self.assertIn("Requested 1, but already used 1 of 1 instances", error.text)

    def test_lists_are_complete_beyond_a_page(self) -> None:
        """1,000 servers a page."""
        rig, session = self.rig_of(embedded=Embedded(quota_instances=-1, quota_cores=-1))
        token = rig.token("demo", "demo", "t").reveal()
        body = {"name": "n", "imageRef": PLAIN_IMAGE_ID, "flavorRef": "1", "min_count": 700}
        body["metadata"] = {"svcd_cluster_id": "c"}
        for _ in range(2):
            rig.raw("POST", "/compute/v2.1/servers", {"server": body}, token=token)
        self.assertEqual(len({s.id for s in rig.run(session.servers(C))}), 1400)


class RestartTests(CloudCase):
    """What was acknowledged is there again."""

    def test_everything_survives_a_kill(self) -> None:
        """Nothing is closed: the next cloud reads what the files hold."""
        folder = Path(self.mktemp())
        guests = RecordingGuests()
        rig, session = self.rig_of(state=folder, embedded=Embedded(boot_s=5.0))
        server_id = rig.run(session.create_server(plain()))
        rig.run(session.create_volume("v", 2, {"svcd_cluster_id": "c"}))
        rig.run(session.set_image_properties(PLAIN_IMAGE_ID, {"a": "b"}, []))
        token = rig.token("alice", "alice", "alpha").reveal()
        rig.raw("PUT", "/object-store/v1/AUTH_alpha/c", token=token)
        rig.raw("PUT", "/object-store/v1/AUTH_alpha/c/o", b"content", token=token)
        pair = {"keypair": {"name": "k"}}
        rig.raw("POST", "/compute/v2.1/os-keypairs", pair, token=token)
        key = rig.cloud.core.demo_public_key()
        rig.cloud.core.state.close()  # as the end of the process would; its clock stands still
        later = VirtualClock(rig.clock.seconds() + 2.0)
        rig, session = self.rig_of(state=folder, guests=guests, clock=later)
        self.assertEqual(rig.run(session.server(server_id)).status, "BUILD")
        rig.clock.advance(6.0)
        self.assertEqual(rig.run(session.server(server_id)).status, "ACTIVE")
        self.assertEqual(guests.said, [("boot", ("127.1.0.10",))])
        self.assertEqual([v.status for v in rig.run(session.volumes(C))], ["available"])
        self.assertEqual(rig.run(session.image(PLAIN_IMAGE_ID)).properties["a"], "b")
        self.assertEqual(rig.cloud.core.demo_public_key(), key)
        answer = rig.raw("GET", "/object-store/v1/AUTH_alpha/c/o", token=token)
        self.assertEqual(answer.body, b"content")
        self.assertEqual(rig.raw("GET", "/compute/v2.1/os-keypairs/k", token=token).status, 200)
        private = (folder / "cloud" / "keys" / "demo").read_text(encoding="ascii")
        self.assertTrue(private.startswith("-----BEGIN OPENSSH PRIVATE KEY-----"))
        self.assertEqual((folder / "cloud" / "keys" / "demo").stat().st_mode & 0o777, 0o600)

    def test_a_machine_that_cannot_be_adopted_is_an_error(self) -> None:
        """At once, with its address, also in a later process, and until its port is free."""
        folder = Path(self.mktemp())
        rig, session = self.rig_of(state=folder)
        server_id = rig.run(session.create_server(plain()))
        rig.clock.run_due()
        guests = RecordingGuests()
        guests.taken = {"127.1.0.10"}
        for _ in range(2):
            rig.run(rig.cloud.stop())
            rig, session = self.rig_of(state=folder, guests=guests, clock=rig.clock, adopt=True)
            server = rig.run(session.server(server_id))
            self.assertEqual((server.status, server.fault), ("ERROR", "127.1.0.10 is taken"))
        guests.taken = set()
        rig.clock.advance(5.0)
        server = rig.run(session.server(server_id))
        self.assertEqual((server.status, server.fault), ("ACTIVE", ""))
        self.assertEqual(server.addresses[0][0], "127.1.0.10")
