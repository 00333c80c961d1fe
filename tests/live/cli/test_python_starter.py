"""The starter of a Python program of Spark, by itself: no Hadoop."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from twisted.trial.unittest import TestCase

from svcd.workflow.decide.arguments import START_PYTHON
from svcd.workflow.decide.spark_values import path, start_python
from tests.live.cli.test_given_values import ARGS, CONTROLS, PROGRAM, SHOW, TASK_FILES, compare
from tests.support.processes import run

ARCHIVE = "my lib.zip"
FILES = (PROGRAM, ARCHIVE, *TASK_FILES, "*", "-rf.py")


class PythonStarterTests(TestCase):
    timeout = 60

    def container(self) -> Path:
        """A folder with the links that YARN makes. The content of a file is its name."""
        folder, cache = Path(self.mktemp()).absolute(), Path(self.mktemp()).absolute()
        (folder / "__pyfiles__").mkdir(parents=True)
        cache.mkdir()
        for number, name in enumerate(FILES):
            file = cache / str(number)
            file.write_text(SHOW if number == 0 else name)
            place = name
            if name == ARCHIVE:
                place = path(name, number)
            elif number and name.endswith(".py"):
                place = f"__pyfiles__/{name}"
            (folder / place).symlink_to(file)
        return folder

    async def test_a_program_has_what_was_given(self) -> None:
        """The process becomes the program, which finds its libraries under their names."""
        folder, args = self.container(), (*ARGS, *CONTROLS)
        (folder / START_PYTHON).write_bytes(start_python(PROGRAM, FILES[1:], args))
        environment = {**os.environ, "PYTHONPATH": f"/x:{folder}/{path(ARCHIVE, 1)}"}
        command = ("/bin/sh", "-c", f'echo $$; exec "{sys.executable}" {START_PYTHON}')
        ended = await run(*command, folder=str(folder), environment=environment)
        self.assertEqual((ended.code, ended.err), (7, ""))
        pid, _, shown = ended.out.partition("\nSHOWN")
        found = json.loads(shown)
        self.assertEqual(found["pid"], int(pid))
        self.assertEqual(Path(found["real"]), folder / PROGRAM)
        self.assertEqual(found["environment"]["PYTHONPATH"], f"/x:{folder}/{ARCHIVE}")
        compare(self, found, [PROGRAM, *args], FILES[1:])
