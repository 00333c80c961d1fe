"""The type of a job by its file, and the names under which `svcd run` keeps and finds things."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import job_files
from svcd.cli.job_files import Kind, Reuse, Unusable, kind_of, slug, with_digest
from svcd.model.job import JobConfigs, JobType

DIGEST = "3f2a9c0b1d4e" + "0" * 52


class KindTests(SynchronousTestCase):
    def kind(self, file: str, head: bytes = b"", **more: Any) -> Kind:
        given = {"manifest": "", "given": "", "main_class": "", "configs": (), **more}
        names = ("manifest", "given", "main_class", "configs")
        return kind_of(file, head, *(given[name] for name in names))

    def test_type_of_a_file(self) -> None:
        """By its ending in any case, its first line, a main class or a mapper, or as given."""
        script, org = "a script with a #! line", "org.Main"
        mapper = "edp.streaming.mapper"
        for file, more, expected in (
            ("a/count.PIG", {}, (JobType.PIG, "a .pig file")),
            ("a.py", {}, (JobType.SPARK, "a .py file")),
            ("a.sql", {}, (JobType.SPARK, "a .sql file")),
            ("go.sh", {}, (JobType.SHELL, "a .sh file")),
            ("a.rb", {"head": b"#!/usr/bin/env ruby\n"}, (JobType.SHELL, script)),
            ("tool", {"head": b"#!/bin/sh\n"}, (JobType.SHELL, script)),
            ("a.jar", {"main_class": org}, (JobType.JAVA, "a .jar with a main class", org)),
            ("a.jar", {"manifest": org}, (JobType.JAVA, "a .jar with a main class", org)),
            ("a.jar", {"configs": ["edp.java.main_class"]},
             (JobType.JAVA, "a .jar with a main class")),
            ("a.jar", {"manifest": org, "configs": ["mapreduce.map.class"]},
             (JobType.MAP_REDUCE, "a .jar with mapreduce.map.class")),
            ("a.py", {"configs": [mapper]}, (JobType.MAP_REDUCE, f"a file with {mapper}")),
            ("a.txt", {"given": "pig"}, (JobType.PIG, "")),
            ("a.jar", {"given": "Spark", "main_class": org}, (JobType.SPARK, "", org)),
            ("a.jar", {"given": "spark", "manifest": org}, (JobType.SPARK, "", org)),
        ):  # fmt: skip
            found = self.kind(file, **more)
            self.assertEqual((found.type, found.why, found.main_class), (*expected, "")[:3])

    def test_refusals(self) -> None:
        """Each says what to give."""
        spark = {"given": "Spark"}
        for file, more, text in (
            ("a.rb", {"head": b"puts 1\n"}, "such as #!/usr/bin/env ruby"),
            ("tool", {"head": b"\xef\xbb\xbf#!/bin/sh\n"}, "byte order mark"),
            ("a.txt", {"head": b"x"}, "give --type, one of Pig, Jar"),
            ("a.txt", {"given": "Perl"}, "there are Pig, Jar, MapReduce"),
            ("a.jar", {}, "give --main-class CLASS"),
            ("a.jar", {"given": "Java"}, "give --main-class"),
            ("a.jar", spark, "give --main-class"),
            ("a.pig", {"main_class": "org.Main"}, "is for a .jar"),
            ("a.py", {**spark, "main_class": "org.Main"}, "is for a .jar"),
            ("a.txt", spark, "must end in .jar, .py, .sql"),
            ("a.py", {"given": "MapReduce"}, "give -c edp.streaming.mapper"),
            ("q.hql", {}, "svcd runs no Hive jobs"),
            ("q.txt", {"given": "Hive"}, "ends in .sql"),
        ):
            self.assertIn(text, str(self.assertRaises(Unusable, self.kind, file, **more)))

    def test_what_the_api_would_refuse(self) -> None:
        """It is known before anything is uploaded."""

        def told(kind: JobType, name: str, *others: str, **given: Any) -> str:
            files = [(each, b"") for each in (name, *others)]
            return next(iter(job_files.faults(kind, files, JobConfigs(**given))), "")

        spark, java, pig, shell = JobType.SPARK, JobType.JAVA, JobType.PIG, JobType.SHELL
        one = {"P": "1"}
        for found, text in (
            (told(spark, "a.py", params=one), "params: a .py program takes no params; it takes ar"),
            (told(spark, "a.sql", args=("x",)), "args: a .sql program takes no args; it takes par"),
            (told(java, "a.jar", "action.xml"), "action.xml: YARN, Spark or svcd has a file"),
            (told(java, "a.jar", params=one), "params: a Java job takes no params"),
            (told(pig, "a.pig", params={"a-b": "1"}), 'params: the name "a-b" cannot be'),
            (told(shell, "a.sh", "\udcff"), "\udcff: the name is not UTF-8: rename the"),
            (told(shell, "a.sh", args=("\udcff",)), "args[0]: contains U+DCFF, which no"),
            (told(shell, "a.sh", args=("x",) * 10_001), "10,001 arguments; a job has at mo"),
            (told(shell, "a.sh", configs={"edp.x": "1"}), 'configs["edp.x"]: a Shell job'),
        ):
            self.assertTrue(found.startswith(text), found)
        self.assertEqual(told(spark, "a.py", args=("x",)), "")

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

    def test_name_of_a_new_binary(self) -> None:
        """Plain letters; of a long name the ending stays, which says what the file is."""
        long = "spark-app-with-dependencies-1.0.0-SNAPSHOT"
        for name, expected in (
            ("my data.csv", "my-data.csv"),
            (f"{long}-assembly.jar", f"{long}-ass.jar"),
            ("a" * 49 + "-b.py", "a" * 47 + ".py"),
        ):
            self.assertEqual(job_files.binary(name, DIGEST, "i1", []), Reuse(name=expected))

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
