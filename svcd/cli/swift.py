"""The caller's object store (Swift): lists and writes objects, with the login of the command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import quote

from svcd.cli.cloud import Cloud
from svcd.cli.exits import REFUSED, UNREACHABLE, CommandError
from svcd.cli.http import Answer, Http, Lost
from svcd.cli.session import Session

_TRIES: Final = 3
"""Attempts for one file."""
_MOST_PAGES: Final = 100
_SILENCE_S: Final = 60.0
"""The longest time without a byte of an object."""
_FINE: Final = range(200, 300)


class ObjectStore:
    """The objects of one account. token: gives the present token of the login."""

    def __init__(self, http: Http, base: str, token: Callable[[], str]) -> None:
        self._http = http
        self._base = base
        self._token = token

    def make(self, container: str) -> None:
        """Create a container, unless it is there."""
        self._done("PUT", container, b"")

    def has(self, container: str) -> bool:
        """Whether the container exists."""
        return self._send("GET", f"{container}?limit=1").status != 404

    def list(self, container: str, prefix: str) -> Sequence[Mapping[str, Any]]:
        """The objects below `prefix`, with name, bytes and hash; none in a missing container."""
        found: list[Mapping[str, Any]] = []
        for _ in range(_MOST_PAGES):
            marker = quote(str(found[-1].get("name", "")), safe="") if found else ""
            query = f"format=json&prefix={quote(prefix, safe='')}&marker={marker}"
            answer = self._send("GET", f"{container}?{query}")
            if answer.status == 404 or answer.status == 204:
                break
            rows = self._fine(answer, container).json
            if not isinstance(rows, list) or not rows:
                break
            found += [row for row in rows if isinstance(row, dict)]
        return found

    def upload(self, container: str, name: str, file: Path, size: int) -> None:
        """Write an object with the content of a file of `size` bytes. Raises CommandError."""
        path = f"{container}/{quote(name)}"
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        for attempt in range(_TRIES):
            try:
                with file.open("rb") as opened:
                    answer = self._send("PUT", path, opened, headers)
            except Lost:
                if attempt == _TRIES - 1:
                    raise
                continue
            except OSError as error:
                text = f"{file} cannot be read: {error.strerror}"
                raise CommandError(text) from None
            self._fine(answer, path)
            return

    def read(self, container: str, name: str) -> Iterator[bytes]:
        """The content of an object in pieces. Raises CommandError."""
        path = f"{container}/{quote(name)}"
        headers = {"X-Auth-Token": self._token()}
        url = f"{self._base}/{path}"
        answer, pieces = self._http.stream(url, headers, _SILENCE_S)
        self._fine(answer, path)
        return pieces

    def write(self, container: str, name: str, data: bytes) -> None:
        """Write a small object."""
        self._done("PUT", f"{container}/{quote(name)}", data)

    def remove(self, container: str) -> None:
        """Delete a container with its objects, if it exists."""
        for row in self.list(container, ""):
            self._done("DELETE", f"{container}/{quote(str(row['name']))}")
        if self.has(container):
            self._done("DELETE", container)

    def _done(self, method: str, path: str, body: bytes | None = None) -> Answer:
        return self._fine(self._send(method, path, body), path)

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | BinaryIO | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        given = {"X-Auth-Token": self._token(), **(headers or {})}
        return self._http.send(method, f"{self._base}/{path}", body, given)

    def _fine(self, answer: Answer, path: str) -> Answer:
        if answer.status in _FINE:
            return answer
        where = f"{self._base}/{path.partition('?')[0]}"
        what = {
            401: "it refuses the login",
            403: "the login may not do this",
            404: "it does not exist",
            413: "the quota is used up",
            507: "the object store is full",
        }.get(answer.status, f"it answered {answer.status}")
        code = UNREACHABLE if answer.status >= 500 else REFUSED
        raise CommandError(f"object store: {where}: {what}", code)


def of(session: Session) -> ObjectStore:
    """The object store of the caller. Raises CommandError."""
    base = Cloud(session).url("object-store")
    return ObjectStore(session.http, base, lambda: session.api.door.token)


def account(session: Session) -> Mapping[str, str]:
    """User and password with which jobs use the object store. Raises CommandError."""
    environment = session.environment
    for user, password in (
        ("SVCD_OBJSTORE_USER", "SVCD_OBJSTORE_PASSWORD"),
        ("OS_USERNAME", "OS_PASSWORD"),
    ):
        if environment.get(user) and environment.get(password):
            return {"user": environment[user], "password": environment[password]}
    known = session.endpoints
    if known.get("username") and known.get("password"):
        return {"user": str(known["username"]), "password": str(known["password"])}
    raise CommandError(
        "a job reads and writes the object store with a user and password, and this login has"
        " none: set SVCD_OBJSTORE_USER and SVCD_OBJSTORE_PASSWORD, or use hdfs:///… or a data"
        " source that exists (nothing was uploaded)",
        REFUSED,
    )
