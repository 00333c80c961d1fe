"""The lines that divide the log of a job execution into its files. Pure.

svcd writes `==> title <==` before a part of a file. The titles have few forms: the engine, a file
of an application or of a task's attempt, and the status of the execution. Other lines with arrows
(`head a b` prints `==> a <==`) are words of programs.

A program cannot forge a title: svcd writes such a line of a file with a space before it.
"""

from __future__ import annotations

import re
from typing import Final

ENGINE: Final = "engine"
"""The title of the workflow engine's own log."""
PROGRAMS: Final = "programs"
"""The title of the reason why the output of programs is missing."""
_TITLE: Final = (
    r"==> ((?:[A-Za-z0-9_.-]+ )?(?:application|attempt)_[0-9a-z_]+ (?:stdout|stderr|syslog)"
    rf"|{ENGINE}|{PROGRAMS}|job execution [0-9A-Za-z-]+: [A-Za-z_-]+) <=="
)
TITLE: Final = re.compile(rf"{_TITLE}\n?\Z")
"""A line, with or without its end; the first group is the title."""
_TITLES: Final = re.compile(rf"^{_TITLE}$", re.MULTILINE)
_SPACED: Final = re.compile(rf"^(?={_TITLE}$)", re.MULTILINE)


def without_titles(text: str) -> str:
    """Whole lines of a file, none of which is a title."""
    return _SPACED.sub(" ", text)


def last_title(text: str) -> str:
    """The title of the file to which the last line of a log belongs, or ""."""
    titles: list[str] = _TITLES.findall(text)
    return titles[-1] if titles else ""
