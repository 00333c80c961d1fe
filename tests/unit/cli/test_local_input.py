"""Local files as the input of `svcd run`, against the in-process fake behind a socket."""

from __future__ import annotations

from tests.support.commands import Said
from tests.unit.cli.test_run import RunCase


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
