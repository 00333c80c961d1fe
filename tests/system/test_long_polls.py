"""Requests that wait for something newer (`?wait=S`), on the virtual clock."""

from __future__ import annotations

from typing import Any

import treq
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import ClusterEvent
from svcd.model.ids import ClusterId, timestamp
from svcd.resources import _waits
from svcd.testing import FakeService
from tests.support.api import daemon_of
from tests.support.fakes import Api


class Asked:
    """A request that may wait. answer: its status, headers and JSON, once it is there."""

    def __init__(self, svcd: FakeService, path: str) -> None:
        self.answer: list[tuple[int, dict[str, str], Any]] = []
        self.failed: list[Failure] = []
        self.began = svcd.clock.seconds()
        self.took = -1.0

        async def ask() -> None:
            response = await svcd.treq.get(f"{svcd.url}/v1.1/{svcd.tenant}{path}")
            body = await treq.json_content(response)
            self.took = svcd.clock.seconds() - self.began
            headers = {
                name.decode().lower(): values[0].decode()
                for name, values in response.headers.getAllRawHeaders()
            }
            self.answer.append((response.code, headers, body))

        self.request = Deferred.fromCoroutine(ask())
        self.request.addErrback(self.failed.append)

    @property
    def json(self) -> Any:
        ((_, _, body),) = self.answer
        return body


class WaitTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.svcd = FakeService()
        self.addCleanup(self.svcd.close)
        self.api = Api(self.svcd)
        self.cluster = self.api.active_cluster("mine")
        self.path = f"/clusters/{self.cluster}/events"
        self.last = self.api.get(self.path)["events"][-1]["number"]
        self.waits = daemon_of(self.svcd).services.waits

    def ask(self, query: str) -> Asked:
        return Asked(self.svcd, f"{self.path}?{query}")

    def newer(self) -> Asked:
        return self.ask(f"since={self.last}&wait=60")

    def change(self) -> None:
        """A request adds an event."""
        self.svcd.call("PUT", f"/v1.1/{self.svcd.tenant}/clusters/{self.cluster}", json={})


class EventTests(WaitTests):
    def test_numbers_go_on_from_one(self) -> None:
        """`since` leaves the older ones out."""
        events = self.api.get(self.path)["events"]
        self.assertEqual([e["number"] for e in events], list(range(1, self.last + 1)))
        newer = self.api.get(f"{self.path}?since={self.last - 2}")["events"]
        self.assertEqual(newer, events[-2:])
        self.assertEqual(self.api.get(f"{self.path}?since={self.last}")["events"], [])

    def test_a_wait_ends_with_the_next_event(self) -> None:
        """Within a tenth of a second."""
        asked = self.newer()
        self.svcd.advance(20)
        self.assertEqual(asked.answer, [])
        self.change()
        self.svcd.advance(0.1)
        self.assertEqual(asked.json["events"][0]["number"], self.last + 1)
        self.assertEqual(asked.json["events"][0]["step"], "request")
        self.assertEqual(self.waits.open(), 0)

    def test_what_is_there_does_not_wait(self) -> None:
        asked = self.ask(f"since={self.last - 1}&wait=60")
        self.assertEqual([e["number"] for e in asked.json["events"]], [self.last])

    def test_a_wait_ends_after_its_seconds(self) -> None:
        """With nothing; the door's time limit for a request does not cut it, however short."""
        self.svcd.restart({"server.request_timeout_s": "2"})
        asked = self.newer()
        self.svcd.advance(59.9)
        self.assertEqual(asked.answer, [])
        self.svcd.advance(0.2)
        self.assertEqual((asked.answer[0][0], asked.json), (200, {"events": []}))
        self.assertAlmostEqual(asked.took, 60.0)

    def test_a_drain_ends_a_wait(self) -> None:
        """With what there is, and no request waits after it."""
        asked = self.newer()
        self.svcd.advance(5)
        drained: list[object] = []
        Deferred.fromCoroutine(daemon_of(self.svcd).drain(30.0)).addBoth(drained.append)
        self.svcd.advance(0)
        self.assertEqual((asked.took, asked.json, drained), (5.0, {"events": []}, [None]))
        self.assertEqual(self.newer().json, {"events": []})

    def test_a_caller_that_leaves_is_forgotten(self) -> None:
        """At once: no timer is left for it."""
        before = self.svcd.activity()["timers"]
        asked = self.newer()
        self.assertEqual(self.waits.open(), 1)
        asked.request.cancel()
        self.assertEqual(self.waits.open(), 0)
        self.assertTrue(asked.failed[0].check(CancelledError))
        self.assertEqual(self.svcd.activity()["timers"], before)

    def test_the_deletion_of_the_cluster_ends_a_wait(self) -> None:
        """The cluster is not found any more."""
        self.api.delete(f"/clusters/{self.cluster}")
        asked = self.ask(f"since={self.last + 50}&wait=60")
        self.svcd.advance(30)
        self.assertEqual(asked.answer[0][0], 404)

    def test_waits_of_a_tenant_are_bounded(self) -> None:
        """One more is refused with the way out; other tenants and other requests are not."""
        self.patch(_waits, "MOST", 3)
        waiting = [self.newer() for _ in range(3)]
        refused = self.newer()
        self.assertEqual(refused.answer[0][0], 503)
        self.assertIn("without ?wait", refused.json["error_message"])
        self.assertEqual(self.ask(f"since={self.last}").json, {"events": []})
        waiting[0].request.cancel()
        self.assertEqual(self.newer().answer, [])

    def test_call_does_not_wait(self) -> None:
        """And leaves those alone that do."""
        asked = self.newer()
        answer = self.svcd.call(
            "GET", f"/v1.1/{self.svcd.tenant}{self.path}?since={self.last}&wait=60"
        )
        self.assertEqual((answer.json, asked.answer), ({"events": []}, []))

    def test_lost_events_are_counted(self) -> None:
        """The header has their number; without it all are there."""
        self.assertNotIn("X-Events-Trimmed", self.answer("").headers)
        for _ in range(2):
            self.add_events(1000)
        newest = self.last + 2000
        for query, lost in (
            ("", self.last),
            ("?since=2", self.last - 2),
            (f"?since={self.last}", 0),
        ):
            answer = self.answer(query)
            self.assertEqual(answer.headers.get("X-Events-Trimmed", "0"), str(lost))
            self.assertEqual(answer.json["events"][-1]["number"], newest)

    def answer(self, query: str) -> Any:
        return self.svcd.call("GET", f"/v1.1/{self.svcd.tenant}{self.path}{query}")

    def add_events(self, count: int) -> None:
        store = daemon_of(self.svcd).services.store
        events = [
            ClusterEvent(
                at=timestamp(self.svcd.clock.seconds()), generation=1, step="x", outcome="done"
            )
        ] * count
        cluster_id = ClusterId(self.cluster)
        self.svcd.result_of(
            Deferred.fromCoroutine(store.tx(lambda tx: tx.clusters.add_events(cluster_id, events)))
        )
