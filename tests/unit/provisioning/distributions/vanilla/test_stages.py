"""Orders of start, leaving and checks, as their descriptions tell them."""

from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.describe import describe
from svcd.provisioning.distributions.kit import cluster, group, identities, machines
from svcd.provisioning.distributions.spi import (
    Action,
    Command,
    Plan,
    WriteFile,
)
from svcd.provisioning.distributions.vanilla import Vanilla, probes

MADE = cluster(
    Vanilla(),
    group("master", 1, "namenode", "resourcemanager", "historyserver", "oozie"),
    group("worker", 3, "datanode", "nodemanager"),
)
MACHINES = machines(MADE)
IDS = [m.instance_id for m in MACHINES]


def outline(plan: Plan) -> list[list[list[str]]]:
    """Stages of chains of `machine what`."""

    def told(action: Action) -> str:
        name = next(m.instance_id for m in MACHINES if m.instance_id == action.machine)
        what = action.path if isinstance(action, WriteFile) else action.what
        return f"{name} {what}"

    return [[[told(a) for a in chain] for chain in stage.chains] for stage in plan]


class TestAdvice(SynchronousTestCase):
    def test_it_names_the_system_user_of_the_daemons(self) -> None:
        """And the folders of this user; on machines that are folders, those of the login user."""
        own = [evolve(m, runs_as="svcd", home="/home/svcd") for m in MACHINES]
        (stage,) = Vanilla().check(MADE, own)
        self.assertIn("home; `sh svcd/bin/daemon", Vanilla().check(MADE, MACHINES)[0].advice)
        self.assertEqual(
            stage.advice,
            "logs are in /home/svcd/svcd/logs; `sudo -u svcd sh /home/svcd/svcd/bin/daemon start "
            "NAME` on the machine named above starts a daemon that is down",
        )


class TestStart(SynchronousTestCase):
    def test_a_new_cluster_starts_side_by_side(self) -> None:
        """One stage; only what needs the other is in one chain."""
        ports, chains = outline(Vanilla().start(MADE, MACHINES, IDS))
        self.assertEqual(len(ports), 4)
        self.assertEqual(
            chains[:4],
            [
                [
                    "master-1 start namenode",
                    "master-1 the name node",
                    "master-1 HDFS to take changes",
                    "master-1 make the folders of HDFS",
                ],
                [
                    "master-1 HDFS",
                    "master-1 HDFS for the history server",
                    "master-1 start historyserver",
                    "master-1 the history server",
                ],
                [
                    "master-1 start oozie",
                    "master-1 HDFS",
                    "master-1 a data node for the share library",
                    "master-1 upload Oozie's share library",
                    "master-1 Oozie",
                    "master-1 Oozie to accept jobs",
                    "master-1 Oozie to read its share library",
                ],
                ["master-1 start resourcemanager", "master-1 the resource manager"],
            ],
        )
        self.assertEqual(
            chains[4:6],
            [
                ["worker-1 start datanode", "worker-1 the data node to join"],
                ["worker-1 start nodemanager", "worker-1 the node manager to join"],
            ],
        )
        self.assertEqual(len(chains), 4 + 2 * 3)

    def test_spark_connect_waits_for_yarn_and_a_data_node(self) -> None:
        """It is an application of YARN that has files in HDFS, and it ends without them."""
        made = cluster(Vanilla(), *MADE.node_groups, group("spark", 1, "sparkconnect"))
        all_ = machines(made)
        _, stage = Vanilla().start(made, all_, [m.instance_id for m in all_])
        chain = stage.chains[-1]
        self.assertEqual(
            [(a.machine, a.what) for a in chain if not isinstance(a, WriteFile)],
            [
                ("master-1", "YARN for Spark Connect"),
                ("spark-1", "HDFS"),
                ("spark-1", "a data node for Spark Connect"),
                ("spark-1", "start sparkconnect"),
                ("spark-1", "sparkconnect to listen"),
            ],
        )
        last = chain[-1]
        assert isinstance(last, Command)
        self.assertEqual(
            last.script,
            "sh '/home/user one/svcd/bin/daemon' await sparkconnect 15002 330",
        )
        self.assertEqual(last.timeout_s, 300.0)
        self.assertEqual(last.log, "/home/user one/svcd/logs/sparkconnect.log")

    def test_history_server_of_spark_waits_for_its_folder(self) -> None:
        """That of MapReduce makes its own."""
        spark = group("spark", 1, "sparkhistory")
        made = cluster(Vanilla(), *MADE.node_groups, spark)
        all_ = machines(made)
        _, stage = Vanilla().start(made, all_, [m.instance_id for m in all_])
        self.assertEqual(
            [(a.machine, a.what) for a in stage.chains[0] if not isinstance(a, WriteFile)],
            [
                ("master-1", "start namenode"),
                ("master-1", "the name node"),
                ("master-1", "HDFS to take changes"),
                ("master-1", "make the folders of HDFS"),
                ("spark-1", "start sparkhistory"),
                ("spark-1", "sparkhistory to listen"),
            ],
        )
        folders, listens = stage.chains[0][3], stage.chains[0][-1]
        assert isinstance(folders, Command) and isinstance(listens, Command)
        self.assertTrue(folders.script.endswith(" mkdir /spark-history 1777 -"), folders.script)
        self.assertEqual(listens.log, "/home/user one/svcd/logs/sparkhistory.log")
        script = "sh '/home/user one/svcd/bin/daemon' await sparkhistory 18080 630"
        self.assertEqual(listens.script, script)

    def test_more_workers_are_admitted_first(self) -> None:
        """Their addresses may be those of nodes that left."""
        ports, admitted, started = outline(Vanilla().start(MADE, MACHINES, IDS[-1:]))
        self.assertEqual(
            ports,
            [
                ["worker-3 check that the ports are free"],
                ["master-1 the name node"],
                ["master-1 the resource manager"],
            ],
        )
        self.assertEqual(
            admitted,
            [
                ["master-1 admit the new nodes to HDFS"],
                [
                    "master-1 /home/user one/svcd/conf/include.yarn",
                    "master-1 admit the new nodes to YARN",
                ],
            ],
        )
        self.assertEqual(
            started,
            [
                ["worker-3 start datanode", "worker-3 the data node to join"],
                ["worker-3 start nodemanager", "worker-3 the node manager to join"],
            ],
        )

    def test_nothing_to_start_is_an_empty_plan(self) -> None:
        """No stage without chains."""
        self.assertEqual(Vanilla().start(MADE, MACHINES, []), ())


class TestDecommission(SynchronousTestCase):
    def test_leaving_nodes_are_listed_and_waited_for(self) -> None:
        """HDFS and YARN side by side; exactly the leaving ones are in the lists."""
        (stage,) = Vanilla().decommission(MADE, MACHINES, IDS[2:])
        self.assertEqual(
            outline((stage,))[0],
            [
                [
                    "master-1 the name node",
                    "master-1 /home/user one/svcd/conf/exclude.hdfs",
                    "master-1 make HDFS read the list of leaving nodes",
                    "master-1 2 data nodes to be decommissioned",
                ],
                [
                    "master-1 the resource manager",
                    "master-1 /home/user one/svcd/conf/exclude.yarn",
                    "master-1 make YARN read the list of leaving nodes",
                    "master-1 2 node managers to finish",
                ],
            ],
        )
        for chain in stage.chains:
            _, listed, refresh, _ = chain
            assert isinstance(listed, WriteFile) and isinstance(refresh, Command)
            self.assertEqual(listed.content, b"10.0.0.4\n10.0.0.5\n")
        yarn = stage.chains[1][2]
        assert isinstance(yarn, Command)
        self.assertTrue(yarn.script.endswith("yarn rmadmin -refreshNodes -g 900 -server"))

    def test_a_cluster_that_goes_as_a_whole_needs_nothing(self) -> None:
        """There is nowhere to move data to."""
        self.assertEqual(Vanilla().decommission(MADE, MACHINES, IDS), ())


class TestCheck(SynchronousTestCase):
    def test_each_node_is_looked_at_by_its_address(self) -> None:
        """Totals would count nodes that left."""
        (stage,) = Vanilla().check(MADE, MACHINES)
        looked = [chain[0].missing for chain in stage.chains]  # type: ignore[union-attr]
        self.assertIn(probes.DataNodeServes("10.0.0.5"), looked)
        own = probes.NodeManagerServes("10.0.0.5", "c1-worker-003", MADE.id)
        self.assertIn(own, looked)
        self.assertIn(probes.OwnNodes(MADE.id), looked)
        self.assertEqual(len(looked), 4 + 1 + 3 + 3 + 1 + 1)

    def test_the_daemons_of_the_masters_show_their_cluster(self) -> None:
        """A page of Hadoop shows the option of its configuration, Oozie shows its environment."""
        (stage,) = Vanilla().check(MADE, MACHINES)
        found = [(p.what, p.url, p.identity) for p in identities((stage,))]
        conf = "conf?name=svcd.cluster"
        self.assertEqual(
            found,
            [
                ("namenode", f"http://203.0.113.2:9870/{conf}", MADE.id),
                ("resourcemanager", f"http://203.0.113.2:8088/{conf}", MADE.id),
                ("historyserver", f"http://203.0.113.2:19888/{conf}", MADE.id),
                ("oozie", "http://203.0.113.2:11000/oozie/v1/admin/os-env", MADE.id),
            ],
        )

    def test_servers_of_spark_are_asked_by_their_ports(self) -> None:
        """A command on the machine looks whether they listen, by the names of `daemon start`."""
        for process, port in (("sparkhistory", 18080), ("sparkconnect", 15002)):
            made = cluster(Vanilla(), *MADE.node_groups, group("spark", 1, process))
            (stage,) = Vanilla().check(made, machines(made))
            (command,) = stage.chains[-1]
            assert isinstance(command, Command)
            self.assertEqual((command.machine, command.what), ("spark-1", process))
            script = f"sh '/home/user one/svcd/bin/daemon' listens {process} {port}"
            self.assertEqual(command.script, script)


class TestDescribe(SynchronousTestCase):
    def test_a_plan_can_be_read_before_it_runs(self) -> None:
        """Names of machines, what, within which time, and what to do if it fails."""
        told = describe(Vanilla().start(MADE, MACHINES, IDS[-1:]), MACHINES)
        self.assertTrue(told.startswith("1. check the ports (within 60 s)\n"))
        self.assertIn(
            "   - c1-worker-003: start datanode (within 60 s): "
            "sh '/home/user one/svcd/bin/daemon' start datanode\n"
            "     c1-worker-003: wait for the data node to join: "
            "http://203.0.113.2:9870/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo\n",
            told,
        )
        self.assertIn("   if it fails: logs are in", told)
