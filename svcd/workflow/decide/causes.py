"""Finds the cause of a failed execution: one table, and one reader for all sources. Pure.

A row of the table `CAUSES` has the pattern of a text, its code, and what a failure quotes of it.
The table `SOURCES` says in which texts svcd searches, and how. The codes and their advice are in
`svcd.model.failures`.

Note: the order. A failed task knows most about a failure, then the program that the engine started.
The engine and YARN repeat their texts, or know only that something ended. Of the lines that svcd
finds, the first one wins that a code of the table explains; else the first one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final

from attrs import frozen

from svcd.model.engine_record import Action, Record
from svcd.model.failures import Code
from svcd.model.job import Execution, Failure
from svcd.model.secret import Secret
from svcd.model.template import ConfigValue
from svcd.workflow.decide import excerpts
from svcd.workflow.decide.evidence import Ended, Evidence
from svcd.workflow.decide.failures import failure
from svcd.workflow.decide.job_configs import shown
from svcd.workflow.decide.masking import masked_text

_MOST_READ: Final = 8192
"""Characters of a reason that svcd searches: a hostile engine may send very many."""

_VAGUE: Final = re.compile(
    r"Unknown hadoop job|User application exited with|^Exception from container-launch"
)
"""Oozie finds no history of the job: the fault kept the job from writing one. Or a program of Spark
ended, also before it had a session, and its output has the reason."""
NOTHING: Final = Evidence()
OF_YARN: Final = (Code.OUT_OF_MEMORY, Code.KILLED_ELSEWHERE, Code.WORKER_LOST)
"""Reasons for which YARN ends an application."""

_UNEXPLAINED: Final = (Code.EXCEPTION, Code.EXIT_CODE, Code.TASK_FAILED)
"""Reasons that a signal may explain."""

_REFUSED: Final = re.compile(
    r"to (?:unknown|non-leaf) queue: (\S{1,1000})"
    r"|type=\[memory-mb\], Requested resource=<memory:(\d{1,19}),"
    r"|type=\[vcores\], Requested resource=<memory:\d{1,19}, vCores:(\d{1,19})"
)
"""YARN's refusal of a value of a job: the queue, the MiB or the cores of a container."""
_NO_CONFIGS: Final[Mapping[str, ConfigValue]] = {}


def _placed(text: str, configs: Mapping[str, ConfigValue]) -> str:
    """YARN's refusal of a value, with the place of the value in the configurations of the job."""
    refused = _REFUSED.search(text[:_MOST_READ])
    value = next((group for group in refused.groups() if group), None) if refused else None
    names = [name for name, given in configs.items() if str(given).strip() == value]
    places = ", ".join(f"$.job_configs.configs[{shown(name)}]" for name in names)
    return f"{places}: {text}" if places else text


@frozen
class Cause:
    """A row of the table. quote: what a failure quotes of the text; None: the whole of it."""

    code: Code
    pattern: re.Pattern[str]
    quote: Callable[[str, Mapping[str, ConfigValue]], str] | None = None


CAUSES: Final[Sequence[Cause]] = (
    # the words of image/java/org/svcd/objstore/ObjStoreException.java
    Cause(Code.OBJECT_STORE_CREDENTIALS, re.compile(r"\bobjstore: UNAUTHORIZED: ")),
    Cause(Code.JOB_CREDENTIAL_EXPIRED, re.compile(r"\bobjstore: EXPIRED: ")),
    Cause(Code.OBJECT_STORE_FORBIDDEN, re.compile(r"\bobjstore: FORBIDDEN: ")),
    Cause(Code.CONTAINER_MISSING, re.compile(r"\bobjstore: NOT_FOUND: the container ")),
    Cause(Code.INPUT_MISSING, re.compile(r"\bobjstore: NOT_FOUND: ")),
    Cause(Code.OBJECT_STORE_UNAVAILABLE, re.compile(r"\bobjstore: (?:UNREACHABLE|SERVER_ERROR): ")),
    Cause(
        Code.OBJECT_STORE,
        re.compile(r"\bobjstore: [A-Z_]+: |ObjStoreException|No FileSystem for scheme \"?objstore"),
    ),
    Cause(
        Code.VARIABLE_UNKNOWN,
        re.compile(
            # the words of image/spark/java/org/svcd/spark/RunSql.java, and of Pig
            r"^statement \d+, line \d+: the variable \$\{"
            r"|ParameterSubstitutionException: Undefined parameter : "
        ),
    ),
    Cause(
        Code.SCHEME_UNKNOWN, re.compile(r"No FileSystem for scheme|UnsupportedFileSystemException")
    ),
    Cause(
        Code.INPUT_MISSING,
        re.compile(
            r"Input [Pp](?:ath|attern) .{0,1000}(?:does not exist|matches 0 files)"
            r"|\[PATH_NOT_FOUND\]|^\S+: Path does not exist: "
        ),
    ),
    Cause(
        Code.OUTPUT_EXISTS,
        re.compile(
            r"Output directory .{0,1000} already exists|(?<!java\.nio\.file\.)FileAlreadyExists"
            r"|`[^'`]{1,1000}': File exists"
            r"|\[PATH_ALREADY_EXISTS\]|location to a non-empty directory "
        ),
    ),
    Cause(Code.JAVA_TOO_NEW, re.compile(r"UnsupportedClassVersionError")),
    Cause(
        Code.NO_SPARK_SESSION,
        re.compile(f"User did not initialize spark context!|{re.escape(excerpts.NO_SESSION)}"),
    ),
    Cause(
        Code.CLASS_MISSING,
        re.compile(
            r"ClassNotFoundException|NoClassDefFoundError|\bClass \w+(?:\.[\w$]+)+ not found"
            r"|ERROR 1070: Could not resolve|\[CANNOT_LOAD_FUNCTION_CLASS\]"
        ),
    ),
    Cause(
        Code.MODULE_MISSING,
        re.compile(
            r"ModuleNotFoundError|: command not found|: \d{1,9}: \S{1,300}: not found$"
            r"|\bline \d{1,9}: \S{1,300}: not found$|\benv: .{0,1000}: No such file"
            r"|Cannot run program .{0,1000}[:,] No such file|bad interpreter"
        ),
    ),
    Cause(
        Code.SYNTAX_ERROR,
        re.compile(
            # Pig numbers with 1002, 1066, 1071 and 1075 what goes wrong while a script runs
            r"\bERROR 1(?!002|066|071|075)\d{3}: |\b(?:Syntax|Indentation|Tab)Error: "
            r"|\bline \d{1,9}: syntax error[: ]|: unexpected EOF while looking for "
            r"|: Syntax error: |\[(?:PARSE_|UNRESOLVED_|TABLE_OR_VIEW_NOT_FOUND)[A-Z_.]*\]"
        ),
    ),
    Cause(
        Code.OUT_OF_MEMORY,
        re.compile(
            r"OutOfMemoryError|beyond the '?\w+'? memory limit|\bMemoryError\b"
            r"|for exceeding (?:physical|virtual) memory limits"
            r"|Cannot allocate memory|GC overhead limit exceeded"
            r"|^(?:Error: )?(?:Java heap space|Metaspace|Direct buffer memory"
            r"|Cannot reserve \d+ bytes of direct buffer memory|Requested array size exceeds"
            r"|unable to create (?:new )?native thread)"
        ),
    ),
    Cause(
        Code.FILE_SYSTEM,
        re.compile(
            r"There are 0 datanode\(s\) running|Failed to find datanode|Could not obtain block"
            r"|BlockMissingException|All datanodes .{0,1000} are bad|not a SequenceFile"
            r"|Name node is in safe mode(?![\s\S]*Resources are low on NN)"
        ),
    ),
    Cause(
        Code.NO_SPACE,
        re.compile(
            r"No space left on device|DiskErrorException|any valid local directory"
            r"|could only be written to 0 of|Resources are low on NN|QuotaExceededException"
            r"|[Qq]uota of \S+ is exceeded"
        ),
    ),
    Cause(
        Code.PERMISSION_DENIED,
        re.compile(r"AccessControlException|[Pp]ermission denied|AccessDenied|PermissionError"),
    ),
    Cause(
        Code.WORKER_LOST, re.compile(r"released on a \*lost\* node|exit(?:Code:| status) -100\b")
    ),
    Cause(Code.KILLED_ELSEWHERE, re.compile(r"was killed by user |Application killed by user")),
    Cause(
        Code.DOCUMENT_REFUSED,
        re.compile(
            r"Invalid resource request|is above the max threshold \(\d+ MB\) of this cluster"
            r"|submitted by user .{0,1000} to (?:unknown|non-leaf) queue: "
        ),
        _placed,
    ),
    Cause(
        Code.RESOURCES_UNREACHABLE,
        re.compile(
            # the engine's word for either; ours; a job's own word, by the ports of the two
            r"^JA006|^JA009|^the resource manager does not answer: "
            r"|Call From \S+ to \S+:(?:8020|803[0-3]) failed on (?:connection|socket)"
        ),
    ),
    Cause(Code.FILE_MISSING, re.compile(r"^JA008|File does not exist|FileNotFound|No such file")),
    Cause(
        Code.EXIT_CODE,
        re.compile(
            r"exit code \[\d+\]|^Exit code of the Shell command"
            r"|\(exit code [1-9]\d{0,2}\)$|exited with exitCode: 0\b"
        ),
    ),
)
"""The table of causes. The first row whose pattern matches a text explains it."""
SIGNALS: Final[Sequence[tuple[Code, Callable[[str], str]]]] = (
    (Code.OUT_OF_MEMORY, excerpts.full_executor),
    (Code.KILLED_ELSEWHERE, excerpts.signalled),
)
"""Codes of ends by a signal, and the reader of its meaning. svcd asks them last."""


@frozen
class Source:
    """A row of the sources: some texts of the evidence, and the search for the line in each."""

    texts: Callable[[Evidence], Sequence[str]]
    search: Callable[[str], str]


def _launcher(*names: str) -> Callable[[Evidence], Sequence[str]]:
    return lambda evidence: [evidence.of_launcher(name) for name in names]


def _drivers(name: str) -> Callable[[Evidence], Sequence[str]]:
    return lambda evidence: evidence.of_drivers(name)


def _streamed(evidence: Evidence) -> Sequence[str]:
    """The stderr of streaming programs whose end YARN does not explain."""
    is_streaming = any(excerpts.SUBPROCESS in attempt for attempt in evidence.attempts[:1])
    return evidence.of_tasks("stderr") if is_streaming else ()


OF_SHELL: Final = (
    Source(_launcher("stderr"), excerpts.script_cause),
    Source(_launcher("stdout"), excerpts.python_cause),
)
SOURCES: Final = (
    Source(_drivers("stderr"), excerpts.waited),
    Source(_drivers("stdout"), excerpts.python_cause),
    Source(_drivers("stderr"), excerpts.python_cause),
    Source(_drivers("stderr"), excerpts.thrown_cause),
    Source(_streamed, excerpts.script_cause),
    Source(lambda evidence: evidence.attempts[:1], excerpts.task_cause),
    Source(lambda evidence: evidence.of_masters("syslog"), excerpts.cause),
    Source(_launcher("stdout", "stderr", "syslog"), excerpts.cause),
)
"""The texts that svcd searches, in this order; for a script it searches those of `OF_SHELL`."""


def lines_of(action: Action, evidence: Evidence) -> Generator[None, None, Sequence[str]]:
    """The lines about the failure of `action`, the most telling line first.

    In steps of some milliseconds each, one a text: the programs of tenants write them.
    """
    lines: list[str] = []
    for source in OF_SHELL if action.type == "shell" else SOURCES:
        for text in source.texts(evidence):
            line = source.search(text)
            yield
            lines += [line] if line else []
    if action.type == "shell" and not lines:
        lines += filter(None, [excerpts.script_end(evidence.of_launcher("stdout"))])
    if action.type == "pig":
        return excerpts.with_pig_place(lines, _launcher("stdout", "stderr")(evidence))
    return lines


def configs_of(row: Execution) -> Mapping[str, ConfigValue]:
    """The configurations that the caller gave an execution."""
    return _NO_CONFIGS if row.job_configs is None else row.job_configs.configs


def judging(
    record: Record,
    evidence: Evidence = NOTHING,
    secrets: Sequence[Secret] = (),
    configs: Mapping[str, ConfigValue] = _NO_CONFIGS,
) -> Generator[None, None, Failure]:
    """The failure in the record of a workflow that ended in `KILLED` or `FAILED`.

    evidence: the other texts about the job. secrets: the literal secrets of the execution. configs:
    of its job_configs. It has steps of some milliseconds each.
    """
    action = record.failed
    if action is None:
        if record.status == "KILLED":
            return failure(Code.KILLED_ELSEWHERE, "workflow", "the workflow was killed")
        return failure(Code.UNKNOWN, "workflow", "")
    step, message = action.step, action.error_message
    if action.status == "KILLED" and not message and not action.error_code:
        return failure(Code.KILLED_ELSEWHERE, step, "the workflow was killed")
    if action.error_code == "EL_ERROR":
        return failure(Code.VARIABLE_UNKNOWN, step, message)
    code, reason = yield from _judged(action, evidence)
    yield
    if code in _UNEXPLAINED:
        meanings = ((signal, meaning(reason)) for signal, meaning in SIGNALS)
        code, reason = next((told for told in meanings if told[1]), (code, reason))
    reason = _quoted(code, reason, configs)
    return failure(code, step, masked_text(reason[:_MOST_READ], secrets))


def _judged(action: Action, evidence: Evidence) -> Generator[None, None, tuple[Code, str]]:
    """The code of a failed action, and the line that explains it best."""
    message = excerpts.spoken(action.error_message)
    lines = yield from lines_of(action, evidence)
    line, of_line = yield from _best(lines)
    of_message = by_text(message)
    yield
    is_vague = not message or of_message is Code.EXIT_CODE or _VAGUE.search(message[:_MOST_READ])
    if not is_vague and (of_message is not of_line or not excerpts.is_same(message, line)):
        return of_message or of_line or Code.EXCEPTION, excerpts.joined(message, line)
    if line:
        end = None if of_line else (yield from _by_ends(evidence))
        if end is not None:
            return end
        if of_line is None and not excerpts.is_exception(line):
            of_line = of_message or Code.TASK_FAILED
        return of_line or Code.EXCEPTION, line
    ends = [
        *evidence.jobs,
        *(excerpts.yarn_cause(application.text) for application in _dead(evidence)),
    ]
    if ends:
        reason, code = yield from _best(ends)
        return code or of_message or Code.TASK_FAILED, reason
    if evidence.silent:
        reason = f"the resource manager does not answer: {evidence.silent}"
        return Code.RESOURCES_UNREACHABLE, reason
    if not message:
        reason = "a task failed, and neither the engine nor the job history has a reason"
        return Code.TASK_FAILED, reason
    return of_message or Code.EXCEPTION, message


def _best(lines: Sequence[str]) -> Generator[None, None, tuple[str, Code | None]]:
    """The first line that a code explains or that is an exception, else the first one, else ""."""
    first: tuple[str, Code | None] = ("", None)
    for line in lines:
        code = by_text(line)
        yield
        if code is not None or excerpts.is_exception(line):
            return line, code
        first = first if first[0] else (line, None)
    return first


def _dead(evidence: Evidence) -> Sequence[Ended]:
    """The applications that YARN ended, the children first."""
    dead = [
        application
        for application in evidence.applications
        if application.state in ("FAILED", "KILLED")
    ]
    return sorted(dead, key=lambda application: application.is_launcher)


def _by_ends(evidence: Evidence) -> Generator[None, None, tuple[Code, str] | None]:
    """The reason for which YARN ended an application. It outranks the program's own words."""
    for application in _dead(evidence):
        reason = excerpts.yarn_cause(application.text)
        code = by_text(reason)
        yield
        if code in OF_YARN:
            return code, reason
    return None


def of_giving_up(action: Action, configs: Mapping[str, ConfigValue] = _NO_CONFIGS) -> Failure:
    """The failure when the engine could not start (or end) `action`."""
    step, message = action.step, action.error_message
    told = by_text(message)
    known = (Code.RESOURCES_UNREACHABLE, Code.FILE_SYSTEM, Code.NO_SPACE, Code.DOCUMENT_REFUSED)
    code = told if told in known else Code.START_GAVE_UP
    reason = _quoted(code, message, configs)
    return failure(code, step, reason or "the engine gave up without a reason")


def by_text(text: str) -> Code | None:
    """The code that the words of a text explain."""
    head = text[:_MOST_READ]
    return next((cause.code for cause in CAUSES if cause.pattern.search(head)), None)


def _quoted(code: Code, reason: str, configs: Mapping[str, ConfigValue]) -> str:
    """The part of the reason that a failure with this code quotes."""
    quote = next((cause.quote for cause in CAUSES if cause.code is code and cause.quote), None)
    return reason if quote is None else quote(reason, configs)
