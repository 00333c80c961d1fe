"""The last words of real scripts of bash and Python, as svcd reads them. Needs no cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import TestCase

from svcd.model.engine_record import parsed
from svcd.workflow.decide import causes
from svcd.workflow.decide.evidence import LAUNCHER, Evidence, LogFile
from tests.causes.cells import CELLS, Cell
from tests.causes.expected import EXPECTED
from tests.support.steps import ended

ALONE = frozenset({"Shell", "Streaming"})
NEEDS_MORE = ("hdfs ", "sleep")
DATA = ("input-missing", "output-exists", "names")
LIMIT_S = 60


def runs_alone(cell: Cell) -> bool:
    """Whether the cell's mistake is in a script that needs nothing of a cluster."""
    mapper = cell.configs.get("edp.streaming.mapper", "SCRIPT")
    is_ours = cell.type in ALONE and "SCRIPT" in mapper and not cell.impossible
    about_data = cell.type == "Streaming" and cell.mistake in DATA
    return is_ours and not about_data and not any(word in cell.script for word in NEEDS_MORE)


class ScriptTests(TestCase):
    def said(self, cell: Cell) -> tuple[str, int]:
        """What the script of a cell writes to stderr before it ends, and its exit code."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        name = cell.name.lower().replace("/", "-")
        script = folder / (f"{name}.sh" if cell.type == "Shell" else f"{name}.py")
        script.write_text(cell.script)
        script.chmod(0o755)
        command = [f"./{script.name}"] if cell.type == "Shell" else [sys.executable, script.name]
        ended = subprocess.run(
            command, cwd=folder, input=b"one two two\n", capture_output=True, timeout=LIMIT_S
        )
        self.assertNotEqual(ended.returncode, 0, cell.name)
        code = ended.returncode  # negative for a signal
        return ended.stderr.decode(), code if code > 0 else 128 - code

    def test_each_script_has_its_cause(self) -> None:
        """As a Shell job, or as the mapper of a streaming job."""
        cells = [each for each in CELLS if runs_alone(each)]
        self.assertGreater(len(cells), 10)
        for cell in cells:
            place, kind = (
                (LAUNCHER, "shell") if cell.type == "Shell" else ("attempt_1", "map-reduce")
            )
            stderr, number = self.said(cell)
            failed = (
                "Error: java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): "
                f"subprocess failed with code {number}"
            )
            files = [LogFile(place=place, name="stderr", text=stderr)]
            evidence = Evidence(attempts=[failed], files=files)
            action = {"name": "n", "type": kind, "status": "ERROR", "errorMessage": "exit code [1]"}
            told = ended(
                causes.judging(parsed({"status": "KILLED", "actions": [action]}), evidence)
            )
            code, begins = EXPECTED[cell.name]
            self.assertEqual((told.code, told.text[: len(begins)]), (code, begins), cell.name)
