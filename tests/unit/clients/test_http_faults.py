"""Which failure of an exchange is which fault, by literal values."""

from __future__ import annotations

from twisted.internet.error import ConnectionLost, ConnectionRefusedError
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseNeverReceived

from svcd.clients.bodies import BodyTooLarge
from svcd.clients.connections import ForwardingForbidden, HeadersTooLarge
from svcd.clients.http_faults import NotSent, fault_of, kind_of
from svcd.model.secret import Secret
from svcd.ports.faults import Fault
from svcd.ports.machines import RemoteError
from svcd.runtime.tasks import DeadlineExceeded


class FaultTests(SynchronousTestCase):
    def test_failures_of_exchanges(self) -> None:
        """A text names what was asked, and no secret."""
        for error, kind, text in (
            (DeadlineExceeded("x", 5.0), Fault.TIMEOUT, "GET u had no complete answer within 5 s"),
            (
                HeadersTooLarge(9),
                Fault.SERVER_ERROR,
                "GET u was answered with more than 9 bytes of headers",
            ),
            (
                BodyTooLarge(9),
                Fault.SERVER_ERROR,
                "GET u was answered with more than 9 bytes (s.b)",
            ),
            (NotSent("no canary-word"), Fault.UNREACHABLE, "GET u: no ***"),
            (
                ForwardingForbidden(string="port 1"),
                Fault.FORBIDDEN,
                "GET u: An error occurred while connecting: port 1",
            ),
            (RemoteError(Fault.BUSY, "ssh a: full."), Fault.UNREACHABLE, "ssh a: full (for GET u)"),
            (
                ResponseNeverReceived([Failure(ConnectionLost("gone."))]),
                Fault.SERVER_ERROR,
                "GET u broke off: Connection to the other side was lost in a non-clean fashion:"
                " gone",
            ),
        ):
            found = fault_of("GET u", error, [Secret("canary-word")], "s.b")
            self.assertEqual(found, (kind, text))
        self.assertEqual(fault_of("GET u", ConnectionRefusedError(), [], "")[0], Fault.UNREACHABLE)

    def test_statuses(self) -> None:
        kinds = {status: kind_of(status).value for status in (307, 400, 401, 403, 404, 429, 500)}
        self.assertEqual(
            kinds,
            {
                307: "server_error",
                400: "refused",
                401: "unauthorized",
                403: "forbidden",
                404: "not_found",
                429: "busy",
                500: "server_error",
            },
        )
