"""The least that the service accepts for every shape of a request.

The routes are read from the door. A new request class has no body here, and fails the suites until
it has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from svcd.model import requests
from svcd.model.shapes import Shape
from svcd.resources._route import Route
from svcd.testing import FakeService
from tests.support.fakes import MASTER, WORKER
from tests.unit.resources.connected import Connected

PLUGIN = {"plugin_name": "fake", "engine_version": "0.1"}
CREDENTIALS = {"user": "u", "password": "p"}
WHOLE = {"name": "w", "count": 1, "flavor_id": "2", "node_processes": [*MASTER, *WORKER]}
"""One machine that is a cluster with an engine."""
LEAST: Mapping[type, Mapping[str, Any]] = {
    requests.NewNodeGroupTemplate: {
        **PLUGIN,
        "name": "g",
        "flavor_id": "2",
        "node_processes": ["datanode"],
    },
    requests.NewClusterTemplate: {**PLUGIN, "name": "t", "node_groups": [WHOLE]},
    requests.NewCluster: {
        **PLUGIN,
        "name": "c",
        "default_image_id": FakeService.image_id,
        "node_groups": [WHOLE],
    },
    requests.ScaleRequest: {},
    requests.NewDataSource: {"name": "s", "type": "hdfs", "url": "/a"},
    requests.NewJobBinary: {"name": "b", "url": "objstore-internal://a/b", "extra": CREDENTIALS},
    requests.NewJob: {"name": "j", "type": "Java", "mains": []},
    requests.ExecuteRequest: {"job_configs": {"configs": {"edp.java.main_class": "a.Main"}}},
    requests.RegisterImage: {"username": "cloud"},
    requests.Tags: {"tags": ["a"]},
    requests.PasswordLogin: {"user": "alice", "domain": "Default", "password": "alice"},
}
"""What the service accepts, as soon as the suite has filled in the ids."""
BLUEPRINT = (
    b'{"host_groups":[{"name":"w","components":[{"name":"NAMENODE"},{"name":"DATANODE"}]}],'
    b'"flavor_id":"2","Blueprints":{"blueprint_name":"t"}}'
)


def with_body(peer: Connected) -> Sequence[Route]:
    """Every route that takes a body."""
    return [each for each in peer.rest.routes() if each.spec.body is not None]


def shape_of(route: Route) -> type | None:
    """The class of the body; None: the body is no JSON of ours."""
    return route.spec.body.cls if isinstance(route.spec.body, Shape) else None
