"""Answers of a resource manager, and links of an engine, that make no sense: nothing is raised."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from svcd.model.secret import Secret
from svcd.ports.machines import Host, Location, Way, reachable
from svcd.provisioning.distributions.spi import Endpoints
from svcd.runtime.clock import VirtualClock
from svcd.workflow.act.rows import Place
from svcd.workflow.act.yarn import ResourceManager, manager_of
from svcd.workflow.decide.stalls import ClusterMetrics
from tests.unit.workflow.support import CLUSTER, WorkflowCase

BASE = "http://10.0.0.1:8088"
NODES = b'{"clusterMetrics": {"activeNodes": 1}}'
ENDPOINTS = Endpoints(
    engine="http://10.0.0.1:11000/oozie",
    webhdfs="http://10.0.0.1:9870",
    name_node="hdfs://10.0.0.1:8020",
    resource_manager="10.0.0.1:8032",
    history="",
    user="svcd",
)


class Says:
    """A probe with these answers, one after the other."""

    def __init__(self, *bodies: bytes) -> None:
        self._bodies = list(bodies)

    async def get(self, at: Location, timeout_s: float) -> tuple[int, bytes]:
        return 200, self._bodies.pop(0)

    async def put(self, at: Location, body: bytes, timeout_s: float) -> int:
        return 200


class ManagerNonsenseTests(WorkflowCase):
    def word(self, *bodies: bytes, console: str = "") -> ClusterMetrics:
        cluster = self.cluster(CLUSTER, "mine")
        place = Place(cluster, ENDPOINTS, {"10.0.0.1": Way("10.0.0.1")})
        asked = ResourceManager(Says(*bodies), VirtualClock()).metrics(place, console)
        return self.successResultOf(Deferred.fromCoroutine(asked))

    def test_deeply_nested_answer(self) -> None:
        self.assertEqual(self.word(b"[" * 100_000), ClusterMetrics())

    def test_endless_number(self) -> None:
        app = b'{"apps": {"app": [{"id": "a", "elapsedTime": 1' + b"0" * 400 + b"}]}}"
        told = self.word(NODES, app).applications
        self.assertEqual([each.age_s for each in told or ()], [float("inf")])

    def test_half_of_a_character(self) -> None:
        app = rb'{"apps": {"app": [{"id": "a", "diagnostics": "cut \ud83d"}]}}'
        told = self.word(NODES, app).applications
        self.assertEqual([each.diagnostics for each in told or ()], ["cut ?"])

    def test_link_that_is_no_url(self) -> None:
        for console in ("http://[::1/proxy/a", "http://localhost:99999999/", "http://h:x/"):
            self.assertEqual(manager_of(console, "10.0.0.1"), BASE)
            self.assertIsNone(reachable(console, {"10.0.0.1": Way("10.0.0.1")}))

    def test_https_of_a_machine_goes_to_the_machine(self) -> None:
        """Where it is refused: it never goes past SSH."""
        machine = Host(address="203.0.113.1", port=22, user="ubuntu", private_key=Secret(""))
        found = reachable("https://10.0.0.1:8090/ws", {"10.0.0.1": Way("10.0.0.1", machine)})
        self.assertEqual(found, Location("https://10.0.0.1:8090/ws", machine))
