from __future__ import annotations

from urllib.parse import unquote
from xml.etree import ElementTree

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.oozie_jobs import define_job
from svcd.model.ids import DataSourceId, ExecutionId, JobBinaryId, TenantId, Timestamp
from svcd.model.job import Credentials, DataSource, JobBinary, JobConfigs, JobType
from svcd.ports.engine import Endpoints
from svcd.workflow.decide.arguments import file_faults
from svcd.workflow.decide.document import (
    DocumentError,
    Work,
    further_files,
    properties,
    workflow,
)
from svcd.workflow.decide.object_store import ObjectStoreAccess
from svcd.workflow.decide.rules import job_faults
from svcd.workflow.decide.spark_job import main_faults

URL = "${svcdFolder}"


def source(url: str, account: Credentials | None = None) -> DataSource:
    return DataSource(
        id=DataSourceId("s"),
        tenant_id=TenantId("t"),
        name="s",
        type="hdfs",
        url=url,
        credentials=account,
        created_at=Timestamp("2026-11-20 17:00:00.000000"),
    )


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

    def test_explicit_arguments(self) -> None:
        """The program gets its own arguments alone."""
        configs = JobConfigs(configs={"edp.spark.arguments": "explicit"}, args=("only",))
        self.assertIn("['only']", calls(evolve(PY, configs=configs))[0])

    def test_without_data_sources(self) -> None:
        self.assertIn("'wc.py', [], [", calls(evolve(PY, input=None, output=None))[0])

    def test_configurations(self) -> None:
        """Names of Spark and of the engine stay; any other one is an option of Hadoop."""
        given = {
            "spark.executor.cores": 2,
            "dfs.replication": "1",
            "oozie.launcher.memory.mb": "512",
        }
        configs, _ = parts(evolve(PY, configs=JobConfigs(configs=given)))
        self.assertEqual(configs["spark.executor.cores"], "2")
        self.assertEqual(configs["spark.hadoop.dfs.replication"], "1")
        self.assertEqual(configs["oozie.launcher.memory.mb"], "512")

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

    def test_python_files_of_a_jar_are_plain_files(self) -> None:
        configs, _ = parts(evolve(JAR, libs=("b.py", "c.zip")))
        files = f"{URL}/svcd-values,{URL}/svcd-file-1#b.py,{URL}/c.zip#c.zip"
        self.assertEqual(configs["spark.yarn.dist.files"], files)

    def test_names_with_marks_of_spark_and_of_the_shell(self) -> None:
        """The shell that makes the link reads them."""
        configs, _ = parts(evolve(PY, libs=('a,b:*$"', "größe%41")))
        _, marks, letters = configs["spark.yarn.dist.files"].split(",")
        self.assertEqual(
            unquote(marks.partition("#")[2]),
            "a$(printf '\\54')b$(printf '\\72')$(printf '\\52')\\$\\\"",
        )
        self.assertEqual(letters.partition("#")[2], "gr%C3%B6%C3%9Fe%2541")

    def test_the_name_of_the_application(self) -> None:
        """It is shown, so it has only what XML can hold."""
        configs, _ = parts(evolve(PY, mains=("${x}\x01ü.py",)))
        self.assertEqual(configs["spark.app.name"], "${'$'}{x}?ü.py")

    def test_object_store(self) -> None:
        """The login is an option of Hadoop, as for each other type of job."""
        account = Credentials(user="ann", password="secret")
        work = evolve(
            PY,
            input=source("objstore://a/in", account),
            object_store=ObjectStoreAccess(auth_url="http://k/v3"),
        )
        configs, _ = parts(work)
        self.assertEqual(configs["spark.hadoop.fs.objstore.username"], "ann")
        self.assertEqual(configs["spark.hadoop.fs.objstore.password"], "secret")
        self.assertFalse([name for name in configs if name.startswith("fs.")])

    def test_folder_is_a_property_of_the_submission(self) -> None:
        endpoints = Endpoints(
            engine="",
            webhdfs="",
            name_node="hdfs://n:8020",
            resource_manager="r:8032",
            history="",
            user="u",
        )
        found = properties(PY, endpoints, "/user/u/e1")
        self.assertEqual(found["svcdFolder"], "hdfs://n:8020/user/u/e1")


class Faults(SynchronousTestCase):
    def refused(self, work: Work, **given: object) -> list[str]:
        configs = evolve(work.configs, **given)
        with self.assertRaises(DocumentError) as caught:
            workflow(evolve(work, configs=configs))
        return str(caught.exception).split("\n")

    def test_jar_needs_a_main_class(self) -> None:
        self.assertEqual(
            self.refused(JAR, configs={}),
            [
                "$.job_configs.configs: a Spark job with a .jar needs edp.java.main_class: the"
                " class with main()"
            ],
        )

    def test_main_class_of_a_script(self) -> None:
        self.assertEqual(
            self.refused(PY, configs={"edp.java.main_class": "a.Main"}),
            [
                '$.job_configs.configs["edp.java.main_class"]: only a .jar has a main class, no'
                " .py file"
            ],
        )

    def test_arguments_in_a_wrong_form(self) -> None:
        found = self.refused(PY, configs={"edp.spark.arguments": "none"})
        self.assertEqual(len(found), 1)
        self.assertIn('configs["edp.spark.arguments"]: expected explicit', found[0])

    def test_what_sql_cannot_take(self) -> None:
        given = {"a b": "1", "spark.x": "2", "ok_1": "3", "größe-1": "4", "a:b": "5", "a}": "6"}
        found = self.refused(SQL, args=("x",), params=given)
        self.assertEqual(len(found), 5)
        self.assertIn("$.job_configs.args: a .sql program takes no args", found[0])
        self.assertIn('the name "a b" cannot be written as a variable', found[1])
        self.assertIn('the name "spark.x" is that of a setting', found[2])

    def test_the_limits_of_linux(self) -> None:
        """They hold for a program of Python, which Linux starts."""
        long = "x" * 131_072
        (found,) = self.refused(PY, args=("x", long))
        self.assertIn("$.job_configs.args[1]: has more than 131,071 bytes", found)
        self.assertIn("1,900,000 bytes", self.refused(PY, args=("x" * 100_000,) * 20)[0])
        parts(evolve(JAR, configs=evolve(JAR.configs, args=(long,) * 20)))

    def test_names_of_own_files_of_the_container(self) -> None:
        names = ("workflow.xml", "svcd-start.py", "a.txt", "svcd-file-7.zip")
        libs = [
            JobBinary(
                id=JobBinaryId(each),
                tenant_id=TenantId("t"),
                name="x",
                file_name=each,
                url="internal-db://1",
                created_at=Timestamp("2026-11-20 17:00:00.000000"),
            )
            for each in names
        ]
        found = list(file_faults(JobType.SPARK, [], libs))
        self.assertEqual([each.partition(":")[0] for each in found], ["$.libs[1]", "$.libs[3]"])
        self.assertIn("has a file svcd-start.py of its own", found[0])
        found = list(file_faults(JobType.JAVA, [], libs))
        self.assertEqual([each.partition(":")[0] for each in found], ["$.libs[3]"])

    def test_params_of_a_program(self) -> None:
        for work in (PY, JAR):
            self.assertIn("takes no params; it takes args", self.refused(work, params={"a": 1})[0])

    def test_reserved_options_of_spark(self) -> None:
        found = self.refused(PY, configs={"spark.master": "local", "spark.submit.deployMode": "x"})
        self.assertEqual(
            [each.partition(":")[0] for each in found],
            [
                '$.job_configs.configs["spark.master"]',
                '$.job_configs.configs["spark.submit.deployMode"]',
            ],
        )

    def test_the_type_by_which_applications_are_found(self) -> None:
        """Neither a job nor a default of the cluster hides the application of a job."""
        (found,) = self.refused(PY, configs={"spark.yarn.applicationType": "MINE"})
        self.assertIn('configs["spark.yarn.applicationType"]: svcd sets this', found)
        parts(PY)  # which looks for svcd's own value

    def test_main_binaries(self) -> None:
        """By the end of the name, in any case of letters; one of them."""
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
        self.assertIn("$.mains[0]", self.refused(evolve(PY, mains=("count",)))[0])

    def test_hive_names_the_type_that_runs_sql(self) -> None:
        (found,) = job_faults(JobType.HIVE, ["m"], [])
        self.assertIn("$.type: svcd runs no Hive jobs", found)
        self.assertIn("type Spark whose main binary ends in .sql", found)
