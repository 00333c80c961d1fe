"""Forwards of a loopback machine to services that end before their clients do."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol

from svcd.clients.ssh_forward import ForwardedEndpoint
from tests.support.loopback import host, reactor, spec, until
from tests.unit.embedded.test_machines import A, MachinesCase


class _Client(Protocol):
    """Sends an upload, and keeps what it is answered."""

    transport: Any

    def __init__(self) -> None:
        self.received = b""
        self.ended: Deferred[None] = Deferred()

    def connectionMade(self) -> None:
        self.transport.write(b"x" * 65_536)

    def dataReceived(self, data: bytes) -> None:
        self.received += data

    def connectionLost(self, reason: Any = None) -> None:
        self.ended.callback(None)


class EarlyAnswerTest(MachinesCase):
    async def setUp(self) -> None:
        await super().setUp()
        await self.machines.boot(spec("m1", A))
        listener = socket.create_server((A, 0))
        self.addCleanup(listener.close)
        listener.setblocking(False)
        link = self.remote._link(host(A, self.port))
        link.users += 1
        await link.ready()
        port = listener.getsockname()[1]
        endpoint = ForwardedEndpoint(link.transport.connection, A, port, reactor)
        self.client: Any = await endpoint.connect(Factory.forProtocol(_Client))
        self.service, _ = listener.accept()
        self.service.setblocking(False)
        await until(self.upload_has_arrived, "the upload arrives")
        (server,) = self.server().connections
        (self.relay,) = server.service.relays

    def server(self) -> Any:
        return self.machines._machines["m1"]._server

    def upload_has_arrived(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            return bool(self.service.recv(1, socket.MSG_PEEK))
        return False

    async def test_answer_before_the_end_of_the_upload_is_delivered(self) -> None:
        """The service closes with the upload unread. The next write fails before the next read."""
        handle = self.relay.transport.getHandle()
        self.relay.transport.pauseProducing()
        self.relay.transport.write(b"more")
        self.service.send(b"answer" * 8_000)
        self.service.close()
        await self.client.ended
        self.assertEqual(self.client.received, b"answer" * 8_000)
        await until(lambda: self.server().relays.used == 0, "the forward ends")
        self.assertEqual(handle.fileno(), -1)
