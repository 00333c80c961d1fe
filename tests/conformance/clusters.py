"""Clusters."""

from __future__ import annotations

from tests.conformance.bodies import (
    BUILD,
    CLUSTER,
    CLUSTERS_AT,
    COMMANDS,
    CTS_AT,
    GONE,
    GROUPS,
    INLINE,
    JSON,
    MAKE_CT,
    MAKE_NGT,
    MASTER,
    NGTS_AT,
    READY,
    V0,
    V1,
    WORKERS,
    refused,
    unknown,
)
from tests.conformance.rows import ID, STAMP, STAMP_T, Each, Either, Has, Holds, Only, Row

INSTANCE = Only(
    {"instance_name": str, "instance_id": ID, "volumes": list},
    {"internal_ip": str, "management_ip": str, "server_id": str, "status": str},
)


def running(group: Only, count: int) -> Only:
    return Only(
        {
            **group.keys,
            "created": STAMP_T,
            "updated": STAMP_T,
            "instances": [INSTANCE] * count,
        }
    )


CLUSTER_ADDED = {
    "status_description": str,
    "is_transient": False,
    "neutron_management_network": str,
    "created_at": STAMP,
    "updated_at": Either((None, STAMP)),
}

WORK = Only(
    {
        "since": STAMP,
        "until": Either((None, STAMP)),
        "machines_done": int,
        "waits": list,
        "waits_in_all": int,
        "servers": Each(Only({"machine": str, "status": str})),
        "servers_in_all": int,
    }
)
FAILURE = Only(
    {
        "code": str,
        "text": str,
        "machine": str,
        "by_health_check": bool,
        "meaning": str,
        "advice": str,
    }
)
STEPS = Only(
    {
        "generation": int,
        "outcome": str,
        "began": STAMP,
        "ended": Either((None, STAMP)),
        "phases": list,
        "steps": list,
        "longest_path": Each(int),
        "machines": list,
        "faults": list,
    }
)
CHANGE = Only({"generation": int, "at": STAMP, "request": str, "outcome": str, "code": str})

CLUSTER_FIELDS = {
    "id": ID,
    "name": "c-{run}",
    "description": str,
    "status": str,
    "info": dict,
    "plugin_name": "{plugin}",
    "engine_version": "{version}",
    "cluster_template_id": "{ct}",
    "default_image_id": "{image_id}",
    "user_keypair_id": "{keypair}",
    "cluster_configs": {"HDFS": {"dfs.replication": 2}},
    "anti_affinity": [],
    "node_groups": [running(GROUPS[0], 1), running(GROUPS[1], 2)],
}

ACTIVE = Row(
    says="the cluster becomes Active",
    path=CLUSTERS_AT + "/{c}",
    body={"cluster": {"status": "Active"}},
    needs=BUILD,
    until=True,
)

CLUSTERS = (
    *READY,
    MAKE_NGT,
    MAKE_CT,
    Row(
        says="POST clusters: 202, Waiting, instances listed per node group",
        method="POST",
        path=CLUSTERS_AT,
        json=CLUSTER,
        status=202,
        headers=JSON,
        body={
            "cluster": {
                **{k: v for k, v in CLUSTER_FIELDS.items() if k != "cluster_configs"},
                "status": "Waiting",
                "info": Only({}),
            }
        },
        save={"c": ("cluster", "id")},
    ),
    Row(
        says="a cluster has these fields",
        path=CLUSTERS_AT + "/{c}",
        body=Only({"cluster": Only({**CLUSTER_FIELDS, "id": "{c}"}, CLUSTER_ADDED)}),
        needs=COMMANDS,
    ),
    Row(
        says="instance names are <cluster>-<group>-NNN",
        path=CLUSTERS_AT + "/{c}",
        body={
            "cluster": {
                "node_groups": [
                    {"instances": [{"instance_name": "c-{run}-master-001"}]},
                    {
                        "instances": [
                            {"instance_name": "c-{run}-workers-001"},
                            {"instance_name": "c-{run}-workers-002"},
                        ]
                    },
                ]
            }
        },
    ),
    Row(
        says="GET clusters: 200",
        path=V1 + "/clusters",
        body=Only({"clusters": Has({"id": "{c}", "name": "c-{run}"})}),
    ),
    refused("a cluster name is unique", CLUSTER, CLUSTERS_AT, "CLUSTER_NAME_ALREADY_EXISTS"),
    refused(
        "a cluster name is unique without regard to case",
        {**CLUSTER, "name": "C-{run}"},
        CLUSTERS_AT,
        "CLUSTER_NAME_ALREADY_EXISTS",
        needs=COMMANDS,
    ),
    *(
        refused(
            f"{name} of a cluster is required",
            {k: v for k, v in CLUSTER.items() if k != name},
            CLUSTERS_AT,
            message=Holds((f"$.{name}: missing",)),
        )
        for name in ("name", "plugin_name", "engine_version")
    ),
    refused(
        "a cluster needs a template or groups",
        {k: v for k, v in CLUSTER.items() if k != "cluster_template_id"},
        CLUSTERS_AT,
        message=Holds(("cluster_template_id", "node_groups")),
    ),
    refused(
        "a cluster without groups", {**INLINE, "name": "n-{run}", "node_groups": []}, CLUSTERS_AT
    ),
    refused("a cluster with an unknown field", {**CLUSTER, "name": "x-{run}", "x": 1}, CLUSTERS_AT),
    refused(
        "a cluster of an unknown image",
        {**CLUSTER, "name": "i-{run}", "default_image_id": "x"},
        CLUSTERS_AT,
        "INVALID_REFERENCE",
        needs=COMMANDS,
    ),
    refused(
        "a cluster with an unknown key pair",
        {**CLUSTER, "name": "k-{run}", "user_keypair_id": "x"},
        CLUSTERS_AT,
        "INVALID_REFERENCE",
        needs=COMMANDS,
    ),
    refused(
        "a cluster of an unknown template",
        {**CLUSTER, "name": "t-{run}", "cluster_template_id": "x"},
        CLUSTERS_AT,
        "INVALID_REFERENCE",
        needs=COMMANDS,
    ),
    refused(
        "a cluster without a process that it needs",
        {**INLINE, "name": "m-{run}", "node_groups": [{**MASTER, "node_processes": ["datanode"]}]},
        CLUSTERS_AT,
        "INVALID_COMPONENT_COUNT",
        needs=COMMANDS,
    ),
    Row(
        says="a cluster template in use cannot be deleted",
        method="DELETE",
        path=CTS_AT + "/{ct}",
        status=400,
        error="INVALID_REFERENCE",
    ),
    Row(
        says="an image in use cannot be unregistered",
        method="DELETE",
        path=V0 + "/images/{image_id}",
        status=400,
        error="INVALID_REFERENCE",
    ),
    ACTIVE,
    Row(
        says="once built, addresses and links are known",
        path=CLUSTERS_AT + "/{c}",
        body={
            "cluster": {
                "info": {"HDFS": dict},
                "node_groups": Each(
                    {"instances": Each({"internal_ip": str, "management_ip": str})}
                ),
            }
        },
        needs=BUILD,
    ),
    Row(
        says="PUT clusters: 202, Validating, node groups resized",
        method="PUT",
        path=CLUSTERS_AT + "/{c}",
        json={"resize_node_groups": [{"name": "workers", "count": 3}]},
        status=202,
        body={
            "cluster": {
                "id": "{c}",
                "status": "Validating",
                "node_groups": [{"name": "master"}, {"name": "workers", "count": 3}],
            }
        },
        needs=BUILD,
    ),
    ACTIVE,
    Row(
        says="a lifetime alone changes no status (additive)",
        method="PUT",
        path=V1 + "/clusters/{c}",
        json={"max_age_s": 86_400, "keep_until": "2100-01-01T00:00Z"},
        status=202,
        body={
            "cluster": {
                "status": "Active",
                "max_age_s": 86_400,
                "keep_until": "2100-01-01 00:00:00.000000",
                "delete_at": "2100-01-01 00:00:00.000000",
            }
        },
        needs=BUILD,
    ),
    Row(
        says="v1.0 takes no lifetime",
        method="PUT",
        path=CLUSTERS_AT + "/{c}",
        json={"max_age_s": 0},
        status=400,
        error="VALIDATION_ERROR",
    ),
    Row(
        says="add_node_groups adds a group",
        method="PUT",
        path=CLUSTERS_AT + "/{c}",
        json={"add_node_groups": [{"name": "more", "count": 1, "node_group_template_id": "{ngt}"}]},
        status=202,
        body={
            "cluster": {
                "status": "Validating",
                "node_groups": [
                    {"name": "master"},
                    {"name": "workers", "count": 3},
                    {"name": "more", "count": 1, "instances": [INSTANCE]},
                ],
            }
        },
        needs=BUILD,
    ),
    ACTIVE,
    *(
        Row(
            says=f"a wrong scale request: {json}",
            method="PUT",
            path=CLUSTERS_AT + "/{c}",
            json=json,
            status=400,
            error="VALIDATION_ERROR",
        )
        for json in (
            {"resize_node_groups": [{"name": "workers", "count": -1}]},
            {"resize_node_groups": [{"name": "workers"}]},
            {"resize_node_groups": [{"name": "workers", "count": "3"}]},
            {"x": []},
            {"add_node_groups": [{"name": "m", "count": 1}]},
        )
    ),
    Row(
        says="a new group whose name differs from an old one only in case",
        method="PUT",
        path=CLUSTERS_AT + "/{c}",
        json={"add_node_groups": [{**WORKERS, "name": "Workers"}]},
        status=400,
        error="INVALID_REFERENCE",
        needs=BUILD,
    ),
    Row(
        says="a master cannot be scaled, and nothing else is said",
        method="PUT",
        path=CLUSTERS_AT + "/{c}",
        json={"resize_node_groups": [{"name": "master", "count": 2}]},
        status=400,
        error="NODE_GROUP_CANNOT_BE_SCALED",
        message=Holds(("node group 'master' cannot be scaled",)),
        needs=BUILD,
    ),
    Row(
        says="the resize of an unknown node group",
        method="PUT",
        path=CLUSTERS_AT + "/{c}",
        json={"resize_node_groups": [{"name": "nope", "count": 1}]},
        status=400,
        error="INVALID_REFERENCE",
        needs=BUILD,
    ),
    unknown(
        "PUT of an unknown cluster is 404 before the body",
        "PUT",
        CLUSTERS_AT + "/nope",
        json={"x": 1},
    ),
    unknown("GET of an unknown cluster", "GET", CLUSTERS_AT + "/nope"),
    unknown("DELETE of an unknown cluster", "DELETE", CLUSTERS_AT + "/nope"),
    Row(
        says="events tell the cluster's story (additive, v1.1)",
        path=V1 + "/clusters/{c}/events",
        body=Only({"events": list}),
    ),
    Row(
        says="events since a number, waited for (additive, v1.1)",
        path=V1 + "/clusters/{c}/events?since=1000000&wait=1",
        body=Only({"events": []}),
    ),
    *(
        Row(
            says=f"events with a wrong number: {query}",
            path=V1 + "/clusters/{c}/events?" + query,
            status=400,
            error="VALIDATION_ERROR",
        )
        for query in ("wait=61", "wait=x", "since=-1")
    ),
    unknown("events are not under v1.0", "GET", CLUSTERS_AT + "/{c}/events"),
    Row(
        says="the story tells the present work, the failure and the changes (additive, v1.1)",
        path=V1 + "/clusters/{c}/story",
        body=Only(
            {
                "story": Only(
                    {
                        "status": str,
                        "work": Either((None, WORK)),
                        "failure": Either((None, FAILURE)),
                        "ailing": str,
                        "changes": Each(CHANGE),
                        "change": None,
                    }
                )
            }
        ),
    ),
    Row(
        says="the story tells the steps of a change, here of the newest one",
        path=V1 + "/clusters/{c}/story?change=0",
        body={"story": {"change": STEPS}},
    ),
    Row(
        says="a story with a wrong number of a change",
        path=V1 + "/clusters/{c}/story?change=-1",
        status=400,
        error="VALIDATION_ERROR",
    ),
    unknown("the story is not under v1.0", "GET", CLUSTERS_AT + "/{c}/story"),
    unknown("the story of an unknown cluster", "GET", V1 + "/clusters/nope/story"),
    Row(
        says="machines show their logins and pinned host keys (additive, v1.1)",
        path=V1 + "/clusters/{c}/machines",
        body=Only({"machines": list}),
    ),
    unknown("machines are not under v1.0", "GET", CLUSTERS_AT + "/{c}/machines"),
    Row(
        says="DELETE clusters/ID: 204 at once",
        method="DELETE",
        path=CLUSTERS_AT + "/{c}",
        status=204,
        raw=b"",
    ),
    GONE,
    Row(says="clean up", method="DELETE", path=CTS_AT + "/{ct}", status=204),
    Row(says="clean up", method="DELETE", path=NGTS_AT + "/{ngt}", status=204),
    Row(says="clean up", method="DELETE", path=V0 + "/images/{image_id}", status=204),
)
