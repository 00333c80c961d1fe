"""Refusals of the services, as faults. Bodies are those that the real services send."""

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
    """status and body -> kind."""

    def kind(self, status: int, body: object, **headers: str) -> Fault:
        return refusal("x", "POST", "http://h/p?q", answer(status, body, **headers)).kind

    def test_quota_of_nova_is_quota(self) -> None:
        """403 with a text."""
        text = "Quota exceeded for instances: Requested 3, but already used 0 of 2 instances"
        self.assertEqual(self.kind(403, {"forbidden": {"code": 403, "message": text}}), Fault.QUOTA)
        text = "Quota exceeded, too many server groups."
        self.assertEqual(self.kind(403, {"forbidden": {"code": 403, "message": text}}), Fault.QUOTA)

    def test_policy_is_forbidden(self) -> None:
        """403 with another text, in two envelopes."""
        text = "Policy doesn't allow os_compute_api:os-hypervisors to be performed."
        body: object = {"forbidden": {"code": 403, "message": text}}
        self.assertEqual(self.kind(403, body), Fault.FORBIDDEN)
        body = {"message": "You do not own this image.", "code": "403 Forbidden", "title": "F"}
        self.assertEqual(self.kind(403, body), Fault.FORBIDDEN)

    def test_quota_of_neutron_is_quota(self) -> None:
        """409, told from a conflict by its type."""
        text = "Quota exceeded for resources: ['floatingip']."
        body = {"NeutronError": {"type": "OverQuota", "message": text, "detail": ""}}
        self.assertEqual(self.kind(409, body), Fault.QUOTA)
        body = {"NeutronError": {"type": "SecurityGroupInUse", "message": "in use", "detail": ""}}
        self.assertEqual(self.kind(409, body), Fault.BUSY)

    def test_quota_of_cinder_is_quota(self) -> None:
        """413 with retryAfter."""
        text = (
            "VolumeLimitExceeded: Maximum number of volumes allowed (2) exceeded "
            "for quota 'volumes'."
        )
        body = {"overLimit": {"code": 413, "message": text, "retryAfter": "0"}}
        self.assertEqual(self.kind(413, body, retry_after="0"), Fault.QUOTA)

    def test_rate_limit_is_busy_with_its_delay(self) -> None:
        """429 and 413."""
        for status in (413, 429):
            body = {"overLimit": {"code": status, "message": "This request was rate-limited."}}
            error = refusal("x", "GET", "http://h/p", answer(status, body, retry_after="7"))
            self.assertEqual((error.kind, error.retry_after_s), (Fault.BUSY, 7.0))

    def test_busy_volumes_are_busy(self) -> None:
        """400 by Nova and Cinder."""
        for text in (
            "Invalid volume: volume 1 is already attached to instances: 2",
            "Invalid volume: Volume status must be available or error or error_restoring",
        ):
            body = {"badRequest": {"code": 400, "message": text}}
            self.assertEqual(self.kind(400, body), Fault.BUSY)

    def test_a_bad_request_is_refused(self) -> None:
        """400 otherwise."""
        body = {"badRequest": {"code": 400, "message": "Flavor 99 could not be found."}}
        self.assertEqual(self.kind(400, body), Fault.REFUSED)

    def test_wrong_state_is_busy(self) -> None:
        """409 by Nova."""
        text = "Cannot 'attach_volume' instance 1 while it is in vm_state building"
        body = {"conflictingRequest": {"code": 409, "message": text}}
        self.assertEqual(self.kind(409, body), Fault.BUSY)

    def test_server_faults(self) -> None:
        """500 and 503 pass; 503 with Retry-After is busy."""
        body = {"computeFault": {"code": 500, "message": "Unexpected API Error."}}
        self.assertEqual(self.kind(500, body), Fault.SERVER_ERROR)
        body2 = {"message": "The server is currently unavailable.", "code": "503 S", "title": "S"}
        self.assertEqual(self.kind(503, body2), Fault.SERVER_ERROR)
        self.assertEqual(self.kind(503, body2, retry_after="3"), Fault.BUSY)

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
