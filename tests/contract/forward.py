"""What HTTP through the SSH connection of a machine does, on a loopback machine and on OpenSSH.

A run mixes `ForwardContract` into a TestCase with the hooks of `RemoteContract`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IListeningPort
from twisted.internet.protocol import Factory, Protocol
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from svcd.clients.http import HttpClient
from svcd.clients.ssh import SshRemote
from svcd.ports.faults import Fault, PortError
from svcd.ports.machines import Host
from svcd.runtime.keys import new_key_pair
from tests.support.loopback import free_port, reactor, until

MIB = 1 << 20


async def pinned(remote: SshRemote, host: Host) -> Host:
    """`host` with the host key that it shows."""
    shown = (await remote.run(host, "true", timeout_s=20)).host_key
    return evolve(host, host_key=shown)


class ForwardContract:
    """The suite. Hooks: those of `RemoteContract`, and `connections`."""

    remote: SshRemote
    host: Host
    address: str

    def connections(self) -> int:
        """The number of SSH connections at the server."""
        raise NotImplementedError

    async def setUp(self) -> None:
        await super().setUp()  # type: ignore[misc]
        self.host = await pinned(self.remote, self.host)
        self.service = Service()
        self.service_port = self._listen(Site(self.service))
        self.http = HttpClient(
            None, reactor, _error, timeout_s=20, max_body_bytes=64 * MIB, machines=self.remote
        )

    def _listen(self, factory: Any) -> int:
        factory.noisy = False
        port: IListeningPort = reactor.listenTCP(0, factory, interface=self.address)
        self.addCleanup(port.stopListening)
        number: int = port.getHost().port
        return number

    async def get(self, path: str, host: Host | None = None, **more: Any) -> bytes:
        url = f"http://name.example:{self.service_port}{path}"
        answer = await self.http.request("GET", url, through=host or self.host, **more)
        self.assertEqual(answer.status, 200)
        return answer.body

    async def fault(self, path: str, host: Host, port: int = 80, scheme: str = "http") -> PortError:
        url = f"{scheme}://name.example:{port}{path}"
        try:
            await self.http.request("GET", url, through=host)
        except PortError as error:
            return error
        raise AssertionError("it was answered")

    # ---- the tests ----

    async def test_https_is_refused(self) -> None:
        """svcd does not send it past SSH instead."""
        error = await self.fault("/small", self.host, self.service_port, "https")
        self.assertEqual(error.kind, Fault.UNREACHABLE)
        self.assertIn("the URL must be http", error.text)

    async def test_connections_are_kept(self) -> None:
        """Requests one after the other share one channel of one SSH connection."""
        for _ in range(5):
            await self.get("/small")
        self.assertEqual(len(self.service.clients), 1)
        self.assertEqual(self.connections(), 1)

    async def test_forwards_take_no_slot_of_commands(self) -> None:
        """While commands hold all slots, requests are answered, and the other way round."""
        commands = [
            Deferred.fromCoroutine(self.remote.run(self.host, "read x", timeout_s=20))
            for _ in range(8)
        ]
        held = [Deferred.fromCoroutine(self.get("/held")) for _ in range(12)]
        await until(lambda: len(self.service.held) == 12, "the requests arrive")
        self.assertEqual(await self.get("/small"), b"small")
        for each in commands:
            await each
        self.assertEqual((await self.remote.run(self.host, "true", timeout_s=20)).exit_code, 0)
        self.service.release()
        for waiting in held:
            self.assertEqual(await waiting, b"held")

    async def test_large_answer_arrives_whole(self) -> None:
        """Many times the window."""
        body = await self.get("/large", max_body_bytes=64 * MIB)
        self.assertEqual(len(body), 20 * MIB)
        self.assertEqual(body[-4:], b"done")

    async def test_large_upload_arrives_whole(self) -> None:
        """Many times the window, in pieces of any size."""
        sizes = (1, 700, 40_000, 262_144)
        count = 80

        async def content() -> AsyncIterator[bytes]:
            for n in range(count):
                yield bytes([n]) * sizes[n % 4]

        total = sum(sizes) * (count // 4)
        url = f"http://name.example:{self.service_port}/size"
        answer = await self.http.stream_put(url, content(), total, through=self.host)
        self.assertEqual(answer.body, str(total).encode())

    async def test_slow_reader_holds_the_answer_back(self) -> None:
        """The client keeps a few windows at most, and other requests are answered meanwhile."""
        url = f"http://name.example:{self.service_port}/large"
        async with self.http.stream_get(url, through=self.host) as stream:
            first = await anext(stream.pieces)
            self.assertEqual(await self.get("/small"), b"small")
            size = len(first)
            async for piece in stream.pieces:
                size += len(piece)
        self.assertEqual(size, 20 * MIB)

    async def test_early_answer_ends_the_upload(self) -> None:
        """A service that refuses an upload and closes is heard."""

        async def content() -> AsyncIterator[bytes]:
            for _ in range(4000):
                yield b"x" * 65_536

        port = self._listen(Factory.forProtocol(_TooLarge))
        url = f"http://name.example:{port}/"
        answer = await self.http.stream_put(url, content(), 4000 * 65_536, through=self.host)
        self.assertEqual(answer.status, 413)
        self.assertEqual(await self.get("/small"), b"small")

    async def test_closed_port_is_named(self) -> None:
        """The error has the port and the machine; the SSH connection stays."""
        port = free_port(self.address)
        error = await self.fault("/", self.host, port)
        self.assertEqual(error.kind, Fault.UNREACHABLE)
        self.assertIn(f"port {port} of {self.address}", error.text)
        self.assertEqual(await self.get("/small"), b"small")
        self.assertEqual(self.connections(), 1)

    async def test_lost_connection_is_a_fault_like_any_other(self) -> None:
        """A request in progress fails, and the next one makes a new connection."""
        waiting = Deferred.fromCoroutine(self.get("/held", repeatable=False))
        await until(lambda: bool(self.service.held), "the request arrives")
        self.cut()
        error = await self.assertFailure(waiting, PortError)
        self.assertIn(error.kind, (Fault.SERVER_ERROR, Fault.UNREACHABLE))
        self.assertEqual(await self.get("/small"), b"small")

    async def test_cancelled_request_closes_its_channel(self) -> None:
        """The service sees the end, the SSH connection stays."""
        waiting = Deferred.fromCoroutine(self.get("/held"))
        await until(lambda: bool(self.service.held), "the request arrives")
        waiting.cancel()
        await self.assertFailure(waiting, CancelledError)
        await until(lambda: self.service.lost == 1, "the service sees the end")
        self.assertEqual(await self.get("/small"), b"small")
        self.assertEqual(self.connections(), 1)

    async def test_given_up_channel_leaves_nothing(self) -> None:
        """A request that is cancelled before its channel is open."""
        async with self.remote.agent(self.host) as agent:
            for _ in range(30):
                asked = agent.request(b"GET", f"http://a:{self.service_port}/small".encode())
                asked.cancel()
                await self.assertFailure(asked, Exception)
        links = list(self.remote._open)
        channels = links[0].transport.connection.channels
        await until(lambda: not channels, "all channels are gone")

    async def test_two_clusters_at_one_address_share_nothing(self) -> None:
        """Each login has its own SSH connection and its own HTTP connections."""
        theirs = evolve(self.host, private_key=self.rsa_key())
        self.assertEqual(await self.get("/small"), b"small")
        self.assertEqual(await self.get("/small", theirs), b"small")
        self.assertEqual(self.connections(), 2)
        self.assertEqual(len(self.service.clients), 2)

    async def test_another_clusters_machine_at_the_address_is_refused(self) -> None:
        """A cluster whose machine has another host key gets no answer of this one."""
        self.assertEqual(await self.get("/small"), b"small")
        other = " ".join(new_key_pair("other")[0].split()[:2])
        for key in (self.host.private_key, self.rsa_key()):
            error = await self.fault("/small", evolve(self.host, private_key=key, host_key=other))
            self.assertEqual(error.kind, Fault.UNREACHABLE)
            self.assertIn("host key", error.text)
        self.assertEqual(len(self.service.clients), 1)

    async def test_machine_without_a_pinned_key_gets_no_request(self) -> None:
        """HTTP never begins a connection to an unknown server."""
        error = await self.fault("/small", evolve(self.host, host_key=None))
        self.assertIn("no host key is pinned", error.text)


class Service(Resource):
    """`/small`, `/large` (20 MiB), `/held` (until `release`), `/client` and `/size` of an upload.

    clients: the addresses of the TCP connections. lost: requests whose client went away.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.clients: set[object] = set()
        self.held: list[Request] = []
        self.lost = 0

    def release(self) -> None:
        for each in self.held:
            each.finish()

    def render(self, request: Any) -> Any:
        peer = request.getClientAddress()
        self.clients.add((peer.host, peer.port))
        match request.path:
            case b"/small":
                return b"small"
            case b"/client":
                return peer.host.encode()
            case b"/large":
                return b"x" * (20 * MIB - 4) + b"done"
            case b"/size":
                request.content.seek(0, 2)
                return str(request.content.tell()).encode()
        self.held.append(request)
        request.write(b"held")
        request.notifyFinish().addErrback(self._gone)
        return NOT_DONE_YET

    def _gone(self, reason: object) -> None:
        self.lost += 1


class _TooLarge(Protocol):
    """Refuses an upload at its first bytes, and closes."""

    transport: Any

    def dataReceived(self, data: bytes) -> None:
        self.transport.write(
            b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        self.transport.loseConnection()


def _error(service: str, kind: Fault, text: str, _: float | None) -> PortError:
    return PortError(kind, text)
