"""Uploads whose end the database does not answer."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.faults import Effect, FaultRule
from svcd.testing import FakeServiceMixin

CONTENT = b"a = LOAD '$INPUT';"


class LostCommitTests(FakeServiceMixin, SynchronousTestCase):
    """Three transactions: begin, one piece, finish. The finish is done and not answered."""

    def setUp(self) -> None:
        self.svcd = self.fake_service()

    def call(self, method: str, path: str, **more: Any) -> Any:
        base = f"/v1.1/{self.svcd.tenant}/job-binary-internals"
        return self.svcd.call(method, base + path, **more)

    def lost(self, times: int) -> None:
        """The answer to the finish, and to so many transactions with it."""
        rule = self.svcd.faults.add(
            FaultRule(where="store", method="tx", after=2, times=times, effect=Effect.TIMEOUT_AFTER)
        )
        self.assertEqual(self.call("PUT", "/script.pig", data=CONTENT).status, 503)
        rule.remove()

    def assert_whole(self) -> None:
        (found,) = self.call("GET", "").json["binaries"]
        self.assertEqual((found["name"], found["datasize"]), ("script.pig", len(CONTENT)))
        self.assertEqual(self.call("GET", f"/{found['id']}/data").body, CONTENT)

    def test_binary_that_was_stored_keeps_its_bytes(self) -> None:
        """Whoever looks, as the answer says, finds it whole."""
        self.lost(1)
        self.assert_whole()

    def test_nor_can_it_be_taken_back(self) -> None:
        """The database is away for longer."""
        self.lost(2)
        self.assert_whole()
