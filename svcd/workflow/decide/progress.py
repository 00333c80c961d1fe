"""Finds the progress of an execution and the exit code of its program. Pure.

The engine's record has neither. The ResourceManager knows the progress of an execution's
applications, and the texts of a failure contain the exit code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from attrs import evolve

from svcd.model.engine_record import Record
from svcd.model.job import Execution, ExecutionStatus
from svcd.workflow.decide.stalls import LAUNCHER, Application, applications_of_action, launched

_SHELL_CODE: Final = re.compile(r"Exit code of the Shell command (-?\d{1,10})\b")
_MAIN_CODE: Final = re.compile(r"exit code \[(-?\d{1,10})\]")


def progress_of(row: Execution, applications: Sequence[Application]) -> float | None:
    """The progress of `row` by all applications of its cluster that have not ended."""
    action = launched(row.engine_record)
    mine = [] if action is None else applications_of_action(action, applications)
    return progress(mine, row.progress)


def progress(applications: Sequence[Application], before: float | None) -> float | None:
    """The mean progress of the applications that do an execution's work, 0.0 to 1.0.

    applications: those of the execution that have not ended. before: the last known progress; it
    stays while there is only a launcher, whose own progress says nothing, and is 0.0 then at first.
    A Pig script runs several jobs, one after the other.
    """
    found = [a.progress for a in applications if not a.name.startswith(LAUNCHER)]
    if found:
        return round(sum(found) / len(found), 2)
    return 0.0 if applications and before is None else before


def with_progress(row: Execution, found: float | None) -> Execution:
    """`row` with its progress, if it still runs."""
    return evolve(row, progress=found) if row.status is ExecutionStatus.RUNNING else row


def return_code(record: Record, diagnosis: str) -> int | None:
    """The exit code of a failed execution's main program, None when it is not known.

    diagnosis: see `failures.of_record`. The launcher of a Shell action always exits with 1, and
    prints the code of the script.
    """
    action = record.failed
    if action is None:
        return None
    if action.type == "shell":
        found = _SHELL_CODE.search(diagnosis)
    else:
        found = _MAIN_CODE.search(action.error_message)
    return None if found is None else int(found[1])
