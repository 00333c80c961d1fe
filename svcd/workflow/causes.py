"""The line of a program's log that tells why it failed. Pure.

Note: one pass. The log is what a job has printed, and its lines are as long as it likes. So names
are looked for near the beginning of a line, each by itself: an expression for a whole line would
try each beginning with each end, for hours.
"""

from __future__ import annotations

import re
from typing import Final

from svcd.workflow.failures import MOST_TEXT

_MOST_LOOKED: Final = 1000
"""Characters of a line in which its exception is looked for."""
_CLASS: Final = re.compile(r"(?<!\w)(?:\w+\.)+\w*(?:Exception|Error)\b")
_LEVEL: Final = re.compile(r"\bERROR\b")
_PIG: Final = re.compile(r"\bERROR \d{4}: .")
_WRAPPER: Final = re.compile(r"org\.apache\.oozie\.|java\.lang\.reflect\.")


def cause(log: str) -> str:
    """The most telling line of a program's log, else "".

    That is the last exception with a message; exceptions that only wrap others do not count.
    """
    silent = told = ""
    for line in log.splitlines():
        stripped = line.strip()
        at = _begin(stripped[:_MOST_LOOKED])
        if at is None or _WRAPPER.match(stripped, at):
            continue
        found = stripped[at : at + MOST_TEXT]
        if ": " in found:
            told = found
        else:
            silent = found
    return told or silent


def _begin(line: str) -> int | None:
    """Where the exception, or the numbered error of Pig, begins that `line` is about."""
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
