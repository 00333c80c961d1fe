"""The log of a job execution as svcd keeps it: one text to which svcd only appends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import field, frozen

from svcd.model.ids import ExecutionId

HEAD_BYTES: Final = 262_144
"""Number of first bytes of the text that svcd keeps."""
TAIL_BYTES: Final = 786_432
"""Number of last bytes of the text that svcd keeps."""


@frozen(kw_only=True)
class FileEnds:
    """The beginning and the end of a peer's file: no peer answers the middle of one.

    tail: the last bytes, or all. head: the first bytes, if the file is longer than the tail.
    size: the bytes of the whole file.
    """

    tail: bytes = field(repr=False)
    size: int
    head: bytes = field(default=b"", repr=False)

    @property
    def pieces(self) -> Sequence[tuple[int, bytes]]:
        """Offsets in the file, and contents: one piece when nothing is missing between them."""
        at = self.size - len(self.tail)
        if at <= len(self.head):
            return [(0, self.head[:at] + self.tail)]
        return [(0, self.head), (at, self.tail)]


@frozen(kw_only=True)
class ReadFile:
    """A file of an execution, as it was read. title: step, program and file, or `engine`.

    id: distinguishes files with one title, for example of a program that was started again.
    """

    title: str
    id: str
    ends: FileEnds


@frozen(kw_only=True)
class LogSource:
    """A file of which the text has a part. title, file: title and id of the `ReadFile`.

    seen: the bytes of the file up to which svcd has appended it. cut: they end within a line.
    """

    title: str
    file: str = ""
    seen: int = 0
    cut: bool = False


@frozen(kw_only=True)
class ExecutionLog:
    """The state of the kept text; its bytes are rows of their own.

    version: for compare-and-set, 0 before the first write. start, end: offsets of the first byte
    that is still kept, and of the byte after the last one. complete: nothing will be appended.
    last: the title of the file whose text ends the log. gap: some of the files or of the text is
    missing. resumed: the title of the file whose text follows the gap in the text.
    """

    execution_id: ExecutionId
    version: int = 0
    start: int = 0
    end: int = 0
    complete: bool = False
    sources: tuple[LogSource, ...] = ()
    last: str = ""
    gap: bool = False
    resumed: str = ""


@frozen(kw_only=True)
class LogPart:
    """The text from some offset on, with a line in place of bytes that are not kept.

    start, end, complete, gap: of the whole text, see `ExecutionLog`. left_out: number of lines that
    the lines of programs leave out.
    """

    start: int
    end: int
    complete: bool
    text: bytes
    gap: bool = False
    left_out: int = 0


def missing(size: int, at: int, whole: str, why: str) -> str:
    """The line in place of `size` bytes from byte `at` on. whole: `file` or `log`."""
    return f"[svcd: {size} bytes are missing here, from byte {at} of this {whole} on: {why}]\n"
