"""The clients of the cloud before answers that a real OpenStack gave (tests/fixtures/openstack)."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.identity import Keystone, Scope
from svcd.clients.rest import RestError
from svcd.errors import Unauthorized
from svcd.model.cloud import (
    Caller,
    Flavor,
    FloatingIp,
    Network,
    NewServer,
    Opening,
    Quota,
    Server,
    VolumeState,
)
from svcd.model.ids import ClusterId, TenantId
from svcd.model.job import Credentials
from svcd.model.secret import Secret
from svcd.ports.cloud import Access, CloudError, CloudSession
from svcd.ports.faults import Fault
from svcd.settings import Auth
from tests.fixtures.openstack.scenario import NOWHERE
from tests.unit.clients.recorded import PROJECT, Played, answer

TENANT = TenantId(PROJECT)
MARK = "2134-05-06T07:08:09.000000Z"
MINE = {"svcd_cluster_id": "c", "svcd_instance_id": "i"}

SSH = Opening(22, "0.0.0.0/0")


def path_id(name: str) -> str:
    """The id in the path of an exchange."""
    return str(answer(name)["request"]["path"].split("/")[2].partition("?")[0])


SERVER = path_id("server")
VOLUME = path_id("volume-in-use")
IMAGE = path_id("image")


class RecordedCase(SynchronousTestCase):
    """The member's session before the recorded answers of `names`."""

    def session(self, *names: str) -> CloudSession:
        self.played = Played("catalog", "token-service", "validate", *names)
        return self.played.cloud.session(Access(tenant_id=TENANT, token=Secret("TOKEN")))

    def got(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.played.run(work)

    def fault(self, work: Coroutine[Any, Any, Any]) -> CloudError:
        return self.assertRaises(CloudError, self.got, work)

    def told(self, work: Coroutine[Any, Any, Any]) -> tuple[Fault, str]:
        """The kind of the fault, and what the service said."""
        error = self.fault(work)
        return error.kind, error.text.partition(": ")[2].partition(": ")[2]


class IdentityTests(RecordedCase):
    def keystone(self, *names: str, **settings: str) -> Keystone:
        self.played = Played(*names, **settings)
        return self.played.cloud._keystone

    def test_an_own_token(self) -> None:
        """Its text, roles, times and catalog."""
        token = self.got(self.keystone().own(Scope()))
        self.assertEqual(token.text.reveal(), "TOKEN")
        self.assertEqual((token.user_name, token.roles), ("svcd", ("service",)))
        self.assertEqual(token.expires_at - token.issued_at, 86400.0)
        self.assertEqual(token.is_trust, False)
        self.assertEqual(
            sorted({each.type for each in token.catalog}),
            [
                "block-storage",
                "compute",
                "identity",
                "image",
                "network",
                "object-store",
                "placement",
                "volumev3",
            ],
        )

    def test_refused_tokens(self) -> None:
        """All are UNAUTHORIZED, also a deleted application credential, which is a 404."""
        credential = {"application_credential_id": "a", "application_credential_secret": "s"}
        for name, settings in (
            ("token-wrong-password", {}),
            ("token-foreign-project", {}),
            ("token-trust-gone", {}),
            ("token-application-credential-wrong", credential),
            ("token-application-credential-gone", credential),
        ):
            error = self.fault(self.keystone(name, **settings).own(Scope()))
            self.assertEqual((name, error.kind), (name, Fault.UNAUTHORIZED))

    def test_a_malformed_request(self) -> None:
        """REFUSED, in one line."""
        kind, text = self.told(self.keystone("token-malformed").own(Scope()))
        self.assertEqual(kind, Fault.REFUSED)
        self.assertEqual(text[:33], "'identity' is a required property")

    def test_a_token_of_a_trust(self) -> None:
        """It is the member's, and says what it is."""
        token = self.got(self.keystone("token-trust").own(Scope(trust_id="t")))
        self.assertEqual((token.user_name, token.project_id), ("alpha-user", PROJECT))
        self.assertEqual((token.is_trust, sorted(token.roles)), (True, ["member", "reader"]))

    def test_a_token_of_an_application_credential(self) -> None:
        """The catalog has the project's own URLs."""
        keystone = self.keystone("token-application-credential")
        token = self.got(keystone.own(Scope()))
        self.assertEqual(
            keystone.pick(token.catalog, ("object-store",)),
            f"http://object-store.example/v1/AUTH_{PROJECT}",
        )

    def test_a_callers_token(self) -> None:
        """Who it is; a garbled one is the caller's 401."""
        self.played = Played("validate")
        identity = self.played.cloud.identity(Auth(mode="keystone"))
        caller = self.got(identity.authenticate(Secret("x")))
        self.assertEqual((caller.tenant_id, caller.user_name), (PROJECT, "alpha-user"))
        self.assertEqual(sorted(caller.roles), ["member", "reader"])
        self.played = Played("validate-unknown")
        identity = self.played.cloud.identity(Auth(mode="keystone"))
        self.assertRaises(Unauthorized, self.got, identity.authenticate(Secret("x")))

    def test_who_may_not_validate(self) -> None:
        """svcd lacks a role: FORBIDDEN; its own token is refused twice: UNAUTHORIZED."""
        for name, kind in (
            ("validate-not-allowed", Fault.FORBIDDEN),
            ("validate-own-token-bad", Fault.UNAUTHORIZED),
        ):
            error = self.fault(self.keystone(name).validate(Secret("x")))
            self.assertEqual((name, error.kind), (name, kind))

    def caller(self) -> Caller:
        return Caller(
            tenant_id=TENANT,
            user_id=answer("trust")["json"]["trust"]["trustor_user_id"],
            user_name="alpha-user",
            roles=("member", "reader"),
            token=Secret("TOKEN"),
            expires_at=0.0,
            is_trust=False,
        )

    def test_a_trust(self) -> None:
        """Its id; it goes by its own token."""
        self.played = Played("trust")
        trust_id = answer("trust")["json"]["trust"]["id"]
        self.assertEqual(self.got(self.played.cloud.create_trust(self.caller(), MARK)), trust_id)
        self.played = Played("token-trust", "trust-delete")
        self.got(self.played.cloud.delete_trust(trust_id))
        delete = f"DELETE identity /OS-TRUST/trusts/{trust_id}"
        self.assertEqual(self.played.player.asked, ["POST identity /auth/tokens", delete])

    def test_a_trust_that_is_gone(self) -> None:
        """It is looked for before that is believed."""
        trust_id = answer("trust")["json"]["trust"]["id"]
        self.played = Played("token-trust", "trust-delete-again", "trust-missing")
        self.got(self.played.cloud.delete_trust(trust_id))
        self.assertEqual(
            self.played.player.asked,
            [
                "POST identity /auth/tokens",
                f"DELETE identity /OS-TRUST/trusts/{trust_id}",
                "POST identity /auth/tokens",
                f"GET identity /OS-TRUST/trusts/{trust_id}",
            ],
        )

    def test_a_trust_is_found_by_its_end(self) -> None:
        """Among those that svcd was given; another end is not found."""
        ends = answer("trusts-given")["json"]["trusts"][0]["expires_at"]
        self.played = Played("trusts-given")
        (found,) = self.got(self.played.cloud.given_trusts({ends, MARK}))
        self.assertEqual(
            (found.id, found.trustor_id, found.tenant_id, found.expires_at),
            (answer("trust")["json"]["trust"]["id"], self.caller().user_id, PROJECT, ends),
        )
        self.assertEqual(self.got(self.played.cloud.given_trusts({MARK})), [])

    def test_refused_trusts(self) -> None:
        """By whom, of what, for whom."""
        for name, kind in (
            ("trust-by-trust", Fault.FORBIDDEN),
            ("trust-by-application-credential", Fault.FORBIDDEN),
            ("trust-of-another-user", Fault.FORBIDDEN),
            ("trust-role-not-held", Fault.FORBIDDEN),
            ("trust-for-nobody", Fault.FORBIDDEN),
        ):
            self.played = Played(name)
            error = self.fault(self.played.cloud.create_trust(self.caller(), MARK))
            self.assertEqual((name, error.kind), (name, kind))


class ComputeTests(RecordedCase):
    def test_flavors(self) -> None:
        """Ids are texts, memory is MiB."""
        self.assertEqual(
            self.got(self.session("flavors").flavors()),
            [
                Flavor(id="1", name="m1.tiny", ram_mib=512, vcpus=1, disk_gib=1),
                Flavor(id="2", name="m1.small", ram_mib=2048, vcpus=1, disk_gib=20),
                Flavor(id="3", name="m1.medium", ram_mib=4096, vcpus=2, disk_gib=40),
            ],
        )

    def test_key_pairs(self) -> None:
        """By name; a missing one is NOT_FOUND."""
        found = self.got(self.session("keypair").keypair("recorded"))
        self.assertEqual((found.name, found.public_key[:20]), ("recorded", "ssh-ed25519 AAAAC3Nz"))
        kind, text = self.told(self.session("keypair-missing").keypair("missing"))
        self.assertEqual(kind, Fault.NOT_FOUND)
        self.assertEqual(text[:30], "Keypair missing not found for ")

    def test_what_is_left(self) -> None:
        """Of servers, volumes and floating IPs."""
        self.assertEqual(
            self.got(self.session("limits", "volume-limits", "network-quota-detail").quota()),
            Quota(
                instances=2000,
                cores=8000,
                ram_mib=16_000_000,
                volumes=4000,
                volume_gib=1_000_000,
                floating_ips=1000,
            ),
        )

    def test_a_server_that_is_built(self) -> None:
        """No address, no host."""
        self.assertEqual(
            self.got(self.session("server-build").server(SERVER)),
            Server(
                id=SERVER,
                name="recorded",
                status="BUILD",
                task_state="scheduling",
                addresses=(),
                fault="",
                metadata=MINE,
                host_id="",
            ),
        )

    def test_an_active_server(self) -> None:
        """Its addresses, the floating one too."""
        found = self.got(self.session("server-floating").server(SERVER))
        self.assertEqual((found.status, found.task_state), ("ACTIVE", None))
        self.assertEqual([kind for _, kind in found.addresses], ["fixed", "floating"])
        self.assertEqual([address.split(".")[0] for address, _ in found.addresses], ["10", "172"])
        self.assertEqual(len(found.host_id), 56)

    def test_a_server_that_is_deleted(self) -> None:
        """ACTIVE still, the task tells."""
        found = self.got(self.session("server-deleting").server(SERVER))
        self.assertEqual((found.status, found.task_state), ("ACTIVE", "deleting"))
        kind, text = self.told(self.session("server-missing").server(NOWHERE))
        self.assertEqual((kind, text), (Fault.NOT_FOUND, f"Instance {NOWHERE} could not be found."))

    def test_the_servers_of_a_cluster(self) -> None:
        """Those with its metadata."""
        for cluster, expected in (("c", [SERVER]), ("another", [])):
            found = self.got(self.session("servers").servers(ClusterId(cluster), "recorded"))
            self.assertEqual([each.id for each in found], expected)
        found = self.got(self.session("servers-none").servers(ClusterId("c"), "none"))
        self.assertEqual(found, [])

    def test_a_server_without_a_host(self) -> None:
        """The list does not say why, so the server is asked."""
        (found,) = self.got(
            self.session("servers-error", "server-error").servers(ClusterId("c"), "recorded-error")
        )
        self.assertEqual((found.status, found.fault), ("ERROR", "No valid host was found."))
        self.assertEqual(self.played.player.asked[-1], f"GET compute /servers/{found.id}")

    def test_deleted_servers(self) -> None:
        """As an administrator's list shows them; the link to the next page is followed."""
        session = self.session("servers-deleted")
        found = self.got(session._compute.servers({}, "recorded"))
        self.assertEqual([each.status for each in found], ["DELETED", "DELETED"])

    def test_a_new_server(self) -> None:
        """Its id; going is no fault, nor is being gone."""
        session = self.session("networks", "server-create")
        new = NewServer(name="x", image_id=IMAGE, flavor_id="1", network_id="n", metadata=MINE)
        self.assertEqual(self.got(session.create_server(new)), SERVER)
        for name in ("server-delete", "server-delete-again"):
            self.got(self.session(name).delete_server(SERVER))

    def test_refused_servers(self) -> None:
        """What is to be blamed decides what is done."""
        new = NewServer(name="x", image_id=IMAGE, flavor_id="1", network_id="n")
        for name, kind, expected in (
            ("flavor", Fault.REFUSED, "Flavor 99 could not be found."),
            ("image", Fault.REFUSED, "Can not find requested image"),
            ("key", Fault.REFUSED, "Invalid key_name provided."),
            ("network", Fault.REFUSED, f"Network {NOWHERE} could not be found."),
            ("zone", Fault.REFUSED, "The requested availability zone is not available"),
            (
                "security-group",
                Fault.REFUSED,
                "Unable to find security_group with name or id 'missing'",
            ),
            ("group", Fault.REFUSED, f"Instance group {NOWHERE} could not be found."),
            (
                "metadata",
                Fault.REFUSED,
                "Invalid input for field/attribute a. Value: 1. 1 is not of type 'string'",
            ),
            ("json", Fault.REFUSED, "Malformed request body"),
            ("port", Fault.BUSY, None),
        ):
            found = self.told(self.session(f"server-refused-{name}").create_server(new))
            self.assertEqual((name, found[0]), (name, kind))
            self.assertIn(expected, (found[1], None))
        kind, text = self.told(self.session("server-over-quota").create_server(new))
        self.assertEqual(kind, Fault.QUOTA)
        self.assertEqual(
            text,
            "Quota exceeded for instances: Requested 3, but already used 0 of 2 instances",
        )

    def test_server_groups(self) -> None:
        """Made, found by name, gone."""
        group = answer("server-group-create")["json"]["server_group"]["id"]
        session = self.session("server-group-create", "server-groups", "server-group-delete")
        self.assertEqual(self.got(session.create_server_group("recorded")), group)
        session = self.session("server-groups")
        self.assertEqual(self.got(session.find_server_groups("recorded")), [group])
        self.assertEqual(self.got(session.find_server_groups("other")), [])
        for name in ("server-group-delete", "server-group-delete-again"):
            self.got(self.session(name).delete_server_group(group))

    def test_the_versions_that_the_service_speaks(self) -> None:
        """Zed's; the one that svcd asks for is among them."""
        session = self.session()
        self.assertEqual(self.got(session._compute.spoken()), ((2, 1), (2, 93)))

    def test_a_version_that_the_service_has_not(self) -> None:
        """Asked for again; a second time it is BUSY."""
        error = self.fault(self.session("compute-too-new", "limits").quota())
        self.assertEqual(error.kind, Fault.SERVER_ERROR)  # no volumes are recorded here
        session = self.session("compute-too-new")
        refused = self.fault(session._compute._call("GET", "/flavors/detail"))
        assert isinstance(refused, RestError)
        self.assertEqual((refused.kind, refused.status), (Fault.BUSY, 406))
        self.assertEqual(
            [each for each in self.played.player.asked if " compute " in each],
            ["GET compute /", "GET compute /flavors/detail"] * 2,
        )


class VolumeTests(RecordedCase):
    def test_volumes(self) -> None:
        """As the list shows them."""
        (found,) = self.got(self.session("volumes").volumes(ClusterId("c")))
        self.assertEqual(
            found,
            VolumeState(
                id=path_id("volume"),
                name="recorded",
                status="available",
                size_gib=1,
                attached_to=None,
                device=None,
                metadata={"svcd_cluster_id": "c"},
            ),
        )

    def test_every_state(self) -> None:
        """By its word."""
        from svcd.clients.volume import _volume

        for state in (
            "creating",
            "attaching",
            "detaching",
            "error",
            "error_deleting",
            "maintenance",
        ):
            found = _volume(answer(f"volume-state-{state}")["json"]["volume"])
            self.assertEqual((found.status, found.attached_to), (state, None))
        found = _volume(answer("volume-in-use")["json"]["volume"])
        self.assertEqual(
            (found.status, found.attached_to, found.device), ("in-use", SERVER, "/dev/sdb")
        )

    def test_a_new_volume(self) -> None:
        """Its id; going is no fault, nor is being gone."""
        made = self.session("volume-create").create_volume("recorded", 1, {})
        self.assertEqual(self.got(made), VOLUME)
        for name in ("volume-delete", "volume-delete-again"):
            self.got(self.session(name).delete_volume(path_id(name)))

    def test_refused_volumes(self) -> None:
        """Too much is QUOTA, none at all is REFUSED."""
        for name, kind, expected in (
            (
                "volume-over-quota",
                Fault.QUOTA,
                "VolumeLimitExceeded: Maximum number of volumes allowed (2) exceeded for quota "
                "'volumes'.",
            ),
            (
                "volume-over-quota-size",
                Fault.QUOTA,
                "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed "
                "gigabytes quota. Requested 11G, quota is 10G and 0G has been consumed.",
            ),
            (
                "volume-refused-size",
                Fault.REFUSED,
                "Invalid input for field/attribute size. Value: 0. 0 is less than the minimum of 1",
            ),
        ):
            found = self.told(self.session(name).create_volume("v", 1, {}))
            self.assertEqual((name, *found), (name, kind, expected))

    def test_a_volume_that_cannot_go_now(self) -> None:
        """BUSY, whatever it is doing."""
        for name in ("in-use", "creating", "error_deleting"):
            name = f"volume-delete-{name}"
            error = self.fault(self.session(name).delete_volume(path_id(name)))
            self.assertEqual((name, error.kind), (name, Fault.BUSY))

    def test_attachments(self) -> None:
        """The device; one that is there is found, one that is off is no fault."""
        session = self.session("attach")
        self.assertEqual(self.got(session.attach_volume(SERVER, VOLUME)), "/dev/sdb")
        session = self.session("attach-again", "attachments")
        self.assertEqual(self.got(session.attach_volume(SERVER, VOLUME)), "/dev/sdb")
        for name in ("detach", "detach-again"):
            self.got(self.session(name).detach_volume(SERVER, VOLUME))
        kind, text = self.told(self.session("attach-no-volume").attach_volume(SERVER, NOWHERE))
        self.assertEqual((kind, text), (Fault.NOT_FOUND, f"Volume {NOWHERE} could not be found."))

    def test_another_projects_volumes(self) -> None:
        """REFUSED: the request is wrong."""
        found = self.told(self.session("volumes-foreign-project").volumes(ClusterId("c")))
        self.assertEqual(found, (Fault.REFUSED, "Malformed request url"))


class ImageTests(RecordedCase):
    def test_images(self) -> None:
        """Name, status and size."""
        found = self.got(self.session("images").images())
        self.assertEqual(
            [(i.name, i.status, i.size_bytes, i.properties) for i in found],
            [
                ("alpha-private", "ACTIVE", 64, {}),
                ("public-b", "ACTIVE", 64, {}),
                ("public-a", "ACTIVE", 64, {}),
            ],
        )

    def test_our_properties(self) -> None:
        """Nothing else is among them."""
        found = self.got(self.session("image").image(IMAGE))
        self.assertEqual(
            found.properties,
            {"_svc_username": "debian", "_svc_tag_fake": "True", "_svc_tag_1.0": "True"},
        )

    def test_a_change(self) -> None:
        """The image as it is then."""
        changed = self.session("image", "image-change").set_image_properties(
            IMAGE, {"_svc_username": "other"}, []
        )
        self.assertEqual(self.got(changed).properties["_svc_username"], "debian")

    def test_refused_changes(self) -> None:
        """Whose fault it is; without Glance's tags."""
        for name, kind, expected in (
            ("image-change-foreign", Fault.FORBIDDEN, "You do not own this image"),
            (
                "image-remove-missing",
                Fault.BUSY,
                "There was a conflict when trying to complete your request. "
                "Property _svc_username does not exist.",
            ),
            ("image-change-missing", Fault.NOT_FOUND, f"No image found with ID {NOWHERE}"),
            (
                "image-change-type",
                Fault.REFUSED,
                "The request media type application/json is not supported by this server.",
            ),
        ):
            image_id = path_id(name)
            session = self.session(name)
            work = session._images._rest.call("PATCH", f"/images/{image_id}", [])
            self.assertEqual((name, *self.told(work)), (name, kind, expected))
        kind, text = self.told(self.session("image-missing").image(NOWHERE))
        self.assertEqual((kind, text), (Fault.NOT_FOUND, f"No image found with ID {NOWHERE}"))


class NetworkTests(RecordedCase):
    def test_networks(self) -> None:
        """Which are external."""
        found = self.got(self.session("networks").networks())
        self.assertEqual(
            sorted((n.name, n.external) for n in found), [("alpha-net", False), ("public", True)]
        )
        self.assertEqual(type(found[0]), Network)

    def test_a_security_group(self) -> None:
        """Made with its rules, found by name, gone."""
        group = path_id("security-group-delete")
        session = self.session(
            "security-groups-none", "security-group-create", "security-group-rule"
        )
        self.assertEqual(self.got(session.create_security_group("recorded", "", [SSH])), group)
        self.assertEqual(
            [each for each in self.played.player.asked if "security" in each],
            [
                "GET network /security-groups",
                "POST network /security-groups",
                "POST network /security-group-rules",
                "POST network /security-group-rules",
            ],
        )
        for name in ("security-group-delete", "security-group-delete-again"):
            self.got(self.session(name).delete_security_group(group))

    def test_a_group_that_is_there_is_adopted(self) -> None:
        """Rules that it has are not asked for; one that appears meanwhile is no fault."""
        group = path_id("security-group-delete")
        session = self.session("security-groups")
        self.assertEqual(self.got(session.create_security_group("recorded", "", [SSH])), group)
        self.assertEqual(self.played.player.asked[-1], "GET network /security-groups")
        session = self.session("security-groups", "security-group-rule-exists")
        both = [SSH, Opening(80, "0.0.0.0/0")]
        self.assertEqual(self.got(session.create_security_group("recorded", "", both)), group)
        self.assertEqual(self.played.player.asked[-1], "POST network /security-group-rules")

    def test_a_group_in_use(self) -> None:
        """Held by a living server's port."""
        group = path_id("security-group-in-use")
        session = self.session("security-group-in-use", "ports-some-fields", "server")
        self.assertEqual(self.fault(session.delete_security_group(group)).kind, Fault.BUSY)
        self.assertEqual(self.played.player.asked[-1], f"GET compute /servers/{SERVER}")

    def test_a_floating_ip(self) -> None:
        """Made of a pool by its name."""
        session = self.session("networks", "floating-ip-create")
        found = self.got(session.create_floating_ip("public", "svcd:c:i"))
        pool = answer("floating-ip-create")["json"]["floatingip"]
        self.assertEqual(
            found,
            FloatingIp(
                id=pool["id"],
                address=pool["floating_ip_address"],
                pool_id=pool["floating_network_id"],
                port_id=None,
                description="svcd:c:i",
            ),
        )
        self.assertEqual(self.got(self.session("floating-ips").floating_ips()), [found])
        for name in ("floating-ip-delete", "floating-ip-delete-again"):
            self.got(self.session(name).delete_floating_ip(found.id))

    def test_an_association(self) -> None:
        """With the server's port."""
        ip = path_id("floating-ip-associate")
        session = self.session("ports", "floating-ip-associate")
        self.got(session.associate_floating_ip(ip, SERVER))
        self.assertEqual(self.played.player.asked[-1], f"PUT network /floatingips/{ip}")
        ip = path_id("floating-ip-no-port")
        kind, _ = self.told(
            self.session("ports", "floating-ip-no-port").associate_floating_ip(ip, SERVER)
        )
        self.assertEqual(kind, Fault.NOT_FOUND)

    def test_refused_floating_ips(self) -> None:
        """Too many, of no network, of an inner one."""
        for name, kind in (
            ("floating-ip-over-quota", Fault.QUOTA),
            ("floating-ip-no-pool", Fault.NOT_FOUND),
            ("floating-ip-inner-network", Fault.REFUSED),
        ):
            session = self.session("networks", name)
            error = self.fault(session.create_floating_ip("public", ""))
            self.assertEqual((name, error.kind), (name, kind))
        error = self.fault(self.session("networks").create_floating_ip("alpha-net", ""))
        self.assertEqual(
            (error.kind, error.text),
            (Fault.NOT_FOUND, "network: there is no external network alpha-net"),
        )


class ObjectTests(RecordedCase):
    def read(self, *names: str) -> tuple[int, bytes]:
        """Size and content of an object, by the member's own credentials."""
        self.played = Played("token-member", *names)
        mine = Credentials(user="alpha-user", password="p")

        async def whole() -> tuple[int, bytes]:
            size, pieces = await self.played.cloud.read(TENANT, mine, "recorded", "a/b")
            return size, b"".join([piece async for piece in pieces])

        got: tuple[int, bytes] = self.got(whole())
        return got

    def test_an_object(self) -> None:
        """Its size, then its content."""
        self.assertEqual(self.read("object"), (7, b"content"))

    def test_wrong_credentials(self) -> None:
        """The user's own login is refused."""
        self.played = Played("token-wrong-password")
        mine = Credentials(user="alpha-user", password="p")
        error = self.fault(self.played.cloud.read(TENANT, mine, "recorded", "a/b"))
        self.assertEqual(error.kind, Fault.UNAUTHORIZED)


class UnauthorizedTests(RecordedCase):
    def test_a_token_that_keystone_does_not_know_either(self) -> None:
        """UNAUTHORIZED, from each service's own kind of answer."""
        for service, call in (
            ("compute", "flavors"),
            ("image", "images"),
            ("network", "networks"),
        ):
            session = self.session(f"unauthorized-{service}", "validate-unknown")
            error = self.fault(getattr(session, call)())
            self.assertEqual((service, error.kind), (service, Fault.UNAUTHORIZED))

    def test_a_token_that_keystone_vouches_for(self) -> None:
        """The service cannot reach Keystone: its fault, which passes."""
        error = self.fault(self.session("unauthorized-image").images())
        self.assertEqual((error.kind, error.passing), (Fault.SERVER_ERROR, True))
