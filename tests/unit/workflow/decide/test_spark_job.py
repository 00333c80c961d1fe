from __future__ import annotations

from xml.etree import ElementTree

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.oozie_jobs import define_job
from svcd.model.ids import ExecutionId
from svcd.model.job import Credentials, JobConfigs, JobType
from svcd.workflow.decide.document import (
    DocumentError,
    Work,
    further_files,
    workflow,
)
from svcd.workflow.decide.object_store import ObjectStoreAccess
from svcd.workflow.decide.rules import job_faults
from svcd.workflow.decide.spark_job import main_faults
from tests.unit.workflow.decide.rows import source

URL = "${svcdFolder}"


PY = Work(
    execution_id=ExecutionId("e1"),
    type=JobType.SPARK,
    project="demo",
    mains=("wc.py",),
    input=source("hdfs:///in"),
    output=source("/out"),
)
JAR = evolve(PY, mains=("wc.jar",), configs=JobConfigs(configs={"edp.java.main_class": "a.Main"}))
SQL = evolve(PY, mains=("wc.sql",))


def parts(work: Work) -> tuple[dict[str, str], list[str]]:
    """The configuration and the arguments of the action, whose main class is that of svcd."""
    text = workflow(work)
    define_job(text)  # the order of elements is the schema's
    tree = ElementTree.fromstring(text)
    space = "{uri:oozie:workflow:0.5}"
    assert [e.text for e in tree.iter(f"{space}main-class")] == ["org.svcd.spark.SubmitSpark"]
    configs = {
        str(each.findtext(f"{space}name")): str(each.findtext(f"{space}value"))
        for each in tree.iter(f"{space}property")
    }
    assert configs.pop("oozie.launcher.max.attempts") == "1"
    assert configs.pop("spark.yarn.applicationType") == "SPARK"
    return configs, [str(each.text) for each in tree.iter(f"{space}arg")]


def calls(work: Work) -> list[str]:
    """The call that svcd appends to the starter of a Python program."""
    text = further_files(work)["svcd-start.py"].decode()
    return [line for line in text.splitlines() if line.startswith("start(")]


class Rendering(SynchronousTestCase):
    def test_python(self) -> None:
        """Spark runs svcd's starter, which has the data sources as the first arguments."""
        work = evolve(PY, configs=JobConfigs(args=("-x", " 1\n", "")))
        self.assertEqual(
            parts(work),
            (
                {
                    "spark.app.name": "wc.py",
                    "spark.yarn.dist.files": f"{URL}/svcd-file-0#wc.py",
                    "svcd.spark.folder": URL,
                    "svcd.spark.main": f"{URL}/svcd-start.py",
                },
                [],
            ),
        )
        (call,) = calls(work)
        self.assertEqual(
            call,
            "start('wc.py', ['hdfs:///in', '/out', '-x', ' 1\\n', ''], [('wc.py', 'wc.py')])",
        )

    def test_jar(self) -> None:
        """A class of svcd calls the main class; the program is the first library."""
        work = evolve(JAR, configs=evolve(JAR.configs, args=("a b",)), libs=("my lib.jar",))
        configs, args = parts(work)
        self.assertEqual(configs["svcd.spark.class"], "org.svcd.jobs.StartMain")
        self.assertEqual(configs["svcd.spark.main"], "spark-internal")
        self.assertEqual(
            configs["spark.yarn.dist.jars"],
            f"{URL}/svcd-start.jar,{URL}/wc.jar,{URL}/svcd-file-1.jar",
        )
        self.assertEqual(configs["spark.yarn.dist.files"], f"{URL}/svcd-values")
        self.assertEqual(configs["spark.app.name"], "a.Main")
        self.assertEqual(args, ["a.Main"])
        self.assertFalse([name for name in configs if name.startswith("edp.")])
        self.assertEqual(
            further_files(work)["svcd-values"],
            b"1\0svcd-file-1.jar\0my lib.jar\0hdfs:///in\0/out\0a b\0",
        )

    def test_sql(self) -> None:
        """The script is an argument; places and params are variables, which have no variables."""
        work = evolve(SQL, configs=JobConfigs(params={"LEAST": 3, "a-b": " ${x}$${y}"}))
        configs, args = parts(work)
        self.assertEqual(
            configs,
            {
                "spark.app.name": "wc.sql",
                "spark.yarn.dist.files": f"{URL}/svcd-values",
                "spark.yarn.dist.jars": f"{URL}/svcd-start.jar",
                "svcd.spark.class": "org.svcd.jobs.StartSql",
                "svcd.spark.folder": URL,
                "svcd.spark.main": "spark-internal",
            },
        )
        self.assertEqual(args, [f"{URL}/svcd-file-0"])
        self.assertEqual(
            further_files(work)["svcd-values"],
            b"svcd.dollar\0$\0INPUT\0hdfs:///in\0OUTPUT\0/out\0LEAST\0003\0"
            b"a-b\0 ${svcd.dollar}{x}$${svcd.dollar}{y}\0",
        )

    def test_arguments_without_data_sources(self) -> None:
        """None is given, or the program gets its own arguments alone."""
        configs = JobConfigs(configs={"edp.spark.arguments": "explicit"}, args=("only",))
        self.assertIn("['only']", calls(evolve(PY, configs=configs))[0])
        self.assertIn("'wc.py', [], [", calls(evolve(PY, input=None, output=None))[0])

    def test_configurations(self) -> None:
        """Names of Spark and of the engine stay; any other is an option of Hadoop, as a login."""
        given = {"spark.executor.cores": 2, "dfs.replication": "1", "oozie.launcher.vcores": "3"}
        account = Credentials(user="ann", password="secret")
        work = evolve(
            PY,
            mains=("${x}\x01ü.py",),
            input=source("objstore://a/in", account),
            object_store=ObjectStoreAccess(auth_url="http://k/v3"),
            configs=JobConfigs(configs=given),
        )
        configs, _ = parts(work)
        for name, value in (
            ("spark.executor.cores", "2"),
            ("spark.hadoop.dfs.replication", "1"),
            ("oozie.launcher.vcores", "3"),
            ("spark.hadoop.fs.objstore.username", "ann"),
            ("spark.hadoop.fs.objstore.password", "secret"),
            ("spark.app.name", "${'$'}{x}?ü.py"),  # only what XML can hold
        ):
            self.assertEqual(configs[name], value)
        self.assertFalse([name for name in configs if name.startswith("fs.")])

    def test_libraries_by_their_endings(self) -> None:
        """Before those that the caller names. Archives and jars are found by their places."""
        given = JobConfigs(configs={"spark.yarn.dist.jars": "hdfs:///more.jar"})
        libs = ("a.jar", "_b c.py", "c.zip", "d+1-py3-none-any.whl", "größe.txt")
        work = evolve(PY, libs=libs, configs=given)
        configs, _ = parts(work)
        self.assertEqual(configs["spark.yarn.dist.jars"], f"{URL}/a.jar,hdfs:///more.jar")
        self.assertEqual(
            configs["spark.yarn.dist.pyFiles"],
            f"{URL}/svcd-file-2#_b%20c.py,{URL}/c.zip,{URL}/svcd-file-4.whl",
        )
        self.assertEqual(
            configs["spark.yarn.dist.files"],
            f"{URL}/svcd-file-0#wc.py,{URL}/svcd-file-5#gr%C3%B6%C3%9Fe.txt",
        )
        places = (
            "[('wc.py', 'wc.py'), ('a.jar', 'a.jar'), ('__pyfiles__/_b c.py', '_b c.py'),"
            " ('c.zip', 'c.zip'), ('svcd-file-4.whl', 'd+1-py3-none-any.whl'),"
            " ('gr\\xf6\\xdfe.txt', 'gr\\xf6\\xdfe.txt')]"
        )
        self.assertIn(places, calls(work)[0])


class Faults(SynchronousTestCase):
    def refuses(self, work: Work, *told: str, **given: object) -> None:
        """`work` with these configurations has these faults; only their beginnings are given."""
        with self.assertRaises(DocumentError) as caught:
            workflow(evolve(work, configs=evolve(work.configs, **given)))
        found = str(caught.exception).split("\n")
        begins = [line[: len(begin)] for line, begin in zip(found, told, strict=True)]
        self.assertEqual(begins, list(told))

    def test_configurations_of_another_kind_of_program(self) -> None:
        at = "$.job_configs.configs"
        self.refuses(JAR, f"{at}: a Spark job with a .jar needs edp.java.main_class", configs={})
        told = f'{at}["edp.java.main_class"]: only a .jar has a main class, no .py file'
        self.refuses(PY, told, configs={"edp.java.main_class": "a.Main"})
        told = f'{at}["edp.spark.arguments"]: expected explicit'
        self.refuses(PY, told, configs={"edp.spark.arguments": "none"})
        self.refuses(evolve(PY, mains=("count",)), "$.mains[0]: the program of a Spark job is a")

    def test_configurations_that_svcd_sets(self) -> None:
        """By its type svcd finds the application of a job."""
        names = ("spark.master", "spark.submit.deployMode", "spark.yarn.applicationType")
        told = [f'$.job_configs.configs["{name}"]: svcd sets this' for name in names]
        self.refuses(PY, *told, configs=dict.fromkeys(names, "x"))

    def test_params_and_args_by_the_program(self) -> None:
        self.refuses(PY, "$.job_configs.params: a .py program takes no params", params={"a": 1})
        self.refuses(JAR, "$.job_configs.params: a .jar program takes no params", params={"a": 1})
        self.refuses(
            SQL,
            "$.job_configs.args: a .sql program takes no args",
            '$.job_configs.params: the name "a b" cannot be written as a variable',
            '$.job_configs.params: the name "spark.x" is that of a setting',
            '$.job_configs.params: the name "a}" cannot be written as a variable',
            args=("x",),
            params={"a b": "1", "spark.x": "2", "ok_1": "3", "größe-1": "4", "a}": "6"},
        )

    def test_the_limits_of_linux_hold_for_a_program_that_linux_starts(self) -> None:
        """A class of svcd calls the main class of a jar."""
        long = ("x" * 131_072,)
        self.refuses(PY, "$.job_configs.args[0]: has more than 131,071 bytes", args=long)
        many = ("x" * 100_000,) * 20
        self.refuses(PY, "$.job_configs: args and params have more than 1,900,000", args=many)
        parts(evolve(JAR, configs=evolve(JAR.configs, args=long * 20)))

    def test_main_binary_is_known_by_the_end_of_its_name(self) -> None:
        """In any case of letters; there is one of them."""
        for name in ("a.jar", "a.PY", "a.sql"):
            self.assertEqual(list(main_faults([name])), [])
        self.assertEqual(
            list(main_faults(["count"])),
            [
                "$.mains[0]: the program of a Spark job is a .jar, a .py or a .sql file, by the end"
                ' of its name: rename the job binary "count"'
            ],
        )
        self.assertIn("one main binary", next(iter(main_faults(["a.py", "b.py"]))))

    def test_hive_names_the_type_that_runs_sql(self) -> None:
        (found,) = job_faults(JobType.HIVE, ["m"], [])
        self.assertIn("$.type: svcd runs no Hive jobs", found)
        self.assertIn("type Spark whose main binary ends in .sql", found)
