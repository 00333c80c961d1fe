"""Jobs of which nothing is heard: what the resource manager's word means, and what becomes of it.

The literal words are of a real one (tests/fixtures/yarn): a job that ran, and the same job after
kill -9 of the only node manager.
"""

from __future__ import annotations

import cProfile
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.probe import HttpProbe
from svcd.embedded.faults import Effect, FaultRule
from svcd.model.engine_record import Record, parsed
from svcd.model.job import ExecutionStatus
from svcd.settings import Workflow
from svcd.workflow.act.yarn import (
    MOST_APPLICATIONS,
    active_of,
    applications_of,
    idle_of,
    manager_of,
    wants_of,
)
from svcd.workflow.decide.stalls import (
    Application,
    ClusterMetrics,
    Node,
    tag_of,
    verdict,
)
from tests.unit.workflow.support import CLUSTER, TENANT, WorkflowCase

S = ExecutionStatus
HANG = {"svcd.fake.outcome": "hang"}
FIXTURES = Path(__file__).parents[3] / "fixtures" / "yarn"
WORKFLOW = "0000000-261122000229626-oozie-root-W"
CHILD = "application_1795305754044_0002"
EMPTY = (
    "Application is added to the scheduler and is not yet activated. Skipping AM assignment as "
    "cluster resource is empty. Details : AM Partition = <DEFAULT_PARTITION>; AM Resource Request "
    "= <memory:320, vCores:1>; Queue Resource Limit for AM = <memory:0, vCores:0>; User AM "
    "Resource Limit of the queue = <memory:0, vCores:0>; Queue AM Resource Usage = <memory:0, "
    "vCores:0>;"
)


def told(name: str) -> Any:
    """One recorded answer."""
    return json.loads((FIXTURES / f"{name}.json").read_text())


def record(**changes: Any) -> Record:
    """The engine's of the recorded job, as far as it counts."""
    action = {
        "id": f"{WORKFLOW}@job-node",
        "name": "job-node",
        "type": "map-reduce",
        "status": "RUNNING",
        "externalId": "application_1795305754044_0001",
        "externalChildIDs": None,
        "endTime": None,
        **changes,
    }
    start = {"name": ":start:", "type": ":START:", "status": "OK", "externalId": "-"}
    return parsed({"status": "RUNNING", "actions": [start, action]})


class MasterStartTests(SynchronousTestCase):
    def test_an_application_whose_master_starts_is_not_held_back(self) -> None:
        """YARN calls it accepted until its master registers, a minute later on a busy machine."""
        words = "[Mon Nov 23 15:12:41 +0000 2026] AM container is launched, waiting for AM"
        child = Application(
            id=CHILD,
            name="count.py",
            state="ACCEPTED",
            age_s=40,
            tags=frozenset([tag_of(f"{WORKFLOW}@job-node")]),
            diagnostics=words,
        )
        found = verdict(ClusterMetrics(active=2, applications=[child]), record())
        self.assertIsNone(found.failure)
        held = evolve(child, diagnostics="Application is Activated, waiting for resources")
        found = verdict(ClusterMetrics(active=2, applications=[held]), record())
        self.assertIsNotNone(found.failure)


class ApplicationsOfTests(SynchronousTestCase):
    """The applications of one action among all of a cluster."""

    def test_an_action_has_its_launcher_its_children_and_those_with_its_tag(self) -> None:
        """In the order of the manager's list, each once."""
        tags = frozenset(["other", tag_of(f"{WORKFLOW}@job-node")])
        ends = ("9_0001", "9_0002", "9_0003", "8_0001", "9_0004")
        known = [
            Application(id=f"application_{each}", name="", state="RUNNING", age_s=1.0)
            for each in ends
        ]
        known[0] = evolve(known[0], tags=tags)
        known[4] = evolve(known[4], tags=tags)
        ids = {"externalId": "application_9_0004", "externalChildIDs": "job_9_0002, job_9_0007"}
        action = record(**ids).launched
        assert action is not None
        found = ClusterMetrics(applications=known).applications_of(action)
        self.assertEqual([known.index(each) for each in found], [0, 1, 4])
        self.assertEqual(ClusterMetrics().applications_of(action), [])

    def test_the_work_for_an_action_does_not_grow_with_the_applications(self) -> None:
        """As many actions as applications: the calls for each are counted."""

        def calls(count: int) -> float:
            ids = [f"application_9_{number:04d}" for number in range(count)]
            actions = [record(externalId=id_).launched for id_ in ids]
            metrics = ClusterMetrics(
                applications=[Application(id=i, name="", state="RUNNING", age_s=1.0) for i in ids]
            )
            profile = cProfile.Profile()
            profile.enable()
            found = [metrics.applications_of(each) for each in actions if each is not None]
            profile.disable()
            self.assertEqual([[each.id for each in some] for some in found], [[i] for i in ids])
            return sum(each.callcount for each in profile.getstats()) / count

        self.assertLessEqual(calls(400), calls(20) * 1.1)


class DriverAloneTests(SynchronousTestCase):
    """A Spark program whose executors are larger than the room that is left."""

    def word(self, **changes: Any) -> str:
        driver = Application(
            id=CHILD,
            name="count.py",
            state="RUNNING",
            age_s=40,
            tags=frozenset([tag_of(f"{WORKFLOW}@job-node")]),
            kind="SPARK",
            containers=1,
            wants="1 container of 1692 MB",
        )
        found = verdict(
            ClusterMetrics(active=2, applications=[evolve(driver, **changes)]), record(type="java")
        )
        return "" if found.failure is None else f"{found.failure.code} {found.failure.text}"

    def test_it_waits_with_what_it_lacks(self) -> None:
        begin = f"STEP_WAITS YARN runs only the driver of {CHILD}, and has no room for 1 container"
        self.assertEqual(self.word(), f"{begin} of 1692 MB")

    def test_others_do_not_wait(self) -> None:
        """With an executor, without a request, new, and no program of Spark."""
        self.assertEqual(self.word(containers=2), "")
        self.assertEqual(self.word(containers=None), "")
        self.assertEqual(self.word(wants=""), "")
        self.assertEqual(self.word(age_s=20), "")
        self.assertEqual(self.word(kind="MAPREDUCE"), "")

    def test_requests_of_an_application(self) -> None:
        """Only what is not granted yet, and at any node."""
        request = {"resourceName": "*", "numContainers": 2, "capability": {"memory": 704}}
        none = {**request, "numContainers": 0}
        local = {**request, "resourceName": "127.0.0.1"}
        asks = [none, local, request]
        self.assertEqual(wants_of({"app": {"resourceRequests": asks}}), "2 containers of 704 MB")
        for odd in ({}, {"app": None}, {"app": {"resourceRequests": ["x", none, {}]}}):
            self.assertEqual(wants_of(odd), "")


class Words(SynchronousTestCase):
    """What a real resource manager answers."""

    def test_nodes_that_take_work_are_counted(self) -> None:
        self.assertEqual(active_of(told("metrics-running")), 1)
        self.assertEqual(active_of(told("metrics-lost")), 0)

    def test_an_answer_of_something_else_counts_nothing(self) -> None:
        for tree in ({}, {"clusterMetrics": None}, {"clusterMetrics": {"activeNodes": "1"}}):
            self.assertIsNone(active_of(tree), tree)

    def test_a_lost_node_has_the_name_of_its_machine(self) -> None:
        names = {"127.117.71.19": "c1-worker-001"}
        self.assertEqual(
            idle_of(told("nodes-lost"), names), [Node(name="c1-worker-001", state="LOST")]
        )
        self.assertEqual(idle_of(told("nodes-running"), names), [])

    def test_a_node_that_is_nobodys_is_named_as_it_is(self) -> None:
        self.assertEqual(idle_of(told("nodes-lost"), {})[0].name, "127.117.71.19")

    def test_applications_have_the_tag_of_their_action(self) -> None:
        [one] = applications_of(told("apps-running")) or ()
        self.assertEqual((one.id, one.state), (CHILD, "RUNNING"))
        self.assertEqual(one.age_s, 6.311)
        self.assertEqual(one.tags, {tag_of(f"{WORKFLOW}@job-node")})

    def test_a_tag_has_no_zeros_at_its_beginning(self) -> None:
        self.assertEqual(
            tag_of("0000158-261122000229626-oozie-root-W@job-node"),
            "oozie-19be68dfe92a6b4c7e176e40caa1962",
        )

    def test_no_application_at_all(self) -> None:
        """Hadoop says null then."""
        self.assertEqual(applications_of({"apps": None}), [])

    def test_more_applications_than_are_read_say_nothing(self) -> None:
        many = [{"id": f"application_1_{n}", "state": "RUNNING"} for n in range(MOST_APPLICATIONS)]
        self.assertIsNone(applications_of({"apps": {"app": many}}))
        self.assertIsNone(applications_of({}))

    def test_a_manager_behind_a_path(self) -> None:
        self.assertEqual(
            manager_of("http://h:1/engine/c1/yarn/proxy/application_1_1/", "rm"),
            "http://h:1/engine/c1/yarn",
        )


class Verdicts(SynchronousTestCase):
    """One literal word, one literal meaning."""

    def said(self, word: ClusterMetrics, **changes: Any) -> tuple[str, str, bool]:
        found = verdict(word, record(**changes))
        if found.failure is None:
            return ("", "", found.ends)
        text = found.failure.text.partition("; ")[0] if found.ends else found.failure.text
        self.assertEqual(found.failure.step, "job-node")
        return (found.failure.code, text, found.ends)

    def apps(self, *applications: Application) -> ClusterMetrics:
        return ClusterMetrics(active=1, applications=applications)

    def test_silence_ends_a_job(self) -> None:
        self.assertEqual(
            self.said(ClusterMetrics(error="http://10.0.0.2:8088/: connection refused")),
            (
                "RESOURCES_UNREACHABLE",
                "the resource manager does not answer: http://10.0.0.2:8088/: connection refused",
                True,
            ),
        )

    def test_lost_nodes_end_a_job(self) -> None:
        idle = [Node(name="c1-worker-001", state="LOST"), Node(name="h", state="SHUTDOWN")]
        self.assertEqual(
            self.said(ClusterMetrics(active=0, idle=idle)),
            (
                "NO_WORKERS",
                "no worker of the cluster takes work: c1-worker-001 is LOST, h is SHUTDOWN",
                True,
            ),
        )

    def test_a_manager_that_knows_no_node_ends_a_job(self) -> None:
        """It was started anew, and nobody has come back to it."""
        self.assertEqual(
            self.said(ClusterMetrics(active=0))[:2],
            (
                "NO_WORKERS",
                "no worker of the cluster takes work: no node manager has reported to the "
                "resource manager",
            ),
        )

    def test_full_disks_are_told_as_such(self) -> None:
        report = "1/1 local-dirs have errors: [ /d : used space above threshold of 90.0% ]"
        idle = [Node(name="w1", state="UNHEALTHY", report=report), Node(name="w2", state="LOST")]
        self.assertEqual(
            self.said(ClusterMetrics(active=0, idle=idle)),
            (
                "NO_SPACE",
                f"no worker of the cluster takes work: w1 is UNHEALTHY ({report}), w2 is LOST",
                True,
            ),
        )

    def test_other_ills_are_no_full_disks(self) -> None:
        idle = [Node(name="w1", state="UNHEALTHY", report="the script says ERROR")]
        self.assertEqual(self.said(ClusterMetrics(active=0, idle=idle))[0], "NO_WORKERS")

    def test_a_thousand_lost_nodes_are_counted(self) -> None:
        idle = [Node(name=f"w{n}", state="LOST") for n in range(1000)]
        self.assertTrue(
            self.said(ClusterMetrics(active=0, idle=idle))[1].endswith("w9 is LOST, and 990 more")
        )

    def test_a_job_that_yarn_holds_back_waits_and_does_not_end(self) -> None:
        """Yarn's own words, without their date."""
        found = applications_of(told("apps-lost"))
        self.assertEqual(
            self.said(ClusterMetrics(active=1, applications=found)),
            (
                "STEP_WAITS",
                f"YARN has accepted {CHILD} and not begun it: {EMPTY}",
                False,
            ),
        )

    def test_a_job_that_runs_waits_for_nothing(self) -> None:
        """Its master runs; what its containers wait for may last."""
        found = applications_of(told("apps-running"))
        self.assertEqual(self.said(ClusterMetrics(active=1, applications=found)), ("", "", False))

    def test_the_launcher_does_not_count_while_its_job_waits(self) -> None:
        """As on a cluster that launchers have filled."""
        launcher = Application(
            id="application_1795305754044_0001",
            name="oozie:launcher:T=pig",
            state="RUNNING",
            age_s=99.0,
        )
        tags = frozenset({tag_of(f"{WORKFLOW}@job-node")})
        child = Application(id=CHILD, name="PigLatin:x", state="ACCEPTED", age_s=60.0, tags=tags)
        self.assertEqual(self.said(self.apps(launcher, child))[0], "STEP_WAITS")
        other = evolve(child, id="application_1795305754044_0003", state="RUNNING")
        self.assertEqual(self.said(self.apps(launcher, child, other))[0], "")

    def test_a_child_that_the_engine_knows_is_its_own(self) -> None:
        """By its number, under either name."""
        child = Application(id=CHILD, name="x", state="SUBMITTED", age_s=60.0)
        self.assertEqual(self.said(self.apps(child))[0], "")
        known = "job_1795305754044_0002"
        self.assertEqual(self.said(self.apps(child), externalChildIDs=known)[0], "STEP_WAITS")

    def test_one_that_yarn_has_just_taken_is_on_its_way(self) -> None:
        """After its launcher has run for a while."""
        number = "job_1795305754044_0002"
        for age_s, code in ((29.9, ""), (30.0, "STEP_WAITS")):
            child = Application(id=CHILD, name="x", state="ACCEPTED", age_s=age_s)
            self.assertEqual(self.said(self.apps(child), externalChildIDs=number)[0], code)

    def test_what_is_not_known_is_not_guessed(self) -> None:
        for word in (ClusterMetrics(), ClusterMetrics(active=1)):
            found = verdict(word, record())
            self.assertEqual((found.failure, found.sure), (None, False))

    def test_a_step_that_is_not_at_yarn_waits_for_nothing_there(self) -> None:
        for changes in ({"externalId": "-"}, {"status": "START_RETRY"}, {"status": "OK"}):
            self.assertIsNone(record(**changes).launched)
            self.assertIsNone(verdict(ClusterMetrics(active=0), record(**changes)).failure)


class Stories(WorkflowCase):
    """With the scripted resource manager, over HTTP."""

    workflow = Workflow(unreachable_deadline_s=600.0)

    def setUp(self) -> None:
        super().setUp()
        self.asks = HttpProbe(self.agent, self.clock)
        self.run_to_end(self.controller.stop())
        self.controller = self.make_controller()
        self.jobs = self.make_jobs(self.controller)
        self.controller.start()

    @property
    def nodes(self) -> dict[str, tuple[str, str]]:
        return self.scripted.yarn.nodes

    def code(self, id_: Any) -> str:
        waiting = self.info(id_).get("waiting")
        return waiting["code"] if waiting else ""

    def events(self) -> Sequence[tuple[str, str]]:
        found = self.tx(lambda tx: tx.clusters.events(TENANT, CLUSTER))
        return [(event.outcome, event.code) for event in found]

    def restart(self) -> None:
        self.run_to_end(self.controller.stop())
        self.controller = self.make_controller()
        self.jobs = self.make_jobs(self.controller)
        self.controller.start()

    def lost(self) -> None:
        """The only worker, which is the machine of the master here."""
        self.nodes.clear()
        self.nodes["127.1.0.2"] = ("LOST", "")

    def test_a_lost_worker_is_told_within_a_minute(self) -> None:
        row = self.execute(configs=HANG)
        self.clock.advance(6)
        self.lost()
        self.clock.advance(50)
        waiting = self.info(row.id)["waiting"]
        self.assertEqual((waiting["code"], waiting["step"]), ("NO_WORKERS", "job-node"))
        self.assertEqual(
            waiting["text"], "no worker of the cluster takes work: c1-master-001 is LOST"
        )
        self.assertEqual(
            (waiting["since"], waiting["until"]), ("2026-01-01T00:00:35", "2026-01-01T00:10:35")
        )
        self.assertEqual(self.events(), [("retry", "NO_WORKERS")])

    def test_a_silent_resource_manager_is_told_the_second_time(self) -> None:
        row = self.execute(configs=HANG)
        self.clock.advance(6)
        rule = self.faults.add(FaultRule(where="yarn", effect=Effect.RESET_BEFORE))
        self.clock.advance(40)
        self.assertEqual(self.code(row.id), "")
        self.clock.advance(20)
        waiting = self.info(row.id)["waiting"]
        self.assertEqual((waiting["code"], waiting["step"]), ("RESOURCES_UNREACHABLE", "job-node"))
        self.assertIn("the resource manager does not answer: ", waiting["text"])
        rule.remove()
        self.clock.advance(25)
        self.assertEqual(self.code(row.id), "")

    def test_a_busy_cluster_is_told_and_ends_nothing(self) -> None:
        queued = "[Sun Nov 22 00:03:01 +0000 2026] Queue's AM resource limit exceeded."
        row = self.execute(configs={**HANG, "svcd.fake.queued": queued})
        self.clock.advance(60)
        waiting = self.info(row.id)["waiting"]
        self.assertEqual(
            (waiting["code"], waiting["until"], waiting["text"].partition(";")[0]),
            (
                "STEP_WAITS",
                None,
                "YARN has accepted application_1767225600000_0001 and not begun it: Queue's AM "
                "resource limit exceeded.",
            ),
        )
        self.clock.advance(7200)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)
        [job] = self.scripted.jobs.values()
        job.queued = ""
        self.clock.advance(25)
        self.assertEqual(self.code(row.id), "")
        self.assertEqual(self.events(), [("retry", "STEP_WAITS"), ("done", "")])

    def test_many_jobs_are_told_by_few_questions(self) -> None:
        """Two a look, however many wait; and the engine is not asked for their records."""
        rows = [self.execute(configs=HANG) for _ in range(50)]
        self.clock.advance(60)
        self.lost()
        self.clock.advance(60)
        self.assertEqual({self.code(row.id) for row in rows}, {"NO_WORKERS"})
        asked: list[str] = []

        def note(where: str, method: str, path: str) -> None:
            asked.append(where)

        self.faults.listen(note)
        before = self.scripted.calls["GET job"]
        self.clock.advance(100)
        self.assertLessEqual(asked.count("yarn"), 10)
        self.assertEqual(self.scripted.calls["GET job"], before)

    def test_a_restart_forgets_no_waiting_and_ends_nothing_by_hearsay(self) -> None:
        """What was seen before the daemon was away is looked at again, twice, before it counts."""
        row = self.execute(configs=HANG)
        self.lost()
        self.clock.advance(120)
        self.run_to_end(self.controller.stop())
        self.clock.advance(3600)
        self.nodes["127.1.0.9"] = ("RUNNING", "")
        self.restart()
        self.clock.advance(60)
        self.assertEqual((self.execution(row.id).status, self.code(row.id)), (S.RUNNING, ""))
