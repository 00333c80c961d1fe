"""The list of released jars, and what is done with a jar that is not the listed one."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.artifacts import (
    Archive,
    Artifact,
    parse,
    parse_archive,
    poms_digest,
    read_list,
    take_copies,
)
from svcd.provisioning.distributions.vanilla.image.errors import ImageError

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
DEF = "cb8379ac2098aa165029e3938a51da0bcecfc008fd6795f401178647f96c5b34"
SMART = Artifact(
    ABC, ("hadoop", "oozie"), "net/minidev/json-smart/2.3/json-smart-2.3.jar", "Apache 2.0 | MIT"
)
EPOLL = Artifact(DEF, ("hadoop",), "io/netty/epoll/4.1.Final/epoll-4.1.Final-linux-x86_64.jar")
TEXT = f"""\
# The jars of the image: SHA-256, class paths, path in a Maven repository, licence of the
# POM. Written by: make digests
# poms: {ABC}
{DEF}  hadoop  io/netty/epoll/4.1.Final/epoll-4.1.Final-linux-x86_64.jar
{ABC}  hadoop,oozie  net/minidev/json-smart/2.3/json-smart-2.3.jar  Apache 2.0 | MIT
"""

CORE = Artifact(ABC, ("spark",), "org/apache/spark/core/9.0/core-9.0.jar", "Apache License 2.0")
ZIP = Artifact(DEF, ("python",), "py4j/0.10/py4j-0.10-src.zip", "BSD 3-Clause")
URL = "https://files.example/packages/pyspark-9.0.tar.gz"
ARCHIVE = Archive(DEF, 123, URL, "pyspark-9.0", "9.0", (CORE, ZIP))
ARCHIVE_TEXT = f"""\
# What the image takes of Spark's archive: SHA-256, folder, coordinates as a path, licence.
# Written by: make digests SPARK=VERSION
# archive: {DEF} 123 {URL}
{ABC}  spark  org/apache/spark/core/9.0/core-9.0.jar  Apache License 2.0
{DEF}  python  py4j/0.10/py4j-0.10-src.zip  BSD 3-Clause
"""


class ListTest(SynchronousTestCase):
    """artifacts.txt and spark/archive.txt."""

    def test_coordinates_follow_from_the_path(self) -> None:
        """The rest of the file's name is the classifier."""
        self.assertEqual(SMART.coordinates, ("net.minidev", "json-smart", "2.3", ""))
        self.assertEqual(EPOLL.coordinates, ("io.netty", "epoll", "4.1.Final", "linux-x86_64"))
        self.assertEqual(ARCHIVE.name_of(CORE), "pyspark-9.0/deps/jars/core-9.0.jar")
        self.assertEqual(ARCHIVE.name_of(ZIP), "pyspark-9.0/lib/py4j-0.10-src.zip")

    def test_damaged_line_is_refused_with_its_number(self) -> None:
        """A short digest, a path out of the repository or another kind of file."""
        for wrong in (
            f"{ABC[1:]}  hadoop  a/b/1/b-1.jar",
            f"{ABC}  hadoop  a/../../b-1.jar",
            f"{ABC}  hadoop  /a/b/1/b-1.jar",
            f"{ABC}  hadoop  a/b/1/b-1.sh",
            f"{ABC}  ../x  a/b/1/b-1.jar",
            "",
        ):
            error = self.assertRaises(ImageError, parse, f"# poms: {ABC}\n{wrong}\n")
            self.assertIn("artifacts.txt, line 2 cannot be read", str(error))
        error = self.assertRaises(ImageError, parse_archive, ARCHIVE_TEXT.replace("core/", "../"))
        self.assertIn("spark/archive.txt, line 4 cannot be read", str(error))
        error = self.assertRaises(ImageError, parse_archive, ARCHIVE_TEXT.replace("archive: ", ""))
        self.assertIn("names no archive: make digests SPARK=VERSION", str(error))

    def test_list_older_than_the_poms_is_refused(self) -> None:
        recipe = Path(self.mktemp())
        (recipe / "poms").mkdir(parents=True)
        (recipe / "poms" / "pom.xml").write_text("one")
        text = TEXT.replace(f"# poms: {ABC}", f"# poms: {poms_digest(recipe)}")
        (recipe / "artifacts.txt").write_text(text)
        self.assertEqual(read_list(recipe), (EPOLL, SMART))
        (recipe / "poms" / "pom.xml").write_text("two")
        error = self.assertRaises(ImageError, read_list, recipe)
        self.assertEqual(
            str(error),
            f"{recipe}/poms has changed since artifacts.txt was written: make digests",
        )


class CopiesTest(SynchronousTestCase):
    """Files that are on this machine."""

    def setUp(self) -> None:
        base = Path(self.mktemp()).absolute()
        self.maven, self.target, self.tree = base / "m2", base / "jars", base / "tree"
        self.said: list[str] = []

    def put(self, folder: Path, path: str, data: bytes) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)

    def missing(self, *artifacts: Artifact) -> tuple[Artifact, ...]:
        return take_copies(artifacts, self.target, (self.tree,), self.maven, self.said.append)

    def test_copies_go_to_every_class_path(self) -> None:
        """They come from another tree and from Maven's own repository."""
        self.put(self.tree, "hadoop/lib/json-smart-2.3.jar", b"abc")
        self.put(self.maven, EPOLL.path, b"def")
        self.assertEqual(self.missing(SMART, EPOLL, CORE), (CORE,))
        jars = {p.relative_to(self.target).as_posix(): p.read_bytes()
                for p in self.target.rglob("*.jar")}  # fmt: skip
        self.assertEqual(
            jars,
            {
                "hadoop/json-smart-2.3.jar": b"abc",
                "oozie/json-smart-2.3.jar": b"abc",
                "hadoop/epoll-4.1.Final-linux-x86_64.jar": b"def",
            },
        )
        self.assertEqual(self.said, [])

    def test_wrong_digest_of_a_copy_is_passed_over(self) -> None:
        """The copy is named, and the jar counts as missing."""
        self.put(self.maven, SMART.path, b"def")
        self.assertEqual(self.missing(SMART), (SMART,))
        self.assertEqual(
            self.said,
            [f"not used: {self.maven}/{SMART.path} has the SHA-256 {DEF}, expected: {ABC}"],
        )
