"""Orders of start, leaving and checks, as their descriptions tell them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import Cluster
from svcd.provisioning.distributions.describe import describe
from svcd.provisioning.distributions.kit import cluster, group, identities, machines
from svcd.provisioning.distributions.spi import (
    Action,
    Chain,
    Command,
    Machine,
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


def outline(plan: Plan) -> list[list[str]]:
    """The chains of each stage, as `machine: action, action; machine: action`."""

    def what(action: Action) -> str:
        return action.path.rpartition("/")[2] if isinstance(action, WriteFile) else action.what

    def told(chain: Chain) -> str:
        parts = groupby(chain, key=lambda action: action.machine)
        return "; ".join(f"{m}: " + ", ".join(map(what, actions)) for m, actions in parts)

    return [[told(chain) for chain in stage.chains] for stage in plan]


def with_spark(process: str) -> tuple[Cluster, Sequence[Machine]]:
    """The cluster with one more machine that runs the process, and all its machines."""
    made = cluster(Vanilla(), *MADE.node_groups, group("spark", 1, process))
    return made, machines(made)


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
        """One stage; only actions that need each other are in one chain."""
        ports, chains = outline(Vanilla().start(MADE, MACHINES, IDS))
        self.assertEqual(len(ports), 4)
        self.assertEqual(
            chains[:6],
            [
                "master-1: start namenode, the name node, HDFS to take changes, "
                "make the folders of HDFS",
                "master-1: HDFS, HDFS for the history server, start historyserver, "
                "the history server",
                "master-1: start oozie, HDFS, a data node for the share library, "
                "upload Oozie's share library, Oozie, Oozie to accept jobs, "
                "Oozie to read its share library",
                "master-1: start resourcemanager, the resource manager",
                "worker-1: start datanode, the data node to join",
                "worker-1: start nodemanager, the node manager to join",
            ],
        )
        self.assertEqual(len(chains), 4 + 2 * 3)

    def test_servers_of_spark_wait_for_what_they_need(self) -> None:
        """Spark Connect is an application of YARN with files in HDFS, and ends without them.

        The history server reads a folder that nobody else makes.
        """
        for process, number, chain, last_line in (
            (
                "sparkconnect", -1,
                "master-1: YARN for Spark Connect; spark-1: HDFS, a data node for Spark Connect, "
                "start sparkconnect, sparkconnect to listen",
                "await sparkconnect 15002 330",
            ),
            (
                "sparkhistory", 0,
                "master-1: start namenode, the name node, HDFS to take changes, make the folders "
                "of HDFS; spark-1: start sparkhistory, sparkhistory to listen",
                "await sparkhistory 18080 630",
            ),
        ):  # fmt: skip
            made, all_ = with_spark(process)
            plan = Vanilla().start(made, all_, [m.instance_id for m in all_])
            self.assertEqual(outline(plan)[1][number], chain)
            last = plan[1].chains[number][-1]
            assert isinstance(last, Command)
            self.assertEqual(last.script, f"sh '/home/user one/svcd/bin/daemon' {last_line}")
            self.assertEqual(last.log, f"/home/user one/svcd/logs/{process}.log")
        folders = plan[1].chains[0][3]
        assert isinstance(folders, Command)
        self.assertTrue(folders.script.endswith(" mkdir /spark-history 1777 -"), folders.script)

    def test_more_workers_are_admitted_first(self) -> None:
        """Their addresses may be those of nodes that left."""
        self.assertEqual(
            outline(Vanilla().start(MADE, MACHINES, IDS[-1:])),
            [
                [
                    "worker-3: check that the ports are free",
                    "master-1: the name node",
                    "master-1: the resource manager",
                ],
                [
                    "master-1: admit the new nodes to HDFS",
                    "master-1: include.yarn, admit the new nodes to YARN",
                ],
                [
                    "worker-3: start datanode, the data node to join",
                    "worker-3: start nodemanager, the node manager to join",
                ],
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
                "master-1: the name node, exclude.hdfs, make HDFS read the list of leaving nodes, "
                "2 data nodes to be decommissioned",
                "master-1: the resource manager, exclude.yarn, make YARN read the list of leaving "
                "nodes, 2 node managers to finish",
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
            (stage,) = Vanilla().check(*with_spark(process))
            (command,) = stage.chains[-1]
            assert isinstance(command, Command)
            self.assertEqual((command.machine, command.what), ("spark-1", process))
            script = f"sh '/home/user one/svcd/bin/daemon' listens {process} {port}"
            self.assertEqual(command.script, script)


class TestIdle(SynchronousTestCase):
    def test_yarn_hdfs_and_spark_connect_are_asked(self) -> None:
        """A cluster without YARN is in use when its HDFS is."""
        yarn = ["the resource manager", "the applications of YARN"]
        yarn += ["the counters of the resource manager"]
        hdfs = ["the name node", "the counters of the name node"]
        storage = cluster(Vanilla(), group("master", 1, "namenode"), group("worker", 1, "datanode"))
        for made, all_, asked in (
            (MADE, MACHINES, yarn + hdfs),
            (storage, machines(storage), hdfs),
            (*with_spark("sparkconnect"), [*yarn, *hdfs, "the clients of Spark Connect"]),
        ):
            self.assertEqual([p.what for p in Vanilla().idle_probes(made, all_)], asked)


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
