"""What a user of the fake does: a cluster, a Pig job on it, and the end of both."""

from __future__ import annotations

from typing import Any

from svcd.testing import FakeService

MASTER = ("namenode", "resourcemanager", "historyserver", "oozie")
WORKER = ("datanode", "nodemanager")
_STEP_S = 1.0
_MOST_STEPS = 2000


class Unexpected(Exception):
    """The service did not do what the benchmark is about."""


def asked(service: FakeService, method: str, path: str, body: object = None) -> Any:
    """The JSON answer of a success."""
    answer = service.call(method, f"/v1.1/{service.tenant}{path}", json=body)
    if answer.status >= 300:
        raise Unexpected(f"{method} {path} answered {answer.status}: {answer.body[:500]!r}")
    return answer.json


def new_cluster(service: FakeService, name: str, workers: int = 2) -> dict[str, object]:
    """The request for a cluster of one master and `workers`."""
    groups = (("master", 1, MASTER), ("worker", workers, WORKER))
    return {
        "name": name,
        "plugin_name": "fake",
        "engine_version": "0.1",
        "default_image_id": service.image_id,
        "user_keypair_id": service.keypair,
        "node_groups": [
            {
                "name": group,
                "count": count,
                "flavor_id": service.flavor_id,
                "node_processes": list(processes),
            }
            for group, count, processes in groups
        ],
    }


def until(service: FakeService, path: str, wanted: str) -> None:
    """Let time pass until the cluster or execution at `path` has the status `wanted`."""
    for _ in range(_MOST_STEPS):
        found = asked(service, "GET", path)
        status = found["cluster"]["status"] if "cluster" in found else found["info"]["status"]
        if status == wanted:
            return
        if status in ("Error", "FAILED", "KILLED"):
            break
        service.advance(_STEP_S)
    raise Unexpected(f"{path} is not {wanted}: {found}")


def pig_job(service: FakeService) -> tuple[str, str, str]:
    """A job with its script, and where it reads and writes: their ids."""
    path = f"/v1.1/{service.tenant}/job-binary-internals/count.pig"
    internal = service.call("PUT", path, data=b"lines = LOAD '$INPUT';\n").json
    url = f"internaldb://{internal['job_binary_internal']['id']}"
    binary = asked(service, "POST", "/job-binaries", {"name": "count.pig", "url": url})
    sources = [
        asked(
            service,
            "POST",
            "/data-sources",
            {
                "name": name,
                "type": "objstore",
                "url": f"objstore://demo/{name}",
                "credentials": {"user": "demo", "password": "demo"},
            },
        )["data_source"]["id"]
        for name in ("in", "out")
    ]
    body = {"name": "count", "type": "Pig", "mains": [binary["job_binary"]["id"]], "libs": []}
    job = asked(service, "POST", "/jobs", body)["job"]["id"]
    return job, sources[0], sources[1]


def whole_life(service: FakeService) -> None:
    """Create a cluster of three, run a Pig job to SUCCEEDED, delete the cluster."""
    made = asked(service, "POST", "/clusters", new_cluster(service, "life"))
    cluster = made["cluster"]["id"]
    until(service, f"/clusters/{cluster}", "Active")
    job, source, target = pig_job(service)
    body = {
        "cluster_id": cluster,
        "input_id": source,
        "output_id": target,
        "job_configs": {"configs": {}, "args": {}, "params": {}},
    }
    execution = asked(service, "POST", f"/jobs/{job}/execute", body)["job_execution"]["id"]
    until(service, f"/job-executions/{execution}", "SUCCEEDED")
    asked(service, "DELETE", f"/clusters/{cluster}")
    path = f"/v1.1/{service.tenant}/clusters/{cluster}"
    for _ in range(_MOST_STEPS):
        if service.call("GET", path).status == 404:
            return
        service.advance(_STEP_S)
    raise Unexpected(f"cluster {cluster} is not gone")
