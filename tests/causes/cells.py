"""The commonest mistakes in jobs of each type: programs that make them, and what svcd must say.

A cell is a type and a mistake; `expected.txt` has the words that svcd must say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import evolve, field, frozen

FOLDER: Final = "/causes"
"""In HDFS. `in` is a text, `there` a folder, `private` one of somebody else, `full` has a quota."""
PLAIN: Final = "größe 日本☃ +&#%20;=`|<c>~!@()^-\"'$HOME"
"""A folder with the text, whose name stands for itself in every URL."""
SOFT: Final = "größe 日本☃ +&#%20;=|<c>~!@()^-$HOME"
"""The same for a script in SQL, without quotation marks."""
LITERAL: Final = "x*y?[1]{2,3}"
PATTERN: Final = r"x\*y\?\[1\]\{2?3\}"
"""The input that means the folder LITERAL alone."""
JAR: Final = "causes.jar"


@frozen(kw_only=True)
class Cell:
    """One mistake in one type of job.

    kind: the type for svcd. script: the main binary. jar: whether the job has the jar of the
    programs. input, output: below `FOLDER`, or a URL, or "" for none. deed: `kill` or `lose` (the
    worker), once the application `of` runs. copies: the folder that has the input's lines at the
    end, for a job that succeeds. impossible: why there is no such cell, or "".
    """

    type: str
    mistake: str
    kind: str = ""
    script: str = ""
    jar: bool = False
    configs: Mapping[str, str] = field(factory=dict)
    args: Sequence[str] = ()
    input: str = "in"
    output: str = "out"
    deed: str = ""
    of: str = "child"
    copies: str = ""
    impossible: str = ""

    @property
    def name(self) -> str:
        return f"{self.type}/{self.mistake}"


ROOMY: Final = {
    "oozie.launcher.memory.mb": "512",
    "yarn.app.mapreduce.am.resource.mb": "448",
    "mapreduce.map.memory.mb": "384",
    "mapreduce.reduce.memory.mb": "384",
    "mapreduce.map.maxattempts": "1",
}
SMALL_JOB: Final = {"mapreduce.job.ubertask.enable": "true"}
SMALL_CONTAINER: Final = {
    "mapreduce.map.memory.mb": "320",
    "mapreduce.map.java.opts": "-Xmx900m",
}
SMALL_HEAP: Final = {"mapreduce.map.java.opts": "-Xmx96m"}
SMALL_MASTER: Final = {"yarn.app.mapreduce.am.command-opts": "-Xmx10m"}
MAPPER: Final = {
    "mapreduce.job.map.class": "org.svcd.causes.Words",
    "mapreduce.job.reduces": "0",
    "mapreduce.job.output.key.class": "org.apache.hadoop.io.LongWritable",
    "mapreduce.job.output.value.class": "org.apache.hadoop.io.Text",
}

# ---- Pig ----------------------------------------------------------------------------------------

COPY: Final = """\
lines = LOAD '$INPUT' USING TextLoader() AS (line:chararray);
STORE lines INTO '$OUTPUT';
"""
_PAIRS: Final = "lines = FOREACH lines GENERATE line AS (key, value);\n"
_BAG: Final = "lines = FOREACH lines GENERATE (bag{})line;\n"
_LIMITED: Final = "lines = LIMIT lines $MOST;\n"
GROUPED: Final = """\
lines = LOAD '$INPUT' USING TextLoader() AS (line:chararray);
words = FOREACH lines GENERATE FLATTEN(TOKENIZE(line)) AS word;
counts = FOREACH (GROUP words BY word) GENERATE group, COUNT(words);
STORE counts INTO '$OUTPUT';
"""


def _function(fault: str) -> str:
    return f"""\
REGISTER JAR;
DEFINE Upper org.svcd.causes.Upper('{fault}');
lines = LOAD '$INPUT' USING TextLoader() AS (line:chararray);
upper = FOREACH lines GENERATE Upper(line);
STORE upper INTO '$OUTPUT';
"""


def _pig(mistake: str, script: str = COPY, **more: object) -> Cell:
    return Cell(type="Pig", mistake=mistake, kind="Pig", script=script, **more)  # type: ignore[arg-type]


PIG: Final = (
    _pig("input-missing", input="missing"),
    _pig("output-exists", output="there"),
    _pig("scheme-wrong", COPY.replace("$INPUT", "htfs:///causes/in")),
    _pig("permission", _function("denied"), jar=True),
    _pig("syntax", "lines = LOAD '$INPUT'\nSTORE lines INTO '$OUTPUT';\n"),
    _pig("alias-unknown", "lines = LOAD '$INPUT';\nSTORE line INTO '$OUTPUT';\n"),
    _pig("schema-wrong", COPY.replace("STORE lines", f"{_PAIRS}STORE lines")),
    _pig("cast-wrong", COPY.replace("STORE lines", f"{_BAG}STORE lines")),
    _pig("variable-missing", COPY.replace("STORE lines", f"{_LIMITED}STORE lines")),
    _pig("class-missing", COPY.replace("TextLoader", "org.example.MyLoader")),
    _pig("exception", _function("throw"), jar=True),
    _pig("oom-container", _function("hog"), jar=True, configs=SMALL_CONTAINER),
    _pig("oom-driver", GROUPED, configs={"oozie.launcher.javaopts": "-Xmx14m"}),
    _pig("oom-heap", _function("heap"), jar=True, configs=SMALL_HEAP),
    _pig("killed", _function("sleep"), jar=True, deed="kill"),
    _pig("killed-launcher", _function("sleep"), jar=True, deed="kill", of="launcher"),
    _pig("worker-lost", _function("sleep"), jar=True, deed="lose", of="launcher"),
    _pig("disk-full", output="full/out"),
    _pig("disk-full-local", _function("disk"), jar=True),
    _pig("names", input=PATTERN, output=f"{PLAIN} out", copies=f"{PLAIN} out"),
)

# ---- Jar ----------------------------------------------------------------------------------------


def _jar(mistake: str, fault: str = "", **more: object) -> Cell:
    configs = {**MAPPER, "svcd.causes.fault": fault, **more.pop("configs", {})}  # type: ignore[dict-item]
    return Cell(type="Jar", mistake=mistake, kind="Jar", jar=True, configs=configs, **more)  # type: ignore[arg-type]


JARS: Final = (
    _jar("input-missing", input="missing"),
    _jar("output-exists", output="there"),
    _jar("scheme-wrong", configs={"mapreduce.input.fileinputformat.inputdir": "htfs:///in"}),
    _jar("permission", "denied"),
    Cell(type="Jar", mistake="syntax", impossible="the compiler of Java finds it"),
    _jar("class-missing", configs={"mapreduce.job.map.class": "org.example.MyMapper"}),
    _jar("class-missing-used", "absent"),
    _jar("exception", "throw"),
    _jar("oom-container", "hog", configs=SMALL_CONTAINER),
    _jar("oom-driver", configs=SMALL_MASTER),
    _jar("oom-heap", "heap", configs=SMALL_HEAP),
    _jar("killed", "sleep", deed="kill"),
    _jar("worker-lost", "sleep", deed="lose"),
    _jar("disk-full", output="full/out"),
    _jar("disk-full-local", "disk"),
    _jar("names", input=PLAIN, output=f"{PLAIN} out", copies=f"{PLAIN} out"),
)

# ---- streaming ----------------------------------------------------------------------------------

MAPPER_PY: Final = "import sys\nfor line in sys.stdin:\n    print(line.strip())\n"


def _streaming(mistake: str, script: str = MAPPER_PY, **more: object) -> Cell:
    configs = {
        "edp.streaming.mapper": "python3 SCRIPT",
        "edp.streaming.reducer": "/bin/cat",
        "mapreduce.job.reduces": "0",
        **more.pop("configs", {}),  # type: ignore[dict-item]
    }
    return Cell(
        type="Streaming", mistake=mistake, kind="MapReduce", script=script, configs=configs, **more
    )  # type: ignore[arg-type]


_AS_JAR: Final = "the framework does it: as Jar"
STREAMING: Final = (
    _streaming("input-missing", input="missing"),
    _streaming("output-exists", output="there"),
    Cell(type="Streaming", mistake="scheme-wrong", impossible=_AS_JAR),
    Cell(type="Streaming", mistake="permission", impossible=_AS_JAR),
    _streaming("syntax", MAPPER_PY.replace("stdin:", "stdin")),
    _streaming("class-missing", "import polars\n" + MAPPER_PY),
    _streaming("program-missing", configs={"edp.streaming.mapper": "mapper.rb"}),
    _streaming("exception", MAPPER_PY.replace("line.strip()", "{}[line]")),
    _streaming(
        "oom-container",
        "import time\nkept = bytearray(b'x') * (700 << 20)\ntime.sleep(20)\n" + MAPPER_PY,
        configs={"mapreduce.map.memory.mb": "256"},
    ),
    Cell(type="Streaming", mistake="oom-driver", impossible=_AS_JAR),
    _streaming(
        "oom-heap",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (200 << 20, -1))\n"
        "kept = bytearray(700 << 20)\n" + MAPPER_PY,
    ),
    Cell(type="Streaming", mistake="killed", impossible=_AS_JAR),
    Cell(type="Streaming", mistake="worker-lost", impossible=_AS_JAR),
    _streaming("signal", "import os\nos.kill(os.getpid(), 9)\n"),
    _streaming("disk-full-local", "open('/dev/full', 'w').write('x' * 9999)\n" + MAPPER_PY),
    _streaming("names", input=PATTERN, output=f"{PLAIN} out", copies=f"{PLAIN} out"),
)

# ---- Java ---------------------------------------------------------------------------------------


def _java(mistake: str, main: str = "-", task: str = "-", **more: object) -> Cell:
    into, out = str(more.pop("input", "in")), str(more.pop("output", "out"))
    configs = {"edp.java.main_class": "org.svcd.causes.Report", **more.pop("configs", {})}  # type: ignore[dict-item]
    return Cell(
        type="Java",
        mistake=mistake,
        kind="Java",
        jar=True,
        configs=configs,
        args=(main, task, into, out),
        input="",
        output="",
        **more,
    )  # type: ignore[arg-type]


JAVA: Final = (
    _java("input-missing", input="missing"),
    _java("output-exists", output="there"),
    _java("scheme-wrong", input="htfs:///in"),
    _java("permission", "denied"),
    Cell(type="Java", mistake="syntax", impossible="the compiler of Java finds it"),
    _java("class-missing", configs={"edp.java.main_class": "org.example.Report"}),
    _java("class-missing-used", "absent"),
    _java("exception", "throw"),
    _java("exception-in-task", task="throw"),
    _java("oom-container", "hog", configs={"edp.java.java_opts": "-Xmx900m"}),
    _java("oom-driver", "heap"),
    _java("oom-heap", task="heap", configs=SMALL_HEAP),
    _java("killed", "sleep", deed="kill", of="launcher"),
    _java("killed-child", task="sleep", deed="kill"),
    _java("worker-lost", "sleep", deed="lose", of="launcher"),
    _java("disk-full", output="full/out"),
    _java("disk-full-local", "disk"),
    _java("names", input=PLAIN, output=f"{PLAIN} out", copies=f"{PLAIN} out"),
)

# ---- Shell --------------------------------------------------------------------------------------


def _shell(mistake: str, script: str, **more: object) -> Cell:
    return Cell(
        type="Shell",
        mistake=mistake,
        kind="Shell",
        script=script,
        input="",
        output="",
        **more,
    )  # type: ignore[arg-type]


_SH: Final = "#!/bin/bash\nset -e\n"
_PY: Final = "#!/usr/bin/env python3\n"
SHELL: Final = (
    _shell("input-missing", _SH + f"echo begin\nhdfs dfs -cat {FOLDER}/missing\n"),
    _shell("input-missing-local", _SH + "echo begin\nsort words.txt > sorted.txt\n"),
    _shell("output-exists", _SH + f"hdfs dfs -mkdir {FOLDER}/there\n"),
    _shell("scheme-wrong", _SH + "hdfs dfs -cat htfs:///in\n"),
    _shell("permission", _SH + f"HADOOP_USER_NAME=guest hdfs dfs -cat {FOLDER}/private/in\n"),
    _shell("syntax", "#!/bin/bash\necho begin\nif true; then\n  echo yes\ndone\n"),
    _shell("syntax-python", _PY + "for n in range(3)\n    print(n)\n"),
    _shell("class-missing", _SH + "csvsort data.csv\n"),
    _shell("class-missing-python", _PY + "import polars\n"),
    _shell("exception", _SH + "echo begin\necho 'no rate for EUR' >&2\nexit 3\n"),
    _shell("exception-traced", "#!/bin/bash\nset -ex\necho 'no rate for EUR' >&2\nexit 3\n"),
    _shell(
        "class-missing-first",
        "#!/bin/bash\ncd /nowhere\ncsvsort data.csv > sorted.csv\ncat /nowhere/sorted.csv\n",
    ),
    _shell("exception-python", _PY + "rates = {}\nprint(rates['EUR'])\n"),
    _shell(
        "oom-container", _PY + "import time\nkept = bytearray(b'x') * (900 << 20)\ntime.sleep(20)\n"
    ),
    Cell(type="Shell", mistake="oom-driver", impossible="the script is the only program"),
    _shell(
        "oom-heap",
        _PY + "import resource\nresource.setrlimit(resource.RLIMIT_AS, (200 << 20, -1))\n"
        "kept = bytearray(700 << 20)\n",
    ),
    _shell("signal", _SH + "echo begin\nsh -c 'kill -9 $$'\n"),
    _shell("killed", _SH + "sleep 120\n", deed="kill", of="launcher"),
    _shell("worker-lost", _SH + "sleep 120\n", deed="lose", of="launcher"),
    _shell("disk-full", _SH + f"echo a > a\nhdfs dfs -put a {FOLDER}/full/a\n"),
    _shell("disk-full-local", _SH + "echo a > /dev/full\n"),
    _shell(
        "names",
        _SH + 'hdfs dfs -mkdir "$2"\nhdfs dfs -cp "$1/words.txt" "$2/words.txt"\n',
        args=(PLAIN, f"{PLAIN} out"),
        copies=f"{PLAIN} out",
    ),
)

# ---- Spark --------------------------------------------------------------------------------------

COPY_PY: Final = """\
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
lines = spark.read.text(sys.argv[1])
lines.write.text(sys.argv[2])
"""
_SUPERUSER: Final = "jobs run as the superuser of HDFS: Spark reads every file"
_ONE_TRY: Final = {"spark.task.maxFailures": "1"}


def _pyspark(mistake: str, script: str = COPY_PY, **more: object) -> Cell:
    configs = {**_ONE_TRY, **more.pop("configs", {})}  # type: ignore[dict-item]
    return Cell(
        type="PySpark", mistake=mistake, kind="Spark", script=script, configs=configs, **more
    )  # type: ignore[arg-type]


def _sql(mistake: str, script: str, **more: object) -> Cell:
    values: dict[str, object] = {"input": "", "output": "", "configs": _ONE_TRY, **more}
    return Cell(type="SparkSQL", mistake=mistake, kind="Spark", script=script, **values)  # type: ignore[arg-type]


def _spark_jar(mistake: str, main: str = "-", task: str = "-", **more: object) -> Cell:
    into, out = str(more.pop("input", "in")), str(more.pop("output", "out"))
    configs = {
        "edp.java.main_class": "org.svcd.causes.SparkReport",
        "edp.spark.arguments": "explicit",
        **_ONE_TRY,
        **more.pop("configs", {}),  # type: ignore[dict-item]
    }
    return Cell(
        type="SparkJar",
        mistake=mistake,
        kind="Spark",
        jar=True,
        configs=configs,
        args=(into, out, main, task),
        input="",
        output="",
        **more,
    )  # type: ignore[arg-type]


def _after_session(line: str) -> str:
    return COPY_PY.replace("lines = ", f"{line}\nlines = ", 1)


PYSPARK: Final = (
    _pyspark("input-missing", input="missing"),
    _pyspark("output-exists", output="there"),
    _pyspark("scheme-wrong", COPY_PY.replace("sys.argv[1]", "'htfs:///in'")),
    Cell(type="PySpark", mistake="permission", impossible=_SUPERUSER),
    _pyspark("syntax", COPY_PY.replace("text(sys.argv[1])", "text(sys.argv[1]")),
    _pyspark("class-missing", "import polars\n" + COPY_PY),
    _pyspark("exception", _after_session("print({}['EUR'])")),
    _pyspark(
        "exception-in-task",
        _after_session("spark.sparkContext.parallelize([1, 0]).map(lambda n: 1 / n).collect()"),
    ),
    _pyspark(
        "oom-container",
        _after_session("kept = bytearray(b'x') * (900 << 20)\nspark.range(9).count()"),
    ),
    _pyspark("oom-driver", _after_session("spark._jvm.java.nio.CharBuffer.allocate(900 << 20)")),
    _pyspark(
        "oom-heap",
        _after_session("spark.range(1).selectExpr(\"repeat('x', 1500000000)\").collect()"),
    ),
    _pyspark("signal", _after_session("import os, time; os.kill(os.getppid(), 9); time.sleep(60)")),
    _pyspark("signal-python", _after_session("import os; os.kill(os.getpid(), 9)")),
    _pyspark(
        "signal-executor",
        _after_session(
            "import os, subprocess\n"
            "def end(n):\n"
            "    jvm = f'ps -o ppid= -p {os.getppid()}'\n"
            "    os.kill(int(subprocess.check_output(jvm.split())), 9)\n"
            "spark.sparkContext.parallelize([1], 1).map(end).collect()"
        ),
    ),
    _pyspark("killed", _after_session("import time; time.sleep(120)"), deed="kill"),
    _pyspark("worker-lost", _after_session("import time; time.sleep(120)"), deed="lose"),
    _pyspark("disk-full", output="full/out"),
    _pyspark("disk-full-local", _after_session("open('/dev/full', 'w').write('x' * 9999)")),
    _pyspark("names", input=PATTERN, output=f"{PLAIN} out", copies=f"{PLAIN} out"),
)
SPARK_SQL: Final = (
    _sql("input-missing", f"SELECT 1;\nSELECT * FROM text.`hdfs://{FOLDER}/missing`;\n"),
    _sql(
        "output-exists", f"CREATE TABLE t USING text LOCATION '{FOLDER}/there' AS SELECT 'a' a;\n"
    ),
    _sql("scheme-wrong", "SELECT * FROM text.`htfs:///in`;\n"),
    Cell(type="SparkSQL", mistake="permission", impossible=_SUPERUSER),
    _sql("syntax", "SELECT 1;\n\nSELEC 2;\n"),
    _sql(
        "variable-missing", "SELECT '\\u0024{X} is no variable' /* ${A} */;\nSELECT '${größe.1}';\n"
    ),
    _sql("table-missing", "SELECT 1;\nSELECT * FROM rates;\n"),
    _sql("class-missing", "CREATE FUNCTION up AS 'org.example.Upper';\nSELECT up('a');\n"),
    _sql("exception", "SELECT 1;\nSELECT raise_error('no rate for EUR');\n"),
    _sql(
        "names",
        "INSERT OVERWRITE DIRECTORY '${OUTPUT}' USING text SELECT * FROM text.`${INPUT}`;\n",
        input=SOFT,
        output=f"{SOFT} out",
        copies=f"{SOFT} out",
    ),
    Cell(type="SparkSQL", mistake="oom-container", impossible="as PySpark"),
    Cell(type="SparkSQL", mistake="oom-driver", impossible="as PySpark"),
    Cell(type="SparkSQL", mistake="oom-heap", impossible="as PySpark"),
    Cell(type="SparkSQL", mistake="killed", impossible="as PySpark"),
    Cell(type="SparkSQL", mistake="worker-lost", impossible="as PySpark"),
    Cell(type="SparkSQL", mistake="disk-full", impossible="as PySpark"),
)

SPARK_JARS: Final = (
    _spark_jar("input-missing", input="missing"),
    _spark_jar("output-exists", output="there"),
    _spark_jar("scheme-wrong", input="htfs:///in"),
    _spark_jar("permission", "denied"),
    Cell(type="SparkJar", mistake="syntax", impossible="the compiler of Java finds it"),
    _spark_jar("class-missing", configs={"edp.java.main_class": "org.example.Report"}),
    _spark_jar("class-missing-used", "absent"),
    _spark_jar("exception", "throw"),
    _spark_jar("exception-in-task", task="throw"),
    _spark_jar("oom-container", "native", configs={"spark.driver.memoryOverhead": "64m"}),
    _spark_jar("oom-driver", "heap"),
    _spark_jar("oom-heap", task="heap"),
    _spark_jar("killed", "sleep", deed="kill"),
    Cell(type="SparkJar", mistake="worker-lost", impossible="as PySpark"),
    _spark_jar("disk-full", output="full/out"),
    _spark_jar("disk-full-local", "disk"),
    _spark_jar("names", input=PLAIN, output=f"{PLAIN} out", copies=f"{PLAIN} out"),
)

# ---- small jobs, whose tasks run within their master --------------------------------------------


def _small(cells: Sequence[Cell], *mistakes: str) -> Sequence[Cell]:
    return [
        evolve(each, type=f"Small{each.type}", configs={**each.configs, **SMALL_JOB})
        for each in cells
        if each.mistake in mistakes
    ]


SMALL: Final = (
    *_small(PIG, "permission", "exception", "killed", "disk-full", "disk-full-local", "names"),
    *_small(PIG, "input-missing", "output-exists", "scheme-wrong"),
    *_small(JARS, "permission", "class-missing", "class-missing-used", "exception", "oom-heap"),
    *_small(JARS, "killed", "disk-full", "disk-full-local", "names"),
    *_small(STREAMING, "syntax", "class-missing", "program-missing", "exception", "oom-heap"),
    *_small(STREAMING, "signal", "disk-full-local", "names"),
    *_small(JAVA, "exception-in-task", "killed-child", "names"),
)
"""Mistakes in tasks: what is seen of them differs, because a task has no container of its own.

Those of Pig without a function of the user's run in the launcher.
"""

CELLS: Final = (
    *PIG, *JARS, *STREAMING, *JAVA, *SHELL, *PYSPARK, *SPARK_SQL, *SPARK_JARS, *SMALL,
)  # fmt: skip

ONE_A_CODE: Final = frozenset(
    {
        "Pig/class-missing",
        "Pig/syntax",
        "Java/killed",
        "Java/exception",
        "Shell/oom-heap",
        "Shell/disk-full-local",
        "Shell/input-missing",
        "Shell/output-exists",
        "Shell/scheme-wrong",
        "Shell/permission",
        "Shell/class-missing-python",
        "Shell/exception",
        "SparkSQL/variable-missing",
    }
)
"""A cell for each code, for a test that runs all of them at the same time."""
WORKER_LOST: Final = "Shell/worker-lost"
"""The cell for the one code whose cause ends other programs too."""
