"""The change feed over two daemons on one PostgreSQL: a kill and slow transactions.

The client reads by one connection at a time and knows only the id of its last event.
"""

from __future__ import annotations

import json
from typing import Any

import psycopg2
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.web.client import Agent

from svcd.runtime.tasks import gather
from tests.live.test_daemons import SharedCase
from tests.support.live import Tenant
from tests.support.processes import reactor, until
from tests.support.sample import SLOW

skip = SLOW

_COPY = """
insert into data_sources (id, tenant_id, name, type, url, created_at, record, sealed)
select %(id)s, tenant_id, %(id)s, type, url, created_at,
       replace(record, id, %(id)s), sealed from data_sources where id = %(of)s;
insert into changes (kind, id, tenant_id, number, first, version, deleted, expires)
select 'data_sources', %(id)s, tenant_id, txid_current(),
       txid_current(), 1, 0, 0
  from data_sources where id = %(of)s;
"""
"""What a daemon writes for a new data source."""


class Watching(Protocol):
    """One answer to `watch`. events: (id, event, data), newest last."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, Any]] = []
        self.ended: Deferred[None] = Deferred()
        self._rest = b""

    def dataReceived(self, data: bytes) -> None:
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        for block in blocks:
            lines = block.decode().split("\n")
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            if "event" in fields:
                event = fields.get("id", ""), fields["event"], json.loads(fields["data"])
                self.events.append(event)

    def connectionLost(self, reason: Failure | None = None) -> None:
        self.ended.callback(None)

    def names(self) -> list[str]:
        """The events."""
        return [event for _, event, _ in self.events]


async def watch(tenant: Tenant, query: str = "") -> Watching:
    """Begin to watch."""
    url = f"{tenant.api}/v1.1/{tenant.tenant}/watch{query}"
    answer = await Agent(reactor).request(b"GET", url.encode())
    assert answer.code == 200, answer.code
    made = Watching()
    answer.deliverBody(made)
    return made


class WatchTests(SharedCase):
    async def add(self, tenant: Tenant, name: str) -> str:
        """A data source."""
        body = {"name": name, "type": "hdfs", "url": f"/data/{name}"}
        return str((await tenant.done("POST", "/data-sources", body))["data_source"]["id"])

    async def test_a_client_goes_on_at_another_daemon(self) -> None:
        """It misses no last version and sees none twice.

        Both daemons write, slow transactions of others go on, and one daemon is killed.
        """
        first, second = await self.shared(2)
        template = await self.add(first, "first")
        reading = await watch(first)
        clusters = [await first.new_cluster(f"c{n}", 1) for n in range(2)]
        slow = [psycopg2.connect(self.url) for _ in range(4)]
        for connection in slow:
            self.addCleanup(connection.close)

        written: list[str] = []
        done: list[str] = []

        async def write(tenant: Tenant, mark: str, count: int) -> None:
            for number in range(count):
                made = await self.add(tenant, f"{mark}-{number}")
                written.append(made)
                if number % 3 == 0:
                    await tenant.done("DELETE", f"/data-sources/{made}")
            done.append(mark)

        async def slowly(number: int) -> None:
            for turn in range(5):
                id_ = f"slow-{number}-{turn}"
                with slow[number].cursor() as cursor:
                    cursor.execute(_COPY, {"id": id_, "of": template})
                later = len(written) + 2 + 2 * number  # it stays open while others commit
                await until(lambda n=later: _so(len(written) >= n or bool(done)), "others", 60.0)
                slow[number].commit()

        async def read() -> list[tuple[str, str, Any]]:
            """All events, over as many connections as it takes."""
            await until(lambda: _so(len(reading.events) > 40), "events", 60.0)
            await self.daemons[0].kill()
            await reading.ended
            last = next(id_ for id_, _, _ in reversed(reading.events) if id_)
            again.append(await watch(second, f"?since={last}"))
            return reading.events

        again: list[Watching] = []
        writers = [lambda: write(second, "b", 40), read, *(
            (lambda n=n: slowly(n)) for n in range(4)
        )]  # fmt: skip
        try_first = Deferred.fromCoroutine(write(first, "a", 1000))
        try_first.addErrback(lambda _: None)  # it is cut off by the kill
        for result in await gather(writers, len(writers)):
            if isinstance(result, BaseException):
                raise result
        await try_first
        for cluster_id in clusters:
            await second.until_active(cluster_id)
        last_id = await self.add(second, "last")
        more = again[0]
        wanted = {"slow-3-4", last_id}

        async def arrived() -> bool:
            return wanted <= {data.get("id") for _, _, data in more.events}

        await until(arrived, "the last changes", 30.0)
        wanted.add(await self.add(second, "after-all"))  # a change sent twice would come before it
        await until(arrived, "the change after all", 30.0)
        events = [*reading.events, *more.events]
        self.assertEqual(more.names().count("reset"), 0)
        seen: set[tuple[str, str, int, str]] = set()
        last: dict[tuple[str, str], Any] = {}
        numbers: dict[str, list[int]] = {}
        for _, event, data in events:
            if event == "cluster_event":
                numbers.setdefault(data["cluster_id"], []).append(data["number"])
            elif event not in ("hello", "bye"):
                key = event, data["id"], data["version"], data["change"]
                self.assertNotIn(key, seen)
                seen.add(key)
                last[event, data["id"]] = data
        sources = (await second.done("GET", "/data-sources"))["data_sources"]
        shown = {s["id"]: s for s in sources if s["id"] != template}
        found = {i: d for (e, i), d in last.items() if e == "data_source"}
        self.assertEqual({i for i, d in found.items() if d["change"] != "deleted"}, set(shown))
        self.assertEqual(len([i for i in shown if i.startswith("slow-")]), 20)
        for cluster_id in clusters:
            data = last["cluster", cluster_id]
            now = await second.cluster(cluster_id)
            del now["usage"]  # only the answer to GET has it
            self.assertEqual({k: data[k] for k in now}, now)
            listed = (await second.done("GET", f"/clusters/{cluster_id}/events"))["events"]
            self.assertEqual(numbers[cluster_id], list(range(1, len(listed) + 1)))


async def _so(value: bool) -> bool:
    return value
