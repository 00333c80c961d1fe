"""The statements of a script in SQL, as the class of the image splits them. Needs a JDK."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.support.processes import ROOT

SOURCES = ROOT / "svcd/provisioning/distributions/vanilla/image/spark/java/org/svcd/spark"
PROBE = ROOT / "tests/support/spark/SplitProbe.java"
LIMIT_S = 120

CASES = (
    ("", []),
    (" ;\n; -- nothing\n/* ; */ ;", []),
    ("SELECT 1", ["1\tSELECT 1"]),
    ("SELECT 1;SELECT 2 ;\n\n SELECT\n3", ["1\tSELECT 1", "1\tSELECT 2", "3\tSELECT\\n3"]),
    ("-- it's a ;\nSELECT 1 -- and ';\n, 2;", ["2\tSELECT 1 \\n, 2"]),
    ("/* a ; /* b ' */ ; */ SELECT 1; x", ["1\tSELECT 1", "1\tx"]),
    ("SELECT /*+ COALESCE(1) */ 1;", ["1\tSELECT /*+ COALESCE(1) */ 1"]),
    ("SELECT ';', \";\", `;`;\nx", ["1\tSELECT ';', \";\", `;`", "2\tx"]),
    (r"SELECT 'it\'s;', 'it''s;'; x", [r"1	SELECT 'it\'s;', 'it''s;'", "1\tx"]),
    (r"SELECT `a\`; x", [r"1	SELECT `a\`", "1\tx"]),
    (r"SELECT r'\', R'\'; SELECT bar'\';'", [r"1	SELECT r'\', R'\'", r"1	SELECT bar'\';'"]),
    ("SELECT '--', '/*'; x", ["1\tSELECT '--', '/*'", "1\tx"]),
    ("SELECT 'a\nb;\nc'; x", ["1\tSELECT 'a\\nb;\\nc'", "3\tx"]),
    ("SELECT 1;\n'x", ["line 2: the text in ' that begins here has no end"]),
    ("\n/* never\nclosed", ["line 2: the comment that begins here has no end"]),
    ("SELECT '\\", ["line 1: the text in ' that begins here has no end"]),
    ("SELECT 'grün'; SELECT 1", ["1\tSELECT 'grün'", "1\tSELECT 1"]),
)


class SqlStatementTests(SynchronousTestCase):
    def test_splits(self) -> None:
        """Quotes, comments and raw strings hold semicolons; lines are those of the script."""
        java = shutil.which("java"), shutil.which("javac")
        if None in java:
            raise SkipTest("no java and javac on the PATH")
        classes = Path(self.mktemp()).absolute()
        sources = [str(SOURCES / "SqlStatement.java"), str(PROBE)]
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        compile_ = ["javac", "-proc:none", "-encoding", "UTF-8", "-d", str(classes), *sources]
        subprocess.run(compile_, check=True, timeout=LIMIT_S, env=environment)
        ran = subprocess.run(
            ["java", "-Dfile.encoding=UTF-8", "-cp", str(classes), "org.svcd.spark.SplitProbe"],
            input="\x01".join(script for script, _ in CASES).encode(),
            capture_output=True,
            check=True,
            timeout=LIMIT_S,
            env={**environment, "JAVA_TOOL_OPTIONS": "-Dstdout.encoding=UTF-8"},
        )
        answers = ran.stdout.decode().split("\x01")[:-1]
        found = [each.split("\x02") if each else [] for each in answers]
        for (script, expected), each in zip(CASES, found, strict=True):
            self.assertEqual(each, expected, script)
