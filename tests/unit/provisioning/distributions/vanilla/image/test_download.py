"""Downloads from a server whose answers are scripted, and from files."""

from __future__ import annotations

import io
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image import download as module
from svcd.provisioning.distributions.vanilla.image.download import File, Opener, download
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from tests.unit.provisioning.distributions.vanilla.image.test_artifacts import ABC, DEF

URL = "https://files.example/a.jar"


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
    """One file of three bytes, and two."""

    def setUp(self) -> None:
        self.base = Path(self.mktemp()).absolute()
        self.said: list[str] = []
        self.ranges: list[str | None] = []

    def file(self, url: str = URL, sha256: str = ABC, most_bytes: int = 3) -> File:
        name = url.rpartition("/")[2]
        return File(url, sha256, most_bytes, self.base / "downloads" / name, "try a mirror")

    def answers(self, *answers: Broken | Exception) -> Opener:
        left = list(answers)

        def opener(request: Request, timeout: float) -> Broken:
            self.ranges.append(request.get_header("Range"))
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return opener

    def fetched(self, *answers: Broken | Exception, most_bytes: int = 3) -> bytes:
        file = self.file(most_bytes=most_bytes)
        download([file], self.said.append, self.answers(*answers))
        return file.path.read_bytes()

    def failure(self, *answers: Broken | Exception) -> str:
        return str(self.assertRaises(ImageError, self.fetched, *answers))

    def test_files_are_written_to_their_paths(self) -> None:
        """All of a call."""
        self.base.mkdir()
        (self.base / "a").write_bytes(b"abc")
        (self.base / "d").write_bytes(b"def")
        files = [
            self.file((self.base / "a").as_uri()),
            self.file((self.base / "d").as_uri(), DEF),
        ]
        download(files, self.said.append, urlopen)
        self.assertEqual([file.path.read_bytes() for file in files], [b"abc", b"def"])
        self.assertEqual(self.said, [])

    def test_broken_connection_is_continued(self) -> None:
        """The server is asked for the rest, and the digest is that of the whole.

        The beginning that a server without ranges sends again is passed over.
        """
        self.patch(module, "PAUSE_S", 0.0)
        reset = ConnectionResetError(104, "Connection reset by peer")
        late = TimeoutError("timed out")
        answers = Broken(b"a", 200, reset), late, Broken(b"bc", 206, None)
        self.assertEqual(self.fetched(*answers), b"abc")
        self.assertEqual(self.ranges, [None, "bytes=1-", "bytes=1-"])
        self.assertEqual(self.fetched(Broken(b"ab", 200, reset), Broken(b"abc", 200, None)), b"abc")

    def test_tries_end(self) -> None:
        """Three failures without a byte between them; each byte gives new tries. A 404 is final."""
        self.patch(module, "PAUSE_S", 0.0)
        gone = URLError(OSError(101, "Network is unreachable"))
        text = self.failure(gone, gone, Broken(b"a", 200, gone), gone, gone)
        self.assertEqual(text, f"{URL}: Network is unreachable: check the network; try a mirror")
        self.assertEqual(len(self.ranges), 5)
        text = self.failure(HTTPError(URL, 404, "Not Found", Message(), None))
        self.assertIn(f"{URL}: HTTP Error 404: Not Found: check", text)

    def test_time_limit(self) -> None:
        """A server that is slow for ever does not hold a build."""
        self.patch(module, "DEADLINE_S", -1.0)
        self.assertIn("not complete after", self.failure(Broken(b"abc", 200, None)))

    def test_wrong_digest(self) -> None:
        """The message has both digests and what to do; the file is not kept.

        Reading ends at the size that a file can have.
        """
        text = self.failure(Broken(b"abcd", 200, None))
        self.assertEqual(text, f"{URL} has more than 3 bytes: try a mirror")
        self.assertEqual(
            self.failure(Broken(b"def", 200, None)),
            f"{URL} has the SHA-256 {DEF}, but the recipe expects {ABC}: nothing of it was used."
            " Find out why before you use this place; try a mirror. Only after a change of a"
            " version: make digests",
        )
        self.assertFalse(self.file().path.exists())
