"""HDFS through WebHDFS (ports.FileSystem).

A write takes two steps. The name node answers with the URL for the content (`noredirect=true`, or a
307 from an older one). The client then streams the content to that data node. It writes files to
their final name with `overwrite=true`, so a write can be repeated safely.

Source: Hadoop 3.5 and 2.10, WebHDFS REST API.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from svcd.clients.http import Answer, HttpClient
from svcd.clients.http_faults import kind_of
from svcd.model import foreign
from svcd.model.redaction import whole_forms, without_pieces
from svcd.ports.engine import EngineError
from svcd.ports.faults import Fault
from svcd.ports.machines import Location, Ways, reachable

_SERVICE: Final = "file system"
_PASSING: Final = frozenset({"SafeModeException", "StandbyException", "RetriableException"})
_MOST_MESSAGE: Final = 500
"""Characters of an error's text."""
_MOST_NAME: Final = 100
"""Characters of the name of a Java exception."""
_MOST_READ: Final = 4096
"""Characters that are read of an exception's message."""
_HEAD_BYTES: Final = 16_384
"""Bytes of sent content that are removed from error messages."""
_PIECE: Final = 20
"""Shortest part of sent content, in characters, that is removed from error messages."""
_URL: Final = "%/:?#[]@!$&'()*+,;=~"


class WebHdfsClient:
    """One client for all name nodes; `base` of each call names one, for example http://h:9870.

    write_timeout_s: longest time without progress while content is sent.
    """

    def __init__(
        self,
        http: HttpClient,
        timeout_s: float = 30.0,
        write_timeout_s: float = 60.0,
    ) -> None:
        self._http = http
        self._timeout_s = timeout_s
        self._write_timeout_s = write_timeout_s

    async def make_folders(self, base: Location, path: str, user: str, mode: str = "") -> None:
        query = {"op": "MKDIRS", **({"permission": mode} if mode else {})}
        answer = await self._call("PUT", base, path, user, query)
        if _object("MKDIRS", answer).get("boolean") is not True:
            raise EngineError(Fault.REFUSED, f"MKDIRS {path}: the folder was not created")

    async def write(
        self,
        base: Location,
        path: str,
        user: str,
        content: AsyncIterator[bytes],
        size: int | None,
        ways: Ways | None = None,
    ) -> None:
        query = {"op": "CREATE", "overwrite": "true", "noredirect": "true"}
        place = _among(await self._place("PUT", base, path, user, query), base, ways)
        sent = _Sent(content)
        answer = await self._http.stream_put(
            place.url,
            sent.pieces(),
            size,
            headers={"Content-Type": "application/octet-stream"},
            timeout_s=self._write_timeout_s,
            service=_SERVICE,
            through=place.machine,
        )
        if answer.status not in (200, 201):
            raise fault_of(f"CREATE {path}", answer, sent.head)

    async def delete(self, base: Location, path: str, user: str) -> None:
        await self._call("DELETE", base, path, user, {"op": "DELETE", "recursive": "true"})

    async def _place(
        self, method: str, base: Location, path: str, user: str, query: Mapping[str, str]
    ) -> str:
        """The URL of the content on a data node."""
        answer = await self._call(method, base, path, user, query)
        if 300 <= answer.status < 400:
            place: object = answer.headers.get("location")
        else:
            place = _object(f"{query['op']} {path}", answer).get("Location")
        if not isinstance(place, str) or not place.startswith(("http://", "https://")):
            raise _malformed(f"{query['op']} {path}", "no location of a data node")
        return quote(place, safe=_URL)  # the name node does not quote names in this URL

    async def _call(
        self, method: str, base: Location, path: str, user: str, query: Mapping[str, str]
    ) -> Answer:
        asked = {**query, **({"user.name": user} if user else {})}
        url = f"{base.url.rstrip('/')}/webhdfs/v1{quote(path)}?{urlencode(asked)}"
        answer = await self._ask(method, Location(url, base.machine))
        redirected = answer.status == 307 and query["op"] == "CREATE"
        if answer.status >= 300 and not redirected:
            raise fault_of(f"{query['op']} {path}", answer)
        return answer

    async def _ask(self, method: str, at: Location) -> Answer:
        return await self._http.request(
            method, at.url, timeout_s=self._timeout_s, service=_SERVICE, through=at.machine
        )


def _among(place: str, base: Location, ways: Ways | None) -> Location:
    """The location of `place` on its machine. Raises EngineError for a host that has no way."""
    try:
        parts = urlsplit(place)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _malformed("CREATE", "the location of the data node is no URL") from None
    if host == urlsplit(base.url).hostname:
        return Location(place, base.machine)
    if ways is None:
        return Location(place)
    location = reachable(place, ways)
    if location is None:
        text = f"HDFS refers to {host}, which is not a machine of the cluster"
        raise EngineError(Fault.REFUSED, text)
    return location


class _Sent:
    """Content that is being sent. head: its first bytes, which an error must not repeat."""

    def __init__(self, content: AsyncIterator[bytes]) -> None:
        self._content = content
        self.head = b""

    async def pieces(self) -> AsyncIterator[bytes]:
        async for piece in self._content:
            if len(self.head) < _HEAD_BYTES:
                self.head += piece[: _HEAD_BYTES - len(self.head)]
            yield piece


def fault_of(call: str, answer: Answer, sent: bytes = b"") -> EngineError:
    """The error for a refused call. sent: content that its text must not repeat."""
    name, message = _remote_exception(answer.body)
    if sent:
        name, message = (_unquoted(text, sent) for text in (name, message))
    text = f"HDFS {call}: HTTP {answer.status} {name} {message}".strip()[:_MOST_MESSAGE]
    if name in _PASSING or answer.status == 429 or "Name node is in safe mode" in message:
        return EngineError(Fault.BUSY, text, name)
    if name == "FileNotFoundException":
        return EngineError(Fault.NOT_FOUND, text, name)
    if answer.status == 403:
        kind = Fault.QUOTA if "QuotaExceeded" in name else Fault.FORBIDDEN
        # the name node answers 403 for any IOException: only a denied access is permanent
        if name in ("IOException", "RemoteException"):
            kind = Fault.SERVER_ERROR
        return EngineError(kind, text, name)
    return EngineError(kind_of(answer.status), text, name)


def _unquoted(text: str, sent: bytes) -> str:
    """`text` without parts of `sent`, in any encoding that the peer used."""
    content = sent.decode("utf-8", "replace")
    return without_pieces(text, whole_forms(content), _PIECE)


def _remote_exception(body: bytes) -> tuple[str, str]:
    inner = foreign.mapping(body).get("RemoteException")
    if not isinstance(inner, dict):
        return "", ""
    lines = str(inner.get("message", "")).splitlines()
    return str(inner.get("exception", ""))[:_MOST_NAME], lines[0][:_MOST_READ] if lines else ""


def _object(call: str, answer: Answer) -> Mapping[str, object]:
    try:
        tree = foreign.loads(answer.body)
    except ValueError:
        raise _malformed(call, "the answer is not JSON") from None
    if not isinstance(tree, dict):
        raise _malformed(call, "the answer is not a JSON object")
    return tree


def _malformed(call: str, why: str) -> EngineError:
    return EngineError(Fault.SERVER_ERROR, f"HDFS {call}: {why}")
