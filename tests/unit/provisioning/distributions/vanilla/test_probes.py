"""Answers of daemons, as real ones have sent them, and the part that is still missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla import probes

YARN = Path(__file__).parents[4] / "fixtures" / "yarn"
OURS = "6d9bbbb8-8bd5-4f5c-b3dc-3b2c5a4b5d31"
"""The id of the cluster."""


def name_node(safemode: str = "", **states: str) -> bytes:
    """NameNodeInfo with a node `a_b_c_d` for each state."""
    addresses = {name.replace("_", ".")[1:]: state for name, state in states.items()}
    nodes = {
        f"{address}:9866": {
            "infoAddr": f"{address}:9864",
            "xferaddr": f"{address}:9866",
            "adminState": state,
            "numBlocks": 7,
        }
        for address, state in addresses.items()
    }
    bean = {"Safemode": safemode, "LiveNodes": json.dumps(nodes), "DeadNodes": "{}"}
    return json.dumps({"beans": [bean]}).encode()


def node(host: str, state: str, cluster: str = OURS, **more: str) -> dict[str, Any]:
    """A row of a node manager, as Hadoop 3.5 writes it. cluster: "" shows none."""
    shown = {"prefix": "nm.yarn.io", "name": "svcd-cluster", "type": "STRING", "value": cluster}
    attributes = {"nodeAttributeInfo": [shown]} if cluster else {}
    return {"id": f"{host}:8041", "state": state, "nodeAttributesInfo": attributes, **more}


def manager(*rows: dict[str, Any]) -> bytes:
    """The list of a resource manager."""
    return json.dumps({"nodes": {"node": rows} if rows else None}).encode()


class TestIdentity(SynchronousTestCase):
    def test_a_daemon_without_the_option_is_a_stranger_and_one_that_begins_is_waited_for(
        self,
    ) -> None:
        """The 404 of a daemon without the option names it; the one of a daemon that begins not."""
        shows, told = probes.Shows("HDFS", "svcd.cluster"), "HDFS answers with status {}"
        for status, body, text in (
            (200, b"", ""),
            (404, b"Property svcd.cluster not found", ""),
            (404, b"Not Found", told.format(404)),
            (503, b"svcd.cluster", told.format(503)),
        ):
            self.assertEqual(shows(status, body), text)


class TestNameNode(SynchronousTestCase):
    def test_one_data_node_suffices_for_the_first_file(self) -> None:
        """It must be in service and one of the cluster's."""
        missing = probes.AnyDataNode(("10.0.0.3", "10.0.0.4"))
        self.assertEqual(missing(200, name_node(_10_0_0_3="In Service")), "")
        text = "no data node is in service yet: 10.0.0.3, 10.0.0.4"
        self.assertEqual(missing(200, name_node(_10_0_0_3="Decommissioned")), text)
        self.assertEqual(missing(200, name_node(_10_0_0_5="In Service")), text)

    def test_an_empty_answer_is_something_to_wait_for(self) -> None:
        """The HTTP server of a daemon answers before the daemon is there."""
        told = "the name node does not list its nodes"
        for probe, text in (
            (probes.AnyDataNode(("10.0.0.3",)), "no data node is in service yet: 10.0.0.3"),
            (probes.SafeModeOff(), "the name node has not read its files yet"),
            (probes.Decommissioned(("10.0.0.3",)), told),
            (probes.DataNodeServes("10.0.0.3"), told),
        ):
            self.assertEqual(probe(200, b'{"beans": []}'), text)
            self.assertEqual(probe(503, b""), "the name node answers with status 503")

    def test_safe_mode_is_told_in_the_name_nodes_words(self) -> None:
        missing = probes.SafeModeOff()
        self.assertEqual(missing(200, name_node("Safe mode is ON.")), "Safe mode is ON.")
        self.assertEqual(missing(200, name_node()), "")

    def test_a_data_node_serves_when_it_is_listed_in_service(self) -> None:
        """Whatever the others are; the name node lists the dead elsewhere."""
        missing = probes.DataNodeServes("10.0.0.3")
        for body, text in (
            (name_node(_10_0_0_3="In Service", _10_0_0_4="Decommissioned"), ""),
            (name_node(_10_0_0_4="In Service"),
             "the name node gets no heartbeat of this data node"),
            (name_node(_10_0_0_3="Decommissioned"),
             "the name node shows this data node as 'Decommissioned'"),
        ):  # fmt: skip
            self.assertEqual(missing(200, body), text)

    def test_a_leaving_data_node_gives_up_its_blocks_first(self) -> None:
        """One that is not listed any more has nothing left to give."""
        missing = probes.Decommissioned(("10.0.0.3", "10.0.0.4"))
        self.assertEqual(
            missing(200, name_node(_10_0_0_3="Decommission In Progress")),
            "data nodes still giving up their blocks: "
            "10.0.0.3 (Decommission In Progress, 7 blocks)",
        )
        self.assertEqual(missing(200, name_node(_10_0_0_3="Decommissioned")), "")


class TestResourceManager(SynchronousTestCase):
    def test_a_node_manager_serves_when_it_runs_for_the_cluster(self) -> None:
        """A former life of it may be listed as lost beside."""
        missing = probes.NodeManagerServes("10.0.0.3", "c1-worker-001", OURS)
        shown = "the resource manager shows this node manager as"
        silent = "the resource manager gets no heartbeat of this node manager"
        for rows, text in (
            ([node("10.0.0.3", "RUNNING")], ""),
            ([node("10.0.0.3", "RUNNING"), node("10.0.0.3", "LOST", "")], ""),
            ([node("10.0.0.3", "RUNNING", "other")],
             "the node manager at 10.0.0.3 belongs to cluster other"),
            ([node("10.0.0.3", "RUNNING", "")],
             "the node manager at 10.0.0.3 belongs to no cluster of svcd"),
            ([node("10.0.0.3", "UNHEALTHY", healthReport="1/1 local-dirs\nbad")],
             f"{shown} UNHEALTHY: 1/1 local-dirs bad"),
            ([node("10.0.0.3", "LOST")], f"{shown} LOST"),
            ([node("10.0.0.4", "RUNNING")], silent),
            ([], silent),
        ):  # fmt: skip
            self.assertEqual(missing(200, manager(*rows)), text)

    def test_a_list_that_is_none_is_something_to_wait_for(self) -> None:
        for probe in (
            probes.NodeManagerServes("10.0.0.3", "c1-worker-001", OURS),
            probes.OwnNodes(OURS),
            probes.NodesGone({"10.0.0.3": "c1-worker-001"}),
        ):
            told = "the resource manager does not list its nodes"
            self.assertEqual(probe(200, b"<html>"), told)
            self.assertEqual(probe(503, b""), "the resource manager answers with status 503")

    def test_a_node_manager_of_another_cluster_is_named(self) -> None:
        """It stays with the address of its resource manager, which this cluster has now."""
        missing = probes.OwnNodes(OURS)
        ours = (node("10.0.0.3", "RUNNING"), node("10.0.0.4", "LOST", "other"))
        self.assertEqual(missing(200, manager()), "")
        self.assertEqual(missing(200, manager(*ours)), "")
        others = (node("10.0.0.7", "RUNNING", "other"), node("10.0.0.8", "RUNNING", ""))
        self.assertEqual(
            missing(200, manager(*ours, *others)),
            "node managers that are not of this cluster: 10.0.0.7 (cluster other), "
            "10.0.0.8 (no cluster of svcd)",
        )

    def test_a_node_manager_is_known_by_its_name_too(self) -> None:
        """On servers it gives the name in the hosts file, with the domain if that has one."""
        serves = probes.NodeManagerServes("10.0.0.3", "c1-worker-001", OURS)
        gone = probes.NodesGone({"10.0.0.3": "c1-worker-001"})
        for host in ("c1-worker-001", "C1-Worker-001.example.org"):
            body = manager(node(host, "RUNNING"))
            self.assertEqual(serves(200, body), "")
            self.assertEqual(gone(200, body), "node managers still at work: 10.0.0.3")
        self.assertEqual(gone(200, manager(node("c1-worker-0011", "RUNNING"))), "")

    def test_a_leaving_node_manager_may_finish_its_work(self) -> None:
        """DECOMMISSIONING is waited for; DECOMMISSIONED and unknown ones are gone."""
        gone = probes.NodesGone({"10.0.0.3": "c1-worker-001"})
        self.assertTrue(gone(200, manager(node("10.0.0.3", "DECOMMISSIONING"))))
        self.assertEqual(gone(200, manager(node("10.0.0.3", "DECOMMISSIONED"))), "")
        self.assertEqual(gone(200, manager()), "")


class TestIdle(SynchronousTestCase):
    """Answers of real daemons: one without work, and one while a job of MapReduce ran."""

    def test_only_an_idle_spark_connect_is_no_use(self) -> None:
        """It is known by its tag: any other application is a use, also one of the same name."""
        connect = (YARN / "apps-spark-connect.json").read_bytes()
        foreign = (YARN / "apps-running.json").read_bytes()
        id_, tag = "application_1795843947741_0002", "svcd-spark-connect-f6df0190"
        tag += "-f586-4540-82b4-587dc451cb49"
        works = connect.replace(b'"runningContainers": 0', b'"runningContainers": 1')
        waits = connect.replace(b'"RUNNING"', b'"ACCEPTED"')
        for known, body, text in (
            (tag, connect, ""),
            (tag, b'{"apps":{}}', ""),
            (tag, b'{"apps":null}', ""),
            (tag[:-1], connect, f"{id_} is RUNNING in YARN"),
            (tag, works, f"{id_} is RUNNING in YARN"),
            (tag, waits, f"{id_} is ACCEPTED in YARN"),
            (tag, foreign, "application_1795305754044_0002 is RUNNING in YARN"),
        ):
            self.assertEqual(probes.NoApplications(known)(200, body), text)

    def test_what_is_not_known_is_not_idle(self) -> None:
        """Answers that are cut, malformed, or of another program."""
        told = "the resource manager does not list its applications: status {}"
        connect = (YARN / "apps-spark-connect.json").read_bytes()
        for status, body in (
            (200, connect[:-5]), (200, b"{}"), (200, b'{"apps": ""}'), (200, b'{"apps": []}'),
            (200, b'{"apps": {"app": {}}}'), (200, b'{"apps": {"app": [1]}}'), (404, connect),
        ):  # fmt: skip
            self.assertEqual(probes.NoApplications("t")(status, body), told.format(status))

    def test_counters_are_the_mark(self) -> None:
        """A daemon that does not show them cannot be asked."""
        for file, read, mark in (
            ("metrics-running", probes.submissions, "2"),
            ("name-node-activity", probes.blocks_used, "2 2"),
        ):
            body = (YARN / f"{file}.json").read_bytes()
            self.assertEqual((read(body), probes.Counts(read)(200, body)), (mark, ""))
            for status, other in ((500, body), (200, body[:-9]), (200, b'{"beans": [{}]}')):
                self.assertEqual(
                    probes.Counts(read)(status, other), f"no counters: status {status}"
                )
        body = (YARN / "apps-spark-connect.json").read_bytes()
        self.assertEqual(probes.memory_used(body), "5056")
        self.assertEqual(probes.memory_used(body[:-5]), "")


class TestOozie(SynchronousTestCase):
    def test_only_normal_is_ready(self) -> None:
        """In safe mode it takes no jobs."""
        missing = probes.OozieNormal()
        self.assertEqual(missing(200, b'{"systemMode": "NORMAL"}'), "")
        self.assertEqual(
            missing(200, b'{"systemMode": "SAFEMODE"}'), "Oozie is not ready: SAFEMODE"
        )

    def test_the_share_library_is_known_after_an_update(self) -> None:
        """The update answers with the folder that it has found."""
        update = {"host": "http://10.0.0.2:11000/oozie", "sharelibDirOld": None,
                  "sharelibDirNew": "hdfs://10.0.0.2:8020/user/u/share/lib/lib_20200101000000",
                  "status": "Successful"}  # fmt: skip
        body = json.dumps({"sharelibUpdate": update}).encode()
        self.assertEqual(probes.ShareLibraryKnown()(200, body), "")
        self.assertTrue(probes.ShareLibraryKnown()(500, body))
