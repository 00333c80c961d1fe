"""The size and the framing of bodies, of every route that takes one, in memory.

A body at the limit is accepted, a byte more is refused with the limit.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.model import requests
from svcd.resources._route import Route
from tests.unit.resources.bodies import BLUEPRINT, LEAST, shape_of, with_body
from tests.unit.resources.connected import Connected, Reply, chunked, head

JSON_BYTES = 1_048_576
BINARY_BYTES = 300_000
CONVERT_BYTES = 262_144
LOGIN_BYTES = 4096
CHUNKED = "Transfer-Encoding: chunked"


class BodyTests(SynchronousTestCase):
    """Each test sends its body to every route."""

    def setUp(self) -> None:
        self.peer = Connected(max_binary_bytes=BINARY_BYTES)
        self.addCleanup(self.peer.service.close)
        self.number = itertools.count(1)
        made = self.call("/clusters", {**LEAST[requests.NewCluster], "name": "first"})
        self.cluster_id = made["cluster"]["id"]
        binary = self.call("/job-binaries", LEAST[requests.NewJobBinary])
        self.binary_id = binary["job_binary"]["id"]
        first = {**LEAST[requests.NewJob], "name": "first", "libs": [self.binary_id]}
        self.paths = {
            "tenant_id": "demo",
            "cluster_id": self.cluster_id,
            "job_id": self.call("/jobs", first)["job"]["id"],
            "image_id": self.peer.service.image_id,
            "plugin_name": "fake",
            "version": "0.1",
        }
        self.routes = with_body(self.peer)
        self.assertGreater(len(self.routes), 20)

    def call(self, path: str, body: Mapping[str, Any]) -> Any:
        answer = self.peer.service.call("POST", "/v1.1/demo" + path, json=body)
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
        cls = shape_of(route)
        if cls is None:
            name = b"n%d" % next(self.number)
            return BLUEPRINT.replace(b'"t"', b'"%b"' % name).ljust(size)
        tree = dict(LEAST[cls])
        if "name" in tree:
            tree["name"] = f"n{next(self.number)}"
        if cls is requests.ExecuteRequest:
            tree["cluster_id"] = self.cluster_id
        if cls is requests.NewJob:
            tree["libs"] = [self.binary_id]
        return json.dumps(tree).encode().ljust(size)

    def send(self, route: Route, line: str, *pieces: bytes) -> Connected:
        """A new connection, when the cluster has finished the work of the last request."""
        self.peer.advance(30.0)
        peer = Connected(of=self.peer)
        media = () if shape_of(route) is None else ("Content-Type: application/json",)
        peer.send(head(route.method, self.path(route), *media, *line.split("\n")), *pieces)
        return peer

    def answer(self, route: Route, line: str, *pieces: bytes) -> Reply:
        (reply,) = self.send(route, line, *pieces).answers()
        return reply

    def test_a_body_at_the_limit_is_accepted(self) -> None:
        """With a length, and in chunks."""
        for route in self.routes:
            body = self.body(route, self.limit(route))
            reply = self.answer(route, f"Content-Length: {len(body)}", body)
            self.assertEqual(reply.status, self.good(route), (route.endpoint, reply.body))
            body = chunked(self.body(route, self.limit(route)))
            reply = self.answer(route, CHUNKED, body)
            self.assertEqual(reply.status, self.good(route), (route.endpoint, reply.body))

    def test_one_byte_over_the_limit_is_413(self) -> None:
        """With a length before any of it has arrived, in chunks before the end."""
        for route in self.routes:
            most = self.limit(route)
            told = f"the body is larger than {most} bytes, the most for this request"
            expected = {"error_code": 413, "error_name": "CONTENT_TOO_LARGE", "error_message": told}
            body = chunked(self.body(route, most + 1))[:-5]
            for reply in (
                self.answer(route, f"Content-Length: {most + 1}"),
                self.answer(route, CHUNKED, body),
            ):
                self.assertEqual((reply.status, reply.json), (413, expected), route.endpoint)

    def test_a_body_that_is_shorter_than_it_says_is_not_kept(self) -> None:
        """Nobody is answered."""
        before = self.peer.service.call("GET", "/v1.1/demo/job-binary-internals").json
        for route in self.routes:
            body = self.body(route, 1000)
            peer = self.send(route, f"Content-Length: {len(body) + 1}", body)
            peer.channel.readConnectionLost()
            self.assertEqual((peer.answers(), peer.closing), ([], True), route.endpoint)
        after = self.peer.service.call("GET", "/v1.1/demo/job-binary-internals").json
        self.assertEqual(before, after)

    def test_a_body_that_is_longer_than_it_says_ends_the_connection(self) -> None:
        """What it said is taken; the rest is no request."""
        for route in self.routes:
            body = self.body(route, 1000)
            peer = self.send(route, f"Content-Length: {len(body)}", body + b"rubbish\r\n\r\n")
            self.assertEqual(peer.statuses(), [self.good(route), 400], route.endpoint)
            self.assertTrue(peer.closing, route.endpoint)


class JsonTests(SynchronousTestCase):
    """JSON that no reader should have to hold."""

    def setUp(self) -> None:
        self.peer = Connected()
        self.addCleanup(self.peer.service.close)

    def post(self, path: str, body: bytes) -> Any:
        return self.peer.service.call(
            "POST", "/v1.1/demo" + path, data=body, headers={"Content-Type": "application/json"}
        )

    def test_numbers_that_nothing_can_hold_are_no_json(self) -> None:
        """And are told as that."""
        for text, why in (
            (b"1e400", "Number out of range"),
            (b"9" * 4301, "Integer value out of range"),
            (b"NaN", "invalid character"),
            (b"01", "invalid number"),
        ):
            answer = self.post("/clusters", b'{"name":"a","count":%b}' % text)
            self.assertEqual(
                (answer.status, answer.json["error_name"]), (400, "MALFORMED_REQUEST_BODY")
            )
            self.assertIn(why, answer.json["error_message"])

    def test_a_number_of_any_size_and_a_text_of_any_length_come_back(self) -> None:
        """As values of options."""
        number = ("HDFS", "dfs.datanode.max.transfer.threads")
        text = ("general", "Daemon JVM Options")
        for index, value in enumerate((2**63, -(2**63) - 1, 10**4299, "v" * 100_000)):
            section, option = text if isinstance(value, str) else number
            configs = {section: {option: value}}
            template = LEAST[requests.NewNodeGroupTemplate]
            body = {**template, "name": f"n{index}", "node_configs": configs}
            answer = self.post("/node-group-templates", json.dumps(body).encode())
            self.assertEqual(answer.status, 202)
            self.assertEqual(answer.json["node_group_template"]["node_configs"], configs)

    def test_deep_nesting_is_refused_as_a_whole(self) -> None:
        """Shallow enough is looked at."""
        for depth, name in ((500, "VALIDATION_ERROR"), (5000, "MALFORMED_REQUEST_BODY")):
            for inner in (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth):
                answer = self.post("/jobs", b'{"name":"a","type":"Pig","x":%b}' % inner)
                self.assertEqual((answer.status, answer.json["error_name"]), (400, name))
