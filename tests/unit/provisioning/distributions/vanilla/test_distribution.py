"""What callers of the interface see of vanilla: descriptions, links, endpoints, ports, hints."""

from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.job import JobType
from svcd.ports.engine import LauncherLimits
from svcd.provisioning.distributions.kit import cluster, group, machines
from svcd.provisioning.distributions.spi import Endpoints, Scope, web_ports
from svcd.provisioning.distributions.vanilla import Vanilla
from tests.unit.provisioning.support import Scripted

MADE = cluster(
    Vanilla(),
    group("master", 1, "namenode", "resourcemanager", "historyserver", "oozie"),
    group("worker", 2, "datanode", "nodemanager"),
)


class TestDescription(SynchronousTestCase):
    def test_options_have_the_types_of_their_defaults(self) -> None:
        """One of each type, with scope and priority."""
        entries = {(e.applicable_target, e.name): e for e in Vanilla().configs("3.5.0")}
        copies = entries["HDFS", "dfs.replication"]
        self.assertEqual((copies.config_type, copies.default_value), ("int", 3))
        self.assertEqual((copies.scope, copies.priority), (Scope.CLUSTER, 1))
        rights = entries["HDFS", "dfs.permissions.enabled"]
        self.assertEqual((rights.config_type, rights.default_value), ("bool", True))
        heap = entries["HDFS", "NameNode Heap Size"]
        self.assertEqual((heap.config_type, heap.default_value, heap.priority), ("int", 0, 1))
        self.assertIs(heap.scope, Scope.NODE)
        spill = entries["MapReduce", "mapreduce.map.sort.spill.percent"]
        self.assertEqual((spill.config_type, spill.default_value), ("string", "0.80"))
        self.assertEqual(
            {target for target, _ in entries},
            {"HDFS", "YARN", "MapReduce", "JobFlow", "Spark", "general"},
        )

    def test_what_svcd_sets_itself_is_no_option(self) -> None:
        """Another value would break the cluster."""
        names = {e.name for e in Vanilla().configs("3.5.0")}
        for name in ("fs.defaultFS", "dfs.hosts.exclude", "yarn.nodemanager.address",
                     "dfs.namenode.name.dir", "oozie.base.url"):  # fmt: skip
            self.assertNotIn(name, names)

    def test_the_hints_of_jar_begin_with_those_of_the_interface(self) -> None:
        """Twelve names in their order, then MapReduce's own."""
        hints = [(hint.name, hint.value) for hint in Vanilla().hints("3.5.0", JobType.JAR)]
        names = ("mapred.input.dir", "mapred.output.dir", "mapred.mapoutput.key.class",
                 "mapred.mapoutput.value.class", "mapred.output.key.class",
                 "mapred.output.value.class", "mapreduce.map.class", "mapreduce.reduce.class",
                 "mapred.mapper.class", "mapred.reducer.class")  # fmt: skip
        new = [("mapred.reducer.new-api", "true"), ("mapred.mapper.new-api", "true")]
        self.assertEqual(hints[:12], [*new, *((name, "") for name in names)])
        self.assertIn("mapreduce.task.io.sort.mb", dict(hints[12:]))

    def test_ports_of_a_group_are_those_of_its_processes(self) -> None:
        """In ascending order. Distributions without web ports have only open ports."""
        self.assertEqual(list(web_ports(Scripted(), "1", ["datanode"])), [9870])
        self.assertEqual(
            Vanilla().web_ports("3.5.0", ["oozie", "namenode", "datanode"]), [9864, 9870, 11000]
        )


class TestLinks(SynchronousTestCase):
    def test_links_use_public_and_urls_of_hdfs_internal_addresses(self) -> None:
        """A browser follows the former, jobs use the latter."""
        self.assertEqual(
            Vanilla().links(MADE, machines(MADE)),
            {
                "HDFS": {"Web UI": "http://203.0.113.2:9870", "NameNode": "hdfs://10.0.0.2:8020"},
                "YARN": {"Web UI": "http://203.0.113.2:8088"},
                "MapReduce": {"Web UI": "http://203.0.113.2:19888"},
                "JobFlow": {
                    "Oozie": "http://203.0.113.2:11000",
                    "Web UI": "http://203.0.113.2:11000/oozie",
                },
            },
        )

    def test_servers_of_spark_have_links(self) -> None:
        """Stars stand for the token of Spark Connect. Its port is no page for networks of users."""
        for process, link, ports in (
            ("sparkhistory", {"Web UI": "http://203.0.113.5:18080"}, [18080]),
            ("sparkconnect", {"Connect": "sc://10.0.0.5:15002/;token=***"}, []),
        ):
            made = cluster(Vanilla(), *MADE.node_groups, group("spark", 1, process))
            self.assertEqual(Vanilla().links(made, machines(made))["Spark"], link)
            self.assertEqual(Vanilla().web_ports("3.5.0", [process]), ports)

    def test_endpoints_are_where_jobs_go(self) -> None:
        """As the login user, who owns the cluster's HDFS. The daemons show whose they are."""
        endpoints = Vanilla().endpoints(MADE, machines(MADE))
        assert endpoints is not None
        self.assertEqual(
            [identity.url for identity in endpoints.identities],
            [
                "http://203.0.113.2:9870/conf?name=svcd.cluster",
                "http://203.0.113.2:11000/oozie/v1/admin/os-env",
                "http://203.0.113.2:8088/conf?name=svcd.cluster",
                "http://203.0.113.2:19888/conf?name=svcd.cluster",
            ],
        )
        self.assertEqual(
            evolve(endpoints, identities=(), launcher_limits=LauncherLimits()),
            Endpoints(
                engine="http://203.0.113.2:11000/oozie",
                webhdfs="http://203.0.113.2:9870",
                name_node="hdfs://10.0.0.2:8020",
                resource_manager="10.0.0.2:8032",
                history="http://203.0.113.2:19888",
                user="user",
            ),
        )

    def test_a_cluster_without_oozie_has_no_endpoints(self) -> None:
        """It stores and computes, but nobody takes jobs."""
        made = cluster(Vanilla(), group("m", 1, "namenode", "datanode"))
        self.assertIsNone(Vanilla().endpoints(made, machines(made)))
