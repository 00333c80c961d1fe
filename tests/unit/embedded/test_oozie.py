"""The scripted engine has the shape of the recorded one, and its own scripted life."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource

from svcd.clients.http import Answer, HttpClient
from svcd.clients.oozie import engine_error
from svcd.embedded.hdfs import HdfsFault, MemoryFiles
from svcd.embedded.memory_agent import MemoryAgent
from svcd.embedded.oozie import ScriptedEngines
from svcd.runtime.clock import VirtualClock
from tests.unit.workflow.recorded import answer, record

APP = "hdfs://n/app/workflow.xml"
PROPERTIES = {"user.name": "u", "nameNode": "hdfs://n", "oozie.wf.application.path": APP}
WORKFLOW = """<workflow-app xmlns="uri:oozie:workflow:0.5" name="w"><start to="job-node"/>
<action name="job-node"><java><job-tracker>j</job-tracker><name-node>n</name-node>
<configuration>{configs}</configuration><main-class>M</main-class></java>
<ok to="end"/><error to="fail"/></action><kill name="fail"><message>m</message></kill>
<end name="end"/></workflow-app>"""


class Case(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.engines = ScriptedEngines(self.clock)
        self.engine = self.engines.engine("c")
        root = Resource()
        root.putChild(b"engine", self.engines.resource())
        agent = MemoryAgent(self.clock)
        agent.serve("http://m", root)
        self.http = HttpClient(agent, self.clock, engine_error)

    def submit(self, **configs: str) -> str:
        inner = "".join(
            f"<property><name>svcd.fake.{n}</name><value>{v}</value></property>"
            for n, v in {"x": "y", **configs}.items()
        )
        text = WORKFLOW.format(configs=inner).encode()
        self.engine.files.write("/app/workflow.xml", "u", text, 0.0)
        return self.engine.submit(PROPERTIES, "http://m/engine/c/oozie")

    def call(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> Answer:
        headers = {"Content-Type": kind} if kind else {}
        work = self.http.request(method, f"http://m/engine/c{path}", body=body, headers=headers)
        return self.successResultOf(Deferred.fromCoroutine(work))

    def info(self, job_id: str) -> Any:
        return json.loads(self.call("GET", f"/oozie/v1/job/{job_id}?show=info").body)


class Shape(Case):
    """Keys, kinds of values and habits, compared with recordings of Oozie 5.2.1."""

    def same_shape(self, mine: dict[str, Any], recorded: dict[str, Any]) -> None:
        self.assertEqual(set(mine), set(recorded))
        for key in ("status", "startTime", "endTime", "externalId"):
            self.assertEqual(mine[key] is None, recorded[key] is None, key)
        self.assertEqual(len(mine["actions"]), len(recorded["actions"]))
        for one, other in zip(mine["actions"], recorded["actions"], strict=True):
            self.assertEqual(set(one), set(other))
            for key in ("type", "status", "externalStatus", "errorCode", "transition", "name"):
                if other["type"] != "java" or key in ("status", "transition", "name"):
                    self.assertEqual(one[key] is None, other[key] is None, (key, one, other))
            self.assertEqual(one["status"], other["status"])
            self.assertEqual(one["endTime"] is None, other["endTime"] is None, other["name"])

    def test_records_of_each_state(self) -> None:
        for recorded, configs, wait in (
            ("job-killed-exception", {"outcome": "fail"}, 6),
            ("job-killed-mapreduce-error", {"outcome": "silent"}, 6),
            ("job-yarn-down", {"outcome": "suspend"}, 6),
            ("job-action-undefined-variable", {"outcome": "error"}, 6),
        ):
            job_id = self.submit(**configs)
            self.clock.advance(wait)
            self.same_shape(self.info(job_id), record(recorded))

    def test_a_killed_record(self) -> None:
        job_id = self.submit()
        self.assertEqual(self.call("PUT", f"/oozie/v1/job/{job_id}?action=kill").body, b"")
        mine, real = self.info(job_id), record("job-killed")
        real["externalId"] = None
        self.same_shape(mine, real)

    def test_the_batch_list(self) -> None:
        ids = [self.submit(), self.submit()]
        query = "%3B".join(f"id%3D{each}" for each in [*ids, "nothing-W"])
        mine = json.loads(self.call("GET", f"/oozie/v1/jobs?filter={query}&len=50").body)
        real = record("jobs-by-ids")
        self.assertEqual(set(mine), set(real))
        self.assertEqual([line["id"] for line in mine["workflows"]], ids[::-1])
        for line in mine["workflows"]:
            self.assertEqual(set(line), set(real["workflows"][0]))
            self.assertEqual((line["conf"], line["actions"]), (None, []))

    def test_errors(self) -> None:
        """Status, code in the header, empty body of a PUT."""
        xml = "application/xml;charset=UTF-8"
        calls: list[tuple[str, str, str, bytes | None, str]] = [
            ("error-unknown-id-get", "GET", "/v1/job/x-W?show=info", None, ""),
            ("error-unknown-id-kill", "PUT", "/v1/job/x-W?action=kill", None, ""),
            ("error-unknown-id-log", "GET", "/v1/job/x-W?show=log", None, ""),
            ("error-body-not-xml", "POST", "/v1/jobs?action=start", b"nonsense", xml),
            ("error-content-type", "POST", "/v1/jobs", b"{}", "application/json"),
            ("error-no-user", "POST", "/v1/jobs?action=start", b"<configuration/>", xml),
            ("error-path", "GET", "/v1/nothing", None, ""),
            ("error-method", "DELETE", "/v1/job/x-W", None, ""),
        ]
        for name, method, path, body, kind in calls:
            mine, real = self.call(method, "/oozie" + path, body, kind), answer(name)
            self.assertEqual(mine.status, real["status"], name)
            code = real["headers"].get("oozie-error-code")
            self.assertEqual(mine.headers.get("oozie-error-code"), code, name)
            self.assertEqual(bool(mine.body), bool(real.get("json")), name)


class Files(SynchronousTestCase):
    def test_it_is_bounded(self) -> None:
        """A write beyond the bound is refused and leaves what was there."""
        files = MemoryFiles(most_bytes=10)
        files.write("/a", "u", b"12345678", 0.0)
        files.write("/a", "u", b"1234567890", 0.0)
        with self.assertRaises(HdfsFault) as caught:
            files.write("/b", "u", b"1", 0.0)
        self.assertEqual(caught.exception.status, 403)
        self.assertFalse(files.exists("/b"))
