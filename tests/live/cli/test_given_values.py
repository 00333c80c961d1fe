"""Values of a job on their way to its program: what a person gives is what the program has.

One run on real Hadoop; it needs the software tree of the vanilla distribution, as
tests.live.test_main_job does. About 80 seconds on two cores. What starts a program also runs here
by itself: the script with each shell of this machine, the classes with Java and with Pig alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest, TestCase

from svcd.workflow.decide import pig_job
from svcd.workflow.decide.arguments import (
    START,
    VALUES,
    staged,
    start_jar,
    start_script,
)
from tests.live.test_main_job import vanilla_prefix
from tests.support.processes import ROOT, DaemonCase, Ended, run

RUN_S = 240.0
START_SOURCE = ROOT / "svcd/workflow/runner/StartMain.java"
PIG_SOURCE = START_SOURCE.with_name("StartPig.java")
SHOW_SOURCE = ROOT / "tests/support/values/ShowValues.java"
SHOW_PIG_SOURCE = SHOW_SOURCE.with_name("ShowPig.java")
SHOW = (
    f"#!{sys.executable}"
    + """
import json, os, sys
names = [n for n in os.listdir(".") if os.path.isfile(n)]
files = {n: open(n, errors="replace", newline="").read(999) for n in names}
print("SHOWN" + json.dumps({"pid": os.getpid(), "real": os.path.realpath(sys.argv[0]),
                            "args": sys.argv, "environment": dict(os.environ), "files": files,
                            "stdin": sys.stdin.read()}))
sys.exit(7)
"""
)
PROGRAM = "a=b größe main.py"
FILES = (
    "_helpers.py", ".hidden", "my data.csv", "a+b=c.txt", "größe.py", "l" * 255, "-rf", "it's",
    '"quoted"', "*", "$HOME", "\\", "job", "tmp", "container_tokens", "action.xml",
    "svcd-start.sh", "svcd-file-0",
)  # fmt: skip
JAVA_FILES = FILES[: FILES.index("job")]
"""Without those of YARN's launcher, which shares its folder with the program."""
TASK_FILES = (
    *(each for each in JAVA_FILES if each != "*"),
    *("`id`", "{{x}}", "a#b?c&d;e", "lib.so", "a,b", "a:b", "a\nb", "x*"),
    *("\x01\x1b\x7f\x85\r", "\ufffe\uffff"),
)
"""Without the name of Java's pattern for the jars of a folder."""
SPARK_SHOW = """
import json, os, sys
import _module, in_wheel, in_zip
from pyspark.sql import SparkSession
session = SparkSession.builder.getOrCreate()
def files(_):
    import _module, in_wheel, in_zip
    names = [n for n in os.listdir(".") if os.path.isfile(n)]
    return {n: open(n, errors="replace", newline="").read(999) for n in names}
(task,) = session.sparkContext.parallelize([1], 1).map(files).collect()
print("SHOWN" + json.dumps({"args": sys.argv, "files": files(0), "task": task,
                            "stdin": sys.stdin.read(), "real": os.path.realpath(__file__)}))
sys.exit(7)
"""
ARGS = (
    " lead", "trail ", "tab\t", " ", "  ", "", "a\nb", "\n", "\r\n", "\x01\x1b\x7f\x85",
    "${x}", "${user.name}", "${'$'}{x}", "$HOME", "$(id)", "`id`", "*", "?", "~", "{{x}}", "}}",
    "<CPS>", '"', "'", "''", "it's", "\\", "\\\\", "\\n", "größe 日本 ☃", "-Dk=v", "-n", "--",
    "a;b|c&d>e<f(g)!#%",
)  # fmt: skip
VARIABLES = {
    "DEBUG": "", "ENDS": " b ", "TAB": "c\t", "LINES": "a\nb\n", "EQUAL": "=a=b",
    "EXPRESSION": "${nameNode} ${x} $HOME", "A.B": "no name of a shell", "-x": "y",
    "größe": "ü", "UID": "5", "RANDOM": "6", "IFS": "x", "SHLVL": "77", "PS4": "$(id)",
    "OOZIE_ACTION_CONF_XML": "mine",
}  # fmt: skip
SQL_VALUES = {
    "ENDS": " b ",
    "TAB": "c\t",
    "EMPTY": "",
    "BLANK": " ",
    "LINES": "a\nb\n",
    "EXPRESSION": "${nameNode} ${x} $${EMPTY} ${spark:y} $HOME",
    "MARKS": 'a=b;c -- {{x}} }} <CPS> # \\ \\n `id` "',
    "größe-1": "日本 ☃",
}
CONTROLS = (*map(chr, range(1, 0x300)), "\x01\x02\x7f", "x" * 131_071)
"""Arguments that would make the output of a run long."""
PIG_PARAMS = {
    **{f"A{number}": text for number, text in enumerate(ARGS)},
    "WORDS": "two words",
    "EQUAL": "a=b",
    "HASH": "#1",
    "COMMENT": "-- x /* y */; z",
    "COLUMN": "$0 $1.x",
    "TAB": "a\tb",
    "RUN": "`touch ran`",
    "COND": "line == 'it\\'s $HOME'",
}
"""Texts in place of `$NAME` and `${NAME}`: what they mean in the script is the script's."""
IN_QUOTES = [n for n, text in PIG_PARAMS.items() if not re.search(r"['\\\n\r]", text)]
"""Parameters whose texts mean themselves between the quotation marks of a Pig script."""
MACROS = "DEFINE texts(rows) returns kept { $kept = FOREACH $rows GENERATE %s; };\n"
PIG_SCRIPT = """
IMPORT 'größe macros.pig';
rows = LOAD '$INPUT' AS (line:chararray);
kept = FILTER rows BY ${COND} AND $0 == line;
some = texts(kept);
shown = FOREACH some GENERATE ShowPig(*, %s);
DUMP shown;
"""


def pig_class_path() -> str:
    """The jars of Pig, of Oozie's launcher for it and of Hadoop."""
    folders = ("oozie/sharelib/pig", "oozie/sharelib/oozie", "hadoop/lib")
    return ":".join(f"{vanilla_prefix()}/{folder}/*" for folder in folders)


class ScriptTests(TestCase):
    """The script by itself: no Hadoop."""

    timeout = 60

    async def check(self, shell: Sequence[str]) -> None:
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        files = (PROGRAM, *FILES, "a\nb")
        (folder / "tmp").mkdir()
        (folder / "container_tokens").write_text("the container's")
        (folder / "other.jar").write_text("the container's")
        cache = Path(self.mktemp()).absolute()
        cache.mkdir()
        for number, name in enumerate(files):
            file = cache / staged(number)
            file.write_text(SHOW if number == 0 else name)
            file.chmod(0o500)
            (folder / staged(number)).symlink_to(file)
        args = (*ARGS, *CONTROLS)
        (folder / START).write_bytes(start_script(files, args, VARIABLES))
        text = 'echo "$$"; exec "$@"'
        ended = await run("/bin/sh", "-c", text, "sh", *shell, START, folder=str(folder))
        self.assertEqual((ended.code, ended.err), (7, ""))
        pid, _, shown = ended.out.partition("\nSHOWN")
        found = json.loads(shown)
        self.assertEqual(found["pid"], int(pid))
        self.assertEqual(Path(found["real"]), folder / "job" / PROGRAM)
        compare(self, found, [f"./{PROGRAM}", *args], files[1:])
        self.assertIn("other.jar", found["files"])
        self.assertEqual({n: found["environment"].get(n) for n in VARIABLES}, VARIABLES)

    async def test_each_shell_starts_the_same_program(self) -> None:
        for shell in (["sh"], ["dash"], ["bash", "--posix"], ["busybox", "sh"]):
            if shutil.which(shell[0]):
                await self.check(shell)


class StartClassTests(TestCase):
    """The class that starts a Java program, by itself."""

    timeout = 120

    async def compiled(self, *sources: Path) -> Path:
        folder = Path(self.mktemp()).absolute()
        release = "8" if START_SOURCE in sources else "11"
        await compiled(folder, release, pig_class_path() if len(sources) > 1 else "", *sources)
        return folder

    async def test_the_classes_are_those_of_their_sources(self) -> None:
        version = await run(shutil.which("javac") or "javac", "-version")
        if "javac 17." not in version.out + version.err:
            raise SkipTest("the classes were compiled with javac 17")
        folder = await self.compiled(*START_SOURCE.parent.glob("*.java"))
        made = {each.name: each.read_bytes() for each in folder.glob("org/svcd/jobs/*")}
        kept = {each.name: each.read_bytes() for each in START_SOURCE.parent.glob("*.class")}
        self.assertEqual(kept, made)

    async def test_the_text_in_place_of_a_parameter_is_the_parameter(self) -> None:
        """In Pig itself, without a cluster; with `-debug` it keeps the script that it runs."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        params = {**PIG_PARAMS, **{f"C{n}": text for n, text in enumerate(CONTROLS)}}
        params |= {"SELF": "$SELF${SELF}\\$WORDS", "DECLARED": "%declare WORDS 'x'"}
        lines = [f"'${name}' ${{{name}}}\\$x;\n" for name in params]
        lines += ["\\$WORDS \\${WORDS} \\$WORDS1 ${WORDS} $WORDS\\$x;\n"]
        script = "".join(lines) + "%default WORDS 'x'\n%declare MORE '<$COLUMN>'\n$MORE"
        (folder / "top.pig").write_text(script)
        values = pig_job.values("top.pig", ["-x", "local", "-debug", "INFO"], params)
        (folder / VALUES).write_bytes(values)
        (folder / "svcd-start.jar").write_bytes(start_jar())
        (folder / "action.xml").write_text("<configuration></configuration>")
        properties = {
            "file.encoding": "UTF-8",
            "oozie.action.conf.xml": str(folder / "action.xml"),
            "oozie.launcher.job.id": "job_1",
            "oozie.job.launch.time": "1",
            "oozie.action.externalChildIDs": str(folder / "ids"),
        }
        await run(
            shutil.which("java") or "java", *(f"-D{n}={text}" for n, text in properties.items()),
            "-cp", f"{folder / 'svcd-start.jar'}:{pig_class_path()}", pig_job.START_CLASS,
            folder=str(folder), environment={**os.environ, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        found = (folder / "top.pig.substituted").read_bytes().decode()
        wanted = "".join(f"'{text}' {text}$x;\n" for text in params.values())
        wanted += "$WORDS ${WORDS} $WORDS1 two words two words$x;\n"
        self.assertEqual(found.split("$x;\n"), (wanted + "\n\n<$0 $1.x>\n").split("$x;\n"))
        self.assertFalse((folder / "ran").exists())


async def compiled(folder: Path, release: str, class_path: str, *sources: Path) -> None:
    """Compile into `folder`. Raises SkipTest."""
    compiler = shutil.which("javac")
    if compiler is None:
        raise SkipTest("no javac on the PATH")
    options = ["--release", release, "-encoding", "UTF-8", "-cp", class_path, "-d", str(folder)]
    ended = await run(compiler, *options, *map(str, sources))
    if ended.code:
        raise AssertionError(ended)


def compare(
    case: TestCase, shown: Mapping[str, Any], args: Sequence[str], files: Sequence[str]
) -> None:
    """Compare what a program has shown with what was given. files: their content is their name."""
    case.assertEqual(shown["args"], list(args))
    case.assertEqual({n: shown["files"].get(n) for n in files}, {n: n for n in files})
    case.assertEqual(shown["stdin"], "")


class RunTests(DaemonCase):
    """`svcd run` of each type of job, on one cluster."""

    timeout = 600

    async def svcd(self, *arguments: str) -> Ended:
        return await run("svcd", *arguments, environment=self.environment, limit_s=RUN_S)

    async def shown(self, ended: Ended, code: int = 1) -> Mapping[str, Any]:
        self.assertEqual(ended.code, code, ended)
        (line,) = [each for each in ended.out.splitlines() if each.startswith("SHOWN")]
        found: Mapping[str, Any] = json.loads(line.removeprefix("SHOWN"))
        return found

    def libraries(self, names: Sequence[str]) -> Sequence[str]:
        """The options for files whose content is their name."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        for name in names:
            (folder / name).write_text(name, encoding="utf-8")
        return [word for name in names for word in ("--lib", str(folder / name))]

    async def test_a_program_has_what_was_given(self) -> None:
        daemon = self.daemon(
            plugins__enabled="vanilla", embedded__image_prefix=str(vanilla_prefix())
        )
        await daemon.start()
        self.environment = {**os.environ, "SVCD_SERVER_STATE_DIR": str(daemon.state)}
        cluster = ("first", "--plugin", "vanilla", "--workers", "1")
        made = await self.svcd("cluster", "create", *cluster, "--wait")
        self.assertEqual(made.code, 0, made)
        await self.shell()
        await self.java()
        await self.streaming()
        await self.pig()
        await self.spark()
        await self.spark_sql()

    async def shell(self) -> None:
        program = Path(self.mktemp()).absolute() / PROGRAM
        program.parent.mkdir()
        program.write_text(SHOW, encoding="utf-8")
        command = ["run", str(program), "--type", "Shell", "--on", "first"]
        for name, value in VARIABLES.items():
            command += ["-p", f"{name}={value}"]
        ended = await self.svcd(*command, *self.libraries(FILES), "--", *ARGS)
        shown = await self.shown(ended)
        self.assertIn("its program ended with exit code 7", ended.err)
        compare(self, shown, [f"./{PROGRAM}", *ARGS], FILES)
        self.assertEqual({n: shown["environment"].get(n) for n in VARIABLES}, VARIABLES)
        record = await self.svcd("job", "show", "a-b-gr-e-main", "-o", "json")
        info = json.dumps(json.loads(record.out)["info"])
        self.assertNotIn(VARIABLES["A.B"], info)

    async def java(self) -> None:
        classes = Path(self.mktemp()).absolute()
        await compiled(classes, "11", "", SHOW_SOURCE)
        jar = classes / "show values.jar"
        with zipfile.ZipFile(jar, "w") as opened:
            opened.write(classes / "ShowValues.class", "ShowValues.class")
        command = ("run", str(jar), "--main-class", "ShowValues", "--on", "first")
        ended = await self.svcd(*command, *self.libraries(JAVA_FILES), "--", *ARGS)
        self.assertIn("java.lang.IllegalStateException: on purpose (ShowValues.java:", ended.err)
        shown = await self.shown(ended)
        compare(self, shown, ARGS, JAVA_FILES)
        self.assertIn(jar.name, shown["files"])
        await self.spark_jar(jar)

    async def spark(self) -> None:
        """Tasks have the files, too, but modules and archives on the path of Python alone."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        (folder / PROGRAM).write_text(SPARK_SHOW, encoding="utf-8")
        (folder / "_module.py").write_text("x = 1")
        archives = {"in wheel+1-py3-none-any.whl": "in_wheel", "in_zip.zip": "in_zip"}
        for name, module in archives.items():
            with zipfile.ZipFile(folder / name, "w") as opened:
                opened.writestr(f"{module}.py", "")
        ended = await self.svcd(
            *("run", str(folder / PROGRAM), "--on", "first", *self.libraries(TASK_FILES)),
            *(word for n in ("_module.py", *archives) for word in ("--lib", str(folder / n))),
            *("--", *ARGS),
        )
        self.assertIn("its program ended with exit code 7", ended.err)
        shown = await self.shown(ended)
        compare(self, shown, [PROGRAM, *ARGS], TASK_FILES)
        self.assertLessEqual({"_module.py", *archives}, set(shown["files"]))
        self.assertEqual(Path(shown["real"]).name, PROGRAM)
        data = [each for each in TASK_FILES if not each.endswith(".py")]
        self.assertEqual({n: shown["task"].get(n) for n in data}, {n: n for n in data})

    async def spark_jar(self, jar: Path) -> None:
        command = ("run", str(jar), "--type", "Spark", "--main-class", "ShowValues")
        libraries = self.libraries(TASK_FILES)
        ended = await self.svcd(*command, "--on", "first", *libraries, "--", *ARGS)
        self.assertIn("java.lang.IllegalStateException: on purpose", ended.err)
        shown = await self.shown(ended)
        compare(self, shown, ARGS, TASK_FILES)
        self.assertIn(jar.name, shown["files"])

    async def spark_sql(self) -> None:
        script = Path(self.mktemp()).absolute() / "größe main.sql"
        script.parent.mkdir()
        columns = ", ".join(f"'{name}', r'${{{name}}}'" for name in SQL_VALUES)
        script.write_text(f"SELECT to_json(map({columns}, 'QUOTE', \"${{QUOTE}}\"));")
        given = {**SQL_VALUES, "QUOTE": "it's"}
        values = [word for n, v in given.items() for word in ("-p", f"{n}={v}")]
        ended = await self.svcd("run", str(script), "--on", "first", *values)
        self.assertEqual(ended.code, 0, ended)
        (row,) = [each for each in ended.out.splitlines() if each.startswith("|{")]
        self.assertEqual(json.loads(row.strip("|")), given)

    async def streaming(self) -> None:
        """A task has the files, also as modules, and the tasks have all files of the input."""
        folder = Path(self.mktemp()).absolute()
        for name in ("in/a", "in/deep/er/b", "other/c"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
        (folder / "in" / "link").symlink_to("../other")
        program = SHOW.replace("sys.exit(7)", "").replace("import json", "import _module, json")
        (folder / "map.py").write_text(program, encoding="utf-8")
        (folder / "_module.py").write_text("x = 1")
        ended = await self.svcd(
            *("run", str(folder / "map.py"), "--lib", str(folder / "_module.py"), "--on", "first"),
            *("--input", str(folder / "in"), "--output", "hdfs:///shown"),
            *("-c", f"edp.streaming.mapper={sys.executable} map.py"),
            *("-c", "edp.streaming.reducer=/bin/cat"),
            *self.libraries(TASK_FILES),
        )
        self.assertEqual(ended.code, 0, ended)
        command = ". svcd/env.sh; hdfs dfs -cat '/shown/part*'"
        printed = await self.svcd("cluster", "ssh", "first", "--", command)
        lines = [each for each in printed.out.splitlines() if each.startswith("SHOWN{")]
        tasks = [json.loads(line.partition("\t")[0].removeprefix("SHOWN")) for line in lines]
        read = sorted(each["stdin"].strip() for each in tasks)
        self.assertEqual(read, ["in/a", "in/deep/er/b", "other/c"])
        for shown in tasks:
            found = {name: shown["files"].get(name) for name in TASK_FILES}
            self.assertEqual(found, {name: name for name in TASK_FILES})

    async def pig(self) -> None:
        """A function of a script has it, and a macro of another file."""
        folder = Path(self.mktemp()).absolute()
        await compiled(folder, "11", pig_class_path(), SHOW_SOURCE, SHOW_PIG_SOURCE)
        (folder / "in").mkdir()
        (folder / "in" / "a").write_text("one\nit's $HOME\n")
        jar = folder / "show+pig ü.jar"
        with zipfile.ZipFile(jar, "w") as opened:
            for each in folder.glob("*.class"):
                opened.write(each, each.name)
        program = folder / PROGRAM.replace(".py", ".pig")
        written = [", ".join(form % name for name in IN_QUOTES) for form in ("'${%s}'", "'$%s'")]
        program.write_text(PIG_SCRIPT % written[0], encoding="utf-8")
        (folder / "größe macros.pig").write_text(MACROS % written[1], encoding="utf-8")
        command = ["run", str(program), "--on", "first", "--input", str(folder / "in")]
        for name, value in PIG_PARAMS.items():
            command += ["-p", f"{name}={value}"]
        command += ["--output", "hdfs:///pig", "--lib", str(jar)]
        command += ["--lib", str(folder / "größe macros.pig"), *self.libraries(TASK_FILES)]
        ended = await self.svcd(*command, "--", "-no_multiquery", *ARGS)
        shown = await self.shown(ended, 0)
        compare(self, shown, ARGS, TASK_FILES)
        self.assertEqual(shown["texts"], [PIG_PARAMS[name] for name in IN_QUOTES] * 2)
