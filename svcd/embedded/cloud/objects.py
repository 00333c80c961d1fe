"""The object store's contents, in files below a folder or in memory, and the order of its names."""

from __future__ import annotations

import hashlib
import io
import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from twisted.internet.interfaces import IReactorTime

from svcd.embedded.services import Refusal
from svcd.runtime.tasks import sleep

_STEP_BYTES = 1 << 20
"""Bytes that one step copies."""
_PIECE_BYTES = 65536
"""Size of the pieces in which contents are read and sent."""


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

    async def write(self, pieces: Iterable[bytes]) -> tuple[str, int, str]:
        """Store a content; return its key, size and MD5.

        It copies large contents in steps, so that other requests run meanwhile.
        """
        digest = hashlib.md5(usedforsecurity=False)
        key = self._new_id()
        if self._folder is None:
            self._memory[key] = content = b"".join(pieces)
            digest.update(content)
            return key, len(content), digest.hexdigest()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        size = slept_at = 0
        with (self._folder / key).open("wb") as target:
            for piece in pieces:
                digest.update(piece)
                size += target.write(piece)
                if size - slept_at >= _STEP_BYTES:
                    slept_at = size
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

    def pieces(self, parts: Sequence[tuple[str, int]], start: int, end: int) -> Generator[bytes]:
        """Bytes `start` to `end` (not included) of (key, size) parts that follow each other."""
        at = 0
        for key, size in parts:
            first, last = max(start - at, 0), min(end - at, size)
            if first < last:
                with self.open(key) as file:
                    file.seek(first)
                    while first < last:
                        yield (piece := file.read(min(_PIECE_BYTES, last - first)))
                        first += len(piece)
            at += size


def pieces_of(file: IO[bytes]) -> Iterator[bytes]:
    """The rest of a file."""
    return iter(lambda: file.read(_PIECE_BYTES), b"")


class Names:
    """The names of each container's objects in order, sorted at its first listing.

    Swift sorts by the bytes of UTF-8, which is the order of Python's texts.
    load: returns the names of a container's objects.
    """

    def __init__(self, load: Callable[[str], Iterable[str]]) -> None:
        self._load = load
        self._known: dict[str, list[str]] = {}

    def of(self, container: str) -> Sequence[str]:
        """The names in order."""
        names = self._known.get(container)
        if names is None:
            names = sorted(self._load(container))
            if names:
                self._known[container] = names
        return names

    def add(self, container: str, name: str) -> None:
        """Add the name of a new object, which `load` gives from now on."""
        if container in self._known:
            insort(self._known[container], name)

    def remove(self, container: str, name: str) -> None:
        """Remove a name. An unknown name is no fault."""
        names = self._known.get(container, [])
        at = bisect_left(names, name)
        if names[at : at + 1] == [name]:
            del names[at]

    def forget(self, container: str) -> None:
        """Forget a container that was removed."""
        self._known.pop(container, None)


def selected(
    names: Sequence[str], prefix: str, marker: str, delimiter: str
) -> Iterator[tuple[str, bool]]:
    """The entries of a listing of sorted names with `prefix`, after `marker`: text, is a folder.

    Names that are equal up to a `delimiter` behind the prefix are one folder.
    """
    at = max(bisect_left(names, prefix), bisect_right(names, marker) if marker else 0)
    while at < len(names) and names[at].startswith(prefix):
        name = names[at]
        cut = name.find(delimiter, len(prefix)) if delimiter else -1
        if cut < 0:
            yield name, False
            at += 1
            continue
        folder = name[: cut + len(delimiter)]
        if folder > marker:
            yield folder, True
        at = bisect_left(names, folder[:-1] + chr(ord(folder[-1]) + 1), at)


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
