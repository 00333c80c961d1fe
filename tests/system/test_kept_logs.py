"""The kept log of a job execution: followed, completed, and read after its cluster was deleted."""

from __future__ import annotations

from treq import content
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import Answer, FakeService
from svcd.workflow.decide.log_growth import ANEW
from tests.support.api import daemon_of
from tests.support.fakes import Api, cluster_body

HANG = {"svcd.fake.outcome": "hang"}


class LogTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.svcd = FakeService()
        self.addCleanup(self.svcd.close)
        self.api = Api(self.svcd)
        self.cluster = self.api.active_cluster("mine")
        self.job, self.sources = self.api.new_job(), self.api.new_sources()

    def execute(self, configs: dict[str, str] | None = None) -> str:
        """The id of one that the engine has."""
        id_ = self.api.execute(self.job, self.cluster, self.sources, configs)
        self.svcd.advance(3)
        return id_

    def lines(self, id_: str) -> list[str]:
        """The engine's log of the job, which a test can change."""
        engine = self.svcd.engines.engine(self.cluster)
        return engine.get(engine.find(id_)).log

    def log(self, id_: str, query: str = "", status: int = 200) -> Answer:
        path = f"/v1.1/{self.svcd.tenant}/job-executions/{id_}/log{query}"
        answer = self.svcd.call("GET", path)
        self.assertEqual(answer.status, status, answer.body)
        return answer

    def shown(self, id_: str, offset: int = 0) -> tuple[str, int, int, bool]:
        """Text, first and next offset, and whether it is complete."""
        answer = self.log(id_, f"?offset={offset}")
        start, end, complete = (
            answer.headers[f"X-Log-{name}"] for name in ("Start", "Offset", "Complete")
        )
        return answer.body.decode(), int(start), int(end), {"true": True, "false": False}[complete]

    def follow(self, id_: str, offset: int, wait: int = 60) -> list[tuple[float, str, str]]:
        """Seconds, text and next offset, once the answer is there."""
        found: list[tuple[float, str, str]] = []
        began = self.svcd.clock.seconds()
        path = f"/v1.1/{self.svcd.tenant}/job-executions/{id_}/log?offset={offset}&wait={wait}"

        async def ask() -> None:
            response = await self.svcd.treq.get(self.svcd.url + path)
            text = (await content(response)).decode()
            (end,) = response.headers.getRawHeaders("X-Log-Offset")
            found.append((self.svcd.clock.seconds() - began, text, end))

        Deferred.fromCoroutine(ask()).addErrback(lambda failure: self.fail(str(failure)))
        return found

    def transient(self) -> tuple[str, str]:
        """Ids of an execution that has ended, and of the cluster that was made for it."""
        body = cluster_body(self.svcd, "once", 1)
        sent = {"input_id": self.sources[0], "output_id": self.sources[1], "cluster": body}
        made = self.api.post(f"/jobs/{self.job}/execute", {**sent, "job_configs": {}})
        execution = made["job_execution"]
        self.assertEqual(self.api.until_over(execution["id"])["info"]["status"], "SUCCEEDED")
        return execution["id"], execution["cluster_id"]


class FollowTests(LogTests):
    def test_a_log_is_read_as_it_grows(self) -> None:
        """Each offset is the end of what was read before."""
        id_ = self.execute(HANG)
        first, start, end, complete = self.shown(id_)
        self.assertEqual((start, complete), (0, False))
        self.assertRegex(first, r"\A==> engine <==\n.* INFO submitted .*\n\Z")
        self.assertEqual(end, len(first.encode()))
        self.lines(id_).append("step two: Größe")
        self.svcd.advance(3)
        self.assertEqual(self.shown(id_, end)[0], "step two: Größe\n")
        self.assertEqual(self.shown(id_)[0], first + "step two: Größe\n")
        self.assertEqual(self.shown(id_, end + 18)[0], "")

    def test_a_wait_ends_with_new_text(self) -> None:
        """Within the two seconds between two looks at the engine's log."""
        id_ = self.execute(HANG)
        end = self.shown(id_)[2]
        found = self.follow(id_, end)
        self.svcd.advance(30)
        self.assertEqual(found, [])
        self.lines(id_).append("more")
        self.svcd.advance(3)
        self.assertEqual([text for _, text, _ in found], ["more\n"])
        self.assertLess(found[0][0], 33.1)

    def test_a_wait_ends_after_its_seconds_or_with_a_drain(self) -> None:
        """Without new text, and with the same offset."""
        id_ = self.execute(HANG)
        end = self.shown(id_)[2]
        found = self.follow(id_, end, 10)
        self.svcd.advance(10.1)
        ((took, text, at),) = found
        self.assertEqual((round(took), text, at), (10, "", str(end)))
        found = self.follow(id_, end)
        self.svcd.advance(5)
        Deferred.fromCoroutine(daemon_of(self.svcd).drain(30.0))
        self.svcd.advance(1)
        self.assertEqual([(text, at) for _, text, at in found], [("", str(end))])

    def test_a_wait_ends_with_the_end(self) -> None:
        """The last text comes with it; then every wait is answered at once."""
        id_ = self.execute(HANG)
        end = self.shown(id_)[2]
        found = self.follow(id_, end)
        self.api.get(f"/job-executions/{id_}/cancel")
        self.svcd.advance(10)
        self.assertIn("INFO kill", found[0][1])
        text, _, end, complete = self.shown(id_)
        self.assertTrue(complete)
        self.assertEqual(text.splitlines()[-1], f"==> job execution {id_}: KILLED <==")
        self.assertEqual(self.follow(id_, end), [(0.0, "", str(end))])

    def test_an_engine_that_begins_anew_is_named(self) -> None:
        """What was read before stays, and nothing is repeated in silence."""
        id_ = self.execute(HANG)
        first, _, end, _ = self.shown(id_)
        self.lines(id_)[:] = ["restarted"]
        self.svcd.advance(3)
        self.assertEqual(self.shown(id_, end)[0], f"==> engine <==\n{ANEW}\nrestarted\n")
        self.assertTrue(self.shown(id_)[0].startswith(first))

    def test_head_tells_of_the_kept_text_and_reads_nothing(self) -> None:
        """At once, also with ?wait; the next GET has what is new."""
        id_ = self.execute(HANG)
        end = self.shown(id_)[2]
        path = f"/v1.1/{self.svcd.tenant}/job-executions/{id_}/log"
        for query in ("?offset=0", "?offset=0&wait=60", ""):
            self.lines(id_).append(f"more {query}")
            self.svcd.advance(3)
            before = dict(self.svcd.engines.engine(self.cluster).calls)
            answer = self.svcd.call("HEAD", path + query)
            self.assertEqual((answer.status, answer.body), (200, b""))
            self.assertEqual(answer.headers.get("X-Log-Offset"), str(end) if query else None)
            self.assertEqual(self.svcd.engines.engine(self.cluster).calls, before)
        self.assertIn("more ?offset=0", self.shown(id_)[0])

    def test_a_log_that_grows_fast_has_a_gap(self) -> None:
        """Its beginning and its end are there, and a line between them; a reader goes on."""
        id_ = self.execute(HANG)
        self.assertEqual(self.log(id_, "?offset=0").headers["X-Log-Gap"], "false")
        lines = self.lines(id_)
        lines += [f"step {number:06}" for number in range(200_000)]
        self.svcd.advance(3)
        answer = self.log(id_, "?offset=0")
        end = int(answer.headers["X-Log-Offset"])
        self.assertEqual((answer.headers["X-Log-Gap"], end), ("true", len(answer.body)))
        text = answer.body.decode()
        self.assertRegex(
            text,
            r"(?s)\A==> engine <==\n.* INFO submitted .*\nstep 000000\n.*\n\[svcd: \d+ bytes"
            r" are missing here, from byte 2621\d\d of this file on: [^\n]*\]\nstep .*199999\n\Z",
        )
        self.assertEqual(text.count("[svcd: "), 1)
        lines.append("more")
        self.svcd.advance(3)
        self.assertEqual(self.shown(id_, end)[0], "more\n")
        newest = self.log(id_).body.decode()
        self.assertIn("==> engine <==\n[svcd: the beginning of this file is left out here", newest)
        self.assertTrue(newest.endswith("step 199999\nmore\n\n"))

    def test_secrets_are_masked(self) -> None:
        """Also one whose line is not finished when it is read."""
        id_ = self.execute(HANG)
        self.lines(id_).append("login with demo-password-of-a-source done")
        self.svcd.advance(3)
        self.assertIn("login with *** done\n", self.shown(id_)[0])
        self.api.get(f"/job-executions/{id_}/cancel")
        self.svcd.advance(10)
        self.assertIn("login with *** done\n", self.log(id_).body.decode())

    def test_wrong_queries_are_refused(self) -> None:
        """With the way out."""
        id_ = self.execute(HANG)
        end = self.shown(id_)[2]
        for query, words in (
            (f"?offset={end + 1}", f"has only {end} bytes so far"),
            ("?offset=-1", "?offset: expected a whole number from 0"),
            ("?offset=0&wait=61", "?wait: expected a whole number from 0 to 60, got 61"),
            ("?wait=5", "?wait: needs ?offset"),
            ("?programs=true", "?programs: needs ?offset"),
            ("?offset=0&programs=some", "?programs: expected true or false, got some"),
            ("?offset=0&programs=true&programs=true", "?programs: given 2 times; give it once"),
            ("?offset=0&program=true", "did you mean programs?"),
            ("?ofset=5", "did you mean offset?"),
        ):
            self.assertIn(words, self.log(id_, query, 400).json["error_message"])


class ProgramTests(LogTests):
    """`programs=true`: the daemon leaves out the lines that no program of the job has written."""

    def programs(self, id_: str, offset: int = 0) -> tuple[str, int, int]:
        """Text, next offset, and the number of lines that were left out."""
        answer = self.log(id_, f"?offset={offset}&programs=true")
        end, left_out = (answer.headers[f"X-Log-{name}"] for name in ("Offset", "Left-Out"))
        return answer.body.decode(), int(end), int(left_out)

    def test_offsets_are_those_of_the_whole_text(self) -> None:
        """The engine's lines are left out of the answer and not of the log."""
        id_ = self.execute(HANG)
        _, _, end, _ = self.shown(id_)
        self.assertEqual(self.programs(id_), ("", end, 1))
        self.lines(id_).append("more")
        self.svcd.advance(3)
        self.assertEqual(self.programs(id_, end), ("", end + 5, 1))
        self.assertEqual(self.programs(id_, end + 5), ("", end + 5, 0))
        self.assertNotIn("X-Log-Left-Out", self.log(id_, "?offset=0").headers)
        self.assertEqual(
            self.log(id_, "?offset=0&programs=false").body, self.log(id_, "?offset=0").body
        )

    def test_the_end_of_the_log_is_shown(self) -> None:
        """Status and failure are no lines of the engine; HEAD has the same headers."""
        id_ = self.execute({"svcd.fake.outcome": "fail"})
        self.api.until_over(id_)
        self.svcd.advance(5)
        whole, _, end, _ = self.shown(id_)
        last = whole[whole.index("==> job execution ") :]
        self.assertEqual(self.programs(id_), (last, end, 1))
        path = f"/v1.1/{self.svcd.tenant}/job-executions/{id_}/log?offset=0&programs=true"
        head = self.svcd.call("HEAD", path).headers
        self.assertEqual((head["X-Log-Offset"], head["X-Log-Left-Out"]), (str(end), "1"))
        at = end - len(last.encode())
        self.assertEqual(self.programs(id_, at), (last, end, 0))


class EndTests(LogTests):
    def test_the_log_is_complete_soon_after_the_end(self) -> None:
        """Without a reader; it holds what the engine said, the status and the failure."""
        id_ = self.execute({"svcd.fake.outcome": "fail"})
        self.api.until_over(id_)
        self.svcd.advance(5)
        text, start, _, complete = self.shown(id_)
        self.assertEqual((start, complete), (0, True))
        self.assertIn("INFO submitted", text)
        self.assertRegex(text, rf"==> job execution {id_}: \w+ <==\n\w+ in .*: .*asked to fail")
        self.assertEqual(self.log(id_).body.decode(), text)

    def test_the_log_outlives_the_cluster(self) -> None:
        """With the same offsets."""
        id_ = self.execute()
        self.api.until_over(id_)
        self.svcd.advance(5)
        before = self.shown(id_)
        self.api.delete(f"/clusters/{self.cluster}")
        self.svcd.advance(60)
        self.api.get(f"/clusters/{self.cluster}", 404)
        self.assertEqual(self.shown(id_), before)
        self.assertEqual(self.log(id_).body.decode(), before[0])

    def test_a_cluster_that_is_deleted_meanwhile_is_named(self) -> None:
        """What was read before is kept, and the log says that the rest is missing."""
        id_ = self.execute(HANG)
        first = self.shown(id_)[0]
        self.api.delete(f"/clusters/{self.cluster}")
        self.svcd.advance(60)
        text, _, _, complete = self.shown(id_)
        self.assertTrue(complete)
        self.assertTrue(text.startswith(first))
        self.assertIn("the end of the log could not be read: the cluster is gone", text)

    def test_a_transient_cluster_goes_after_its_log_was_read(self) -> None:
        """The log is complete then."""
        id_, cluster = self.transient()
        self.api.cluster(cluster)
        self.svcd.advance(60)
        self.api.get(f"/clusters/{cluster}", 404)
        text, _, _, complete = self.shown(id_)
        self.assertTrue(complete)
        self.assertIn("INFO submitted", text)
        self.assertNotIn("could not be read", text)

    def test_a_failing_log_changes_no_result_and_holds_nothing_for_long(self) -> None:
        """The transient cluster goes after a minute, and the kept text says what is missing."""
        self.svcd.faults.add(where="engine", path="show=log", status=500)
        id_, cluster = self.transient()
        self.svcd.advance(30)
        self.assertEqual(self.api.cluster(cluster)["status"], "Active")
        self.svcd.advance(120)
        self.api.get(f"/clusters/{cluster}", 404)
        text, _, _, complete = self.shown(id_)
        self.assertTrue(complete)
        self.assertIn("[svcd: the end of the log could not be read: ", text)
        self.assertEqual(self.api.get(f"/job-executions/{id_}")["info"]["status"], "SUCCEEDED")

    def test_an_engine_without_logs_is_given_up(self) -> None:
        """After a quarter of an hour; the folder of the execution is gone before."""
        self.svcd.faults.add(where="engine", path="show=log", status=500)
        id_ = self.execute()
        self.api.until_over(id_)
        self.svcd.advance(600)
        self.assertFalse(self.shown(id_)[3])
        self.svcd.advance(400)
        self.assertTrue(self.shown(id_)[3])
        self.assertEqual(self.svcd.activity()["executions"], 0)

    def test_a_kill_between_end_and_log_loses_nothing(self) -> None:
        """The next daemon completes the log."""
        id_ = self.execute()
        self.api.until_over(id_)
        self.svcd.kill()
        self.svcd.restart()
        self.svcd.advance(10)
        text, _, _, complete = self.shown(id_)
        self.assertTrue(complete)
        self.assertEqual(text.count("INFO submitted"), 1)
        self.assertEqual(text.count("job execution"), 1)

    def test_an_execution_without_a_job_has_a_log_too(self) -> None:
        """Its status and its failure."""
        self.svcd.faults.add(where="engine", method="POST", path="/jobs", status=400)
        id_ = self.execute()
        self.api.until_over(id_)
        text, _, _, complete = self.shown(id_)
        self.assertTrue(complete)
        self.assertEqual(text.splitlines()[0], f"==> job execution {id_}: FAILED <==")
        self.assertIn("ENGINE_REFUSED in submit", text)

    def test_old_logs_give_way_to_new_ones(self) -> None:
        """Within `limits.log_bytes` of the tenant; offsets stay."""
        self.svcd.restart({"limits.log_bytes": "200"})
        first, second = self.execute(), self.execute()
        for id_ in (first, second):
            self.api.until_over(id_)
        self.svcd.advance(10)
        text, start, end, complete = self.shown(first)
        words = f"[svcd: {end} bytes are missing here, from byte 0 of this log on: "
        words += "svcd no longer keeps them]\n"
        self.assertEqual((text, start, complete), (words, end, True))
        self.assertEqual(self.log(first, "?offset=0").headers["X-Log-Gap"], "true")
        self.assertGreater(end, 100)
        self.assertIn("INFO submitted", self.shown(second)[0])

    def test_a_deleted_execution_leaves_no_log(self) -> None:
        id_ = self.execute()
        self.api.until_over(id_)
        self.svcd.advance(5)
        self.api.delete(f"/job-executions/{id_}")
        self.svcd.advance(30)
        rows = self.svcd._database._connection.execute("select count(*) from execution_logs")
        self.assertEqual(rows.fetchall(), [(0,)])
