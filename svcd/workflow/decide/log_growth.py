"""Appends to the kept log of an execution what the engine and YARN answer now. Pure.

The text grows as `tail -f` of several files shows them: each part begins with the title of its
file, when that is another one than before; a line of a file that looks like a title gets a space
before it (`model.log_title`). While the job runs, only whole lines are appended, so
that no credential is cut in two and escapes the masking.

Note: windows. The peers answer the last part of a file. svcd looks for the last characters that it
has seen, and appends what follows them. When they are not there (the engine was restarted, or the
file has grown by more than a window), svcd says so and appends the whole window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import evolve

from svcd.model.execution_log import ExecutionLog, LogSource
from svcd.model.job import Execution
from svcd.model.log_title import without_titles

GAP: Final = (
    "[svcd: this file was begun anew, or grew faster than svcd reads it: some lines may be missing"
    " here, or come twice]"
)
MOST_SOURCES: Final = 100
"""Files of one execution; those that appear later are left out."""
_TAIL: Final = 512
"""Characters by which svcd finds the place where it stopped."""


def grown(
    log: ExecutionLog, parts: Sequence[tuple[str, str]], whole: bool
) -> tuple[ExecutionLog, str]:
    """The new state, and the text to append. parts: titles and masked texts of the files now.

    whole: append an unfinished last line too. `end` and `version` of the state stay.
    """
    sources = {each.title: each for each in log.sources}
    last, made = log.last, ""
    for title, found in parts:
        text = found if whole else found[: found.rfind("\n") + 1]
        known = sources.get(title)
        if known is None and len(sources) >= MOST_SOURCES:
            continue
        new, has_gap = (text, False) if known is None else _newer(known, text)
        if not new:
            continue
        if title != last or has_gap:
            made += f"==> {title} <==\n"
        if has_gap:
            made += GAP + "\n"
        made += without_titles(new if new.endswith("\n") else new + "\n")
        before = 0 if known is None or has_gap else known.seen
        tail = new if known is None or has_gap else known.tail + new
        sources[title] = LogSource(title=title, seen=before + len(new), tail=tail[-_TAIL:])
        last = title
    return evolve(log, sources=tuple(sources.values()), last=last), made


def _newer(known: LogSource, text: str) -> tuple[str, bool]:
    """The part of `text` after the characters seen so far, and whether some may be missing."""
    if text[known.seen - len(known.tail) : known.seen] == known.tail:
        return text[known.seen :], False
    at = text.rfind(known.tail)
    return (text, True) if at < 0 else (text[at + len(known.tail) :], False)


def closing(row: Execution, missing: str) -> str:
    """The last lines of a log. missing: why the end of the files could not be read, or ""."""
    text = f"==> job execution {row.id}: {row.status.value} <==\n"
    if row.failure is not None:
        text += f"{row.failure.code} in {row.failure.step}: {row.failure.text}\n"
    if missing:
        text += f"[svcd: the end of the log could not be read: {missing}]\n"
    return text
