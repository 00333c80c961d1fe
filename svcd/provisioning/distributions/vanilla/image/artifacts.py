"""The released jars of the image: the digests that they must have, and their download.

`artifacts.txt` has one line for each jar of the tree that comes from outside: SHA-256, the class
paths that hold it, its path in a Maven repository, and the licence that its POM declares.
`make digests` writes it. A jar from any place is used only when it has the digest of its line, so
the place needs no trust. A build runs no Maven, hence no plugin without a digest.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from svcd.provisioning.distributions.vanilla.image.errors import ImageError

CENTRAL = "https://repo.maven.apache.org/maven2"
LIST = "artifacts.txt"

DOWNLOADS_AT_ONCE = 8
DOWNLOAD_TRIES = 3
READ_TIMEOUT_S = 30.0
FETCH_TIMEOUT_S = 1800.0
REPORT_S = 10.0
MOST_BYTES = 64 * 2**20
"""The largest jar that a download accepts."""

_LINE = re.compile(
    r"(?P<sha256>[0-9a-f]{64})  (?P<folders>[a-z]+(?:,[a-z]+)*)  "
    r"(?P<path>(?:[A-Za-z0-9][A-Za-z0-9._+-]*/){3,}[A-Za-z0-9][A-Za-z0-9._+-]*\.jar"
    r"|(?:[a-z0-9][a-z0-9._-]*/){2}(?:[a-z0-9][a-z0-9._-]*\.zip|LICENSE|NOTICE))"
    r"(?:  (?P<licence>\S.*))?"
)
_POMS = re.compile(r"# poms: ([0-9a-f]{64})")


PLACES: Mapping[str, tuple[str, ...]] = {
    "hadoop": ("hadoop/lib",),
    "oozie": ("oozie/lib",),
    "launcher": ("oozie/sharelib/oozie", "oozie/sharelib/mapreduce-streaming"),
    "pig": ("oozie/sharelib/pig", "pig/published"),
    "spark": ("spark/jars",),
    "python": ("spark/python/published", "spark/python/lib"),
    "notices": ("spark",),
}
"""Class path of a line to the folders of a tree that its files are in."""


@dataclass(frozen=True)
class Artifact:
    """A released jar. folders: the class paths that hold it. path: in a Maven repository.

    licence: the names that its POM declares; empty when it declares none. What is no jar has the
    name and version of a package of PyPI instead of a path in a Maven repository.
    """

    sha256: str
    folders: tuple[str, ...]
    path: str
    licence: str = ""

    @property
    def file(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def coordinates(self) -> tuple[str, str, str, str]:
        """Group, artifact, version, classifier; a package of PyPI has no group."""
        *group, artifact, version, file = self.path.split("/")
        if not group:
            return "", artifact, version, ""
        rest = file.removesuffix(".jar").removeprefix(f"{artifact}-{version}")
        return ".".join(group), artifact, version, rest.removeprefix("-")


@dataclass(frozen=True)
class ArtifactList:
    """The contents of artifacts.txt. poms: digest of the poms that it was made from."""

    poms: str
    artifacts: tuple[Artifact, ...]


def parse(text: str, name: str = LIST) -> ArtifactList:
    """Raises: ImageError (a line is damaged), with its number."""
    poms, found = "", []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            if match := _POMS.fullmatch(line):
                poms = match[1]
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ImageError(f"{name}, line {number} cannot be read: {line[:100]!r}: make digests")
        licence = match["licence"] or ""
        folders = tuple(match["folders"].split(","))
        found.append(Artifact(match["sha256"], folders, match["path"], licence))
    return ArtifactList(poms, tuple(found))


def text_of(contents: ArtifactList) -> str:
    """The reverse of `parse`; equal artifacts make equal texts."""
    lines = [
        "# The jars of the image: SHA-256, class paths, path in a Maven repository, licence of the",
        "# POM. Written by: make digests",
        f"# poms: {contents.poms}",
    ]
    lines += map(text_of_line, sorted(contents.artifacts, key=lambda each: each.path))
    return "\n".join(lines) + "\n"


def text_of_line(artifact: Artifact) -> str:
    """The line of an artifact in a list."""
    end = f"  {artifact.licence}" if artifact.licence else ""
    return f"{artifact.sha256}  {','.join(artifact.folders)}  {artifact.path}{end}"


def read_list(recipe: Path) -> tuple[Artifact, ...]:
    """The artifacts of a recipe. Raises: ImageError (damaged, or older than the poms)."""
    contents = parse((recipe / LIST).read_text(encoding="utf-8"))
    if contents.poms != poms_digest(recipe):
        raise ImageError(f"{recipe / 'poms'} has changed since {LIST} was written: make digests")
    return contents.artifacts


def poms_digest(recipe: Path) -> str:
    """A digest of the poms; equal digests ask for equal jars."""
    digest = hashlib.sha256()
    for path in sorted((recipe / "poms").iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def checked(data: bytes, artifact: Artifact, source: str) -> bytes:
    """`data` when it has the digest of the recipe. Raises: ImageError with both digests."""
    found = hashlib.sha256(data).hexdigest()
    if found != artifact.sha256:
        raise ImageError(
            f"{source} has the SHA-256 {found}, but the recipe expects {artifact.sha256}: nothing"
            " of it was used. Find out why before you use this repository; another one can be set"
            " with SVCD_MAVEN_REPOSITORY. Only after a change of a version: make digests"
        )
    return data


def fetch(
    artifacts: Sequence[Artifact],
    target: Path,
    repository: str,
    kept: Callable[[Artifact], Iterable[Path]],
    progress: Callable[[str], None],
) -> None:
    """Puts each jar into `target`/CLASS PATH: one of its `kept` copies, else from `repository`.

    Raises: ImageError (a download failed, or a downloaded jar has another digest).
    """
    left = take_copies(artifacts, target, kept, progress)
    if not left:
        return
    progress(f"fetching {len(left)} of {len(artifacts)} jars from {repository}")
    reported = time.monotonic()
    deadline, stop = reported + FETCH_TIMEOUT_S, threading.Event()
    with _threads(stop) as pool:
        running = {
            pool.submit(_download, f"{repository.rstrip('/')}/{each.path}", deadline, stop): each
            for each in left
        }
        for done in as_completed(running):
            artifact, (url, data) = running.pop(done), done.result()
            _store(target, artifact, checked(data, artifact, url))
            if time.monotonic() - reported >= REPORT_S:
                reported = time.monotonic()
                progress(f"  {len(left) - len(running)} of {len(left)} jars")


def take_copies(
    artifacts: Sequence[Artifact],
    target: Path,
    kept: Callable[[Artifact], Iterable[Path]],
    progress: Callable[[str], None],
) -> list[Artifact]:
    """Puts what has a `kept` copy into `target`/CLASS PATH; the artifacts that have none."""
    left = []
    for artifact in artifacts:
        data = _kept(artifact, kept(artifact), progress)
        if data is None:
            left.append(artifact)
        else:
            _store(target, artifact, data)
    return left


def local_copies(trees: Sequence[Path], repository: Path) -> Callable[[Artifact], Iterable[Path]]:
    """Where a jar may already be: in one of the `trees`, or in Maven's local `repository`."""

    def copies(artifact: Artifact) -> Iterator[Path]:
        for tree in trees:
            for folder in artifact.folders:
                for place in PLACES.get(folder, ()):
                    yield tree / place / artifact.file
        yield repository / artifact.path

    return copies


def _kept(
    artifact: Artifact, copies: Iterable[Path], progress: Callable[[str], None]
) -> bytes | None:
    for path in copies:
        try:
            return checked(path.read_bytes(), artifact, str(path))
        except OSError:
            continue  # no copy there
        except ImageError as error:
            progress(f"not used: {error}")
    return None


def _store(target: Path, artifact: Artifact, data: bytes) -> None:
    for folder in artifact.folders:
        path = target / folder / artifact.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@contextmanager
def _threads(stop: threading.Event) -> Iterator[ThreadPoolExecutor]:
    """Threads that end soon when the caller fails."""
    pool = ThreadPoolExecutor(DOWNLOADS_AT_ONCE)
    try:
        yield pool
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _download(url: str, deadline: float, stop: threading.Event) -> tuple[str, bytes]:
    for attempt in range(1, DOWNLOAD_TRIES + 1):
        try:
            return url, _read(url, deadline, stop)
        except (OSError, HTTPException) as error:
            absent = isinstance(error, HTTPError) and error.code == 404
            if absent or attempt == DOWNLOAD_TRIES or stop.wait(attempt):
                raise ImageError(
                    f"{url}: {error}: check the network, or name a mirror of Maven Central in"
                    " SVCD_MAVEN_REPOSITORY"
                ) from error
    raise AssertionError("unreachable")


def _read(url: str, deadline: float, stop: threading.Event) -> bytes:
    data = bytearray()
    with urlopen(Request(url, headers={"User-Agent": "svcd"}), timeout=READ_TIMEOUT_S) as answer:
        while chunk := answer.read(2**16):
            data += chunk
            if len(data) > MOST_BYTES:
                raise ImageError(f"{url} has more than {MOST_BYTES // 2**20} MiB, and no jar has")
            if stop.is_set() or time.monotonic() > deadline:
                raise OSError(f"not complete after {FETCH_TIMEOUT_S:.0f} s")
        if getattr(answer, "length", 0):
            raise OSError(f"ended after {len(data)} bytes")
    return bytes(data)
