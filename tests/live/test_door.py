"""The door over real sockets: what a peer may send, how slowly, and what it is answered."""

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
from svcd.testing import Effect, FakeService
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


class DoorTests(TestCase):
    """A site on a port of its own for each test."""

    server: Mapping[str, float] = {
        "header_deadline_s": 0.4,
        "min_body_rate_bytes": 1000,
        "idle_timeout_s": 2.0,
    }

    async def setUp(self) -> None:
        given = {f"server.{name}": str(value) for name, value in self.server.items()}
        self.fake = FakeService({"plugins.enabled": "vanilla", "server.hosts": "a", **given})
        self.addCleanup(self.fake.close)
        self.api = await served(reactor, self.fake)
        self.addCleanup(self.api.stop)
        self.site = self.api.site
        self.peers: list[Peer] = []

    def slow(self, seconds: float) -> None:
        """New templates wait `seconds` for the cloud."""
        self.fake.faults.add(where="compute", path="/flavors", effect=Effect.DELAY, delay_s=seconds)

    async def tearDown(self) -> None:
        for peer in self.peers:
            if not peer.closed:
                peer.transport.abortConnection()

    async def peer(self) -> Peer:
        port = int(self.api.url.rpartition(":")[2])
        made = await connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", port), Peer())
        self.peers.append(made)
        return made

    def check_error(self, answer: tuple[int, dict[str, str], bytes], status: int, name: str) -> Any:
        self.assertEqual((answer[0], answer[1]["content-type"]), (status, "application/json"))
        body = json.loads(answer[2])
        self.assertEqual(set(body), {"error_code", "error_name", "error_message"})
        self.assertEqual((body["error_code"], body["error_name"]), (status, name))
        self.assertIn("x-request-id", answer[1])
        return body


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: a", *headers, "", ""]
    return "\r\n".join(lines).encode()


LIST = "/v1.1/demo/clusters"
UPLOAD = "/v1.1/demo/job-binary-internals/"
NGT = (
    b'{"name":"w","plugin_name":"vanilla","engine_version":"3.5.0","flavor_id":"2",'
    b'"node_processes":["datanode"]}'
)


class HttpTests(DoorTests):
    async def test_answer_carries_length_date_and_request_id(self) -> None:
        peer = await self.peer()
        peer.send(get(LIST, "X-Request-Id: abc-1.2_3"))
        status, headers, body = await peer.answer()
        self.assertEqual((status, json.loads(body)), (200, {"clusters": []}))
        self.assertEqual(headers["x-request-id"], "abc-1.2_3")
        self.assertEqual(headers["server"], "svcd")
        self.assertRegex(headers["date"], r"^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$")

    async def test_insane_request_id_is_replaced(self) -> None:
        peer = await self.peer()
        peer.send(get(LIST, "X-Request-Id: a b"))
        _, headers, _ = await peer.answer()
        self.assertRegex(headers["x-request-id"], r"^req-[0-9a-f]+-[0-9a-f]+$")

    async def test_pipelined_requests_are_answered_in_order(self) -> None:
        self.slow(0.05)
        peer = await self.peer()
        post = get(
            "/v1.0/demo/node-group-templates",
            "Content-Type: application/json",
            f"Content-Length: {len(NGT)}",
            method="POST",
        )
        peer.send(post + NGT + get("/healthz") + get("/v1.0/demo/nope") + get(LIST))
        statuses = [(await peer.answer())[0] for _ in range(4)]
        self.assertEqual(statuses, [202, 200, 404, 200])

    async def test_pipelined_after_an_upload(self) -> None:
        peer = await self.peer()
        put = get(UPLOAD + "a.jar", "Content-Length: 3", method="PUT")
        peer.send(put + b"abc" + get(LIST) + put.replace(b"a.jar", b"b.jar") + b"xyz" + get("/"))
        statuses = [(await peer.answer())[0] for _ in range(4)]
        self.assertEqual(statuses, [202, 200, 202, 200])

    async def test_head_has_the_length_and_no_body(self) -> None:
        peer = await self.peer()
        peer.send(get(LIST, method="HEAD") + get("/healthz"))
        await peer.until(lambda: b'"ok"' in peer.received)
        first, _, rest = bytes(peer.received).partition(b"\r\n\r\n")
        self.assertIn(b"Content-Length: 15", first)
        self.assertTrue(rest.startswith(b"HTTP/1.1 200"))

    async def test_delete_answers_204_without_length(self) -> None:
        peer = await self.peer()
        post = get(
            "/v1.0/demo/node-group-templates",
            "Content-Type: application/json",
            f"Content-Length: {len(NGT)}",
            method="POST",
        )
        peer.send(post + NGT)
        made = json.loads((await peer.answer())[2])["node_group_template"]["id"]
        peer.send(get(f"/v1.0/demo/node-group-templates/{made}", method="DELETE"))
        status, headers, _ = await peer.answer()
        self.assertEqual(status, 204)
        self.assertNotIn("content-length", headers)
        self.assertIn("x-request-id", headers)

    async def test_missing_host_is_400(self) -> None:
        peer = await self.peer()
        peer.send(b"GET / HTTP/1.1\r\n\r\n")
        self.check_error(await peer.answer(), 400, "BAD_REQUEST")
        await peer.end()

    async def test_pages_of_others_are_refused(self) -> None:
        """403 for a name that is not ours, for a foreign page, and across sites; no change."""
        body = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(NGT), NGT)
        for lines in (
            b"Host: evil.example\r\n",
            b"Host: 127.0.0.1\r\nOrigin: https://evil.example\r\n",
            b"Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\n",
        ):
            peer = await self.peer()
            peer.send(b"POST /v1.1/demo/node-group-templates HTTP/1.1\r\n" + lines + body)
            self.check_error(await peer.answer(), 403, "FORBIDDEN")
        self.assertEqual([r["status"] for r in self.fake.audited], [403] * 3)
        peer.send(get("/v1.1/demo/node-group-templates"))
        self.assertEqual((await peer.answer())[2], b'{"node_group_templates":[]}')

    async def test_http_10_needs_no_host(self) -> None:
        peer = await self.peer()
        peer.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        self.assertEqual((await peer.answer())[0], 200)
        await peer.end()

    async def test_bad_request_line_is_400(self) -> None:
        for line in (b"GET\r\n\r\n", b"G\x00T / HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
            peer = await self.peer()
            peer.send(line)
            self.check_error(await peer.answer(), 400, "BAD_REQUEST")
            await peer.end()

    async def test_conflicting_lengths_are_400(self) -> None:
        for headers in (
            ("Content-Length: 1", "Content-Length: 2"),
            ("Content-Length: 1", "Transfer-Encoding: chunked"),
            ("Content-Length: -1",),
            ("Content-Length: x",),
            ("bad header",),
        ):
            peer = await self.peer()
            peer.send(get(LIST, *headers))
            self.check_error(await peer.answer(), 400, "BAD_REQUEST")
            await peer.end()

    async def test_long_request_line_is_414(self) -> None:
        for size in (20_000, 100_000):
            peer = await self.peer()
            peer.send(get("/" + "a" * size))
            self.check_error(await peer.answer(), 414, "URI_TOO_LONG")
            await peer.end()

    async def test_large_headers_are_431(self) -> None:
        for headers in (
            [f"X-{n}: {'a' * 60}" for n in range(300)],
            ["X-Big: " + "a" * 70_000],
            [f"X-{n}: {'a' * 30_000}" for n in range(4)],
        ):
            peer = await self.peer()
            peer.send(get("/", *headers))
            self.check_error(await peer.answer(), 431, "REQUEST_HEADER_FIELDS_TOO_LARGE")
            await peer.end()

    async def test_large_token_passes(self) -> None:
        peer = await self.peer()
        peer.send(get(LIST, "X-Auth-Token: " + "a" * 20_000))
        self.assertEqual((await peer.answer())[0], 200)

    async def test_unknown_method_is_405_with_allow(self) -> None:
        peer = await self.peer()
        peer.send(get(LIST, method="FROB"))
        answer = await peer.answer()
        self.check_error(answer, 405, "METHOD_NOT_ALLOWED")
        self.assertEqual(answer[1]["allow"], "GET, HEAD, OPTIONS, POST")

    async def test_absolute_form_and_trailing_slash_are_understood(self) -> None:
        peer = await self.peer()
        peer.send(get("http://a" + LIST) + get(LIST + "/"))
        self.assertEqual([(await peer.answer())[0] for _ in range(2)], [200, 200])

    async def test_connection_close_is_honoured(self) -> None:
        peer = await self.peer()
        peer.send(get(LIST, "Connection: close"))
        _, headers, _ = await peer.answer()
        self.assertEqual(headers["connection"], "close")
        await peer.end()

    async def test_post_without_length_is_411(self) -> None:
        peer = await self.peer()
        peer.send(get(LIST, "Content-Type: application/json", method="POST"))
        self.check_error(await peer.answer(), 411, "LENGTH_REQUIRED")


class SlowPeerTests(DoorTests):
    async def test_trickled_header_is_408(self) -> None:
        peer = await self.peer()
        for piece in (b"GET / HT", b"TP/1.1\r\n", b"Host: a\r\n", b"X: ", b"y"):
            peer.send(piece)
            await sleep(reactor, 0.1)
        self.check_error(await peer.answer(), 408, "REQUEST_TIMEOUT")
        await peer.end()

    async def test_trickled_body_is_408(self) -> None:
        peer = await self.peer()
        peer.send(
            get(LIST, "Content-Type: application/json", "Content-Length: 9999", method="POST")
        )
        for _ in range(5):
            peer.send(b"x")
            await sleep(reactor, 0.1)
        self.check_error(await peer.answer(), 408, "REQUEST_TIMEOUT")
        await peer.end()

    async def test_trickled_upload_is_408_and_leaves_nothing(self) -> None:
        peer = await self.peer()
        peer.send(get(UPLOAD + "slow", "Transfer-Encoding: chunked", method="PUT"))
        for _ in range(5):
            peer.send(b"1\r\nx\r\n")
            await sleep(reactor, 0.1)
        self.check_error(await peer.answer(), 408, "REQUEST_TIMEOUT")
        await peer.end()
        fresh = await self.peer()
        fresh.send(get("/v1.1/demo/job-binary-internals"))
        self.assertEqual(json.loads((await fresh.answer())[2]), {"binaries": []})

    async def test_idle_connection_is_closed(self) -> None:
        peer = await self.peer()
        peer.send(get(LIST))
        await peer.answer()
        await peer.end()
        self.assertEqual(bytes(peer.received), b"")

    async def test_peer_that_leaves_mid_request_harms_nobody(self) -> None:
        self.slow(0.1)
        peer = await self.peer()
        post = get(
            "/v1.0/demo/node-group-templates",
            "Content-Type: application/json",
            f"Content-Length: {len(NGT)}",
            method="POST",
        )
        peer.send(post + NGT)
        await sleep(reactor, 0.03)
        peer.transport.abortConnection()
        await peer.end()
        await self.api.rest.idle()
        fresh = await self.peer()
        fresh.send(get("/v1.0/demo/node-group-templates"))
        kept = json.loads((await fresh.answer())[2])["node_group_templates"]
        self.assertEqual([each["name"] for each in kept], ["w"])

    async def test_peer_that_leaves_mid_upload_leaves_nothing(self) -> None:
        peer = await self.peer()
        peer.send(get(UPLOAD + "half", "Content-Length: 1000000", method="PUT") + b"x" * 600_000)
        await sleep(reactor, 0.05)
        peer.transport.abortConnection()
        await peer.end()
        await self.api.rest.idle()
        fresh = await self.peer()
        put = get(UPLOAD + "half", "Content-Length: 1", method="PUT")
        fresh.send(put + b"x")
        self.assertEqual((await fresh.answer())[0], 202)


class LimitTests(DoorTests):
    server = {"max_json_bytes": 1000, "max_binary_bytes": 100_000, "header_deadline_s": 5.0}

    async def test_declared_too_large_is_413_before_the_body(self) -> None:
        for method, path in (("POST", LIST), ("PUT", UPLOAD + "a"), ("DELETE", LIST + "/x")):
            peer = await self.peer()
            peer.send(
                get(
                    path, "Content-Type: application/json", "Content-Length: 1000000", method=method
                )
            )
            answer = await peer.answer()
            self.check_error(answer, 413, "CONTENT_TOO_LARGE")
            self.assertEqual(answer[1]["connection"], "close")
            await peer.end()

    async def test_a_peer_that_sends_on_can_still_read_the_413(self) -> None:
        peer = await self.peer()
        peer.send(get(UPLOAD + "a", "Content-Length: 3000000", method="PUT") + b"x" * 3_000_000)
        self.check_error(await peer.answer(), 413, "CONTENT_TOO_LARGE")
        await peer.end()

    async def test_chunked_over_the_limit_is_413(self) -> None:
        for method, path in (("POST", LIST), ("PUT", UPLOAD + "a")):
            peer = await self.peer()
            peer.send(
                get(
                    path,
                    "Content-Type: application/json",
                    "Transfer-Encoding: chunked",
                    method=method,
                )
            )
            for _ in range(30):
                peer.send(b"2000\r\n" + b"x" * 0x2000 + b"\r\n")
            self.check_error(await peer.answer(), 413, "CONTENT_TOO_LARGE")
            await peer.end()

    async def test_unknown_path_wins_over_the_size(self) -> None:
        peer = await self.peer()
        peer.send(get("/v1.1/demo/nope", "Content-Length: 5000000", method="POST"))
        self.check_error(await peer.answer(), 404, "NOT_FOUND")
        await peer.end()

    async def test_exactly_the_limit_is_taken(self) -> None:
        peer = await self.peer()
        peer.send(get(UPLOAD + "a", "Content-Length: 100000", method="PUT") + b"x" * 100_000)
        status, _, body = await peer.answer()
        self.assertEqual(
            (status, json.loads(body)["job_binary_internal"]["datasize"]), (202, 100000)
        )

    async def test_expect_continue_is_answered_for_a_wanted_body(self) -> None:
        peer = await self.peer()
        peer.send(get(UPLOAD + "a", "Content-Length: 3", "Expect: 100-continue", method="PUT"))
        self.assertEqual((await peer.answer())[0], 100)
        peer.send(b"abc")
        self.assertEqual((await peer.answer())[0], 202)

    async def test_expect_continue_is_refused_for_a_large_body(self) -> None:
        peer = await self.peer()
        peer.send(get(UPLOAD + "a", "Content-Length: 300000", "Expect: 100-continue", method="PUT"))
        self.check_error(await peer.answer(), 413, "CONTENT_TOO_LARGE")

    async def test_malformed_chunk_is_400(self) -> None:
        for path in (LIST, UPLOAD + "a"):
            peer = await self.peer()
            method = "PUT" if path.startswith(UPLOAD) else "POST"
            peer.send(get(path, "Transfer-Encoding: chunked", method=method) + b"zz\r\n")
            self.check_error(await peer.answer(), 400, "BAD_REQUEST")
            await peer.end()

    async def test_bad_upload_name_is_refused_before_the_body(self) -> None:
        peer = await self.peer()
        peer.send(get(UPLOAD + "a%20b", "Content-Length: 99999", method="PUT"))
        self.check_error(await peer.answer(), 400, "BAD_JOB_BINARY")
        await peer.end()


class StalledReaderTests(DoorTests):
    server = {"idle_timeout_s": 0.5}

    async def test_a_peer_that_does_not_read_is_dropped(self) -> None:
        peer = await self.peer()
        size = 32 * 1024 * 1024
        peer.send(get(UPLOAD + "a", f"Content-Length: {size}", method="PUT"))
        piece = b"x" * 1_048_576
        for _ in range(32):
            peer.send(piece)
        made = json.loads((await peer.answer())[2])["job_binary_internal"]
        stalled = await self.peer()
        stalled.transport.pauseProducing()
        stalled.send(get(f"/v1.1/demo/job-binary-internals/{made['id']}/data"))
        await sleep(reactor, 0.2)
        await with_deadline(reactor, DEADLINE_S, "drop", self.api.rest.idle())
        stalled.keep = False
        stalled.transport.resumeProducing()
        await stalled.end()
        self.assertLess(stalled.count, size)

    async def test_head_of_data_has_its_length(self) -> None:
        peer = await self.peer()
        peer.send(get(UPLOAD + "a", "Content-Length: 3", method="PUT") + b"abc")
        made = json.loads((await peer.answer())[2])["job_binary_internal"]
        peer.send(get(f"/v1.1/demo/job-binary-internals/{made['id']}/data", method="HEAD"))
        await peer.until(lambda: b"\r\n\r\n" in peer.received)
        self.assertIn(b"Content-Length: 3\r\n", bytes(peer.received))
        self.assertTrue(bytes(peer.received).endswith(b"\r\n\r\n"))

    async def test_a_large_json_body_waits_in_a_file(self) -> None:
        body = NGT.ljust(500_000)
        for length in (f"Content-Length: {len(body)}", "Transfer-Encoding: chunked"):
            name = b"a" if length.startswith("C") else b"b"
            sent = body.replace(b'"w"', b'"%b"' % name)
            if name == b"b":
                sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(sent), sent)
            peer = await self.peer()
            peer.send(
                get(
                    "/v1.0/demo/node-group-templates",
                    "Content-Type: application/json",
                    length,
                    method="POST",
                )
                + sent
            )
            self.assertEqual((await peer.answer())[0], 202)


class CrowdTests(DoorTests):
    server = {"max_connections": 2}

    async def test_a_connection_too_many_is_503(self) -> None:
        first, second = await self.peer(), await self.peer()
        first.send(get("/"))
        second.send(get("/"))
        await first.answer()
        await second.answer()
        third = await self.peer()
        answer = await third.answer()
        self.check_error(answer, 503, "SERVICE_UNAVAILABLE")
        self.assertIn("retry-after", answer[1])
        await third.end()


class WatcherTests(DoorTests):
    async def setUp(self) -> None:
        await super().setUp()
        self.feeds = daemon_of(self.fake).services.feeds

    async def watching(self) -> Peer:
        peer = await self.peer()
        peer.send(get("/v1.1/demo/watch"))
        await peer.until(lambda: b"event: hello" in peer.received)
        return peer

    async def test_a_watcher_that_closes_its_connection_frees_its_place(self) -> None:
        """At once: the next comment line, which the closed connection refuses, is 15 s away."""
        first, second = await self.watching(), await self.watching()
        self.assertEqual(self.feeds.count(), 2)
        first.transport.loseConnection()
        await until(lambda: succeed(self.feeds.count() == 1), "the place is free", 5.0, 0.005)
        self.assertFalse(second.closed)
        second.transport.loseWriteConnection()
        await second.end()
        self.assertEqual(self.feeds.count(), 0)


class DrainTests(DoorTests):
    async def test_draining_closes_idle_and_lets_others_finish(self) -> None:
        self.slow(0.2)
        idle, busy = await self.peer(), await self.peer()
        idle.send(get(LIST))
        await idle.answer()
        post = get(
            "/v1.0/demo/node-group-templates",
            "Content-Type: application/json",
            f"Content-Length: {len(NGT)}",
            method="POST",
        )
        busy.send(post + NGT)
        await sleep(reactor, 0.05)
        draining = Deferred.fromCoroutine(self.site.drain(5.0))
        await idle.end()
        status, headers, _ = await busy.answer()
        self.assertEqual((status, headers["connection"]), (202, "close"))
        self.assertTrue(await draining)

    async def test_draining_cuts_off_what_does_not_end(self) -> None:
        self.slow(0.6)
        busy = await self.peer()
        post = get(
            "/v1.0/demo/node-group-templates",
            "Content-Type: application/json",
            f"Content-Length: {len(NGT)}",
            method="POST",
        )
        busy.send(post + NGT)
        await sleep(reactor, 0.05)
        self.assertFalse(await self.site.drain(0.1))
        await busy.end()
        await self.api.rest.idle()


class DeadlineTests(DoorTests):
    server = {"request_timeout_s": 1.0}

    async def test_a_slow_handler_is_504_and_goes_on(self) -> None:
        self.slow(1.3)
        peer = await self.peer()
        post = get(
            "/v1.0/demo/node-group-templates",
            "Content-Type: application/json",
            f"Content-Length: {len(NGT)}",
            method="POST",
        )
        peer.send(post + NGT)
        self.check_error(await peer.answer(), 504, "PLATFORM_TIMEOUT")
        await self.api.rest.idle()
        peer.send(get("/v1.0/demo/node-group-templates"))
        kept = json.loads((await peer.answer())[2])["node_group_templates"]
        self.assertEqual([each["name"] for each in kept], ["w"])


def rss_kib() -> int:
    with open("/proc/self/status") as status:
        found = re.search(r"VmRSS:\s+(\d+)", status.read())
    assert found is not None
    return int(found.group(1))


class StreamTests(DoorTests):
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
        slow.send(get(f"/v1.1/demo/job-binary-internals/{made['id']}/data"))
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
