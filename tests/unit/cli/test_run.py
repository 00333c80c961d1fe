"""`svcd run` and `svcd job` against the in-process fake behind a socket."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import IO, Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import api as client
from svcd.cli import followed_execution, job_data
from svcd.cli.exits import OutOfTime
from svcd.testing import FakeServiceMixin
from tests.support.commands import Said, Shown
from tests.support.fakes import Api

PLACES = ("--input", "hdfs:///in", "--output", "hdfs:///out")


class RunCase(FakeServiceMixin, SynchronousTestCase):
    """A cluster `first` that runs jobs, and a folder for files."""

    def setUp(self) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "SVCD_"))}
        self.patch(os, "environ", kept)
        self.patch(followed_execution, "_LOOK_S", 0.0)
        self.fake = self.fake_service()
        self.api = Api(self.fake)
        self.cluster_id = self.api.active_cluster("first")
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.shown = Shown(self.fake, self.folder / "state")
        self.addCleanup(self.shown.stop)

    def file(self, name: str, content: str | bytes = "-- does nothing\n") -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def pig(self, *more: str, content: str = "-- does nothing\n") -> Said:
        return self.shown.run(
            "run", self.file("count.pig", content), "--on", "first", *PLACES, *more
        )

    def executions(self) -> list[Any]:
        return list(self.api.get("/job-executions")["job_executions"])


class RunTests(RunCase):
    def test_success(self) -> None:
        """The story on stderr, the programs' output on stdout, exit code 0."""
        said = self.pig()
        self.assertEqual(said.code, 0, said)
        self.assertIn("count.pig is a Pig job (a .pig file)\n", said.err)
        self.assertIn("uploaded count.pig: 16 bytes\n", said.err)
        self.assertRegex(said.err, r"\njob SUCCEEDED after [0-9.]+ s\n$")
        self.assertNotIn("INFO submitted", said.out + said.err)

    def test_second_run_uploads_and_makes_nothing(self) -> None:
        """The same content is the same binary, job and sources."""
        self.pig()
        self.shown.asked.clear()
        said = self.pig()
        self.assertEqual(said.code, 0, said)
        made = [p.rpartition("/")[2] for m, p, _ in self.shown.asked if m in ("POST", "PUT")]
        self.assertEqual(set(made), {"tokens", "execute", "refresh-status"})
        self.assertEqual(len({each["job_id"] for each in self.executions()}), 1)

    def test_same_command_at_the_same_time(self) -> None:
        """It takes what the other one makes between its look and its POST."""
        made: list[str] = []

        def other(method: str, path: str) -> None:
            at = path.rpartition("/")[2]
            if method != "POST" or at not in ("job-binaries", "jobs") or at in made:
                return
            made.append(at)
            if at == "job-binaries":
                (data,) = self.api.get("/job-binary-internals")["binaries"]
                url = f"internal-db://{data['id']}"
                self.api.post("/job-binaries", {"name": "count.pig", "url": url})
            else:
                (main,) = self.api.get("/job-binaries")["binaries"]
                self.api.post("/jobs", {"name": "count", "type": "Pig", "mains": [main["id"]]})

        self.shown.before = other
        said = self.pig("--detach")
        self.assertEqual((said.code, made), (0, ["job-binaries", "jobs"]), said)
        self.assertIn("\njob count\n", said.err)
        self.assertEqual(len(self.api.get("/job-binaries")["binaries"]), 1)
        self.assertEqual(len(self.api.get("/jobs")["jobs"]), 1)

    def test_changed_file_is_another_job(self) -> None:
        """Under a name with its digest; the first one keeps its content."""
        self.pig()
        self.assertEqual(self.pig(content="-- changed\n").code, 0)
        names = sorted(each["name"] for each in self.api.get("/jobs")["jobs"])
        self.assertEqual(names[0], "count")
        self.assertRegex(names[1], r"^count-[0-9a-f]{12}$")

    def test_failure(self) -> None:
        """Exit code 1, with reason and advice."""
        said = self.pig("-c", "svcd.fake.outcome=fail")
        self.assertEqual(said.code, 1, said)
        self.assertIn("\nfailure: ", said.err)
        self.assertIn("  what to do: ", said.err)
        self.assertIn("its history: svcd job why ", said.err)

    def test_values_reach_the_job(self) -> None:
        """Configurations, parameters and arguments as they were given."""
        said = self.pig("-c", "a.b=1=2", "-p", "X=", "--", "-x", "--on")
        self.assertEqual(said.code, 0, said)
        (execution,) = self.executions()
        self.assertEqual(
            execution["job_configs"],
            {"configs": {"a.b": "1=2"}, "params": {"X": ""}, "args": ["-x", "--on"]},
        )

    def test_jar_with_a_main_class(self) -> None:
        """The manifest makes it a Java job, its class a configuration."""
        jar = self.folder / "tool.jar"
        with zipfile.ZipFile(jar, "w") as made:
            made.writestr(
                "META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\nMain-Class: org.\r\n Tool\r\n"
            )
        said = self.shown.run("run", str(jar), "--on", "first")
        self.assertEqual(said.code, 0, said)
        self.assertIn("tool.jar is a Java job (a .jar with a main class)", said.err)
        (execution,) = self.executions()
        self.assertEqual(execution["job_configs"]["configs"], {"edp.java.main_class": "org.Tool"})

    def test_detach(self) -> None:
        """The execution on stdout, at once; scripts take its id or the API's JSON."""
        self.pig("--detach", "-o", "name")
        said = self.pig("--detach", "-o", "json")
        self.assertEqual(said.code, 0, said)
        self.assertEqual(json.loads(said.out)["id"], self.executions()[1]["id"])
        self.assertIn("svcd job logs -f", said.err)

    def test_detached_execution_is_shown_by_names(self) -> None:
        """The table has the names of the job and of the cluster, as `job ls` has."""
        for said in (self.pig("--detach"), self.shown.run("job", "rerun", "count", "--detach")):
            self.assertEqual(said.code, 0, said)
            row = said.out.splitlines()[1].split()
            self.assertEqual((row[1], row[2], row[4]), ("count", "Pending", "first"), said)

    def test_transient_cluster(self) -> None:
        """A cluster of the template for this job alone."""
        cluster = self.api.cluster(self.cluster_id)
        groups = [
            {k: g[k] for k in ("name", "count", "flavor_id", "node_processes")}
            for g in cluster["node_groups"]
        ]
        body = {"name": "small", "plugin_name": "fake", "engine_version": "0.1",
                "node_groups": groups}  # fmt: skip
        self.api.post("/cluster-templates", body)
        self.shown.step_s = 10
        said = self.shown.run(
            "run", self.file("count.pig"), "--transient", "small", "--image", "plain", *PLACES
        )
        self.assertEqual(said.code, 0, said)
        self.assertNotEqual(self.executions()[0]["cluster_id"], self.cluster_id)


class LocalInputTests(RunCase):
    """Files of this machine go to the caller's object store, once."""

    def run_it(self, *more: str) -> Said:
        return self.shown.run(
            "run", self.file("count.pig"), "--on", "first", "--output", "hdfs:///out",
            "--input", str(self.folder / "text"), *more,
        )  # fmt: skip

    def test_folder(self) -> None:
        """Each file once; what Hadoop does not read is left out."""
        for name in ("text/a.txt", "text/deep/ü b.txt", "text/.hidden", "text/_logs/x"):
            self.file(name, name)
        said = self.run_it()
        self.assertIn("uploaded 2 files, 28 bytes, to objstore://svcd-input/text-", said.err)
        self.assertIn("; hidden, so left out: 2 files\n", said.err)
        (source,) = self.api.get("/data-sources?type=objstore")["data_sources"]
        self.assertEqual(source["credentials"]["user"], "demo")
        names = [o.name for o in self.fake.cloud.core.state.objects.values()]
        prefix = source["url"].rpartition("/")[2]
        self.assertEqual(sorted(names), [f"{prefix}/a.txt", f"{prefix}/deep/ü b.txt"])
        again = self.run_it()
        self.assertIn(": uploaded already\n", again.err)
        self.file("text/a.txt", "changed")
        self.assertIn("uploaded 2 files", self.run_it().err)

    def test_refused_job_uploads_no_data(self) -> None:
        """The dry run refuses it first."""
        self.file("text/a", "1")
        said = self.run_it("-c", "oozie.wf.external.id=x")
        self.assertEqual(said.code, 4, said)
        self.assertIn("svcd sets this configuration itself; remove it", said.err)
        self.assertEqual(list(self.fake.cloud.core.state.objects.values()), [])
        self.assertNotIn("the job may run already", said.err)

    def test_interrupted_upload_goes_on(self) -> None:
        """What is there already is not sent again."""
        self.file("text/a", "1")
        self.file("text/b", "2")

        def full(method: str, path: str) -> None:
            if method == "PUT" and path.endswith("/b"):
                raise ConnectionError

        self.shown.before = full
        said = self.run_it()
        self.assertEqual(said.code, 5, said)
        self.assertEqual(self.executions(), [])
        self.shown.before = lambda method, path: None
        said = self.run_it()
        self.assertIn("uploaded 1 file, 1 bytes", said.err)
        self.assertEqual(said.code, 0, said)

    def test_login_without_a_password(self) -> None:
        """It is refused before anything is uploaded, with the way out."""
        self.file("text/a", "1")
        before = len(self.shown.asked)
        said = self.shown.run(
            "run", self.file("count.pig"), "--on", "first", "--output", "hdfs:///out",
            "--input", str(self.folder / "text"), "--api", self.shown.url,
            "--tenant", self.fake.tenant, "--token", "t", known=False,
        )  # fmt: skip
        self.assertEqual(said.code, 4, said)
        self.assertEqual(said.err.count("\n"), 1)
        self.assertIn("set SVCD_OBJSTORE_USER and SVCD_OBJSTORE_PASSWORD, or use hdfs", said.err)
        methods = {method for method, _, _ in self.shown.asked[before:]}
        self.assertEqual(methods - {"GET"}, set())

    def test_refusals(self) -> None:
        """An empty folder and a file that is not there."""
        (self.folder / "text").mkdir()
        said = self.run_it()
        self.assertEqual((said.code, said.err.count("\n")), (2, 1), said)
        self.assertIn("has no files that Hadoop reads", said.err)
        (self.folder / "text").rmdir()
        said = self.run_it()
        self.assertEqual((said.code, said.err.count("\n")), (2, 1), said)
        self.assertIn("neither a file nor a data source", said.err)

    def test_output_in_the_object_store(self) -> None:
        """One that exists is refused, and so is a missing container."""
        self.file("text/a", "1")
        self.run_it()
        (source,) = self.api.get("/data-sources?type=objstore")["data_sources"]
        for url, text in (
            (source["url"], "exists already: name another folder, or remove it first"),
            ("objstore://nowhere/out", "there is no container nowhere in the object store"),
        ):
            said = self.shown.run(
                "run", self.file("count.pig"), "--on", "first", "--input", "hdfs:///in",
                "--output", url,
            )  # fmt: skip
            self.assertEqual((said.code, said.err.count("\n")), (4, 1), said)
            self.assertIn(text, said.err)


class RefusalTests(RunCase):
    def refused(self, code: int, *arguments: str) -> str:
        """The one line of a refusal; nothing was made."""
        said = self.shown.run(*arguments)
        self.assertEqual((said.code, said.out, said.err.count("\n")), (code, "", 1), said)
        self.assertEqual(self.api.get("/jobs")["jobs"], [])
        return said.err

    def test_usage(self) -> None:
        """Each says what to write."""
        pig = self.file("a.pig")
        for arguments, text in (
            (("run", pig, *PLACES), "give --on CLUSTER or --transient TEMPLATE"),
            (("run", pig, "--on", "first"), "a Pig job needs --input and --output, for example"),
            (("run", pig, "--on", "first", *PLACES, "-c", "x"), "-c x: expected NAME=VALUE"),
            (("run", "no.pig", "--on", "first"), "no.pig cannot be read: No such file"),
            (("run", str(self.folder), "--on", "first"), "is a folder: name the file"),
            (("run", self.file("e.pig", ""), "--on", "first"), "e.pig is empty"),
            (("run", self.file("a.jar", "x"), "--on", "first"), "a.jar is not a jar: "),
            (
                ("run", pig, "--on", "first", "--input", "ftp://x/y", "--output", "hdfs:///o"),
                "--input ftp://x/y: expected hdfs:///PATH or objstore://CONTAINER/PATH",
            ),
            (
                ("run", pig, "--on", "first", "--input", "hdfs:///i", "--output", "/out"),
                "there is no data source of this name; write hdfs:///out or",
            ),
        ):
            self.assertIn(text, self.refused(2, *arguments))

    def test_unknown_cluster(self) -> None:
        """With the nearest name."""
        text = self.refused(3, "run", self.file("a.pig"), "--on", "frist", *PLACES)
        self.assertIn("has no cluster 'frist'; did you mean first?", text)

    def test_type_that_no_cluster_runs(self) -> None:
        """Before anything is uploaded."""
        text = self.refused(2, "run", self.file("q.hql"), "--on", "first", *PLACES)
        self.assertIn("svcd runs no Hive jobs", text)

    def test_spark_program_that_cannot_run(self) -> None:
        """Before anything is uploaded."""
        text = self.refused(2, "run", self.file("q.sql"), "--on", "first", "--", "argument")
        self.assertIn("a .sql program takes no args; it takes params", text)

    def test_refused_execution_keeps_what_was_made(self) -> None:
        """Another run of the same file may use it by then; one line names it."""
        self.shown.before = lambda method, path: 409 if path.endswith("/execute") else None
        said = self.pig()
        self.assertEqual((said.code, self.made_and_kept(said)), (4, 1), said)
        self.assertNotIn("may run already", said.err)

    def made_and_kept(self, said: Said) -> int:
        """The number of jobs; nothing was removed, and one line says what stays."""
        self.assertNotIn("DELETE", [method for method, _, _ in self.shown.asked])
        self.assertRegex(
            said.err,
            "\nmade and kept for the next svcd run of this file: job binary count.pig, job count"
            "(, data source in-[0-9a-f]{8}, data source out-[0-9a-f]{8})?\n",
        )
        return len(self.api.get("/jobs")["jobs"])

    def test_refusal_after_a_lost_execution_proves_nothing(self) -> None:
        """The first try may have begun the job: code 5, not that of a refusal."""
        tries: list[str] = []

        def lost(method: str, path: str) -> int | None:
            if not path.endswith("/execute"):
                return None
            tries.append(path)
            if len(tries) == 1:
                raise ConnectionError
            return 403

        self.shown.before = lost
        said = self.pig()
        self.assertEqual((said.code, self.made_and_kept(said)), (5, 1), said)
        self.assertIn("; an earlier try of this request may have succeeded; the job may", said.err)
        self.assertIn("; the job may run already: svcd job ls shows it\n", said.err)

    def test_interrupt_before_the_execution(self) -> None:
        """Exit code 130: nothing runs, and what was made stays."""

        def interrupt(*_given: Any) -> str:
            raise KeyboardInterrupt

        self.patch(job_data.JobData, "source_id", interrupt)
        said = self.pig()
        self.assertEqual((said.code, self.made_and_kept(said)), (130, 1), said)
        self.assertTrue(said.err.endswith("svcd run: interrupted; nothing runs\n"), said)

    def test_lost_execution_keeps_what_was_made(self) -> None:
        """The job may run: nothing of it is removed."""
        self.shown.before = lambda method, path: 500 if path.endswith("/execute") else None
        said = self.pig()
        self.assertEqual((said.code, self.made_and_kept(said)), (5, 1), said)
        self.assertIn("; the job may run already: svcd job ls shows it\n", said.err)


class FaultTests(RunCase):
    def test_interrupt_leaves_the_job_going(self) -> None:
        """Exit code 130, and how to follow and cancel."""
        seen: list[str] = []

        def interrupt(self_: Any, over: bool) -> None:
            seen.append("log")
            if len(seen) == 2:
                raise KeyboardInterrupt

        self.patch(followed_execution.Followed, "_read_log", interrupt)
        said = self.pig("-c", "svcd.fake.run_s=60")
        self.assertEqual(said.code, 130, said)
        (execution,) = self.executions()
        self.assertIn(execution["info"]["status"], ("Pending", "PREP", "RUNNING"))
        id_ = execution["id"]
        self.assertIn(
            f"the job goes on: svcd job logs -f {id_} follows it, svcd job cancel {id_} cancels it",
            said.err,
        )

    def test_time_limit(self) -> None:
        """Exit code 124; the job goes on."""

        def late(self_: Any, over: bool) -> None:
            raise OutOfTime("--timeout of 60 s ran out", 124)

        self.patch(followed_execution.Followed, "_read_log", late)
        said = self.pig("-c", "svcd.fake.outcome=hang", "--timeout", "60")
        self.assertEqual(said.code, 124, said)
        self.assertIn("the job goes on: svcd job logs -f ", said.err)

    def test_daemon_that_restarts_while_it_is_followed(self) -> None:
        """The command waits for it."""
        broken: list[str] = []

        def away(method: str, path: str) -> None:
            if "/job-executions/" in path and len(broken) < 3:
                broken.append(path)
                raise ConnectionError

        self.shown.before = away
        said = self.pig()
        self.assertEqual((said.code, len(broken)), (0, 3), said)

    def test_log_that_is_not_completed(self) -> None:
        """The command ends with the job's result, and says how to see the rest."""
        self.patch(followed_execution, "_LAST_S", 0.0)
        self.fake.faults.add(where="engine", path="show=log", status=500)
        said = self.pig()
        self.assertEqual(said.code, 0, said)
        (execution,) = self.executions()
        self.assertIn(
            "the daemon has not completed the log within 0 s; the rest of it comes later: svcd job"
            f" logs {execution['id']}\n",
            said.err,
        )

    def test_daemon_that_stays_away(self) -> None:
        """Exit code 5; the job goes on."""
        self.patch(followed_execution, "_PATIENCE_S", 0.1)

        def away(method: str, path: str) -> None:
            if "/job-executions/" in path:
                raise ConnectionError

        self.shown.before = away
        said = self.pig()
        self.assertEqual(said.code, 5, said)
        self.assertIn("the job goes on: svcd job logs -f ", said.err)

    def test_token_that_expires(self) -> None:
        """The command logs in again and goes on."""
        refused: list[str] = []

        def expire(method: str, path: str) -> int | None:
            if "/job-executions/" in path and not refused:
                refused.append(path)
                return 401
            return None

        self.shown.before = expire
        said = self.pig()
        self.assertEqual((said.code, len(refused)), (0, 1), said)
        logins = [path for method, path, _ in self.shown.asked if path.endswith("/auth/tokens")]
        self.assertEqual(len(logins), 2)

    def broken(self, stdout: IO[str]) -> Said:
        """A run whose output cannot be written; the job goes on."""
        with stdout:
            said = self.shown.run(
                "run", self.file("count.pig"), "--on", "first", "--all", *PLACES, stdout=stdout
            )
        self.assertEqual(said.code, 1, said)
        self.assertIn("the job goes on: svcd job logs -f ", said.err)
        self.assertNotIn("Traceback", said.err)
        return said

    def test_full_disk(self) -> None:
        """One line says so."""
        said = self.broken(os.fdopen(os.open("/dev/full", os.O_WRONLY), "w"))
        self.assertIn("svcd: the output cannot be written: No space left on device\n", said.err)

    def test_reader_that_goes(self) -> None:
        """As with `| head`."""
        reader, writer = os.pipe()
        os.close(reader)
        self.broken(os.fdopen(writer, "w"))

    def test_posts_carry_keys_of_this_invocation(self) -> None:
        """A request that is sent again has the same key; another invocation has other keys."""
        self.pig()
        keys = [
            headers["Idempotency-Key"]
            for _, _, headers in self.shown.asked
            if "Idempotency-Key" in headers
        ]
        self.assertEqual(len(keys), 5)
        self.assertEqual(len(set(keys)), 5)
        self.assertTrue(keys[-1].endswith("-execute"))


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
                f"left out: 1 line of Oozie, Hadoop, Pig and Java;"
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
        """A cancelled job is KILLED; rm asks, and leaves the job itself."""
        self.pig("--detach", "-c", "svcd.fake.run_s=600")
        said = self.shown.run("job", "cancel", "count")
        self.assertEqual(said.code, 0, said)
        self.assertRegex(said.out, r"\AID .*\n\S+ +count +KILLED ")
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

    def test_answer_without_its_key(self) -> None:
        """Another program than svcd answers: it is named, and the exit code is 5."""
        self.shown.before = lambda method, path: 202 if path.endswith("/execute") else None
        said = self.pig()
        self.assertEqual(said.code, 5, said)
        self.assertIn("/execute is not one of svcd: does --api name svcd's daemon?", said.err)

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
