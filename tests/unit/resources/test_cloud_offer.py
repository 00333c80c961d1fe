"""`GET /cloud`: flavors, key pairs, networks and quotas, whatever the services of the cloud do."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cloud import Flavor, Network
from svcd.model.requests import NewCluster
from svcd.resources.cloud_offer import offer
from svcd.testing import Effect, FakeService, FaultRule
from tests.unit.resources.bodies import LEAST, WHOLE

_ALL = {
    "instances": (0, 200),
    "cores": (0, 800),
    "ram_mib": (0, 1_638_400),
    "volumes": (0, 400),
    "volume_gib": (0, 40_000),
    "floating_ips": (0, 50),
}


class CloudOfferTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.svcd = FakeService()
        self.addCleanup(self.svcd.close)

    def cloud(self) -> Any:
        answer = self.svcd.call("GET", "/v1.1/demo/cloud")
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json["cloud"]

    def quotas(self) -> dict[str, tuple[int, int | None]]:
        return {each["resource"]: (each["used"], each["limit"]) for each in self.cloud()["quota"]}

    def failed(self) -> dict[str, tuple[str, str]]:
        return {
            each["part"]: (each["error_name"], each["error_message"])
            for each in self.cloud()["failed"]
        }

    def test_all_parts_of_the_project(self) -> None:
        """Flavors with the smallest memory first, networks of machines before pools."""
        found = self.cloud()
        self.assertEqual(
            [(each["name"], each["ram_mib"]) for each in found["flavors"]],
            [("m1.tiny", 512), ("m1.small", 2048), ("m1.medium", 4096), ("m1.large", 8192)],
        )
        self.assertEqual(
            found["flavors"][2],
            {"id": "3", "name": "m1.medium", "vcpus": 2, "ram_mib": 4096, "disk_gib": 40},
        )
        self.assertEqual(found["keypairs"], ["demo"])
        self.assertEqual(
            [(each["name"], each["username"]) for each in found["unregistered_images"]],
            [("vanilla-3.5.0", "svcd")],
        )
        self.assertEqual(
            [(each["name"], each["external"]) for each in found["networks"]],
            [("private", False), ("public", True)],
        )
        self.assertEqual((found["cut"], found["failed"]), ([], []))
        self.assertEqual(self.quotas(), _ALL)

    def test_used_quotas_follow_a_cluster_at_once(self) -> None:
        """No older answer is kept."""
        self.quotas()
        extras = {"volumes_per_node": 2, "volumes_size": 5, "floating_ip_pool": "public"}
        body = {**LEAST[NewCluster], "node_groups": [{**WHOLE, **extras}]}
        body["user_keypair_id"] = FakeService.keypair
        made = self.svcd.call("POST", "/v1.1/demo/clusters", body)
        self.assertEqual(made.status, 202, made.body)
        self.svcd.advance(120)
        found = self.quotas()
        self.assertEqual(found["instances"], (1, 200))
        self.assertEqual((found["volumes"], found["volume_gib"]), ((2, 400), (10, 40_000)))
        self.assertEqual(found["floating_ips"], (1, 50))

    def test_a_quota_without_limit(self) -> None:
        """-1 in the words of OpenStack."""
        self.svcd.faults.add(
            FaultRule(
                where="compute",
                path="/limits",
                status=200,
                body='{"limits": {"absolute": {"maxTotalInstances": -1, "totalInstancesUsed": 7}}}',
            )
        )
        found = self.quotas()
        self.assertEqual(found["instances"], (7, None))
        self.assertEqual(found["cores"], (0, None))

    def test_a_failing_service_is_named_beside_the_others(self) -> None:
        """With the error that a request for it alone would get."""
        self.svcd.faults.add(FaultRule(where="volume", status=503, body="out"))
        self.svcd.faults.add(FaultRule(where="compute", path="keypairs", status=403, body="no"))
        found = self.failed()
        self.assertEqual(set(found), {"keypairs", "volumes"})
        self.assertEqual(found["keypairs"][0], "FORBIDDEN")
        self.assertIn("volume: ", found["volumes"][1])
        self.assertEqual(set(self.quotas()), {"instances", "cores", "ram_mib", "floating_ips"})
        self.assertEqual(self.cloud()["keypairs"], [])

    def test_a_service_that_does_not_answer_is_late_alone(self) -> None:
        """The others are answered after 15 seconds."""
        self.svcd.faults.add(FaultRule(where="network", effect=Effect.ANSWER, delay_s=50))
        began = self.svcd.clock.seconds()
        found = self.failed()
        self.assertLess(self.svcd.clock.seconds() - began, 17)
        self.assertEqual(set(found), {"networks", "floating_ips"})
        self.assertEqual(found["networks"][0], "PLATFORM_TIMEOUT")
        self.assertEqual(found["networks"][1], "reading networks took longer than 15 s; try again")


class OfferTests(SynchronousTestCase):
    """The answer of the parts."""

    def test_long_lists_are_cut_and_say_so(self) -> None:
        """After 1,000 entries, in their order."""
        flavor = Flavor(id="f", name="f", ram_mib=1, vcpus=1)
        flavors = [evolve(flavor, id=str(n), ram_mib=2000 - n) for n in range(1001)]
        networks = [Network(id=str(n), name="n") for n in range(1000)]
        found = offer({"flavors": flavors, "networks": networks, "keypairs": ["b", "a"]}, {})
        self.assertEqual(len(found.flavors), 1000)
        self.assertEqual((found.flavors[0].id, found.flavors[-1].id), ("1000", "1"))
        self.assertEqual((found.cut, len(found.networks)), (["flavors"], 1000))
        self.assertEqual(found.keypairs, ["a", "b"])
