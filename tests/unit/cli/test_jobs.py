"""`svcd job` against the in-process fake behind a socket."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import client, jobs
from svcd.cli.exits import CommandError
from svcd.cli.job_files import digest_of
from svcd.cli.jobs import named
from svcd.model.job import ExecutionStatus
from tests.support.commands import RunCase


class JobTests(RunCase):
    def test_list_and_show(self) -> None:
        """A table for people; the API's JSON for scripts; the name of a job is its latest run."""
        empty = self.shown.run("job", "ls")
        self.assertEqual(
            empty.out, "there is no job execution: svcd run FILE --on CLUSTER makes one\n"
        )
        self.pig()
        self.pig("-c", "svcd.fake.outcome=fail")
        first, second = self.executions()
        table = self.shown.run("job", "ls").out.splitlines()
        self.assertTrue(table[0].startswith("ID "))
        self.assertIn("count  SUCCEEDED", table[1])
        self.assertEqual(len(table), 3)
        self.assertEqual(self.shown.body("job", "ls"), {"job_executions": [first, second]})
        for name in ("count", "cou", second["job_id"]):
            self.assertEqual(self.shown.body("job", "show", name), second, name)
        self.assertEqual(self.shown.body("job", "show", first["id"]), first)
        self.assertEqual(
            self.shown.body("job", "ls", "--status", "SUCCEEDED"), {"job_executions": [first]}
        )
        self.assertEqual(
            self.shown.run("job", "ls", "-o", "name").out, f"{first['id']}\n{second['id']}\n"
        )
        none = self.shown.run("job", "ls", "--status", "suspended")
        self.assertIn("there is no such job execution; svcd job ls shows all", none.out + none.err)
        self.assertEqual(jobs._STATUSES, tuple(each.value for each in ExecutionStatus))
        for status, rows in (
            ("failed", [second]),
            ("FAILED", [second]),
            ("KILLED", [second]),
            ("cancelled", []),
        ):
            said = self.shown.body("job", "ls", "--status", status)
            self.assertEqual(said, {"job_executions": rows}, status)
        self.assertIn("count  failed  ", self.shown.run("job", "ls", "--status", "failed").out)
        wrong = self.shown.run("job", "ls", "--status", "RUNING")
        self.assertIn("'RUNING' is not one of", wrong.err)

    def test_the_name_of_a_job_means_the_latest_content_of_its_file(self) -> None:
        """A corrected program is another job; its name, its beginning and the list follow it."""
        self.pig("-c", "svcd.fake.outcome=fail")
        self.pig(content="-- corrected\n")
        failed, corrected = self.executions()
        self.assertNotEqual(failed["job_id"], corrected["job_id"])
        for name in ("count", "count.pig", "cou", corrected["job_id"]):
            self.assertEqual(self.shown.body("job", "show", name), corrected, name)
        self.assertEqual(self.shown.body("job", "show", failed["job_id"]), failed)
        self.assertIn(f"job execution {corrected['id']}: ", self.shown.run("why", "count").out)
        both = {"job_executions": [failed, corrected]}
        self.assertEqual(self.shown.body("job", "ls", "--job", "count"), both)
        of_one = self.shown.body("job", "ls", "--job", failed["job_id"])
        self.assertEqual(of_one, {"job_executions": [failed]})
        self.pig()
        self.assertEqual(self.shown.body("job", "show", "count"), self.executions()[2])

    def test_show_names_what_was_given(self) -> None:
        """The data and values of the execution follow its row, by the options of svcd run."""
        self.pig("-c", "a=b", "-p", "DAY=1", "--", "x y")
        lines = self.shown.run("job", "show", "count").out.splitlines()
        self.assertEqual(
            lines[2:],
            [
                "",
                "GIVEN     VALUE",
                "--input   hdfs:///in",
                "--output  hdfs:///out",
                "-c        a=b",
                "-p        DAY=1",
                "argument  x y",
            ],
        )

    def test_deleted_cluster_has_no_id_in_the_table(self) -> None:
        """Its id, which no command takes any more, is in the JSON alone."""
        self.pig()
        self.assertEqual(self.shown.run("cluster", "rm", "first", "--yes", "--wait").code, 0)
        self.assertIn("  (deleted)  ", self.shown.run("job", "ls").out)

    def test_logs(self) -> None:
        """Once, and until the end with its result."""
        self.pig("-c", "svcd.fake.outcome=fail")
        all_of_it = self.shown.run("job", "logs", "--all", "count")
        self.assertEqual((all_of_it.code, all_of_it.err), (0, ""), all_of_it)
        self.assertIn("INFO submitted", all_of_it.out)
        id_ = self.executions()[0]["id"]
        for options, code in (((), 0), (("-f",), 1)):
            said = self.shown.run("job", "logs", *options, "count")
            self.assertEqual(said.code, code)
            self.assertNotIn("INFO submitted", said.out)
            self.assertIn("asked to fail", said.out)
            self.assertIn(
                f"left out: 1 line of Oozie, Hadoop, Pig, Spark and Java;"
                f" all: svcd job logs --all {id_}\n",
                said.err,
            )

    def test_logs_that_are_refused(self) -> None:
        """The exit code and the line say so."""
        self.pig()
        for status, code in ((403, 4), (404, 3), (500, 5)):
            self.shown.before = lambda method, path, status=status: (
                status if "/log?" in path else None
            )
            said = self.shown.run("job", "logs", "count")
            self.assertEqual((said.code, said.out, said.err.count("\n")), (code, "", 1), said)
            self.assertRegex(said.err, r"\Asvcd job logs: ")

    def test_overloaded_api_and_several_clusters(self) -> None:
        """The one that is accepted is named, and the one that is not."""
        other = self.api.new_cluster(name="second")
        self.patch(client, "_DELETE_S", 0.0)
        self.shown.before = lambda method, path: (
            503 if method == "DELETE" and path.endswith(other) else None
        )
        said = self.shown.run("cluster", "rm", "first", "second", "--yes")
        self.assertEqual((said.code, said.err.count("\n")), (5, 2), said)
        self.assertIn("cluster first is being deleted\n", said.err)
        self.assertIn("svcd cluster rm: cluster second is not deleted: ", said.err)

    def test_cancel_and_rm(self) -> None:
        """A cancelled job is shown so; rm asks, and leaves the job itself."""
        self.pig("--detach", "-c", "svcd.fake.run_s=600")
        said = self.shown.run("job", "cancel", "count")
        self.assertEqual(said.code, 0, said)
        self.assertRegex(said.out, r"\AID .*\n\S+ +count +cancelled ")
        self.assertIn(" is cancelled\n", said.err)
        self.assertEqual(self.executions()[0]["info"]["status"], "KILLED")
        refused = self.shown.run("job", "rm", "count")
        self.assertEqual((refused.code, refused.err.count("\n")), (4, 1), refused)
        self.assertIn("needs --yes", refused.err)
        self.assertEqual(self.shown.run("job", "rm", "count", "--yes").code, 0)
        self.assertEqual(self.executions(), [])
        self.assertEqual(len(self.api.get("/jobs")["jobs"]), 1)
        said = self.shown.run("job", "show", "count")
        self.assertEqual(said.code, 3)
        self.assertIn(
            "job count has no execution: it has not run, or its executions are deleted", said.err
        )

    def test_forget(self) -> None:
        """A job goes when it has no execution left; the question comes first."""
        self.pig("--detach")
        refused = self.shown.run("job", "forget", "count")
        self.assertEqual((refused.code, refused.err.count("\n")), (4, 1), refused)
        self.assertIn("delete job count needs --yes", refused.err)
        refused = self.shown.run("job", "forget", "count", "--yes")
        self.assertEqual((refused.code, refused.err.count("\n")), (4, 1), refused)
        self.assertIn("execution", refused.err)
        self.assertEqual(self.shown.run("job", "rm", "count", "--yes").code, 0)
        said = self.shown.run("job", "forget", "count", "--yes")
        self.assertEqual((said.code, said.err), (0, "deleted job count\n"), said)
        self.assertEqual(self.api.get("/jobs")["jobs"], [])
        self.assertEqual(len(self.api.get("/job-binaries")["binaries"]), 1)

    def test_what_edits_leave_behind(self) -> None:
        """Unused jobs go, then unused binaries; those of an execution stay for its rerun."""
        for content in ("1", "2", "3", "4"):
            self.pig("--detach", content=content)
        ids = [each["id"] for each in self.executions()]
        self.assertEqual(self.shown.run("job", "rm", *ids[:2], ids[3], "--yes").code, 0)
        for kind in ("job forget", "binary rm"):
            said = self.shown.run(*kind.split())
            self.assertEqual((said.code, said.err.count("\n")), (2, 1), said)
            self.assertIn("s, or --unused\n", said.err)
            said = self.shown.run(*kind.split(), "x", "--unused")
            self.assertEqual(said.code, 2, said)
        self.assertEqual(self.shown.run("binary", "rm", "--unused", "--yes").err, "")
        said = self.shown.run("job", "forget", "--unused")
        self.assertRegex(said.err, "delete job count-[0-9a-f]{12}, count-[0-9a-f]{12} needs")
        self.assertEqual(self.shown.run("job", "forget", "--unused", "--yes").code, 0)
        self.assertEqual(self.shown.run("binary", "rm", "--unused", "--yes").code, 0)
        self.assertEqual(len(self.api.get("/jobs")["jobs"]), 2)
        self.assertEqual(len(self.api.get("/job-binaries")["binaries"]), 2)
        self.assertEqual(len(self.api.get("/job-binary-internals")["binaries"]), 2)
        self.assertEqual(self.shown.run("job", "rerun", "count.pig").code, 0)

    def test_open(self) -> None:
        """The page of a cluster or an execution, by a name or the beginning of an id."""
        self.pig()
        (execution,) = self.executions()
        for what in ("count", execution["id"][:13], execution["id"]):
            said = self.shown.run("open", what)
            self.assertEqual(said.out, f"{self.shown.url}/console/#/runs/{execution['id']}\n", said)
        said = self.shown.run("open", "fir")
        self.assertEqual(said.out, f"{self.shown.url}/console/#/clusters/{self.cluster_id}\n", said)
        said = self.shown.run("open", "frist")
        self.assertEqual((said.code, said.err.count("\n")), (3, 1), said)
        self.assertIn("has no cluster 'frist'; did you mean first?", said.err)

    def test_status(self) -> None:
        """The running job by its name; each list is read in pages."""
        self.pig("-c", "svcd.fake.outcome=fail")
        self.pig("--detach", "-c", "svcd.fake.outcome=hang")
        _, running = self.executions()
        self.shown.asked.clear()
        said = self.shown.run("status")
        self.assertIn("jobs      1 under way\n  count  ", said.out)
        asked = [path for _, path, _ in self.shown.asked if "/job" in path]
        self.assertEqual(
            [path for path in asked if "limit=" not in path],
            [f"/v1.1/{self.fake.tenant}/jobs/{running['job_id']}"],
        )

    def test_status_is_read_again_after_a_fault(self) -> None:
        """A daemon that cannot ask the engine once is asked again; a reader is not."""
        for status, again in ((500, True), (403, False)):
            calls: list[str] = []

            def broken(
                _method: str, path: str, calls: list[str] = calls, status: int = status
            ) -> int | None:
                if not path.endswith("/refresh-status"):
                    return None
                calls.append(path)
                return status if len(calls) == 1 else None

            self.shown.before = broken
            self.assertEqual(self.pig().code, 0)
            self.assertEqual(len(calls) > 1, again, calls)

    def test_rerun(self) -> None:
        """The same job, data and configuration once more."""
        self.pig("-c", "a=b")
        said = self.shown.run("job", "rerun", "count")
        self.assertEqual(said.code, 0, said)
        first, second = self.executions()
        for name in ("job_id", "cluster_id", "input_id", "output_id", "job_configs"):
            self.assertEqual(first[name], second[name])

    def test_rerun_with_another_output(self) -> None:
        """A URL, for which a data source is made, or a data source."""
        self.pig()
        said = self.shown.run("job", "rerun", "count", "--output", "hdfs:///again", "-o", "json")
        self.assertEqual(said.code, 0, said)
        again = self.executions()[1]
        source = self.api.get(f"/data-sources/{again['output_id']}")["data_source"]
        self.assertEqual(source["url"], "hdfs:///again")
        for name in (source["name"], source["id"]):
            said = self.shown.run("job", "rerun", "count", "--output", name, "--detach")
            self.assertEqual(said.code, 0, said)
            self.assertEqual(self.executions()[-1]["output_id"], source["id"])
        said = self.shown.run("job", "rerun", "count", "--output", "s3://bucket/x")
        self.assertEqual(said.code, 2, said)
        self.assertIn("expected hdfs:///PATH or objstore://CONTAINER/PATH", said.err)

    def test_why(self) -> None:
        """The history of the latest run."""
        self.pig()
        said = self.shown.run("job", "why", "count")
        self.assertIn("of job count (Pig, ", said.out)

    def test_unknown(self) -> None:
        """With the nearest name of a job."""
        self.pig()
        said = self.shown.run("job", "show", "cuont")
        self.assertEqual((said.code, said.err.count("\n")), (3, 1), said)
        self.assertIn("has no job 'cuont'; did you mean count?", said.err)


class NamedTests(SynchronousTestCase):
    def job(self, name: str, main: str) -> dict[str, object]:
        mains = [{"id": main, "name": f"{main}.pig"}]
        return {"id": f"id-{main}", "name": name, "type": "Pig", "mains": mains}

    def test_contents_of_a_file_are_one_job(self) -> None:
        """Other jobs whose names begin alike are not; a beginning of two files is refused."""
        first, second = self.job("top", "1"), self.job("", "2")
        second["name"] = f"top-{digest_of(['Pig', '2', ''])}"
        alike, other = self.job("top-0123456789ab", "3"), self.job("total", "4")
        known = [first, alike, second, other]
        self.assertEqual(named(known, "top", "demo"), [first, second])
        self.assertEqual(named([first, second, other], "top-", "demo"), [second])
        self.assertEqual(named([second, first], "to", "demo"), [second, first])
        self.assertEqual(named([second], "top", "demo"), [second])
        self.assertEqual(named(known, "id-4", "demo"), [other])
        file = {**other, "mains": [{"id": "5", "name": "a-b.pig", "file_name": "a b.pig"}]}
        self.assertEqual(named([first, file], "a b.pig", "demo"), [file])
        for what in ("to", "x"):
            with self.assertRaises(CommandError):
                named(known, what, "demo")
