"""A connection to the door in memory, on a virtual clock, and the bytes of requests and answers."""

from __future__ import annotations

import json
import re
from typing import Any

from attrs import frozen
from twisted.internet.error import ConnectionLost
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from svcd.resources.api import Rest
from svcd.testing import FakeService
from tests.support.api import daemon_of

NGT = (
    b'{"name":"%b","plugin_name":"vanilla","engine_version":"3.5.0","flavor_id":"2",'
    b'"node_processes":["datanode"]}'
)
NGTS = "/v1.1/demo/node-group-templates"
"""A route that asks the cloud."""


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: a", *lines, "", "")).encode()


def chunked(body: bytes, size: int = 60_000) -> bytes:
    parts = [body[n : n + size] for n in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"


def new_template(name: str, *lines: str) -> bytes:
    """The request for a new node group template."""
    body = NGT % name.encode()
    json_of = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    return head("POST", NGTS, *json_of, *lines) + body


@frozen
class Reply:
    """One answer. headers: by lower-case names."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Full(StringTransport):
    """Its buffer is over the mark after every write."""

    def writeSequence(self, data: Any) -> None:
        super().writeSequence(data)
        self.producer.pauseProducing()


class Connected:
    """A service with one connection to a transport in memory. of: one with the same service.

    flags: settings of `server`, or `section__key`.
    """

    def __init__(
        self,
        of: Connected | None = None,
        transport: type[StringTransport] = StringTransport,
        **flags: Any,
    ) -> None:
        named = {k.replace("__", ".") if "__" in k else f"server.{k}": v for k, v in flags.items()}
        given = {"plugins.enabled": "vanilla,fake", **{k: str(v) for k, v in named.items()}}
        self.service = of.service if of else FakeService({"server.hosts": "a", **given})
        self.site = daemon_of(self.service).site
        self.channel: Any = self.site.buildProtocol(None)
        self.transport = transport()
        self.channel.makeConnection(self.transport)

    @property
    def rest(self) -> Rest:
        return daemon_of(self.service).resource

    @property
    def closing(self) -> bool:
        return self.transport.disconnecting

    def advance(self, seconds: float) -> None:
        self.service.advance(seconds)

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.channel.dataReceived(piece)

    def leave(self) -> None:
        """The peer has gone."""
        self.channel.connectionLost(Failure(ConnectionLost()))

    def answers(self) -> list[Reply]:
        """All answers until now."""
        found = []
        for each in re.split(rb"(?=HTTP/1\.1 \d)", self.transport.value())[1:]:
            before, _, body = each.partition(b"\r\n\r\n")
            first, *lines = before.decode().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            lower = {name.lower(): value for name, value in headers.items()}
            found.append(Reply(int(first.split()[1]), lower, body))
        return found

    def statuses(self) -> list[int]:
        return [each.status for each in self.answers()]
