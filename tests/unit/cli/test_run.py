"""`svcd run` against the in-process fake behind a socket."""

from __future__ import annotations

import json
import os
import zipfile
from typing import IO, Any

from svcd.cli import followed_execution, job_data
from svcd.cli.exits import OutOfTime
from tests.support.commands import PLACES, RunCase, Said


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
        """The same content is the same binary, job and sources; each request has its own key."""
        self.pig()
        name = "Idempotency-Key"
        keys = [headers[name] for _, _, headers in self.shown.asked if name in headers]
        self.assertEqual((len(keys), len(set(keys))), (5, 5))
        self.assertTrue(keys[-1].endswith("-execute"))
        self.shown.asked.clear()
        self.assertEqual(self.pig().code, 0)
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

    def test_each_run_has_the_content_of_its_moment(self) -> None:
        """Also its libraries, which keep their names; an earlier execution keeps its own."""
        contents = ["one", "two", "three", "one"]
        for content in contents:
            lib = self.file("_helper.jar", content)
            self.done("run", self.file("go.sh"), "--on", "first", "--lib", lib)
        self.done("job", "rerun", self.executions()[1]["id"])
        found = []
        for execution in self.executions():
            (lib,) = self.api.get(f"/jobs/{execution['job_id']}")["job"]["libs"]
            self.assertEqual(lib["file_name"], "_helper.jar")
            self.done("binary", "get", lib["name"], str(self.folder / "got"))
            found.append((self.folder / "got").read_text())
        self.assertEqual(found, [*contents, "two"])

    def test_failure(self) -> None:
        """Exit code 1, with reason and advice."""
        said = self.pig("-c", "svcd.fake.outcome=fail")
        self.assertEqual(said.code, 1, said)
        for words in ("\nfailure: ", "  what to do: ", "its history: svcd job why "):
            self.assertIn(words, said.err)

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
        """The execution on stdout, at once: a table with names, or the API's JSON."""
        for said in (self.pig("--detach"), self.shown.run("job", "rerun", "count", "--detach")):
            row = said.out.splitlines()[1].split()
            self.assertEqual((row[1], row[2], row[4]), ("count", "Pending", "first"), said)
        said = self.pig("--detach", "-o", "json")
        self.assertEqual(said.code, 0, said)
        self.assertEqual(json.loads(said.out)["id"], self.executions()[2]["id"])
        self.assertIn("svcd job logs -f", said.err)

    def test_transient_cluster(self) -> None:
        """A cluster of the template for this job alone."""
        groups = [
            {name: group[name] for name in ("name", "count", "flavor_id", "node_processes")}
            for group in self.api.cluster(self.cluster_id)["node_groups"]
        ]
        body = {"name": "small", "plugin_name": "fake", "engine_version": "0.1"}
        self.api.post("/cluster-templates", {**body, "node_groups": groups})
        self.shown.step_s = 0.01
        said = self.done("run", self.file("count.pig"), "--transient", "small", *PLACES)
        self.assertIn("image plain; --image names another", said.err)
        self.assertRegex(said.err, r"\nrun-[0-9a-f]{8}: Spawning\n")
        self.assertNotEqual(self.executions()[0]["cluster_id"], self.cluster_id)


class RefusalTests(RunCase):
    def test_usage(self) -> None:
        """Each refusal says what to write, before anything is uploaded."""
        pig, on = self.file("a.pig"), ("--on", "first")
        libs = ("--lib", self.file("x/a.py"), "--lib", self.file("y/a.py"))
        for code, arguments, text in (
            (2, (pig, *PLACES), "give --on CLUSTER or --transient TEMPLATE"),
            (2, (pig, *on), "a Pig job needs --input and --output, for example"),
            (2, (pig, *on, *PLACES, "-c", "x"), "-c x: expected NAME=VALUE"),
            (2, (pig, *on, *PLACES, "-p", "A=1", "-p", "A=2"), "-p A: given more than once: keep"),
            (2, (pig, *on, *PLACES, "-p", "A\x1bB=x"), "-p A\\x1bB: control character U+001B in"),
            (
                2,
                (pig, *on, *PLACES, "-c", "oozie.wf.external.id=x"),
                "svcd sets this configuration",
            ),
            (2, ("no.pig", *on), "no.pig cannot be read: No such file"),
            (2, (str(self.folder), *on), "is a folder: name the file"),
            (2, (self.file("a.sh"), *on, *libs), "two files of the job are named a.py: rename one"),
            (2, (self.file("e.pig", ""), *on), "e.pig is empty, and the API"),
            (2, (self.file("a.jar", "x"), *on), "a.jar is not a jar: "),
            (2, (self.file("q.hql"), *on, *PLACES), "svcd runs no Hive jobs"),
            (2, (self.file("q.sql"), *on, "--", "x"), "a .sql program takes no args; it takes par"),
            (
                2,
                (pig, *on, "--input", "ftp://x/y", "--output", "hdfs:///o"),
                "ftp://x/y: expected ",
            ),
            (2, (pig, *on, "--input", "hdfs:///i", "--output", "/out"), "write hdfs:///out or"),
            (3, (pig, "--on", "frist", *PLACES), "has no cluster 'frist'; did you mean first?"),
        ):
            self.assertIn(text, self.refused(code, "run", *arguments))
        self.assertEqual(self.api.get("/jobs")["jobs"], [])

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

    def test_failed_execution_keeps_what_was_made(self) -> None:
        """Another run of the file may use it by then; only after a lost request the job may run."""
        self.shown.before = lambda method, path: 409 if path.endswith("/execute") else None
        refused = self.pig()
        self.assertEqual((refused.code, self.made_and_kept(refused)), (4, 1), refused)
        self.assertNotIn("may run already", refused.err)
        self.shown.before = lambda method, path: 500 if path.endswith("/execute") else None
        lost = self.pig()
        self.assertEqual(lost.code, 5, lost)
        self.assertIn("; the job may run already: svcd job ls shows it\n", lost.err)


class FaultTests(RunCase):
    def broken(self, times: int, answer: int | None = None) -> list[str]:
        """The next requests for an execution break off, or have the status `answer`."""
        broken: list[str] = []

        def away(method: str, path: str) -> int | None:
            if "/job-executions/" not in path or len(broken) == times:
                return None
            broken.append(path)
            if answer is None:
                raise ConnectionError
            return answer

        self.shown.before = away
        return broken

    def test_interrupt_and_time_limit_leave_the_job_going(self) -> None:
        """Codes 130 and 124, and how to follow and cancel the job."""
        for error, code in ((KeyboardInterrupt(), 130), (OutOfTime("no time", 124), 124)):

            def ended(_: Any, error: BaseException = error) -> None:
                raise error

            self.patch(followed_execution.Followed, "_read_log", ended)
            said = self.pig("-c", "svcd.fake.run_s=60")
            self.assertEqual(said.code, code, said)
            execution = self.executions()[-1]
            self.assertIn(execution["info"]["status"], ("Pending", "PREP", "RUNNING"))
            id_ = execution["id"]
            goes_on = f"svcd job logs -f {id_} follows it, svcd job cancel {id_} cancels it"
            self.assertIn(f"the job goes on: {goes_on}", said.err)

    def test_daemon_that_is_away_while_it_is_followed(self) -> None:
        """The command waits for a restart; after its patience it ends with 5, the job goes on."""
        broken = self.broken(3)
        self.assertEqual((self.pig().code, len(broken)), (0, 3))
        self.patch(followed_execution, "_PATIENCE_S", 0.1)
        self.broken(-1)
        said = self.pig()
        self.assertEqual(said.code, 5, said)
        self.assertIn("the job goes on: svcd job logs -f ", said.err)

    def test_token_that_expires(self) -> None:
        """The command logs in again and goes on."""
        self.broken(1, 401)
        self.assertEqual(self.pig().code, 0)
        logins = [path for _, path, _ in self.shown.asked if path.endswith("/auth/tokens")]
        self.assertEqual(len(logins), 2)

    def test_output_that_cannot_be_written(self) -> None:
        """A full disk has a line, a reader that has gone (`| head`) has none; the job goes on."""

        def run(stdout: IO[str]) -> str:
            with stdout:
                words = ("run", self.file("count.pig"), "--on", "first", "--all", *PLACES)
                said = self.shown.run(*words, stdout=stdout)
            self.assertEqual(said.code, 1, said)
            self.assertIn("the job goes on: svcd job logs -f ", said.err)
            self.assertNotIn("Traceback", said.err)
            return said.err

        full = run(os.fdopen(os.open("/dev/full", os.O_WRONLY), "w"))
        self.assertIn("svcd: the output cannot be written: No space left on device\n", full)
        reader, writer = os.pipe()
        os.close(reader)
        self.assertNotIn("cannot be written", run(os.fdopen(writer, "w")))
