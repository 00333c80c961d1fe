"""What the chapters share: paths, bodies of requests, fields of answers, rows to build on."""

from __future__ import annotations

import re
from typing import Any

from tests.conformance.rows import ID, STAMP, Each, Holds, Only, Row

V0 = "/v1.0/{tenant}"

V1 = "/v1.1/{tenant}"

JSON = {"content-type": "application/json", "content-length": re.compile(r"\d+\Z")}

COMMANDS = frozenset({"commands"})

BUILD = frozenset({"commands", "build"})


def refused(says: str, json: Any, path: str, error: str = "VALIDATION_ERROR", **more: Any) -> Row:
    """A POST whose body is wrong."""
    return Row(says=says, method="POST", path=path, json=json, status=400, error=error, **more)


def unknown(says: str, method: str, path: str, **more: Any) -> Row:
    """A path whose id is unknown."""
    message = Holds(("not found",))
    return Row(
        says=says, method=method, path=path, status=404, error="NOT_FOUND", message=message, **more
    )


#: What the chapters that make clusters need: the image registered and tagged for the plugin.
READY = (
    Row(
        says="register",
        method="POST",
        path=V0 + "/images/{image_id}",
        json={"username": "{username}"},
        status=202,
    ),
    Row(
        says="tag",
        method="POST",
        path=V0 + "/images/{image_id}/tag",
        json={"tags": ["{plugin}", "{version}"]},
        status=202,
    ),
)

NGT = {
    "name": "ngt-{run}",
    "plugin_name": "{plugin}",
    "engine_version": "{version}",
    "node_processes": ["datanode", "nodemanager"],
    "flavor_id": "{flavor_id}",
}

NGTS_AT = V0 + "/node-group-templates"

CTS_AT = V0 + "/cluster-templates"

MAKE_NGT = Row(
    says="a node group template to build on",
    method="POST",
    path=NGTS_AT,
    json=NGT,
    status=202,
    save={"ngt": ("node_group_template", "id")},
)

MASTER = {
    "name": "master",
    "count": 1,
    "flavor_id": "{flavor_id}",
    "node_processes": ["namenode", "resourcemanager"],
}

WORKERS = {"name": "workers", "count": 2, "node_group_template_id": "{ngt}"}

CT = {
    "name": "ct-{run}",
    "plugin_name": "{plugin}",
    "engine_version": "{version}",
    "node_groups": [MASTER, WORKERS],
    "cluster_configs": {"HDFS": {"dfs.replication": 2}},
}

GROUP = {
    "name": str,
    "count": int,
    "flavor_id": "{flavor_id}",
    "node_processes": Each(str),
    "node_configs": {},
    "volumes_per_node": 0,
    "volumes_size": 10,
    "volume_mount_prefix": "/volumes/disk",
}

GROUPS = [
    Only({**GROUP, "name": "master", "count": 1}),
    Only(
        {
            **GROUP,
            "name": "workers",
            "count": 2,
            "node_group_template_id": "{ngt}",
            "node_processes": ["datanode", "nodemanager"],
        }
    ),
]

CLUSTERS_AT = V0 + "/clusters"

CLUSTER = {
    "name": "c-{run}",
    "plugin_name": "{plugin}",
    "engine_version": "{version}",
    "default_image_id": "{image_id}",
    "user_keypair_id": "{keypair}",
    "cluster_template_id": "{ct}",
}

MAKE_CT = Row(
    says="a cluster template to build on",
    method="POST",
    path=CTS_AT,
    json=CT,
    status=202,
    save={"ct": ("cluster_template", "id")},
)

GONE = Row(
    says="the cluster goes away",
    path=CLUSTERS_AT + "/{c}",
    status=404,
    error="NOT_FOUND",
    until=True,
)

INLINE = {
    **{k: v for k, v in CLUSTER.items() if k != "cluster_template_id"},
    "node_groups": [MASTER, {**MASTER, "name": "w", "node_processes": ["datanode"]}],
}

SOURCES_AT = V1 + "/data-sources"

SOURCE = {
    "name": "in-{run}",
    "description": "words",
    "type": "objstore",
    "url": "objstore://box.svc/in",
    "credentials": {"user": "u", "password": "p"},
}

INTERNALS_AT = V1 + "/job-binary-internals"

INTERNAL_FIELDS = Only(
    {
        "id": ID,
        "name": "script-{run}.pig",
        "tenant_id": "{tenant}",
        "datasize": 11,
        "created_at": STAMP,
        "updated_at": None,
    }
)

UPLOAD = Row(
    says="PUT job-binary-internals/NAME: 202, raw data, datasize is its size",
    method="PUT",
    path=INTERNALS_AT + "/script-{run}.pig",
    data=b"A = load 1;",
    status=202,
    body=Only({"job_binary_internal": INTERNAL_FIELDS}),
    save={"jbi": ("job_binary_internal", "id")},
)

BINARIES_AT = V1 + "/job-binaries"

BINARY = {"name": "jb-{run}", "url": "internaldb://{jbi}", "description": "words", "extra": {}}

BINARY_FIELDS = {
    "id": ID,
    "name": "jb-{run}",
    "description": "words",
    "url": "internaldb://{jbi}",
    "extra": Only({}),
    "tenant_id": "{tenant}",
    "created_at": STAMP,
}

JOBS_AT = V1 + "/jobs"

JOB = {"name": "j-{run}", "description": "words", "type": "Pig", "mains": ["{jb}"], "libs": []}

MAKE_BINARY = Row(
    says="a job binary to build on",
    method="POST",
    path=BINARIES_AT,
    json=BINARY,
    status=202,
    save={"jb": ("job_binary", "id")},
)
