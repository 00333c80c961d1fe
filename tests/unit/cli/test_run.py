"""`svcd run` and `svcd job` against the in-process fake behind a socket."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import IO, Any

from twisted.trial.unittest import SynchronousTestCase

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

    def transient(self) -> Said:
        """A run on a cluster of its own, whose template is made of the cluster `first`."""
        cluster = self.api.cluster(self.cluster_id)
        groups = [
            {k: g[k] for k in ("name", "count", "flavor_id", "node_processes")}
            for g in cluster["node_groups"]
        ]
        body = {"name": "small", "plugin_name": "fake", "engine_version": "0.1",
                "node_groups": groups}  # fmt: skip
        self.api.post("/cluster-templates", body)
        self.shown.step_s = 0.01
        return self.shown.run("run", self.file("count.pig"), "--transient", "small", *PLACES)

    def executions(self) -> list[Any]:
        return list(self.api.get("/job-executions")["job_executions"])


class RunTests(RunCase):
    def test_success(self) -> None:
        """The story on stderr, the programs' output on stdout, exit code 0."""
        said = self.pig()
        self.assertEqual(said.code, 0, said)
        self.assertIn("count.pig is a Pig job (a .pig file)\n", said.err)
        self.assertNotIn("first: ", said.err)
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

    def test_each_run_has_the_content_of_its_moment(self) -> None:
        """Also its libraries, which keep their names; an earlier execution keeps its own."""
        contents = ["one", "two", "three", "one"]
        for content in contents:
            lib = self.file("_helper.py", content)
            said = self.shown.run("run", self.file("go.sh"), "--on", "first", "--lib", lib)
            self.assertEqual(said.code, 0, said)
        self.assertEqual(self.shown.run("job", "rerun", self.executions()[1]["id"]).code, 0)
        found = []
        for execution in self.executions():
            job = self.api.get(f"/jobs/{execution['job_id']}")["job"]
            (lib,) = job["libs"]
            self.assertEqual(lib["file_name"], "_helper.py")
            self.shown.run("binary", "get", lib["name"], str(self.folder / "got"))
            found.append((self.folder / "got").read_text())
        self.assertEqual(found, [*contents, "two"])

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

    def test_a_library_with_any_content(self) -> None:
        """Only the program of a job is read as a jar."""
        lib = self.file("data.jar", "no jar")
        said = self.shown.run("run", self.file("go.sh"), "--on", "first", "--lib", lib)
        self.assertEqual(said.code, 0, said)

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
        said = self.transient()
        self.assertEqual(said.code, 0, said)
        self.assertIn("image plain; --image names another", said.err)
        self.assertRegex(said.err, r"\nrun-[0-9a-f]{8}: Spawning\n")
        self.assertNotEqual(self.executions()[0]["cluster_id"], self.cluster_id)


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
            (
                ("run", pig, "--on", "first", *PLACES, "-p", "A=1", "-p", "A=2"),
                "-p A: given more than once: keep one",
            ),
            (
                ("run", pig, "--on", "first", *PLACES, "-p", "A\x1bB=x"),
                "-p A\\x1bB: control character U+001B in the name is not allowed; remove it",
            ),
            (
                ("run", pig, "--on", "first", *PLACES, "-c", "oozie.wf.external.id=x"),
                "svcd sets this configuration itself; remove it",
            ),
            (("run", "no.pig", "--on", "first"), "no.pig cannot be read: No such file"),
            (("run", str(self.folder), "--on", "first"), "is a folder: name the file"),
            (
                (
                    "run",
                    self.file("a.sh"),
                    "--on",
                    "first",
                    "--lib",
                    self.file("x/a.py"),
                    "--lib",
                    self.file("y/a.py"),
                ),
                "two files of the job are named a.py: rename one of them",
            ),
            (("run", self.file("e.pig", ""), "--on", "first"), "e.pig is empty, and the API"),
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

        def interrupt(self_: Any) -> None:
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

        def late(self_: Any) -> None:
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

    def test_cluster_that_cannot_be_read(self) -> None:
        """The command follows the job without the cluster's progress, and says so once."""
        begun: list[str] = []

        def refuse(method: str, path: str) -> int | None:
            if path.endswith("/execute"):
                begun.append(path)
            return 403 if begun and "/clusters/" in path else None

        self.shown.before = refuse
        said = self.transient()
        self.assertEqual((said.code, len(begun)), (0, 1), said)
        self.assertEqual(said.err.count("the progress of the cluster cannot be read: "), 1)

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
