"""Appends to the kept log of an execution what the engine and YARN answer now. Pure.

The text grows as `tail -f` of several files shows them: each part begins with the title of its
file, when that is another one than before; a line of a file that looks like a title gets a space
before it (`model.log_title`). A carriage return within a line ends it, so a progress bar is shown
while it moves. While the job runs, only whole lines are appended.

Note: gaps. svcd reads the beginning and the end of a file, and knows how many of its bytes it has
appended. When the end begins behind these, one line tells the place and the size of the gap, and
the text goes on with a whole line in the last half of that end.

Note: long lines. An unfinished line of MOST_LINE bytes is appended up to the bytes that may begin
a credential, and marked.

Note: masking. The names and the beginnings of credentials may be in text that was appended before.
So svcd masks the new bytes together with the lines before them, and once more without the new ones:
the text is what differs. Texts of which a credential is whole only now differ from there on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from attrs import evolve, frozen

from svcd.model.execution_log import ExecutionLog, LogSource, ReadFile, missing
from svcd.model.job import Execution
from svcd.model.log_title import without_titles
from svcd.model.redaction import all_forms, hidden, without_open_value
from svcd.model.secret import Secret
from svcd.workflow.decide.masking import masked_end, masked_text

ANEW: Final = "[svcd: this file was begun anew: some lines may be missing here, or come twice]"
CUT: Final = "[svcd: this line has no end yet: svcd cuts it here]"
_WHY: Final = "svcd reads the beginning and the end of a large file"
MOST_LINE: Final = 65_536
"""Bytes of an unfinished line that wait for its end."""
MOST_SOURCES: Final = 100
"""Files of one execution; those that appear later are left out."""
_CONTEXT: Final = 65_536
"""Bytes before the line of new text that are masked together with it."""
_RETURN: Final = re.compile(rb"\r(?=[^\n])")


@frozen
class _New:
    """What is new of a file. text: masked. seen, cut: see `LogSource`. gap: a line marks one."""

    text: str
    seen: int
    cut: bool
    gap: bool = False


def grown(
    log: ExecutionLog, files: Sequence[ReadFile], secrets: Sequence[Secret], whole: bool
) -> tuple[ExecutionLog, str]:
    """The new state, and the text to append. files: as they are now. secrets: of the execution.

    whole: append an unfinished last line too. `end` and `version` of the state stay.
    """
    sources = {source.title: source for source in log.sources}
    last, gap, text, left_out = log.last, log.gap, "", 0
    held = max((len(form.encode("utf-8", "replace")) for form in all_forms(secrets)), default=0)
    for file in files:
        known = sources.get(file.title) or LogSource(title=file.title, file=file.id)
        if file.title not in sources and len(sources) >= MOST_SOURCES:
            left_out += 1
            continue
        anew = known.file != file.id or known.seen > file.ends.size
        if anew:
            known = LogSource(title=file.title, file=file.id)
        new = _new(file, known, secrets, held, whole)
        if new.seen == known.seen:
            continue
        if new.text:
            text += f"==> {file.title} <==\n" if file.title != last or anew else ""
            text += (ANEW + "\n" if anew else "") + new.text
            last = file.title
        gap = gap or anew or new.gap
        sources[file.title] = LogSource(title=file.title, file=file.id, seen=new.seen, cut=new.cut)
    if left_out and whole:
        text += f"[svcd: {left_out} further files are left out]\n"
        gap = True
    return evolve(log, sources=tuple(sources.values()), last=last, gap=gap), text


def _new(
    file: ReadFile, known: LogSource, secrets: Sequence[Secret], held: int, whole: bool
) -> _New:
    """The text of the file after the bytes that were seen. held: bytes of the longest secret."""
    new = _New("", known.seen, known.cut)
    for at, content in file.ends.pieces:
        raw = _RETURN.sub(b"\n", content)
        is_head = at + len(raw) < file.ends.size
        is_last = whole and not is_head
        begin = _begin(raw, at, new)
        if begin is None and not is_last:
            continue
        begin = len(raw) if begin is None else begin
        lost = max(0, at + begin - new.seen)
        text = missing(lost, new.seen, "file", _WHY) if lost else ""
        stop = len(raw) if is_last else _stop(raw, begin, held, is_head)
        if stop > begin:
            text += _lines(_masked(raw, begin, stop, at > 0, secrets))
        cut = raw[begin:stop][-1:] != b"\n" if stop > begin else new.cut and not lost
        new = _New(new.text + text, at + stop, cut and not is_last, new.gap or lost > 0)
    marked = new.text + CUT + "\n" if new.cut and new.text and new.seen > known.seen else new.text
    return evolve(new, text=marked)


def _begin(raw: bytes, at: int, new: _New) -> int | None:
    """The index in `raw`, which is at `at` in the file, of the first byte that is new.

    Behind a gap it is the first byte of a line; None: no line begins there. The name of a secret
    may be in a part of the line that is not there.
    """
    begin = new.seen - at
    if begin >= len(raw):
        return None
    if begin < 0:
        half = len(raw) // 2
        return raw.find(b"\n", half) + 1 or raw.rfind(b"\n", 0, half) + 1 or None
    if new.cut and at and raw.rfind(b"\n", 0, begin) < 0:
        return raw.find(b"\n", begin) + 1 or None
    return begin


def _stop(raw: bytes, begin: int, held: int, is_head: bool) -> int:
    """The index behind the whole lines, or within an unfinished line that is long.

    is_head: the rest of a secret at the end of `raw` may never be read.
    """
    known = max(0, len(raw) - held) if is_head else len(raw)
    stop = max(begin, raw.rfind(b"\n", 0, known) + 1)
    if len(raw) - stop < MOST_LINE:
        return stop
    cut = max(stop, len(raw) - held - 1)
    while cut > stop and raw[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut


def _masked(raw: bytes, begin: int, stop: int, is_end: bool, secrets: Sequence[Secret]) -> str:
    """The text from `begin` to `stop`. is_end: something of the file is missing before `raw`."""
    line = raw.rfind(b"\n", 0, begin) + 1
    first = raw.rfind(b"\n", 0, max(0, line - _CONTEXT)) + 1
    if is_end and not first:
        first = min(begin, raw.find(b"\n") + 1) or begin

    def text(end: int) -> str:
        if not is_end:
            return masked_text(raw[first:end].decode("utf-8", "replace"), secrets, whole=True)
        lines = without_open_value(raw[first:end])
        return masked_end(lines.decode("utf-8", "replace"), secrets, whole=True)

    all_ = text(len(raw))
    seen = _common(all_, text(begin)) if begin > first else 0
    end = _common(all_, text(stop)) if stop < len(raw) else len(all_)
    return hidden(all_[seen:end], secrets)


def _common(one: str, other: str) -> int:
    """The number of characters with which both texts begin."""
    if one.startswith(other):
        return len(other)
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _lines(text: str) -> str:
    """Whole lines that are no titles."""
    return without_titles(text if text.endswith("\n") else text + "\n") if text else ""


def closing(row: Execution, missed: str, left_out: str = "") -> str:
    """The last lines of a log. missed: why the end of the files could not be read, or "".

    left_out: files that svcd does not read, or "".
    """
    text = f"==> job execution {row.id}: {row.status.value} <==\n"
    if row.failure is not None:
        text += f"{row.failure.code} in {row.failure.step}: {row.failure.text}\n"
    if missed:
        text += f"[svcd: the end of the log could not be read: {missed}]\n"
    if left_out:
        text += f"[svcd: not in this log: {left_out}]\n"
    return text
