"""The built software image: its check, and real Pig scripts and Spark programs in local mode."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from svcd.model import small_jobs
from svcd.provisioning.distributions.vanilla.image.build import verify
from svcd.provisioning.distributions.vanilla.image.layout import read_record
from tests.live.test_main_job import vanilla_prefix
from tests.support.sample import SLOW

skip = SLOW

RUN_TIMEOUT_S = 240

COUNTS = ["den\t2", "macht\t1", "meister\t1", "übung\t1", "übung²\t1"]

TEXT = "the cat sat on the mat\nthe dog sat on the cat\n"

OPERATORS = r"""
DEFINE rows(r, n) RETURNS o { $o = FOREACH (GROUP $r ALL) GENERATE '$n', COUNT_STAR($r); };
lines = LOAD 'in.txt' USING TextLoader() AS (line:chararray);
w = FOREACH lines GENERATE FLATTEN(TOKENIZE(line)) AS w, SIZE(line) AS n;
g = GROUP w BY w;
c = FOREACH g { d = DISTINCT w.n; GENERATE group AS w, COUNT(w) AS k, COUNT(d) AS kd; }
sorted = ORDER c BY k DESC, w ASC;
ranked = RANK sorted;
low = FILTER ranked BY rank_sorted <= 2;
ASSERT c BY k > 0, 'no word occurs never';
top = LIMIT sorted 1;
p = FOREACH w GENERATE w;
u = DISTINCT p;
j1 = JOIN c BY w, u BY w;
j2 = JOIN c BY w, u BY w USING 'replicated';
j3 = JOIN c BY w, u BY w USING 'skewed';
j4 = JOIN c BY w LEFT OUTER, top BY w;
j5 = JOIN c BY w, u BY w USING 'bloom';
cg = COGROUP c BY k, u BY SIZE(w);
x = CROSS top, u;
SPLIT c INTO one IF k == 1, more OTHERWISE;
both = UNION one, more;
some = FILTER both BY w MATCHES '[a-m].*' AND NOT (k > 100);
st = STREAM u THROUGH `tr a-z A-Z` AS (w:chararray);
loud = FILTER st BY w == UPPER(w);
cubes = CUBE c BY CUBE(kd);
piece = SAMPLE u 1.0;
day = FOREACH top GENERATE 'date', (long) GetYear(ToDate('2026-11-20', 'yyyy-MM-dd'));
best = FOREACH top GENERATE w, k;
r1 = rows(j1, 'join'); r2 = rows(j2, 'replicated'); r3 = rows(j3, 'skewed');
r4 = rows(j4, 'outer'); r5 = rows(j5, 'bloom'); r6 = rows(cg, 'cogroup'); r7 = rows(x, 'cross');
r8 = rows(some, 'filter'); r9 = rows(loud, 'stream'); r10 = rows(low, 'rank');
r11 = rows(cubes, 'cube'); r12 = rows(piece, 'sample');
res = UNION r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, day, best;
STORE res INTO 'rows';
"""
"""Every branch ends in one row of the result."""

SORTED = """
few = LOAD 'few.txt' AS (w:chararray);
STORE (ORDER few BY w) INTO 'left';
lines = LOAD 'in.txt' USING TextLoader() AS (line:chararray);
w = FOREACH lines GENERATE FLATTEN(TOKENIZE(line)) AS word;
c = FOREACH (GROUP w BY word) GENERATE group AS w, COUNT(w) AS n;
STORE (ORDER c BY w) INTO 'right';
"""

MERGE = """
few = LOAD 'left' AS (w:chararray);
c = LOAD 'right' AS (w:chararray, n:long);
STORE (JOIN few BY w, c BY w USING 'merge') INTO 'merged';
"""

STORES = """
lines = LOAD 'in.txt' USING TextLoader() AS (line:chararray);
w = FOREACH lines GENERATE FLATTEN(TOKENIZE(line)) AS word;
c = FOREACH (GROUP w BY word) GENERATE group AS word, (int) COUNT(w) AS n;
STORE c INTO 'json' USING JsonStorage();
STORE c INTO 'avro' USING AvroStorage();
STORE c INTO 'trevni' USING TrevniStorage();
STORE c INTO 'parquet' USING ParquetStorer();
STORE c INTO 'bin' USING BinStorage();
"""

LOADS = """
j = LOAD 'json' USING JsonLoader();
a = LOAD 'avro' USING AvroStorage();
t = LOAD 'trevni' USING TrevniStorage();
p = LOAD 'parquet' USING ParquetLoader();
b = LOAD 'bin' USING BinStorage() AS (word:chararray, n:int);
x = JOIN j BY word, a BY word, t BY word, p BY word, b BY word;
r = FOREACH x GENERATE j::word, j::n + a::n + t::n + p::n + b::n;
STORE r INTO 'read';
"""

# The second filter is read from a file, which local mode looks for in the working folder.
BLOOM = """
DEFINE build BuildBloom('murmur3', '1000', '0.01');
DEFINE passes Bloom();
few = LOAD 'few.txt' AS (w:chararray);
filters = FOREACH (GROUP few ALL) GENERATE build(few.w) AS bits;
STORE filters INTO 'bits';
lines = LOAD 'in.txt' USING TextLoader() AS (line:chararray);
w = FOREACH lines GENERATE FLATTEN(TOKENIZE(line)) AS word;
f = FILTER w BY passes(filters.bits, word);
STORE f INTO 'filtered';
EXEC;
DEFINE read Bloom('bits');
f2 = FILTER w BY read(word);
j = JOIN few BY w, f2 BY word;
STORE j INTO 'bloomed';
"""

FUNCTIONS = """
REGISTER 'shout.js' USING javascript AS js;
DEFINE hex InvokeForString('java.lang.Integer.toHexString', 'int');
few = LOAD 'few.txt' AS (w:chararray);
r = FOREACH few GENERATE js.shout(w), hex(255), INVOKE(w)length();
STORE r INTO 'called';
"""

# Each EXEC ends a batch of steps.
SMALL = r"""
SET mapreduce.output.fileoutputformat.compress true;
SET mapreduce.output.fileoutputformat.compress.codec org.apache.hadoop.io.compress.GzipCodec;
lines = LOAD 'in.txt' USING TextLoader() AS (line:chararray);
words = FOREACH lines GENERATE FLATTEN(TOKENIZE(line)) AS word;
counts = FOREACH (GROUP words BY word) GENERATE group, COUNT(words) AS n;
sorted = ORDER counts BY n;
STORE sorted INTO 'sorted';
EXEC;
few = LOAD 'few.txt' AS (w:chararray);
other = FOREACH (GROUP few BY w) GENERATE group, COUNT(few) AS n;
joined = JOIN counts BY n, other BY n;
STORE joined INTO 'joined';
EXEC;
loud = STREAM few THROUGH `tr a-z A-Z`;
STORE loud INTO 'loud';
EXEC;
DEFINE hex InvokeForString('java.lang.Integer.toHexString', 'int');
numbers = FOREACH few GENERATE hex(255);
STORE numbers INTO 'numbers';
EXEC;
SET pig.auto.local.enabled false;
STORE few INTO 'apart';
EXEC;
SET pig.auto.local.enabled true;
STORE few INTO 'here';
"""
HERE_OR_APART = [*["here"] * 3, *["apart"] * 6, "here"]
"""The steps of this script: three for an order, three for a join, and one for each other batch."""
HEAP = """
few = LOAD 'few.txt' AS (w:chararray);
STORE few INTO 'before';
EXEC;
SET mapreduce.map.java.opts '-Xmx300m';
STORE few INTO 'after';
EXEC;
STORE few INTO 'last';
"""
ALONE = "STORE (LOAD 'few.txt') INTO 'alone';"


class ImageTest(SynchronousTestCase):
    """One tree for all tests, a fresh working folder for each."""

    def setUp(self) -> None:
        self.prefix = vanilla_prefix()
        self.folder = Path(self.mktemp()).absolute()
        (self.folder / "tmp").mkdir(parents=True)
        (self.folder / "in.txt").write_text(TEXT)
        (self.folder / "few.txt").write_text("cat\ndog\n")
        (self.folder / "shout.js").write_text(
            'shout.outputSchema = "w:chararray";\nfunction shout(w) { return w.toUpperCase(); }\n'
        )

    def pig(self, script: str, *options: str, mode: str = "local") -> str:
        """Runs a script, by default in local mode; its last words are the failure."""
        (self.folder / "script.pig").write_text(script)
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder / "tmp"),
            "PIG_HEAPSIZE": "900",
            **{key: value for key, value in os.environ.items() if key == "SVCD_JAVA_HOME"},
        }
        settings = ["-Dmapreduce.task.io.sort.mb=16", f"-Dpig.temp.dir={self.folder}/tmp"]
        settings += options
        done = subprocess.run(
            [str(self.prefix / "bin/pig"), *settings, "-x", mode, "-l", ".", "script.pig"],
            cwd=self.folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        return done.stderr

    def steps(self, script: str, is_small: str = "true") -> list[str]:
        """Where each step of a script ran, within Pig's JVM or apart."""
        log = self.pig(
            script,
            f"-D{small_jobs.ENABLED}={is_small}",
            f"-Dsvcd.pig.options.of.tasks={small_jobs.OF_TASKS}",
            "-Dmapreduce.framework.name=local",
            mode="small",
        )
        found = re.findall("will run in-process|cannot be converted run in-process", log)
        return ["here" if each.startswith("will") else "apart" for each in found]

    def rows(self, name: str) -> list[tuple[str, ...]]:
        """The stored rows, sorted."""
        parts = (self.folder / name).glob("part-*")
        lines = [line for part in parts for line in part.read_text().splitlines()]
        return sorted(tuple(line.split("\t")) for line in lines)

    def test_tree_is_complete(self) -> None:
        """Every script, class and folder is there and `hadoop version` answers."""
        self.assertEqual(verify(self.prefix), [])

    def test_operators_storage_formats_and_functions(self) -> None:
        """One script stores, another one reads what the first has stored; no file is left over."""
        self.pig("EXEC;".join((OPERATORS, SORTED, STORES, BLOOM, FUNCTIONS)))
        self.pig(MERGE + LOADS)
        self.assertEqual(
            dict(self.rows("rows")),
            {
                "join": "6",
                "replicated": "6",
                "skewed": "6",
                "outer": "6",
                "bloom": "6",
                "cogroup": "4",
                "cross": "6",
                "filter": "3",
                "stream": "6",
                "rank": "2",
                "cube": "2",
                "sample": "6",
                "date": "2026",
                "the": "4",
            },
        )
        self.assertEqual(self.rows("merged"), [("cat", "cat", "2"), ("dog", "dog", "1")])
        counts = {"the": 4, "cat": 2, "sat": 2, "on": 2, "mat": 1, "dog": 1}
        in_five_formats = sorted((word, str(5 * count)) for word, count in counts.items())
        self.assertEqual(self.rows("read"), in_five_formats)
        self.assertEqual(self.rows("filtered"), [("cat",), ("cat",), ("dog",)])
        self.assertEqual(self.rows("bloomed"), [("cat", "cat"), ("cat", "cat"), ("dog", "dog")])
        self.assertEqual(self.rows("called"), [("CAT", "ff", "3"), ("DOG", "ff", "3")])
        left = [path.name for path in (self.folder / "tmp").iterdir()]
        self.assertEqual([name for name in left if not name.startswith("hadoop-")], [])

    def test_small_steps_of_pig(self) -> None:
        """One after the other and of Pig's own functions: here, with the options of the script."""
        self.assertEqual(self.steps(SMALL), HERE_OR_APART)
        (part,) = (self.folder / "sorted").glob("part-*")
        self.assertEqual(part.suffix, ".gz")
        rows = [row.split("\t") for row in gzip.decompress(part.read_bytes()).decode().splitlines()]
        self.assertEqual([n for _, n in rows], sorted(n for _, n in rows))
        self.assertEqual(rows[-1], ["the", "4"])
        self.assertEqual(list((self.folder / "steps").rglob("*.xml")), [])

    def test_pig_steps_that_need_containers(self) -> None:
        """None runs here after the script has set a heap, or where small jobs are turned off."""
        self.assertEqual(self.steps(HEAP), ["here", "apart", "apart"])
        self.assertEqual(self.steps(ALONE, is_small="false"), ["apart"])


class SparkTest(SynchronousTestCase):
    """The example of Spark in local mode, in a working folder of its own."""

    def setUp(self) -> None:
        self.prefix = vanilla_prefix()
        if "spark" not in read_record(self.prefix).get("versions", {}):
            raise SkipTest(f"{self.prefix} has no Spark")
        self.folder = Path(self.mktemp()).absolute()
        (self.folder / "tmp").mkdir(parents=True)
        (self.folder / "in.txt").write_text("Übung macht den Meister,\nden übung²\n", "utf-8")

    def submit(self, *arguments: str) -> list[str]:
        """The lines of the output of a word count, whose locale is that of a bare machine."""
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder / "tmp"),
            "LC_ALL": "C",
            "SPARK_LOCAL_IP": "127.0.0.1",
            **{key: value for key, value in os.environ.items() if key == "SVCD_JAVA_HOME"},
        }
        command = [str(self.prefix / "bin/spark-submit"), "--master", "local[1]"]
        command += ["--conf", "spark.ui.enabled=false", *arguments]
        command += [f"{self.folder}/in.txt", f"{self.folder}/out"]
        done = subprocess.run(
            command, cwd=self.folder, env=environ, capture_output=True, text=True,
            timeout=RUN_TIMEOUT_S, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        parts = sorted((self.folder / "out").glob("part-*"))
        return [line for part in parts for line in part.read_text("utf-8").splitlines()]

    def test_word_count_in_java(self) -> None:
        """Words of any letters, sorted, in one file."""
        jar = str(self.prefix / "examples/svcd-spark-examples.jar")
        self.assertEqual(self.submit("--class", "org.svcd.examples.spark.WordCount", jar), COUNTS)
