"""The statements and variables of a script in SQL, as the image finds them. Needs a JDK."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.support.java_probes import answers_of
from tests.support.processes import ROOT

SOURCES = ROOT / "svcd/provisioning/distributions/vanilla/image/spark/java/org/svcd/spark"

CASES = (
    ("", []),
    (" ;\n; -- nothing\n/* ; */ ;", []),
    ("SELECT 1", ["1\tSELECT 1"]),
    ("SELECT 1;SELECT 2 ;\n\n SELECT\n3", ["1\tSELECT 1", "1\tSELECT 2", "3\tSELECT\\n3"]),
    ("-- it's a ;\nSELECT 1 -- and ';\n, 2;", ["2\tSELECT 1 \\n, 2"]),
    ("/* a ; /* b ' */ ; */ SELECT 1; x", ["1\tSELECT 1", "1\tx"]),
    ("SELECT /*+ COALESCE(1) */ 1;", ["1\tSELECT /*+ COALESCE(1) */ 1"]),
    ("SELECT/* ${x}\n;*/1\n/*\n*/, 2;x", ["1\tSELECT \\n1\\n \\n, 2", "4\tx"]),
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


VARIABLES = (
    ("SELECT 1, '$', '${', '$A', '${}', '${ X }', '\\u0024{X}'", ""),
    ("${A}, ${B}, ${D}, ${spark:A}, ${hiveconf:B}", ""),
    ("${A} '${X}' ${Y}", "${X}"),
    ("${größe.1}", "${größe.1}"),
    ("${C}", "${X}, in the value of ${C},"),
    ("${hivevar:C}", "${X}, in the value of ${hivevar:C},"),
    ("${env:X} ${system:X} ${my:X}", ""),
)
"""Text -> the variable without a value. Spark leaves those with other prefixes as they stand."""


class SqlTests(SynchronousTestCase):
    def run_on(self, texts: Sequence[str], source: str, probe: str) -> list[str]:
        """The answers of a probe, which is compiled together with a class of the image."""
        return answers_of(Path(self.mktemp()), texts, SOURCES / source, probe)

    def test_splits(self) -> None:
        """Quotes, comments and raw strings hold semicolons; lines are those of the script."""
        answers = self.run_on([script for script, _ in CASES], "SqlStatement.java", "SplitProbe")
        found = [each.split("\x02") if each else [] for each in answers]
        for (script, expected), each in zip(CASES, found, strict=True):
            self.assertEqual(each, expected, script)

    def test_variables_without_a_value(self) -> None:
        """In strings and in values, too: Spark would take the empty text."""
        texts = [text for text, _ in VARIABLES]
        answers = self.run_on(texts, "SqlVariables.java", "VariablesProbe")
        for (text, expected), each in zip(VARIABLES, answers, strict=True):
            self.assertEqual(each, expected, text)
