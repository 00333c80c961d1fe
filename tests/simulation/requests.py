"""What tenants ask for, as bodies and as short ways to what a story needs first."""

from __future__ import annotations

from typing import Any

from svcd.testing import CLOUD_URL, FakeService
from tests.simulation.world import USERS, Asked, World
from tests.support.fakes import WORKER, cluster_body


def made(world: World, asked: Asked) -> Any:
    """The JSON of an answer that must be a good one."""
    world.answer(asked)
    if not asked.accepted:
        raise RuntimeError(f"{asked.method} {asked.path}: {asked.status} {asked.json}")
    return asked.json


def job(world: World, tenant: str) -> tuple[str, tuple[str, str]]:
    """Ids of a new job, and of its input and output."""
    stored = made(world, world.ask(tenant, "PUT", "/job-binary-internals/a.pig", data=b"-- a\n"))
    url = f"internaldb://{stored['job_binary_internal']['id']}"
    job_id = _job_of(world, tenant, {"name": "a.pig", "url": url})
    world.name(job_id, f"{tenant}-job")
    ends = []
    for end in ("in", "out"):
        body: dict[str, Any] = {"name": end, "type": "hdfs", "url": f"/data/{end}"}
        if end == "in":  # so that the job needs an application credential
            account = {"user": USERS[tenant], "password": USERS[tenant]}
            where = {"type": "objstore", "url": "objstore://data.svc/in"}
            body |= where | {"credentials": account}
        source = made(world, world.ask(tenant, "POST", "/data-sources", body))
        ends.append(source["data_source"]["id"])
    return job_id, (ends[0], ends[1])


def stored_job(world: World, tenant: str) -> str:
    """The id of a new job whose script is in the tenant's object store."""
    user = USERS[tenant]
    with world.outsider():
        token = world.svcd.token(user, project=tenant)
        box = f"{CLOUD_URL}/object-store/v1/AUTH_{tenant}/scripts"
        for url, data in ((box, None), (f"{box}/b.pig", b"-- b\n")):
            answer = world.svcd.call("PUT", url, data=data, headers={"X-Auth-Token": token})
            if answer.status != 201:
                raise RuntimeError(f"PUT {url}: {answer.status} {answer.body!r}")
    extra = {"user": user, "password": user}
    binary = {"name": "b.pig", "url": "objstore-internal://scripts/b.pig", "extra": extra}
    job_id = _job_of(world, tenant, binary)
    world.name(job_id, f"{tenant}-stored-job")
    return job_id


def _job_of(world: World, tenant: str, binary: dict[str, Any]) -> str:
    binary_id = made(world, world.ask(tenant, "POST", "/job-binaries", binary))["job_binary"]["id"]
    body = {"name": binary["name"], "type": "Pig", "mains": [binary_id]}
    return str(made(world, world.ask(tenant, "POST", "/jobs", body))["job"]["id"])


def group(name: str, count: int, **more: Any) -> dict[str, Any]:
    """A node group of workers."""
    body = {"name": name, "count": count, "flavor_id": FakeService.flavor_id}
    return {**body, "node_processes": WORKER, **more}


def cluster(name: str, worker: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A cluster of one master and a group of workers."""
    body = cluster_body(FakeService, name, 1, **more)
    body["node_groups"][1] = worker
    return body


def execution(sources: tuple[str, str], **configs: str) -> dict[str, Any]:
    """configs: of the scripted engine, `svcd.fake.` aside."""
    given = {f"svcd.fake.{name}": value for name, value in configs.items()}
    return {
        "input_id": sources[0],
        "output_id": sources[1],
        "job_configs": {"configs": given, "args": {}, "params": {}},
    }
