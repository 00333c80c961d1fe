"""Reads a program's log: the line with the cause of its failure, and the program's own lines. Pure.

Note: one pass. A job prints its log, and its lines can have any length. So svcd searches for single
names near the beginning of a line. An expression for a whole line would try each beginning with
each end, for hours.
"""

from __future__ import annotations

import re
from typing import Final

from svcd.workflow.decide.failures import MOST_TEXT

_MOST_SEARCHED: Final = 1000
"""Characters of a line in which svcd searches for an exception."""
_CLASS: Final = re.compile(r"(?<!\w)(?:\w+\.)+\w*(?:Exception|Error)\b")
_LEVEL: Final = re.compile(r"\bERROR\b")
_PIG: Final = re.compile(r"\bERROR \d{4}: .")
_WRAPPER: Final = re.compile(r"org\.apache\.oozie\.|java\.lang\.reflect\.")
_CONSEQUENCE: Final = "Job in state DEFINE instead of RUNNING"
"""Pig asks a job that it could not submit for its state; the reason is in the text before."""
_SCRIPT_END: Final = re.compile(rb"^Exit code of the Shell command -?[1-9]\d{0,9}$", re.MULTILINE)
_BEGINNINGS: Final = (
    b">>> Invoking Pig command line now >>>\n",
    b">>> Invoking Shell command line now >>\n",
    b">>> Invoking Main class now >>>\n",
)
"""Lines of the engine's launcher before the program's output, the last one first."""


def cause(log: str) -> str:
    """The line of a program's log with the cause of its failure; "" when there is none.

    This is the last exception with a message; exceptions that only wrap others, or follow from
    others, do not count. A line that ends in a colon continues in the next one.
    """
    without_text = with_text = ""
    lines = log.splitlines()
    for number, line in enumerate(lines):
        stripped = line.strip()
        at = _begin(stripped[:_MOST_SEARCHED])
        if at is None or _WRAPPER.match(stripped, at) or _CONSEQUENCE in stripped[:_MOST_SEARCHED]:
            continue
        if stripped.endswith(":") and number + 1 < len(lines):
            stripped += " " + lines[number + 1].strip()
        found = stripped[at : at + MOST_TEXT]
        if ": " in found:
            with_text = found
        else:
            without_text = found
    return with_text or without_text


def script_end(log: bytes) -> str:
    """The launcher's line on a script that ended with another code than 0, else ""."""
    found = _SCRIPT_END.search(log)
    return "" if found is None else found[0].decode()


def own_words(log: bytes) -> bytes:
    """The output of a program without the lines that its launcher printed before."""
    for line in _BEGINNINGS:
        _, found, rest = log.partition(line)
        if found:
            return rest
    return log


def _begin(line: str) -> int | None:
    """The index in `line` of its exception or of Pig's numbered error; None without one."""
    classes = [found.start() for found in _CLASS.finditer(line)]
    if classes:
        if line[: classes[0]] in ("Caused by: ", "Error: "):
            return classes[0]
        levels = [found.end() for found in _LEVEL.finditer(line, 0, classes[-1])]
        if levels:
            return next(at for at in classes if at >= levels[-1])
        if classes[0] == 0:
            return 0
    numbered = _PIG.search(line)
    return None if numbered is None else numbered.start()
