"""What the clients do with answers that the embedded cloud does not give by itself."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.probe import HttpProbe
from svcd.embedded.faults import FaultRule
from svcd.model.cloud import NewServer, Opening
from svcd.model.ids import TenantId
from svcd.model.job import Credentials
from svcd.ports.cloud import Access, CloudError
from svcd.ports.faults import Fault
from svcd.ports.machines import Location, ProbeError
from tests.unit.embedded.cloud.rig import ORIGIN, PLAIN_IMAGE_ID, Rig

SSH = Opening(22, "0.0.0.0/0")


class ClientTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.rig = Rig()
        self.cloud = self.rig.client("demo", "demo", "demo")
        self.session = self.cloud.session(Access(tenant_id=TenantId("demo")))
        self.new = NewServer(name="s", image_id=PLAIN_IMAGE_ID, flavor_id="1")

    def answer(self, where: str, path: str, body: Any, **more: Any) -> None:
        rule = {"status": 200, "times": 1, **more}
        self.rig.faults.add(FaultRule(where=where, path=path, body=json.dumps(body), **rule))

    def fault(self, work: Any) -> CloudError:
        return self.assertRaises(CloudError, self.rig.run, work)

    def test_an_old_compute_service_is_spoken_to_in_its_way(self) -> None:
        """Below 2.64 a group has policies; 2.1 gets no version header."""
        for highest in ("2.60", "", "2.1"):
            rig = Rig()
            rule = FaultRule(
                where="compute",
                path="/v2.1/$",
                status=200,
                body=json.dumps({"version": {"version": highest}}),
            )
            rig.faults.add(rule)
            cloud = rig.client("demo", "demo", "demo")
            session = cloud.session(Access(tenant_id=TenantId("demo")))
            group = rig.run(session.create_server_group("g"))
            self.assertEqual(list(rig.run(session.find_server_groups("g"))), [group])
            rig.run(session.create_server(self.new))

    def test_a_compute_service_that_becomes_older_at_once(self) -> None:
        """Its 406 makes the same call again, in the form of the version that it has."""
        self.rig.run(self.session.flavors())
        self.rig.run(self.session.keypair("demo"))
        self.rig.cloud.core.newest_compute = (2, 60)
        group = self.rig.run(self.session.create_server_group("g"))
        self.assertEqual(list(self.rig.run(self.session.find_server_groups("g"))), [group])
        asked = self.rig.cloud.calls["compute POST /v2.1/os-server-groups"]
        self.assertEqual(asked, 1)

    def test_a_compute_service_that_is_too_new(self) -> None:
        """REFUSED, with what both speak."""
        document = {"version": {"version": "2.120", "min_version": "2.90"}}
        self.answer("compute", "/v2.1/$", document)
        error = self.fault(self.session.keypair("demo"))
        self.assertEqual(error.kind, Fault.REFUSED)
        self.assertIn("speaks 2.90 to 2.120, svcd needs up to 2.79", error.text)

    def test_one_inner_network_is_chosen(self) -> None:
        """None: the service decides; several: the caller must."""
        nets = [{"id": "1", "name": "a"}, {"id": "2", "name": "b"}, {"id": "3", "name": "c"}]
        nets[2]["router:external"] = True  # type: ignore[assignment]
        self.answer("network", "/networks", {"networks": nets})
        error = self.fault(self.session.create_server(self.new))
        self.assertEqual(error.kind, Fault.REFUSED)
        self.assertIn("(a, b): give neutron_management_network", error.text)
        self.answer("network", "/networks", {"networks": nets[2:]})
        other = self.cloud.session(Access(tenant_id=TenantId("demo")))
        self.rig.run(other.create_server(self.new))

    def test_answers_of_another_shape_are_server_errors(self) -> None:
        """Whatever is missing."""
        for where, path, body, work in (
            ("compute", "/servers/1", {}, self.session.server("1")),
            ("compute", "/servers/1", {"server": []}, self.session.server("1")),
            ("compute", "/flavors", {"flavors": [{}]}, self.session.flavors()),
            ("compute", "/limits", {"limits": {}}, self.session.quota()),
            ("image", "/images", [], self.session.images()),
            ("image", "/images/1", {"name": "x"}, self.session.image("1")),
            ("network", "/networks", {"networks": 5}, self.session.networks()),
            ("volume", "/volumes", {"volume": 1}, self.session.create_volume("v", 1, {})),
        ):
            self.answer(where, path, body)
            error = self.fault(work)
            self.assertEqual((error.kind, error.service), (Fault.SERVER_ERROR, where), error.text)
        rig = Rig()
        rig.faults.add(FaultRule(where="identity", status=201, body='{"token": {}}'))
        error = self.fault(rig.client("demo", "demo", "demo").delete_trust("t"))
        self.assertEqual(error.kind, Fault.SERVER_ERROR)

    def test_a_service_missing_in_the_catalog(self) -> None:
        """NOT_FOUND that names it."""
        cloud = self.rig.client("demo", "demo", "demo", region="Elsewhere")
        error = self.fault(cloud.session(Access(tenant_id=TenantId("demo"))).flavors())
        self.assertEqual(error.kind, Fault.NOT_FOUND)
        self.assertIn("no public endpoint of compute in region Elsewhere", error.text)

    def test_a_port_without_its_server_does_not_hold_a_group(self) -> None:
        """The compute service forgot it; a port of a living server does hold the group."""
        group = self.rig.run(self.session.create_security_group("g", "", [SSH]))
        server = self.rig.run(
            self.session.create_server(evolve(self.new, security_groups=(group,)))
        )
        self.rig.clock.advance(60)
        error = self.fault(self.session.delete_security_group(group))
        self.assertEqual(error.kind, Fault.BUSY)
        ports = self.rig.cloud.core.state.ports
        (port,) = [p for p in ports.values() if p.device_id == server]
        ports.put(evolve(port, device_id="00000000-0000-4000-8000-00000000dead"))
        self.rig.run(self.session.delete_security_group(group))
        self.assertEqual(list(self.rig.run(self.session.find_security_groups("g"))), [])
        self.assertNotIn(port.id, [p.id for p in ports.values()])

    def test_an_image_changed_by_somebody_else_meanwhile(self) -> None:
        """Looked at again after a 409."""
        self.answer("image", "/images/", {"message": "gone"}, status=409, method="PATCH")
        image = self.rig.run(self.session.set_image_properties(PLAIN_IMAGE_ID, {"a": "1"}, []))
        self.assertEqual(image.properties["a"], "1")

    def test_an_expired_callers_token_is_unauthorized(self) -> None:
        """After Keystone was asked."""
        service = self.rig.client("svcd", "svcd", "service")
        token = self.rig.token("alice", "alice", "alpha")
        session = service.session(Access(tenant_id=TenantId("alpha"), token=token))
        self.rig.run(session.flavors())
        self.rig.cloud.core.state.tokens.remove(token.reveal())
        self.assertEqual(self.fault(session.flavors()).kind, Fault.UNAUTHORIZED)
        self.rig.faults.add(FaultRule(where="identity", effect="timeout_before"))
        self.assertEqual(self.fault(session.flavors()).kind, Fault.TIMEOUT)

    def test_an_object_that_breaks_off(self) -> None:
        """The reader hears of it, and Retry-After is passed on."""
        alice = Credentials(user="alice", password="alice")
        self.answer("object-store", "/c/o", "x", status=503, headers={"Retry-After": "4"})
        error = self.fault(self.cloud.read(TenantId("alpha"), alice, "c", "o"))
        self.assertEqual((error.kind, error.retry_after_s), (Fault.BUSY, 4.0))

    def test_a_container_that_the_user_may_not_read(self) -> None:
        """Told apart from wrong credentials."""
        alice = Credentials(user="alice", password="alice")
        self.answer("object-store", "/c/o", "<html>Forbidden</html>", status=403)
        error = self.fault(self.cloud.read(TenantId("alpha"), alice, "c", "o"))
        self.assertEqual(error.kind, Fault.FORBIDDEN)
        self.assertIn("the user may not read objects of container 'c'", error.text)

    def test_a_probe_answers_status_and_body(self) -> None:
        """Any status is an answer; nobody there is a ProbeError."""
        probe = HttpProbe(self.rig.agent, self.rig.clock)
        status, body = self.rig.run(probe.get(Location(f"{ORIGIN}/compute/v2.1/limits"), 5.0))
        self.assertEqual((status, "error" in json.loads(body)), (401, True))
        error = self.assertRaises(
            ProbeError, self.rig.run, probe.get(Location("http://nobody/"), 5.0)
        )
        self.assertEqual(error.kind, Fault.UNREACHABLE)
        self.rig.faults.add(FaultRule(where="image", effect="timeout_before"))
        error = self.assertRaises(
            ProbeError, self.rig.run, probe.get(Location(f"{ORIGIN}/image/"), 5.0)
        )
        self.assertEqual(error.kind, Fault.TIMEOUT)
