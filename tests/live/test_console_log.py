"""The lines of a log that the page shows, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from svcd.cli.program_output import ProgramOutput
from tests.support.console import ConsoleCase
from tests.unit.cli.test_program_output import of_cause

RECORDED = Path(__file__).parents[1] / "fixtures" / "launchers"
ODD = (
    "==> part-0 <==\n==> attempt_1_2_m_3_0 stdout \u2028<==\n",
    "\n\rb\rc\n",
    "2026-01-01 00:00:00,000 INFO [main] org.apache.hadoop.conf.Configuration: loaded\n",
    "Callback notification trying \u2028a\x85b\x0c\n\u2028\n\x1c\n",
    "==> a.b-1 application_1_2 stdout <==\nCallback notification trying \r\u2028\n",
    "2026-01-01 00:00:00,000 INFO org.apache.hadoop.examples.MyTool: result=42\n",
    f"{'=' * 8}\r\n{' ' * 13}\u00a0\n\ufeff\n",
    "\tat java.base/java.lang.A.b(C.java:1)\n\u00a0at java.lang.A\n at org.apache.pig\u0661.A\n",
    "\tat Mine.map(Mine.java:1)\n\t... 3 more\n\t... \u0663 more\n\tat a.b/org.apache.pig.A\r\n",
    "2026-01-01 00:00:0\u0661,000 INFO [main] org.apache.pig.A: a\n",
    "2026-01-01 00:00:00.000 INFO org.apache.spark.A: a\n2026-01-01 00:00:0\u0661.000 INFO b\n",
    "==> a.b-1 application_1_2 stderr <==\n2026-01-01 00:00:00.000 INFO"
    f" org.apache.spark.deploy.yarn.ApplicationMaster: \n{'=' * 79}\na\n\n{'=' * 79}\r\nb\n"
    f"2026-01-01 00:00:00.000 INFO org.apache.spark.A: \n{'=' * 79}\nc\n",
)
"""Lines that JavaScript and Python could read differently."""


class ProgramOutputTests(ConsoleCase):
    async def test_the_log_has_the_lines_that_the_command_line_shows(self) -> None:
        """Recorded logs, whole and in pieces; with unknown lines, other separators and titles."""
        script = """async (text) => {
            const { ProgramOutput } = await import("/console/program_output.js");
            return [7, 1000, text.length].map((size) => {
                const output = new ProgramOutput();
                const made = [];
                for (let at = 0; at < text.length; at += size) {
                    made.push(output.of(text.slice(at, at + size), at + size >= text.length));
                }
                return [made.join(""), output.leftOut];
            });
        }"""

        def walk(page: Any) -> None:
            page.goto("/console/")
            logs = {e.name: e.read_text(encoding="utf-8") for e in RECORDED.glob("*.txt")}
            for each in (
                "pyspark-syntax", "pyspark-oom-container", "sparksql-syntax", "smalljar-exception"
            ):  # fmt: skip
                parts = of_cause(each).items()
                logs[each] = "".join(f"==> {title} <==\n{text}" for title, text in parts)
            for name, recorded in sorted(logs.items()):
                lines = recorded.splitlines(keepends=True)
                odd = "".join(line + "unknown\n\n" * (n % 9 == 0) for n, line in enumerate(lines))
                strange = "".join(
                    line + ODD[n % len(ODD)] * (n % 4 == 0) for n, line in enumerate(lines)
                )
                for text in (recorded, odd, strange):
                    shown, output = ProgramOutput().of(text, last=True)
                    expected = [[shown, output.left_out]] * 3
                    self.assertEqual(page.evaluate(script, text), expected, name)

        await self.walk(walk)
