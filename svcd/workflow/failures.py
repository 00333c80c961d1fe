"""Why an execution did not succeed: a closed list of codes, each with advice. Pure.

`of_record` reads the engine's own record, `diagnosis` what the history server and logs add where
the record is silent (a failing map or reduce task leaves both error fields null).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from typing import Final

from svcd.model.job import Failure

MOST_TEXT: Final = 2000
"""Characters of a failure's text."""


class Code(enum.StrEnum):
    """The closed list."""

    CLUSTER_GONE = "CLUSTER_GONE"
    CLUSTER_FAILED = "CLUSTER_FAILED"
    NO_ENGINE = "NO_ENGINE"
    BINARY_UNREADABLE = "BINARY_UNREADABLE"
    DOCUMENT_REFUSED = "DOCUMENT_REFUSED"
    STAGING_FAILED = "STAGING_FAILED"
    ENGINE_REFUSED = "ENGINE_REFUSED"
    ENGINE_UNREACHABLE = "ENGINE_UNREACHABLE"
    ENGINE_LOST_JOB = "ENGINE_LOST_JOB"
    START_GAVE_UP = "START_GAVE_UP"
    RESOURCES_UNREACHABLE = "RESOURCES_UNREACHABLE"
    VARIABLE_UNKNOWN = "VARIABLE_UNKNOWN"
    INPUT_MISSING = "INPUT_MISSING"
    OUTPUT_EXISTS = "OUTPUT_EXISTS"
    FILE_MISSING = "FILE_MISSING"
    CLASS_MISSING = "CLASS_MISSING"
    OBJECT_STORE = "OBJECT_STORE"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    EXIT_CODE = "EXIT_CODE"
    EXCEPTION = "EXCEPTION"
    TASK_FAILED = "TASK_FAILED"
    KILLED_ELSEWHERE = "KILLED_ELSEWHERE"
    INTERNAL = "INTERNAL"
    UNKNOWN = "UNKNOWN"


ADVICE: Final[Mapping[Code, str]] = {
    Code.CLUSTER_GONE: "execute the job on another cluster",
    Code.CLUSTER_FAILED: "see the cluster's status_description, mend or replace the cluster",
    Code.NO_ENGINE: "use a cluster with the workflow engine among its processes",
    Code.BINARY_UNREADABLE: "check the url and the credentials of the job binary",
    Code.DOCUMENT_REFUSED: "correct the named value in job_configs",
    Code.STAGING_FAILED: "check the cluster's file system (space, safe mode, live data nodes)",
    Code.ENGINE_REFUSED: "correct job_configs; the engine's own message is quoted",
    Code.ENGINE_UNREACHABLE: "check that the cluster's workflow engine runs and can be reached",
    Code.ENGINE_LOST_JOB: "the engine's database was lost or purged; execute the job again",
    Code.START_GAVE_UP: "the engine could not start the step; check the cluster's services",
    Code.RESOURCES_UNREACHABLE: "check that the cluster's resource manager runs",
    Code.VARIABLE_UNKNOWN: "set the named variable in job_configs, or write $ instead of ${",
    Code.INPUT_MISSING: "check the url of the input data source",
    Code.OUTPUT_EXISTS: "use an output data source whose url does not exist yet",
    Code.FILE_MISSING: "check the names of the job's binaries",
    Code.CLASS_MISSING: "check the class names in job_configs and that a library holds the class",
    Code.OBJECT_STORE: "check url and credentials of the data sources",
    Code.OUT_OF_MEMORY: "give the job more memory in job_configs, or take larger flavors",
    Code.EXIT_CODE: "see the job's log for the last lines of the program",
    Code.EXCEPTION: "see the job's log",
    Code.TASK_FAILED: "see the job's log",
    Code.KILLED_ELSEWHERE: "the job was killed at the engine by somebody else",
    Code.INTERNAL: "tell the operator the incident, which is in the daemon's log too",
    Code.UNKNOWN: "see the job's log",
}

_TEXTS: Final[Sequence[tuple[Code, re.Pattern[str]]]] = (
    (
        Code.INPUT_MISSING,
        re.compile(r"Input [Pp](?:ath|attern) .*(?:does not exist|matches 0 files)"),
    ),
    (Code.OUTPUT_EXISTS, re.compile(r"Output directory .* already exists|FileAlreadyExists")),
    (Code.CLASS_MISSING, re.compile(r"ClassNotFoundException|NoClassDefFoundError|Class .* not f")),
    (Code.OUT_OF_MEMORY, re.compile(r"OutOfMemoryError|beyond the '?\w+'? memory limit")),
    (
        Code.OBJECT_STORE,
        re.compile(r"\bobjstore: [A-Z_]+: |ObjStoreException|No FileSystem for scheme \"?objstore"),
    ),
    (Code.ENGINE_REFUSED, re.compile(r"Invalid resource request")),
    (Code.RESOURCES_UNREACHABLE, re.compile(r"^JA006|^JA009")),
    (Code.FILE_MISSING, re.compile(r"^JA008|File does not exist|FileNotFoundException")),
    (Code.EXIT_CODE, re.compile(r"exit code \[\d+\]")),
)

_CAUSE: Final = re.compile(
    r"^(?:Caused by: |Error: |.*\bERROR\b.*?)?((?:\w+\.)+\w*(?:Exception|Error)\b.*)$"
    r"|\b(ERROR \d{4}: .+)$"
)
_WRAPPER: Final = re.compile(r"org\.apache\.oozie\.|java\.lang\.reflect\.")


def failure(code: Code, step: str, reason: str) -> Failure:
    """A failure with its advice. reason: what happened; line ends become blanks, cut to size."""
    told = " ".join(reason.split()) or "the engine gave no reason"
    return Failure(code=code.value, step=step, text=f"{told[:MOST_TEXT]}; {ADVICE[code]}")


def of_record(record: Mapping[str, object], diagnosis: str = "") -> Failure:
    """What the record of a workflow that ended in `KILLED` or `FAILED` says.

    diagnosis: text from the history server or a log, used where the record is silent.
    """
    action = failed_action(record)
    if action is None:
        if record.get("status") == "KILLED":
            return failure(Code.KILLED_ELSEWHERE, "workflow", "the workflow was killed")
        return failure(Code.UNKNOWN, "workflow", diagnosis)
    step = _text(action, "name") or "workflow"
    code = _text(action, "errorCode")
    message = _text(action, "errorMessage")
    if action.get("status") == "KILLED" and not message and not code:
        return failure(Code.KILLED_ELSEWHERE, step, "the workflow was killed")
    if code == "EL_ERROR":
        return failure(Code.VARIABLE_UNKNOWN, step, message)
    if not message:
        told = diagnosis or "a task failed and neither the engine nor the history tells why"
        found = _by_text(told)
        return failure(found or Code.TASK_FAILED, step, told)
    found = _by_text(message)
    if found is None or found is Code.EXIT_CODE:
        found = _by_text(diagnosis) or found
    told = f"{message}: {diagnosis}" if diagnosis and diagnosis not in message else message
    return failure(found or Code.EXCEPTION, step, told)


def is_silent(record: Mapping[str, object]) -> bool:
    """Whether the record of a failed workflow does not tell the reason by itself."""
    action = failed_action(record)
    if action is None or action.get("status") == "KILLED":
        return False
    message = _text(action, "errorMessage")
    return not message or _by_text(message) is Code.EXIT_CODE


def gave_up(record: Mapping[str, object]) -> Mapping[str, object] | None:
    """The action of a suspended workflow that waits for a person, or None."""
    for action in _actions(record):
        if action.get("status") in {"START_MANUAL", "END_MANUAL"}:
            return action
    return None


def of_giving_up(action: Mapping[str, object]) -> Failure:
    """Why the engine could not start (or end) `action`."""
    step = _text(action, "name") or "workflow"
    message = _text(action, "errorMessage")
    found = _by_text(message)
    known = (Code.RESOURCES_UNREACHABLE, Code.ENGINE_REFUSED)
    code = found if found in known else Code.START_GAVE_UP
    return failure(code, step, message or "the engine gave up without a reason")


def failed_action(record: Mapping[str, object]) -> Mapping[str, object] | None:
    """The first action that went wrong; control nodes do not count."""
    for action in _actions(record):
        control = _text(action, "type").startswith(":")
        if not control and action.get("status") in {"ERROR", "FAILED", "KILLED"}:
            return action
    return None


def cause(log: str) -> str:
    """The most telling line of a program's log, else "".

    That is the last exception with a message; exceptions that only wrap others do not count.
    """
    silent = told = ""
    for line in log.splitlines():
        match = _CAUSE.search(line.strip())
        if match is None:
            continue
        found = match.group(1) or match.group(2)
        if _WRAPPER.match(found):
            continue
        if ": " in found:
            told = found
        else:
            silent = found
    return (told or silent)[:MOST_TEXT]


def _by_text(text: str) -> Code | None:
    return next((code for code, pattern in _TEXTS if pattern.search(text)), None)


def _actions(record: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    found = record.get("actions")
    return [a for a in found if isinstance(a, dict)] if isinstance(found, list | tuple) else []


def _text(action: Mapping[str, object], key: str) -> str:
    value = action.get(key)
    return value.strip() if isinstance(value, str) else ""
