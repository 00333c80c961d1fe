"""Finds the progress of an execution, its Spark application, and its exit code. Pure.

The engine's record has no progress and no exit code, and names a Spark application only after its
end. The ResourceManager knows the applications of an execution and their progress, and the texts of
a failure contain the exit code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import evolve

from svcd.model.engine_record import Action, Record, parsed
from svcd.model.job import Execution, ExecutionStatus
from svcd.workflow.decide.evidence import Evidence
from svcd.workflow.decide.launchers import is_application
from svcd.workflow.decide.stalls import (
    LAUNCHER,
    SPARK,
    Application,
    ClusterMetrics,
    tag_of,
)

_MOST_URL: Final = 2000
_MOST_STATE: Final = 30
_MOST_CHILDREN: Final = 100
"""Spark applications of one action that svcd shows. The tenant's machines name them."""
_SHELL_CODE: Final = re.compile(r"Exit code of the Shell command (-?\d{1,10})\b")
_MAIN_CODE: Final = re.compile(r"exit code \[(-?\d{1,10})\]")
_PYTHON_CODE: Final = re.compile(r"User application exited with (?:status )?(-?\d{1,10})\b")
"""YARN's words on a Python program of Spark."""


def progress_of(row: Execution, metrics: ClusterMetrics) -> float | None:
    """The progress of `row` by the applications of its cluster that have not ended."""
    action = row.engine_record.launched
    return progress([] if action is None else metrics.applications_of(action), row.progress)


def progress(applications: Sequence[Application], before: float | None) -> float | None:
    """The mean progress of the applications that do an execution's work, 0.0 to 1.0.

    applications: those of the execution that have not ended. before: the last known progress; it
    stays while there is only a launcher, whose own progress says nothing, and is 0.0 then at first.
    A Pig script runs several jobs, one after the other.
    """
    shares = [a.progress for a in applications if not a.name.startswith(LAUNCHER)]
    if shares:
        return round(sum(shares) / len(shares), 2)
    return 0.0 if applications and before is None else before


def with_progress(row: Execution, found: float | None, metrics: ClusterMetrics) -> Execution:
    """`row` with its progress and its Spark applications that have not ended, if it still runs."""
    if row.status is not ExecutionStatus.RUNNING:
        return row
    action = submitter(row.engine_record)
    mine = [] if action is None else metrics.applications_of(action)
    record = with_children(row.engine_record, mine)
    if found == row.progress and record is row.engine_record:
        return row
    return evolve(row, progress=found, record=record.tree)


def submitter(record: Record) -> Action | None:
    """The action whose program may have submitted an application of Spark, or None."""
    return next((a for a in record.actions if a.type == "java" and a.external_id), None)


def is_program(action: Action, application: Application) -> bool:
    """Whether `application` is the program of Spark that the action has submitted."""
    if application.kind != SPARK or not is_application(application.id):
        return False
    return tag_of(action.id) in application.tags


def with_children(record: Record, applications: Sequence[Application]) -> Record:
    """`record` with the Spark applications of its action in the keys of the action.

    `externalChildIDs` has their ids, as the engine writes them at the end, and `children` what
    YARN says of each, of the last `_MOST_CHILDREN`. applications: any of the cluster; without one
    of the action nothing changes.
    """
    action = submitter(record)
    if action is None:
        return record
    mine = [a for a in applications if is_program(action, a)][-_MOST_CHILDREN:]
    if not mine:
        return record
    ids = list(dict.fromkeys([*action.child_ids, *(a.id for a in mine)]))[-_MOST_CHILDREN:]
    shown = [
        {
            "id": a.id,
            "state": a.state[:_MOST_STATE],
            "progress": a.progress,
            "trackingUrl": a.tracking_url[:_MOST_URL],
        }
        for a in mine
    ]
    return _with(record, action, {"externalChildIDs": ",".join(ids), "children": shown})


def with_known_children(record: Record, known: Record) -> Record:
    """`record` with the Spark applications that `known`, an older record of the job, shows."""
    action = submitter(record)
    if action is None:
        return record
    for tree in _trees(known):
        if tree.get("id") == action.id and isinstance(tree.get("children"), list | tuple):
            kept = {"children": tree["children"]}
            if not action.child_ids:
                kept["externalChildIDs"] = tree.get("externalChildIDs")
            return _with(record, action, kept)
    return record


def _with(record: Record, action: Action, keys: Mapping[str, object]) -> Record:
    """`record` with further keys of one action."""
    actions = [{**tree, **keys} if tree.get("id") == action.id else tree for tree in _trees(record)]
    return evolve(parsed({**record.tree, "actions": actions}), status=record.status)


def _trees(record: Record) -> Sequence[Mapping[str, object]]:
    actions = record.tree.get("actions")
    return (
        [action for action in actions if isinstance(action, Mapping)]
        if isinstance(actions, list | tuple)
        else []
    )


def return_code(record: Record, evidence: Evidence) -> int | None:
    """The exit code of a failed execution's main program, None when it is not known.

    The launcher of a Shell action always exits with 1, and prints the code of the script.
    """
    action = record.failed
    if action is None:
        return None
    if action.type == "shell":
        code = _SHELL_CODE.search(evidence.of_launcher("stdout"))
    else:
        message = action.error_message
        code = _PYTHON_CODE.search(message) or _MAIN_CODE.search(message)
    return None if code is None else int(code[1])
