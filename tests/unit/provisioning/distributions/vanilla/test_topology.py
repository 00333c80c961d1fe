"""Rules of vanilla's clusters, with literal clusters and literal faults."""

from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import (
    ClusterCannotBeScaled,
    InvalidComponentCount,
    InvalidData,
    MissingService,
    NodeGroupCannotBeScaled,
    SvcdError,
)
from svcd.model.cluster import Cluster, NodeGroup
from svcd.provisioning.distributions.kit import cluster, group
from svcd.provisioning.distributions.vanilla import Vanilla, topology

MASTER = group("master", 1, "namenode", "resourcemanager", "historyserver", "oozie")


def workers(count: int) -> NodeGroup:
    return group("worker", count, "datanode", "nodemanager")


def made(*groups: NodeGroup, replication: int | str | None = None) -> Cluster:
    configs = {} if replication is None else {"HDFS": {"dfs.replication": replication}}
    return cluster(Vanilla(), *groups, cluster_configs=configs)


def kinds(faults: object) -> list[type[SvcdError]]:
    assert isinstance(faults, tuple)
    return [type(fault) for fault in faults]


class TestCreation(SynchronousTestCase):
    def test_a_master_and_workers_are_good(self) -> None:
        """The usual cluster has no fault."""
        self.assertEqual(topology.creation_faults(made(MASTER, workers(2))), ())

    def test_everything_on_one_machine_is_good(self) -> None:
        """One group may hold all processes."""
        one = group("all", 1, *MASTER.node_processes, "datanode", "nodemanager")
        self.assertEqual(topology.creation_faults(made(one)), ())

    def test_a_name_node_alone_is_good(self) -> None:
        """HDFS may be empty for now."""
        self.assertEqual(topology.creation_faults(made(group("a", 1, "namenode"))), ())

    def test_no_name_node_is_refused(self) -> None:
        """There is exactly one."""
        faults = topology.creation_faults(made(group("a", 2, "datanode")))
        self.assertEqual(kinds(faults), [InvalidComponentCount])
        self.assertIn("exactly 1 namenode, it has 0", faults[0].message)

    def test_two_of_each_single_process_are_all_told(self) -> None:
        """All faults come at once."""
        spark = ("sparkhistory", "sparkconnect")
        two = group("a", 2, "namenode", "secondarynamenode", *MASTER.node_processes[1:], *spark)
        faults = topology.creation_faults(made(two, workers(1)))
        self.assertEqual(kinds(faults), [InvalidComponentCount] * 7)
        self.assertEqual(
            [f.message.split(",")[0] for f in faults],
            [
                "the cluster needs exactly 1 namenode",
                "the cluster takes at most 1 resourcemanager",
                "the cluster takes at most 1 historyserver",
                "the cluster takes at most 1 secondarynamenode",
                "the cluster takes at most 1 oozie",
                "the cluster takes at most 1 sparkhistory",
                "the cluster takes at most 1 sparkconnect",
            ],
        )

    def test_a_node_manager_without_resource_manager_is_refused(self) -> None:
        """Nobody would give it work."""
        faults = topology.creation_faults(made(group("m", 1, "namenode"), workers(1)))
        self.assertEqual(kinds(faults), [MissingService])
        self.assertIn("nodemanager needs resourcemanager", faults[0].message)

    def test_oozie_alone_tells_all_that_it_needs(self) -> None:
        """Storage, work and history."""
        faults = topology.creation_faults(made(group("m", 1, "namenode", "oozie")))
        self.assertEqual(
            [f.message.split(":")[0] for f in faults],
            [
                "oozie needs datanode",
                "oozie needs nodemanager",
                "oozie needs resourcemanager",
                "oozie needs historyserver",
            ],
        )

    def test_processes_of_spark_tell_all_that_they_need(self) -> None:
        """Each alone: storage and work; both together say it once."""
        for processes, first in (
            (("sparkhistory",), "sparkhistory"),
            (("sparkconnect",), "sparkconnect"),
            (("sparkconnect", "sparkhistory"), "sparkhistory"),
        ):
            faults = topology.creation_faults(made(group("m", 1, "namenode", *processes)))
            self.assertEqual(kinds(faults), [MissingService] * 3)
            self.assertEqual(
                [f.message for f in faults],
                [
                    f"{first} needs datanode: add datanode to a node group",
                    f"{first} needs nodemanager: add nodemanager to a node group",
                    f"{first} needs resourcemanager: add resourcemanager to a node group",
                ],
            )

    def test_spark_beside_the_usual_processes_is_good(self) -> None:
        """On the master, or on a machine of its own."""
        spark = ("sparkhistory", "sparkconnect")
        for groups in (
            (evolve(MASTER, node_processes=(*MASTER.node_processes, *spark)), workers(2)),
            (MASTER, group("spark", 1, *spark), workers(1)),
        ):
            self.assertEqual(topology.creation_faults(made(*groups)), ())

    def test_a_lacking_resource_manager_is_told_once(self) -> None:
        """Oozie and the node manager miss the same."""
        faults = topology.creation_faults(
            made(group("m", 1, "namenode", "oozie", "historyserver"), workers(1))
        )
        self.assertEqual(kinds(faults), [MissingService])

    def test_fewer_data_nodes_than_copies_are_refused(self) -> None:
        """An explicit dfs.replication is binding; text is taken for a number."""
        for value in (3, "3"):
            faults = topology.creation_faults(made(MASTER, workers(2), replication=value))
            self.assertEqual(kinds(faults), [InvalidComponentCount])
            self.assertIn("needs at least 3 of datanode, it has 2", faults[0].message)

    def test_no_copy_at_all_is_refused(self) -> None:
        """dfs.replication begins at 1."""
        faults = topology.creation_faults(made(MASTER, workers(2), replication=0))
        self.assertEqual(kinds(faults), [InvalidData])


class TestReplication(SynchronousTestCase):
    def test_default_is_three_or_as_many_as_there_are(self) -> None:
        """One to three copies."""
        found = [topology.replication(made(MASTER, workers(n))) for n in (1, 2, 3, 4)]
        self.assertEqual(found, [1, 2, 3, 3])

    def test_the_callers_number_wins(self) -> None:
        """Also above three."""
        self.assertEqual(topology.replication(made(MASTER, workers(5), replication=4)), 4)


class TestScaling(SynchronousTestCase):
    def test_workers_grow_and_shrink(self) -> None:
        """Down to one data node when dfs.replication is not set."""
        for count in (1, 2, 5):
            faults = topology.scaling_faults(made(MASTER, workers(3)), made(MASTER, workers(count)))
            self.assertEqual(faults, ())

    def test_a_group_with_a_master_process_is_refused(self) -> None:
        """Grown, shrunk or new, also beside a good change."""
        second = group("second", 1, "secondarynamenode")
        before = made(MASTER, workers(2))
        for after in (
            made(evolve(MASTER, count=2), workers(3)),
            made(MASTER, workers(3), second),
            made(workers(2)),
        ):
            faults = topology.scaling_faults(before, after)
            self.assertEqual(kinds(faults), [NodeGroupCannotBeScaled])

    def test_an_unchanged_master_is_no_fault(self) -> None:
        """A resize to the size there is changes nothing."""
        before = made(MASTER, workers(2))
        self.assertEqual(topology.scaling_faults(before, before), ())

    def test_shrinking_below_the_copies_is_refused(self) -> None:
        """The decommissioning would never end."""
        faults = topology.scaling_faults(
            made(MASTER, workers(3), replication=2), made(MASTER, workers(1), replication=2)
        )
        self.assertEqual(kinds(faults), [ClusterCannotBeScaled])
        self.assertIn(
            "the count of datanode would be 1, and at least 2 must remain", faults[0].message
        )

    def test_the_last_data_node_stays(self) -> None:
        """And so does the last node manager where Oozie is."""
        faults = topology.scaling_faults(made(MASTER, workers(1)), made(MASTER, workers(0)))
        self.assertEqual(kinds(faults), [ClusterCannotBeScaled, ClusterCannotBeScaled])

    def test_last_node_manager_stays_for_spark(self) -> None:
        """Its processes run programs there, too."""
        storage = group("storage", 1, "datanode")
        worker = group("worker", 1, "nodemanager")
        master = group("master", 1, "namenode", "resourcemanager", "sparkconnect")
        faults = topology.scaling_faults(
            made(master, storage, worker), made(master, storage, evolve(worker, count=0))
        )
        self.assertEqual(
            [f.message for f in faults],
            ["cluster 'c1' cannot be scaled: no nodemanager would be left, and sparkconnect "
             "needs one"],
        )  # fmt: skip

    def test_groups_of_spark_keep_their_size(self) -> None:
        """One process of each kind serves the whole cluster."""
        spark = group("spark", 1, "sparkhistory")
        before = made(MASTER, workers(2), spark)
        faults = topology.scaling_faults(before, made(MASTER, workers(2), evolve(spark, count=2)))
        self.assertEqual(kinds(faults), [NodeGroupCannotBeScaled])
        self.assertIn("it runs sparkhistory", faults[0].message)

    def test_node_managers_are_not_added_without_resource_manager(self) -> None:
        """There is nobody to register with."""
        before = made(group("m", 1, "namenode"), group("d", 1, "datanode"))
        after = made(*before.node_groups, group("n", 1, "nodemanager"))
        self.assertEqual(kinds(topology.scaling_faults(before, after)), [ClusterCannotBeScaled])
