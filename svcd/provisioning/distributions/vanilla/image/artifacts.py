"""The released files of the image: the lists of the recipe, and the copies on this machine.

`artifacts.txt` has one line for each jar of the tree that comes from Maven Central: SHA-256, the
class paths that hold it, its path in a Maven repository, and the licence that its POM declares.
`spark/archive.txt` has such lines for the members of one archive, the source package of PySpark on
PyPI: no Maven repository has the YARN part of Spark. Its head has the archive's own digest and URL.

`make digests` writes both lists. svcd uses a file only when it has the digest of its line, so
it need not trust the place of the file. A build runs no Maven, hence no plugin without a digest.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from svcd.provisioning.distributions.vanilla.image.errors import ImageError

LIST = "artifacts.txt"
SPARK_LIST = "spark/archive.txt"

_LINE = re.compile(
    r"(?P<sha256>[0-9a-f]{64})  (?P<folders>[a-z]+(?:,[a-z]+)*)  "
    r"(?P<path>(?:[A-Za-z0-9][A-Za-z0-9._+-]*/){3,}[A-Za-z0-9][A-Za-z0-9._+-]*\.jar"
    r"|(?:[a-z0-9][a-z0-9._-]*/){2}(?:[a-z0-9][a-z0-9._-]*\.zip|LICENSE|NOTICE))"
    r"(?:  (?P<licence>\S.*))?"
)
_POMS = re.compile(r"^# poms: ([0-9a-f]{64})$", re.MULTILINE)
_ARCHIVE = re.compile(
    r"^# archive: (?P<sha256>[0-9a-f]{64}) (?P<size>[0-9]{1,12})"
    r" (?P<url>https://\S+/(?P<root>pyspark-(?P<version>[0-9][0-9a-z.]*))\.tar\.gz)$",
    re.MULTILINE,
)

PLACES: Mapping[str, tuple[str, ...]] = {
    "hadoop": ("hadoop/lib",),
    "oozie": ("oozie/lib",),
    "launcher": ("oozie/sharelib/oozie", "oozie/sharelib/mapreduce-streaming"),
    "pig": ("oozie/sharelib/pig", "pig/published"),
    "spark": ("spark/jars",),
    "python": ("spark/python/published", "spark/python/lib"),
    "notices": ("spark",),
}
"""Class path of a line -> the folders of a tree that have its files."""

_MEMBERS = {"spark": "deps/jars/", "python": "lib/", "notices": ""}
"""Class path of a member of Spark's archive -> its folder in the archive."""


@dataclass(frozen=True)
class Artifact:
    """A released file. folders: the class paths that hold it. path: in a Maven repository.

    licence: the names that its POM declares; empty when it declares none. A file that is no jar has
    the name and version of a package of PyPI instead of a path in a Maven repository.
    """

    sha256: str
    folders: tuple[str, ...]
    path: str
    licence: str = ""

    @property
    def file(self) -> str:
        """The last part of the path."""
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
class Archive:
    """The contents of spark/archive.txt. root: the top folder. members: the files for the tree."""

    sha256: str
    size_bytes: int
    url: str
    root: str
    version: str
    members: tuple[Artifact, ...]

    @property
    def file(self) -> str:
        """The last part of the URL."""
        return self.url.rpartition("/")[2]

    def name_of(self, member: Artifact) -> str:
        """The member's name in the archive."""
        return f"{self.root}/{_MEMBERS[member.folders[0]]}{member.file}"


def parse(text: str, name: str = LIST) -> tuple[Artifact, ...]:
    """The lines of a list. Raises: ImageError (a line is damaged), with its number."""
    artifacts = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ImageError(f"{name}, line {number} cannot be read: {line[:100]!r}: make digests")
        folders = tuple(match["folders"].split(","))
        licence = match["licence"] or ""
        artifacts.append(Artifact(match["sha256"], folders, match["path"], licence))
    return tuple(artifacts)


def text_of_line(artifact: Artifact) -> str:
    """The line of an artifact in a list."""
    end = f"  {artifact.licence}" if artifact.licence else ""
    return f"{artifact.sha256}  {','.join(artifact.folders)}  {artifact.path}{end}"


def read_list(recipe: Path) -> tuple[Artifact, ...]:
    """The artifacts of artifacts.txt. Raises: ImageError (damaged, or older than the poms)."""
    text = (recipe / LIST).read_text(encoding="utf-8")
    artifacts = parse(text)
    if _POMS.findall(text) != [poms_digest(recipe)]:
        raise ImageError(f"{recipe / 'poms'} has changed since {LIST} was written: make digests")
    return artifacts


def parse_archive(text: str) -> Archive:
    """The contents of spark/archive.txt. Raises: ImageError (damaged)."""
    members = parse(text, SPARK_LIST)
    head = _ARCHIVE.search(text)
    if head is None:
        raise ImageError(f"{SPARK_LIST} names no archive: make digests SPARK=VERSION")
    size_bytes = int(head["size"])
    return Archive(head["sha256"], size_bytes, head["url"], head["root"], head["version"], members)


def read_archive(recipe: Path) -> Archive:
    """The archive of a recipe. Raises: ImageError (damaged)."""
    return parse_archive((recipe / SPARK_LIST).read_text(encoding="utf-8"))


def poms_digest(recipe: Path) -> str:
    """A digest of the poms; equal poms ask for equal jars."""
    digest = hashlib.sha256()
    for path in sorted((recipe / "poms").iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def take_copies(
    artifacts: Sequence[Artifact],
    target: Path,
    trees: Sequence[Path],
    repository: Path,
    progress: Callable[[str], None],
) -> tuple[Artifact, ...]:
    """Put copies of this machine into `target`/CLASS PATH; return the artifacts without a copy.

    trees: other software trees. repository: the local one of Maven.
    """
    missing = []
    for artifact in artifacts:
        for copy in local_copies(artifact, trees, repository):
            if not copy.is_file():
                continue
            sha256 = sha256_of(copy)
            if sha256 == artifact.sha256:
                place(copy, artifact, target)
                break
            progress(f"not used: {copy} has the SHA-256 {sha256}, expected: {artifact.sha256}")
        else:
            missing.append(artifact)
    return tuple(missing)


def local_copies(artifact: Artifact, trees: Sequence[Path], repository: Path) -> Iterator[Path]:
    """The places of copies of an artifact: in the `trees`, and in Maven's `repository`."""
    for tree in trees:
        for folder in artifact.folders:
            for place_of_tree in PLACES.get(folder, ()):
                yield tree / place_of_tree / artifact.file
    yield repository / artifact.path


def place(file: Path, artifact: Artifact, target: Path) -> None:
    """Copy a file into `target`/CLASS PATH, for each class path of its line."""
    for folder in artifact.folders:
        path = target / folder / artifact.file
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, path)


def sha256_of(file: Path) -> str:
    """The digest of a file in hexadecimal digits. Raises: OSError."""
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
