"""What tenants ask for, as bodies and as short ways to what a story needs first."""

from __future__ import annotations

from typing import Any

from svcd.testing import FakeService
from tests.fakes import MASTER, WORKER
from tests.simulation.world import Asked, World


def made(world: World, asked: Asked) -> Any:
    """The JSON of an answer that must be a good one."""
    world.answer(asked)
    if not asked.accepted:
        raise RuntimeError(f"{asked.method} {asked.path}: {asked.status} {asked.json}")
    return asked.json


def job(world: World, tenant: str) -> tuple[str, tuple[str, str]]:
    """Ids of a new job, and of its input and output."""
    stored = made(world, world.ask(tenant, "PUT", "/job-binary-internals/a.pig", data=b"-- a\n"))
    body: dict[str, Any] = {
        "name": "a.pig",
        "url": f"internaldb://{stored['job_binary_internal']['id']}",
    }
    binary = made(world, world.ask(tenant, "POST", "/job-binaries", body))["job_binary"]["id"]
    body = {"name": "job", "type": "Pig", "mains": [binary]}
    job_id = made(world, world.ask(tenant, "POST", "/jobs", body))["job"]["id"]
    world.name(job_id, f"{tenant}-job")
    ends = []
    for end in ("in", "out"):
        body = {"name": end, "type": "hdfs", "url": f"/data/{end}"}
        source = made(world, world.ask(tenant, "POST", "/data-sources", body))
        ends.append(source["data_source"]["id"])
    return job_id, (ends[0], ends[1])


def group(name: str, count: int, **more: Any) -> dict[str, Any]:
    """A node group of workers."""
    flavor = FakeService.flavor_id
    return {
        "name": name,
        "count": count,
        "flavor_id": flavor,
        "node_processes": WORKER,
        **more,
    }


def cluster(name: str, worker: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A cluster of one master and a group of workers."""
    return {
        "name": name,
        "plugin_name": "fake",
        "engine_version": "0.1",
        "default_image_id": FakeService.image_id,
        "user_keypair_id": FakeService.keypair,
        "cluster_configs": {"HDFS": {"dfs.replication": 1}},
        "node_groups": [group("master", 1, node_processes=MASTER), worker],
        **more,
    }


def execution(sources: tuple[str, str], **configs: str) -> dict[str, Any]:
    """configs: of the scripted engine, `svcd.fake.` aside."""
    given = {f"svcd.fake.{name}": value for name, value in configs.items()}
    return {
        "input_id": sources[0],
        "output_id": sources[1],
        "job_configs": {"configs": given, "args": {}, "params": {}},
    }
