"""A file or folder of this machine as input of a job: what is uploaded, and where to."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from svcd.cli.job_files import Unusable, digest_of, slug

CONTAINER: Final = "svcd-input"
"""The container of the uploaded inputs, in the caller's object store."""
MOST_FILES: Final = 10_000
"""Files of one input."""
MOST_BYTES: Final = 5 * 2**30
"""The largest object that the object store takes in one request."""
_IGNORED: Final = (".", "_")
"""Hadoop does not read files whose names begin with these."""
_MOST_NAME: Final = 900
"""Bytes of a file's path within the input; the object store allows 1024 with svcd's prefix."""


@frozen(kw_only=True)
class LocalFile:
    """A file of an input. name: its path within the input. md5: hexadecimal."""

    name: str
    path: Path
    size: int
    md5: str


@frozen(kw_only=True)
class LocalInput:
    """An input. prefix: of its objects, without the slash at the end. ignored: hidden files."""

    prefix: str
    files: Sequence[LocalFile]
    ignored: int = 0

    @property
    def url(self) -> str:
        return f"objstore://{CONTAINER}/{self.prefix}"

    @property
    def size(self) -> int:
        return sum(each.size for each in self.files)


def gather(place: Path) -> LocalInput:
    """The files of `place`, a file or a folder. It reads all of them. Raises Unusable."""
    found: list[LocalFile] = []
    ignored = 0
    for path, name in _files(place):
        parts = name.split("/")
        if place.is_dir() and any(part.startswith(_IGNORED) for part in parts):
            ignored += 1
            continue
        if len(found) == MOST_FILES:
            raise Unusable(
                f"--input {place} has more than {MOST_FILES} files: upload it with a program of the"
                " object store, and give its URL"
            )
        found.append(_local(path, name))
    if not found:
        raise Unusable(f"--input {place} has no files that Hadoop reads")
    name = slug(place.resolve().name, 40)
    return LocalInput(prefix=f"{name}-{_digest(found)}", files=found, ignored=ignored)


def _digest(files: Sequence[LocalFile]) -> str:
    return digest_of(part for each in files for part in (each.name, str(each.size), each.md5))


def _files(place: Path) -> Iterator[tuple[Path, str]]:
    if not place.is_dir():
        yield place, place.name
        return

    def refuse(error: OSError) -> None:
        raise Unusable(f"--input {error.filename} cannot be read: {error.strerror}")

    for folder, folders, names in os.walk(place, onerror=refuse):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            yield path, path.relative_to(place).as_posix()


def _local(path: Path, name: str) -> LocalFile:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Unusable(f"--input: the name {name!r} is not UTF-8: rename the file") from None
    if len(name.encode()) > _MOST_NAME:
        raise Unusable(f"--input {path}: the path has more than {_MOST_NAME} bytes")
    if not path.is_file():
        raise Unusable(f"--input {path} is neither a file nor a folder")
    try:
        with path.open("rb") as opened:
            md5 = hashlib.file_digest(opened, lambda: hashlib.md5(usedforsecurity=False))
            size = opened.tell()
    except OSError as error:
        raise Unusable(f"--input {path} cannot be read: {error.strerror}") from None
    if size > MOST_BYTES:
        raise Unusable(
            f"--input {path} has more than {MOST_BYTES >> 30} GiB: upload it with a program of the"
            " object store that makes large objects, and give its URL"
        )
    return LocalFile(name=name, path=path, size=size, md5=md5.hexdigest())


def missing(wanted: LocalInput, there: Sequence[Mapping[str, Any]]) -> Sequence[LocalFile]:
    """The files that the object store lacks. there: its listing below the prefix."""
    known = {(str(each.get("name")), each.get("bytes"), each.get("hash")) for each in there}
    return [
        each
        for each in wanted.files
        if (f"{wanted.prefix}/{each.name}", each.size, each.md5) not in known
    ]
