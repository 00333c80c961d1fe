"""Small deciding parts of the door: media types, faults of peers, headers."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.server import Request
from twisted.web.test.requesthelper import DummyChannel

from svcd.errors import SvcdError, ValidationError
from svcd.ports.cloud import CloudError
from svcd.ports.engine import EngineError
from svcd.ports.faults import Fault
from svcd.resources._answers import Answer, error_answer
from svcd.resources._delivery import respond
from svcd.resources._faults import as_answerable
from svcd.resources._negotiate import accepts_json
from svcd.runtime.tasks import DeadlineExceeded


class NegotiateTests(SynchronousTestCase):
    def test_accept(self) -> None:
        """The most specific range decides by its q-value."""
        for header, right in (
            (b"application/json", True),
            (b"*/*", True),
            (b"application/*;q=0.1", True),
            (b"text/html, */*;q=0.1", True),
            (b"APPLICATION/JSON ; q=1", True),
            (b"application/json;q=oops", True),
            (b"text/html", False),
            (b"", True),
            (b" ", True),
            (b",", False),
            (b"application/json;q=0", False),
            (b"application/json;q=0, */*", False),
            (b"*/*;q=0", False),
            (b"\xff\xfe", False),
        ):
            self.assertEqual(accepts_json(header), right, header)


class FaultTests(SynchronousTestCase):
    def test_every_kind_has_an_answer(self) -> None:
        """The one table from a peer's fault to status and name."""
        answers = {}
        for kind in Fault:
            error = as_answerable(CloudError("compute", kind, "words"))
            engine = as_answerable(EngineError(kind, "words"))
            assert error is not None and engine is not None
            answers[kind.value] = (error.status, error.name)
            self.assertIn("compute: words", error.message)
            self.assertEqual((engine.status, engine.name), answers[kind.value])
        self.assertEqual(
            answers,
            {
                "unreachable": (503, "SERVICE_UNAVAILABLE"),
                "timeout": (504, "PLATFORM_TIMEOUT"),
                "server_error": (502, "PLATFORM_ERROR"),
                "busy": (503, "SERVICE_UNAVAILABLE"),
                "unauthorized": (401, "UNAUTHORIZED"),
                "forbidden": (403, "FORBIDDEN"),
                "quota": (400, "QUOTA_ERROR"),
                "not_found": (404, "NOT_FOUND"),
                "refused": (400, "INVALID_REFERENCE"),
                "host_key": (502, "PLATFORM_ERROR"),
            },
        )

    def test_retry_after(self) -> None:
        """The peer's, rounded up and bounded; else our own."""
        for given, header in ((None, "5"), (0.2, "1"), (7.1, "8"), (1e9, "3600")):
            error = as_answerable(CloudError("compute", Fault.BUSY, "x", given))
            assert error is not None
            self.assertEqual(error.headers, {"Retry-After": header})

    def test_a_deadline_is_504_with_what_and_how_long(self) -> None:
        error = as_answerable(DeadlineExceeded("quota", 30.0))
        assert error is not None
        self.assertEqual(
            (error.status, error.message), (504, "quota took longer than 30 s; try again")
        )

    def test_others_are_bugs(self) -> None:
        """They get no answer of their own."""
        self.assertIsNone(as_answerable(ValueError("x")))
        ours = ValidationError("x")
        self.assertIs(as_answerable(ours), ours)


class AnswerTests(SynchronousTestCase):
    def test_every_error_has_the_three_attributes(self) -> None:
        """Of each leaf of the tree."""
        leaves = [c for c in _all(SvcdError) if "status" in dir(c)]
        self.assertGreater(len(leaves), 30)
        for leaf in leaves:
            answer = error_answer(leaf("words"))
            self.assertEqual(
                answer.body,
                b'{"error_code":%d,"error_name":"%b","error_message":"words"}'
                % (leaf.status, leaf.name.encode()),
            )

    def test_a_message_is_cut_off(self) -> None:
        """It may quote a megabyte that the caller has sent."""
        body = error_answer(ValidationError("x" * 20_000)).body
        message = json.loads(body)["error_message"]
        self.assertEqual(message, "x" * 16_384 + "… (the rest is left out)")

    def test_headers_cannot_be_split(self) -> None:
        """Line ends in a value are blanked."""
        channel = DummyChannel()
        respond(Request(channel, False), Answer(200, headers={"A": "b\r\nC: d"}), "r")
        self.assertIn(b"\r\nA: b C: d\r\n", channel.transport.written.getvalue())


def _all(cls: type[SvcdError]) -> list[type[SvcdError]]:
    return [leaf for each in cls.__subclasses__() for leaf in (each, *_all(each))]
