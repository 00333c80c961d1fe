"""The list of released jars, and what is done with a jar that is not the listed one."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image import artifacts as module
from svcd.provisioning.distributions.vanilla.image.artifacts import (
    Artifact,
    ArtifactList,
    checked,
    fetch,
    local_copies,
    parse,
    poms_digest,
    read_list,
    text_of,
)
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from svcd.provisioning.distributions.vanilla.image.layout import RECIPE

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


class ListTest(SynchronousTestCase):
    """artifacts.txt."""

    def test_written_in_the_order_of_paths(self) -> None:
        """The text depends on the artifacts alone."""
        self.assertEqual(text_of(ArtifactList(ABC, (SMART, EPOLL))), TEXT)

    def test_read(self) -> None:
        """What was written is read back."""
        self.assertEqual(parse(TEXT), ArtifactList(ABC, (EPOLL, SMART)))

    def test_coordinates(self) -> None:
        """They follow from the path; the rest of the file's name is the classifier."""
        self.assertEqual(SMART.coordinates, ("net.minidev", "json-smart", "2.3", ""))
        self.assertEqual(EPOLL.coordinates, ("io.netty", "epoll", "4.1.Final", "linux-x86_64"))

    def test_damaged_line_is_refused(self) -> None:
        """A short digest, a path out of the repository or another kind of file: with the line."""
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

    def test_list_older_than_the_poms_is_refused(self) -> None:
        """A changed pom asks for new digests."""
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

    def test_list_of_the_recipe(self) -> None:
        """It is that of the poms, and no class path holds two jars of one name."""
        artifacts = read_list(RECIPE)
        held = [(folder, each.file) for each in artifacts for folder in each.folders]
        self.assertEqual(len(held), len(set(held)))
        self.assertEqual({folder for folder, _ in held}, {"hadoop", "oozie", "launcher", "pig"})
        self.assertGreater(len(artifacts), 300)


class FetchTest(SynchronousTestCase):
    """Jars from local copies and from a repository."""

    def setUp(self) -> None:
        base = Path(self.mktemp()).absolute()
        self.repository, self.local = base / "repository", base / "m2"
        self.target, self.tree = base / "jars", base / "tree"
        self.said: list[str] = []

    def put(self, folder: Path, path: str, data: bytes) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)

    def fetch(self, *artifacts: Artifact) -> None:
        copies = local_copies((self.tree,), self.local)
        url = self.repository.as_uri()
        fetch(artifacts, self.target, url, copies, self.said.append)

    def test_jars_come_from_the_repository(self) -> None:
        """Each goes to every class path of its line."""
        self.put(self.repository, SMART.path, b"abc")
        self.put(self.repository, EPOLL.path, b"def")
        self.fetch(SMART, EPOLL)
        found = {p.relative_to(self.target).as_posix() for p in self.target.rglob("*.jar")}
        self.assertEqual(
            found,
            {
                "hadoop/json-smart-2.3.jar",
                "oozie/json-smart-2.3.jar",
                "hadoop/epoll-4.1.Final-linux-x86_64.jar",
            },
        )
        self.assertEqual((self.target / "oozie/json-smart-2.3.jar").read_bytes(), b"abc")
        self.assertEqual(self.said, [f"fetching 2 of 2 jars from {self.repository.as_uri()}"])

    def test_progress(self) -> None:
        """How many have come, now and then."""
        self.patch(module, "REPORT_S", 0.0)
        self.put(self.repository, SMART.path, b"abc")
        self.put(self.repository, EPOLL.path, b"def")
        self.fetch(SMART, EPOLL)
        self.assertEqual(self.said[1:], ["  1 of 2 jars", "  2 of 2 jars"])

    def test_local_copies_save_the_download(self) -> None:
        """The old tree and Maven's own repository; nothing else is asked."""
        self.put(self.tree, "hadoop/lib/json-smart-2.3.jar", b"abc")
        self.put(self.local, EPOLL.path, b"def")
        self.fetch(SMART, EPOLL)
        self.assertEqual(len(list(self.target.rglob("*.jar"))), 3)
        self.assertEqual(self.said, [])

    def test_wrong_digest_of_a_download_is_refused(self) -> None:
        """With the artifact, both digests and what to do; the jar is not kept."""
        self.put(self.repository, SMART.path, b"def")
        error = self.assertRaises(ImageError, self.fetch, SMART)
        self.assertEqual(
            str(error),
            f"{self.repository.as_uri()}/{SMART.path} has the SHA-256 {DEF}, but the recipe"
            f" expects {ABC}: nothing of it was used. Find out why before you use this repository;"
            " another one can be set with SVCD_MAVEN_REPOSITORY. Only after a change of a"
            " version: make digests",
        )
        self.assertFalse(self.target.exists())

    def test_wrong_digest_of_a_copy_is_passed_over(self) -> None:
        """The jar is downloaded instead, and the copy is named."""
        self.put(self.local, SMART.path, b"def")
        self.put(self.repository, SMART.path, b"abc")
        self.fetch(SMART)
        self.assertEqual((self.target / "hadoop/json-smart-2.3.jar").read_bytes(), b"abc")
        self.assertTrue(self.said[0].startswith(f"not used: {self.local}/{SMART.path} has the"))

    def test_absent_jar_names_the_mirror_setting(self) -> None:
        """The message says where it was looked for and what to set."""
        error = self.assertRaises(ImageError, self.fetch, SMART)
        self.assertIn(f"{self.repository.as_uri()}/{SMART.path}: ", str(error))
        self.assertIn("name a mirror of Maven Central in SVCD_MAVEN_REPOSITORY", str(error))

    def test_right_digest(self) -> None:
        """The data is handed on."""
        self.assertEqual(checked(b"abc", SMART, "here"), b"abc")
