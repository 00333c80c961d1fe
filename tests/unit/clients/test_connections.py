"""The agent, and the limit of an answer's headers, on connections whose bytes the test delivers."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.testing import (
    MemoryReactorClock,
    StringTransport,
    StringTransportWithDisconnection,
)
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import Agent
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from svcd.clients.connections import MOST_HEADER_BYTES, Connections
from svcd.clients.http import HttpClient
from svcd.clients.oozie import engine_error
from svcd.ports.faults import Fault, PortError
from svcd.runtime.clock import VirtualClock

_PIECE = 1 << 16
_LINE = b"X-A: " + b"a" * 1017 + b"\r\n"
_OK = b"HTTP/1.1 200 OK\r\n"


@implementer(IAgentEndpointFactory)
class HeaderTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.pool = Connections(self.clock)
        agent = Agent.usingEndpointFactory(self.clock, self, self.pool)
        self.http = HttpClient(agent, self.clock, engine_error)
        self.connections: list[tuple[Any, Any]] = []
        self.addCleanup(self.pool.closeCachedConnections)

    # ---- an endpoint ----

    def endpointForURI(self, uri: object) -> Any:
        return self

    def connect(self, factory: Any) -> Deferred[Any]:
        protocol, transport = factory.buildProtocol(None), StringTransportWithDisconnection()
        transport.protocol = protocol
        protocol.makeConnection(transport)
        self.connections.append((protocol, transport))
        return succeed(protocol)

    # ---- the tests' words ----

    def ask(self, method: str = "GET") -> Deferred[Any]:
        return Deferred.fromCoroutine(self.http.request(method, "http://peer/x", body=b""))

    def deliver(self, *pieces: bytes) -> None:
        """To the newest connection, until it is cut."""
        protocol, transport = self.connections[-1]
        for piece in pieces:
            if not transport.connected:
                return
            self.assertEqual(transport.producerState, "producing")
            protocol.dataReceived(piece)

    def cut(self, asked: Deferred[Any]) -> PortError:
        error: PortError = self.failureResultOf(asked, PortError).value
        self.assertFalse(self.connections[-1][1].connected)
        return error

    def test_endless_headers_are_cut(self) -> None:
        """The request may have been done, and is not sent again."""
        for method in ("GET", "POST"):
            asked = self.ask(method)
            self.deliver(_OK, *[_LINE] * (MOST_HEADER_BYTES // 1024 - 1))
            self.assertNoResult(asked)
            self.deliver(_LINE)
            error = self.cut(asked)
            self.assertEqual(error.kind, Fault.SERVER_ERROR)
            text = "peer/x was answered with more than 131072 bytes of headers"
            self.assertIn(text, error.text)
        self.assertEqual(len(self.connections), 2)

    def test_endless_interim_answers_are_cut(self) -> None:
        """Each of them has its own end of headers."""
        asked = self.ask()
        self.deliver(*[b"HTTP/1.1 102 Processing\r\n\r\n" * 1024] * 8)
        self.assertIn("bytes of headers", self.cut(asked).text)

    def test_headers_of_64_kib_pass(self) -> None:
        """Even when the last read of them brings as much of the body."""
        asked = self.ask()
        size = b"Content-Length: %d\r\n\r\n" % _PIECE
        self.deliver(_OK + _LINE * 62, _LINE + size + bytes(_PIECE - 1200), bytes(1200))
        answer = self.successResultOf(asked)
        self.assertEqual((answer.status, len(answer.body)), (200, _PIECE))

    def test_each_answer_of_a_connection_counts_anew(self) -> None:
        """A connection that is used again is not cut by the headers of earlier answers."""
        for _ in range(8):
            asked = self.ask()
            self.deliver(_OK + _LINE * 40 + b"Content-Length: 0\r\n\r\n")
            self.assertEqual(self.successResultOf(asked).status, 200)
        self.assertEqual(len(self.connections), 1)

    def test_a_broken_call_is_repeated_once(self) -> None:
        """By the client alone, when the method is safe: the pool does not repeat it, too."""
        for method, tries in (("GET", 2), ("POST", 1), ("DELETE", 1)):
            self.connections.clear()
            asked = self.ask(method)
            while not asked.called:
                self.connections[-1][1].loseConnection()
            self.assertEqual(self.cut(asked).kind, Fault.SERVER_ERROR)
            self.assertEqual(len(self.connections), tries)


class _Transport(StringTransport):
    def setTcpNoDelay(self, enabled: bool) -> None:
        """Does nothing: nothing is sent."""


class AgentTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.reactor = MemoryReactorClock()
        self.pool = Connections(self.reactor)
        self.agent = Agent(self.reactor, pool=self.pool, connectTimeout=7.0)
        self.addCleanup(self.pool.closeCachedConnections)

    def connected(self) -> _Transport:
        """The other end of the newest connection."""
        protocol, transport = self.reactor.tcpClients[-1][2].buildProtocol(None), _Transport()
        protocol.makeConnection(transport)
        self.deliver = protocol.dataReceived
        return transport

    def test_requests_to_one_port_share_a_connection(self) -> None:
        """Its host, port and time-out are those of the URL and of the agent."""
        first = self.agent.request(b"GET", b"http://127.0.0.1:81/a")
        transport = self.connected()
        self.assertIn(b"GET /a HTTP/1.1\r\n", transport.value())
        self.deliver(_OK + b"Content-Length: 0\r\n\r\n")
        self.assertEqual(self.successResultOf(first).code, 200)
        self.agent.request(b"GET", b"http://127.0.0.1:81/b").addErrback(lambda _: None)
        self.assertIn(b"GET /b HTTP/1.1\r\n", transport.value())
        made = [(host, port, wait_s) for host, port, _, wait_s, _ in self.reactor.tcpClients]
        self.assertEqual(made, [("127.0.0.1", 81, 7.0)])

    def test_https_is_sent_through_tls(self) -> None:
        """The first bytes are the beginning of a TLS handshake."""
        self.agent.request(b"GET", b"https://127.0.0.1:82/x").addErrback(lambda _: None)
        self.assertEqual(self.connected().value()[:2], b"\x16\x03")

    def test_a_text_that_is_no_name_of_a_host(self) -> None:
        """Nothing was sent, as when no host has the name."""
        http = HttpClient(self.agent, self.reactor, engine_error)
        for url in ("http://a..b/x", "https://a..b/x", "http://-a/x"):
            asked = Deferred.fromCoroutine(http.request("GET", url))
            error = self.failureResultOf(asked, PortError).value
            self.assertEqual(error.kind, Fault.UNREACHABLE, url)
        self.assertEqual(self.reactor.tcpClients, [])
