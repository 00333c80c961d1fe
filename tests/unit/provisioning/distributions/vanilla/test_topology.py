"""Rules of vanilla's clusters, with literal clusters and literal faults."""

from __future__ import annotations

from collections.abc import Sequence

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
SPARK = ("sparkhistory", "sparkconnect")


def workers(count: int) -> NodeGroup:
    return group("worker", count, "datanode", "nodemanager")


def made(*groups: NodeGroup, replication: int | str | None = None) -> Cluster:
    configs = {} if replication is None else {"HDFS": {"dfs.replication": replication}}
    return cluster(Vanilla(), *groups, cluster_configs=configs)


class FaultsTestCase(SynchronousTestCase):
    def assertFaults(
        self, faults: Sequence[SvcdError], kind: type[SvcdError], *beginnings: str
    ) -> None:
        """All faults are of one kind, and begin like this."""
        self.assertEqual([type(fault) for fault in faults], [kind] * len(beginnings))
        told = [fault.message for fault in faults]
        self.assertEqual(
            [t[: len(b)] for t, b in zip(told, beginnings, strict=True)], [*beginnings]
        )


class TestCreation(FaultsTestCase):
    def test_good_clusters_have_no_fault(self) -> None:
        """All on one machine, an empty HDFS, Spark on the master or on a machine of its own."""
        for groups in (
            (MASTER, workers(2)),
            (group("all", 1, *MASTER.node_processes, "datanode", "nodemanager"),),
            (group("a", 1, "namenode"),),
            (evolve(MASTER, node_processes=(*MASTER.node_processes, *SPARK)), workers(2)),
            (MASTER, group("spark", 1, *SPARK), workers(1)),
        ):
            self.assertEqual(topology.creation_faults(made(*groups)), ())

    def test_no_name_node_is_refused(self) -> None:
        self.assertFaults(
            topology.creation_faults(made(group("a", 2, "datanode"))),
            InvalidComponentCount,
            "the cluster needs exactly 1 namenode, it has 0: ",
        )

    def test_two_of_each_single_process_are_all_told(self) -> None:
        two = group("a", 2, "namenode", "secondarynamenode", *MASTER.node_processes[1:], *SPARK)
        single = ("resourcemanager", "historyserver", "secondarynamenode", "oozie", *SPARK)
        self.assertFaults(
            topology.creation_faults(made(two, workers(1))),
            InvalidComponentCount,
            "the cluster needs exactly 1 namenode, it has 2",
            *(f"the cluster takes at most 1 {process}, it has 2" for process in single),
        )

    def test_missing_processes_are_told_with_one_that_needs_them(self) -> None:
        """Each once, also when two processes miss it."""
        services = ("datanode", "nodemanager", "resourcemanager")
        for processes, also, needed in (
            ((), [workers(1)], [("nodemanager", "resourcemanager")]),
            (("oozie",), [], [("oozie", each) for each in (*services, "historyserver")]),
            (("oozie", "historyserver"), [workers(1)], [("nodemanager", "resourcemanager")]),
            (("sparkhistory",), [], [("sparkhistory", each) for each in services]),
            (("sparkconnect",), [], [("sparkconnect", each) for each in services]),
            (SPARK, [], [("sparkhistory", each) for each in services]),
        ):
            self.assertFaults(
                topology.creation_faults(made(group("m", 1, "namenode", *processes), *also)),
                MissingService,
                *(f"{one} needs {other}: add {other} to a node group" for one, other in needed),
            )

    def test_fewer_data_nodes_than_copies_are_refused(self) -> None:
        """An explicit dfs.replication is binding; text is taken for a number."""
        for value in (3, "3"):
            self.assertFaults(
                topology.creation_faults(made(MASTER, workers(2), replication=value)),
                InvalidComponentCount,
                "dfs.replication is 3, so the cluster needs at least 3 of datanode, it has 2",
            )
        self.assertEqual(topology.creation_faults(made(MASTER, workers(3), replication=3)), ())

    def test_no_copy_at_all_is_refused(self) -> None:
        self.assertFaults(
            topology.creation_faults(made(MASTER, workers(2), replication=0)),
            InvalidData,
            '$.cluster_configs.HDFS["dfs.replication"]: expected at least 1, got 0',
        )


class TestReplication(SynchronousTestCase):
    def test_default_is_three_or_as_many_as_there_are(self) -> None:
        """The caller's number wins, also above three."""
        copies = [topology.replication(made(MASTER, workers(n))) for n in (1, 2, 3, 4)]
        self.assertEqual(copies, [1, 2, 3, 3])
        self.assertEqual(topology.replication(made(MASTER, workers(5), replication=4)), 4)


class TestScaling(FaultsTestCase):
    def test_workers_grow_and_shrink(self) -> None:
        """Down to one data node when dfs.replication is not set."""
        for count in (1, 2, 3, 5):
            faults = topology.scaling_faults(made(MASTER, workers(3)), made(MASTER, workers(count)))
            self.assertEqual(faults, ())

    def test_group_with_another_process_is_refused(self) -> None:
        """Grown, shrunk or new, also beside a good change."""
        second, spark = group("second", 1, "secondarynamenode"), group("spark", 1, "sparkhistory")
        before = made(MASTER, workers(2), spark)
        for groups, told in (
            ((evolve(MASTER, count=2), workers(3), spark), "'master'"),
            ((MASTER, workers(3), second, spark), "'second'"),
            ((workers(2), spark), "'master'"),
            ((MASTER, workers(2), evolve(spark, count=2)), "'spark' cannot be scaled: it runs "
             "sparkhistory, and"),
        ):  # fmt: skip
            faults = topology.scaling_faults(before, made(*groups))
            self.assertFaults(faults, NodeGroupCannotBeScaled, f"node group {told}")

    def test_shrinking_below_the_copies_is_refused(self) -> None:
        """The decommissioning would never end. The last data node stays in any case."""
        least = "cluster 'c1' cannot be scaled: the count of datanode would be {}, and at least {}"
        self.assertFaults(
            topology.scaling_faults(
                made(MASTER, workers(3), replication=2), made(MASTER, workers(1), replication=2)
            ),
            ClusterCannotBeScaled,
            least.format(1, 2) + " must remain (dfs.replication is 2)",
        )
        self.assertFaults(
            topology.scaling_faults(made(MASTER, workers(1)), made(MASTER, workers(0))),
            ClusterCannotBeScaled,
            least.format(0, 1) + " must remain (the data must stay)",
            "cluster 'c1' cannot be scaled: no nodemanager would be left, and oozie needs one",
        )

    def test_last_node_manager_stays_for_spark(self) -> None:
        """Its processes run programs there, too."""
        storage, worker = group("storage", 1, "datanode"), group("worker", 1, "nodemanager")
        master = group("master", 1, "namenode", "resourcemanager", "sparkconnect")
        self.assertFaults(
            topology.scaling_faults(
                made(master, storage, worker), made(master, storage, evolve(worker, count=0))
            ),
            ClusterCannotBeScaled,
            "cluster 'c1' cannot be scaled: no nodemanager would be left, and sparkconnect needs",
        )

    def test_node_managers_are_not_added_without_resource_manager(self) -> None:
        """There is nobody to register with."""
        before = made(group("m", 1, "namenode"), group("d", 1, "datanode"))
        after = made(*before.node_groups, group("n", 1, "nodemanager"))
        self.assertFaults(
            topology.scaling_faults(before, after),
            ClusterCannotBeScaled,
            "cluster 'c1' cannot be scaled: nodemanager needs resourcemanager",
        )
