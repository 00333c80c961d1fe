"""Contents of the object store: files below a folder, or bytes in memory; and parts of them."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from twisted.internet.interfaces import IReactorTime

from svcd.embedded.services import Refusal, pieces_of
from svcd.runtime.tasks import sleep

_STEP_BYTES = 1 << 20
"""Bytes that one step copies."""


class Bodies:
    """Contents by key. folder: of the files; None: in memory."""

    def __init__(self, clock: IReactorTime, folder: Path | None, new_id: Callable[[], str]) -> None:
        self._clock = clock
        self._folder = folder
        self._new_id = new_id
        self._memory: dict[str, bytes] = {}

    def sweep(self, known: Iterable[str]) -> None:
        """Remove the files that a crash has left: no record names them."""
        if self._folder is not None and self._folder.is_dir():
            keep = set(known)
            for path in self._folder.iterdir():
                if path.name not in keep:
                    path.unlink()

    async def write(self, source: IO[bytes]) -> tuple[str, int, str]:
        """Store the rest of `source`; return its key, size and MD5.

        It copies large contents in steps, so that other requests run meanwhile.
        """
        digest = hashlib.md5(usedforsecurity=False)
        key = self._new_id()
        if self._folder is None:
            content = source.read()
            digest.update(content)
            self._memory[key] = content
            return key, len(content), digest.hexdigest()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        size = 0
        with (self._folder / key).open("wb") as target:
            while piece := source.read(_STEP_BYTES):
                digest.update(piece)
                size += target.write(piece)
                if len(piece) == _STEP_BYTES:
                    await sleep(self._clock, 0.0)
        return key, size, digest.hexdigest()

    def open(self, key: str) -> IO[bytes]:
        """The content from its beginning."""
        if not key:
            return io.BytesIO()
        if self._folder is None:
            return io.BytesIO(self._memory[key])
        return (self._folder / key).open("rb")

    def remove(self, key: str) -> None:
        """Remove a content. An unknown key is no fault. Open readers can still read it."""
        self._memory.pop(key, None)
        if key and self._folder is not None:
            (self._folder / key).unlink(missing_ok=True)

    def pieces(self, parts: Sequence[tuple[str, int]], start: int, end: int) -> Iterator[bytes]:
        """Bytes `start` to `end` (not included) of (key, size) parts that follow each other."""
        at = 0
        for key, size in parts:
            first, last = max(start - at, 0), min(end - at, size)
            if first < last:
                file = self.open(key)
                file.seek(first)
                yield from pieces_of(file, last - first)
            at += size


def byte_range(header: str, size: int) -> tuple[int, int] | None:
    """Start and end (not included) of a `Range` with one range; None: answer with everything.

    Raises Refusal 416.
    """
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", header.strip())
    if match is None or match[0] == "bytes=-":
        return None
    first, last = match[1], match[2]
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), size if not last else min(size, int(last) + 1)
        if last and int(last) < start:
            return None
    if start >= size or (not first and int(last) == 0):
        raise Refusal(
            416,
            "The requested range is not available.",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return start, end
