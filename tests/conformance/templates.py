"""Node group templates, cluster templates, and paging of lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.bodies import (
    COMMANDS,
    CT,
    CTS_AT,
    GROUPS,
    JSON,
    MAKE_NGT,
    MASTER,
    NGT,
    NGTS_AT,
    V1,
    refused,
    unknown,
)
from tests.conformance.rows import ID, Has, Holds, Only, Row

NGT_FIELDS = {
    "id": ID,
    "name": "ngt-{run}",
    "description": str,
    "plugin_name": "{plugin}",
    "engine_version": "{version}",
    "node_processes": ["datanode", "nodemanager"],
    "flavor_id": "{flavor_id}",
    "node_configs": {},
    "volumes_per_node": 0,
    "volumes_size": 10,
    "volume_mount_prefix": "/volumes/disk",
}

NODE_GROUP_TEMPLATES = (
    Row(
        says="POST node-group-templates: 202; 0, 10 and /volumes/disk when omitted",
        method="POST",
        path=NGTS_AT,
        json=NGT,
        status=202,
        headers=JSON,
        body=Only({"node_group_template": Only(NGT_FIELDS)}),
        save={"ngt": ("node_group_template", "id")},
    ),
    Row(
        says="GET node-group-templates: 200",
        path=NGTS_AT,
        body=Only({"node_group_templates": Has(Only({**NGT_FIELDS, "id": "{ngt}"}))}),
    ),
    Row(
        says="GET node-group-templates/ID: 200",
        path=NGTS_AT + "/{ngt}",
        body=Only({"node_group_template": Only({**NGT_FIELDS, "id": "{ngt}"})}),
    ),
    Row(
        says="optional fields are kept",
        method="POST",
        path=V1 + "/node-group-templates",
        json={
            **NGT,
            "name": "ngt2-{run}",
            "description": "words",
            "node_configs": {"HDFS": {"dfs.datanode.du.reserved": 10}},
            "volumes_per_node": 2,
            "volumes_size": 20,
            "volume_mount_prefix": "/mnt/data",
        },
        status=202,
        body={
            "node_group_template": {
                "description": "words",
                "node_configs": {"HDFS": {"dfs.datanode.du.reserved": 10}},
                "volumes_per_node": 2,
                "volumes_size": 20,
                "volume_mount_prefix": "/mnt/data",
            }
        },
        save={"ngt2": ("node_group_template", "id")},
    ),
    refused(
        "a node group template name is unique in the tenant",
        NGT,
        NGTS_AT,
        "NODE_GROUP_TEMPLATE_NAME_ALREADY_EXISTS",
    ),
    *(
        refused(
            f"{name} is required",
            {k: v for k, v in NGT.items() if k != name},
            NGTS_AT,
            message=Holds((f"$.{name}: missing",)),
        )
        for name in NGT
    ),
    *(
        refused(f"name {name!r}", {**NGT, "name": name}, NGTS_AT, message=Holds(("$.name:",)))
        for name in ("", "a" * 51, "a b", "a/b", "1a", "-a", "a-", "a_b", "é", "ab\n", "a\x00b")
    ),
    refused("an unknown field", {**NGT, "x": 1}, NGTS_AT, message=Holds(("$.x: unknown field",))),
    refused("id cannot be given", {**NGT, "id": "i"}, NGTS_AT),
    refused("no processes", {**NGT, "node_processes": []}, NGTS_AT),
    refused("processes as text", {**NGT, "node_processes": "datanode"}, NGTS_AT),
    refused("version as number", {**NGT, "engine_version": 3}, NGTS_AT),
    refused("flavor as number", {**NGT, "flavor_id": 3}, NGTS_AT),
    refused("configs as list", {**NGT, "node_configs": []}, NGTS_AT),
    refused("target as text", {**NGT, "node_configs": {"HDFS": "x"}}, NGTS_AT),
    refused("value as list", {**NGT, "node_configs": {"HDFS": {"a": []}}}, NGTS_AT),
    refused("value null", {**NGT, "node_configs": {"HDFS": {"a": None}}}, NGTS_AT),
    refused("volumes below 0", {**NGT, "volumes_per_node": -1}, NGTS_AT),
    refused("volumes as text", {**NGT, "volumes_per_node": "2"}, NGTS_AT),
    refused("volumes as bool", {**NGT, "volumes_per_node": True}, NGTS_AT),
    refused("size 0", {**NGT, "volumes_size": 0}, NGTS_AT),
    refused("prefix with a blank", {**NGT, "volume_mount_prefix": "/a b"}, NGTS_AT),
    refused("relative prefix", {**NGT, "volume_mount_prefix": "a"}, NGTS_AT),
    refused("description as number", {**NGT, "description": 1}, NGTS_AT),
    refused(
        "all faults at once, one a line",
        {"name": "", "x": 1, "volumes_size": 0},
        NGTS_AT,
        message=Holds(("$.name:", "$.x:", "$.volumes_size: expected int >= 1, got 0", "\n")),
    ),
    refused("wrapped in its key", {"node_group_template": NGT}, NGTS_AT),
    refused(
        "an unknown plugin",
        {**NGT, "plugin_name": "x"},
        NGTS_AT,
        "INVALID_REFERENCE",
        needs=COMMANDS,
    ),
    refused(
        "an unknown version",
        {**NGT, "engine_version": "x"},
        NGTS_AT,
        "INVALID_REFERENCE",
        needs=COMMANDS,
    ),
    refused(
        "an unknown flavor", {**NGT, "flavor_id": "x"}, NGTS_AT, "INVALID_REFERENCE", needs=COMMANDS
    ),
    refused(
        "an unknown process",
        {**NGT, "node_processes": ["x"]},
        NGTS_AT,
        "INVALID_REFERENCE",
        needs=COMMANDS,
    ),
    refused(
        "options of an unknown target",
        {**NGT, "node_configs": {"x": {"a": 1}}},
        NGTS_AT,
        "INVALID_REFERENCE",
        needs=COMMANDS,
    ),
    refused(
        "a first-boot script that is not stored",
        {**NGT, "init_scripts": ["nope"]},
        V1 + "/node-group-templates",
        "INVALID_REFERENCE",
        message=Holds(("$.init_scripts[0]: job binary internal 'nope' not found",)),
    ),
    refused(
        "first-boot scripts by v1.0",
        {**NGT, "init_scripts": ["nope"]},
        NGTS_AT,
        message=Holds(("$.init_scripts: unknown field of v1.0; send the request to v1.1",)),
    ),
    refused(
        "an unknown option",
        {**NGT, "node_configs": {"HDFS": {"x": 1}}},
        NGTS_AT,
        "INVALID_REFERENCE",
        needs=COMMANDS,
    ),
    refused(
        "a process twice in a group",
        {**NGT, "name": "twice-{run}", "node_processes": ["datanode", "datanode"]},
        NGTS_AT,
        "INVALID_DATA",
        needs=COMMANDS,
    ),
    unknown("GET of an unknown node group template", "GET", NGTS_AT + "/nope"),
    unknown("DELETE of an unknown node group template", "DELETE", NGTS_AT + "/nope"),
    Row(
        says="DELETE of a node group template: 204",
        method="DELETE",
        path=NGTS_AT + "/{ngt2}",
        status=204,
        raw=b"",
    ),
    unknown("a deleted node group template is gone", "GET", NGTS_AT + "/{ngt2}"),
    Row(says="clean up", method="DELETE", path=NGTS_AT + "/{ngt}", status=204),
)

CT_FIELDS = {
    "id": ID,
    "name": "ct-{run}",
    "description": str,
    "plugin_name": "{plugin}",
    "engine_version": "{version}",
    "cluster_configs": Only({"HDFS": Only({"dfs.replication": 2})}),
    "anti_affinity": [],
    "node_groups": GROUPS,
}


def with_group(group: Mapping[str, Any]) -> dict[str, Any]:
    return {**CT, "name": "bad-{run}", "node_groups": [group]}


CLUSTER_TEMPLATES = (
    MAKE_NGT,
    Row(
        says="POST cluster-templates: 202; values of the node group template are filled in",
        method="POST",
        path=CTS_AT,
        json=CT,
        status=202,
        headers=JSON,
        body=Only({"cluster_template": Only(CT_FIELDS)}),
        save={"ct": ("cluster_template", "id")},
    ),
    Row(
        says="GET cluster-templates: 200",
        path=CTS_AT,
        body=Only({"cluster_templates": Has(Only({**CT_FIELDS, "id": "{ct}"}))}),
    ),
    Row(
        says="GET cluster-templates/ID: 200",
        path=CTS_AT + "/{ct}",
        body=Only({"cluster_template": Only({**CT_FIELDS, "id": "{ct}"})}),
    ),
    refused(
        "a cluster template name is unique", CT, CTS_AT, "CLUSTER_TEMPLATE_NAME_ALREADY_EXISTS"
    ),
    *(
        refused(
            f"{name} is required",
            {k: v for k, v in CT.items() if k != name},
            CTS_AT,
            message=Holds((f"$.{name}: missing",)),
        )
        for name in ("name", "plugin_name", "engine_version", "node_groups")
    ),
    refused("groups as object", {**CT, "node_groups": {}}, CTS_AT),
    refused("groups as texts", {**CT, "node_groups": ["a"]}, CTS_AT),
    *(
        refused(
            f"count {count!r}",
            with_group({**MASTER, "count": count}),
            CTS_AT,
            message=Holds(("$.node_groups[0].count: expected int",)),
        )
        for count in (0, -1, "2", 1.5, True, 2**31, None)
    ),
    refused(
        "group without a name", with_group({k: v for k, v in MASTER.items() if k != "name"}), CTS_AT
    ),
    refused("group with an unknown field", with_group({**MASTER, "x": 1}), CTS_AT),
    refused(
        "neither template nor inline values",
        with_group({"name": "a", "count": 1}),
        CTS_AT,
        message=Holds(("$.node_groups[0]: missing", "node_group_template_id")),
    ),
    refused("anti_affinity as text", {**CT, "anti_affinity": "datanode"}, CTS_AT),
    refused(
        "a group of an unknown node group template",
        with_group({"name": "a", "count": 1, "node_group_template_id": "x"}),
        CTS_AT,
        "INVALID_REFERENCE",
    ),
    refused(
        "two groups of one name",
        {**CT, "name": "two-{run}", "node_groups": [MASTER, MASTER]},
        CTS_AT,
        "INVALID_DATA",
        needs=COMMANDS,
    ),
    refused(
        "unknown anti-affine process",
        {**CT, "name": "aa-{run}", "anti_affinity": ["x"]},
        CTS_AT,
        "INVALID_REFERENCE",
        needs=COMMANDS,
    ),
    refused(
        "unknown network",
        {**CT, "name": "net-{run}", "neutron_management_network": "x"},
        CTS_AT,
        "INVALID_REFERENCE",
        needs=COMMANDS,
    ),
    Row(
        says="a node group template in use cannot be deleted",
        method="DELETE",
        path=NGTS_AT + "/{ngt}",
        status=400,
        error="INVALID_REFERENCE",
    ),
    unknown("GET of an unknown cluster template", "GET", CTS_AT + "/nope"),
    unknown("DELETE of an unknown cluster template", "DELETE", CTS_AT + "/nope"),
    Row(
        says="DELETE of a cluster template: 204",
        method="DELETE",
        path=CTS_AT + "/{ct}",
        status=204,
        raw=b"",
    ),
    Row(says="clean up", method="DELETE", path=NGTS_AT + "/{ngt}", status=204),
)

PAGING = (
    *(
        Row(
            says="templates in order",
            wait_s=0.01,
            method="POST",
            path=NGTS_AT,
            json={**NGT, "name": f"p{n}-" + "{run}"},
            status=202,
            save={f"p{n}": ("node_group_template", "id")},
        )
        for n in (1, 2, 3)
    ),
    Row(
        says="marker of a page is exclusive, limit bounds it",
        path=V1 + "/node-group-templates?limit=1&marker={p1}",
        body={"node_group_templates": [{"id": "{p2}"}]},
    ),
    Row(
        says="a list filtered by a field",
        path=V1 + "/node-group-templates?name=p3-{run}",
        body={"node_group_templates": [{"id": "{p3}"}]},
    ),
    *(
        Row(says="clean up", method="DELETE", path=NGTS_AT + "/{p" + str(n) + "}", status=204)
        for n in (1, 2, 3)
    ),
)
