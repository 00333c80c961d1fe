"""Which URLs of data sources a job can use, and how its program reads them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.ids import DataSourceId, TenantId, Timestamp
from svcd.model.job import DataSource, JobType
from svcd.workflow.decide.data_urls import faults_of, input_property, paths_of, pig_parameter

HDFS: Final = "hdfs://, webhdfs:// and swebhdfs:// URLs and paths of the cluster's HDFS (/path)"
WITH_DATA: Final = (JobType.PIG, JobType.JAR, JobType.MAP_REDUCE, JobType.SPARK)
PLAIN: Final = "hdfs:///a b/größe日本☃ +&#%20;=`|<c>~!@()^-\"'"
"""Characters that stand for themselves in every program."""


def _source(url: str, type_: str) -> DataSource:
    return DataSource(
        id=DataSourceId("s"),
        tenant_id=TenantId("t"),
        name="words",
        type=type_,
        url=url,
        created_at=Timestamp("2026-01-01 00:00:00.000000"),
    )


def _fault(
    url: str,
    type_: str = "hdfs",
    key: str = "input_id",
    job_type: JobType = JobType.PIG,
    configs: Collection[str] = (),
) -> str:
    """The one fault, without its path and the name of the source; "" when there is none."""
    found = list(faults_of(job_type, {key: _source(url, type_)}, configs))
    start = f"$.{key}: data source words: "
    assert len(found) <= 1 and all(each.startswith(start) for each in found), found
    return found[0].removeprefix(start) if found else ""


class SchemeTests(SynchronousTestCase):
    def test_url_that_jobs_can_use_has_no_fault(self) -> None:
        """A scheme of the source's type, or none for HDFS."""
        for type_, url in (
            ("hdfs", "hdfs://10.0.0.1:8020/in"),
            ("hdfs", "hdfs:///in"),
            ("hdfs", "webhdfs://other:9870/in"),
            ("hdfs", "/in"),
            ("hdfs", "in/words"),
            ("objstore", "objstore://box/in"),
            ("objstore", "objstore://box.svc/in"),
        ):
            for job_type in JobType:
                self.assertEqual(_fault(url, type_, job_type=job_type), "", url)

    def test_other_scheme_is_refused_by_every_job_type(self) -> None:
        """The text names the scheme, the accepted ones, and the way to others."""
        for job_type in JobType:
            self.assertEqual(
                _fault("s3a://user:secret@bucket/in", job_type=job_type),
                f"its URL has the scheme s3a, and jobs use data sources of type hdfs with {HDFS};"
                " for another file system give its class as fs.s3a.impl in configs",
            )
            for url, scheme in (("har:///a.har/in", "har"), ("viewfs://c/in", "viewfs")):
                told = f"give its class as fs.{scheme}.impl in configs"
                self.assertIn(told, _fault(url, job_type=job_type))

    def test_file_is_refused_with_the_reason(self) -> None:
        """A file of one machine is not there on the others."""
        self.assertEqual(
            _fault("file:///in"),
            f"its URL has the scheme file, and jobs use data sources of type hdfs with {HDFS}; each"
            " machine of the cluster has files of its own: put the data into HDFS or the object"
            " store",
        )

    def test_scheme_of_the_other_type_is_refused(self) -> None:
        """The type decides about the login, so it has to agree with the URL."""
        self.assertEqual(
            _fault("hdfs:///in", "objstore"),
            "its URL has the scheme hdfs, and jobs use data sources of type objstore with"
            " objstore://CONTAINER/PATH",
        )
        self.assertEqual(
            _fault("objstore://box/in"),
            f"its URL has the scheme objstore, and jobs use data sources of type hdfs with {HDFS}",
        )
        self.assertEqual(
            _fault("/in", "objstore"),
            "its URL has no scheme, and jobs use data sources of type objstore with"
            " objstore://CONTAINER/PATH",
        )

    def test_file_system_of_the_caller_is_accepted(self) -> None:
        """The caller names its class in the configuration."""
        self.assertEqual(_fault("s3a://bucket/in", configs=["fs.s3a.impl"]), "")
        self.assertEqual(_fault("file:///in", configs=["fs.file.impl"]), "")
        self.assertEqual(_fault("s3a://bucket/in", configs=["spark.hadoop.fs.s3a.impl"]), "")

    def test_scheme_is_that_of_hadoop(self) -> None:
        """Case matters, and a colon after a slash makes no scheme; a long one is cut."""
        self.assertIn("the scheme HDFS,", _fault("HDFS:///in"))
        self.assertIn("the scheme C,", _fault("C:in"))
        self.assertIn("contains a colon (:)", _fault("/C:in"))
        self.assertIn(f"the scheme {'a' * 30}…,", _fault(f"{'a' * 90}:/in"))

    def test_each_path_of_an_input_is_checked(self) -> None:
        """A comma separates two paths of an input."""
        self.assertEqual(_fault("hdfs:///a,/b"), "")
        self.assertIn("the scheme s3,", _fault("hdfs:///a,s3://b"))

    def test_url_without_a_container_is_refused(self) -> None:
        """Hadoop would not know where to look."""
        self.assertEqual(
            _fault("objstore:///in", "objstore"),
            "its URL names no container; write objstore://CONTAINER/PATH",
        )


class CharacterTests(SynchronousTestCase):
    def test_plain_characters_have_no_fault(self) -> None:
        """Blanks, letters of any script, and most marks; patterns in an input and an output."""
        for job_type in WITH_DATA:
            for key in ("input_id", "output_id"):
                self.assertEqual(_fault(PLAIN, key=key, job_type=job_type), "")
                self.assertEqual(_fault("/a*b?[c]{d}", key=key, job_type=job_type), "")

    def test_character_that_no_job_can_read_is_named(self) -> None:
        """In an input and in an output alike."""
        for job_type in WITH_DATA:
            for key in ("input_id", "output_id"):
                for url, told in (
                    (
                        "hdfs://host:8020/a:b",
                        "its URL contains a colon (:) in the path, which Hadoop cannot read there;"
                        " use another name, or ? for the colon of an input",
                    ),
                    ("/a\tb", "its URL contains the control character U+0009; remove it"),
                    ("/a\nb", "its URL contains the control character U+000A; remove it"),
                ):
                    self.assertEqual(_fault(url, key=key, job_type=job_type), told)
                removed = (
                    "its URL begins or ends with a blank, which the workflow engine removes;"
                    " rename it"
                )
                found = _fault("/a ", key=key, job_type=job_type)
                self.assertEqual(found, "" if job_type is JobType.SPARK else removed)

    def test_backslash_of_an_input_stands_before_a_pattern(self) -> None:
        """Anywhere else Hadoop would refuse the pattern, or take another name."""
        self.assertEqual(_fault(r"/a\*\?\[\]\{\}\\b"), "")
        self.assertEqual(
            _fault(r"/a\b"),
            "its URL contains a backslash before another character than * ? [ ] { } and \\;"
            r" a backslash in a name is written \\",
        )
        told = (
            "its URL contains a backslash at the end of a path (a comma separates paths); a comma"
            " in a name is written ?"
        )
        self.assertEqual(_fault(r"/a\,b"), told)
        self.assertEqual(_fault("/a\\"), told)

    def test_empty_path_of_an_input_is_refused(self) -> None:
        """Two commas, or one at an end."""
        for url in ("/a,,/b", "/a,", ",/a"):
            self.assertEqual(
                _fault(url),
                "its URL has an empty path beside a comma, which separates the paths of an input",
            )

    def test_backslash_in_an_output_is_refused(self) -> None:
        self.assertEqual(
            _fault("/a\\b", key="output_id"),
            "its URL contains a backslash (\\), which takes the meaning of the next character where"
            " the URL is an input; use another name",
        )

    def test_comma_in_an_output_is_refused_where_it_is_split(self) -> None:
        """Pig takes the part behind it for a path of its own; the others write one folder."""
        self.assertEqual(
            _fault("/a,b", key="output_id", job_type=JobType.PIG),
            "its URL contains a comma (,), at which Pig splits the name of an output, and writes to"
            " another place; use another name, or a Spark or MapReduce job",
        )
        for job_type in (JobType.JAR, JobType.MAP_REDUCE, JobType.SPARK):
            self.assertEqual(_fault("/a,b", key="output_id", job_type=job_type), "")

    def test_variable_of_hadoop_is_refused_where_hadoop_expands_it(self) -> None:
        """A configuration has variables; the parameter of a Pig script has svcd's escapes."""
        told = (
            "its URL contains ${, which begins a variable in a configuration of Hadoop; rename it"
            " or use a Pig job"
        )
        self.assertEqual(_fault("/${user.name}", job_type=JobType.MAP_REDUCE), told)
        self.assertEqual(_fault("/${user.name}", job_type=JobType.JAR), told)
        self.assertEqual(_fault("/${user.name}", job_type=JobType.PIG), "")

    def test_program_with_its_own_arguments_may_have_any_name(self) -> None:
        """Java and Shell jobs do not get the URLs from svcd."""
        for job_type in (JobType.JAVA, JobType.SHELL):
            self.assertEqual(_fault("/a:b\t,\\", key="output_id", job_type=job_type), "")

    def test_missing_source_has_no_fault(self) -> None:
        """A Shell job needs no data."""
        self.assertEqual(list(faults_of(JobType.SHELL, {"input_id": None}, ())), [])


class FormTests(SynchronousTestCase):
    def test_paths_are_separated_by_commas_outside_of_braces(self) -> None:
        """As Hadoop's own reader of a list."""
        self.assertEqual(paths_of("/a,/b{c,d},/e"), ["/a", "/b{c,d}", "/e"])
        self.assertEqual(paths_of("/a}b,c"), ["/a}b", "c"])

    def test_property_keeps_lists_and_patterns(self) -> None:
        """The property has escapes of its own for commas and backslashes."""
        self.assertEqual(input_property(PLAIN), PLAIN)
        self.assertEqual(input_property("/a,/b{c,d}"), r"/a,/b{c\,d}")
        self.assertEqual(input_property(r"/a\*"), r"/a\\*")

    def test_parameter_keeps_what_pig_would_take_away(self) -> None:
        """Pig reads quotation marks and backslashes in the text of a script."""
        self.assertEqual(pig_parameter(r"hdfs:///it's $HOME \*"), r"hdfs:///it\'s $HOME \\*")

    def test_parameter_begins_with_a_mark(self) -> None:
        """Pig would read a path that begins with a letter up to its first blank."""
        self.assertEqual(pig_parameter("a b"), "./a b")
        self.assertEqual(pig_parameter("/a b"), "/a b")
