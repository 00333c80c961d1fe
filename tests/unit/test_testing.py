"""`FakeService`: what users of `svcd.testing` rely on, and whole lives on it."""

from __future__ import annotations

import cProfile
import gc
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
from twisted.internet import reactor as global_reactor  # noqa: TID251 - must stay untouched
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionRefusedError
from twisted.trial.reporter import TestResult
from twisted.trial.unittest import SynchronousTestCase

from svcd.declaration import SettingsError
from svcd.model.ids import timestamp
from svcd.store.migrations import migrate
from svcd.store.sqlite import SqliteDatabase
from svcd.testing import Effect, FakeService, FakeServiceMixin, FaultRule, _empty_database
from tests.support.api import now
from tests.support.fakes import Api, cluster_body

ROOT = Path(__file__).parents[2]
PYTEST_FILE = """
def test_one(svcd_fake):
    svcd_fake.call("PUT", f"/v1.1/{svcd_fake.tenant}/job-binary-internals/a", data=b"x")
    test_one.url = svcd_fake.url

def test_other(svcd_fake):
    found = svcd_fake.call("GET", f"/v1.1/{svcd_fake.tenant}/job-binary-internals")
    assert found.json == {"binaries": []}
"""


class ContractTests(FakeServiceMixin, SynchronousTestCase):
    """Names, types and meanings that do not change."""

    def setUp(self) -> None:
        self.svcd = self.fake_service()
        self.base = f"/v1.1/{self.svcd.tenant}"

    def test_call_answers_status_headers_body_and_json(self) -> None:
        """Header names are found in any case."""
        answer = self.svcd.call("GET", f"{self.base}/plugins")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["content-type"], "application/json")
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        self.assertIn("CONTENT-LENGTH", answer.headers)
        self.assertEqual(int(answer.headers["Content-Length"]), len(answer.body))
        self.assertEqual(answer.json["plugins"][0]["name"], "fake")

    def test_a_new_service_costs_at_most_1900_calls_and_40_statements(self) -> None:
        """A test suite makes thousands of services, so the tables are copied.

        The scripts that make them have hundreds of statements. Counts are exact, unlike times.
        """
        profile = cProfile.Profile()
        profile.enable()
        service = FakeService()
        profile.disable()
        service.close()
        calls = [(str(each.code), each.callcount) for each in profile.getstats()]
        self.assertGreater(sum(count for _, count in calls), 1000)
        self.assertLessEqual(sum(count for _, count in calls), 1900)
        self.assertLessEqual(sum(count for code, count in calls if "execute" in code), 40)

    def test_its_tables_are_those_that_the_scripts_make(self) -> None:
        """Also their versions, and the rows that the scripts add."""
        scripts = SqliteDatabase(None)
        now(Deferred.fromCoroutine(migrate(scripts, timestamp(self.svcd.clock.seconds()))))
        copied = SqliteDatabase(None)
        _empty_database().copy_to(copied)
        dumps = [list(each._connection.iterdump()) for each in (scripts, copied)]
        self.assertEqual(*dumps)
        self.assertGreater(len(dumps[0]), 60)

    def test_until_moves_time_to_the_first_true_result(self) -> None:
        """And no further; in vain it moves it by all its seconds, and says so."""
        service = self.fake_service()
        fired: list[float] = []
        begin = service.clock.seconds()
        service.clock.callLater(7, lambda: fired.append(service.clock.seconds() - begin))
        service.clock.callLater(9, fired.append, 9.0)
        self.assertEqual(service.until(lambda: fired[:1]), [7.0])
        self.assertEqual(service.clock.seconds() - begin, 7)
        with self.assertRaisesRegex(RuntimeError, "not done within 60 virtual seconds"):
            service.until(lambda: False, seconds=60)
        self.assertEqual(service.clock.seconds() - begin, 67)

    def test_requests_and_httpx_reach_it(self) -> None:
        """With method, query, headers and body; their answers are those of `call`."""
        service = self.fake_service()
        body = {"name": "n", "type": "hdfs", "url": "hdfs:///in"}
        sources = f"/v1.1/{service.tenant}/data-sources"
        with service.session() as session:
            made = session.post(service.url + sources, json=body, headers={"X-Request-Id": "one"})
            self.assertEqual((made.status_code, made.headers["X-Request-Id"]), (202, "one"))
            found = session.get(service.url + sources, params={"url": "hdfs:///in"}).json()
            (row,) = found["data_sources"]
            self.assertEqual(row["id"], made.json()["data_source"]["id"])
            self.assertEqual(session.get(service.cloud_url + "/identity/v3").status_code, 200)
            page = session.get(service.url + "/console/all.js").text
            self.assertEqual(page.encode(), service.call("GET", "/console/all.js").body)
        with httpx.Client(transport=service.transport(), base_url=service.url) as client:
            self.assertEqual(client.get(sources, params={"url": "hdfs:///in"}).json(), found)
            self.assertEqual(client.post(sources, json=body).status_code, 400)
            self.assertEqual(client.get("/v1.1/demo/jobs/none").status_code, 404)

    def test_data_is_sent_as_it_is(self) -> None:
        """Bytes and texts alike; they come back byte by byte. 204 has no JSON."""
        for name, data, sent in (("a", b"\x00\xff", b"\x00\xff"), ("b", "é", b"\xc3\xa9")):
            made = self.svcd.call("PUT", f"{self.base}/job-binary-internals/{name}", data=data).json
            path = f"{self.base}/job-binary-internals/{made['job_binary_internal']['id']}"
            self.assertEqual(self.svcd.call("GET", f"{path}/data").body, sent)
            answer = self.svcd.call("DELETE", path)
            self.assertEqual((answer.status, answer.body, answer.json), (204, b"", None))

    def test_requests_lists_what_the_api_was_asked(self) -> None:
        """Queries too, in order, and nothing of the daemon's own traffic."""
        self.svcd.call("GET", f"{self.base}/images?tags=a")
        self.svcd.call("DELETE", f"{self.base}/jobs/x")
        told = [(r.method, r.path) for r in self.svcd.requests[-2:]]
        self.assertEqual(
            told, [("GET", "/v1.1/demo/images?tags=a"), ("DELETE", "/v1.1/demo/jobs/x")]
        )
        Api(self.svcd).active_cluster()
        self.assertEqual([r for r in self.svcd.requests if not r.path.startswith("/v1.1/")], [])

    def test_time_moves_only_by_advance(self) -> None:
        """Nothing happens to a cluster until then."""
        cluster_id = Api(self.svcd).new_cluster()
        before = self.svcd.clock.seconds()
        self.assertEqual(Api(self.svcd).cluster(cluster_id)["status"], "Waiting")
        self.assertEqual(self.svcd.clock.seconds(), before)
        self.svcd.advance(600)
        self.assertEqual(self.svcd.clock.seconds(), before + 600)
        self.assertEqual(Api(self.svcd).cluster(cluster_id)["status"], "Active")

    def test_call_that_must_wait_moves_time_as_far_as_it_needs(self) -> None:
        """A slow cloud delays the answer by just that."""
        self.svcd.faults.add(FaultRule(where="image", effect=Effect.DELAY, delay_s=2.0, times=1))
        before = self.svcd.clock.seconds()
        self.assertEqual(self.svcd.call("GET", f"{self.base}/images").status, 200)
        self.assertEqual(self.svcd.clock.seconds() - before, 2.0)

    def test_a_wrong_password_has_no_token(self) -> None:
        svcd = self.fake_service({"auth.mode": "keystone"})
        with self.assertRaises(RuntimeError):
            svcd.token("alice", password="wrong", project="alpha")

    def test_settings_are_those_of_the_daemon(self) -> None:
        """As for --set; an unknown one is refused."""
        svcd = self.fake_service({"embedded.tenant": "acme", "provisioning.max_nodes": "2"})
        self.assertEqual(svcd.tenant, "acme")
        body = cluster_body(svcd, "mine", 2)
        answer = svcd.call("POST", "/v1.1/acme/clusters", json=body)
        self.assertEqual((answer.status, answer.json["error_name"]), (400, "VALIDATION_ERROR"))
        with self.assertRaises(SettingsError):
            FakeService({"server.lissten": "x"})


class OwnershipTests(SynchronousTestCase):
    """What it takes from the machine: nothing."""

    def test_instances_are_independent(self) -> None:
        """Rows, time, requests and faults belong to one."""
        with FakeService() as one, FakeService() as other:
            Api(one).active_cluster()
            one.faults.add(FaultRule(where="store"))
            self.assertEqual(Api(other).get("/clusters"), {"clusters": []})
            self.assertNotEqual(one.clock.seconds(), other.clock.seconds())
            self.assertEqual(len(other.requests), 1)
            self.assertEqual(one.call("GET", "/v1.1/demo/clusters").status, 503)

    def test_closed_one_refuses(self) -> None:
        """By a plain word, not by a fault deep inside. To close it twice does no harm."""
        with FakeService() as svcd:
            svcd.close()
        with self.assertRaises(RuntimeError) as raised:
            svcd.call("GET", "/healthz")
        self.assertEqual(str(raised.exception), "this FakeService is closed")
        refused = svcd.treq.get(svcd.url + "/healthz")
        self.failureResultOf(refused, ConnectionRefusedError)

    def test_nothing_is_left_behind(self) -> None:
        """No delayed call, descriptor, thread, file or reactor work, even from work half done."""
        reactor: Any = global_reactor
        before = (_descriptors(), threading.enumerate(), set(os.listdir()))
        svcd = FakeService()
        api = Api(svcd)
        job = api.new_job()
        cluster = api.active_cluster()
        api.execute(job, cluster, api.new_sources())
        api.new_cluster("second")
        svcd.faults.add(FaultRule(where="compute", effect=Effect.TIMEOUT_BEFORE))
        svcd.faults.add(FaultRule(where="engine", effect=Effect.TIMEOUT_AFTER))
        svcd.advance(0.05)
        during = (_descriptors(), threading.enumerate(), set(os.listdir()))
        self.assertEqual(during, before)
        self.assertEqual((reactor.getDelayedCalls(), reactor.threadpool), ([], None))
        svcd.close()
        self.assertEqual(svcd.clock.getDelayedCalls(), ())
        self.assertEqual((_descriptors(), threading.enumerate(), set(os.listdir())), before)
        self.assertEqual(reactor.getDelayedCalls(), [])

    def test_same_seed_same_story(self) -> None:
        """Ids, times and events are equal; another seed gives other ids."""
        stories = [_story(seed) for seed in (7, 7, 8)]
        self.assertEqual(stories[0], stories[1])
        self.assertNotEqual(stories[0], stories[2])

    def test_mixin_closes_after_the_test(self) -> None:
        """By a clean-up of the test case."""
        made: list[FakeService] = []

        class Inner(FakeServiceMixin, SynchronousTestCase):
            def test_it(self) -> None:
                made.append(self.fake_service())
                Api(made[0]).new_cluster()

        result = TestResult()
        Inner("test_it").run(result)
        self.assertTrue(result.wasSuccessful(), result)
        self.assertEqual(made[0].clock.getDelayedCalls(), ())

    def test_pytest_fixture(self) -> None:
        """Found without configuration, a fresh one for each test."""
        folder = Path(self.mktemp())
        folder.mkdir()
        (folder / "test_tool.py").write_text(PYTEST_FILE)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_tool.py"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertIn("2 passed", done.stdout, done.stdout + done.stderr)

    def test_example_of_the_readme_runs(self) -> None:
        """Word for word."""
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        (example,) = _examples(text)
        scope: dict[str, Any] = {"__name__": "example"}
        exec(compile(example, "README.md", "exec"), scope)
        result = TestResult()
        scope["MyToolTests"]("test_cluster_becomes_active").run(result)
        told = [failure.getTraceback() for _, failure in [*result.errors, *result.failures]]
        self.assertEqual((result.testsRun, told), (1, []))


class FaultTests(FakeServiceMixin, SynchronousTestCase):
    """The work goes on when a rule is gone. `tests.system` has what the cloud may do."""

    def setUp(self) -> None:
        self.svcd = self.fake_service()
        self.api = Api(self.svcd)

    def test_rules_of_the_documentation(self) -> None:
        """Word for word; both are hit by a cluster that becomes Active all the same."""
        text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
        (example,) = [e for e in _examples(text) if "faults.add" in e]
        exec(compile(example, "testing.md", "exec"), {"svcd": self.svcd})
        rules = [rule for rule, _ in self.svcd.faults.rules()]
        self.assertEqual([r.where for r in rules], ["compute", "ssh"])
        cluster_id = self.api.new_cluster()
        self.svcd.advance(120)
        hits = [count for _, count in self.svcd.faults.rules()]
        self.assertEqual(hits[0], 2)
        self.assertGreater(hits[1], 0)
        self.svcd.faults.clear()
        self.api.until_status(cluster_id, "Active")

    def test_engine_that_fails_runs_the_job_once(self) -> None:
        """It is away for long, takes a job without saying so, or its HDFS takes no file."""
        cluster_id, job_id = self.api.active_cluster(), self.api.new_job()
        sources = self.api.new_sources()
        for number, rule in enumerate(
            (
                FaultRule(where="engine", times=9, effect="reset_before"),
                FaultRule(where="engine", method="POST", times=1, effect="timeout_after"),
                FaultRule(where="hdfs", method="PUT", times=2, effect="reset_before"),
            ),
            1,
        ):
            handle = self.svcd.faults.add(rule)
            execution = self.api.execute(job_id, cluster_id, sources)
            self.assertEqual(self.api.until_over(execution)["info"]["status"], "SUCCEEDED")
            self.assertEqual(handle.hits(), rule.times)
            self.assertEqual(self.svcd.engines.engine(cluster_id).submissions, number)


def _examples(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def _story(seed: int) -> Any:
    """All that a user sees of a cluster and a job."""
    with FakeService(seed=seed) as svcd:
        api = Api(svcd)
        cluster_id = api.active_cluster()
        execution = api.execute(api.new_job(), cluster_id, api.new_sources())
        return [
            api.until_over(execution),
            api.cluster(cluster_id),
            api.get(f"/clusters/{cluster_id}/events"),
        ]


def _descriptors() -> set[str]:
    """Open files and sockets of this process."""
    gc.collect()
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except FileNotFoundError:
            continue  # the listing's own
    return found
