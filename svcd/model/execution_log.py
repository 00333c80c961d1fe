"""The log of a job execution as svcd keeps it: one text to which svcd only appends."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from svcd.model.ids import ExecutionId

MOST_BYTES: Final = 1_048_576
"""The last so many bytes of the text are kept."""


@frozen(kw_only=True)
class LogSource:
    """A file of which the text has a part.

    title: step, program and file, or `engine`. seen: its characters so far. tail: the last of them;
    svcd finds by them the place where it stopped reading.
    """

    title: str
    seen: int
    tail: str


@frozen(kw_only=True)
class ExecutionLog:
    """The state of the kept text; its bytes are rows of their own.

    version: for compare-and-set, 0 before the first write. start, end: offsets of the first byte
    that is still kept, and of the byte after the last one. complete: nothing will be appended.
    last: the title of the file whose text ends the log.
    """

    execution_id: ExecutionId
    version: int = 0
    start: int = 0
    end: int = 0
    complete: bool = False
    sources: tuple[LogSource, ...] = ()
    last: str = ""


@frozen(kw_only=True)
class LogPart:
    """The end of the text from some offset on. start, end, complete: of the whole text."""

    start: int
    end: int
    complete: bool
    text: bytes
