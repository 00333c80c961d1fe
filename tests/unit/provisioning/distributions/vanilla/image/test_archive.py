"""The archive of Spark: what is taken of it, and what becomes of a wrong one."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import tarfile
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image import archive as module
from svcd.provisioning.distributions.vanilla.image.archive import (
    Archive,
    Download,
    parse_archive,
    place,
    read_archive,
    text_of_archive,
    unpack,
)
from svcd.provisioning.distributions.vanilla.image.artifacts import Artifact, local_copies
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from svcd.provisioning.distributions.vanilla.image.layout import RECIPE
from tests.unit.provisioning.distributions.vanilla.image.test_artifacts import ABC, DEF

CORE = Artifact(ABC, ("spark",), "org/apache/spark/core/9.0/core-9.0.jar", "Apache License 2.0")
ZIP = Artifact(DEF, ("python",), "py4j/0.10/py4j-0.10-src.zip", "BSD 3-Clause")
URL = "https://files.example/packages/pyspark-9.0.tar.gz"
TEXT = f"""\
# What the image takes of Spark's archive: SHA-256, folder, coordinates as a path, licence.
# Written by: make digests SPARK=VERSION
# archive: {DEF} 123 {URL}
{ABC}  spark  org/apache/spark/core/9.0/core-9.0.jar  Apache License 2.0
{DEF}  python  py4j/0.10/py4j-0.10-src.zip  BSD 3-Clause
"""
FILES = (
    ("pyspark-9.0/deps/jars/core-9.0.jar", b"abc"),
    ("pyspark-9.0/lib/py4j-0.10-src.zip", b"def"),
)


def packed(*files: tuple[str, bytes], links: tuple[tuple[str, str], ...] = ()) -> bytes:
    """A tar.gz of these files, and of symbolic links."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for name, target in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
        for name, data in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return gzip.compress(sink.getvalue(), mtime=0)


class ListTest(SynchronousTestCase):
    """spark/archive.txt."""

    def test_read_and_written(self) -> None:
        """What was written is read back."""
        archive = Archive(DEF, 123, URL, "pyspark-9.0", "9.0", (CORE, ZIP))
        self.assertEqual(parse_archive(TEXT), archive)
        self.assertEqual(text_of_archive(archive), TEXT)
        self.assertEqual(archive.name_of(CORE), "pyspark-9.0/deps/jars/core-9.0.jar")
        self.assertEqual(archive.name_of(ZIP), "pyspark-9.0/lib/py4j-0.10-src.zip")

    def test_damaged_list_is_refused(self) -> None:
        """With its name, the line and the command."""
        error = self.assertRaises(ImageError, parse_archive, TEXT.replace("core/", "../"))
        self.assertIn("spark/archive.txt, line 4 cannot be read", str(error))
        error = self.assertRaises(ImageError, parse_archive, TEXT.replace("archive: ", ""))
        self.assertIn("names no archive: make digests SPARK=VERSION", str(error))

    def test_list_of_the_recipe(self) -> None:
        """Spark with YARN and Connect, its Python side, and its licence."""
        archive = read_archive(RECIPE)
        files = {each.file for each in archive.members}
        self.assertEqual(len(files), len(archive.members))
        for file in ("spark-yarn_2.13-4.2.0.jar", "spark-connect_2.13-4.2.0.jar", "pyspark.zip",
                     "py4j-0.10.9.9-src.zip", "LICENSE", "NOTICE"):  # fmt: skip
            self.assertIn(file, files)
        self.assertEqual(archive.version, "4.2.0")

    def test_place(self) -> None:
        """The setting wins: a URL as it is, a path as one."""
        archive = parse_archive(TEXT)
        self.assertEqual(place(archive, None), URL)
        self.assertEqual(place(archive, ""), URL)
        self.assertEqual(place(archive, "http://mirror/x"), "http://mirror/x")
        self.assertEqual(place(archive, "/a b/x.tar.gz"), "file:///a%20b/x.tar.gz")


class UnpackTest(SynchronousTestCase):
    """Small archives of made-up files."""

    def setUp(self) -> None:
        self.base = Path(self.mktemp()).absolute()
        self.base.mkdir()
        self.file, self.target = self.base / "pyspark-9.0.tar.gz", self.base / "jars"
        self.said: list[str] = []

    def unpack(self, data: bytes, *wanted: Artifact, listed: bytes | None = None) -> None:
        """listed: the archive that the recipe knows, when it is another one."""
        self.file.write_bytes(data)
        known = data if listed is None else listed
        digest = hashlib.sha256(known).hexdigest()
        archive = Archive(digest, len(known), URL, "pyspark-9.0", "9.0", wanted)
        unpack(archive, wanted, self.target, self.file.as_uri(), self.said.append)

    def found(self) -> dict[str, bytes]:
        files = (path for path in self.base.rglob("*") if path.is_file() and path != self.file)
        return {path.relative_to(self.base).as_posix(): path.read_bytes() for path in files}

    def test_wanted_members_only(self) -> None:
        """In the folder of their line; nothing else of the archive is written."""
        self.unpack(packed(("pyspark-9.0/setup.py", b"no"), *FILES), CORE, ZIP)
        self.assertEqual(
            self.found(),
            {"jars/spark/core-9.0.jar": b"abc", "jars/python/py4j-0.10-src.zip": b"def"},
        )

    def test_hostile_names_are_not_written(self) -> None:
        """Names that leave the folder, links of a wanted name: only the listed file counts."""
        hostile = (("/etc/evil", b"x"), ("../evil", b"x"), ("pyspark-9.0/../../evil", b"x"))
        links = (("pyspark-9.0/deps/jars/core-9.0.jar", str(self.base / "elsewhere")),)
        self.unpack(packed(*hostile, *FILES, links=links), CORE, ZIP)
        self.assertEqual(
            set(self.found()), {"jars/spark/core-9.0.jar", "jars/python/py4j-0.10-src.zip"}
        )

    def test_link_instead_of_a_file_is_missing(self) -> None:
        """A link is never followed."""
        data = packed(links=((FILES[0][0], "/etc/passwd"),))
        error = self.assertRaises(ImageError, self.unpack, data, CORE)
        self.assertIn(f"has no {FILES[0][0]}: make digests SPARK=VERSION", str(error))
        self.assertEqual(self.found(), {})

    def test_missing_member(self) -> None:
        """It is named."""
        error = self.assertRaises(ImageError, self.unpack, packed(FILES[0]), CORE, ZIP)
        self.assertEqual(
            str(error),
            f"{self.file.as_uri()} has no pyspark-9.0/lib/py4j-0.10-src.zip:"
            " make digests SPARK=VERSION",
        )

    def test_member_with_another_digest(self) -> None:
        """With both digests; it is not kept."""
        data = packed((FILES[0][0], b"def"), FILES[1])
        error = self.assertRaises(ImageError, self.unpack, data, CORE, ZIP)
        self.assertIn(f"core-9.0.jar in {self.file.as_uri()} has the SHA-256 {DEF}", str(error))
        self.assertIn(f"the recipe expects {ABC}: nothing of it was used", str(error))
        self.assertEqual(self.found(), {})

    def test_archive_with_another_digest(self) -> None:
        """Also when each member is right: with both digests and the setting."""
        data, listed = packed(*FILES), packed(*FILES, ("pyspark-9.0/more", b""))
        data += bytes(len(listed) - len(data))
        error = self.assertRaises(ImageError, self.unpack, data, CORE, ZIP, listed=listed)
        self.assertEqual(
            str(error),
            f"{self.file.as_uri()} has the SHA-256 {hashlib.sha256(data).hexdigest()}, but the"
            f" recipe expects {hashlib.sha256(listed).hexdigest()}: nothing of it was used. Find"
            " out why before you use this place; SVCD_SPARK_ARCHIVE names another place of"
            " pyspark-9.0.tar.gz, a URL or a path",
        )

    def test_truncated_archive(self) -> None:
        """How much there is, and what to do."""
        data = packed(*FILES)
        error = self.assertRaises(ImageError, self.unpack, data[:-9], CORE, ZIP, listed=data)
        self.assertIn(f"ended after {len(data) - 9} of {len(data)} bytes", str(error))
        self.assertIn("name the file in SVCD_SPARK_ARCHIVE (a URL or a path);", str(error))

    def test_longer_archive(self) -> None:
        """Reading ends at the size of the recipe."""
        data = packed(*FILES)
        error = self.assertRaises(ImageError, self.unpack, data + b"x", CORE, ZIP, listed=data)
        self.assertIn(f"has more than the {len(data)} bytes of the recipe", str(error))

    def test_no_archive_at_all(self) -> None:
        """A page of a proxy, half an archive, gzip of something else."""
        for data in (b"<html>sign in</html>", packed(*FILES)[:60], gzip.compress(b"x" * 999)):
            error = self.assertRaises(ImageError, self.unpack, data, CORE, ZIP)
            self.assertIn(f"{self.file.as_uri()} is damaged (", str(error))

    def test_archive_that_unpacks_without_end(self) -> None:
        """The size of what is read is bounded, whatever its headers say."""
        self.patch(module, "MOST_UNPACKED_BYTES", 2**20)
        data = packed((FILES[0][0], bytes(2**21)))
        error = self.assertRaises(ImageError, self.unpack, data, CORE)
        self.assertIn("the archive has more than 1 MiB", str(error))

    def test_disk_full(self) -> None:
        """The error is that of the system, for the caller."""
        if not Path("/dev/full").exists():
            raise SkipTest("this system has no /dev/full")
        self.target.mkdir()
        (self.target / "spark").symlink_to("/dev")
        full = Artifact(ABC, ("spark",), "org/apache/spark/full/9.0/full", "")
        data = packed(("pyspark-9.0/deps/jars/full", b"abc"))
        error = self.assertRaises(OSError, self.unpack, data, full)
        self.assertEqual(error.errno, errno.ENOSPC)

    def test_copies_in_trees(self) -> None:
        """A library of Python is looked for in trees of this recipe and of older ones."""
        copies = list(local_copies((Path("/a"), Path("/b")), Path("/m2"))(ZIP))
        self.assertEqual(
            [str(path) for path in copies],
            [
                "/a/spark/python/published/py4j-0.10-src.zip",
                "/a/spark/python/lib/py4j-0.10-src.zip",
                "/b/spark/python/published/py4j-0.10-src.zip",
                "/b/spark/python/lib/py4j-0.10-src.zip",
                "/m2/py4j/0.10/py4j-0.10-src.zip",
            ],
        )


class Broken(io.BytesIO):
    """An answer that breaks off after some bytes. status: that of HTTP."""

    def __init__(self, data: bytes, status: int, error: Exception | None) -> None:
        super().__init__(data)
        self.status, self.error = status, error

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if not data and self.error is not None:
            raise self.error
        return data


class DownloadTest(SynchronousTestCase):
    """A file that is read once, from a server whose answers are scripted."""

    def setUp(self) -> None:
        self.said: list[str] = []
        self.pauses: list[float] = []
        self.ranges: list[str | None] = []

    def download(self, size_bytes: int, *answers: Broken | Exception) -> Download:
        left = list(answers)

        def opener(request: Request, timeout: float) -> Broken:
            self.ranges.append(request.get_header("Range"))
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return Download(URL, size_bytes, self.said.append, self.pauses.append, opener=opener)

    def test_broken_connection_is_continued(self) -> None:
        """The server is asked for the rest, and the digest is that of the whole."""
        reset = ConnectionResetError(104, "Connection reset by peer")
        answers = Broken(b"a", 200, reset), TimeoutError("timed out"), Broken(b"bc", 206, None)
        with self.download(3, *answers) as download:
            self.assertEqual(download.rest(), ABC)
        self.assertEqual(self.ranges, [None, "bytes=1-", "bytes=1-"])
        self.assertEqual(self.pauses, [1, 2])
        self.assertEqual(
            self.said,
            [
                "  the download broke off (Connection reset by peer), trying again",
                "  the download broke off (timed out), trying again",
            ],
        )

    def test_server_that_knows_no_ranges(self) -> None:
        """What was read is passed over."""
        with self.download(3, Broken(b"ab", 200, None), Broken(b"abc", 200, None)) as download:
            self.assertEqual(download.rest(), ABC)

    def test_tries_end(self) -> None:
        """Three failures without a byte between them; each byte gives new tries."""
        gone = URLError(OSError(101, "Network is unreachable"))
        answers = (gone, gone, Broken(b"a", 200, gone), gone, gone)
        with self.download(3, *answers) as download:
            error = self.assertRaises(ImageError, download.rest)
        self.assertEqual(
            str(error),
            f"{URL}: Network is unreachable: check the network, or download the file in another"
            " way and name the file in SVCD_SPARK_ARCHIVE (a URL or a path); without Spark:"
            " --without spark",
        )
        self.assertEqual(self.pauses, [1, 2, 1, 2])
        self.assertEqual(
            self.said[0], "  the download did not begin (Network is unreachable), trying again"
        )

    def test_refusal_is_final(self) -> None:
        """A server that knows no such file is asked once."""
        with self.download(3, HTTPError(URL, 404, "Not Found", Message(), None)) as download:
            error = self.assertRaises(ImageError, download.read, 3)
        self.assertIn(f"{URL}: HTTP Error 404: Not Found: check", str(error))
        self.assertEqual(self.pauses, [])

    def test_time_limit(self) -> None:
        """A server that is slow for ever does not hold a build."""
        self.patch(module, "FETCH_TIMEOUT_S", -1.0)
        with self.download(3, Broken(b"abc", 200, None)) as download:
            error = self.assertRaises(ImageError, download.read, 1)
        self.assertIn("not complete after", str(error))

    def test_progress(self) -> None:
        """How much has come, now and then."""
        self.patch(module, "REPORT_S", 0.0)
        with self.download(2 * 10**6, Broken(bytes(2 * 10**6), 200, None)) as download:
            download.read(10**6)
        self.assertEqual(self.said, ["  1 of 2 MB"])

    def test_absent_file(self) -> None:
        """A path is looked at once."""
        url = (Path(self.mktemp()).absolute() / "none").as_uri()
        with Download(url, 3, self.said.append, self.pauses.append) as download:
            error = self.assertRaises(ImageError, download.read, 3)
        self.assertEqual(
            str(error),
            f"{url}: No such file or directory: name the file in SVCD_SPARK_ARCHIVE (a URL or a"
            " path); without Spark: --without spark",
        )
        self.assertEqual(self.pauses, [])
