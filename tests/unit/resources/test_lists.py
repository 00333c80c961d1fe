"""Long lists are read in parts, and other requests are served between them."""

from __future__ import annotations

import json
from typing import Any, cast

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import ServiceUnavailable
from svcd.model.ids import ClusterId, DataSourceId, JobBinaryId, JobId, TenantId
from svcd.model.job import DataSource, Job, JobBinary, JobType
from svcd.ports.store import Page, Rendered, Store
from svcd.resources._bodies import Disconnected
from svcd.resources._lists import Lists
from svcd.store.store import SqlStore
from svcd.testing import FakeServiceMixin
from tests.contract.store.rows import at, cluster
from tests.support.api import now
from tests.support.turns import turn

TENANT = TenantId("demo")


class TurnTests(SynchronousTestCase):
    """Lists of a store that notes who reads."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.asked: list[tuple[str, int]] = []
        self.gone: set[str] = set()
        self.lists = Lists(cast("Store", self), self.clock)

    async def read(self, work: Any) -> Any:
        """As a store's; there is no transaction. A part takes more than a slice."""
        self.clock.rightNow += 0.003
        return await work(None)

    def start(self, who: str, parts: int, row: bytes = b"1") -> Deferred[list[bytes]]:
        """Begin a list of so many full parts, of rows as large as `row`."""
        left = [parts]

        async def part(_: Any, page: Page, rows: int) -> Rendered | None:
            self.asked.append((who, rows))
            left[0] -= 1
            if left[0] < 0:
                return None
            return Rendered(text=row * rows, rows=rows, last=(at(1), f"{who}-{left[0]}"))

        async def whole() -> list[bytes]:
            with self.lists.begin(lambda: who in self.gone) as reading:
                return await reading.rendered(Page(), part)

        return Deferred.fromCoroutine(whole())

    def test_first_parts_do_not_wait_and_then_one_part_is_read_in_each_turn(self) -> None:
        """However many lists there are: they take turns."""
        running = [self.start(who, 3) for who in "abc"]
        self.assertEqual([who for who, _ in self.asked], ["a", "b", "c"])
        for number in range(1, 10):
            turn(self.clock)
            self.assertEqual(len(self.asked), 3 + number)
        self.assertEqual([who for who, _ in self.asked[3:]], [*"abcabcabc"])
        self.assertEqual([len(self.successResultOf(each)) for each in running], [3, 3, 3])

    def test_a_list_of_a_caller_who_has_gone_ends(self) -> None:
        """At its next turn."""
        left = self.start("a", 3)
        self.gone.add("a")
        turn(self.clock)
        self.failureResultOf(left, Disconnected)
        self.assertEqual(self.asked, [("a", 128)])

    def test_large_lists_end_when_together_they_fill_the_memory(self) -> None:
        """The one that began first goes on; one that begins is refused too."""
        first, second = (self.start(who, 2, b"x" * 300_000) for who in ("first", "second"))
        third = self.start("third", 2)
        self.failureResultOf(third, ServiceUnavailable)
        for _ in range(4):
            turn(self.clock)
        self.failureResultOf(second, ServiceUnavailable)
        self.assertEqual(len(self.successResultOf(first)), 2)
        self.assertEqual(len(self.start_and_turn("fourth")), 2)

    def start_and_turn(self, who: str) -> list[bytes]:
        """A list of two parts to its end."""
        running = self.start(who, 2)
        for _ in range(4):
            turn(self.clock)
        return self.successResultOf(running)


class ServiceTests(FakeServiceMixin, SynchronousTestCase):
    """Three hundred rows of each kind, through the interface."""

    def setUp(self) -> None:
        self.svcd = self.fake_service()
        store = SqlStore(self.svcd._database, self.svcd._sealer)
        now(Deferred.fromCoroutine(store.tx(self.fill)))

    async def fill(self, tx: Any) -> None:
        common: dict[str, Any] = {"tenant_id": TENANT, "created_at": at(1)}
        for n in range(300):
            binary = JobBinaryId(f"b-{n:03}")
            await tx.clusters.add(evolve(cluster(n), id=ClusterId(f"c-{n:03}"), **common))
            id_, url = DataSourceId(f"d-{n:03}"), "/in" if n % 2 else "/out"
            await tx.data_sources.add(
                DataSource(id=id_, name=f"d{n}", type="hdfs", url=url, **common)
            )
            await tx.job_binaries.add(
                JobBinary(id=binary, name=f"b{n}", url="objstore://a/b", **common)
            )
            libs = tuple(JobBinaryId(f"b-{n:03}") for n in range(299 if n == 7 else 1))
            job = Job(id=JobId(f"j-{n:03}"), name=f"j{n}", type=JobType.PIG, libs=libs, **common)
            await tx.jobs.add(evolve(job, mains=(binary,)))

    def get(self, path: str) -> Any:
        answer = self.svcd.call("GET", f"/v1.1/demo/{path}")
        self.assertEqual(answer.status, 200, answer.body)
        (found,) = json.loads(answer.body).values()
        return found

    def test_each_row_is_listed_once_in_order(self) -> None:
        for path in ("clusters", "data-sources", "job-binaries", "jobs"):
            prefix = path.rpartition("job-")[2][0]
            ids = [each["id"] for each in self.get(path)]
            self.assertEqual(ids, [f"{prefix}-{n:03}" for n in range(300)])

    def test_limit_marker_and_filter_hold_over_parts(self) -> None:
        ids = [each["id"] for each in self.get("clusters?limit=200&marker=c-049")]
        self.assertEqual(ids, [f"c-{n:03}" for n in range(50, 250)])
        ids = [each["id"] for each in self.get("data-sources?url=/in&limit=140")]
        self.assertEqual(ids, [f"d-{n:03}" for n in range(1, 280, 2)])

    def test_jobs_name_their_binaries(self) -> None:
        """Also one that names more than a part holds."""
        jobs = self.get("jobs")
        for number in (0, 7, 299):
            self.assertEqual([b["id"] for b in jobs[number]["mains"]], [f"b-{number:03}"])
        self.assertEqual([b["id"] for b in jobs[7]["libs"]], [f"b-{n:03}" for n in range(299)])

    def test_tags_name_all_clusters(self) -> None:
        self.assertEqual(self.get("marks")["clusters"], [f"c-{n:03}" for n in range(300)])
