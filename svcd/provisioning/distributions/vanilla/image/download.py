"""The one downloader of the image: files with known digests, several at once.

A file counts only when it is complete and has its digest. After a broken connection the download
continues at the same byte.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from svcd.provisioning.distributions.vanilla.image.errors import ImageError

DOWNLOADS_AT_ONCE = 8
TRIES = 3
READ_TIMEOUT_S = 30.0
DEADLINE_S = 3600.0
"""The longest time for all files of a call."""
REPORT_S = 10.0
PAUSE_S = 1.0
"""The pause before the second try; the third one waits twice as long."""
_CHUNK_BYTES = 2**18


@dataclass(frozen=True)
class File:
    """A file of a server. path: its place here. advice: how to name another place of the file."""

    url: str
    sha256: str
    most_bytes: int
    path: Path
    advice: str


Opener = Callable[..., Any]


def download(
    files: Sequence[File], progress: Callable[[str], None], opener: Opener = urlopen
) -> None:
    """Write each file to its path; report the progress every ten seconds.

    Raises: ImageError (a file cannot be fetched, is too large, or has another digest), OSError (a
    file cannot be written).
    """
    stop, deadline = threading.Event(), time.monotonic() + DEADLINE_S
    pool = ThreadPoolExecutor(DOWNLOADS_AT_ONCE)
    try:
        left = {pool.submit(_write, file, _Source(file, deadline, stop, opener)) for file in files}
        while left:
            done, left = wait(left, REPORT_S, FIRST_EXCEPTION)
            for future in done:
                future.result()
            if left:
                size = sum(file.path.stat().st_size for file in files if file.path.exists())
                number = len(files) - len(left)
                progress(f"  {number} of {len(files)} files, {size // 10**6} MB")
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _write(file: File, source: _Source) -> None:
    digest, size_bytes = hashlib.sha256(), 0
    file.path.parent.mkdir(parents=True, exist_ok=True)
    with file.path.open("wb") as sink:
        for chunk in source.chunks():
            size_bytes += len(chunk)
            if size_bytes > file.most_bytes:
                raise ImageError(f"{file.url} has more than {file.most_bytes} bytes: {file.advice}")
            digest.update(chunk)
            sink.write(chunk)
    if digest.hexdigest() != file.sha256:
        file.path.unlink()
        raise ImageError(
            f"{file.url} has the SHA-256 {digest.hexdigest()}, but the recipe expects"
            f" {file.sha256}: nothing of it was used. Find out why before you use this place;"
            f" {file.advice}. Only after a change of a version: make digests"
        )


class _Source:
    """Reads a file from its server, over several connections when one breaks."""

    def __init__(self, file: File, deadline: float, stop: threading.Event, opener: Opener) -> None:
        self._file, self._deadline, self._stop, self._opener = file, deadline, stop, opener
        self._done_bytes = self._failures = 0

    def chunks(self) -> Iterator[bytes]:
        """The contents in order. Raises: ImageError (there is no further try)."""
        while True:
            try:
                with self._open() as answer:
                    while chunk := answer.read(_CHUNK_BYTES):
                        self._failures = 0
                        self._done_bytes += len(chunk)
                        yield chunk
                        if self._stop.is_set() or time.monotonic() > self._deadline:
                            raise OSError(f"not complete after {DEADLINE_S:.0f} s")
                    if not getattr(answer, "length", 0):
                        return
                    raise OSError(f"ended after {self._done_bytes} bytes")
            except (OSError, HTTPException) as error:
                self._wait_after(error)

    def _open(self) -> Any:
        headers = {"User-Agent": "svcd"}
        if self._done_bytes:
            headers["Range"] = f"bytes={self._done_bytes}-"
        answer = self._opener(Request(self._file.url, headers=headers), timeout=READ_TIMEOUT_S)
        # a server without ranges sends the beginning again
        known = 0 if getattr(answer, "status", None) == 206 else self._done_bytes
        while known and (passed := answer.read(min(known, _CHUNK_BYTES))):
            known -= len(passed)
        return answer

    def _wait_after(self, error: Exception) -> None:
        """Raises: ImageError (there is no further try)."""
        self._failures += 1
        refused = isinstance(error, HTTPError) and 400 <= error.code < 500
        final = refused or self._file.url.startswith("file:")
        late = time.monotonic() > self._deadline
        if final or late or self._failures >= TRIES or self._stop.wait(PAUSE_S * self._failures):
            raise ImageError(
                f"{self._file.url}: {_words(error)}: check the network; {self._file.advice}"
            ) from error


def _words(error: Exception) -> str:
    """An error without the words of the library that raised it."""
    cause: object = error
    if isinstance(error, URLError) and not isinstance(error, HTTPError):
        cause = error.reason
    return (isinstance(cause, OSError) and cause.strerror) or str(cause)
