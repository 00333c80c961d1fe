"""The Oozie client against answers recorded from a real server, and against nonsense."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.http import Answer, Stream
from svcd.clients.oozie import OozieClient, fault_of
from svcd.model.execution_log import FileEnds
from svcd.ports.engine import EngineError
from svcd.ports.faults import Fault
from svcd.ports.machines import Location
from tests.unit.workflow.recorded import answer

BASE = "http://oozie.loopback:11000/oozie"
AT = Location(BASE)


def replay(tree: Mapping[str, Any]) -> Answer:
    import json

    body = json.dumps(tree["json"]) if "json" in tree else tree.get("text", "")
    headers = {name.lower(): value for name, value in tree["headers"].items()}
    return Answer(status=tree["status"], headers=headers, body=body.encode())


class Replay:
    """An HttpClient that answers with one answer and remembers what it was asked."""

    def __init__(self, given: Answer) -> None:
        self.given = given
        self.asked: list[tuple[str, str, bytes | None]] = []

    async def request(
        self, method: str, url: str, *, body: bytes | None = None, **_: object
    ) -> Answer:
        self.asked.append((method, url, body))
        return self.given

    @asynccontextmanager
    async def stream_get(self, url: str, **_: object) -> AsyncIterator[Stream]:
        self.asked.append(("GET", url, None))

        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(self.given.body), 100):
                yield self.given.body[at : at + 100]

        yield Stream(
            status=self.given.status, headers=self.given.headers, size=None, pieces=pieces()
        )


class Case(SynchronousTestCase):
    def client(self, given: Answer | str) -> OozieClient:
        self.http = Replay(replay(answer(given)) if isinstance(given, str) else given)
        return OozieClient(self.http)  # type: ignore[arg-type]

    def result(self, work: Any) -> Any:
        return self.successResultOf(Deferred.fromCoroutine(work))

    def fault(self, work: Any) -> tuple[Fault, str]:
        failure = self.failureResultOf(Deferred.fromCoroutine(work), EngineError)
        return failure.value.kind, failure.value.code


class Recorded(Case):
    def test_submit(self) -> None:
        """One call that starts it too; values are escaped."""
        work = self.client("submit-start").submit(AT, {"a": "1 < 2"})
        self.assertEqual(self.result(work), "0000002-260101000000000-oozie-root-W")
        self.assertEqual(
            self.http.asked,
            [
                (
                    "POST",
                    f"{BASE}/v1/jobs?action=start",
                    b"<configuration><property><name>a</name><value>1 &lt; 2</value></property>"
                    b"</configuration>",
                )
            ],
        )

    def test_no_ids_ask_nothing(self) -> None:
        self.assertEqual(self.result(self.client("jobs-none").lines(AT, [])), [])
        self.assertEqual(self.http.asked, [])

    def test_recorded_errors(self) -> None:
        """By the headers; a 500 has none; a kill of an unknown id has its own code."""
        expected = {
            "error-unknown-id-get": (Fault.NOT_FOUND, "E0604"),
            "error-unknown-id-kill": (Fault.NOT_FOUND, "E0605"),
            "error-unknown-id-log": (Fault.NOT_FOUND, "E0307"),
            "error-app-missing": (Fault.REFUSED, "E0307"),
            "error-no-user": (Fault.REFUSED, "E1603"),
            "error-workflow-schema": (Fault.REFUSED, "E0701"),
            "error-body-not-xml": (Fault.SERVER_ERROR, ""),
            "error-jobtype": (Fault.SERVER_ERROR, ""),
            "error-path": (Fault.SERVER_ERROR, ""),
            "error-safemode-submit": (Fault.BUSY, "E0002"),
            "error-doas": (Fault.UNAUTHORIZED, "E1400"),
        }
        found = {}
        for name in expected:
            error = fault_of("call", replay(answer(name)))
            found[name] = (error.kind, error.code)
        self.assertEqual(found, expected)

    def test_too_many_requests_pass_by_themselves(self) -> None:
        """A gateway before the engine says so; nothing was done."""
        error = fault_of("POST jobs", Answer(status=429, headers={}, body=b"<html>slow down"))
        self.assertEqual((error.kind, error.code), (Fault.BUSY, ""))


class Nonsense(Case):
    def test_html_is_read_as_text(self) -> None:
        page = Answer(status=502, headers={}, body=b"<html><h1>Bad gateway</h1> <p>x</html>")
        error = fault_of("GET jobs", page)
        self.assertEqual(str(error), "GET jobs: HTTP 502 Bad gateway x")

    def test_an_answer_that_makes_no_sense_is_a_server_error(self) -> None:
        """It may have been done: the caller must look."""
        for body in (b"", b"[]", b"<html>", b'{"id": 5}', b'{"id": "../x"}', b"\xff\x00"):
            given = Answer(status=201, headers={}, body=body)
            self.assertEqual(
                self.fault(self.client(given).submit(AT, {})), (Fault.SERVER_ERROR, "")
            )

    def test_a_broken_list_is_refused(self) -> None:
        for body in (b"{}", b'{"workflows": 5}', b'{"workflows": [{"id": "a"}]}'):
            given = Answer(status=200, headers={}, body=body)
            self.assertEqual(
                self.fault(self.client(given).lines(AT, ["a"])),
                (Fault.SERVER_ERROR, ""),
            )

    def test_a_long_log_keeps_its_ends(self) -> None:
        """The engine sends all of it."""
        for body, ends in (
            (b"a" * 250 + b"x" * 5000 + b"y" * 1000, (b"a" * 250, b"y" * 1000, 6250)),
            (b"a\nend", (b"a\nend", b"a\nend", 5)),
        ):
            self.http = Replay(Answer(status=200, headers={}, body=body))
            client = OozieClient(self.http, log_bytes=1000)  # type: ignore[arg-type]
            head, tail, size = ends
            self.assertEqual(
                self.result(client.log(AT, "0-W")), FileEnds(head=head, tail=tail, size=size)
            )
