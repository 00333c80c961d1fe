"""Takes the output of a program out of the page of its node manager. Pure.

Source: Hadoop 3.5, NMWebServices.getContainerLogFile, LogToolUtils.outputContainerLog.
"""

from __future__ import annotations

import re
from typing import Final

from svcd.model.execution_log import FileEnds

_CONTENTS: Final = b"\nLogContents:\n"
_LENGTH: Final = re.compile(rb"\nLogLength:(\d{1,18})\n")
_END: Final = b"End of LogType:"
_RUNS: Final = b"This log file belongs to a running container"
_BEGINNINGS: Final = (
    b">>> Invoking Pig command line now >>>\n",
    b">>> Invoking Shell command line now >>\n",
    b">>> Invoking Main class now >>>\n",
)
"""Lines of the engine's launcher before the program's output, the last one first."""


def read_page(body: bytes, limit: int) -> tuple[FileEnds, bool]:
    """The part of the file that a page has, and whether the page proves that the container ended.

    Old node managers answer the whole file, or a page with a `pre`. limit: the bytes of the file
    that were asked for.
    """
    if body.startswith(b"Container:"):
        frame, _, rest = body.partition(_CONTENTS)
        length = _LENGTH.search(frame + b"\n")
        whole = 0 if length is None else int(length[1])
        size = min(whole, limit)
        if length is None or not rest[size:].lstrip(b"\n").startswith(_END):
            size = max(0, rest.rfind(_END))  # the page names a wrong length
        ended = rest[size:].lstrip(b"\n").startswith(_END) and _RUNS not in rest[size:]
        return FileEnds(tail=rest[:size], size=whole if whole > limit else size), ended
    content = body
    if body.lstrip().startswith(b"<!DOCTYPE"):
        content, end, _ = body.partition(b"<pre>")[2].partition(b"</pre>")
        content = content if end else b""
    return FileEnds(tail=content, size=len(content)), False


def own_words(log: bytes) -> bytes:
    """The output of a program without the lines that its launcher printed before."""
    for line in _BEGINNINGS:
        _, found, rest = log.partition(line)
        if found:
            return rest
    return log
