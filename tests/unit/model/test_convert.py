"""Configuration files to cluster template requests."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import InvalidReference, MalformedBody, SvcdError, ValidationError
from svcd.model.convert import NOTE, convert
from svcd.model.requests import NewClusterTemplate, NewNodeGroup

PROCESSES = {
    "namenode": "HDFS",
    "secondarynamenode": "HDFS",
    "datanode": "HDFS",
    "oozie": "JobFlow",
}
CONFIGS = {
    ("HDFS", "dfs.replication"): "int",
    ("HDFS", "dfs.permissions"): "bool",
    ("HDFS", "fs.defaultFS"): "string",
    ("JobFlow", "oozie.x"): "string",
}
BLUEPRINT: dict[str, Any] = {
    "Blueprints": {"blueprint_name": "my_bp", "stack_name": "HDP"},
    "configurations": [
        {"hdfs-site": {"properties": {"dfs.replication": "2", "dfs.permissions": "false"}}},
        {"core-site": {"fs.defaultFS": "hdfs://%HOSTGROUP::m%:8020"}},
        {"hadoop-env": {"properties": {"whatever": "1"}}},
    ],
    "host_groups": [
        {
            "name": "master_1",
            "cardinality": "1",
            "components": [
                {"name": "NAMENODE"},
                {"name": "SECONDARY_NAMENODE"},
                {"name": "OOZIE_SERVER"},
                {"name": "HDFS_CLIENT"},
            ],
        },
        {
            "name": "w",
            "cardinality": "3+",
            "flavor_id": "9",
            "components": [{"name": "DATANODE"}],
            "configurations": [{"oozie-site": {"oozie.x": "y"}}],
        },
        {"name": "gw", "components": [{"name": "HDFS_CLIENT"}]},
    ],
}


class ConvertTests(SynchronousTestCase):
    def convert(self, content: Any, **more: Any) -> NewClusterTemplate:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        return convert(
            data,
            plugin_name="vanilla",
            engine_version="3.5.0",
            processes=PROCESSES,
            configs=CONFIGS,
            **more,
        )

    def fault(self, content: Any, kind: type[SvcdError], **more: Any) -> str:
        return self.assertRaises(kind, self.convert, content, **more).message

    def test_a_blueprint(self) -> None:
        """Components, cardinality, typed options; clients and addresses are left out."""
        self.assertEqual(
            self.convert(BLUEPRINT, flavor_id="2"),
            NewClusterTemplate(
                name="my-bp",
                description=NOTE,
                plugin_name="vanilla",
                engine_version="3.5.0",
                node_groups=(
                    NewNodeGroup(
                        name="master-1",
                        count=1,
                        flavor_id="2",
                        node_processes=("namenode", "secondarynamenode", "oozie"),
                        node_configs={},
                    ),
                    NewNodeGroup(
                        name="w",
                        count=3,
                        flavor_id="9",
                        node_processes=("datanode",),
                        node_configs={"JobFlow": {"oozie.x": "y"}},
                    ),
                ),
                cluster_configs={"HDFS": {"dfs.replication": 2, "dfs.permissions": False}},
            ),
        )

    def test_a_blueprint_tells_all_faults(self) -> None:
        """Components, options, cardinality, flavor."""
        tree = {
            "host_groups": [
                {
                    "name": "a",
                    "cardinality": "few",
                    "components": [{"name": "DATANODE"}, {"name": "ZOOKEEPER_SERVER"}],
                }
            ],
            "configurations": [{"hdfs-site": {"nope": 1}}],
        }
        self.assertEqual(
            self.fault(tree, InvalidReference).split("\n"),
            [
                "$.host_groups[0].components: the plugin has no process for 'ZOOKEEPER_SERVER'",
                "$.host_groups[0].flavor_id: missing; a blueprint has no flavor, give the query "
                "parameter flavor_id",
                "$.host_groups[0].cardinality: expected a number, N+ or N-M",
                "$.configurations: hdfs-site option 'nope' is unknown",
            ],
        )

    def test_the_path_decides(self) -> None:
        """It names the template over the name in the file; another plugin is refused."""
        self.assertEqual(self.convert(BLUEPRINT, flavor_id="2", template_name="mine").name, "mine")
        self.assertEqual(
            self.fault({"name": "b", "plugin_name": "other", "node_groups": []}, InvalidReference),
            "$.plugin_name: the path says 'vanilla', the file another value",
        )

    def test_rubbish_is_refused(self) -> None:
        """Neither JSON nor YAML, no object, no known keys, aliases, tags, bytes."""
        for content in (b"\xff\xfe", b"a: [", b"a: &x 1\nb: *x\n", b"!!python/object:os.system {}"):
            self.fault(content, MalformedBody)
        for content in (b"", b"just text", b"[1]", b"{}", b"1: 2\n"):
            self.fault(content, ValidationError)
        self.fault(b"a: " + b"x" * 70_000, MalformedBody)

    def test_yaml_is_bounded(self) -> None:
        """Bytes, values and depth, each at its bound and one over; JSON has other bounds."""
        for content, right in (
            (b"a: " + b"x" * (32_768 - 3), True),
            (b"a: " + b"x" * (32_768 - 2), False),
            (b"a: [" + b"1," * 9_997 + b"]", True),  # with the mapping, its key and the list
            (b"a: [" + b"1," * 9_998 + b"]", False),
            (b"a: " + b"[" * 49 + b"]" * 49, True),
            (b"a: " + b"[" * 50 + b"]" * 50, False),
            (b"[" * 32_768, False),
        ):
            self.fault(content, ValidationError if right else MalformedBody)
