"""The door over real sockets: what only the kernel's buffers and a process's memory show."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from twisted.internet import reactor as global_reactor  # noqa: TID251 - sockets
from twisted.internet.defer import Deferred, succeed
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol
from twisted.trial.unittest import TestCase

from svcd.runtime.tasks import sleep, with_deadline
from svcd.testing import FakeService
from tests.support.api import daemon_of, served
from tests.support.processes import until

reactor: Any = global_reactor
DEADLINE_S = 10.0


class Peer(Protocol):
    """A raw client: sends bytes, collects bytes."""

    def __init__(self, deadline_s: float = DEADLINE_S) -> None:
        self.received = bytearray()
        self.deadline_s = deadline_s
        self.closed = False
        self.count = 0
        self.keep = True
        self._waiting: list[tuple[Any, Deferred[None]]] = []

    def dataReceived(self, data: bytes) -> None:
        self.count += len(data)
        if self.keep:
            self.received += data
        self._look()

    def connectionLost(self, reason: Any = None) -> None:
        self.closed = True
        self._look()

    def _look(self) -> None:
        for condition, done in list(self._waiting):
            if condition() or self.closed:
                self._waiting.remove((condition, done))
                done.callback(None)

    def send(self, data: bytes) -> None:
        self.transport.write(data)

    async def until(self, condition: Any) -> None:
        """Wait until `condition()` or the end of the connection."""
        if not condition() and not self.closed:
            done: Deferred[None] = Deferred()
            self._waiting.append((condition, done))
            await with_deadline(reactor, self.deadline_s, "peer", done)

    async def end(self) -> None:
        """Wait for the end of the connection."""
        await self.until(lambda: self.closed)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, headers, body. It must carry a Content-Length."""
        await self.until(lambda: b"\r\n\r\n" in self.received)
        head, _, _ = bytes(self.received).partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
        length = 0 if status in (100, 204) else int(headers["content-length"])
        await self.until(lambda: len(self.received) >= len(head) + 4 + length)
        rest = bytes(self.received[len(head) + 4 :])
        self.received = bytearray(rest[length:])
        if len(rest) < length:
            raise AssertionError("the body is cut off")
        return status, headers, rest[:length]


class DoorCase(TestCase):
    """A site on a port of its own for each test. server: settings of the section."""

    server: Mapping[str, float] = {}

    async def setUp(self) -> None:
        given = {f"server.{name}": str(value) for name, value in self.server.items()}
        self.fake = FakeService({"plugins.enabled": "vanilla", "server.hosts": "a", **given})
        self.addCleanup(self.fake.close)
        self.api = await served(reactor, self.fake)
        self.addCleanup(self.api.stop)
        self.peers: list[Peer] = []

    async def tearDown(self) -> None:
        for peer in self.peers:
            if not peer.closed:
                peer.transport.abortConnection()

    async def peer(self) -> Peer:
        port = int(self.api.url.rpartition(":")[2])
        made = await connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", port), Peer())
        self.peers.append(made)
        return made


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: a", *headers, "", ""]
    return "\r\n".join(lines).encode()


UPLOAD = "/v1.1/demo/job-binary-internals/"


class RefusalTests(DoorCase):
    server = {"max_binary_bytes": 100_000}

    async def test_a_peer_that_sends_on_can_still_read_the_413(self) -> None:
        """A reset, because of the bytes that nobody reads, would take the answer away."""
        peer = await self.peer()
        peer.send(get(UPLOAD + "a", "Content-Length: 3000000", method="PUT") + b"x" * 3_000_000)
        status, _, body = await peer.answer()
        self.assertEqual((status, json.loads(body)["error_name"]), (413, "CONTENT_TOO_LARGE"))
        await peer.end()


class WatcherTests(DoorCase):
    async def watching(self) -> Peer:
        peer = await self.peer()
        peer.send(get("/v1.1/demo/watch"))
        await peer.until(lambda: b"event: hello" in peer.received)
        return peer

    async def test_a_watcher_that_closes_its_connection_frees_its_place(self) -> None:
        """At once: the next comment line, which the closed connection refuses, is 15 s away."""
        feeds = daemon_of(self.fake).services.feeds
        first, second = await self.watching(), await self.watching()
        self.assertEqual(feeds.count(), 2)
        first.transport.loseConnection()
        await until(lambda: succeed(feeds.count() == 1), "the place is free", 5.0, 0.005)
        self.assertFalse(second.closed)
        second.transport.loseWriteConnection()
        await second.end()
        self.assertEqual(feeds.count(), 0)


class StalledReaderTests(DoorCase):
    server = {"idle_timeout_s": 0.5}

    async def test_a_peer_that_does_not_read_is_dropped(self) -> None:
        """Its handler ends, and the rest of the data is not sent."""
        peer = await self.peer()
        size = 32 * 1024 * 1024
        peer.send(get(UPLOAD + "a", f"Content-Length: {size}", method="PUT"))
        for _ in range(32):
            peer.send(b"x" * 1_048_576)
        made = json.loads((await peer.answer())[2])["job_binary_internal"]
        stalled = await self.peer()
        stalled.transport.pauseProducing()
        stalled.send(get(f"{UPLOAD}{made['id']}/data"))
        await sleep(reactor, 0.2)
        await with_deadline(reactor, DEADLINE_S, "drop", self.api.rest.idle())
        stalled.keep = False
        stalled.transport.resumeProducing()
        await stalled.end()
        self.assertLess(stalled.count, size)


def rss_kib() -> int:
    with open("/proc/self/status") as status:
        found = re.search(r"VmRSS:\s+(\d+)", status.read())
    assert found is not None
    return int(found.group(1))


class StreamTests(DoorCase):
    """64 MiB each way within 24 MiB above what was there before."""

    size = 64 * 1024 * 1024
    allowed_kib = 24 * 1024

    async def test_large_bodies_stream_both_ways(self) -> None:
        piece = bytes(range(256)) * 256
        peer = await self.peer()
        before = rss_kib()
        peer.send(get(UPLOAD + "big", f"Content-Length: {self.size}", method="PUT"))
        sender = Feeder(peer, piece, self.size)
        peer.transport.registerProducer(sender, False)
        peak = before
        while True:
            await with_deadline(reactor, 60.0, "upload", sender.progress())
            peak = max(peak, rss_kib())
            if sender.left == 0:
                break
        status, _, body = await peer.answer()
        self.assertEqual(status, 202)
        made = json.loads(body)["job_binary_internal"]
        self.assertEqual(made["datasize"], self.size)
        stored = self.size // 1024  # the store of this test is memory
        self.assertLess(peak - before, stored + self.allowed_kib)
        before = rss_kib()
        slow = await self.peer()
        slow.keep = False
        slow.transport.pauseProducing()
        slow.send(get(f"{UPLOAD}{made['id']}/data"))
        await sleep(reactor, 0.2)
        self.assertLess(rss_kib() - before, self.allowed_kib)
        slow.transport.resumeProducing()
        await with_deadline(reactor, 60.0, "download", slow.until(lambda: slow.count >= self.size))
        self.assertLess(rss_kib() - before, self.allowed_kib)
        digest = hashlib.sha256(piece * (self.size // len(piece))).hexdigest()
        record = await daemon_of(self.fake).services.store.read(
            lambda tx: tx.internals.get("demo", made["id"])  # type: ignore[arg-type]
        )
        self.assertEqual(record.digest, digest)


class Feeder:
    """A pull producer of `size` bytes."""

    def __init__(self, peer: Peer, piece: bytes, size: int) -> None:
        self.left = size
        self._peer = peer
        self._piece = piece
        self._done: Deferred[None] | None = None

    def progress(self) -> Deferred[None]:
        """Fires a little later."""
        self._done = Deferred()
        return self._done

    def resumeProducing(self) -> None:
        if self.left:
            self._peer.transport.write(self._piece)
            self.left -= len(self._piece)
        if not self.left:
            self._peer.transport.unregisterProducer()
        done, self._done = self._done, None
        if done is not None:
            done.callback(None)

    def stopProducing(self) -> None:
        self.left = 0
