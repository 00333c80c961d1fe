"""Jobs of which nothing is heard: what the resource manager's word means, and what becomes of it.

The literal words are of a real one (tests/fixtures/yarn): a job that ran, and the same job after
kill -9 of the only node manager.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.engine_record import Record, parsed
from svcd.workflow.act.yarn import (
    MOST_APPLICATIONS,
    active_of,
    applications_of,
    idle_of,
    wants_of,
)
from svcd.workflow.decide.stalls import (
    Application,
    ClusterMetrics,
    Node,
    tag_of,
    verdict,
)

FIXTURES = Path(__file__).parents[3] / "fixtures" / "yarn"
WORKFLOW = "0000000-261122000229626-oozie-root-W"
CHILD = "application_1795305754044_0002"
TAG = tag_of(f"{WORKFLOW}@job-node")
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


def app(id_: str = CHILD, state: str = "ACCEPTED", age_s: float = 60.0, **more: Any) -> Application:
    return Application(id=id_, state=state, age_s=age_s, **{"name": "count", **more})


def code(word: ClusterMetrics, **changes: Any) -> str:
    """The code of the verdict on the recorded job; "" when it waits for nothing."""
    found = verdict(word, record(**changes)).failure
    return "" if found is None else found.code


def apps(*applications: Application) -> ClusterMetrics:
    return ClusterMetrics(active=1, applications=applications)


class ApplicationsOfTests(SynchronousTestCase):
    def test_an_action_has_its_launcher_its_children_and_those_with_its_tag(self) -> None:
        """In the order of the manager's list, each once."""
        ids = [f"application_{n}" for n in ("9_0001", "9_0002", "9_0003", "8_0001", "9_0004")]
        tags = {0: frozenset(["other", TAG]), 4: frozenset([TAG])}
        known = [app(id_, tags=tags.get(n, frozenset())) for n, id_ in enumerate(ids)]
        named = {"externalId": "application_9_0004", "externalChildIDs": "job_9_0002, job_9_0007"}
        action = record(**named).launched
        assert action is not None
        found = ClusterMetrics(applications=known).applications_of(action)
        self.assertEqual([known.index(each) for each in found], [0, 1, 4])
        self.assertEqual(ClusterMetrics().applications_of(action), [])


class DriverAloneTests(SynchronousTestCase):
    """A Spark program whose executors are larger than the room that is left."""

    def word(self, **changes: Any) -> str:
        lonely = {"age_s": 40, "kind": "SPARK", "containers": 1, "wants": "1 container of 1692 MB"}
        driver = app(state="RUNNING", tags=frozenset([TAG]), **{**lonely, **changes})
        found = verdict(apps(driver), record(type="java"))
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


class AnswerTests(SynchronousTestCase):
    """What a real resource manager answers, and what is read of it."""

    def test_nodes_that_take_work_are_counted(self) -> None:
        """An answer of something else counts nothing."""
        self.assertEqual(active_of(told("metrics-running")), 1)
        self.assertEqual(active_of(told("metrics-lost")), 0)
        for tree in ({}, {"clusterMetrics": None}, {"clusterMetrics": {"activeNodes": "1"}}):
            self.assertIsNone(active_of(tree), tree)

    def test_a_lost_node_has_the_name_of_its_machine(self) -> None:
        """One that is nobody's is named as it is."""
        names = {"127.117.71.19": "c1-worker-001"}
        lost = [Node(name="c1-worker-001", state="LOST")]
        self.assertEqual(idle_of(told("nodes-lost"), names), lost)
        self.assertEqual(idle_of(told("nodes-running"), names), [])
        self.assertEqual(idle_of(told("nodes-lost"), {})[0].name, "127.117.71.19")

    def test_applications_have_the_tag_of_their_action(self) -> None:
        """Which has no zeros at its beginning. Hadoop says null for no application at all."""
        [one] = applications_of(told("apps-running")) or ()
        self.assertEqual((one.id, one.state, one.age_s), (CHILD, "RUNNING", 6.311))
        self.assertEqual(one.tags, {TAG})
        self.assertEqual(
            tag_of("0000158-261122000229626-oozie-root-W@job-node"),
            "oozie-19be68dfe92a6b4c7e176e40caa1962",
        )
        self.assertEqual(applications_of({"apps": None}), [])

    def test_more_applications_than_are_read_say_nothing(self) -> None:
        many = [{"id": f"application_1_{n}", "state": "RUNNING"} for n in range(MOST_APPLICATIONS)]
        self.assertIsNone(applications_of({"apps": {"app": many}}))
        self.assertIsNone(applications_of({}))


class VerdictTests(SynchronousTestCase):
    """One literal word, one literal meaning."""

    def ends(self, word: ClusterMetrics) -> tuple[str, str]:
        """Code and reason of a word that ends a job after its deadline."""
        found = verdict(word, record())
        assert found.ends and found.failure is not None
        self.assertEqual(found.failure.step, "job-node")
        return found.failure.code, found.failure.text.partition("; ")[0]

    def test_silence_ends_a_job(self) -> None:
        self.assertEqual(
            self.ends(ClusterMetrics(error="http://10.0.0.2:8088/: connection refused")),
            (
                "RESOURCES_UNREACHABLE",
                "the resource manager does not answer: http://10.0.0.2:8088/: connection refused",
            ),
        )

    def test_a_cluster_without_a_worker_ends_a_job(self) -> None:
        """What is wrong with each is told; only disks without room are a lack of space."""
        full = "1/1 local-dirs have errors: [ /d : used space above threshold of 90.0% ]"
        least = "1/1 local-dirs have no room: [ /d : free space below limit of 32MB ]"
        lost = Node(name="w2", state="LOST")
        for idle, wanted, told in (
            ([], "NO_WORKERS", "no node manager has reported to the resource manager"),
            ([lost, Node(name="h", state="SHUTDOWN")], "NO_WORKERS", "w2 is LOST, h is SHUTDOWN"),
            (
                [Node(name="w1", state="UNHEALTHY", report=full), lost],
                "NO_SPACE",
                f"w1 is UNHEALTHY ({full}), w2 is LOST",
            ),
            (
                [Node(name="w1", state="UNHEALTHY", report=least)],
                "NO_SPACE",
                f"w1 is UNHEALTHY ({least})",
            ),
            (
                [Node(name="w1", state="UNHEALTHY", report="the script says ERROR")],
                "NO_WORKERS",
                "w1 is UNHEALTHY (the script says ERROR)",
            ),
        ):
            found = self.ends(ClusterMetrics(active=0, idle=idle))
            self.assertEqual(found, (wanted, f"no worker of the cluster takes work: {told}"))

    def test_a_thousand_lost_nodes_are_counted(self) -> None:
        idle = [Node(name=f"w{n}", state="LOST") for n in range(1000)]
        found = self.ends(ClusterMetrics(active=0, idle=idle))[1]
        self.assertTrue(found.endswith("w9 is LOST, and 990 more"), found)

    def test_a_job_that_yarn_holds_back_waits_and_does_not_end(self) -> None:
        """YARN's own words, without their date."""
        found = verdict(apps(*(applications_of(told("apps-lost")) or ())), record())
        assert found.failure is not None
        self.assertEqual(
            (found.failure.code, found.failure.text, found.ends),
            ("STEP_WAITS", f"YARN has accepted {CHILD} and not begun it: {EMPTY}", False),
        )

    def test_a_job_that_runs_or_whose_master_starts_waits_for_nothing(self) -> None:
        """YARN calls it accepted until its master registers, a minute later on a busy machine."""
        self.assertEqual(code(apps(*(applications_of(told("apps-running")) or ()))), "")
        tagged = frozenset([TAG])
        for words, wanted in (
            ("[Mon Nov 23 15:12:41 +0000 2026] AM container is launched, waiting for AM", ""),
            ("Application is Activated, waiting for resources", "STEP_WAITS"),
        ):
            self.assertEqual(code(apps(app(tags=tagged, diagnostics=words))), wanted, words)

    def test_the_launcher_does_not_count_while_its_job_waits(self) -> None:
        """As on a cluster that launchers have filled."""
        launcher = app("application_1795305754044_0001", "RUNNING", name="oozie:launcher:T=pig")
        child = app(tags=frozenset([TAG]))
        self.assertEqual(code(apps(launcher, child)), "STEP_WAITS")
        other = evolve(child, id="application_1795305754044_0003", state="RUNNING")
        self.assertEqual(code(apps(launcher, child, other)), "")

    def test_a_child_that_the_engine_knows_is_its_own_once_it_has_waited(self) -> None:
        """By its number, under either name; half a minute after YARN took it."""
        known = "job_1795305754044_0002"
        self.assertEqual(code(apps(app(state="SUBMITTED"))), "")
        self.assertEqual(code(apps(app(state="SUBMITTED")), externalChildIDs=known), "STEP_WAITS")
        self.assertEqual(code(apps(app(age_s=29.9)), externalChildIDs=known), "")
        self.assertEqual(code(apps(app(age_s=30.0)), externalChildIDs=known), "STEP_WAITS")

    def test_what_is_not_known_is_not_guessed(self) -> None:
        """Nor does a step that is not at YARN wait for anything there."""
        for word in (ClusterMetrics(), ClusterMetrics(active=1)):
            found = verdict(word, record())
            self.assertEqual((found.failure, found.sure), (None, False))
        for changes in ({"externalId": "-"}, {"status": "START_RETRY"}, {"status": "OK"}):
            self.assertIsNone(record(**changes).launched)
            self.assertEqual(code(ClusterMetrics(active=0), **changes), "")
