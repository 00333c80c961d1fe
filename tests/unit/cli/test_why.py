"""`svcd why` on the shapes that the API answers, and how it finds its daemon."""

from __future__ import annotations

import email.utils
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import door, why
from svcd.cli.client import Api as Reader
from svcd.cli.door import Door, Given
from svcd.cli.exits import TIMED_OUT, CommandError, OutOfTime
from svcd.cli.http import Answer
from svcd.cli.times import duration, moment, seconds
from svcd.embedded.faults import Effect
from svcd.testing import FakeService, FakeServiceMixin
from tests.support.commands import Shown
from tests.support.fakes import Api
from tests.support.http import AnsweredBy


def reader(svcd: FakeService, tenant: str = "", token: str = "") -> Reader:
    """The command's client, over a FakeService. The site beside it would send the date."""

    def send(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        got = svcd.call(method, url, data=body, headers=headers)
        date = email.utils.formatdate(svcd.clock.seconds(), usegmt=True)
        return Answer(status=got.status, headers={"date": date}, body=got.body)

    door = Door(api=svcd.url, tenant=tenant or svcd.tenant, token=token)
    return Reader(door, AnsweredBy(send))


class CodeTests(FakeServiceMixin, SynchronousTestCase):
    """A failure code in place of a cluster or a job."""

    def test_small_letters(self) -> None:
        """They may name a cluster, so the clusters come first; a misspelled code is refused."""
        fake = self.fake_service()
        shown = Shown(fake, Path(self.mktemp()))
        self.addCleanup(shown.stop)
        said = shown.run("why", "forbidden")
        self.assertEqual((said.code, said.out), (0, shown.run("why", "FORBIDDEN").out), said)
        self.assertIn("FORBIDDEN: of a cluster", said.out)
        Api(fake).new_cluster(workers=1, name="forbidden")
        self.assertIn("cluster forbidden (", shown.run("why", "forbidden").out)
        self.assertEqual(shown.run("why", "forbiden").code, 3)
        data = shown.run("why", "forbidden", "-o", "json")
        self.assertEqual((data.code, data.out), (2, ""))
        self.assertIn("-o json: the history is a text; for data use svcd cluster", data.err)


class HistoryTests(FakeServiceMixin, SynchronousTestCase):
    """The lines that `svcd why` prints."""

    def setUp(self) -> None:
        self.svcd = self.fake_service({"embedded.boot_s": "5"})
        self.api = Api(self.svcd)

    def report(self, what: str, whole: bool = False) -> list[str]:
        return list(why.history(reader(self.svcd), what, whole))

    def test_cluster_that_is_being_made(self) -> None:
        """What is waited for, since when, until when; by its name too."""
        cluster_id = self.api.new_cluster(workers=1)
        self.svcd.advance(4)
        told = self.report("mine")
        self.assertEqual(told, self.report(cluster_id))
        self.assertEqual(
            told[:10],
            [
                f"cluster mine ({cluster_id}): Spawning",
                "  fake 0.1, master 0 of 1, worker 0 of 1",
                "  Spawning since 2026-01-01 00:00:00 UTC, for 4.0 s; "
                "svcd gives up at 2026-01-01 00:30:00 UTC, in 29 min 56 s",
                "    server mine-master-001 is BUILD",
                "    server mine-worker-001 is BUILD",
                "",
                "request: create with fake 0.1: master 1, worker 1, 2026-01-01 00:00:00 UTC",
                "  +     0.0 s  started Spawning (for at most 30 min 00 s)",
                "  +     0.0 s  done create security group",
                "  +     0.0 s  done create server mine-master-001, mine-worker-001",
            ],
        )

    def test_what_is_waited_for(self) -> None:
        """Which step on which machine, how often it was tried, since when, and until when.

        An execution tells what its cluster waits for.
        """
        self.svcd.faults.add(
            where="compute", method="POST", path="/servers$", effect=Effect.REFUSED
        )
        cluster_id = self.api.new_cluster(workers=1)
        execution = self.api.execute(self.api.new_job(), cluster_id, self.api.new_sources())
        self.svcd.advance(200)
        told = "\n".join(self.report("mine"))
        trouble = "    create server on mine-worker-001: CLOUD_UNAVAILABLE: "
        self.assertIn(trouble, told)
        self.assertIn("(10 times so far), ", told)
        self.assertIn("retry create server mine-master-001, mine-worker-001 (attempt 2)", told)
        told = "\n".join(self.report(execution))
        self.assertIn(f"job execution {execution}: Pending", told)
        self.assertIn("  waits for the cluster to become Active; it is Spawning", told)
        self.assertIn(trouble, told)
        self.svcd.faults.clear()
        self.api.until_status(cluster_id, "Active")
        self.svcd.faults.add(where="engine", effect=Effect.REFUSED)
        self.svcd.advance(60)
        told = "\n".join(self.report(execution))
        self.assertRegex(told, r"waits in step workflow since 2026-01-01 00:\d\d:\d\d UTC, for 5")
        self.assertIn("; svcd gives up at ", told)
        self.assertIn("    ENGINE_UNREACHABLE: ", told)

    def test_requests_before_are_one_line_each(self) -> None:
        """With --all their events are shown too. Waits have the words of people."""
        cluster_id = self.api.active_cluster(workers=1)
        sizes = [{"name": "worker", "count": 2}]
        self.api.put(f"/clusters/{cluster_id}", {"resize_node_groups": sizes})
        self.api.until_status(cluster_id, "Active")
        told = self.report(cluster_id)
        before = told[told.index("earlier requests (--all shows their events)") + 1]
        self.assertRegex(before, r"request: create with fake 0.1: master 1, worker 1: done$")
        whole = self.report(cluster_id, whole=True)
        found = [[line for line in lines if "request: " in line[:9]] for lines in (told, whole)]
        self.assertEqual([len(lines) for lines in found], [1, 2])
        self.assertIn("request: resize: worker 1 -> 2", "\n".join(told))

    def test_cluster_that_failed(self) -> None:
        """What failed where, what the code means, what to do, and what is left."""
        self.svcd.faults.add(
            where="ssh", path="(?s)11 .*cp processes running", status=1, body="cp: no space left"
        )
        cluster_id = self.api.new_cluster(workers=1)
        self.api.until_status(cluster_id, "Error")
        told = self.report(cluster_id)
        at = told.index("failure")
        self.assertEqual(
            told[at + 1],
            "  COMMAND_FAILED: start on mine-worker-001: start datanode, nodemanager: "
            "exit code 1: cp: no space left",
        )
        self.assertIn("  machine: mine-worker-001", told)
        self.assertIn(
            "  COMMAND_FAILED means: A command of the distribution failed on a machine.", told
        )
        self.assertNotIn("what to do", "\n".join(told))
        (failed,) = [line for line in told if "FAILED start" in line]
        self.assertEqual(
            failed,
            "  +     5.1 s  FAILED start mine-worker-001: COMMAND_FAILED: start datanode, "
            "nodemanager: exit code 1: cp: no space left",
        )
        left = told[told.index("machines and their remaining objects") + 1 :]
        self.assertEqual(len(left), 2)
        self.assertRegex(
            left[1], r"  mine-worker-001: server \S+ ACTIVE, 127.1.0.11, last event: start f"
        )

    def test_execution_that_failed(self) -> None:
        """Cluster, times, the engine's word, the action's error, the logs; by the job's name."""
        cluster_id = self.api.active_cluster()
        configs = {
            "svcd.fake.outcome": "fail",
            "svcd.fake.error": "JA018: Output directory hdfs://x/out already exists",
        }
        job = self.api.new_job()
        execution = self.api.execute(job, cluster_id, self.api.new_sources(), configs)
        workflow = self.api.until_over(execution)["workflow_job_id"]
        told = self.report("count")
        self.assertEqual(told, self.report(execution))
        base = f"{self.svcd.url}/v1.1/demo/job-executions/{execution}/log"
        for line in (
            f"job execution {execution}: failed",
            f"  of job count (Pig, {job})",
            f"  on cluster mine ({cluster_id}, Active)",
            "failure: OUTPUT_EXISTS in step job-node",
            "  what to do: use an output that does not exist yet",
            f"workflow engine: {workflow} is KILLED",
            "  action job-node (pig): ERROR, application_1767225600000_0001 FAILED/KILLED",
            "    started at 2026-01-01 00:00:06 UTC",
            "    JA018 JA018: Output directory hdfs://x/out already exists",
            f"  {base}",
        ):
            self.assertIn(line, told)
        self.assertNotIn("demo-password-of-a-source", "\n".join(told))

    def test_cluster_that_is_gone(self) -> None:
        """Its executions are listed; without an execution nothing is found."""
        cluster_id = self.api.active_cluster()
        sources, job = self.api.new_sources(), self.api.new_job()
        hang = {"svcd.fake.outcome": "hang"}
        execution = self.api.execute(job, cluster_id, sources, hang)
        self.svcd.advance(30)
        self.api.delete(f"/clusters/{cluster_id}")
        self.svcd.advance(60)
        ended = self.api.get(f"/job-executions/{execution}")["end_time"]
        self.assertEqual(
            self.report(cluster_id),
            [
                f"cluster {cluster_id} was deleted, and its events with it",
                "",
                "job executions that ended with the cluster",
                f"  {execution} of job {job}: killed, ended {ended}",
                "  `svcd why EXECUTION_ID` shows the history of an execution",
            ],
        )
        told = self.report(execution)
        self.assertIn("failure: CLUSTER_GONE in step cluster", told)
        self.assertIn(f"  cluster {cluster_id} was deleted", told)
        unused = self.api.new_cluster(name="unused")
        self.api.delete(f"/clusters/{unused}")
        self.svcd.advance(60)
        self.assertRaises(why.NotThere, self.report, unused)

    def test_beginnings(self) -> None:
        """Of a cluster's name or id, and of an execution's id; exact names come first."""
        cluster_id = self.api.active_cluster()
        job, sources = self.api.new_job(), self.api.new_sources()
        execution = self.api.execute(job, cluster_id, sources)
        self.api.until_over(execution)
        name = self.api.get(f"/jobs/{job}")["job"]["name"]
        self.api.new_cluster(name=f"{name}-cluster")
        for what, id_ in (
            ("min", cluster_id),
            (cluster_id[:12], cluster_id),
            (execution[:12], execution),
            (name, execution),
        ):
            self.assertEqual(self.report(what), self.report(id_))
        self.api.new_cluster(name="minute")
        with self.assertRaisesRegex(CommandError, "'min' is the beginning of several clusters"):
            self.report("min")
        with self.assertRaisesRegex(why.NotThere, "has no cluster and no job execution 'a/b"):
            self.report("a/b ?")

    def test_other_tenant_is_refused(self) -> None:
        """The daemon's refusal is passed on, with what to do."""
        svcd = self.fake_service({"auth.mode": "keystone"})
        with self.assertRaises(CommandError) as raised:
            list(why.history(reader(svcd, "alpha"), "mine"))
        self.assertEqual(
            str(raised.exception),
            "the daemon accepts only requests with a login; set OS_TOKEN, or OS_AUTH_URL,"
            " OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME",
        )
        token = svcd.token("bob", project="beta")
        with self.assertRaisesRegex(CommandError, "alpha"):
            list(why.history(reader(svcd, "alpha", token), "mine"))

    def test_long_history_is_cut_in_the_middle(self) -> None:
        """The beginning and the end are what matters."""
        cluster_id = self.api.active_cluster()
        events = self.api.get(f"/clusters/{cluster_id}/events")["events"]
        many = [{**events[-1], "step": f"step {n}"} for n in range(500)]
        cluster = self.api.cluster(cluster_id)
        story = self.api.get(f"/clusters/{cluster_id}/story")["story"]
        told = list(why.of_cluster(cluster, story, [events[0], *many], None))
        self.assertLess(len(told), 135)
        self.assertIn("    … 380 lines left out (--all shows them)", told)
        self.assertTrue(any(line.endswith("done step 499") for line in told))


class FindTests(SynchronousTestCase):
    """Which daemon, which tenant, which token."""

    def setUp(self) -> None:
        self.state = Path(self.mktemp())
        self.state.mkdir()
        self.asked: list[tuple[str, str, Any]] = []
        self.answer = Answer(status=500, headers={}, body=b"")

    def send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        self.asked.append((method, url, body and json.loads(body)))
        return self.answer

    def logs_in(self, project: str = "p-1") -> None:
        body = json.dumps({"token": {"project": {"id": project}}}).encode()
        self.answer = Answer(status=201, headers={"x-subject-token": "tok"}, body=body)

    def find(self, environment: Mapping[str, str] | None = None, **given: str) -> Door:
        options = Given(state_dir=self.state, **given)
        return door.find(options, environment or {}, AnsweredBy(self.send)).door

    def write(self, **more: str) -> None:
        content = {"api": "http://127.0.0.1:1", **more}
        (self.state / "endpoints.json").write_text(json.dumps(content))

    def refused(self, environment: Mapping[str, str], **given: str) -> str:
        with self.assertRaises(CommandError) as raised:
            self.find(environment, **given)
        self.assertNotIn("s3cret", str(raised.exception))
        return str(raised.exception)

    def test_what_is_missing(self) -> None:
        """The daemon, the project, the user, or the right password: each with what to do."""
        told = self.refused({})
        self.assertIn(f"no endpoints.json in {self.state.absolute()}", told)
        self.assertIn("start the daemon (make run, or twistd -n svcd)", told)
        self.assertIn("--project ID", self.refused({}, api="http://a"))
        login = {"OS_AUTH_URL": "https://id/v3", "OS_PASSWORD": "s3cret", "OS_PROJECT_NAME": "p"}
        told = self.refused(login, api="http://a")
        self.assertRegex(told, "no user is given .*: set OS_USERNAME")
        self.answer = self.answer._replace(status=401)
        told = self.refused({**login, "OS_USERNAME": "a"}, api="http://a")
        refusal = "the login at https://id/v3/auth/tokens was refused with the status 401"
        self.assertIn(refusal, told)

    def test_embedded_daemon(self) -> None:
        """URL, tenant and login from endpoints.json; without tokens others may be let in, too."""
        self.write(identity="http://c/v3", username="demo", password="pw", tenant="demo")
        found = self.find(tenant="other")
        self.assertEqual((found.tenant, found.token), ("other", ""))
        self.logs_in("demo")
        self.assertEqual(
            self.find(),
            Door(api="http://127.0.0.1:1", tenant="demo", token="tok", auth_url="http://c/v3"),
        )
        self.assertEqual(self.asked[-1][2]["auth"]["scope"], {"project": {"id": "demo"}})

    def test_token(self) -> None:
        """Of the environment, or of the flags, which win; it is not shown, and nobody is asked."""
        environment = {"OS_TOKEN": "t", "OS_PROJECT_ID": "p"}
        found = self.find(environment, api="http://a/")
        self.assertEqual((found.base, found.token), ("http://a/v1.1/p", "t"))
        self.assertNotIn("t'", repr(found))
        found = self.find(environment, api="a", token="u", tenant="q")
        self.assertEqual((found.tenant, found.token, self.asked), ("q", "u", []))

    def test_login(self) -> None:
        """By a password or an application credential; the tenant is the token's project."""
        self.logs_in()
        user = {"password": "pw", "name": "ann", "domain": {"name": "Staff"}}
        scope = {"project": {"name": "alpha", "domain": {"id": "d-1"}}}
        password = {"identity": {"methods": ["password"], "password": {"user": user}}}
        kind, credential = "application_credential", {"id": "i", "secret": "s"}
        for environment, auth in (
            (
                {
                    "OS_USERNAME": "ann", "OS_PASSWORD": "pw", "OS_PROJECT_NAME": "alpha",
                    "OS_USER_DOMAIN_NAME": "Staff", "OS_PROJECT_DOMAIN_ID": "d-1",
                },
                {**password, "scope": scope},
            ),
            (
                {
                    "OS_APPLICATION_CREDENTIAL_ID": "i",
                    "OS_APPLICATION_CREDENTIAL_SECRET": "s",
                },
                {"identity": {"methods": [kind], kind: credential}},
            ),
        ):  # fmt: skip
            for url in ("https://id:5000", "https://id:5000/v3/"):
                found = self.find({"OS_AUTH_URL": url, **environment}, api="http://a")
                self.assertEqual((found.tenant, found.token), ("p-1", "tok"))
                sent = ("POST", "https://id:5000/v3/auth/tokens", {"auth": auth})
                self.assertEqual(self.asked.pop(), sent)

    def test_the_time_limit_ends_the_embedded_login(self) -> None:
        """It is no refusal of the login, after which the command would go on without a limit."""
        self.write(identity="http://c/v3", username="demo", password="pw", tenant="demo")

        def late(*_: object) -> Answer:
            raise OutOfTime("--timeout of 1 s ran out", TIMED_OUT)

        given = Given(state_dir=self.state)
        with self.assertRaises(OutOfTime):
            door.find(given, {}, AnsweredBy(late))


class TimeTests(SynchronousTestCase):
    def test_durations(self) -> None:
        told = [duration(s) for s in (-1, 0.44, 12.4, 185, 7620, 100_000, None)]
        self.assertEqual(
            told, ["0.0 s", "0.4 s", "12 s", "3 min 05 s", "2 h 07 min", "1 d 03 h", "some time"]
        )

    def test_stamps(self) -> None:
        """Both forms of the wire; nonsense is nothing."""
        for text in ("2026-01-01 00:00:01.500000", "2026-01-01T00:00:01.500000Z"):
            self.assertEqual(seconds(text), 1_767_225_601.5)
        self.assertEqual([seconds(""), seconds(None), seconds("soon")], [None, None, None])
        self.assertEqual(moment(1_767_225_601.5), "2026-01-01 00:00:01 UTC")
