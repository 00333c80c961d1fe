"""The beginning and the end of a text without known bounds: a log, or the output of a command."""

from __future__ import annotations

from svcd.model.execution_log import FileEnds


class Ends:
    """Collects the first and the last bytes, and counts all of them."""

    def __init__(self, head_bytes: int, tail_bytes: int) -> None:
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0

    def add(self, data: bytes) -> None:
        """Append `data`."""
        self._size += len(data)
        self._head += data[: self._head_bytes - len(self._head)]
        self._tail += data
        if len(self._tail) > 2 * self._tail_bytes:
            del self._tail[: -self._tail_bytes]

    def ends(self) -> FileEnds:
        """Both ends; they may overlap in a short text."""
        tail = bytes(self._tail[-self._tail_bytes :])
        return FileEnds(head=bytes(self._head), tail=tail, size=self._size)

    def text(self) -> str:
        """Both ends as UTF-8. A line in the middle gives the number of bytes that are left out."""
        (_, head), *rest = self.ends().pieces
        text = head.decode("utf-8", "replace")
        for at, tail in rest:
            text += f"\n[{at - len(head)} bytes left out]\n" + tail.decode("utf-8", "replace")
        return text
