"""Refusals of the services, as faults. What the real services say is in test_recorded.py."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.http import Answer
from svcd.clients.rest import error_body, refusal
from svcd.ports.faults import Fault


def answer(status: int, body: object, **headers: str) -> Answer:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Answer(
        status=status, headers={k.replace("_", "-"): v for k, v in headers.items()}, body=content
    )


class RefusalTests(SynchronousTestCase):
    def test_a_refusal_that_passes_by_itself(self) -> None:
        """BUSY, with the delay that the service asks for; a quota of Cinder does not pass."""
        quota = "VolumeLimitExceeded: Maximum number of volumes allowed (2) exceeded"
        rate = "This request was rate-limited."
        for status, text, headers, kind, delay_s in (
            (403, "Quota exceeded, too many server groups.", {}, Fault.QUOTA, None),
            (409, "Cannot 'attach_volume' instance 1 while it is in x", {}, Fault.BUSY, None),
            (413, quota, {"retry_after": "0"}, Fault.QUOTA, 0.0),
            (413, rate, {"retry_after": "7"}, Fault.BUSY, 7.0),
            (429, rate, {"retry_after": "7"}, Fault.BUSY, 7.0),
            (500, "Unexpected API Error.", {}, Fault.SERVER_ERROR, None),
            (503, "Unavailable.", {}, Fault.SERVER_ERROR, None),
            (503, "Unavailable.", {"retry_after": "3"}, Fault.BUSY, 3.0),
        ):
            body = {"fault": {"code": status, "message": text}}
            error = refusal("x", "GET", "http://h/p", answer(status, body, **headers))
            self.assertEqual((error.kind, error.retry_after_s), (kind, delay_s), text)

    def test_text_names_call_and_reason(self) -> None:
        """Without the query."""
        body = {"itemNotFound": {"code": 404, "message": "Instance 1 could not be found."}}
        error = refusal("compute", "GET", "http://h/servers/1?x=y", answer(404, body))
        self.assertEqual(error.kind, Fault.NOT_FOUND)
        self.assertEqual(
            error.text,
            "compute: GET http://h/servers/1 was answered 404: Instance 1 could not be found.",
        )

    def test_html_is_reduced_to_its_text(self) -> None:
        """Swift."""
        html = "<html><h1>Not Found</h1><p>The resource could not be found.</p></html>"
        self.assertEqual(
            error_body(answer(404, html)), ("Not Found The resource could not be found.", "")
        )
