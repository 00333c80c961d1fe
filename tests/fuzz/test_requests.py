"""Whatever a caller sends is accepted or refused by a leaf of svcd's errors."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import SvcdError
from svcd.model import requests
from svcd.model.convert import convert
from svcd.model.ids import DataSourceId, ExecutionId, TenantId, Timestamp
from svcd.model.job import Credentials, DataSource, JobConfigs, JobType
from svcd.model.requests import Limits
from svcd.model.shapes import Shape
from svcd.workflow.decide import document, job_types
from tests.fuzz.anything import TREES, few, spoiled
from tests.unit.resources.bodies import LEAST

CLASSES = tuple(LEAST)
BLUEPRINT: dict[str, Any] = {
    "Blueprints": {"blueprint_name": "multi_node", "stack_name": "HDP", "stack_version": "2.4"},
    "configurations": [{"hdfs-site": {"properties": {"dfs.replication": "2"}}}],
    "host_groups": [
        {
            "name": "master",
            "cardinality": "1",
            "components": [{"name": "NAMENODE"}, {"name": "RESOURCEMANAGER"}],
            "configurations": [{"core-site": {"fs.trash.interval": "4320"}}],
        },
        {"name": "slaves", "cardinality": "1+", "components": [{"name": "DATANODE"}]},
    ],
}


class ShapeTests(SynchronousTestCase):
    @few(300)
    @given(
        cls=st.sampled_from(CLASSES),
        body=st.binary(max_size=60)
        | TREES.map(lambda tree: json.dumps(tree).encode("utf-8", "surrogatepass")),
    )
    def test_any_bytes_and_any_json_are_decoded_or_400(self, cls: type, body: bytes) -> None:
        try:
            self.assertIsInstance(Shape(cls).decode(body, Limits()), cls)
        except SvcdError as error:
            self.assertEqual(error.status, 400)
            self.assertNotEqual(error.message, "")


class ConvertTests(SynchronousTestCase):
    """Ambari blueprints and bundles of ours."""

    def convert(self, content: bytes) -> requests.NewClusterTemplate | None:
        """None: refused."""
        try:
            return convert(
                content,
                plugin_name="vanilla",
                engine_version="3.5.0",
                processes={"namenode": "HDFS", "datanode": "HDFS", "resourcemanager": "YARN"},
                configs={("HDFS", "dfs.replication"): "int", ("HDFS", "fs.trash.interval"): "int"},
                template_name="t",
                flavor_id="2",
            )
        except SvcdError as error:
            self.assertEqual(error.status, 400)
            return None

    @few(300)
    @given(
        spoiled(BLUEPRINT)
        | spoiled({"name": "t", "node_groups": [{"name": "a", "count": 1, "flavor_id": "2"}]})
    )
    def test_nearly_good_files_are_converted_or_400(self, tree: Any) -> None:
        """The blueprint itself is converted: these spoil a good one."""
        made = self.convert(json.dumps(BLUEPRINT).encode())
        assert made is not None
        self.assertEqual([g.name for g in made.node_groups], ["master", "slaves"])
        self.convert(json.dumps(tree).encode())

    @few(200)
    @given(st.text(max_size=60))
    def test_any_text_is_converted_or_400(self, text: str) -> None:
        """YAML takes nearly everything."""
        self.convert(text.encode("utf-8", "surrogatepass"))


_VALUES = st.text(max_size=12) | st.booleans() | st.integers(-(10**9), 10**9)
_MAPS = st.dictionaries(st.text(min_size=1, max_size=10), _VALUES, max_size=4)


def _source(id_: str, url: str, secret: str) -> DataSource:
    return DataSource(
        id=DataSourceId(id_),
        tenant_id=TenantId("t"),
        name=id_,
        type="objstore",
        url=url,
        credentials=Credentials(user="u", password=secret),
        created_at=Timestamp("2026-01-01 00:00:00.000000"),
    )


class DocumentTests(SynchronousTestCase):
    """Workflow definitions are rendered and read again."""

    @few(200)
    @given(
        kind=st.sampled_from(sorted(job_types.TYPES)),
        configs=_MAPS,
        params=_MAPS,
        args=st.lists(st.text(max_size=12), max_size=3) | _MAPS,
        names=st.lists(st.text(min_size=1, max_size=10), min_size=1, max_size=3),
        secret=st.text(min_size=1, max_size=12),
    )
    def test_what_is_read_again_is_what_was_given(
        self,
        kind: JobType,
        configs: Any,
        params: Any,
        args: Any,
        names: list[str],
        secret: str,
    ) -> None:
        """Well-formed, with every configuration; or refused with a reason."""
        told = {job_types.MAIN_CLASS: "a.B", **configs}
        work = document.Work(
            execution_id=ExecutionId("e"),
            type=kind,
            project="p",
            mains=tuple(names),
            libs=tuple(names),
            input=_source("in", "objstore://c.svc/in", secret),
            output=_source("out", "objstore://c.svc/out", secret),
            configs=JobConfigs(
                configs=told, params=params, args=tuple(args) if isinstance(args, list) else args
            ),
            object_store=document.ObjectStoreAccess(auth_url="http://k/v3"),
        )
        try:
            text = document.workflow(work)
        except document.DocumentError as error:
            for line in str(error).split("\n"):
                self.assertRegex(line, r"\A\$(\.[a-z_]+.*)?: ")
            return
        root = ElementTree.fromstring(text)
        space = "{" + document.SCHEMA + "}"
        (action,) = root.findall(f"{space}action")
        found = {
            (each[0].text or ""): (each[1].text or "")
            for each in action.iter()
            if each.tag.endswith("property")
        }
        for name, value in configs.items():
            if name.startswith(("edp.", "oozie.")):
                continue
            expected = str(value).lower() if isinstance(value, bool) else str(value)
            self.assertEqual(found[name], expected)
