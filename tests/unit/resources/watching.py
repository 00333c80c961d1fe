"""What the suites of the change stream share: a connection that watches, and its frames."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen
from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import FakeService
from tests.support.api import daemon_of
from tests.unit.resources.connected import Connected

SOURCE = {
    "name": "in",
    "type": "objstore",
    "url": "objstore://box/in",
    "credentials": {"user": "ann", "password": "hush"},
}


@frozen
class Frame:
    """One event."""

    id: str
    event: str
    data: Any


def frames_of(body: bytes) -> list[Frame]:
    """The events of a stream; comments are left out."""
    found = []
    for block in body.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if "event" in fields:
            data = json.loads(fields["data"])
            found.append(Frame(fields.get("id", ""), fields["event"], data))
    return found


def unchunked(body: bytes) -> tuple[bytes, bool]:
    """The content of chunks, and whether the last chunk has come."""
    found = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return found, True
        found += rest[:length]
        assert rest[length : length + 2] == b"\r\n", rest[:80]
        body = rest[length + 2 :]
    return found, False


class Peer(Connected):
    """A connection that watches."""

    def watch(
        self,
        query: str = "",
        method: str = "GET",
        token: str = "",
        last: str | None = None,
        tenant: str = "demo",
    ) -> None:
        """Send the request. last: its Last-Event-ID."""
        header = f"X-Auth-Token: {token}\r\n" if token else ""
        header += "" if last is None else f"Last-Event-ID: {last}\r\n"
        text = f"{method} /v1.1/{tenant}/watch{query} HTTP/1.1\r\nHost: a\r\n{header}\r\n"
        self.send(text.encode())
        self.advance(0.1)

    @property
    def head(self) -> str:
        return self.transport.value().partition(b"\r\n\r\n")[0].decode()

    @property
    def body(self) -> bytes:
        return unchunked(self.transport.value().partition(b"\r\n\r\n")[2])[0]

    @property
    def complete(self) -> bool:
        return unchunked(self.transport.value().partition(b"\r\n\r\n")[2])[1]

    @property
    def frames(self) -> list[Frame]:
        return frames_of(self.body)

    @property
    def events(self) -> list[str]:
        return [each.event for each in self.frames]

    @property
    def names(self) -> list[str]:
        """Of the changed records."""
        return [each.data["name"] for each in self.frames if "name" in each.data]

    @property
    def dropped(self) -> bool:
        return self.transport.disconnected

    def add(self, **changes: Any) -> str:
        """A data source; its id."""
        made = self.service.call("POST", "/v1.1/demo/data-sources", {**SOURCE, **changes})
        assert made.status == 202, made.body
        return str(made.json["data_source"]["id"])


class WatchCase(SynchronousTestCase):
    def peer(self, of: Connected | None = None, **flags: Any) -> Peer:
        made = Peer(of, **flags)
        if of is None:
            self.addCleanup(made.service.close)
        return made

    def watching(self, of: Connected | None = None, query: str = "", **more: Any) -> Peer:
        """A connection with a stream."""
        made = self.peer(of)
        made.watch(query, **more)
        return made

    def feeds(self, of: Connected | FakeService) -> Any:
        service = of if isinstance(of, FakeService) else of.service
        return daemon_of(service).services.feeds

    def checked_by(self, peer: Peer, check: Callable[[], Any]) -> None:
        """The next looks at the tokens of all watchers call `check`."""
        rest: Any = peer.rest
        found = rest._callers.authenticate

        async def authenticate(x: Any, tenant: str | None) -> Any:
            await check()
            return await found(x, tenant)

        rest._callers.authenticate = authenticate

    def leave(self, peers: Sequence[Peer]) -> None:
        for each in peers:
            each.leave()
