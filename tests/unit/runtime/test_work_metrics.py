"""The metrics of clusters, executions and calls to the cloud."""

from __future__ import annotations

import itertools

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import ClusterEvent
from svcd.model.job import Execution, ExecutionStatus, Failure
from svcd.runtime import work_metrics
from svcd.runtime.metrics import Metrics
from svcd.testing import FakeService
from tests.contract.store.rows import at, execution
from tests.support.promlint import problems


def event(step: str, outcome: str, **more: object) -> ClusterEvent:
    return ClusterEvent(at=at(1), generation=1, step=step, outcome=outcome, **more)  # type: ignore[arg-type]


class _Tests(SynchronousTestCase):
    def setUp(self) -> None:
        self.metrics = Metrics()
        self.work = self.metrics.work

    def lines(self, name: str) -> list[str]:
        """The values of the metrics that begin with `name`, without buckets and zeros."""
        return [
            line
            for line in self.metrics.exposition().decode().splitlines()
            if line.startswith(name) and "_bucket" not in line and not line.endswith(" 0.0")
        ]


class ClusterTests(_Tests):
    def test_a_failure_counts_once(self) -> None:
        """The failed step has an event of its own."""
        self.work.cluster_events(
            [
                event("prepare", "failed", code="COMMAND_FAILED", began=at(1), ended=at(2)),
                event("start", "failed", code="COMMAND_FAILED"),
                event("Starting", "failed", code="COMMAND_FAILED"),
            ]
        )
        self.assertEqual(
            self.lines("svcd_cluster_failures"),
            ['svcd_cluster_failures_total{code="COMMAND_FAILED"} 1.0'],
        )

    def test_scripts_are_one_step(self) -> None:
        """Users choose their names, and each label would stay."""
        self.work.cluster_events(
            [event(f"run script {n}.sh", "done", began=at(1), ended=at(2)) for n in range(3)]
        )
        name = "svcd_cluster_step_duration_seconds"
        counted = [line for line in self.lines(name) if line.startswith(f"{name}_count")]
        self.assertEqual(counted, [f'{name}_count{{outcome="done",step="run script"}} 3.0'])


class ExecutionTests(_Tests):
    def write(self, *rows: Execution) -> None:
        for before, after in itertools.pairwise(rows):
            self.work.execution_written(before, after, 1_000_000_000.0)

    def test_an_execution_ends_once(self) -> None:
        """Its row may change after that."""
        running = execution(1, status=ExecutionStatus.RUNNING, start_time=at(3))
        failure = Failure(code="EXIT_CODE", step="job", text="bad")
        over = evolve(running, status=ExecutionStatus.FAILED, end_time=at(8), failure=failure)
        self.write(running, over, evolve(over, workflow_dir=None, delete_requested=True))
        self.assertEqual(
            self.lines("svcd_execution"),
            [
                'svcd_executions_ended_total{status="FAILED"} 1.0',
                'svcd_execution_failures_total{code="EXIT_CODE"} 1.0',
                'svcd_execution_phase_duration_seconds_count{phase="running"} 1.0',
                'svcd_execution_phase_duration_seconds_sum{phase="running"} 5.0',
            ],
        )

    def test_the_wait_for_the_engine_is_a_phase(self) -> None:
        """It begins with the request. A clock that was set back makes no negative time."""
        self.write(execution(1), execution(1, status=ExecutionStatus.RUNNING, start_time=at(3)))
        self.assertIn(
            'svcd_execution_phase_duration_seconds_count{phase="pending"} 1.0',
            self.lines("svcd_execution_phase"),
        )


class ServiceTests(SynchronousTestCase):
    """The whole service in memory."""

    def setUp(self) -> None:
        self.svcd = FakeService()
        self.addCleanup(self.svcd.close)

    def text(self) -> str:
        self.svcd.advance(10)
        return self.svcd.call("GET", "/metrics").body.decode()

    def create(self) -> None:
        svcd = self.svcd
        groups = [
            {"name": name, "count": 1, "flavor_id": svcd.flavor_id, "node_processes": [process]}
            for name, process in (("master", "namenode"), ("worker", "datanode"))
        ]
        body = {
            "name": "mine",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "default_image_id": svcd.image_id,
            "user_keypair_id": svcd.keypair,
            "node_groups": groups,
        }
        answer = svcd.call("POST", f"/v1.1/{svcd.tenant}/clusters", json=body)
        self.assertEqual(answer.status, 202, answer.body)

    def test_a_cluster_is_counted_from_its_request_to_its_rest(self) -> None:
        """Its phases and steps, and the calls to the cloud that it has cost."""
        self.svcd.faults.add(where="compute", path="/servers", method="POST", status=500, times=1)
        self.create()
        early = self.text()
        self.assertIn('svcd_oldest_unsettled_seconds{work="cluster"} 10.', early)
        self.svcd.advance(600)
        text = self.text()
        for line in (
            'svcd_clusters{status="Active"} 1.0',
            'svcd_clusters{status="Error"} 0.0',
            'svcd_executions{status="RUNNING"} 0.0',
            'svcd_oldest_unsettled_seconds{work="cluster"} 0.0',
            "svcd_work_counted 1.0",
            'svcd_cloud_requests_total{outcome="5xx",service="compute"} 1.0',
            'svcd_cluster_phase_duration_seconds_count{status="Spawning"} 1.0',
            'svcd_cluster_step_duration_seconds_count{outcome="done",step="create server"} 2.0',
        ):
            self.assertIn(line, text)
        self.assertEqual(list(problems(text)), [])

    def test_tenants_beyond_the_bound_share_a_line(self) -> None:
        """Those with the longest time have their own."""
        self.patch(work_metrics, "_MOST_TENANTS", 2)
        connection = self.svcd._database._connection
        for tenant, seconds in (("a", 1.0), ("b", 30.0), ("c", 2.0), ("d", 4.0)):
            connection.execute("insert into usage values (?, 0.0, ?, 0)", [tenant, seconds])
        lines = [line for line in self.text().splitlines() if line.startswith("svcd_instance")]
        self.assertEqual(
            lines,
            [
                'svcd_instance_seconds_total{tenant="b"} 30.0',
                'svcd_instance_seconds_total{tenant="d"} 4.0',
                'svcd_instance_seconds_total{tenant=""} 3.0',
            ],
        )

    def test_a_deleted_cluster_has_spent_time_in_deleting(self) -> None:
        """Its row is gone then."""
        self.create()
        self.svcd.advance(600)
        [row] = self.svcd.call("GET", f"/v1.1/{self.svcd.tenant}/clusters").json["clusters"]
        self.svcd.call("DELETE", f"/v1.1/{self.svcd.tenant}/clusters/{row['id']}")
        self.svcd.advance(600)
        text = self.text()
        self.assertIn('svcd_cluster_phase_duration_seconds_count{status="Deleting"} 1.0', text)
        self.assertIn('svcd_clusters{status="Active"} 0.0', text)
