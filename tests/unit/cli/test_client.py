"""The connections of a command: kept, lost, lying, through a proxy."""

from __future__ import annotations

import contextlib
import itertools
import os
import socketserver
import threading
from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.client import Api
from svcd.cli.door import Door
from svcd.cli.exits import NOT_FOUND, UNREACHABLE, USAGE, CommandError
from svcd.cli.http import Answer, Http, Lost
from tests.support.http import AnsweredBy

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class _Handler(socketserver.StreamRequestHandler):
    """Reads requests, and answers them with what was written down for its server."""

    def handle(self) -> None:
        server: Any = self.server
        server.connections += 1
        while server.answers:
            head = b""
            while line := self.rfile.readline():
                head += line
                if line == b"\r\n":
                    break
            if not head:
                return
            length = [x for x in head.split(b"\r\n") if x.lower().startswith(b"content-length")]
            body = self.rfile.read(int(length[0].partition(b":")[2])) if length else b""
            server.heads.append((head, body))
            answer = server.answers.pop(0)
            with contextlib.suppress(OSError):  # the client has gone
                for piece in [answer] if isinstance(answer, bytes) else answer:
                    self.wfile.write(piece)
            if answer != OK:
                return


class _Server(socketserver.ThreadingTCPServer):
    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.closed.set()


class _Case(SynchronousTestCase):
    def setUp(self) -> None:
        self.server: Any = _Server(("127.0.0.1", 0), _Handler)
        self.server.closed = threading.Event()
        self.server.daemon_threads = True
        self.server.connections, self.server.answers, self.server.heads = 0, [], []
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.addCleanup(thread.join, 10)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.http = Http()
        self.addCleanup(self.http.close)

    def ask(self, method: str = "GET", body: bytes | None = None) -> Answer:
        return self.http.send(method, f"{self.url}/x?y=1", body, {"A": "b"})


class ConnectionTests(_Case):
    def refused(self, *answers: bytes) -> str:
        self.server.answers = list(answers)
        with self.assertRaises(CommandError) as raised:
            self.ask()
        self.assertEqual(raised.exception.code, UNREACHABLE)
        self.assertEqual(len(str(raised.exception).splitlines()), 1)
        return str(raised.exception)

    def test_requests_share_a_connection(self) -> None:
        """One that the peer has closed meanwhile is opened again."""
        self.server.answers = [OK, OK, OK.replace(b"{}", b"[]"), OK]
        self.assertEqual([self.ask().body for _ in range(3)], [b"{}", b"{}", b"[]"])
        self.assertEqual(self.server.connections, 1)
        self.assertTrue(self.server.heads[0][0].startswith(b"GET /x?y=1 HTTP/1.1\r\n"))
        self.assertTrue(self.server.closed.wait(10))
        self.assertEqual(self.ask("POST", b"abc").status, 200)
        self.assertEqual((self.server.connections, self.server.heads[-1][1]), (2, b"abc"))

    def test_answers_that_are_no_http(self) -> None:
        """Another protocol is named, without the carriage return of its line."""
        for answer in (b"", b"HTTP/1.1 banana\r\n\r\n", b"\x00" * 70_000):
            self.assertIn("cannot be reached: ", self.refused(answer), answer[:9])
        said = self.refused(b"SSH-2.0-OpenSSH_9.6\r\n")
        self.assertTrue(said.endswith(": its answer is not HTTP but 'SSH-2.0-OpenSSH_9.6'"), said)

    def test_answers_that_end_too_early(self) -> None:
        cut = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"
        self.assertIn("7 bytes are missing", self.refused(cut))
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}"
        self.assertIn("ended too early", self.refused(chunked))

    def test_answers_that_never_end(self) -> None:
        """In the header or in the body, a byte now and then; a stream may do so."""
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 67000000\r\n\r\n"
        for answer in (
            itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
            itertools.chain([head], itertools.repeat(b" ")),
        ):
            self.server.answers = [answer]
            self.http = Http(whole_s=0.1)
            with self.assertRaisesRegex(Lost, ": no whole answer within 0 s$"):
                self.ask()
            self.http.close()
        self.server.answers = [itertools.chain([head], itertools.repeat(b" ", 100_000))]
        self.http = Http(whole_s=0.1)
        with self.assertRaisesRegex(Lost, "66900000 bytes are missing"):
            list(self.http.stream(f"{self.url}/x", {}, 10.0)[1])

    def test_answers_without_bound(self) -> None:
        """Also those to a library that sends by the session, such as a login."""
        for ask in (self.ask, lambda: self.http.session.get(f"{self.url}/x")):
            endless = itertools.repeat(b" " * 65_536)
            self.server.answers = [itertools.chain([b"HTTP/1.1 200 OK\r\n\r\n"], endless)]
            with self.assertRaisesRegex(CommandError, "/x is larger than 64 MiB"):
                ask()

    def test_streams_that_end_too_early(self) -> None:
        """What came before is passed on; a file that is made of it is then given up."""
        for answer, begin in (
            (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}\n", [b"{}\n"]),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}\n", [b"{}\n"]),
        ):
            self.server.answers = [answer]
            _, lines = self.http.stream(f"{self.url}/x", {}, 10.0)
            found: list[bytes] = []
            with self.assertRaises(Lost):
                found.extend(lines)
            self.assertEqual(found, begin, answer)

    def test_wrong_urls(self) -> None:
        """Code 2, and no password in the message."""
        for url in ("ftp://h/", "h:80", "http://", "http://h:x/", "http://u:secret@h/\n", "x"):
            with self.assertRaises(CommandError) as raised:
                self.http.send("GET", url)
            self.assertEqual(raised.exception.code, USAGE, url)
            self.assertNotIn("secret", str(raised.exception))

    def test_a_proxy_gets_the_whole_url(self) -> None:
        """Of hosts that are not this machine; its password goes to it alone."""
        proxy = self.url.replace("http://", "http://u:pw@")
        self.patch(os, "environ", {"http_proxy": proxy, "no_proxy": "direct.test"})
        self.server.answers = [OK]
        self.http.send("GET", "http://far.test:8386/x", None, {})
        head = self.server.heads[0][0]
        self.assertTrue(head.startswith(b"GET http://far.test:8386/x HTTP/1.1\r\n"), head)
        self.assertIn(b"Proxy-Authorization: Basic dTpwdw==\r\n", head)
        self.server.answers = [OK]
        self.ask()
        self.assertTrue(self.server.heads[-1][0].startswith(b"GET /x?y=1 "))

    def test_a_fault_of_the_proxy_names_it(self) -> None:
        """With its variable and without its password, also when its URL is wrong."""
        closed = "127.0.0.1:1"
        for proxy, place, reason in (
            (f"http://u:s3cret@{closed}", closed, "Connection refused"),
            (f"u:s3cret@{closed}", closed, "Please check proxy URL"),
            ("socks5://u:s3cret@h:3", "h:3", "Missing dependencies for SOCKS"),
        ):
            self.patch(os, "environ", {"ALL_PROXY": proxy})
            with self.assertRaises(Lost) as raised:
                self.http.send("GET", "http://far.test:8386/x")
            text = f"the proxy {place} that ALL_PROXY names does not lead to http://far.test:8386/x"
            self.assertIn(f"{text}: {reason}", str(raised.exception))
            self.assertEqual((raised.exception.sent, raised.exception.refused), (False, False))

    def test_a_token_that_cannot_be_sent_is_not_quoted(self) -> None:
        """As one of a file with Windows line ends; http.client would quote it."""
        for token in ("s3cret\r", "s3\ncret", "s3cret\u20ac"):
            with self.assertRaises(CommandError) as caught:
                self.http.send("GET", self.url, None, {"X-Auth-Token": token})
            self.assertEqual(caught.exception.code, USAGE)
            self.assertIn("OS_TOKEN", str(caught.exception))
            self.assertNotIn("cret", str(caught.exception))
        self.assertEqual(self.server.connections, 0)


class AgainTests(SynchronousTestCase):
    """Which requests are sent again."""

    def setUp(self) -> None:
        self.outcomes: list[Answer | Lost] = []
        self.sent: list[tuple[str, Mapping[str, str]]] = []
        self.paused: list[float] = []
        self.seconds = 0.0
        self.tokens = ["new"]
        door = Door(api="http://a", tenant="t", token="old")
        self.api = Api(door, AnsweredBy(self.send), lambda: self.tokens.pop(0), self.paused.append)

    def send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        self.sent.append((method, headers))
        threading.Event().wait(self.seconds)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Lost):
            raise outcome
        return outcome

    @staticmethod
    def answer(status: int, body: bytes = b"{}") -> Answer:
        return Answer(status=status, headers={}, body=body)

    def test_gets_and_posts_with_their_key(self) -> None:
        """A lost connection and 503; the key stays the same."""
        for ask in (lambda: self.api.get("/x"), lambda: self.api.post("/x", {})):
            self.sent.clear()
            self.outcomes = [Lost("gone", sent=True), self.answer(503), self.answer(200)]
            self.assertEqual(ask(), {})
            self.assertEqual(len(self.sent), 3)
            self.assertEqual(len({headers.get("Idempotency-Key") for _, headers in self.sent}), 1)

    def test_deletions_that_an_overloaded_service_puts_off(self) -> None:
        """503 and 504 are sent again; 404 is then the end, and otherwise an unknown object."""
        self.outcomes = [self.answer(503), self.answer(504), self.answer(204, b"")]
        self.api.delete("/x")
        self.outcomes = [self.answer(504), self.answer(404)]
        self.api.delete("/x")
        self.outcomes = [self.answer(401), self.answer(404)]
        with self.assertRaises(CommandError) as raised:
            self.api.delete("/x")
        self.assertEqual((raised.exception.code, len(self.sent)), (NOT_FOUND, 7))

    def test_what_is_not_repeated(self) -> None:
        """Changes, which may have been carried out, and what has waited longer than patience."""
        for ask in (lambda: self.api.put("/x", {}), lambda: self.api.delete("/x")):
            self.outcomes = [Lost("gone", sent=True)]
            self.assertRaises(Lost, ask)
        self.outcomes = [self.answer(503)] * 3
        self.assertRaises(CommandError, self.api.put, "/x", {})
        self.assertEqual(len(self.outcomes), 2)
        self.outcomes = [Lost("silent", sent=True)]
        self.api.patience_s, self.seconds = 0.01, 0.02
        self.assertRaises(Lost, self.api.get, "/x")
        self.assertEqual(len(self.sent), 4)

    def test_a_closed_port_is_waited_for_only_with_patience(self) -> None:
        self.outcomes = [Lost("refused", sent=False)]
        self.assertRaises(Lost, self.api.get, "/x")
        self.api.be_patient(60)
        self.outcomes = [Lost("refused", sent=False)] * 3 + [self.answer(200)]
        self.assertEqual(self.api.get("/x"), {})
        self.assertEqual(self.paused, [0.2, 0.5, 1.0])

    def test_a_token_is_renewed_once(self) -> None:
        self.outcomes = [self.answer(401), self.answer(200)]
        self.assertEqual(self.api.get("/x"), {})
        tokens = [headers["X-Auth-Token"] for _, headers in self.sent]
        self.assertEqual((tokens, self.api.door.token), (["old", "new"], "new"))
        self.tokens = [""]
        self.outcomes = [self.answer(401, b"no")]
        self.assertRaises(CommandError, self.api.get, "/x")

    def test_programs_that_are_not_svcd(self) -> None:
        """Whatever they answer; svcd alone sends the id of a request."""
        for status in (200, 202, 403, 404):
            for ask in (self.api.get, self.api.listed, self.api.delete, self.api.pieces):
                self.outcomes = [Answer(status, {"X-Request-Id": ""}, b'{"error_message": "x"}')]
                with self.assertRaisesRegex(CommandError, "/x is not one of svcd") as raised:
                    ask("/x")
                self.assertEqual(raised.exception.code, UNREACHABLE)

    def test_answers_of_another_shape(self) -> None:
        """svcd sends objects, and lists of objects in them; others may send an X-Request-Id too."""
        for body in (b"[]", b"{}", b'"x"', b'{"clusters": [1]}', b'{"clusters": {}}'):
            self.outcomes = [self.answer(200, body)]
            with self.assertRaisesRegex(CommandError, "/x is not one of svcd: ") as raised:
                self.api.listed("/x")
            self.assertEqual(raised.exception.code, UNREACHABLE)
        for ask in (lambda: self.api.get("/x"), lambda: self.api.post("/x", {})):
            self.outcomes = [self.answer(200, b"[]")]
            self.assertRaisesRegex(CommandError, "/x is not one of svcd: ", ask)
