"""Which URLs of data sources a job can use, and how its program reads them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.job import JobType
from svcd.workflow.decide.data_urls import faults_of, input_property, paths_of, pig_parameter
from tests.unit.workflow.decide.rows import source

HDFS: Final = "hdfs://, webhdfs:// and swebhdfs:// URLs and paths of the cluster's HDFS (/path)"
WITH_DATA: Final = (JobType.PIG, JobType.JAR, JobType.MAP_REDUCE, JobType.SPARK)
PLAIN: Final = "hdfs:///a b/größe日本☃ +&#%20;=`|<c>~!@()^-\"'"
"""Characters that stand for themselves in every program."""


def _fault(
    url: str,
    type_: str = "hdfs",
    key: str = "input_id",
    job_type: JobType = JobType.PIG,
    configs: Collection[str] = (),
) -> str:
    """The one fault, without its path and the name of the source; "" when there is none."""
    found = list(faults_of(job_type, {key: source(url, type_=type_)}, configs))
    start = f"$.{key}: data source words: "
    assert len(found) <= 1 and all(each.startswith(start) for each in found), found
    return found[0].removeprefix(start) if found else ""


COLON: Final = (
    "its URL contains a colon (:) in the path, which Hadoop cannot read there; use another name,"
    " or ? for the colon of an input"
)
BLANK: Final = "its URL begins or ends with a blank, which the workflow engine removes; rename it"
ESCAPED: Final = (
    "its URL contains a backslash before another character than * ? [ ] { } and \\; a backslash in"
    " a name is written \\\\"
)
AT_THE_END: Final = (
    "its URL contains a backslash at the end of a path (a comma separates paths); a comma in a name"
    " is written ?"
)
EMPTY: Final = "its URL has an empty path beside a comma, which separates the paths of an input"
BACKSLASH: Final = (
    "its URL contains a backslash (\\), which takes the meaning of the next character where the URL"
    " is an input; use another name"
)
COMMA: Final = (
    "its URL contains a comma (,), at which Pig splits the name of an output, and writes to another"
    " place; use another name, or a Spark or MapReduce job"
)
VARIABLE: Final = (
    "its URL contains ${, which begins a variable in a configuration of Hadoop; rename it or use a"
    " Pig job"
)


class SchemeTests(SynchronousTestCase):
    def test_url_that_jobs_can_use_has_no_fault(self) -> None:
        """A scheme of the source's type, or none for HDFS; or the caller names its class."""
        for type_, url in (
            ("hdfs", "hdfs://10.0.0.1:8020/in"),
            ("hdfs", "hdfs:///a,/b"),
            ("hdfs", "webhdfs://other:9870/in"),
            ("hdfs", "/in"),
            ("hdfs", "in/words"),
            ("objstore", "objstore://box/in"),
            ("objstore", "objstore://box.svc/in"),
        ):
            for job_type in JobType:
                self.assertEqual(_fault(url, type_, job_type=job_type), "", url)
        for scheme, name in (("s3a", "fs.s3a.impl"), ("file", "spark.hadoop.fs.file.impl")):
            self.assertEqual(_fault(f"{scheme}://bucket/in", configs=[name]), "")

    def test_other_scheme_is_refused_by_every_job_type(self) -> None:
        """The text names the scheme, the accepted ones, and the way to others, but no login."""
        for job_type in JobType:
            self.assertEqual(
                _fault("s3a://user:secret@bucket/in", job_type=job_type),
                f"its URL has the scheme s3a, and jobs use data sources of type hdfs with {HDFS};"
                " for another file system give its class as fs.s3a.impl in configs",
            )

    def test_scheme_of_the_other_type_or_of_one_machine_is_refused(self) -> None:
        """The type decides about the login, so it has to agree with the URL."""
        hdfs = f"and jobs use data sources of type hdfs with {HDFS}"
        box = "and jobs use data sources of type objstore with objstore://CONTAINER/PATH"
        own = "each machine of the cluster has files of its own: put the data into HDFS or the"
        for type_, url, told in (
            ("hdfs", "file:///in", f"its URL has the scheme file, {hdfs}; {own} object store"),
            ("hdfs", "objstore://box/in", f"its URL has the scheme objstore, {hdfs}"),
            ("objstore", "hdfs:///in", f"its URL has the scheme hdfs, {box}"),
            ("objstore", "/in", f"its URL has no scheme, {box}"),
            (
                "objstore",
                "objstore:///in",
                "its URL names no container; write objstore://CONTAINER/PATH",
            ),
        ):
            self.assertEqual(_fault(url, type_), told)

    def test_scheme_is_that_of_hadoop(self) -> None:
        """Case matters, and a colon after a slash makes no scheme; a long one is cut."""
        for url, told in (
            ("HDFS:///in", "the scheme HDFS,"),
            ("C:in", "the scheme C,"),
            ("/C:in", "contains a colon (:)"),
            (f"{'a' * 90}:/in", f"the scheme {'a' * 30}…,"),
            ("hdfs:///a,s3://b", "the scheme s3,"),
        ):
            self.assertIn(told, _fault(url))


class CharacterTests(SynchronousTestCase):
    def test_characters_that_mean_the_same_in_inputs_and_outputs(self) -> None:
        """Blanks, letters of any script, most marks and patterns have no fault."""
        for job_type in WITH_DATA:
            for url, told in (
                (PLAIN, ""),
                ("/a*b?[c]{d}", ""),
                ("hdfs://host:8020/a:b", COLON),
                ("/a\tb", "its URL contains the control character U+0009; remove it"),
                ("/a\nb", "its URL contains the control character U+000A; remove it"),
                ("/a ", "" if job_type is JobType.SPARK else BLANK),
            ):
                for key in ("input_id", "output_id"):
                    self.assertEqual(_fault(url, key=key, job_type=job_type), told, url)

    def test_marks_of_an_input(self) -> None:
        """A backslash stands before a pattern, a comma between two paths."""
        for url, told in (
            (r"/a\*\?\[\]\{\}\\b", ""),
            (r"/a\b", ESCAPED),
            (r"/a\,b", AT_THE_END),
            ("/a\\", AT_THE_END),
            ("/a,,/b", EMPTY),
            ("/a,", EMPTY),
            (",/a", EMPTY),
        ):
            self.assertEqual(_fault(url), told, url)

    def test_marks_of_an_output(self) -> None:
        """Of the types, Pig takes the part behind a comma for a path of its own."""
        self.assertEqual(_fault("/a\\b", key="output_id"), BACKSLASH)
        for job_type in WITH_DATA:
            told = COMMA if job_type is JobType.PIG else ""
            self.assertEqual(_fault("/a,b", key="output_id", job_type=job_type), told)

    def test_variable_of_hadoop_is_refused_where_hadoop_expands_it(self) -> None:
        """A configuration has variables; the parameter of a Pig script has svcd's escapes."""
        self.assertEqual(_fault("/${user.name}", job_type=JobType.MAP_REDUCE), VARIABLE)
        self.assertEqual(_fault("/${user.name}", job_type=JobType.JAR), VARIABLE)
        self.assertEqual(_fault("/${user.name}", job_type=JobType.PIG), "")

    def test_program_with_its_own_arguments_may_have_any_name_or_no_data(self) -> None:
        """Java and Shell jobs do not get the URLs from svcd."""
        for job_type in (JobType.JAVA, JobType.SHELL):
            self.assertEqual(_fault("/a:b\t,\\", key="output_id", job_type=job_type), "")
            self.assertEqual(list(faults_of(job_type, {"input_id": None}, ())), [])


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
        """Pig reads quotation marks and backslashes, and a first letter up to the first blank."""
        for url, told in (
            (r"hdfs:///it's $HOME \*", r"hdfs:///it\'s $HOME \\*"),
            ("a b", "./a b"),
            ("/a b", "/a b"),
        ):
            self.assertEqual(pig_parameter(url), told)
