from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.http import Answer
from svcd.clients.webhdfs import WebHdfsClient, fault_of
from svcd.model.secret import Secret
from svcd.ports.engine import EngineError
from svcd.ports.faults import Fault
from svcd.ports.machines import Host, Location, Way

BASE = "http://n:9870"
AT = Location(BASE)


def remote(status: int, exception: str, message: str = "m") -> Answer:
    body = f'{{"RemoteException": {{"exception": "{exception}", "message": "{message}"}}}}'
    return Answer(status=status, headers={}, body=body.encode())


class Script:
    """An HttpClient that gives prepared answers in turn."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str]] = []
        self.sent = b""
        self.through: list[object] = []

    async def request(self, method: str, url: str, through: object, **_: object) -> Answer:
        self.through.append(through)
        self.asked.append((method, url))
        return self.answers.pop(0)

    async def stream_put(
        self,
        url: str,
        content: AsyncIterator[bytes],
        size: int | None,
        through: object,
        **_: object,
    ) -> Answer:
        self.through.append(through)
        self.asked.append(("PUT", url))
        async for piece in content:
            self.sent += piece
        return self.answers.pop(0)


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


class Writes(SynchronousTestCase):
    def client(self, *answers: Answer) -> WebHdfsClient:
        self.http = Script(*answers)
        return WebHdfsClient(self.http)  # type: ignore[arg-type]

    def result(self, work: Any) -> Any:
        return self.successResultOf(Deferred.fromCoroutine(work))

    def fault(self, work: Any) -> Fault:
        kind: Fault = self.failureResultOf(Deferred.fromCoroutine(work), EngineError).value.kind
        return kind

    def test_a_write_goes_where_the_name_node_says(self) -> None:
        """In a body, or as a redirect of one that does not know `noredirect`."""
        made = Answer(status=201, headers={}, body=b"")
        for place in (
            Answer(status=200, headers={}, body=b'{"Location": "http://d:9864/x?op=CREATE"}'),
            Answer(status=307, headers={"location": "http://d:9864/x?op=CREATE"}, body=b""),
        ):
            client = self.client(place, made)
            self.result(client.write(AT, "/a b/ü", "ann", once(b"data"), 4))
            self.assertEqual(
                self.http.asked,
                [
                    (
                        "PUT",
                        f"{BASE}/webhdfs/v1/a%20b/%C3%BC?op=CREATE&overwrite=true"
                        "&noredirect=true&user.name=ann",
                    ),
                    ("PUT", "http://d:9864/x?op=CREATE"),
                ],
            )
            self.assertEqual(self.http.sent, b"data")

    def test_a_place_with_a_bare_name_is_made_a_url(self) -> None:
        """The name node does not encode what it repeats of the path."""
        place = '{"Location": "http://d/a b/\u00fc?op=CREATE&x=%20"}'.encode()
        made = Answer(status=201, headers={}, body=b"")
        client = self.client(Answer(status=200, headers={}, body=place), made)
        self.result(client.write(AT, "/a b/ü", "ann", once(b""), 0))
        self.assertEqual(self.http.asked[1][1], "http://d/a%20b/%C3%BC?op=CREATE&x=%20")

    def test_only_machines_of_the_cluster_take_content(self) -> None:
        """Through their own SSH connections."""
        made = Answer(status=201, headers={}, body=b"")
        for host, kind in (
            ("d1.local", None),
            ("10.0.0.9", None),
            ("169.254.169.254", Fault.REFUSED),
        ):
            body = f'{{"Location": "http://{host}:9864/x"}}'.encode()
            client = self.client(Answer(status=200, headers={}, body=body), made)
            machine = Host(address="172.24.4.9", port=22, user="sam", private_key=Secret("k"))
            way = Way("10.0.0.9", machine)
            ways = {"d1": way, "10.0.0.9": way}
            work = client.write(AT, "/a", "ann", once(b""), 0, ways)
            if kind is None:
                self.result(work)
                self.assertEqual(self.http.asked[1][1], "http://10.0.0.9:9864/x")
                self.assertEqual(self.http.through, [None, machine])
            else:
                self.assertEqual(self.fault(work), kind)

    def test_a_place_that_is_none_is_nonsense(self) -> None:
        for body in (
            b"",
            b"{}",
            b'{"Location": "file:///etc"}',
            b'{"Location": "http://[/x"}',
            b'{"Location": "http://n:-5/x"}',
            b'{"Location": "http://n:99999/x"}',
        ):
            client = self.client(Answer(status=200, headers={}, body=body))
            work = client.write(AT, "/a", "ann", once(b""), 0)
            self.assertEqual(self.fault(work), Fault.SERVER_ERROR)


class Faults(SynchronousTestCase):
    def test_exceptions_and_statuses(self) -> None:
        """What may pass by itself is told from what stays."""
        cases = [
            (remote(403, "SafeModeException"), Fault.BUSY),
            (remote(403, "StandbyException"), Fault.BUSY),
            (remote(403, "RemoteException", "Name node is in safe mode."), Fault.BUSY),
            (remote(403, "IOException"), Fault.SERVER_ERROR),
            (remote(403, "AccessControlException"), Fault.FORBIDDEN),
            (remote(403, "DSQuotaExceededException"), Fault.QUOTA),
            (remote(404, "FileNotFoundException"), Fault.NOT_FOUND),
            (remote(400, "IllegalArgumentException"), Fault.REFUSED),
            (remote(401, "SecurityException"), Fault.UNAUTHORIZED),
            (Answer(status=503, headers={}, body=b"<html>"), Fault.SERVER_ERROR),
            (Answer(status=429, headers={}, body=b"<html>"), Fault.BUSY),
            (Answer(status=404, headers={}, body=b""), Fault.NOT_FOUND),
        ]
        self.assertEqual([fault_of("X", given).kind for given, _ in cases], [k for _, k in cases])

    def test_only_the_first_line_of_a_stack_is_told(self) -> None:
        error = fault_of("MKDIRS /a", remote(403, "AccessControlException", "no\\n\\tat x"))
        self.assertEqual(str(error), "HDFS MKDIRS /a: HTTP 403 AccessControlException no")
