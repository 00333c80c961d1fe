"""HTTP at the door, in memory: which bytes are a request, and what the answers carry."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.unit.resources.connected import NGTS, Connected, Reply, head, new_template

LIST = "/v1.1/demo/clusters"
UPLOAD = "/v1.1/demo/job-binary-internals/"
LINE = "the request line is longer than 16384 bytes"
BAD = (400, "BAD_REQUEST")
LARGE = (431, "REQUEST_HEADER_FIELDS_TOO_LARGE")


class HttpCase(SynchronousTestCase):
    def replies(self, *pieces: bytes, **flags: Any) -> tuple[list[Reply], bool]:
        """The answers to bytes on a connection, and whether it closes."""
        peer = Connected(**flags)
        self.addCleanup(peer.service.close)
        for piece in pieces:
            for begin in range(0, len(piece), 60_000):
                peer.send(piece[begin : begin + 60_000])
        return peer.answers(), peer.closing

    def refused(self, data: bytes, status: int, name: str) -> str:
        """The message of the one answer, after which the connection closes."""
        (reply,), closing = self.replies(data)
        self.assertEqual(reply.headers["content-type"], "application/json")
        self.assertIn("x-request-id", reply.headers)
        error = reply.json
        self.assertEqual([*error], ["error_code", "error_name", "error_message"])
        self.assertEqual((reply.status, error["error_code"]), (status, status), data[:80])
        self.assertEqual(error["error_name"], name)
        self.assertTrue(closing)
        return str(error["error_message"])


class FramingTests(HttpCase):
    def test_bytes_that_are_no_request_are_400(self) -> None:
        """And whoever sends them is sent away: nobody knows where the next request begins."""
        for data in (
            b"GET\r\n\r\n",
            b"G\x00T / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",  # no Host
            head("GET", LIST, "bad header"),
            head("GET", LIST, "Content-Length: 1", "Content-Length: 2"),
            head("GET", LIST, "Content-Length: 1", "Transfer-Encoding: chunked"),
            head("GET", LIST, "Content-Length: -1"),
            head("GET", LIST, "Content-Length: x"),
            head("POST", LIST, "Content-Length: " + "9" * 21),
            head("POST", LIST, "Content-Length: " + "9" * 6000),  # no int() of Python
            head("POST", LIST, "Transfer-Encoding: chunked") + b"zz\r\n",
        ):
            self.refused(data, *BAD)

    def test_a_post_without_a_length_is_411(self) -> None:
        (reply,), _ = self.replies(head("POST", LIST, "Content-Type: application/json"))
        self.assertEqual((reply.status, reply.json["error_name"]), (411, "LENGTH_REQUIRED"))

    def test_a_bad_name_of_an_upload_is_refused_before_the_body(self) -> None:
        self.refused(head("PUT", UPLOAD + "a%20b", "Content-Length: 9"), 400, "BAD_JOB_BINARY")

    def test_a_request_line_has_at_most_16384_bytes(self) -> None:
        """With method and version: of the path, or of the query."""
        for path in ("/healthz?", "/healthz?a=b&"):
            full = path + "x" * (16_384 - len(f"GET {path} HTTP/1.1"))
            self.assertEqual(self.replies(head("GET", full))[0][0].status, 200)
            self.assertEqual(self.refused(head("GET", full + "x"), 414, "URI_TOO_LONG"), LINE)
        self.assertEqual(self.refused(b"GET /" + b"x" * 100_000, 414, "URI_TOO_LONG"), LINE)

    def test_a_long_path_is_not_repeated(self) -> None:
        """It is not found, like any other."""
        path = "/v1.1/demo/" + "x" * (16_384 - len("GET /v1.1/demo/ HTTP/1.1"))
        (reply,), _ = self.replies(head("GET", path))
        self.assertEqual((reply.status, reply.json["error_name"]), (404, "NOT_FOUND"))
        self.assertLess(len(reply.json["error_message"]), 400)

    def test_a_request_has_at_most_200_headers_of_65536_bytes(self) -> None:
        """With Host. One endless header is not waited for."""
        lines = [f"X-{n}: 1" for n in range(199)]
        wide = [f"X-{n}: " + "v" * 1000 for n in range(60)]
        for fits in (lines, wide):
            self.assertEqual(self.replies(head("GET", "/healthz", *fits))[0][0].status, 200)
        more = [*wide, *(f"Y-{n}: " + "v" * 1000 for n in range(10))]
        for data, told in (
            (head("GET", "/", *lines, "X: 1"), "there are more than 200 header lines"),
            (head("GET", "/", *more), "the headers are larger than 65536 bytes"),
            (head("GET", "/")[:-2] + b"X: " + b"v" * 200_000,
             "a header line is longer than 65536 bytes"),
        ):  # fmt: skip
            self.assertEqual(self.refused(data, *LARGE), told)

    def test_pages_of_others_are_refused(self) -> None:
        """403 for a name that is not ours, for a foreign page, and across sites; no change."""
        peer = Connected()
        self.addCleanup(peer.service.close)
        ours = new_template("w")
        for request in (
            ours.replace(b"Host: a", b"Host: evil.example"),
            new_template("w", "Origin: https://evil.example"),
            new_template("w", "Sec-Fetch-Site: cross-site"),
        ):
            peer.send(request)
        self.assertEqual([r.json["error_name"] for r in peer.answers()], ["FORBIDDEN"] * 3)
        self.assertEqual([r["status"] for r in peer.service.audited], [403] * 3)
        self.assertEqual(peer.service.call("GET", NGTS).json, {"node_group_templates": []})


class AnswerTests(HttpCase):
    def test_an_answer_carries_date_server_and_request_id(self) -> None:
        """A sane id of the caller is kept, another one is replaced."""
        (sane, insane), _ = self.replies(
            head("GET", LIST, "X-Request-Id: abc-1.2_3"), head("GET", LIST, "X-Request-Id: a b")
        )
        self.assertEqual((sane.status, sane.body), (200, b'{"clusters":[]}'))
        self.assertEqual(sane.headers["x-request-id"], "abc-1.2_3")
        self.assertEqual(sane.headers["server"], "svcd")
        self.assertEqual(sane.headers["date"], "Thu, 01 Jan 2026 00:00:00 GMT")
        self.assertRegex(insane.headers["x-request-id"], r"^req-[0-9a-f]+-[0-9a-f]+$")

    def test_head_has_the_length_and_no_body(self) -> None:
        """Also of data that is streamed."""
        peer = Connected()
        self.addCleanup(peer.service.close)
        put = peer.service.call("PUT", UPLOAD + "a", data=b"abc")
        data = UPLOAD + put.json["job_binary_internal"]["id"] + "/data"
        for path, length in ((LIST, "15"), (data, "3")):
            peer.transport.clear()
            peer.send(head("HEAD", path))
            (reply,) = peer.answers()
            self.assertEqual((reply.headers["content-length"], reply.body), (length, b""))

    def test_204_has_no_length(self) -> None:
        peer = Connected()
        self.addCleanup(peer.service.close)
        peer.send(new_template("w"))
        made_id = peer.answers()[0].json["node_group_template"]["id"]
        peer.send(head("DELETE", f"{NGTS}/{made_id}"))
        reply = peer.answers()[1]
        self.assertEqual((reply.status, reply.body), (204, b""))
        self.assertNotIn("content-length", reply.headers)

    def test_the_connection_closes_when_the_caller_says_so(self) -> None:
        """By the header, and with HTTP/1.0, which needs no Host."""
        for data in (head("GET", LIST, "Connection: close"), b"GET /healthz HTTP/1.0\r\n\r\n"):
            (reply,), closing = self.replies(data)
            self.assertEqual((reply.status, reply.headers["connection"]), (200, "close"))
            self.assertTrue(closing)

    def test_absolute_form_and_trailing_slash_are_understood(self) -> None:
        replies, _ = self.replies(head("GET", "http://a" + LIST), head("GET", LIST + "/"))
        self.assertEqual([each.status for each in replies], [200, 200])

    def test_an_unknown_method_is_405_with_allow(self) -> None:
        (reply,), _ = self.replies(head("FROB", LIST))
        self.assertEqual((reply.status, reply.json["error_name"]), (405, "METHOD_NOT_ALLOWED"))
        self.assertEqual(reply.headers["allow"], "GET, HEAD, OPTIONS, POST")

    def test_100_continue_is_sent_for_a_wanted_body_only(self) -> None:
        """One that is too large is refused instead."""
        for size, first in ((3, 100), (300_000, 413)):
            wanted = head("PUT", UPLOAD + "a", f"Content-Length: {size}", "Expect: 100-continue")
            replies, _ = self.replies(wanted, max_binary_bytes=100_000)
            self.assertEqual([each.status for each in replies], [first])

    def test_a_query_may_hold_any_bytes(self) -> None:
        """Percent-encoded text beyond ASCII, and bytes that are no text, are values like others."""
        for query in ("name=caf%C3%A9", "name=%FF%00", "limit=%D9%A3", "%C2%B2=1", "%zz&=&&"):
            replies, _ = self.replies(head("GET", f"/v1.1/demo/data-sources?{query}"))
            self.assertEqual(len(replies), 1, query)
            self.assertLess(replies[0].status, 500)
