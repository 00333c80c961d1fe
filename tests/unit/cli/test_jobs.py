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
    def test_list(self) -> None:
        """A table for people; the API's JSON or ids for scripts; filters by the words of people."""
        empty = "there is no job execution: svcd run FILE --on CLUSTER makes one\n"
        self.assertEqual(self.shown.run("job", "ls").out, empty)
        self.pig()
        self.pig("-c", "svcd.fake.outcome=fail")
        first, second = self.executions()
        head, row, _ = self.shown.run("job", "ls").out.splitlines()
        self.assertTrue(head.startswith("ID "))
        self.assertIn("count  SUCCEEDED", row)
        self.assertEqual(self.shown.body("job", "ls"), {"job_executions": [first, second]})
        names = self.shown.run("job", "ls", "-o", "name").out
        self.assertEqual(names, f"{first['id']}\n{second['id']}\n")
        for status, rows in (
            ("SUCCEEDED", [first]),
            ("failed", [second]),
            ("KILLED", [second]),
            ("cancelled", []),
        ):
            said = self.shown.body("job", "ls", "--status", status)
            self.assertEqual(said, {"job_executions": rows}, status)
        self.assertIn("count  failed  ", self.shown.run("job", "ls", "--status", "failed").out)
        none = self.shown.run("job", "ls", "--status", "suspended")
        self.assertIn("there is no such job execution; svcd job ls shows all", none.out + none.err)
        self.assertEqual(jobs._STATUSES, tuple(each.value for each in ExecutionStatus))
        self.assertIn("'RUNING' is not one of", self.refused(2, "job", "ls", "--status", "RUNING"))
        self.done("cluster", "rm", "first", "--yes", "--wait")
        self.assertIn("  (deleted)  ", self.shown.run("job", "ls").out)

    def test_the_name_of_a_job_means_the_latest_content_of_its_file(self) -> None:
        """A corrected program is another job; its name, its beginning and the list follow it."""
        self.pig("-c", "svcd.fake.outcome=fail")
        self.pig(content="-- corrected\n")
        failed, corrected = self.executions()
        for name, execution in (
            *((name, corrected) for name in ("count", "count.pig", "cou", corrected["job_id"])),
            (failed["job_id"], failed),
            (failed["id"], failed),
        ):
            self.assertEqual(self.shown.body("job", "show", name), execution, name)
        for command in (("why",), ("job", "why")):
            told = self.done(*command, "count").out
            self.assertIn(f"job execution {corrected['id']}: ", told)
        for name, rows in (("count", [failed, corrected]), (failed["job_id"], [failed])):
            found = self.shown.body("job", "ls", "--job", name)
            self.assertEqual(found, {"job_executions": rows})
        self.pig()
        self.assertEqual(self.shown.body("job", "show", "count"), self.executions()[2])
        told = self.refused(3, "job", "show", "cuont")
        self.assertIn("has no job 'cuont'; did you mean count?", told)

    def test_show_names_what_was_given(self) -> None:
        """The data and values of the execution follow its row, by the options of svcd run."""
        self.pig("-c", "a.b=1=2", "-p", "DAY=", "--", "-x", "--on")
        lines = self.shown.run("job", "show", "count").out.splitlines()
        given = (
            ("GIVEN", "VALUE"), ("--input", "hdfs:///in"), ("--output", "hdfs:///out"),
            ("-c", "a.b=1=2"), ("-p", "DAY="), ("argument", "-x"), ("argument", "--on"),
        )  # fmt: skip
        self.assertEqual(lines[2:], ["", *(f"{name:8}  {value}" for name, value in given)])
        values = {"configs": {"a.b": "1=2"}, "params": {"DAY": ""}, "args": ["-x", "--on"]}
        self.assertEqual(self.executions()[0]["job_configs"], values)

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
            self.assertRegex(self.refused(code, "job", "logs", "count"), r"\Asvcd job logs: ")

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

    def test_cancel_rm_and_forget(self) -> None:
        """A cancelled job is shown so; rm leaves the job itself, which goes last. Both ask."""
        self.pig("--detach", "-c", "svcd.fake.run_s=600")
        said = self.done("job", "cancel", "count")
        self.assertRegex(said.out, r"\AID .*\n\S+ +count +cancelled ")
        self.assertIn(" is cancelled\n", said.err)
        self.assertEqual(self.executions()[0]["info"]["status"], "KILLED")
        self.assertIn("execution", self.refused(4, "job", "forget", "count", "--yes"))
        self.assertIn("needs --yes", self.refused(4, "job", "rm", "count"))
        self.done("job", "rm", "count", "--yes")
        self.assertEqual((self.executions(), len(self.api.get("/jobs")["jobs"])), ([], 1))
        text = "job count has no execution: it has not run, or its executions are deleted"
        self.assertIn(text, self.refused(3, "job", "show", "count"))
        told = self.refused(4, "job", "forget", "count")
        self.assertIn("delete job count needs --yes", told)
        said = self.done("job", "forget", "count", "--yes")
        self.assertEqual(said.err, "deleted job count\n")
        self.assertEqual(self.api.get("/jobs")["jobs"], [])
        self.assertEqual(len(self.api.get("/job-binaries")["binaries"]), 1)

    def test_what_edits_leave_behind(self) -> None:
        """Unused jobs go, then unused binaries; those of an execution stay for its rerun."""
        for content in ("1", "2", "3", "4"):
            self.pig("--detach", content=content)
        ids = [each["id"] for each in self.executions()]
        self.done("job", "rm", *ids[:2], ids[3], "--yes")
        for kind in ("job forget", "binary rm"):
            self.assertIn("s, or --unused\n", self.refused(2, *kind.split()))
            self.refused(2, *kind.split(), "x", "--unused")
        self.assertEqual(self.done("binary", "rm", "--unused", "--yes").err, "")
        said = self.refused(4, "job", "forget", "--unused")
        self.assertRegex(said, "delete job count-[0-9a-f]{12}, count-[0-9a-f]{12} needs")
        self.done("job", "forget", "--unused", "--yes")
        self.done("binary", "rm", "--unused", "--yes")
        for path, key in (("jobs",) * 2, ("job-binaries", "binaries")):
            self.assertEqual(len(self.api.get(f"/{path}")[key]), 2)
        self.assertEqual(len(self.api.get("/job-binary-internals")["binaries"]), 2)
        self.done("job", "rerun", "count.pig")

    def test_open(self) -> None:
        """The page of a cluster or an execution, by a name or the beginning of an id."""
        self.pig()
        (execution,) = self.executions()
        run = f"runs/{execution['id']}"
        for what, page in (
            ("count", run),
            (execution["id"][:13], run),
            ("fir", f"clusters/{self.cluster_id}"),
        ):
            said = self.done("open", what)
            self.assertEqual(said.out, f"{self.shown.url}/console/#/{page}\n")
        told = self.refused(3, "open", "frist")
        self.assertIn("has no cluster 'frist'; did you mean first?", told)

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
        """The same job, data and configuration once more, or another output: a URL or a source."""
        self.pig("-c", "a=b")
        self.done("job", "rerun", "count")
        first, second = self.executions()
        for name in ("job_id", "cluster_id", "input_id", "output_id", "job_configs"):
            self.assertEqual(first[name], second[name])
        self.done("job", "rerun", "count", "--output", "hdfs:///again", "-o", "json")
        again = self.executions()[-1]
        source = self.api.get(f"/data-sources/{again['output_id']}")["data_source"]
        self.assertEqual(source["url"], "hdfs:///again")
        for name in (source["name"], source["id"]):
            self.done("job", "rerun", "count", "--output", name, "--detach")
            self.assertEqual(self.executions()[-1]["output_id"], source["id"])
        told = self.refused(2, "job", "rerun", "count", "--output", "s3://bucket/x")
        self.assertIn("expected hdfs:///PATH or objstore://CONTAINER/PATH", told)


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
