"""The true cause of each recorded failure of a real job: its code, its line, and the advice.

`python -m tests.causes --record` runs the programs on real Hadoop and records what svcd reads.
"""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.engine_record import parsed
from svcd.model.job import Failure
from svcd.model.secret import Secret
from svcd.workflow.decide import causes, launchers
from svcd.workflow.decide.evidence import LAUNCHER, Evidence, LogFile
from svcd.workflow.decide.launchers import Sweep, lost
from tests.causes.cells import CELLS
from tests.causes.expected import EXPECTED
from tests.causes.run import FIXTURES, evidence_of
from tests.support.steps import ended

NAMES = {each.name.lower().replace("/", "-"): each.name for each in CELLS}
ADVICE = {
    "INPUT_MISSING": "check the named path",
    "OUTPUT_EXISTS": "use an output that does not exist yet",
    "FILE_MISSING": "check the named path",
    "SCHEME_UNKNOWN": "use hdfs:// for the cluster's own files, and objstore:// for the object",
    "SYNTAX_ERROR": "correct the script",
    "CLASS_MISSING": "correct the name, or add a library that has it to the libs of the job",
    "MODULE_MISSING": "correct its name, add it to the libs of the job, or install it in the image",
    "EXCEPTION": "the log of this job execution has more",
    "EXIT_CODE": "read the last lines of the program in the log of this job execution",
    "OUT_OF_MEMORY": "give the program more memory, or let it need less",
    "NO_SPACE": "make room for the data, and execute the job again",
    "VARIABLE_UNKNOWN": "give the named variable of a script a value in the params of job_configs",
    "WORKER_LOST": "remove the job's partial output and execute the job again",
}


def recorded(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def judged(tree: Any) -> Failure:
    """As `act.perform` judges: a dead launcher first."""
    record, evidence = parsed(tree["record"]), evidence_of(tree["evidence"])
    action = launchers.suspect(record)
    for each in evidence.applications:
        if action is not None and each.is_launcher and launchers.died(each.state):
            return lost(action, each.text, Sweep())
    return ended(causes.judging(record, evidence))


class MatrixTests(SynchronousTestCase):
    def test_each_recorded_failure_has_its_cause(self) -> None:
        """The code, then the line of the program, then what to do if the code tells it.

        The line is no frame, and no words of the engine about its own launcher.
        """
        found = sorted(FIXTURES.glob("*.json"))
        self.assertGreater(len(found), 15)
        for path in found:
            name = NAMES[path.stem]
            failure = judged(recorded(path))
            code, begins = EXPECTED[name]
            self.assertTrue(begins, f"{name} is recorded: expected.txt has to say its words")
            self.assertEqual(failure.code, code, (name, failure.text))
            self.assertEqual(failure.text[: len(begins)], begins, name)
            for words in ("org.apache.oozie", "Main Class [", "\tat ", "InvocationTarget"):
                self.assertNotIn(words, failure.text, name)
            if code in ADVICE:
                self.assertIn(f"; {ADVICE[code]}", failure.text, name)


class HostileTests(SynchronousTestCase):
    """Programs of tenants write the logs."""

    def test_logs_that_are_searched_for_long(self) -> None:
        """The files are cut at 64 KiB; no step of a judgement takes long."""
        size = 65_536
        for line in (
            "\n",
            "x\n",
            "a.b.CException: x\n",
            "a." * 500 + "\n",
            'Traceback (most recent call last):\n  File "a", line 1\n',
            "x: " * 300 + "\n",
            "ERROR " * 5000 + "a." * 15_000 + "\n",
            "\tat java.lang.A\n",
            "a.B: c\n" + "\tat java.lang.A(B.java:1)\n" * 150,
            "ERROR 1200: ",
            "Input path ",
            "Container [" * 100,
            "line 1: " + "no " * 320 + "\n",
            "x" * 999 + "\n",
            "a: " * 333 + "\n",
            "+ " * 9 + "\n",
            "<file " * 9 + "\n",
            "<file " + "a" * 290 + ", line 1, column ",
        ):
            text = (line * (size // len(line) + 1))[:size]
            files = [
                LogFile(place=place, name=name, text=text)
                for place in (LAUNCHER, "attempt_1")
                for name in ("stdout", "stderr", "syslog")
            ]
            said = "subprocess failed with code 1 " + text
            evidence = Evidence(attempts=[said[:8192]], jobs=[text[:8192]], files=files)
            for kind in ("shell", "java", "pig"):
                action = {"name": "n", "type": kind, "status": "ERROR", "errorMessage": text}
                record = parsed({"status": "KILLED", "actions": [action]})
                steps = causes.judging(record, evidence, ())
                began = process_time()
                for _ in steps:
                    spent, began = process_time() - began, process_time()
                    self.assertLess(spent, 0.25, (kind, line[:40]))

    def test_secrets_are_masked_before_the_text_is_cut(self) -> None:
        secret = "correct-horse-battery"
        files = [LogFile(place=LAUNCHER, name="stderr", text=f"{'x' * 1990} {secret}\n")]
        action = {"name": "n", "type": "shell", "status": "ERROR", "errorMessage": "exit code [1]"}
        record = parsed({"status": "KILLED", "actions": [action]})
        text = ended(causes.judging(record, Evidence(files=files), [Secret(secret)])).text
        self.assertNotIn("correct", text)
        self.assertIn("x ***", text)
