"""Finds the reason of a failed execution in the engine's record and in logs. Pure.

The codes and their advice are in `svcd.model.failures`. `of_record` reads the engine's own record.
`diagnosis` is text of the history server and logs, for a record without a reason (a failing map or
reduce task leaves both error fields null).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from svcd.model.engine_record import Action, Record
from svcd.model.failures import KNOWN
from svcd.model.failures import Code as Code
from svcd.model.job import Failure

MOST_TEXT: Final = 2000
"""The longest text of a failure, in characters."""
_MOST_READ: Final = 8192
"""Characters of a reason that are searched: a hostile engine may send very many."""

_TEXTS: Final[Sequence[tuple[Code, re.Pattern[str]]]] = (
    # the words of image/java/org/svcd/objstore/ObjStoreException.java
    (Code.OBJECT_STORE_CREDENTIALS, re.compile(r"\bobjstore: UNAUTHORIZED: ")),
    (Code.JOB_CREDENTIAL_EXPIRED, re.compile(r"\bobjstore: EXPIRED: ")),
    (Code.OBJECT_STORE_FORBIDDEN, re.compile(r"\bobjstore: FORBIDDEN: ")),
    (Code.CONTAINER_MISSING, re.compile(r"\bobjstore: NOT_FOUND: the container ")),
    (Code.INPUT_MISSING, re.compile(r"\bobjstore: NOT_FOUND: ")),
    (Code.OBJECT_STORE_UNAVAILABLE, re.compile(r"\bobjstore: (?:UNREACHABLE|SERVER_ERROR): ")),
    (
        Code.OBJECT_STORE,
        re.compile(r"\bobjstore: [A-Z_]+: |ObjStoreException|No FileSystem for scheme \"?objstore"),
    ),
    (
        Code.INPUT_MISSING,
        re.compile(r"Input [Pp](?:ath|attern) .*(?:does not exist|matches 0 files)"),
    ),
    (Code.OUTPUT_EXISTS, re.compile(r"Output directory .* already exists|FileAlreadyExists")),
    (Code.CLASS_MISSING, re.compile(r"ClassNotFoundException|NoClassDefFoundError|Class .* not f")),
    (Code.OUT_OF_MEMORY, re.compile(r"OutOfMemoryError|beyond the '?\w+'? memory limit")),
    (
        Code.FILE_SYSTEM,
        re.compile(
            r"There are 0 datanode\(s\) running|Failed to find datanode|Could not obtain block"
            r"|BlockMissingException|All datanodes .* are bad|not a SequenceFile"
            r"|Name node is in safe mode(?![\s\S]*Resources are low on NN)"
        ),
    ),
    (
        Code.NO_SPACE,
        re.compile(
            r"No space left on device|DiskErrorException|any valid local directory"
            r"|could only be written to 0 of|Resources are low on NN"
        ),
    ),
    (Code.ENGINE_REFUSED, re.compile(r"Invalid resource request")),
    (
        Code.RESOURCES_UNREACHABLE,
        re.compile(
            # the engine's word for either; ours; a job's own word, by the ports of the two
            r"^JA006|^JA009|^the resource manager does not answer: "
            r"|Call From \S+ to \S+:(?:8020|803[0-3]) failed on (?:connection|socket)"
        ),
    ),
    (Code.FILE_MISSING, re.compile(r"^JA008|File does not exist|FileNotFoundException")),
    (Code.EXIT_CODE, re.compile(r"exit code \[\d+\]")),
)


def failure(code: Code, step: str, reason: str) -> Failure:
    """A failure with its advice. reason: what happened; line ends become blanks, cut to size."""
    text = " ".join(reason.split()) or "the engine gave no reason"
    return Failure(code=code.value, step=step, text=f"{text[:MOST_TEXT]}; {KNOWN[code].advice}")


def of_record(record: Record, diagnosis: str = "") -> Failure:
    """The failure in the record of a workflow that ended in `KILLED` or `FAILED`.

    diagnosis: text of the history server or a log, for a record without a reason.
    """
    action = record.failed
    if action is None:
        if record.status == "KILLED":
            return failure(Code.KILLED_ELSEWHERE, "workflow", "the workflow was killed")
        return failure(Code.UNKNOWN, "workflow", diagnosis)
    step, message = action.step, action.error_message
    if action.status == "KILLED" and not message and not action.error_code:
        return failure(Code.KILLED_ELSEWHERE, step, "the workflow was killed")
    if action.error_code == "EL_ERROR":
        return failure(Code.VARIABLE_UNKNOWN, step, message)
    if not message:
        reason = (
            diagnosis or "a task failed, and neither the engine nor the job history has a reason"
        )
        found = _by_text(reason)
        return failure(found or Code.TASK_FAILED, step, reason)
    found = _by_text(message)
    if found is None or found is Code.EXIT_CODE:
        found = _by_text(diagnosis) or found
    reason = f"{message}: {diagnosis}" if diagnosis and diagnosis not in message else message
    return failure(found or Code.EXCEPTION, step, reason)


def is_silent(record: Record) -> bool:
    """Whether the record of a failed workflow does not hold the reason."""
    action = record.failed
    if action is None or action.status == "KILLED":
        return False
    message = action.error_message
    # Oozie finds no history of the job: the fault kept the job from writing one
    unknown = "Unknown hadoop job" in message
    return not message or unknown or _by_text(message) is Code.EXIT_CODE


def of_giving_up(action: Action) -> Failure:
    """The failure when the engine could not start (or end) `action`."""
    step, message = action.step, action.error_message
    found = _by_text(message)
    known = (Code.RESOURCES_UNREACHABLE, Code.FILE_SYSTEM, Code.NO_SPACE, Code.ENGINE_REFUSED)
    code = found if found in known else Code.START_GAVE_UP
    return failure(code, step, message or "the engine gave up without a reason")


def _by_text(text: str) -> Code | None:
    head = text[:_MOST_READ]
    return next((code for code, pattern in _TEXTS if pattern.search(head)), None)
