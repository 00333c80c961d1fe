"""The object store's contents, in files below a folder or in memory, and the order of its names."""

from __future__ import annotations

import hashlib
import io
import re
from bisect import bisect_left, bisect_right, insort
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


class Names:
    """The names of each container's objects in order of their bytes, sorted at its first listing.

    load: returns the names of a container's objects.
    """

    def __init__(self, load: Callable[[str], Iterable[str]]) -> None:
        self._load = load
        self._known: dict[str, list[bytes]] = {}

    def add(self, container: str, name: str) -> None:
        """Add the name of a new object, which `load` gives from now on."""
        names = self._known.get(container)
        if names is not None:
            insort(names, name.encode("utf-8"))

    def remove(self, container: str, name: str) -> None:
        """Remove a name. An unknown name is no fault."""
        names, text = self._known.get(container, []), name.encode("utf-8")
        at = bisect_left(names, text)
        if names[at : at + 1] == [text]:
            del names[at]

    def forget(self, container: str) -> None:
        """Forget a container that was removed."""
        self._known.pop(container, None)

    def find(self, container: str, prefix: str, marker: str, delimiter: str) -> Iterator[str]:
        """The names with `prefix` and after `marker`, in order.

        Of the names that a listing shows as one entry because of `delimiter`, only the first.
        """
        names = self._known.get(container)
        if names is None:
            names = sorted(name.encode("utf-8") for name in self._load(container))
            if names:
                self._known[container] = names
        start = prefix.encode("utf-8")
        at = bisect_left(names, start)
        if marker:
            at = max(at, bisect_right(names, marker.encode("utf-8")))
        while at < len(names) and names[at].startswith(start):
            name = names[at].decode("utf-8")
            yield name
            at += 1
            cut = name.find(delimiter, len(prefix)) if delimiter else -1
            if cut >= 0:
                label = name[: cut + len(delimiter)].encode("utf-8")
                after = label[:-1] + bytes([label[-1] + 1])  # no byte of UTF-8 is 255
                at = bisect_left(names, after, at)


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
