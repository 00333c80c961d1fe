"""Answers of daemons, as they were sent by real ones, and what is still missing."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla import probes


def name_node(safemode: str = "", **states: str) -> bytes:
    """NameNodeInfo with a node `a_b_c_d` for each state."""
    nodes = {
        f"{address.replace('_', '.')[1:]}:9866": {
            "infoAddr": f"{address.replace('_', '.')[1:]}:9864",
            "xferaddr": f"{address.replace('_', '.')[1:]}:9866",
            "adminState": state,
            "numBlocks": 7,
        }
        for address, state in states.items()
    }
    bean = {"Safemode": safemode, "LiveNodes": json.dumps(nodes), "DeadNodes": "{}"}
    return json.dumps({"beans": [bean]}).encode()


OURS = "6d9bbbb8-8bd5-4f5c-b3dc-3b2c5a4b5d31"
"""The id of the cluster."""


def attribute(cluster_id: str) -> dict[str, object]:
    """The part of a row that shows the cluster of a node manager, as Hadoop 3.5 writes it."""
    shown = {"prefix": "nm.yarn.io", "name": "svcd-cluster", "type": "STRING", "value": cluster_id}
    return {"nodeAttributesInfo": {"nodeAttributeInfo": [shown]}}


def manager(**states: str) -> bytes:
    rows = [
        {"id": f"{address.replace('_', '.')[1:]}:8041", "state": state, **attribute(OURS)}
        for address, state in states.items()
    ]
    return json.dumps({"nodes": {"node": rows} if rows else None}).encode()


class TestNameNode(SynchronousTestCase):
    def test_one_data_node_suffices_for_the_first_file(self) -> None:
        """It must be in service and one of the cluster's."""
        missing = probes.AnyDataNode(("10.0.0.3", "10.0.0.4"))
        self.assertEqual(missing(200, name_node(_10_0_0_3="In Service")), "")
        text = "no data node is in service yet: 10.0.0.3, 10.0.0.4"
        self.assertEqual(missing(200, name_node(_10_0_0_3="Decommissioned")), text)
        self.assertEqual(missing(200, name_node(_10_0_0_5="In Service")), text)

    def test_an_empty_answer_is_something_to_wait_for(self) -> None:
        """The name node's HTTP server answers before the name node is there."""
        body = b'{"beans": []}'
        self.assertTrue(probes.AnyDataNode(("10.0.0.3",))(200, body))
        self.assertTrue(probes.SafeModeOff()(200, body))
        self.assertTrue(probes.Decommissioned(("10.0.0.3",))(200, body))

    def test_safe_mode_is_told_in_the_name_nodes_words(self) -> None:
        """Empty means off."""
        self.assertEqual(
            probes.SafeModeOff()(200, name_node("Safe mode is ON.")), "Safe mode is ON."
        )
        self.assertEqual(probes.SafeModeOff()(200, name_node()), "")

    def test_a_leaving_data_node_gives_up_its_blocks_first(self) -> None:
        """One that is not listed any more has nothing left to give."""
        missing = probes.Decommissioned(("10.0.0.3", "10.0.0.4"))
        self.assertEqual(
            missing(200, name_node(_10_0_0_3="Decommission In Progress")),
            "data nodes still giving up their blocks: "
            "10.0.0.3 (Decommission In Progress, 7 blocks)",
        )
        self.assertEqual(missing(200, name_node(_10_0_0_3="Decommissioned")), "")


class TestDataNode(SynchronousTestCase):
    missing = probes.DataNodeServes("10.0.0.3")

    def test_one_in_service_lacks_nothing(self) -> None:
        """Whatever the others are."""
        body = name_node(_10_0_0_3="In Service", _10_0_0_4="Decommissioned")
        self.assertEqual(self.missing(200, body), "")

    def test_one_that_is_not_among_the_living_is_told(self) -> None:
        """The name node lists the dead elsewhere."""
        body = name_node(_10_0_0_4="In Service")
        self.assertEqual(
            self.missing(200, body), "the name node gets no heartbeat of this data node"
        )
        body = name_node(_10_0_0_3="Decommissioned")
        self.assertEqual(
            self.missing(200, body), "the name node shows this data node as 'Decommissioned'"
        )

    def test_an_answer_without_the_list_is_told_as_that(self) -> None:
        """The name node is starting."""
        self.assertEqual(
            self.missing(200, b'{"beans": []}'), "the name node does not list its nodes"
        )
        self.assertEqual(self.missing(503, b""), "the name node answers with status 503")


class TestNodeManager(SynchronousTestCase):
    missing = probes.NodeManagerServes("10.0.0.3", "c1-worker-001", OURS)

    def test_one_that_runs_lacks_nothing(self) -> None:
        """A former life of it may be listed as lost beside."""
        rows = [
            {"id": "10.0.0.3:8041", "state": "RUNNING", **attribute(OURS)},
            {"id": "10.0.0.3:8050", "state": "LOST"},
        ]
        body = json.dumps({"nodes": {"node": rows}}).encode()
        self.assertEqual(self.missing(200, body), "")
        self.assertEqual(self.missing(200, manager(_10_0_0_3="RUNNING")), "")

    def test_one_of_another_cluster_at_the_address_is_a_stranger(self) -> None:
        """It has registered with the cluster's resource manager, before the cluster's own one."""
        row = {"id": "10.0.0.3:8041", "state": "RUNNING"}
        body = json.dumps({"nodes": {"node": [{**row, **attribute("other")}]}}).encode()
        text = "the node manager at 10.0.0.3 belongs to cluster other"
        self.assertEqual(self.missing(200, body), text)
        body = json.dumps({"nodes": {"node": [row]}}).encode()
        text = "the node manager at 10.0.0.3 belongs to no cluster of svcd"
        self.assertEqual(self.missing(200, body), text)

    def test_one_that_is_unwell_is_told_in_its_own_words(self) -> None:
        """With what it reports of itself."""
        row = {"id": "10.0.0.3:8041", "state": "UNHEALTHY", "healthReport": "1/1 local-dirs\nbad"}
        body = json.dumps({"nodes": {"node": [row]}}).encode()
        self.assertEqual(
            self.missing(200, body),
            "the resource manager shows this node manager as UNHEALTHY: 1/1 local-dirs bad",
        )
        self.assertEqual(
            self.missing(200, manager(_10_0_0_3="LOST")),
            "the resource manager shows this node manager as LOST",
        )

    def test_one_that_is_not_listed_is_told(self) -> None:
        """So is a list that is none."""
        told = "the resource manager gets no heartbeat of this node manager"
        self.assertEqual(self.missing(200, manager(_10_0_0_4="RUNNING")), told)
        self.assertEqual(self.missing(200, manager()), told)
        self.assertEqual(
            self.missing(200, b"<html>"), "the resource manager does not list its nodes"
        )
        self.assertEqual(self.missing(503, b""), "the resource manager answers with status 503")


class TestResourceManager(SynchronousTestCase):
    def test_a_node_manager_of_another_cluster_is_named(self) -> None:
        """It stays with the address of its resource manager, which this cluster has now."""
        missing = probes.OwnNodes(OURS)
        self.assertEqual(missing(200, manager()), "")
        self.assertEqual(missing(200, manager(_10_0_0_3="RUNNING", _10_0_0_4="LOST")), "")
        rows = [
            {"id": "10.0.0.3:8041", "state": "RUNNING", **attribute(OURS)},
            {"id": "10.0.0.7:8041", "state": "RUNNING", **attribute("other")},
            {"id": "10.0.0.8:8041", "state": "RUNNING", "nodeAttributesInfo": {}},
        ]
        self.assertEqual(
            missing(200, json.dumps({"nodes": {"node": rows}}).encode()),
            "node managers that are not of this cluster: 10.0.0.7 (cluster other), "
            "10.0.0.8 (no cluster of svcd)",
        )
        self.assertEqual(missing(503, b""), "the resource manager answers with status 503")

    def test_a_node_manager_is_known_by_its_name_too(self) -> None:
        """On servers it gives the name in the hosts file, with the domain if that has one."""
        machines = {"10.0.0.3": "c1-worker-001"}
        for host in ("c1-worker-001", "C1-Worker-001.example.org"):
            row = {"id": f"{host}:8041", "state": "RUNNING", **attribute(OURS)}
            body = json.dumps({"nodes": {"node": [row]}}).encode()
            serves = probes.NodeManagerServes("10.0.0.3", "c1-worker-001", OURS)
            self.assertEqual(serves(200, body), "")
            self.assertTrue(probes.NodesGone(machines)(200, body))
        other = b'{"nodes": {"node": [{"id": "c1-worker-0011:8041", "state": "RUNNING"}]}}'
        self.assertEqual(probes.NodesGone(machines)(200, other), "")

    def test_a_leaving_node_manager_may_finish_its_work(self) -> None:
        """DECOMMISSIONING is waited for, DECOMMISSIONED and unknown are gone."""
        missing = probes.NodesGone({"10.0.0.3": "c1-worker-001"})
        self.assertTrue(missing(200, manager(_10_0_0_3="DECOMMISSIONING")))
        self.assertEqual(missing(200, manager(_10_0_0_3="DECOMMISSIONED")), "")
        self.assertEqual(missing(200, manager()), "")
        self.assertTrue(missing(200, b"{}"))
        self.assertTrue(missing(503, b""))


class TestOozie(SynchronousTestCase):
    def test_only_normal_is_ready(self) -> None:
        """In safe mode it takes no jobs."""
        self.assertEqual(probes.OozieNormal()(200, b'{"systemMode": "NORMAL"}'), "")
        self.assertEqual(
            probes.OozieNormal()(200, b'{"systemMode": "SAFEMODE"}'),
            "Oozie is not ready: SAFEMODE",
        )

    def test_the_share_library_is_known_after_an_update(self) -> None:
        """The update answers with the folder it found."""
        body = json.dumps(
            {
                "sharelibUpdate": {
                    "host": "http://10.0.0.2:11000/oozie",
                    "sharelibDirNew": "hdfs://10.0.0.2:8020/user/u/share/lib/lib_20200101000000",
                    "sharelibDirOld": None,
                    "status": "Successful",
                }
            }
        ).encode()
        self.assertEqual(probes.ShareLibraryKnown()(200, body), "")
        self.assertTrue(probes.ShareLibraryKnown()(500, body))
