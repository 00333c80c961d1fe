"""The values of a job on their way to its program; tests/live/test_given_values runs the script."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.job import JobType
from svcd.workflow.decide.arguments import (
    java_values,
    links,
    path,
    script_fault,
    start_script,
    taken,
)
from svcd.workflow.decide.job_configs import starts
from svcd.workflow.decide.job_types import STREAMING_MAPPER, STREAMING_REDUCER

HEAD = """set -e
mkdir job
cd job
ln -s ../* .
rm job svcd-start.sh svcd-file-*
put() { rm -f "./$2"; ln -L "../$1" "./$2" 2>/dev/null || cp -p "../$1" "./$2"; }
"""


class StartScripts(SynchronousTestCase):
    def script(self, files: list[str], args: list[str], variables: dict[str, str]) -> str:
        text = start_script(files, args, variables).decode()
        self.assertTrue(text.startswith(HEAD), text)
        return text.removeprefix(HEAD)

    def test_a_program_alone(self) -> None:
        self.assertEqual(
            self.script(["go.sh"], [], {}),
            "put svcd-file-0 go.sh\nunset OLDPWD\nexec env -- ./go.sh </dev/null\n",
        )

    def test_each_value_is_one_word(self) -> None:
        self.assertEqual(
            self.script(
                ["größe.sh", "my data.csv"],
                [" lead", "", "it's", "a\nb", "${x}", "--"],
                {"DEBUG": "", "A.B": " c "},
            ),
            "put svcd-file-0 'größe.sh'\nput svcd-file-1 'my data.csv'\nunset OLDPWD\n"
            "exec env -- DEBUG= 'A.B= c ' './größe.sh' ' lead' '' 'it'\"'\"'s' 'a\nb' '${x}' --"
            " </dev/null\n",
        )

    def test_a_program_with_an_equals_sign_is_no_variable(self) -> None:
        self.assertIn("exec env -- nice -n 0 ./a=b.sh x", self.script(["a=b.sh"], ["x"], {}))


class JavaTests(SynchronousTestCase):
    def test_values(self) -> None:
        self.assertEqual(
            java_values(["my app.jar", "größe.txt"], [" a ", "", "a\nb"]),
            "2\0svcd-file-0.jar\0my app.jar\0svcd-file-1\0größe.txt\0 a \0\0a\nb\0".encode(),
        )
        self.assertEqual(java_values(["a.jar"], []), b"1\0svcd-file-0.jar\0a.jar\0")


class FirstLines(SynchronousTestCase):
    def test_a_first_line_that_no_machine_reads(self) -> None:
        """Of a program or a library of a Shell job; other files may be anything."""
        wrong = (
            b"#!/bin/sh\r\necho\r\n",
            b"#!/bin/sh\r",
            b"\xef\xbb\xbf#!/bin/sh\n",
            "#!/bin/sh\n".encode("utf-16"),
            "#!/bin/sh\n".encode("utf-16-be"),
        )
        for head in wrong:
            for main in (True, False):
                self.assertTrue(script_fault(JobType.SHELL, head, main), head)
            self.assertTrue(script_fault(JobType.MAP_REDUCE, head, False), head)
        for head in (b"", b"#!/bin/sh\necho \r\n", b"a,b\r\n", b"\x7fELF"):
            self.assertEqual(script_fault(JobType.SHELL, head, True), "")
        marked = b"\xef\xbb\xbfa,b"  # a shell would search for a command with this name
        self.assertEqual(script_fault(JobType.SHELL, marked, False), "")
        self.assertIn("byte order mark", script_fault(JobType.SHELL, marked, True))
        wide = "a,b".encode("utf-16")
        self.assertEqual(script_fault(JobType.SHELL, wide, False), "")
        self.assertIn("UTF-16", script_fault(JobType.SHELL, wide, True))

    def test_the_programs_of_streaming(self) -> None:
        """A file whose command starts another program may have any first line."""

        def found(mapper: str, *names: str) -> list[str]:
            configs = {STREAMING_MAPPER: mapper, STREAMING_REDUCER: "red.py"}
            return [each for each in names if starts(JobType.MAP_REDUCE, configs, each)]

        for command in ("map.py", "./map.py -x", ' "map.py" a', "'./map.py'"):
            self.assertEqual(found(command, "map.py", "red.py", "a"), ["map.py", "red.py"], command)
        for command in ("python3 map.py", "/bin/sh map.py", "", " ", "x/map.py"):
            self.assertEqual(found(command, "map.py"), [], command)
        self.assertEqual(found('"my map.py" x', "my map.py", "my"), ["my map.py"])
        self.assertTrue(starts(JobType.SHELL, {}, "lib.csv"))
        self.assertFalse(starts(JobType.PIG, {STREAMING_MAPPER: "map.py"}, "map.py"))


class Paths(SynchronousTestCase):
    def test_a_file_that_is_no_jar_is_not_on_the_class_path(self) -> None:
        """A Java program has it in its own folder through `lib`."""
        self.assertEqual(path(JobType.JAVA, "a.py", 1, False), "lib/svcd-file-1")

    def test_names_of_files_for_tasks(self) -> None:
        """They are encoded for the URL, and before that for the shell that makes the link.

        Names that nothing changes are in `lib`, where a library without an ending may be a jar.
        """
        files = (
            "wc",
            "a.py",
            "_a.so",
            "my app.jar",
            "größe+=.py",
            '$a`b"c\\.x',
            "a,b:*",
            "\r\uffff",
        )
        self.assertEqual(path(JobType.JAR, "wc", 0, False), "lib/wc")
        self.assertEqual(path(JobType.JAR, "_a.so", 2, False), "svcd-file-2")
        self.assertEqual(
            links(files),
            [
                "svcd-file-2#_a%2Eso",
                "svcd-file-3#my%20app%2Ejar",
                "svcd-file-4#gr%C3%B6%C3%9Fe%2B%3D%2Epy",
                "svcd-file-5#%5C%24a%5C%60b%5C%22c%5C%5C%2Ex",
                "svcd-file-6#a%24%28printf%20%27%5C54%27%29b%24%28printf%20%27%5C72%27%29"
                "%24%28printf%20%27%5C52%27%29",
                "svcd-file-7#%24%28printf%20%27%5C15%27%29"
                "%24%28printf%20%27%5C357%5C277%5C277%27%29",
            ],
        )

    def test_names_that_are_taken(self) -> None:
        """By files of YARN, of the engine, of Spark and of svcd in the program's folder."""
        names = ("action.xml", "jobSubmitDir", "__app__.jar", "svcd-file-7.zip", "tmp", "*", "a")
        found = {each: [n for n in names if taken(each, n)] for each in JobType}
        tasks = ["action.xml", "jobSubmitDir", "tmp", "*"]
        self.assertEqual(
            found,
            {
                JobType.SHELL: [],
                JobType.HIVE: [],
                JobType.JAVA: ["action.xml", "svcd-file-7.zip", "tmp"],
                **dict.fromkeys((JobType.PIG, JobType.JAR, JobType.MAP_REDUCE), tasks),
                JobType.SPARK: ["__app__.jar", "svcd-file-7.zip", "tmp"],
            },
        )

    def test_places_of_files_without_an_ending(self) -> None:
        """Java passes over a file that ends in .jar and is none."""
        found = {
            each.value: (path(each, "m", 0, True), path(each, "l", 1, False))
            for each in JobType
            if each is not JobType.HIVE
        }
        self.assertEqual(
            found,
            {
                "Pig": ("m", "lib/l"),
                "Jar": ("lib/m", "lib/l"),
                "MapReduce": ("lib/m", "lib/l"),
                "Java": ("lib/svcd-file-0.jar", "lib/svcd-file-1.jar"),
                "Shell": ("svcd-file-0", "svcd-file-1"),
                "Spark": ("svcd-file-0", "svcd-file-1"),
            },
        )
