"""Local files as the input of `svcd run`, against the in-process fake behind a socket."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.job_files import Unusable
from svcd.cli.local_input import are_partitions, gather
from tests.support.commands import RunCase, Said


class GatherTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.place = Path(self.mktemp()).absolute()
        for name in ("in/a", "in/real/b", "in/.hidden", "out/c", "out/deep/d", "out/deep/_e"):
            file = self.place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(name)
        self.input = self.place / "in"

    def link(self, name: str, to: str) -> None:
        (self.input / name).symlink_to(to)

    def test_links_are_followed(self) -> None:
        """To each folder once, the folder itself before its links; the others have a line."""
        self.link("1", "real")
        self.link("2", "../out")
        self.link("3", "../out/deep")
        self.link("4", ".")
        self.link("file", "../out/c")
        self.link("real/up", "..")
        found = gather(self.input)
        names = sorted(each.name for each in found.files)
        self.assertEqual(names, ["2/c", "2/deep/d", "a", "file", "real/b"])
        lines = sorted(line.replace(f"{self.place}/", "") for line in found.left)
        self.assertEqual(
            lines,
            [
                ".hidden, 2/deep/_e: Hadoop reads no names that begin with . or _",
                *(
                    f"{link}, because it leads to the folder {first}, which is read already"
                    for link, first in (
                        ("in/1", "in/real"),
                        ("in/3", "in/2/deep"),
                        ("in/4", "in"),
                        ("in/real/up", "in"),
                    )
                ),
            ],
        )

    def test_a_link_that_leads_nowhere(self) -> None:
        for name, to, text in (
            ("lost", "missing", "is a link to a missing file: remove it"),
            ("self", "self", "cannot be read: Too many levels of symbolic links"),
        ):
            self.link(name, to)
            refusal = str(self.assertRaises(Unusable, gather, self.input))
            self.assertEqual(refusal, f"--input {self.input / name} {text}")
            (self.input / name).unlink()
        hidden = str(self.assertRaises(Unusable, gather, self.input / ".hidden"))
        self.assertIn("Hadoop reads no names that begin with . or _: rename the file", hidden)

    def test_partitions(self) -> None:
        """All files have the same columns; Spark passes over those beside them."""
        for names, are in (
            (["day=1/a", "day=2/b"], True),
            (["y=1/m=1/a", "y=1/m=2/a"], True),
            (["a", "day=1/a"], False),
            (["day=1/a", "hour=2/b"], False),
            (["day=1/a", "day=1/more/b"], False),
            (["=1/a"], False),
            (["day=/a"], False),
        ):
            self.assertEqual(are_partitions(names), are, names)
        flat = "it reads one level"
        refusal = str(self.assertRaises(Unusable, gather, self.input, flat))
        self.assertEqual(refusal, f"--input {self.input} has folders, and it reads one level")
        self.assertEqual(len(gather(self.input / "real", flat).files), 1)
        (self.input / "a").unlink()
        (self.input / "real").rename(self.input / "k=v")
        self.assertEqual([each.name for each in gather(self.input, flat).files], ["k=v/b"])


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
        hidden = (
            "left out of --input: .hidden, _logs/: Hadoop reads no names that begin with . or _\n"
        )
        self.assertIn(hidden, said.err)
        (source,) = self.api.get("/data-sources?type=objstore")["data_sources"]
        self.assertEqual(source["credentials"]["user"], "demo")
        names = [o.name for o in self.fake.cloud.core.state.objects.values()]
        prefix = source["url"].rpartition("/")[2]
        self.assertEqual(sorted(names), [f"{prefix}/a.txt", f"{prefix}/deep/ü b.txt"])
        again = self.run_it()
        self.assertIn(": uploaded already\n", again.err)
        self.assertIn(hidden, again.err)
        self.file("text/a.txt", "changed")
        self.assertIn("uploaded 2 files", self.run_it().err)

    def test_interrupted_upload_goes_on(self) -> None:
        """What is there already is not sent again."""
        self.file("text/a", "1")
        self.file("text/b", "2")

        def full(method: str, path: str) -> None:
            if method == "PUT" and path.endswith("/b"):
                raise ConnectionError

        self.shown.before = full
        self.assertEqual((self.run_it().code, self.executions()), (5, []))
        self.shown.before = lambda method, path: None
        said = self.run_it()
        self.assertIn("uploaded 1 file, 1 bytes", said.err)
        self.assertEqual(said.code, 0, said)

    def test_refusals(self) -> None:
        """Of the input, of a job, and of a login without a password: nothing is uploaded."""
        folder = self.folder / "text"
        text = ("--input", str(folder))
        pig = (self.file("count.pig"), "--on", "first", "--output")
        self.assertIn("neither a file nor a data source", self.refused(2, "run", *pig, "x", *text))
        folder.mkdir()
        for name, words in (
            ("_hidden", "has no files that Hadoop reads"),
            ("a\rb", "has the end of a line, which the object store refuses"),
        ):
            self.file(f"text/{name}", "1")
            self.assertIn(words, self.refused(2, "run", *pig, "hdfs:///out", *text))
        (folder / "a\rb").rename(folder / "a")
        said = self.shown.run("run", *pig, "hdfs:///a,b", *text)
        self.assertEqual(said.code, 4, said)
        self.assertIn("a comma (,), at which Pig splits the name of an output", said.err)
        self.assertNotIn("the job may run already", said.err)
        token = ("--api", self.shown.url, "--tenant", self.fake.tenant, "--token", "t")
        said = self.shown.run("run", *pig, "hdfs:///out", *text, *token, known=False)
        self.assertEqual((said.code, said.err.count("\n")), (4, 1), said)
        self.assertIn("set SVCD_OBJSTORE_USER and SVCD_OBJSTORE_PASSWORD, or use hdfs", said.err)
        self.assertEqual(list(self.fake.cloud.core.state.objects.values()), [])

    def test_output_in_the_object_store(self) -> None:
        """One that exists is refused, and so is a missing container."""
        self.file("text/a", "1")
        self.run_it()
        (source,) = self.api.get("/data-sources?type=objstore")["data_sources"]
        command = ("run", self.file("count.pig"), "--on", "first", "--input", "hdfs:///in")
        for url, text in (
            (source["url"], "exists already: name another folder, or remove it first"),
            ("objstore://nowhere/out", "there is no container nowhere in the object store"),
        ):
            self.assertIn(text, self.refused(4, *command, "--output", url))

    def test_jobs_that_read_one_level(self) -> None:
        """A nested input is refused before anything is made, with the way out, or the job says so.

        Hadoop reads the folders with its own configuration, which a job has only then.
        """
        self.file("flat/a", "1")
        self.file("text/a", "1")
        self.file("text/deep/b", "2")
        mapper = ("-c", "edp.streaming.mapper=cat", "-c", "edp.streaming.reducer=cat")
        option = "mapreduce.input.fileinputformat.input.dir.recursive"

        def run(name: str, *more: str, folder: str = "text") -> Said:
            places = ("--input", str(self.folder / folder), "--output", f"hdfs:///{folder}")
            return self.shown.run("run", self.file(name), "--on", "first", *places, *more)

        for name, way in (
            ("a.py", '.option("recursiveFileLookup", "true") after spark.read'),
            ("a.sql", "recursiveFileLookup 'true' among the OPTIONS of the view"),
        ):
            said = run(name)
            self.assertEqual((said.code, said.err.count("\n")), (2, 1), said)
            for words in (f"{self.folder}/text has folders, and Spark reads", way, "give --nested"):
                self.assertIn(words, said.err)
        self.assertEqual(self.api.get("/job-binary-internals")["binaries"], [])
        given: list[tuple[str, tuple[str, ...], str, object]] = [
            ("a.txt", ("--type", "Jar", *mapper), "flat", None),
            ("a.txt", ("--type", "Jar", *mapper), "text", "true"),
            ("a.txt", ("--type", "Jar", *mapper, "-c", f"{option}=false"), "text", "false"),
            ("a.pig", (), "text", None),
        ]
        for name, more, folder, value in given:
            said = run(name, *more, folder=folder)
            self.assertEqual(said.code, 0, said)
            configs = self.executions()[-1]["job_configs"].get("configs", {})
            self.assertEqual(configs.get(option), value)
            self.assertEqual(f"-c {option}=true\n" in said.err, value == "true", said)
        for more in (("--nested",), ("-c", f"{option}=true")):
            said = run("a.py", *more)
            self.assertEqual(said.code, 0, said)
            self.assertEqual(self.executions()[-1]["job_configs"]["configs"], {option: "true"})
