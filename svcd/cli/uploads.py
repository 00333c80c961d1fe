"""Keeps files of this machine as binaries of svcd: the same content once."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from attrs import evolve

from svcd.cli.client import name_taken, safe
from svcd.cli.exits import CommandError
from svcd.cli.job_files import Reuse, Unusable, internal
from svcd.cli.session import Session
from svcd.model.job import INTERNAL_URL

_MOST_BYTES: Final = 512 * 2**20
"""The largest file that is read; the daemon's limit is `server.max_binary_bytes`."""
_TRIES: Final = 3
"""Looks for a free name, while other commands take names."""
_MANIFEST: Final = "META-INF/MANIFEST.MF"
_MOST_MANIFEST: Final = 1 << 20
_INTERNALS: Final = "/job-binary-internals"


class Program(NamedTuple):
    """A file that is read. digest: SHA-256 of the data. main_class: of a jar's manifest."""

    name: str
    data: bytes
    digest: str
    main_class: str = ""

    def __repr__(self) -> str:
        return f"Program({self.name})"


def program(name: str, data: bytes, main_class: str = "") -> Program:
    """A program of some bytes."""
    return Program(name, data, sum_of([data]), main_class)


def sum_of(pieces: Iterable[bytes]) -> str:
    """The SHA-256 sum of the content in `pieces`, hexadecimal."""
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(piece)
    return whole.hexdigest()


def read(file: Path, main: bool = False) -> Program:
    """The content of a file. main: whether it is the program of a job. Raises Unusable."""
    try:
        if file.is_dir():
            raise Unusable(f"{file} is a folder: name the file of the program")
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Unusable(f"{file} cannot be read: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise Unusable(f"{file} has more than {_MOST_BYTES >> 20} MiB")
    if not data:
        raise Unusable(
            f"{file} is empty, and the API takes no empty file: write a line end into it"
        )
    is_jar = main and file.suffix.lower() == ".jar"
    return program(file.name, data, _manifest_class(file) if is_jar else "")


def _manifest_class(file: Path) -> str:
    """The main class that a jar names; "" without one. Raises Unusable when it is no jar."""
    try:
        with zipfile.ZipFile(file) as jar:
            if _MANIFEST not in jar.namelist():
                return ""
            with jar.open(_MANIFEST) as opened:
                text = opened.read(_MOST_MANIFEST).decode("utf-8", "replace")
    except (OSError, ValueError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise Unusable(f"{file} is not a jar: {error}") from None
    unfolded = text.replace("\r\n", "\n").replace("\n ", "")
    for line in unfolded.splitlines():
        if not line:
            break  # the main section ends
        name, _, value = line.partition(":")
        if name.strip().lower() == "main-class":
            return value.strip()
    return ""


def reused(look: Callable[[], Reuse], make: Callable[[str], Any], tries: int = _TRIES) -> Reuse:
    """The row that `look` finds, or the row that `make` makes under the free name of `look`.

    make: returns the row. Another command may take the name in between: then it looks again.
    """
    reuse = look()
    if reuse.id:
        return reuse
    try:
        return evolve(reuse, id=str(make(reuse.name)["id"]))
    except CommandError as error:
        if tries > 1 and name_taken(error):
            return reused(look, make, tries - 1)
        raise


def kept(session: Session, file: Program) -> Reuse:
    """The data of `file` at svcd, or the free name for it."""
    known = session.api.listed(_INTERNALS)["binaries"]
    return internal(file.name, file.digest, len(file.data), known)


def stored(session: Session, file: Program) -> str:
    """The URL of the data of `file` at svcd, which is uploaded if it is not there."""

    def upload(name: str) -> Any:
        answer = session.api.put(f"{_INTERNALS}/{safe(name)}", file.data)
        session.note(f"uploaded {file.name}: {size(len(file.data))}")
        return answer["job_binary_internal"]

    return INTERNAL_URL + reused(lambda: kept(session, file), upload).id


def forget(session: Session, url: str) -> None:
    """Delete the data behind the URL of a deleted binary, unless another binary has it."""
    if not url.startswith(INTERNAL_URL):
        return
    rows = session.api.listed("/job-binaries")["binaries"]
    if all(row["url"] != url for row in rows):
        session.api.call("DELETE", f"{_INTERNALS}/{safe(url.removeprefix(INTERNAL_URL))}")


def files(count: int) -> str:
    """A number of files for people."""
    return "1 file" if count == 1 else f"{count} files"


def size(count: int) -> str:
    """A number of bytes for people."""
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:.1f} KiB" if count < 1024**2 else f"{count / 1024**2:.1f} MiB"
