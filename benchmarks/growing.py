"""What grows in a large installation, on a `FakeService`: clusters, objects, trusts, templates.

`python -m benchmarks.growing WHAT COUNT` does the work in a process of its own, and writes what it
took as JSON: processor time in milliseconds, and memory in MiB. `tests.system.test_growth` counts
the steps of the same work.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.lives import Unexpected, asked, new_cluster
from svcd.embedded.cloud.core import SERVICE_USER
from svcd.testing import CLOUD_URL, FakeService

NODES: Final = 100
"""Instances of each cluster."""
SETTINGS: Final = {
    "embedded.network": "127.64.0.0/13",
    "embedded.quota_instances": "1000000",
    "embedded.quota_cores": "1000000",
    "embedded.quota_ram_mib": "10000000000",
    "limits.instances": "0",
}
"""A fake without limits, and with room for half a million servers."""
_MOST_STEPS: Final = 200
_STEP_S: Final = 10.0
_CONTAINER: Final = f"{CLOUD_URL}/object-store/v1/AUTH_demo/many"
_TRUSTS: Final = f"{CLOUD_URL}/identity/v3/OS-TRUST/trusts"
_TOKENS: Final = f"{CLOUD_URL}/identity/v3/auth/tokens"


def clusters(service: FakeService, count: int, nodes: int = NODES) -> list[str]:
    """Ask for clusters of `nodes` at once, let time pass until they rest; their ids."""
    ids = []
    for number in range(count):
        body = new_cluster(service, f"grown-{number}", nodes - 1)
        ids.append(asked(service, "POST", "/clusters", body)["cluster"]["id"])
    for _ in range(_MOST_STEPS):
        if not service.activity()["clusters"]:
            return ids
        service.advance(_STEP_S)
    raise Unexpected(f"{service.activity()['clusters']} of {count} clusters do not rest")


def all_active(service: FakeService, ids: list[str]) -> None:
    """Raises Unexpected when one of the clusters is not Active."""
    for id_ in ids:
        cluster = asked(service, "GET", f"/clusters/{id_}")["cluster"]
        if cluster["status"] != "Active":
            raise Unexpected(
                f"cluster {id_} is {cluster['status']}: {cluster['status_description']}"
            )


def removed(service: FakeService, ids: list[str]) -> None:
    """Delete the clusters, and let time pass until nothing of them is left in the cloud."""
    for id_ in ids:
        asked(service, "DELETE", f"/clusters/{id_}")
    for _ in range(_MOST_STEPS):
        if not service.activity()["clusters"]:
            break
        service.advance(_STEP_S)
    state = service.cloud.core.state
    if len(state.servers) or len(state.ports):
        raise Unexpected(f"{len(state.servers)} servers and {len(state.ports)} ports are left")


def objects(service: FakeService, count: int) -> None:
    """Store, look up and list small objects in one container."""
    headers = {"X-Auth-Token": service.token(), "Accept": "application/json"}
    _done(service, "PUT", _CONTAINER, headers)
    for number in range(count):
        name = f"part-{number:06d}"
        _done(service, "PUT", f"{_CONTAINER}/out/{name}", headers, data=b"x" * 100)
        _done(service, "HEAD", f"{_CONTAINER}/out/{name}", headers)
        _done(service, "HEAD", _CONTAINER, headers)
        listed = _done(
            service, "GET", f"{_CONTAINER}?prefix=out/{name}&delimiter=/&limit=1", headers
        )
        if [row["name"] for row in listed] != [f"out/{name}"]:
            raise Unexpected(f"the listing of {name} is {listed}")
        _done(service, "GET", f"{_CONTAINER}?delimiter=/", headers)


def trusts(service: FakeService, count: int) -> None:
    """Give trusts to the daemon's user, and use each once."""
    users = service.cloud.core.users_by_name
    trustor, trustee = users["demo"], users[SERVICE_USER]
    headers = {"X-Auth-Token": service.token()}
    ends = datetime.datetime(2150, 1, 1, tzinfo=datetime.UTC)
    for number in range(count):
        end = (ends + datetime.timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
        trust = {
            "trustor_user_id": trustor.id,
            "trustee_user_id": trustee.id,
            "project_id": service.tenant,
            "impersonation": True,
            "roles": [{"name": "member"}],
            "expires_at": end,
        }
        id_ = _done(service, "POST", _TRUSTS, headers, json={"trust": trust})["trust"]["id"]
        user = {"id": trustee.id, "password": trustee.password}
        auth = {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"OS-TRUST:trust": {"id": id_}},
        }
        _done(service, "POST", _TOKENS, {}, json={"auth": auth})


def templates(service: FakeService, count: int) -> None:
    """Store templates of node groups and read each."""
    for number in range(count):
        body = {
            "name": f"template-{number}",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "flavor_id": service.flavor_id,
            "node_processes": ["datanode"],
        }
        id_ = asked(service, "POST", "/node-group-templates", body)["node_group_template"]["id"]
        asked(service, "GET", f"/node-group-templates/{id_}")


def _done(
    service: FakeService, method: str, url: str, headers: Mapping[str, str], **more: Any
) -> Any:
    answer = service.call(method, url, headers=headers, **more)
    if answer.status >= 300:
        raise Unexpected(f"{method} {url} answered {answer.status}: {answer.body[:500]!r}")
    return answer.json


def _memory_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _clusters(service: FakeService, count: int) -> Callable[[], None]:
    ids = clusters(service, count)
    return lambda: all_active(service, ids)


def main(what: str, count: int) -> None:
    """Do the work, and write what it took."""
    work: Mapping[str, Callable[[FakeService, int], Callable[[], None] | None]] = {
        "clusters": _clusters,
        "objects": objects,
        "trusts": trusts,
        "templates": templates,
    }
    with FakeService(SETTINGS) as service:
        begin = time.process_time()
        check = work[what](service, count)
        spent_ms = (time.process_time() - begin) * 1000.0
        memory = _memory_mib()
        if check is not None:
            check()
    print(json.dumps({"cpu_ms": spent_ms, "memory_mib": memory}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
