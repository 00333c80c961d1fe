"""Every limit of a request: what is at it is accepted, what is one over is refused by name.

The table of bodies is made of the routes themselves, that of values of the request classes.
All in memory, on a virtual clock.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import ValidationError
from svcd.model import requests
from svcd.model.requests import Limits
from svcd.model.shapes import Shape
from svcd.resources._route import Route
from tests.unit.resources.limits import (
    BLUEPRINT,
    GOOD,
    LEAST,
    Limit,
    integers_of,
    limits_of,
    raw,
    shapes,
    with_body,
)
from tests.unit.resources.test_channel import Connected

JSON_BYTES = 1_048_576
BINARY_BYTES = 300_000
CONVERT_BYTES = 262_144
LOGIN_BYTES = 4096
NUMBER_OPTION = ("HDFS", "dfs.datanode.max.transfer.threads")
TEXT_OPTION = ("general", "Daemon JVM Options")
WIDE = Limits(groups=10_000, nodes=10**9)


def connected(**server: Any) -> Connected:
    return Connected(**{"max_binary_bytes": BINARY_BYTES, **server})


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: a", *lines, "", "")).encode()


def chunked(body: bytes, size: int = 60_000) -> bytes:
    parts = [body[n : n + size] for n in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"


def answers(peer: Connected) -> list[tuple[int, Any]]:
    """Status and body of all that was answered."""
    found = []
    for each in re.split(rb"(?=HTTP/1\.1 \d)", peer.transport.value())[1:]:
        before, _, body = each.partition(b"\r\n\r\n")
        found.append((int(before[9:12]), json.loads(body) if body else None))
    return found


class BodySizeTests(SynchronousTestCase):
    """Every route that takes a body, at its limit and one byte over it."""

    def setUp(self) -> None:
        self.peer = connected()
        self.addCleanup(self.peer.service.close)
        self.number = itertools.count(1)
        made = self.call("POST", "/clusters", {**LEAST[requests.NewCluster], "name": "first"})
        self.cluster_id = made["cluster"]["id"]
        binary = self.call("POST", "/job-binaries", LEAST[requests.NewJobBinary])
        self.binary_id = binary["job_binary"]["id"]
        first = {**LEAST[requests.NewJob], "name": "first", "libs": [self.binary_id]}
        job = self.call("POST", "/jobs", first)
        self.job_id = job["job"]["id"]
        self.paths = {
            "tenant_id": "demo",
            "cluster_id": self.cluster_id,
            "job_id": self.job_id,
            "image_id": self.peer.service.image_id,
            "plugin_name": "fake",
            "version": "0.1",
        }

    def call(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        answer = self.peer.service.call(method, "/v1.1/demo" + path, json=body)
        self.assertEqual(answer.status, 202, answer.body)
        return answer.json

    def path(self, route: Route) -> str:
        """With names that are new each time."""

        def value(match: re.Match[str]) -> str:
            return self.paths.get(match.group(1)) or f"n{next(self.number)}"

        return re.sub(r"<(\w+)>", value, route.pattern)

    def limit(self, route: Route) -> int:
        if "job-binary-internals" in route.pattern:
            return BINARY_BYTES
        if route.pattern == "/console/login":
            return LOGIN_BYTES
        return CONVERT_BYTES if "convert-config" in route.pattern else JSON_BYTES

    def good(self, route: Route) -> int:
        """The status of a good request. Without tokens there is no login: its body was read."""
        return 404 if route.pattern == "/console/login" else 202

    def body(self, route: Route, size: int) -> bytes:
        """A good one of `size` bytes: blanks may stand around JSON."""
        if "job-binary-internals" in route.pattern:
            return b"x" * size
        if raw(route):
            name = b"n%d" % next(self.number)
            return BLUEPRINT.replace(b'"t"', b'"%b"' % name).ljust(size)
        assert isinstance(route.spec.body, Shape)
        tree = dict(LEAST[route.spec.body.cls])
        if "name" in tree:
            tree["name"] = f"n{next(self.number)}"
        if route.spec.body.cls is requests.ExecuteRequest:
            tree["cluster_id"] = self.cluster_id
        if route.spec.body.cls is requests.NewJob:
            tree["libs"] = [self.binary_id]
        return json.dumps(tree).encode().ljust(size)

    def next_peer(self) -> Connected:
        """A new connection, when the cluster has finished the work of the last request."""
        self.peer.advance(30.0)
        return Connected(of=self.peer)

    def send(self, *pieces: bytes) -> tuple[int, Any]:
        peer = self.next_peer()
        for piece in pieces:
            peer.channel.dataReceived(piece)
        found = answers(peer)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def routes(self) -> Any:
        found = with_body(self.peer)
        self.assertGreater(len(found), 20)
        return found

    def headers(self, route: Route, *lines: str) -> bytes:
        media = () if raw(route) else ("Content-Type: application/json",)
        return head(route.method, self.path(route), *media, *lines)

    def refused(self, route: Route, answer: tuple[int, Any]) -> None:
        told = f"the body is larger than {self.limit(route)} bytes, the most for this request"
        expected = {"error_code": 413, "error_name": "CONTENT_TOO_LARGE", "error_message": told}
        self.assertEqual(answer, (413, expected), route.endpoint)

    def test_at_the_limit_with_a_length(self) -> None:
        """Accepted."""
        for route in self.routes():
            body = self.body(route, self.limit(route))
            status, told = self.send(self.headers(route, f"Content-Length: {len(body)}"), body)
            self.assertEqual(status, self.good(route), (route.endpoint, told))

    def test_at_the_limit_in_chunks(self) -> None:
        """Accepted."""
        for route in self.routes():
            body = chunked(self.body(route, self.limit(route)))
            status, told = self.send(self.headers(route, "Transfer-Encoding: chunked"), body)
            self.assertEqual(status, self.good(route), (route.endpoint, told))

    def test_one_byte_over_with_a_length(self) -> None:
        """Refused before any of it has arrived."""
        for route in self.routes():
            length = f"Content-Length: {self.limit(route) + 1}"
            self.refused(route, self.send(self.headers(route, length)))

    def test_one_byte_over_in_chunks(self) -> None:
        """Refused with the byte that is too much, before the end."""
        for route in self.routes():
            body = chunked(self.body(route, self.limit(route) + 1))[:-5]
            chunks = "Transfer-Encoding: chunked"
            self.refused(route, self.send(self.headers(route, chunks), body))

    def test_a_body_that_is_shorter_than_it_says(self) -> None:
        """Nobody is answered, and nothing of it is kept."""
        before = self.peer.service.call("GET", "/v1.1/demo/job-binary-internals").json
        for route in self.routes():
            peer = self.next_peer()
            body = self.body(route, 1000)
            peer.channel.dataReceived(self.headers(route, f"Content-Length: {len(body) + 1}"))
            peer.channel.dataReceived(body)
            peer.channel.readConnectionLost()
            self.assertEqual(answers(peer), [], route.endpoint)
            self.assertTrue(peer.transport.disconnecting, route.endpoint)
        after = self.peer.service.call("GET", "/v1.1/demo/job-binary-internals").json
        self.assertEqual(before, after)

    def test_a_body_that_is_longer_than_it_says(self) -> None:
        """What it said is taken; the rest is no request, and the connection ends."""
        for route in self.routes():
            peer = self.next_peer()
            body = self.body(route, 1000)
            peer.channel.dataReceived(self.headers(route, f"Content-Length: {len(body)}"))
            peer.channel.dataReceived(body + b"rubbish\r\n\r\n")
            found = [status for status, _ in answers(peer)]
            self.assertEqual(found, [self.good(route), 400], route.endpoint)
            self.assertTrue(peer.transport.disconnecting, route.endpoint)

    def test_chunks_that_lie(self) -> None:
        """A size that is no number, or more than it says: 400, and the connection ends."""
        for route in self.routes():
            for body in (b"zz\r\nabc\r\n0\r\n\r\n", b"1\r\nabc\r\n0\r\n\r\n", b"-1\r\n"):
                peer = self.next_peer()
                peer.channel.dataReceived(self.headers(route, "Transfer-Encoding: chunked"))
                peer.channel.dataReceived(body)
                found = answers(peer)
                self.assertEqual([s for s, _ in found], [400], (route.endpoint, body))
                self.assertEqual(found[0][1]["error_name"], "BAD_REQUEST")
                self.assertTrue(peer.transport.disconnecting)

    def test_two_lengths(self) -> None:
        """Neither is believed."""
        for route in self.routes():
            for second in ("Content-Length: 3", "Transfer-Encoding: chunked"):
                status, told = self.send(self.headers(route, "Content-Length: 2", second), b"{}")
                self.assertEqual((status, told["error_name"]), (400, "BAD_REQUEST"), second)


class ValueTests(SynchronousTestCase):
    """Every bound that a request class names."""

    def setUp(self) -> None:
        self.peer = connected()
        self.addCleanup(self.peer.service.close)
        self.classes = shapes(with_body(self.peer))

    def test_every_shape_has_a_body_here(self) -> None:
        """So that none is left out."""
        self.assertEqual(set(self.classes), set(GOOD))
        self.assertEqual(set(self.classes), set(LEAST))

    def decoded(self, cls: type, body: Any) -> object:
        return Shape(cls).decode(json.dumps(body).encode(), WIDE)

    def told(self, limit: Limit, value: Any) -> list[str]:
        error = self.assertRaises(ValidationError, self.decoded, limit.cls, limit.body(value))
        lines: list[str] = error.message.split("\n")
        return lines

    def test_lengths_and_numbers(self) -> None:
        """At the bound taken, one over refused with place and bound."""
        count = 0
        for cls in self.classes:
            for limit in limits_of(cls):
                self.assertIsInstance(self.decoded(cls, limit.body(limit.at)), cls, limit.where)
                expected = f"{limit.where}: expected {limit.expected}"
                found = self.told(limit, limit.over)[0]
                self.assertEqual(found[: len(expected)], expected)
                count += 1
        self.assertGreater(count, 100)

    def test_numbers_that_are_none(self) -> None:
        """Neither fractions nor texts nor truth values are whole numbers, nor what is too large."""
        for cls in self.classes:
            for limit in integers_of(cls):
                for value in (1.0, 1e2, -0.0, 0.5, "1", True):
                    found = self.told(limit, value)[0]
                    start = f"{limit.where}: expected int"
                    self.assertEqual(found[: len(start)], start, value)
                for value in (2**31, 2**63 - 1, 2**63, 2**64, 10**4299):
                    found = self.told(limit, value)[0]
                    self.assertIn(f"{limit.where}: expected int <= ", found)
                for value in (-(2**31), -(2**63), -(2**63) - 1):
                    found = self.told(limit, value)[0]
                    self.assertIn(f"{limit.where}: expected int >= ", found)

    def test_numbers_that_nothing_can_hold(self) -> None:
        """They are told as what they are: no JSON that can be read."""
        for text, why in (
            (b"1e400", "Number out of range"),
            (b"-1e400", "Number out of range"),
            (b"9" * 4301, "Integer value out of range"),
            (b"NaN", "invalid character"),
            (b"-", "invalid character"),
            (b"01", "invalid number"),
        ):
            body = b'{"name":"a","count":%b}' % text
            answer = self.post("/clusters", body)
            self.assertEqual((answer[0], answer[1]["error_name"]), (400, "MALFORMED_REQUEST_BODY"))
            self.assertIn(why, answer[1]["error_message"])

    def test_zero_below_nothing(self) -> None:
        """-0 is 0."""
        body = b'{"resize_node_groups":[{"name":"w","count":-0}]}'
        made: Any = Shape(requests.ScaleRequest).decode(body, WIDE)
        self.assertEqual(made.resize_node_groups[0].count, 0)

    def test_values_of_options(self) -> None:
        """A number of any size and a text of any length come back as they were given."""
        template = dict(LEAST[requests.NewNodeGroupTemplate])
        for number, value in enumerate((2**31, 2**63, -(2**63) - 1, 10**4299, "v" * 100_000)):
            section, option = TEXT_OPTION if isinstance(value, str) else NUMBER_OPTION
            configs = {section: {option: value}}
            body = {**template, "name": f"n{number}", "node_configs": configs}
            answer = self.post("/node-group-templates", json.dumps(body).encode())
            self.assertEqual(answer[0], 202)
            self.assertEqual(answer[1]["node_group_template"]["node_configs"], configs)

    def test_groups_and_machines(self) -> None:
        """The operator's bounds, of every list of groups."""
        limits = Limits(groups=3, nodes=10)
        group = LEAST[requests.NewCluster]["node_groups"][0]
        for cls, key, place in (
            (requests.NewCluster, "node_groups", dict(LEAST[requests.NewCluster])),
            (requests.NewClusterTemplate, "node_groups", dict(LEAST[requests.NewClusterTemplate])),
            (requests.ScaleRequest, "add_node_groups", {}),
            (requests.ScaleRequest, "resize_node_groups", {}),
        ):
            keys = ("name", "count") if key == "resize_node_groups" else tuple(group)

            def body(
                *counts: int,
                key: str = key,
                place: Any = place,
                keys: tuple[str, ...] = keys,
            ) -> bytes:
                groups = [{k: {**group, "count": c}[k] for k in keys} for c in counts]
                return json.dumps({**place, key: groups}).encode()

            shape: Shape[Any] = Shape(cls)
            shape.decode(body(1, 1, 1), limits)
            shape.decode(body(10), limits)
            for counts, told in (
                ((1, 1, 1, 1), "at most 3 groups, got 4"),
                ((10, 1), "at most 10 instances in total, got 11"),
                ((10**4299, 10**4299), "at most 10 instances in total, got 2000000"),
            ):
                error = self.assertRaises(ValidationError, shape.decode, body(*counts), limits)
                self.assertIn(f"$.{key}: expected {told}", error.message.split("\n"))

    def test_values_of_a_job(self) -> None:
        """Ten thousand of each kind."""
        shape: Shape[Any] = Shape(requests.ExecuteRequest)
        for key, made in (
            ("configs", lambda n: {f"a{i}": 1 for i in range(n)}),
            ("params", lambda n: {f"a{i}": "b" for i in range(n)}),
            ("args", lambda n: {f"a{i}": "b" for i in range(n)}),
            ("args", lambda n: ["x"] * n),
        ):
            body = {"cluster_id": "c", "job_configs": {key: made(10_000)}}
            shape.decode(json.dumps(body).encode(), WIDE)
            body = {"cluster_id": "c", "job_configs": {key: made(10_001)}}
            error = self.assertRaises(
                ValidationError, shape.decode, json.dumps(body).encode(), WIDE
            )
            self.assertEqual(
                error.message, f"$.job_configs.{key}: expected at most 10000 items, got 10001"
            )

    def test_depth(self) -> None:
        """Shallow enough is looked at; what no reader can walk is refused as a whole."""
        for depth, name in ((500, "VALIDATION_ERROR"), (5000, "MALFORMED_REQUEST_BODY")):
            for inner in (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth):
                status, told = self.post("/jobs", b'{"name":"a","type":"Pig","x":%b}' % inner)
                self.assertEqual((status, told["error_name"]), (400, name))

    def test_many_keys(self) -> None:
        """The first hundred faults are told."""
        status, told = self.post("/jobs", json.dumps({f"x{n}": 0 for n in range(70_000)}).encode())
        self.assertEqual((status, told["error_name"]), (400, "VALIDATION_ERROR"))
        lines = told["error_message"].split("\n")
        self.assertEqual((len(lines), lines[-1]), (101, "and more"))

    def post(self, path: str, body: bytes) -> tuple[int, Any]:
        answer = self.peer.service.call(
            "POST", "/v1.1/demo" + path, data=body, headers={"Content-Type": "application/json"}
        )
        if answer.status >= 400:
            self.assertEqual(
                list(answer.json), ["error_code", "error_name", "error_message"], answer.body
            )
        return answer.status, answer.json


class HeadTests(SynchronousTestCase):
    """What comes before the body."""

    def status(self, data: bytes, name: str = "", told: str = "") -> int:
        peer = connected()
        self.addCleanup(peer.service.close)
        for begin in range(0, len(data), 60_000):
            peer.channel.dataReceived(data[begin : begin + 60_000])
        ((status, body),) = answers(peer)
        if status != 200:
            self.assertEqual(body["error_code"], status)
            self.assertEqual((body["error_name"], body["error_message"]), (name, told))
            self.assertTrue(peer.transport.disconnecting)
        return status

    def test_request_line(self) -> None:
        """16,384 bytes with method and version: of the path, or of the query."""
        told = "the request line is longer than 16384 bytes"
        for path in ("/healthz?", "/healthz?a=b&"):
            full = path + "x" * (16_384 - len(f"GET {path} HTTP/1.1"))
            self.assertEqual(self.status(head("GET", full)), 200)
            self.assertEqual(self.status(head("GET", full + "x"), "URI_TOO_LONG", told), 414)
        self.assertEqual(self.status(b"GET /" + b"x" * 100_000, "URI_TOO_LONG", told), 414)

    def test_path_of_the_greatest_length(self) -> None:
        """It is not found, like any other."""
        path = "/v1.1/demo/" + "x" * (16_384 - len("GET /v1.1/demo/ HTTP/1.1"))
        peer = connected()
        self.addCleanup(peer.service.close)
        peer.channel.dataReceived(head("GET", path))
        ((status, body),) = answers(peer)
        self.assertEqual((status, body["error_name"]), (404, "NOT_FOUND"))
        self.assertLess(len(body["error_message"]), 400)

    def test_number_of_headers(self) -> None:
        """200 with Host."""
        told = "there are more than 200 header lines"
        lines = [f"X-{n}: 1" for n in range(199)]
        self.assertEqual(self.status(head("GET", "/healthz", *lines)), 200)
        more = head("GET", "/healthz", *lines, "X: 1")
        self.assertEqual(self.status(more, "REQUEST_HEADER_FIELDS_TOO_LARGE", told), 431)

    def test_size_of_the_headers(self) -> None:
        """65,536 bytes in all, whatever their number."""
        told = "the headers are larger than 65536 bytes"
        name = "REQUEST_HEADER_FIELDS_TOO_LARGE"
        lines = [f"X-{n}: " + "v" * 1000 for n in range(60)]
        self.assertEqual(self.status(head("GET", "/healthz", *lines)), 200)
        more = [*lines, *(f"Y-{n}: " + "v" * 1000 for n in range(10))]
        self.assertEqual(self.status(head("GET", "/healthz", *more), name, told), 431)

    def test_one_endless_header(self) -> None:
        """It is not waited for."""
        data = b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"v" * 200_000
        told = "a header line is longer than 65536 bytes"
        self.assertEqual(self.status(data, "REQUEST_HEADER_FIELDS_TOO_LARGE", told), 431)

    def test_digits_of_a_length(self) -> None:
        """Twenty are a number, though too large a body; more are none."""
        for digits, expected in ((20, 413), (21, 400)):
            peer = connected()
            self.addCleanup(peer.service.close)
            length = "Content-Length: " + "9" * digits
            peer.channel.dataReceived(head("POST", "/v1.1/demo/jobs", length))
            self.assertEqual([s for s, _ in answers(peer)], [expected])
