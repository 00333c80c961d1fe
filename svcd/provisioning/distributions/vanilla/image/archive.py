"""The archive that Spark is released in: the digests of its files, its download and unpacking.

Spark's YARN part is in no Maven repository, but the source package of PySpark on PyPI holds all
jars. `spark/archive.txt` has the address, size and SHA-256 of this one file, and a line for each
member that the tree takes, as in `artifacts.txt`. `make digests SPARK=VERSION` writes it.

Note: what a foreign archive cannot do

The archive is unpacked while it arrives, because it has 450 MB and the tree takes half of them.
So its bytes are read before their digest is known. A member is written only when its name is on the
list, below a path of ours, never a path of the archive; it counts only with the digest of its line.
What is read of the archive is bounded, packed and unpacked. At the end the digest of the whole
archive must be the listed one too: before that nothing of the tree is finished.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from svcd.provisioning.distributions.vanilla.image.artifacts import (
    DOWNLOAD_TRIES,
    MOST_BYTES,
    READ_TIMEOUT_S,
    REPORT_S,
    Artifact,
    parse,
    text_of_line,
)
from svcd.provisioning.distributions.vanilla.image.errors import ImageError

LIST = "spark/archive.txt"
SETTING = "SVCD_SPARK_ARCHIVE"
"""The variable of the environment that names another place of the archive: a URL or a path."""

FETCH_TIMEOUT_S = 3600.0
MOST_UNPACKED_BYTES = 2**30
"""The largest archive that is read, unpacked."""

DAMAGED = (tarfile.TarError, zlib.error, EOFError, UnicodeError)
"""What reading an archive raises that is not as it should be."""

_CHUNK_BYTES = 2**18
_MEMBERS = {"spark": "deps/jars/", "python": "lib/", "notices": ""}
"""Folder of a line to the folder of the archive."""

_HEAD = re.compile(
    r"# archive: (?P<sha256>[0-9a-f]{64}) (?P<size>[0-9]{1,12})"
    r" (?P<url>https://\S+/(?P<root>pyspark-(?P<version>[0-9][0-9a-z.]*))\.tar\.gz)"
)


@dataclass(frozen=True)
class Archive:
    """The contents of archive.txt. root: the folder inside. members: those that the tree takes."""

    sha256: str
    size_bytes: int
    url: str
    root: str
    version: str
    members: tuple[Artifact, ...]

    @property
    def file(self) -> str:
        return self.url.rpartition("/")[2]

    def name_of(self, member: Artifact) -> str:
        """The member's name in the archive."""
        return f"{self.root}/{_MEMBERS[member.folders[0]]}{member.file}"


def parse_archive(text: str) -> Archive:
    """Raises: ImageError (damaged)."""
    members = parse(text, LIST).artifacts
    for line in text.splitlines():
        if head := _HEAD.fullmatch(line):
            return Archive(
                head["sha256"], int(head["size"]), head["url"], head["root"], head["version"],
                members,
            )  # fmt: skip
    raise ImageError(f"{LIST} names no archive: make digests SPARK=VERSION")


def text_of_archive(archive: Archive) -> str:
    """The reverse of `parse_archive`."""
    lines = [
        "# What the image takes of Spark's archive: SHA-256, folder, coordinates as a path,"
        " licence.",
        "# Written by: make digests SPARK=VERSION",
        f"# archive: {archive.sha256} {archive.size_bytes} {archive.url}",
        *map(text_of_line, sorted(archive.members, key=lambda each: each.path)),
    ]
    return "\n".join(lines) + "\n"


def read_archive(recipe: Path) -> Archive:
    """The archive of a recipe. Raises: ImageError (damaged)."""
    return parse_archive((recipe / LIST).read_text(encoding="utf-8"))


def place(archive: Archive, setting: str | None) -> str:
    """The URL to fetch the archive from. setting: a URL or a path, or nothing."""
    if not setting:
        return archive.url
    return setting if "://" in setting else Path(setting).absolute().as_uri()


def unpack(
    archive: Archive,
    wanted: Sequence[Artifact],
    target: Path,
    url: str,
    progress: Callable[[str], None],
    opener: Callable[..., Any] = urlopen,
) -> None:
    """Fetches the archive from `url` and puts the wanted members into `target`/FOLDER.

    Raises: ImageError (a download failed, the archive is damaged, or anything has another digest),
    OSError (a member could not be written).
    """
    left = {archive.name_of(each): each for each in wanted}
    with Download(url, archive.size_bytes, progress, opener=opener) as download:
        try:
            for name, size_bytes, data in members(download):
                if artifact := left.get(name):
                    _write(target, artifact, size_bytes, data, url)
                    del left[name]
        except DAMAGED as error:
            raise ImageError(f"{url} is damaged ({error}): {_advice(archive)}") from error
        found = download.rest()
    if found != archive.sha256:
        raise ImageError(
            f"{url} has the SHA-256 {found}, but the recipe expects {archive.sha256}:"
            f" {_advice(archive)}"
        )
    if left:
        raise ImageError(f"{url} has no {', '.join(sorted(left)[:3])}: make digests SPARK=VERSION")


def _advice(archive: Archive) -> str:
    return (
        f"nothing of it was used. Find out why before you use this place; {SETTING} names"
        f" another place of {archive.file}, a URL or a path"
    )


def members(download: IO[bytes] | Download) -> Any:
    """Name, size and contents of each ordinary file of a packed archive, in its order.

    The contents must be read before the next one is asked for. Raises: tarfile.TarError,
    zlib.error, EOFError (damaged), ImageError (larger than any that is released).
    """
    with tarfile.open(fileobj=_Unpacked(download), mode="r|", bufsize=_CHUNK_BYTES) as found:  # type: ignore[call-overload]
        for entry in found:
            if entry.isreg():
                yield entry.name, entry.size, found.extractfile(entry)
            found.members.clear()  # else every header stays in memory


def _write(target: Path, artifact: Artifact, size_bytes: int, data: IO[bytes], url: str) -> None:
    """Writes a member. Raises: ImageError (too large, or another digest)."""
    if size_bytes > MOST_BYTES:
        raise ImageError(f"{artifact.file} in {url} has more than {MOST_BYTES // 2**20} MiB")
    path = target / artifact.folders[0] / artifact.file
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with path.open("wb") as sink:
        while chunk := data.read(_CHUNK_BYTES):
            digest.update(chunk)
            sink.write(chunk)
    if digest.hexdigest() != artifact.sha256:
        path.unlink()
        raise ImageError(
            f"{artifact.file} in {url} has the SHA-256 {digest.hexdigest()}, but the recipe expects"
            f" {artifact.sha256}: nothing of it was used. Only after a change of a version: make"
            " digests SPARK=VERSION"
        )


def told(error: Exception) -> str:
    """An error without the words of the library that raised it."""
    cause = (
        error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
    )
    return (isinstance(cause, OSError) and cause.strerror) or str(cause)


class Download:
    """A file that is read from a URL once, from its beginning to its end, and its digest.

    A connection that breaks is opened again at the place where it broke.
    """

    def __init__(
        self,
        url: str,
        size_bytes: int,
        progress: Callable[[str], None],
        pause: Callable[[float], None] = time.sleep,
        opener: Callable[..., Any] = urlopen,
    ) -> None:
        self._opener = opener
        self._url, self._size_bytes = url, size_bytes
        self._progress, self._pause = progress, pause
        self._answer: Any = None
        self._digest = hashlib.sha256()
        self._done_bytes = self._failures = 0
        self._deadline = self._reported = 0.0

    def __enter__(self) -> Download:
        self._reported = time.monotonic()
        self._deadline = self._reported + FETCH_TIMEOUT_S
        return self

    def __exit__(self, *reason: object) -> None:
        self._close()

    def read(self, count: int) -> bytes:
        """At most `count` bytes, none at the end. Raises: ImageError (it cannot be read)."""
        while True:
            try:
                data = self._read(count)
                break
            except (OSError, HTTPException) as error:
                self._close()
                self._after(error)
        self._failures = 0
        self._done_bytes += len(data)
        self._digest.update(data)
        if self._done_bytes > self._size_bytes:
            raise ImageError(
                f"{self._url} has more than the {self._size_bytes} bytes of the recipe"
            )
        self._report()
        return data

    def rest(self) -> str:
        """Reads on to the end; the digest of all."""
        while self.read(_CHUNK_BYTES):
            pass
        return self._digest.hexdigest()

    def _read(self, count: int) -> bytes:
        if self._answer is None:
            self._answer = self._open()
        data: bytes = self._answer.read(count)
        if not data and self._done_bytes < self._size_bytes:
            raise OSError(f"ended after {self._done_bytes} of {self._size_bytes} bytes")
        return data

    def _open(self) -> Any:
        headers = {"User-Agent": "svcd"}
        if self._done_bytes:
            headers["Range"] = f"bytes={self._done_bytes}-"
        answer = self._opener(Request(self._url, headers=headers), timeout=READ_TIMEOUT_S)
        left = 0 if getattr(answer, "status", None) == 206 else self._done_bytes
        while left and (passed := answer.read(min(left, _CHUNK_BYTES))):
            left -= len(passed)
        return answer

    def _after(self, error: Exception) -> None:
        """Waits before the next try. Raises: ImageError (there is none)."""
        self._failures += 1
        text = told(error)
        local = self._url.startswith("file:")
        final = local or (isinstance(error, HTTPError) and 400 <= error.code < 500)
        late = time.monotonic() > self._deadline
        if final or late or self._failures >= DOWNLOAD_TRIES:
            if late:
                text = f"not complete after {FETCH_TIMEOUT_S:.0f} s: {text}"
            network = "" if local else "check the network, or download the file in another way and "
            raise ImageError(
                f"{self._url}: {text}: {network}name the file in {SETTING} (a URL or a path);"
                " without Spark: --without spark"
            ) from error
        said = "broke off" if self._done_bytes else "did not begin"
        self._progress(f"  the download {said} ({text}), trying again")
        self._pause(self._failures)

    def _report(self) -> None:
        now = time.monotonic()
        if now > self._deadline:
            self._after(TimeoutError(f"{self._done_bytes} bytes so far"))
        if now - self._reported >= REPORT_S:
            self._reported = now
            self._progress(f"  {self._done_bytes // 10**6} of {self._size_bytes // 10**6} MB")

    def _close(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None


class _Unpacked:
    """The reading end of a gzip stream, no longer than an archive can be."""

    def __init__(self, packed: IO[bytes] | Download) -> None:
        self._packed = packed
        self._inflate = zlib.decompressobj(wbits=31)  # with the header and check of gzip
        self._done_bytes = 0

    def read(self, count: int) -> bytes:
        while not self._inflate.eof:
            data = self._inflate.unconsumed_tail or self._packed.read(_CHUNK_BYTES)
            found = self._inflate.decompress(data, min(count, _CHUNK_BYTES))
            self._done_bytes += len(found)
            if self._done_bytes > MOST_UNPACKED_BYTES:
                raise ImageError(f"the archive has more than {MOST_UNPACKED_BYTES // 2**20} MiB")
            if found:
                return found
            if not data:
                raise EOFError("it ends too early")
        return b""
