"""The clients of the cloud before answers that a real OpenStack gave (tests/fixtures/openstack).

Refusals above all, and states that the embedded cloud has not. What both give in the same shape
(tests/contract/test_recorded_shapes.py) is in tests/contract.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.identity import Keystone, Scope
from svcd.clients.rest import RestError
from svcd.clients.volume import _volume
from svcd.errors import Unauthorized
from svcd.model.cloud import (
    Caller,
    NewServer,
    Opening,
)
from svcd.model.ids import ClusterId, TenantId
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


SERVER, VOLUME, IMAGE = path_id("server"), path_id("volume-in-use"), path_id("image")
NEW = NewServer(name="x", image_id=IMAGE, flavor_id="1", network_id="n", metadata=MINE)


class RecordedCase(SynchronousTestCase):
    """The member's session before the recorded answers of `names`."""

    def session(self, *names: str) -> CloudSession:
        self.played = Played("catalog", "token-service", "validate", *names)
        return self.played.cloud.session(Access(tenant_id=TENANT, token=Secret("TOKEN")))

    def got(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.played.run(work)

    def fault(self, work: Coroutine[Any, Any, Any]) -> CloudError:
        return self.assertRaises(CloudError, self.got, work)

    def refused(
        self, name: str, call: Callable[[CloudSession], Any], kind: Fault, text: str = ""
    ) -> None:
        """The exchange `name` makes `call` fail so, in these words of the service ("": any)."""
        error = self.fault(call(self.session("networks", "ports", name)))
        said = error.text.partition(": ")[2].partition(": ")[2]
        self.assertEqual((name, error.kind, said if text else ""), (name, kind, text))


class IdentityTests(RecordedCase):
    def keystone(self, *names: str, **settings: str) -> Keystone:
        self.played = Played(*names, **settings)
        return self.played.cloud._keystone

    def test_refused_logins(self) -> None:
        """A deleted application credential, which is a 404, is UNAUTHORIZED as all others."""
        credential = {"application_credential_id": "a", "application_credential_secret": "s"}
        for name, settings, kind in (
            ("token-wrong-password", {}, Fault.UNAUTHORIZED),
            ("token-foreign-project", {}, Fault.UNAUTHORIZED),
            ("token-trust-gone", {}, Fault.UNAUTHORIZED),
            ("token-application-credential-wrong", credential, Fault.UNAUTHORIZED),
            ("token-application-credential-gone", credential, Fault.UNAUTHORIZED),
            ("token-malformed", {}, Fault.REFUSED),
        ):
            error = self.fault(self.keystone(name, **settings).own(Scope()))
            self.assertEqual((name, error.kind), (name, kind))

    def test_a_callers_token(self) -> None:
        """A garbled one is the caller's 401; svcd may lack the role to ask."""
        self.played = Played("validate-unknown")
        identity = self.played.cloud.identity(Auth(mode="keystone"))
        self.assertRaises(Unauthorized, self.got, identity.authenticate(Secret("x")))
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
        """It goes by its own token; one that is gone is looked for before that is believed."""
        trust_id = answer("trust")["json"]["trust"]["id"]
        self.played = Played("trust")
        self.assertEqual(self.got(self.played.cloud.create_trust(self.caller(), MARK)), trust_id)
        login = "POST identity /auth/tokens"
        delete, show = (f"{m} identity /OS-TRUST/trusts/{trust_id}" for m in ("DELETE", "GET"))
        for names, asked in (
            (("trust-delete",), [login, delete]),
            (("trust-delete-again", "trust-missing"), [login, delete, login, show]),
        ):
            self.played = Played("token-trust", *names)
            self.got(self.played.cloud.delete_trust(trust_id))
            self.assertEqual(self.played.player.asked, asked)

    def test_refused_trusts(self) -> None:
        """By whom, of what, for whom."""
        for case in (
            "by-trust", "by-application-credential", "of-another-user", "role-not-held",
            "for-nobody",
        ):  # fmt: skip
            self.played = Played(f"trust-{case}")
            error = self.fault(self.played.cloud.create_trust(self.caller(), MARK))
            self.assertEqual((case, error.kind), (case, Fault.FORBIDDEN))

    def test_a_token_that_a_service_refuses(self) -> None:
        """UNAUTHORIZED when Keystone does not know it either; else the fault is the service's."""
        for service, call in (("compute", "flavors"), ("image", "images"), ("network", "networks")):
            session = self.session(f"unauthorized-{service}", "validate-unknown")
            error = self.fault(getattr(session, call)())
            self.assertEqual((service, error.kind), (service, Fault.UNAUTHORIZED))
        error = self.fault(self.session("unauthorized-image").images())
        self.assertEqual((error.kind, error.passing), (Fault.SERVER_ERROR, True))


class ComputeTests(RecordedCase):
    def test_the_servers_of_a_cluster(self) -> None:
        """Those with its metadata; why one has no host says the server, and not the list."""
        for cluster, expected in (("c", [SERVER]), ("another", [])):
            found = self.got(self.session("servers").servers(ClusterId(cluster), "recorded"))
            self.assertEqual([each.id for each in found], expected)
        (found,) = self.got(
            self.session("servers-error", "server-error").servers(ClusterId("c"), "recorded-error")
        )
        self.assertEqual((found.status, found.fault), ("ERROR", "No valid host was found."))
        self.assertEqual(self.played.player.asked[-1], f"GET compute /servers/{found.id}")

    def test_deleted_servers(self) -> None:
        """As an administrator's list shows them; the link to the next page is followed."""
        found = self.got(self.session("servers-deleted")._compute.servers({}, "recorded"))
        self.assertEqual([each.status for each in found], ["DELETED", "DELETED"])

    def test_refused_servers(self) -> None:
        """What is to be blamed decides what is done."""
        wrong = "Invalid input for field/attribute a. Value: 1. 1 is not of type 'string'"
        for name, text in (
            ("flavor", "Flavor 99 could not be found."),
            ("image", "Can not find requested image"),
            ("key", "Invalid key_name provided."),
            ("network", f"Network {NOWHERE} could not be found."),
            ("zone", "The requested availability zone is not available"),
            ("security-group", "Unable to find security_group with name or id 'missing'"),
            ("group", f"Instance group {NOWHERE} could not be found."),
            ("metadata", wrong),
            ("json", "Malformed request body"),
        ):
            name = f"server-refused-{name}"
            self.refused(name, lambda session: session.create_server(NEW), Fault.REFUSED, text)
        self.refused("server-refused-port", lambda session: session.create_server(NEW), Fault.BUSY)
        text = "Quota exceeded for instances: Requested 3, but already used 0 of 2 instances"
        self.refused(
            "server-over-quota", lambda session: session.create_server(NEW), Fault.QUOTA, text
        )
        missing = f"Instance {NOWHERE} could not be found."
        self.refused("server-missing", lambda s: s.server(NOWHERE), Fault.NOT_FOUND, missing)
        self.refused("keypair-missing", lambda s: s.keypair("missing"), Fault.NOT_FOUND)

    def test_the_versions_of_the_service(self) -> None:
        """One that it has not is asked for again; a second time it is BUSY."""
        self.assertEqual(self.got(self.session()._compute.spoken()), ((2, 1), (2, 93)))
        session = self.session("compute-too-new")
        refused = self.fault(session._compute._call("GET", "/flavors/detail"))
        assert isinstance(refused, RestError)
        self.assertEqual((refused.kind, refused.status), (Fault.BUSY, 406))
        self.assertIn("the versions it speaks change", refused.text)
        self.assertEqual(
            [each for each in self.played.player.asked if " compute " in each],
            ["GET compute /", "GET compute /flavors/detail"] * 2,
        )


class VolumeTests(RecordedCase):
    def test_states(self) -> None:
        """In each of their states."""
        for state in (
            "creating", "attaching", "detaching", "error", "error_deleting", "maintenance",
        ):  # fmt: skip
            found = _volume(answer(f"volume-state-{state}")["json"]["volume"])
            self.assertEqual((found.status, found.attached_to), (state, None))
        found = _volume(answer("volume-in-use")["json"]["volume"])
        self.assertEqual(
            (found.status, found.attached_to, found.device), ("in-use", SERVER, "/dev/sdb")
        )

    def test_refused_volumes(self) -> None:
        """Too much is QUOTA; one that cannot go now is BUSY, whatever it is doing."""
        for name, kind, text in (
            (
                "over-quota",
                Fault.QUOTA,
                "VolumeLimitExceeded: Maximum number of volumes allowed (2) exceeded for quota "
                "'volumes'.",
            ),
            (
                "over-quota-size",
                Fault.QUOTA,
                "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed "
                "gigabytes quota. Requested 11G, quota is 10G and 0G has been consumed.",
            ),
            (
                "refused-size",
                Fault.REFUSED,
                "Invalid input for field/attribute size. Value: 0. 0 is less than the minimum of 1",
            ),
        ):
            self.refused(f"volume-{name}", lambda s: s.create_volume("v", 1, {}), kind, text)
        for state in ("in-use", "creating", "error_deleting"):
            name = f"volume-delete-{state}"
            self.refused(name, lambda s, n=name: s.delete_volume(path_id(n)), Fault.BUSY)
        text = f"Volume {NOWHERE} could not be found."
        attach = lambda s: s.attach_volume(SERVER, NOWHERE)  # noqa: E731
        self.refused("attach-no-volume", attach, Fault.NOT_FOUND, text)
        name, text = "volumes-foreign-project", "Malformed request url"
        self.refused(name, lambda s: s.volumes(ClusterId("c")), Fault.REFUSED, text)


class ImageTests(RecordedCase):
    def test_refused_changes(self) -> None:
        """Whose fault it is; without Glance's tags."""
        missing = f"No image found with ID {NOWHERE}"
        for name, kind, text in (
            ("change-foreign", Fault.FORBIDDEN, "You do not own this image"),
            (
                "remove-missing",
                Fault.BUSY,
                "There was a conflict when trying to complete your request. "
                "Property _svc_username does not exist.",
            ),
            ("change-missing", Fault.NOT_FOUND, missing),
            (
                "change-type",
                Fault.REFUSED,
                "The request media type application/json is not supported by this server.",
            ),
        ):
            name = f"image-{name}"
            path = f"/images/{path_id(name)}"
            self.refused(name, lambda s, p=path: s._images._rest.call("PATCH", p, []), kind, text)
        self.refused("image-missing", lambda s: s.image(NOWHERE), Fault.NOT_FOUND, missing)


class NetworkTests(RecordedCase):
    def test_a_group_in_use(self) -> None:
        """Held by a living server's port."""
        group = path_id("security-group-in-use")
        session = self.session("security-group-in-use", "ports-some-fields", "server")
        self.assertEqual(self.fault(session.delete_security_group(group)).kind, Fault.BUSY)
        self.assertEqual(self.played.player.asked[-1], f"GET compute /servers/{SERVER}")

    def test_refused_floating_ips(self) -> None:
        """Too many, of no network, of an inner one, for no port."""
        for name, kind in (
            ("over-quota", Fault.QUOTA),
            ("no-pool", Fault.NOT_FOUND),
            ("inner-network", Fault.REFUSED),
        ):
            self.refused(f"floating-ip-{name}", lambda s: s.create_floating_ip("public", ""), kind)
        name = "floating-ip-no-port"
        associate = lambda s: s.associate_floating_ip(path_id(name), SERVER)  # noqa: E731
        self.refused(name, associate, Fault.NOT_FOUND)
        error = self.fault(self.session("networks").create_floating_ip("alpha-net", ""))
        text = "network: there is no external network alpha-net"
        self.assertEqual((error.kind, error.text), (Fault.NOT_FOUND, text))
