"""A file or folder of this machine as input of a job: the files to upload, and their objects."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from svcd.cli.job_files import Unusable, digest_of, slug
from svcd.model.job import JobType
from svcd.workflow.decide import spark_job

CONTAINER: Final = "svcd-input"
"""The container of the uploaded inputs, in the caller's object store."""
MOST_FILES: Final = 10_000
"""Files of one input."""
MOST_BYTES: Final = 5 * 2**30
"""The largest object that the object store takes in one request."""
_RECURSIVE: Final = "mapreduce.input.fileinputformat.input.dir.recursive"
_RECURSIVE_NAMES: Final = frozenset(
    {_RECURSIVE, f"spark.hadoop.{_RECURSIVE}", "mapred.input.dir.recursive"}
)
"""Names of the configuration with which Hadoop reads the folders of an input."""
_IGNORED: Final = (".", "_")
_UNREAD: Final = "Hadoop reads no names that begin with . or _"
_MOST_SHOWN: Final = 10
"""Hidden names that a line shows."""
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
    """An input. prefix: of its objects, without a slash at the end. left: lines on the rest."""

    prefix: str
    files: Sequence[LocalFile]
    left: Sequence[str] = ()

    @property
    def url(self) -> str:
        return f"objstore://{CONTAINER}/{self.prefix}"

    @property
    def nested(self) -> bool:
        """Whether it has folders."""
        return any("/" in file.name for file in self.files)


def gather(place: Path, flat: str = "") -> LocalInput:
    """The files of `place`, a file or a folder. It reads all of them. Raises Unusable.

    flat: the reason why it may have no folders but partitions; "" when it may.
    """
    names = {place.name: place}
    left: Sequence[str] = ()
    if place.is_dir():
        try:
            names, left = _below(place)
        except OSError as error:
            raise Unusable(f"--input {error.filename} cannot be read: {error.strerror}") from None
    elif place.name.startswith(_IGNORED):
        raise Unusable(f"--input {place}: {_UNREAD}: rename the file")
    if not names:
        raise Unusable(f"--input {place} has no files that Hadoop reads")
    if flat and not are_partitions(names):
        raise Unusable(f"--input {place} has folders, and {flat}")
    files = [_local(path, name) for name, path in names.items()]
    name = slug(place.resolve().name, 40)
    return LocalInput(prefix=f"{name}-{_digest(files)}", files=files, left=left)


def are_partitions(names: Iterable[str]) -> bool:
    """Whether Spark takes the folders of these files for values of columns (`day=1/hour=2`).

    Files without folders have no columns, and Spark reads them too.
    """
    folders = [name.split("/")[:-1] for name in names]
    columns = {tuple(part.partition("=")[0] for part in parts) for parts in folders}
    whole = all(all(part.partition("=")[::2]) for parts in folders for part in parts)
    return whole and len(columns) == 1


def _digest(files: Sequence[LocalFile]) -> str:
    return digest_of(part for file in files for part in (file.name, str(file.size), file.md5))


def _below(place: Path) -> tuple[dict[str, Path], Sequence[str]]:
    """The files of a folder by their names within it, and a line for each thing that is left out.

    Each folder is read once, so loops of links end. A folder comes before links to it.
    """
    files: dict[str, Path] = {}
    hidden, left = list[str](), list[str]()
    folders, links = deque([(place, "")]), deque[tuple[Path, str]]()
    known: dict[tuple[int, int], Path] = {}
    while folders or links:
        folder, inner = folders.popleft() if folders else links.popleft()
        stat = folder.stat()
        first = known.setdefault((stat.st_dev, stat.st_ino), folder)
        if first is not folder:
            left.append(f"{folder}, because it leads to the folder {first}, which is read already")
            continue
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name, is_folder = f"{inner}{entry.name}", entry.is_dir()
                if entry.name.startswith(_IGNORED):
                    hidden.append(f"{name}/" if is_folder else name)
                elif is_folder:
                    queue = links if entry.is_symlink() else folders
                    queue.append((Path(entry.path), f"{name}/"))
                else:
                    files[name] = Path(entry.path)
        if len(files) > MOST_FILES:
            raise Unusable(
                f"--input {place} has more than {MOST_FILES} files: upload it with a program of the"
                " object store, and give its URL"
            )
    if hidden:
        shown = ", ".join(hidden[:_MOST_SHOWN])
        more = f" and {len(hidden) - _MOST_SHOWN} more" if len(hidden) > _MOST_SHOWN else ""
        left.append(f"{shown}{more}: {_UNREAD}")
    return files, left


def _local(path: Path, name: str) -> LocalFile:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Unusable(f"--input: the name {name!r} is not UTF-8: rename the file") from None
    if "\n" in name or "\r" in name:
        raise Unusable(
            f"--input: the name {name!r} has the end of a line, which the object store refuses:"
            " rename the file"
        )
    if len(name.encode()) > _MOST_NAME:
        raise Unusable(f"--input {path}: the path has more than {_MOST_NAME} bytes")
    if not path.is_file():
        lost = path.is_symlink() and not path.exists()
        what = "a link to a missing file" if lost else "neither a file nor a folder"
        raise Unusable(f"--input {path} is {what}: remove it")
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
    known = {(str(row.get("name")), row.get("bytes"), row.get("hash")) for row in there}
    return [
        file
        for file in wanted.files
        if (f"{wanted.prefix}/{file.name}", file.size, file.md5) not in known
    ]


# ---- folders of an input ------------------------------------------------------------------------


def flat(kind: JobType, file: str, configs: Iterable[str]) -> str:
    """The reason why the program may have no nested input; "" when it may.

    configs: names of the given configurations.
    """
    if kind is not JobType.SPARK or _RECURSIVE_NAMES.intersection(configs):
        return ""
    if spark_job.ending(file) == ".sql":
        way = "write recursiveFileLookup 'true' among the OPTIONS of the view that reads it"
    else:
        way = 'write .option("recursiveFileLookup", "true") after spark.read (textFile reads all)'
    return f"Spark reads the files of one level: {way}, and give --nested"


def recursive(kind: JobType, file: str, configs: Iterable[str]) -> Mapping[str, str]:
    """The configuration with which a job of this type reads the folders of a nested input."""
    needed = kind in (JobType.JAR, JobType.MAP_REDUCE) or (
        kind is JobType.SPARK and spark_job.ending(file) != ".sql"
    )
    return {_RECURSIVE: "true"} if needed and not _RECURSIVE_NAMES.intersection(configs) else {}
