"""A `FakeService` whose cloud is watched: ways to spoil it, and what must be in it at the end.

`check` compares the embedded cloud with what the API shows: nothing missing, nothing doubled,
nothing left behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.cloud.state import State
from svcd.embedded.faults import Handle
from svcd.testing import CLOUD_URL, FakeService, FakeServiceMixin
from tests.support.fakes import Api, cluster_body

NEVER = 1e15
"""A moment that does not come."""


class TokenApi(Api):
    """As alice of alpha, each time with a fresh token."""

    def __init__(self, svcd: FakeService) -> None:
        super().__init__(svcd, "alpha")

    def ask(self, method: str, path: str, status: int, **more: Any) -> Any:
        token = self.svcd.token("alice", project="alpha")
        return super().ask(method, path, status, **{"headers": {"X-Auth-Token": token}, **more})


class WatchedCloudTestCase(FakeServiceMixin, SynchronousTestCase):
    """settings: of the service that `setUp` makes, as for `--set`."""

    settings: Mapping[str, str] = {}

    def setUp(self) -> None:
        self.begin()

    def begin(self, **more: str) -> None:
        """A new service in place of the present one; `more`: settings, `__` for the dot."""
        given = {name.replace("__", "."): value for name, value in more.items()}
        self.svcd: FakeService = self.fake_service({**self.settings, **given})
        self.api = TokenApi(self.svcd) if self._trusted() else Api(self.svcd)

    @property
    def state(self) -> State:
        return self.svcd.cloud.core.state

    # ---- clusters -------------------------------------------------------------------------------

    def create(self, workers: int = 2, volumes: int = 0, pool: str = "", **more: Any) -> str:
        """The id of a new cluster whose workers have volumes, and floating IPs of `pool`."""
        made = self.api.post("/clusters", self.body(workers, volumes, pool, **more))
        return str(made["cluster"]["id"])

    def body(self, workers: int = 2, volumes: int = 0, pool: str = "", **more: Any) -> Any:
        body = cluster_body(self.svcd, more.pop("name", "mine"), workers, **more)
        worker = body["node_groups"][-1]
        if volumes:
            worker |= {"volumes_per_node": volumes, "volumes_size": 10}
        if pool:
            worker["floating_ip_pool"] = pool
        return body

    def scale(self, cluster_id: str, workers: int) -> None:
        """Accepted; nothing has happened yet."""
        sizes = [{"name": "worker", "count": workers}]
        self.api.put(f"/clusters/{cluster_id}", {"resize_node_groups": sizes})

    def active(self, cluster_id: str, limit_s: float = 3600.0) -> Any:
        """The cluster when it has become Active; the cloud holds just what it should."""
        shown = self.api.until_status(cluster_id, "Active", limit_s)
        self.svcd.advance(60)
        self.check(cluster_id)
        return shown

    def failed(self, cluster_id: str, limit_s: float = 7200.0) -> str:
        """Why the cluster has become Error, when the clean-up is over."""
        self.api.until_status(cluster_id, "Error", limit_s)
        self.svcd.advance(120)
        return str(self.api.cluster(cluster_id)["status_description"])

    def gone(self, cluster_id: str, limit_s: float = 3600.0) -> None:
        """It goes, and nothing of it is left."""
        end = self.svcd.clock.seconds() + limit_s
        while self.svcd.clock.seconds() < end:
            if cluster_id not in [c["id"] for c in self.api.get("/clusters")["clusters"]]:
                self.check()
                return
            self.svcd.advance(1.0)
        shown = self.api.cluster(cluster_id)
        self.fail(f"still {shown['status']}: {shown['status_description']}")

    def delete(self, cluster_id: str, limit_s: float = 3600.0) -> None:
        """Delete it, and see it go."""
        self.api.delete(f"/clusters/{cluster_id}")
        self.gone(cluster_id, limit_s)

    def names(self, cluster_id: str) -> list[str]:
        """Of the instances that the API shows."""
        return [i["instance_name"] for i in _instances(self.api.cluster(cluster_id))]

    # ---- the cloud ------------------------------------------------------------------------------

    def ask_cloud(self, method: str, path: str, body: object = None) -> Any:
        """Somebody else of the tenant uses the cloud."""
        headers = {"X-Auth-Token": self.svcd.token()}
        answer = self.svcd.call(method, CLOUD_URL + path, json=body, headers=headers)
        self.assertLess(answer.status, 300, answer.body)
        return answer.json

    def servers(self) -> list[Any]:
        return sorted(self.state.servers.values(), key=lambda s: s.name)

    def volumes(self) -> list[Any]:
        return sorted(self.state.volumes.values(), key=lambda v: v.name)

    def change_server(self, server: Any, **fields: Any) -> None:
        """Its record, behind everybody's back."""
        self.state.servers.put(evolve(server, **fields))

    def change_volume(self, volume: Any, **fields: Any) -> None:
        self.state.volumes.put(evolve(volume, **fields))

    def until(
        self, condition: Callable[[], object], limit_s: float = 600.0, by: float = 0.1
    ) -> None:
        """Let time pass until `condition` holds."""
        end = self.svcd.clock.seconds() + limit_s
        while not condition():
            self.assertLess(self.svcd.clock.seconds(), end, "it does not come about")
            self.svcd.advance(by)

    def fault(self, where: str, **fields: Any) -> Handle:
        """A rule in force."""
        return self.svcd.faults.add(where=where, **fields)

    def break_boots(self, text: str, times: int) -> None:
        """The next `times` servers go to ERROR instead of ACTIVE, within embedded.boot_s."""
        while times > 0:
            self.svcd.advance(0.5)
            building = [s for s in self.state.servers.values() if s.status == "BUILD"][:times]
            for server in building:
                self.change_server(server, status="ERROR", task_state=None, fault=text)
            times -= len(building)

    def made(self, call: str) -> int:
        """How often the cloud has carried out a call, for example `compute POST /v2.1/servers`."""
        return self.svcd.cloud.calls[call]

    # ---- the invariant --------------------------------------------------------------------------

    def check(self, *cluster_ids: str) -> None:
        """The cloud holds exactly what the clusters that are there should have."""
        shown = [self.api.cluster(c) for c in cluster_ids]
        self.assertEqual(self._held(), _wanted(shown, self._trusted()))

    def installation(self) -> str:
        """The mark that the daemon puts on what it makes."""
        return str(self.api.get("/marks")["marks"]["installation"])

    def _trusted(self) -> bool:
        return "auth.mode" in self.settings

    def _held(self) -> dict[str, Any]:
        state = self.state
        servers = state.servers.values()
        ports = {p.id: p for p in state.ports.values()}
        addressed = Counter(
            (
                ip.description.replace(f":{self.installation()}:", ":"),
                ports[ip.port_id].device_id if ip.port_id in ports else None,
            )
            for ip in state.floating_ips.values()
        )
        volumes = Counter(
            (v.metadata.get("svcd_instance_id"), v.server_id, v.status)
            for v in state.volumes.values()
        )
        groups = [g.name for g in state.security_groups.values() if g.name != "default"]
        return {
            "servers": sorted((s.metadata.get("svcd_instance_id"), s.id) for s in servers),
            "ports": sorted(str(p.device_id) for p in ports.values()),
            "volumes": volumes,
            "floating IPs": addressed,
            "security groups": sorted(groups),
            "server groups": sorted(g.name for g in state.server_groups.values()),
            "trusts": len(state.trusts.values()),
        }


def _wanted(clusters: Sequence[Any], trusted: bool) -> dict[str, Any]:
    volumes: Counter[Any] = Counter()
    addressed: Counter[Any] = Counter()
    servers = []
    for cluster in clusters:
        for group in cluster["node_groups"]:
            for each in group["instances"]:
                if "server_id" not in each:
                    continue
                servers.append((each["instance_id"], each["server_id"]))
                held = (each["instance_id"], each["server_id"], "in-use")
                if group["volumes_per_node"]:
                    volumes[held] += group["volumes_per_node"]
                if group.get("floating_ip_pool"):
                    description = f"svcd:{cluster['id']}:{each['instance_id']}"
                    addressed[description, each["server_id"]] += 1
    named = [c for c in clusters if any("server_id" in i for i in _instances(c))]
    return {
        "servers": sorted(servers),
        "ports": sorted(server_id for _, server_id in servers),
        "volumes": volumes,
        "floating IPs": addressed,
        "security groups": sorted(f"svcd-{c['id']}" for c in named),
        "server groups": sorted(f"svcd-{c['id']}" for c in named if c["anti_affinity"]),
        "trusts": len(clusters) if trusted else 0,
    }


def _instances(cluster: Any) -> list[Any]:
    return [i for g in cluster["node_groups"] for i in g["instances"]]
