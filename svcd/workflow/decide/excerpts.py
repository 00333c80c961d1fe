"""Reads the texts about a failed job: the line with the cause, and the program's own lines. Pure.

Note: one pass. A job prints its log, and its lines can have any length. So svcd searches for single
names near the beginning of a line. An expression for a whole line would try each beginning with
each end, for hours.

Source: Hadoop 3.5, Pig 0.18, Spark 4.2.0 `yarn.ApplicationMaster`; recorded failures of real jobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from svcd.model.frames import FRAME, FRAMEWORK

_MOST_SEARCHED: Final = 1000
"""Characters of a line in which svcd searches for an exception."""
_MOST_LINES: Final = 8000
"""Lines of a log that svcd searches, the last ones. A file of 64 KiB may have eight times as many,
and the search would hold the daemon."""
_MOST_LINE: Final = 4000
"""Characters of a line that svcd keeps: more than it quotes, so that no secret is cut in two."""
_NAME: Final = re.compile(r"\w[\w.]*")
_CLASS: Final = re.compile(r"\.\w*(?:Exception|Error)\b")
"""The end of a name with dots that is an exception."""
_LEVEL: Final = re.compile(r"\bERROR\b")
_PIG: Final = re.compile(r"\bERROR \d{4}: .")
_MOST_FRAMES: Final = 200
"""Lines of a stack in which svcd searches for a frame of a program."""
_WRAPPER: Final = re.compile(r"org\.apache\.oozie\.|java\.lang\.reflect\.")
_CONSEQUENCE: Final = re.compile(
    r"Job in state DEFINE instead of RUNNING|Intercepted System\.exit\("
    r"|Job (?:job_\w+ )?failed, hadoop does not return any error message"
)
"""Pig asks a job that it could not submit for its state, and has no words for its end; the
launcher stops the exit of a program."""
_SCRIPT_END: Final = re.compile(r"^Exit code of the Shell command -?[1-9]\d{0,9}$", re.MULTILINE)
_TRACEBACK: Final = "Traceback (most recent call last):"
_PY_FRAME: Final = re.compile(r' +File "([^"]{1,900})", line (\d{1,9})')
_PY_LIBRARY: Final = re.compile(r"<|/lib/python|/dist-packages/|/site-packages/|\.zip/")
_PY_ERROR: Final = re.compile(r"[A-Za-z_][\w.]{0,200}(?::|\Z)")
_PY_EXCEPTION: Final = re.compile(r"[A-Za-z_][\w.]{0,200}(?:Error|Exception|Interrupt)(?::|\Z)")
_NOISE: Final = re.compile(
    r"\s|\Z|SLF4J: |log4j:|Exit code of the Shell command|Details at logfile: |Picked up |Try ['`]"
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?:INFO|WARN|DEBUG)"
    r"|(?:\S{1,300}: ){0,2}(?:line \d{1,9}: )?\w{0,40}warning: ",
    re.IGNORECASE,
)
"""Lines of stderr that explain no end of a script."""
_TRACE: Final = re.compile(r"\++ ")
"""A shell with `set -x` writes so of each command."""
_FAULT: Final = re.compile(
    r"(?:\S{1,300}: )?(?:line \d{1,9}|\d{1,9}): .{0,900}?(?:\bnot found\Z|syntax error"
    r"|unexpected EOF|unbound variable|parameter not set|bad substitution|\d{1,9} Killed\b)",
    re.IGNORECASE,
)
"""The words of a shell on a fault of its script, or on the end of a command by a signal."""
_ERROR: Final = re.compile(
    r"\b(?:error|fatal|exception)\b[]:]|\b(?:cannot|can't|could not|unable to|fail(?:ed)? to"
    r"|no such|not found|does not exist|exists\Z|is a directory|denied|refused|not permitted"
    r"|no space left|unrecognized|\w{1,20} expected)\b|\bline \d{1,9}: ",
    re.IGNORECASE,
)
"""Words of programs on errors."""
_SIGNAL: Final = re.compile(
    r"(?:exit ?code(?: is)?|exit status|exited with status|failed with code|Shell command)"
    r"\W{1,3}(137|143)\b|\bline \d{1,9}: +\d{1,9} (Killed|Terminated)\b",
    re.IGNORECASE,
)
"""The words of YARN, Spark, Oozie, streaming and shells on a program that a signal ended."""
_FULL_EXECUTOR: Final = re.compile(r"\bExecutorLostFailure \(.{0,1000}?\bExit status: 143\b")
"""Spark starts executors with -XX:OnOutOfMemoryError='kill %p'; YARN's statuses are negative."""
_OF_CLUSTER: Final = re.compile(
    r"\bpreempted\b|killed by the ApplicationMaster|\bTimed out after\b", re.IGNORECASE
)
"""YARN and its masters sent the signal, and say why."""
_FAULTY: Final = 4
"""The rank of an exception and of a fault of a script, the highest one."""
_STAMP: Final = re.compile(r"\[\d{4}-\d\d-\d\d [\d:.]{8,16}\] ?")
_MEMORY: Final = re.compile(r"beyond the '?\w+'? memory limit")
_NOT_RUN: Final = "Exception from container-launch"
"""A first line without a cause."""
_EXIT_CODE: Final = re.compile(r"^Exit code: ((?!137|143)[1-9]\d{0,2})$", re.MULTILINE)
_LAST_WORDS: Final = "Last 4096 bytes of stderr :"
_CONTAINER_END: Final = "Container exited with a non-zero exit code"
"""YARN's words about a container that ended with an error; what its program wrote lies between."""
_EXCEEDED: Final = re.compile(r"exited with +exitCode: -10[34]\b")
_ENDED_ITSELF: Final = re.compile(r"exited with +exitCode: 0\b")
_NO_PROGRAM: Final = "Cannot run program"
_THREAD: Final = re.compile(r'Exception in thread "[^"]{1,200}" ')
_CALLING: Final = "An error occurred while calling "
"""Python says so of an exception of Java, which is in the next line."""
_CAUSED: Final = "Caused by: "
_ENDED: Final = re.compile(r"application_\d+_\d+ (?:FAILED|KILLED): ")
"""The words of image/spark/java/org/svcd/spark/SubmitSpark.java before YARN's diagnostics."""
_SQL: Final = "org.svcd.spark.RunSql$SqlFailure: "
"""The image's class for scripts in SQL; its message begins with the statement and the line."""
_STATEMENT: Final = re.compile(r"statement \d{1,9}, line \d{1,9}: ")
_POSITION: Final = re.compile(r"\bline \d{1,9}(?=,? pos )")
"""Spark counts from the first line of a statement, the message from that of the script."""
_THREW: Final = "User class threw exception: "
"""Spark's words before the exception of a program."""
NO_SESSION: Final = ", in which the program made no SparkSession on YARN"

_RECORD: Final = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.MULTILINE)
"""The beginning of a record in a log of Spark."""
_WAITED: Final = re.compile(
    r"ApplicationMaster: Uncaught exception: ?\n"
    r"(java\.util\.concurrent\.TimeoutException: Future timed out after \[\d{1,12} milliseconds\])"
)
"""The master waits for the session of the program."""
_PLACE: Final = re.compile(
    r"<file ([^<>\n]{1,300}?)(?:\.substituted)?, (line [1-9]\d{0,8}(?:, column \d{1,9})?)>"
)
_NOWHERE: Final = re.compile(r"<file [^<>\n]{1,300}, line 0, column 0> ?")
"""Pig's words when the part with the fault has no place of its own."""
_TOLD: Final = re.compile(r"[\d-]{10} [\d:,.]{8,12} \[\w{1,40}\] (?:INFO|WARN|DEBUG) ")
"""The beginning of a line of the log that is no error."""
_MOST_SAME: Final = 200
"""Characters that are compared; the engine cuts long messages."""
SUBPROCESS: Final = "subprocess failed with code"
"""Streaming says no more about the end of a mapper or reducer."""


def cause(log: str) -> str:
    """The line of a program's log with the cause of its failure; "" when there is none.

    This is the last exception with a message; exceptions that only wrap others, or follow from
    others, do not count. A line that ends in a colon continues in the next one. The first frame
    below it that is no framework's comes behind it.
    """
    without_text, with_text, place = "", "", 0
    lines = _lines(log)
    for number, line in enumerate(lines):
        stripped = line.strip()
        at = _begin(stripped[:_MOST_SEARCHED])
        if (
            at is None
            or _WRAPPER.match(stripped, at)
            or _CONSEQUENCE.search(stripped[:_MOST_SEARCHED])
        ):
            continue
        if _NO_PROGRAM in with_text and ": error=" in stripped[:_MOST_SEARCHED]:
            continue  # the cause of it names no program
        if stripped.endswith(":") and number + 1 < len(lines):
            stripped += " " + lines[number + 1].strip()
        found = stripped[at : at + _MOST_LINE]
        if ": " in found:
            with_text, place = found, number + 1
        elif not with_text:
            without_text, place = found, number + 1
    found = with_text or without_text
    return found + _place(lines, place) if found else ""


def python_cause(log: str) -> str:
    """The error of the last traceback of Python, and the line of the program; "" without one."""
    return next((text for _, text in reversed(list(_tracebacks(_lines(log))))), "")


def script_cause(log: str) -> str:
    """The line of a script's stderr that explains its end; "" when there is none.

    This is the last one of the clearest kind: an exception of Python or Java or a fault of the
    script; another error; any line; a command without words. A script goes on after errors, so the
    last one ended it. But without a program or a variable of its own it fails over and over.
    """
    lines = _lines(log)
    errors = dict(_tracebacks(lines))
    best = place = 0
    for number, line in enumerate(lines):
        rank = _FAULTY if number in errors else _rank(line[:_MOST_SEARCHED].rstrip())
        if rank and rank >= best:
            best, place = rank, number
    if not best:
        return ""
    return errors.get(place) or cause("\n".join(lines[place:])) or lines[place].strip()[:_MOST_LINE]


def task_cause(diagnostics: str) -> str:
    """The cause in the diagnostics of a task's attempt."""
    text = _STAMP.sub("", diagnostics)
    lines = text.splitlines() or [""]
    if _NOT_RUN in lines[0]:
        return cause(text) or _own_end(text) or " ".join(text.split())[:_MOST_LINE]
    return (cause(text) or lines[0].strip()[:_MOST_LINE]).removeprefix("Error: ")


def _own_end(text: str) -> str:
    """The last words and the exit code of a program that ended its container by itself."""
    ended = _EXIT_CODE.search(text[:_MOST_LINE])
    _, begins, rest = text.partition(_LAST_WORDS)
    said = script_cause(rest.partition(_CONTAINER_END)[0]) if begins else ""
    return f"{said} (exit code {ended[1]})" if ended and said else ""


def yarn_cause(diagnostics: str) -> str:
    """The sentence of YARN's diagnostics that says why an application ended."""
    if _NOT_RUN in diagnostics:  # with the last words of the program
        words = _STAMP.sub("", diagnostics)
        words_cause = cause(words) or _own_end(words)
        if words_cause:
            return words_cause
    text = " ".join(_STAMP.sub("", diagnostics).split())
    memory = _MEMORY.search(text[:_MOST_LINE])
    if memory is not None:
        begin = text.rfind("Container [", 0, memory.start())
        end = text.find(" Killing container", memory.end())
        return text[max(begin, 0) : end if end >= 0 else memory.end()][:_MOST_LINE]
    before, begins, rest = text.partition("Failing this attempt.Diagnostics: ")
    if _EXCEEDED.search(before[:_MOST_LINE]):  # YARN drops the head of a long dump
        return f"{before.strip()[:_MOST_LINE]}: its container was beyond the YARN memory limit"
    said = (rest if begins else text).partition("For more detailed output")[0][:_MOST_LINE].strip()
    if said or not _ENDED_ITSELF.search(before[:_MOST_LINE]):
        return said
    return f"{before.strip()[:_MOST_LINE]}: a program of the job ended its process (System.exit)"


def full_executor(reason: str) -> str:
    """`reason` of an executor of Spark that ended itself for lack of memory; "" for others."""
    if not _FULL_EXECUTOR.search(reason[:_MOST_LINE]):
        return ""
    return f"{yarn_cause(reason)}: an executor ends itself so when its heap is full"


def signalled(reason: str) -> str:
    """`reason` with the meaning of the signal that ended a program; "" when none did."""
    line = reason[:_MOST_LINE]
    signal = _SIGNAL.search(line)
    if signal is None or _OF_CLUSTER.search(line):
        return ""
    if is_exception(reason) and not any(word in line for word in ("Container", SUBPROCESS)):
        return ""  # the program's own exception
    if signal[1] == "143" or (signal[2] or "").lower() == "terminated":
        sent = "signal 15 (TERM) ended it: a person or a service of its machine sent it"
    else:
        sent = (
            "signal 9 (KILL) ended it: a person sent it, or the kernel of its machine did because"
            " the machine had no memory left"
        )
    return f"{yarn_cause(reason)}: {sent}"


def spoken(message: str) -> str:
    """The engine's words on a failed action, without those that only say that it failed."""
    _, begins, rest = message.partition(_THREW)
    if not begins:
        ended = _ENDED.match(message)
        return yarn_cause(message[ended.end() :]) if ended else message.partition("\n\tat ")[0]
    return (rest.strip().splitlines() or [""])[0].removeprefix(_SQL)


def is_same(message: str, line: str) -> bool:
    """Whether the engine's words and a line of a log tell the same."""
    words, has_place, _ = line.rpartition(" (")
    return message[:_MOST_SAME] in line or (words if has_place else line)[:_MOST_SAME] in message


def joined(message: str, line: str) -> str:
    """The engine's words and a line of a log, or only one of them when it tells the other."""
    if line in message or message in line:
        return max(line, message, key=len)
    statement = _STATEMENT.match(message)
    if statement is not None:
        words = _POSITION.sub("", message[statement.end() : _MOST_LINE])[:_MOST_SAME]
        if words in _POSITION.sub("", line):
            return message
    return f"{message}: {line}"


def thrown_cause(log: str) -> str:
    """The exception of a driver's program alone: other threads write theirs while it ends."""
    _, begins, rest = log.partition(f"{_THREW}\n")
    return cause(_RECORD.split(rest, maxsplit=1)[0] if begins else log)


def waited(log: str) -> str:
    """The words of a master whose wait for the program's session ended; "" for others."""
    found = _WAITED.search(log)
    return "" if found is None else f"{found[1]}{NO_SESSION}"


def with_pig_place(reasons: Sequence[str], logs: Iterable[str]) -> Sequence[str]:
    """The reasons of a Pig job, each with the place in the script, if a launcher's log has it.

    Pig writes the place of a fault only into the outer one of two exceptions, when the inner one
    says what is wrong. It stops at the first fault, so the last place belongs to it.
    """
    if all(_PLACE.search(reason) for reason in reasons):
        return reasons
    place = _last(logs)
    return [
        reason if not place or _PLACE.search(reason) else f"{_NOWHERE.sub('', reason)} ({place})"
        for reason in reasons
    ]


def _last(logs: Iterable[str]) -> str:
    """The last place of the first log that names one outside of its warnings; "" without one."""
    for log in logs:
        places = [
            ", ".join(place.groups())
            for line in log.splitlines()
            if "<file " in line and not _TOLD.match(line)
            for place in _PLACE.finditer(line)
        ]
        if places:
            return places[-1]
    return ""


def is_exception(line: str) -> bool:
    """Whether the line is an exception of Java or Python."""
    head = line[:_MOST_SEARCHED]
    return next(_classes(head), None) == 0 or _PY_EXCEPTION.match(head) is not None


def script_end(log: str) -> str:
    """The launcher's line on a script that ended with another code than 0, else ""."""
    found = _SCRIPT_END.search(log)
    return "" if found is None else found[0]


def _lines(log: str) -> Sequence[str]:
    return log.splitlines()[-_MOST_LINES:]


def _rank(line: str) -> int:
    """The clearness with which a line of stderr explains the end of a script; 0: not at all."""
    if _NOISE.match(line):
        return 0
    if _TRACE.match(line):
        return 1
    if _FAULT.match(line) or _begin(line) is not None:
        return _FAULTY
    return 3 if _ERROR.search(line) else 2


def _tracebacks(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The error of each traceback of Python: the index of its line, its text, and its place."""
    place = ""
    within = False
    for number, line in enumerate(lines):
        frame = _PY_FRAME.match(line[:_MOST_SEARCHED])
        if line.startswith(_TRACEBACK):
            within, place = True, ""
        elif frame is not None:
            within = True
            if not place or not _PY_LIBRARY.search(frame[1]):
                place = f"{frame[1].rpartition('/')[2]}, line {frame[2]}"
        elif within and line and not line[0].isspace():
            within = False
            if _PY_ERROR.match(line[:_MOST_SEARCHED]):
                if _CALLING in line[:_MOST_SEARCHED] and number + 1 < len(lines):
                    line = _deeper(lines, number + 1).removeprefix(": ")
                yield number, line.strip()[:_MOST_LINE] + (f" ({place})" if place else "")
            place = ""


def _deeper(lines: Sequence[str], number: int) -> str:
    """Line `number`, or the cause below it when it only says that a task failed to write."""
    if "[TASK_WRITE_FAILED]" in lines[number][:_MOST_SEARCHED]:
        for line in lines[number + 1 : number + _MOST_FRAMES]:
            if line.startswith(_CAUSED):
                return line.removeprefix(_CAUSED)
    return lines[number]


def _place(lines: Sequence[str], number: int) -> str:
    """The first frame of a program in the stack that begins with line `number`, in brackets."""
    for line in lines[number : number + _MOST_FRAMES]:
        if FRAMEWORK.match(line):
            continue
        frame = FRAME.match(line)
        return "" if frame is None else f" ({frame[1]})"
    return ""


def _classes(line: str) -> Iterator[int]:
    """The index of each exception's class in `line`."""
    return (name.start() for name in _NAME.finditer(line) if _CLASS.search(name[0]))


def _begin(line: str) -> int | None:
    """The index in `line` of its exception or of Pig's numbered error; None without one."""
    classes = list(_classes(line))
    if classes:
        before = line[: classes[0]]
        if before in (_CAUSED, "Error: ") or _THREAD.fullmatch(before):
            return classes[0]
        levels = [found.end() for found in _LEVEL.finditer(line, 0, classes[-1])]
        if levels:
            return next(at for at in classes if at >= levels[-1])
        if classes[0] == 0:
            return 0
    numbered = _PIG.search(line)
    return None if numbered is None else numbered.start()
