"""The software tree of this machine as pieces that are copied to a server."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import field, frozen

from svcd.provisioning.distributions.vanilla.image import class_data, layout

_PIECE_BYTES: Final = 8 << 20
"""Bytes of files in one piece."""


@frozen
class File:
    """A file or link of the software tree: its path below the prefix, and its size in bytes."""

    path: str
    size: int = 0


@frozen(kw_only=True)
class Tree:
    """The tree at `prefix`. list_sha256: of its list of digests. hadoop: the release of Hadoop."""

    prefix: Path
    files: Sequence[File] = field(repr=False)
    list_sha256: str
    hadoop: str

    @classmethod
    def at(cls, prefix: Path) -> Tree:
        """The tree at `prefix`, which is complete. Raises OSError.

        Without its archives of class data, which are valid at this prefix only.
        """
        files = []
        for folder, folders, names in os.walk(prefix):
            if Path(folder) == prefix and class_data.FOLDER in folders:
                folders.remove(class_data.FOLDER)
            links = [name for name in folders if (Path(folder) / name).is_symlink()]
            for name in (*names, *links):
                path = Path(folder) / name
                files.append(File(path.relative_to(prefix).as_posix(), path.lstat().st_size))
        return cls(
            prefix=prefix,
            files=sorted(files, key=lambda file: file.path),
            list_sha256=hashlib.sha256((prefix / layout.FILE_LIST).read_bytes()).hexdigest(),
            hadoop=str(layout.read_record(prefix).get("versions", {}).get("hadoop")),
        )

    @property
    def mib(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files) >> 20

    def archives(self) -> Iterator[tuple[int, bytes]]:
        """Tar archives that hold all files, each with the size of its files. Raises OSError."""
        for piece in pieces(self.files, _PIECE_BYTES):
            yield sum(file.size for file in piece), _archive(self.prefix, piece)


def pieces(files: Iterable[File], most_bytes: int) -> Sequence[Sequence[File]]:
    """The files in groups of at most `most_bytes`; a larger file is a group of its own. Pure."""
    groups: list[list[File]] = []
    size = 0
    for file in files:
        if not groups or size + file.size > most_bytes:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.size
    return groups


def _archive(prefix: Path, files: Sequence[File]) -> bytes:
    """A tar archive of the files, owned by root and readable by every user."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mode = 0o755 if member.mode & 0o100 else 0o644
        return member

    archive_file = io.BytesIO()
    with tarfile.open(fileobj=archive_file, mode="w") as archive:
        for file in files:
            archive.add(prefix / file.path, file.path, recursive=False, filter=plain)
    return archive_file.getvalue()
