"""The type of a job by its file, and the names under which `svcd run` keeps and finds things."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import job_files
from svcd.cli.job_files import Kind, Reuse, Unusable, kind_of, missing_places, slug, with_digest
from svcd.model.job import JobConfigs, JobType

DIGEST = "3f2a9c0b1d4e" + "0" * 52


class KindTests(SynchronousTestCase):
    def kind(self, file: str, head: bytes = b"", manifest: str = "", **more: Any) -> Kind:
        given = {"given": "", "main_class": "", "configs": (), **more}
        return kind_of(file, head, manifest, given["given"], given["main_class"], given["configs"])

    def refusal(self, *arguments: Any, **more: Any) -> str:
        return str(self.assertRaises(Unusable, self.kind, *arguments, **more))

    def test_by_the_ending(self) -> None:
        """In any case of letters."""
        self.assertEqual(self.kind("a/count.PIG"), Kind(type=JobType.PIG, why="a .pig file"))
        self.assertEqual(self.kind("a.py"), Kind(type=JobType.SPARK, why="a .py file"))
        self.assertEqual(self.kind("a.sql").type, JobType.SPARK)
        self.assertEqual(self.kind("go.sh"), Kind(type=JobType.SHELL, why="a .sh file"))

    def test_script_of_another_language_needs_its_first_line(self) -> None:
        """Without it a shell would read the script."""
        kind = Kind(type=JobType.SHELL, why="a script with a #! line")
        self.assertEqual(self.kind("a.rb", b"#!/usr/bin/env ruby\n"), kind)
        self.assertEqual(self.kind("tool", b"#!/bin/sh\n"), kind)
        self.assertIn("such as #!/usr/bin/env ruby", self.refusal("a.rb", b"puts 1\n"))
        self.assertIn("byte order mark", self.refusal("tool", b"\xef\xbb\xbf#!/bin/sh\n"))

    def test_files_that_no_machine_can_start(self) -> None:
        """Whatever names the type: the program, and libraries with a first line of a script."""

        def told(*files: tuple[str, bytes]) -> list[str]:
            return list(job_files.faults(JobType.SHELL, files, JobConfigs()))

        self.assertEqual(told(("go.sh", b"#!/bin/sh\necho \r\n"), ("a.csv", b"\xff\xfea\0")), [])
        self.assertIn("dos2unix", told(("go.sh", b"#!/bin/sh\r\n"))[0])
        self.assertIn("lib.sh: its #! line", told(("go", b"x"), ("lib.sh", b"#!x\r\n"))[0])
        self.assertEqual(
            told(("a.sh", b"x"), ("a.sh", b"y")),
            ["two files of the job are named a.sh: rename one of them"],
        )
        mapper = {"edp.streaming.mapper": "./map.py", "edp.streaming.reducer": "python3 red.py"}
        files = [("map.py", b"#!python3\r\n"), ("red.py", b"#!python3\r\n")]
        (fault,) = job_files.faults(JobType.MAP_REDUCE, files, JobConfigs(configs=mapper))
        self.assertTrue(fault.startswith("map.py: its #! line"))
        self.assertEqual(list(job_files.faults(JobType.SPARK, files, JobConfigs())), [])

    def test_jar(self) -> None:
        """A main class makes a Java job, a mapper a MapReduce job; without both it is refused."""
        java = Kind(type=JobType.JAVA, why="a .jar with a main class", main_class="org.Main")
        self.assertEqual(self.kind("a.jar", main_class="org.Main"), java)
        self.assertEqual(self.kind("a.jar", manifest="org.Main"), java)
        self.assertEqual(
            self.kind("a.jar", manifest="org.Main", configs=["mapreduce.map.class"]),
            Kind(type=JobType.MAP_REDUCE, why="a .jar with mapreduce.map.class"),
        )
        self.assertEqual(self.kind("a.jar", configs=["edp.java.main_class"]).main_class, "")
        self.assertIn("give --main-class CLASS", self.refusal("a.jar"))

    def test_given_type(self) -> None:
        """In any case of letters; an unknown one is refused with the known ones."""
        self.assertEqual(self.kind("a.txt", given="pig"), Kind(type=JobType.PIG))
        self.assertIn("there are Pig, Jar, MapReduce", self.refusal("a.txt", given="Perl"))
        self.assertIn("give --main-class", self.refusal("a.jar", given="Java"))
        self.assertIn("give -c edp.streaming.mapper", self.refusal("a.py", given="MapReduce"))

    def test_a_script_with_a_mapper_of_streaming(self) -> None:
        streaming = Kind(type=JobType.MAP_REDUCE, why="a file with edp.streaming.mapper")
        self.assertEqual(self.kind("a.py", configs=["edp.streaming.mapper"]), streaming)

    def test_spark(self) -> None:
        """A .jar is a program of Spark only when the type is given."""
        jar = Kind(type=JobType.SPARK, main_class="org.Main")
        self.assertEqual(self.kind("a.jar", given="Spark", main_class="org.Main"), jar)
        self.assertEqual(self.kind("a.jar", given="spark", manifest="org.Main"), jar)
        self.assertIn("give --main-class", self.refusal("a.jar", given="Spark"))
        self.assertIn("must end in .jar, .py, .sql", self.refusal("a.txt", given="Spark"))
        self.assertIn("is for a .jar", self.refusal("a.py", given="Spark", main_class="org.Main"))

    def test_hive(self) -> None:
        """By its ending or by its name, with the type that runs SQL."""
        for text in (self.refusal("q.hql"), self.refusal("q.txt", given="Hive")):
            self.assertIn("svcd runs no Hive jobs", text)
            self.assertIn("ends in .sql", text)

    def test_what_the_api_would_refuse(self) -> None:
        """It is known before anything is uploaded."""

        def told(kind: JobType, *names: str, **given: Any) -> list[str]:
            files = [(name, b"") for name in names]
            return list(job_files.faults(kind, files, JobConfigs(**given)))

        self.assertEqual(told(JobType.SPARK, "a.py", args=("x",)), [])
        self.assertEqual(
            told(JobType.SPARK, "a.py", params={"P": "1"}),
            ["params: a .py program takes no params; it takes args"],
        )
        self.assertIn("it takes params", told(JobType.SPARK, "a.sql", args=("x",))[0])
        for found, text in (
            (
                told(JobType.JAVA, "a.jar", "action.xml"),
                "action.xml: YARN, Spark or svcd has a file",
            ),
            (told(JobType.JAVA, "a.jar", params={"P": "1"}), "params: a Java job takes no params"),
            (told(JobType.PIG, "a.pig", params={"a-b": "1"}), 'params: the name "a-b" cannot be'),
            (told(JobType.SHELL, "a.sh", "\udcff"), "\udcff: the name is not UTF-8: rename the"),
            (told(JobType.SHELL, "a.sh", args=("\udcff",)), "args[0]: contains U+DCFF, which no"),
            (
                told(JobType.SHELL, "a.sh", args=("x",) * 10_001),
                "10,001 arguments; a job has at mo",
            ),
            (told(JobType.SHELL, "a.sh", configs={"edp.x": "1"}), 'configs["edp.x"]: a Shell job'),
        ):
            self.assertTrue(found[0].startswith(text), found)

    def test_refusals(self) -> None:
        """An ending that says nothing, and a main class of a script."""
        self.assertIn("give --type, one of Pig, Jar", self.refusal("a.txt", b"x"))
        self.assertIn("is for a .jar", self.refusal("a.pig", main_class="org.Main"))

    def test_places(self) -> None:
        """Types that need data name the missing options."""
        self.assertEqual(missing_places(JobType.PIG, True, True), "")
        self.assertEqual(missing_places(JobType.SHELL, False, False), "")
        self.assertTrue(
            missing_places(JobType.PIG, True, False).startswith("a Pig job needs --out")
        )
        self.assertIn("--input and --output", missing_places(JobType.JAR, False, False))


class NameTests(SynchronousTestCase):
    def test_names(self) -> None:
        """Valid names of at most 50 characters, with the ending kept."""
        self.assertEqual(slug("mein wörter.pig"), "mein-w-rter.pig")
        self.assertEqual((slug("…"), slug("-_x-")), ("x", "x"))
        self.assertEqual(with_digest("count.pig", DIGEST), "count-3f2a9c0b1d4e.pig")
        self.assertEqual(with_digest("count", DIGEST), "count-3f2a9c0b1d4e")
        self.assertEqual(len(with_digest("c" * 80 + ".pig", DIGEST)), 50)


class ReuseTests(SynchronousTestCase):
    def test_data_of_a_binary(self) -> None:
        """The same name and size; a foreign row of another size is not taken."""
        row = {"id": "i1", "name": "count-3f2a9c0b1d4e.pig", "datasize": 5}
        found = job_files.internal("count.pig", DIGEST, 5, [row])
        self.assertEqual(found, Reuse(name=row["name"], id="i1"))
        self.assertEqual(job_files.internal("count.pig", DIGEST, 6, [row]).id, "")

    def test_binary(self) -> None:
        """Its plain name while that is free, else the name with the digest."""
        mine = {"id": "b1", "name": "count.pig", "url": "internaldb://i1"}
        other = {"id": "b2", "name": "count.pig", "url": "internaldb://i2"}
        old = {"id": "b3", "name": "count-3f2a9c0b1d4e.pig", "url": "internaldb://i1"}
        own = {**old, "file_name": "count.pig"}

        def found(*known: dict[str, str]) -> Reuse:
            return job_files.binary("count.pig", DIGEST, "i1", known)

        self.assertEqual(found(), Reuse(name="count.pig"))
        self.assertEqual(found(mine), Reuse(name="count.pig", id="b1"))
        self.assertEqual(found(other), Reuse(name="count-3f2a9c0b1d4e.pig"))
        self.assertEqual(found(other, own), Reuse(name="count-3f2a9c0b1d4e.pig", id="b3"))
        again = found(other, old)  # its file has the name of the record
        self.assertEqual(again, Reuse(name="count-f0305abf3be1.pig"))
        self.assertEqual(found(other, old, {**own, "name": again.name, "id": "b4"}).id, "b4")

    def test_long_name_of_a_binary_keeps_its_ending(self) -> None:
        """The ending says what a program or a library of Spark is."""
        name = "spark-app-with-dependencies-1.0.0-SNAPSHOT-assembly.jar"
        found = job_files.binary(name, DIGEST, "i1", [])
        self.assertEqual(found, Reuse(name="spark-app-with-dependencies-1.0.0-SNAPSHOT-ass.jar"))
        self.assertEqual(len(found.name), 50)
        found = job_files.binary("a" * 49 + "-b.py", DIGEST, "i1", [])
        self.assertEqual(found, Reuse(name="a" * 47 + ".py"))

    def test_the_record_of_a_file_has_a_name_of_plain_letters(self) -> None:
        self.assertEqual(
            job_files.binary("my data.csv", DIGEST, "i1", []), Reuse(name="my-data.csv")
        )

    def test_job(self) -> None:
        """The same type and binaries; the name with a digest when others have the plain one."""
        mine = {"id": "j1", "name": "count", "type": "Pig", "mains": [{"id": "b1"}], "libs": []}
        other = {**mine, "id": "j2", "mains": [{"id": "b9"}]}

        def found(*known: dict[str, Any]) -> Reuse:
            return job_files.job("count", JobType.PIG, ["b1"], [], known)

        self.assertEqual(found(), Reuse(name="count"))
        self.assertEqual(found(mine), Reuse(name="count", id="j1"))
        second = found(other)
        self.assertRegex(second.name, r"^count-[0-9a-f]{12}$")
        self.assertEqual(found(other, {**mine, "name": second.name}).id, "j1")
        self.assertRaises(Unusable, found, other, {**other, "name": second.name})

    def test_data_source(self) -> None:
        """The same place and the same account, for a job uses the account of its source."""
        row = {
            "id": "s1",
            "name": "words",
            "type": "objstore",
            "url": "objstore://c/words",
            "credentials": {"user": "demo", "password": "secret"},
        }

        def found(user: str, password: str) -> Reuse:
            return job_files.source(row["type"], row["url"], user, password, [row], "n1")

        self.assertEqual(found("demo", "secret"), Reuse(name="words", id="s1"))
        other = found("demo", "changed")
        self.assertEqual((other.id, other.name[:6]), ("", "words-"))
        self.assertNotIn("changed", other.name)
        plain = {**row, "type": "hdfs", "url": "hdfs:///out", "credentials": {}}
        self.assertEqual(job_files.source("hdfs", "hdfs:///out", "", "", [plain], "n").id, "s1")
