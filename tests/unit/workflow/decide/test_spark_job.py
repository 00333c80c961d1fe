from __future__ import annotations

from xml.etree import ElementTree

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.oozie_jobs import define_job
from svcd.model.ids import DataSourceId, ExecutionId, TenantId, Timestamp
from svcd.model.job import Credentials, DataSource, JobConfigs, JobType
from svcd.ports.engine import Endpoints
from svcd.workflow.decide.document import (
    DocumentError,
    Work,
    properties,
    workflow,
)
from svcd.workflow.decide.job_configs import faults_of
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


class Rendering(SynchronousTestCase):
    def test_python(self) -> None:
        """The data sources are the first arguments; the program is named by its URL."""
        work = evolve(PY, configs=JobConfigs(args=("-x", "1")))
        self.assertEqual(
            parts(work),
            (
                {"svcd.spark.folder": URL, "svcd.spark.main": f"{URL}/wc.py"},
                ["hdfs:///in", "/out", "-x", "1"],
            ),
        )

    def test_jar(self) -> None:
        configs, args = parts(JAR)
        self.assertEqual(configs["svcd.spark.class"], "a.Main")
        self.assertEqual(configs["svcd.spark.main"], f"{URL}/wc.jar")
        self.assertEqual(args, ["hdfs:///in", "/out"])
        self.assertFalse([name for name in configs if name.startswith("edp.")])

    def test_sql(self) -> None:
        """The script is an argument of RunSql; places and params are variables."""
        configs, args = parts(evolve(SQL, configs=JobConfigs(params={"LEAST": 3})))
        self.assertEqual(
            configs,
            {
                "spark.app.name": "wc.sql",
                "spark.svcd.variable.INPUT": "hdfs:///in",
                "spark.svcd.variable.LEAST": "3",
                "spark.svcd.variable.OUTPUT": "/out",
                "svcd.spark.class": "org.svcd.spark.RunSql",
                "svcd.spark.folder": URL,
                "svcd.spark.main": "spark-internal",
            },
        )
        self.assertEqual(args, [f"{URL}/wc.sql"])

    def test_explicit_arguments(self) -> None:
        """The program gets its own arguments alone."""
        configs = JobConfigs(configs={"edp.spark.arguments": "explicit"}, args=("only",))
        self.assertEqual(parts(evolve(PY, configs=configs))[1], ["only"])

    def test_empty_arguments(self) -> None:
        """The launcher would fail over them with a NullPointerException."""
        work = evolve(PY, input=None, output=None, configs=JobConfigs(args=("", "x", "\t")))
        found = ["${'$'}{env.SVCD_UNSET:-}", "x", "${'$'}{env.SVCD_UNSET:-\t}"]
        self.assertEqual(parts(work)[1], found)
        self.assertEqual(
            list(faults_of(JobType.SPARK, JobConfigs(args=("a", " ")), {})),
            ["$.job_configs.args[1]: has only blanks, which the launcher loses"],
        )

    def test_without_data_sources(self) -> None:
        self.assertEqual(parts(evolve(PY, input=None, output=None))[1], [])

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
        """Behind those that the caller names."""
        given = JobConfigs(configs={"spark.jars": "hdfs:///more.jar"})
        work = evolve(PY, libs=("a.jar", "b.py", "c.zip", "d.txt"), configs=given)
        configs, _ = parts(work)
        self.assertEqual(configs["spark.jars"], f"hdfs:///more.jar,{URL}/a.jar")
        self.assertEqual(configs["spark.submit.pyFiles"], f"{URL}/b.py,{URL}/c.zip")
        self.assertEqual(configs["spark.files"], f"{URL}/d.txt")

    def test_python_files_of_a_jar_are_plain_files(self) -> None:
        configs, _ = parts(evolve(JAR, libs=("b.py",)))
        self.assertEqual(configs["spark.files"], f"{URL}/b.py")

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
        found = self.refused(SQL, args=("x",), params={"a-b": "1", "ok_1": "2"})
        self.assertEqual(len(found), 2)
        self.assertIn("$.job_configs.args: a .sql program takes no args", found[0])
        self.assertIn('the name "a-b" cannot be written as a variable', found[1])

    def test_variable_in_the_url_of_a_data_source_of_sql(self) -> None:
        """Spark replaces variables in the value of one, too; other programs get the text."""
        places = {"input": source("hdfs:///${x}"), "output": source("/a/${y}")}
        told = (
            "data source s: its URL contains ${, which begins a variable in a .sql program; rename"
            " it or use a .py program"
        )
        found = self.refused(evolve(SQL, **places))
        self.assertEqual(found, [f"$.input_id: {told}", f"$.output_id: {told}"])
        self.assertEqual(parts(evolve(PY, **places))[1], ["hdfs:///${'$'}{x}", "/a/${'$'}{y}"])

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
