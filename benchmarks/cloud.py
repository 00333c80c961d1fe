"""What svcd adds to the boot of many servers on an OpenStack.

`cloud`: on the platform of SVCD_TEST_OS_PLATFORM (a platform.json), a cluster of 50 servers by a
daemon, and in turn the same servers booted by Nova's API with as many calls in flight; both go
through proxies that count the calls. Servers need not answer on SSH: the time until the daemon sees
them all ACTIVE counts. `cloud-embedded`: a cluster of 200 whole on the embedded cloud.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from benchmarks.cloud_proxy import Proxies
from benchmarks.figures import Figure, ratio
from benchmarks.lives import MASTER, WORKER, Unexpected
from benchmarks.processes import Server, beside, twistd

_SERVERS: Final = 50
_CALLS_AT_ONCE: Final = 10
_LOOK_S: Final = 1.0
_ASK_DAEMON_S: Final = 0.2
_ACTIVE_S: Final = 1200.0
_LIMIT: Final = 1.2
_TENANT: Final = "alpha"
_FLAVOR: Final = "1"


class Refused(Exception):
    """An answer of 400 and above."""


def asked(
    method: str, url: str, body: Any = None, token: str = "", version: str = ""
) -> tuple[Any, Mapping[str, str]]:
    """The JSON and the headers of a success. Raises Refused."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if token:
        headers["X-Auth-Token"] = token
    if version:
        headers["OpenStack-API-Version"] = version
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120.0) as answer:
            text = answer.read()
            return json.loads(text) if text else None, dict(answer.headers.items())
    except urllib.error.HTTPError as error:
        with error:
            raise Refused(f"{method} {url}: {error.code} {error.read()[:500]!r}") from None


def until(what: str, look: Callable[[], bool], every_s: float = _LOOK_S) -> None:
    """Look again and again. Raises Unexpected."""
    end = time.perf_counter() + _ACTIVE_S
    while not look():
        if time.perf_counter() > end:
            raise Unexpected(f"not in time: {what}")
        time.sleep(every_s)


class Platform:
    """A platform through counting proxies, as the tenant's user."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self.known = known
        ends = known["endpoints"]
        self.proxies = Proxies(
            {
                "identity": known["auth_url"],
                "compute": ends["nova"],
                "image": ends["glance"],
                "network": ends["neutron"],
                "volume": ends["cinder"],
                "object-store": ends["swift"],
            }
        )
        self.auth_url = self.proxies.url(known["auth_url"])
        self.nova = self.proxies.url(ends["nova"])
        self.neutron = self.proxies.url(ends["neutron"])
        self.tenant = known["tenants"][_TENANT]
        self.project = known["projects"][_TENANT]
        self.token = self.login(self.tenant["user"], _TENANT)

    def login(self, user: str, project: str) -> str:
        """A fresh token."""
        who = {"name": user, "domain": {"id": "default"}}
        who["password"] = self.known["users"][user]["password"]
        identity = {"methods": ["password"], "password": {"user": who}}
        scope = {"project": {"id": self.known["projects"][project]}}
        body = {"auth": {"identity": identity, "scope": scope}}
        _, headers = asked("POST", f"{self.auth_url}/auth/tokens", body)
        return {k.lower(): v for k, v in headers.items()}["x-subject-token"]

    def raise_quota(self, servers: int) -> None:
        """By an administrator, where the tenant has too little for `servers` twice."""
        token = self.login("admin", "admin")
        url = f"{self.nova}/os-quota-sets/{self.project}"
        have = asked("GET", url, token=token)[0]["quota_set"]
        need = {"instances": 2 * servers, "cores": 2 * servers, "ram": 2 * servers * 512}
        more = {k: n for k, n in need.items() if 0 <= have[k] < n}
        if more:
            asked("PUT", url, {"quota_set": more}, token)

    def servers(self, prefix: str) -> list[dict[str, Any]]:
        """The tenant's servers of that name."""
        url = f"{self.nova}/servers/detail?name=%5E{prefix}&limit=1000"
        found: list[dict[str, Any]] = asked("GET", url, token=self.token)[0]["servers"]
        return found

    def direct(self, count: int) -> tuple[float, Mapping[str, int]]:
        """Seconds until `count` servers are ACTIVE, and the calls; they are deleted again."""
        group = self.security_group()
        self.proxies.calls.clear()
        begin = time.perf_counter()

        def post(number: int) -> None:
            server = {
                "name": f"direct-{number:03d}",
                "imageRef": self.tenant["private_image"],
                "flavorRef": _FLAVOR,
                "key_name": self.tenant["keypair"],
                "networks": [{"uuid": self.tenant["network"]}],
                "security_groups": [{"name": group}],
                "user_data": b64encode(b"#cloud-config\n").decode(),
                "metadata": {"svcd_cluster_id": "direct", "svcd_instance_id": str(number)},
            }
            url = f"{self.nova}/servers"
            asked("POST", url, {"server": server}, self.token, "compute 2.79")

        with ThreadPoolExecutor(_CALLS_AT_ONCE) as pool:
            list(pool.map(post, range(count)))
        until("servers ACTIVE", lambda: _active(self.servers("direct-"), count))
        seconds = time.perf_counter() - begin
        calls = dict(self.proxies.calls)
        with ThreadPoolExecutor(_CALLS_AT_ONCE) as pool:
            urls = [f"{self.nova}/servers/{s['id']}" for s in self.servers("direct-")]
            list(pool.map(lambda url: asked("DELETE", url, token=self.token), urls))
        self.until_gone("direct-")
        asked("DELETE", f"{self.neutron}/security-groups/{group}", token=self.token)
        return seconds, calls

    def security_group(self) -> str:
        """Id of a group like that of a cluster."""
        url, body = f"{self.neutron}/security-groups", {"security_group": {"name": "direct"}}
        group = str(asked("POST", url, body, self.token)[0]["security_group"]["id"])
        for ports in ({"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}, {}):
            rule = {"security_group_id": group, "direction": "ingress", "ethertype": "IPv4"}
            rule |= ports or {"remote_group_id": group}
            url = f"{self.neutron}/security-group-rules"
            asked("POST", url, {"security_group_rule": rule}, self.token)
        return group

    def until_gone(self, prefix: str) -> None:
        """Servers that went to ERROR instead are deleted once more."""

        def gone() -> bool:
            found = self.servers(prefix)
            for server in found:
                if server["status"] == "ERROR":
                    asked("DELETE", f"{self.nova}/servers/{server['id']}", token=self.token)
            return not found

        until(f"servers {prefix} gone", gone)

    def left(self) -> list[str]:
        """What a cluster might have left: servers, ports of servers, security groups."""
        tenant = f"tenant_id={self.project}"
        found = [f"server {row['name']}" for row in self.servers("bench-")]
        for name, path in (
            ("ports", f"/ports?{tenant}&device_owner=compute:nova"),
            ("security_groups", f"/security-groups?{tenant}"),
        ):
            for row in asked("GET", self.neutron + path, token=self.token)[0][name]:
                if name == "ports" or row["name"].startswith("svcd-"):
                    found.append(f"{name} {row['id']}")
        trusts = asked(
            "GET", f"{self.auth_url}/OS-TRUST/trusts", token=self.login("admin", "admin")
        )
        mine = self.known["users"]["svcd"]["id"]
        found += [t["id"] for t in trusts[0]["trusts"] if t["trustee_user_id"] == mine]
        return found


def _active(servers: list[dict[str, Any]], count: int) -> bool:
    broken = [s for s in servers if s["status"] == "ERROR"]
    if broken:
        raise Unexpected(f"{broken[0]['name']} is in ERROR: {broken[0].get('fault')}")
    return sum(1 for s in servers if s["status"] == "ACTIVE") == count


def cluster_body(count: int, **more: Any) -> dict[str, Any]:
    """A cluster of one master and workers, `count` in all."""
    groups = (("master", 1, MASTER), ("worker", count - 1, WORKER))
    return {
        "name": "bench",
        "plugin_name": "fake",
        "engine_version": "0.1",
        "node_groups": [
            {"name": g, "count": n, "flavor_id": _FLAVOR, "node_processes": list(p)}
            for g, n, p in groups
        ],
        **more,
    }


def _all_seen(cluster: Mapping[str, Any], count: int) -> bool:
    """Whether the daemon knows all servers as ACTIVE."""
    if cluster["status"] == "Error":
        raise Unexpected(cluster["status_description"])
    statuses = [i.get("status") for g in cluster["node_groups"] for i in g.get("instances", ())]
    return statuses.count("ACTIVE") == count


def by_daemon(
    platform: Platform, count: int, folder: Path
) -> tuple[float, Mapping[str, int], float]:
    """Seconds until the daemon sees all ACTIVE, the calls until then, and its memory in MiB."""
    settings = {
        "cloud.kind": "openstack",
        "auth.mode": "keystone",
        "cloud.auth_url": platform.auth_url,
        "cloud.username": "svcd",
        "cloud.password": platform.known["users"]["svcd"]["password"],
        "cloud.project": "service",
        "cloud.calls_at_once": str(_CALLS_AT_ONCE),
    }
    before = set(platform.left())
    server, endpoints, _ = twistd("daemon", "svcd", folder, settings)
    try:
        base = f"{endpoints['api'].rstrip('/')}/v1.1/{platform.project}"

        def ask(method: str, path: str, body: Any = None) -> Any:
            return asked(method, base + path, body, platform.token)[0]

        image = platform.tenant["private_image"]
        ask("POST", f"/images/{image}", {"username": "debian", "description": ""})
        ask("POST", f"/images/{image}/tag", {"tags": ["fake", "0.1"]})
        body = cluster_body(
            count,
            default_image_id=image,
            user_keypair_id=platform.tenant["keypair"],
            neutron_management_network=platform.tenant["network"],
        )
        platform.proxies.calls.clear()
        begin = time.perf_counter()
        path = f"/clusters/{ask('POST', '/clusters', body)['cluster']['id']}"
        until("servers", lambda: _all_seen(ask("GET", path)["cluster"], count), _ASK_DAEMON_S)
        seconds = time.perf_counter() - begin
        calls = dict(platform.proxies.calls)
        memory = server.memory_mib()
        ask("DELETE", path)

        def gone() -> bool:
            try:
                ask("GET", path)
            except Refused as refused:
                if " 404 " in str(refused):
                    return True
                raise
            return False

        until("cluster gone", gone)
    finally:
        server.stop()
    platform.until_gone("bench-")
    left = set(platform.left()) - before
    if left:
        raise Unexpected(f"the cluster left {', '.join(sorted(left))}")
    return seconds, calls, memory


def run(quick: bool) -> list[Figure]:
    """On a real platform; nothing when none is named."""
    named = os.environ.get("SVCD_TEST_OS_PLATFORM")
    if not named:
        print("cloud: SVCD_TEST_OS_PLATFORM names no platform.json", file=sys.stderr)
        return []
    platform = Platform(json.loads(Path(named).read_text(encoding="utf-8")))
    count = 10 if quick else _SERVERS
    rounds = 1 if quick else 2
    ours: list[float] = []
    theirs: list[float] = []
    per_server: list[float] = []
    memory: list[float] = []
    try:
        platform.raise_quota(count)
        platform.direct(2)  # the first server after a start takes long
        for number in range(rounds):
            seconds, calls = platform.direct(count)
            theirs.append(seconds)
            _tell(f"direct {number}", seconds, calls, count)
            with tempfile.TemporaryDirectory(prefix="svcd-bench-") as folder:
                seconds, calls, mib = by_daemon(platform, count, Path(folder))
            ours.append(seconds)
            per_server.append(sum(calls.values()) / count)
            memory.append(mib)
            _tell(f"daemon {number}", seconds, calls, count)
    finally:
        platform.proxies.stop()
    return [
        _figure(f"{count} servers ACTIVE by the daemon", "s", ours),
        _figure(f"{count} servers ACTIVE by Nova's API", "s", theirs),
        ratio("cloud", "daemon to Nova's API", ours, theirs, None if quick else _LIMIT),
        _figure("calls of a server", "calls", per_server),
        _figure("memory of the daemon", "MiB", memory),
    ]


def _figure(name: str, unit: str, rounds: list[float], benchmark: str = "cloud") -> Figure:
    return Figure(benchmark=benchmark, name=name, unit=unit, rounds=tuple(rounds))


def _tell(what: str, seconds: float, calls: Mapping[str, int], count: int) -> None:
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{what}: {seconds:.1f} s, {sum(calls.values())} calls, load {load}", file=sys.stderr)
    for name, number in sorted(calls.items(), key=lambda each: -each[1]):
        print(f"  {number:5d}  {number / count:6.2f} a server  {name}", file=sys.stderr)


# ---- the embedded cloud ----


def run_embedded(quick: bool) -> list[Figure]:
    """A cluster with servers that run the distribution's processes, cloud and daemon apart."""
    count = 20 if quick else 200
    with tempfile.TemporaryDirectory(prefix="svcd-bench-") as name:
        folder = Path(name)
        network = {"embedded.network": "127.88.0.0/16", "embedded.quota_instances": "1000"}
        cloud, told, _ = twistd("cloud", "svcd-cloud", folder, network)
        try:
            return _embedded(cloud, told, count, folder)
        finally:
            cloud.stop()


def _embedded(cloud: Server, told: Mapping[str, Any], count: int, folder: Path) -> list[Figure]:
    settings = beside(told)
    admin = re.sub(r"/identity.*", "/admin/calls", told["identity"])
    daemon, endpoints, _ = twistd("daemon", "svcd", folder, settings)
    try:
        base = f"{endpoints['api'].rstrip('/')}/v1.1/{told['tenant']}"
        image = next(i["id"] for i in told["images"] if i["name"] == "plain")
        asked("POST", f"{base}/images/{image}", {"username": "svcd", "description": ""})
        asked("POST", f"{base}/images/{image}/tag", {"tags": ["fake", "0.1"]})
        asked("DELETE", admin)
        used = daemon.cpu_s(), cloud.cpu_s()
        begin = time.perf_counter()
        body = cluster_body(count, default_image_id=image, user_keypair_id="demo")
        path = f"{base}/clusters/{asked('POST', f'{base}/clusters', body)[0]['cluster']['id']}"
        spawned: list[float] = []

        def active() -> bool:
            cluster = asked("GET", path)[0]["cluster"]
            if not spawned and _all_seen(cluster, count):
                spawned.append(time.perf_counter() - begin)
            return bool(spawned) and cluster["status"] == "Active"

        until("cluster Active", active)
        seconds = time.perf_counter() - begin
        calls = asked("GET", admin)[0]["calls"]
        _tell("embedded", seconds, calls, count)
        rows = (
            (f"{count} servers ACTIVE", "s", spawned[0]),
            (f"cluster of {count} Active", "s", seconds),
            ("processor of the daemon", "s", daemon.cpu_s() - used[0]),
            ("processor of the cloud and its servers' SSH", "s", cloud.cpu_s() - used[1]),
            ("memory of the daemon", "MiB", daemon.memory_mib()),
            ("calls of a server", "calls", sum(calls.values()) / count),
        )
        asked("DELETE", path + "?force=true")
        return [_figure(name, unit, [value], "cloud-embedded") for name, unit, value in rows]
    finally:
        daemon.stop()
