"""The names of steps: statuses of the cluster, deeds, and answers that svcd waits for."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.cluster_steps import PHASES, step_title
from svcd.model.cluster import ClusterStatus


class TitleTests(SynchronousTestCase):
    def test_phases_are_the_statuses_of_a_cluster(self) -> None:
        self.assertEqual(PHASES, frozenset(ClusterStatus))

    def test_answers_become_waits(self) -> None:
        named = ("Oozie", "the node manager to join", "a data node", "an answer", "Oozie to start")
        self.assertEqual([step_title(each) for each in named], [f"wait for {n}" for n in named])

    def test_statuses_and_deeds_stay(self) -> None:
        named = ("Starting", "start oozie", "wait for server", "associate address", "health")
        self.assertEqual([step_title(each) for each in named], list(named))
