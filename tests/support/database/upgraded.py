"""What a kept dump must hold after it was brought up to date: a mixin for each database."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

from attrs import evolve

from svcd.errors import ClusterNameTaken
from svcd.model.cluster import ClusterStatus
from svcd.model.ids import ClusterId, JobBinaryInternalId, TenantId
from svcd.model.job import Credentials, ExecutionStatus, JobType
from svcd.ports.store import Page, Tx
from svcd.store import migrations
from svcd.store.offline.check import Counted, check
from svcd.store.offline.session import Session
from tests.support.database.life import PASSWORD, PIECES, STRANGE

T = TypeVar("T")

TENANT = TenantId("demo")
_TWIN = """
insert into clusters (id, tenant_id, name, plugin_name, engine_version, cluster_template_id,
  default_image_id, status, is_transient, generation, settled_generation, version, created_at, refs,
  record, wire, used)
select 'twin', tenant_id, 'Mine', plugin_name, engine_version, cluster_template_id,
  default_image_id, status, is_transient, generation, settled_generation, version,
  '2142-01-01 00:00:00.000000', refs,
  replace(replace(record, '"name":"mine"', '"name":"Mine"'), id, 'twin'), wire, used from clusters;
"""
_LATER = {
    "loose_trusts": 5,
    "job_credentials": 7,
    "kept_answers": 12,
    "execution_logs": 14,
    "execution_log_pieces": 14,
}
"""Tables that came with a later schema than the first: of no older one are there rows."""

ADD = "run `python -m tests.support.database.dump` and commit what it writes"


def cut(number: int) -> Iterator[str]:
    """The file of schema `number` that fails at its begin, and after each of its statements."""
    text = dict(migrations.steps())[number]
    statements = [each for each in re.split(r";\s*\n", text) if each.strip()]
    for done in range(len(statements) + 1):
        yield ";\n".join([*statements[:done], "select nothing from nowhere;\n"])


class UpgradeContract:
    """Needs what raises NotImplementedError here."""

    def opened(self, number: int, also: str = "") -> int:
        """Load dump `number`, open a store on it, and return the schema it has then.

        also: statements that are run on the dump before that.
        """
        raise NotImplementedError

    def now(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        raise NotImplementedError

    def checked(self) -> tuple[Session, Any]:
        """A session on the closed database, and the sealer."""
        raise NotImplementedError

    def all(self, family: str) -> Sequence[Any]:
        return self.now(lambda tx: getattr(tx, family).page(TENANT, Page()))

    def test_older_clusters_that_differ_in_case_alone_stay(self) -> None:
        """A new one of the name is refused until both are dropped."""
        self.opened(5, _TWIN)
        older, twin = self.all("clusters")
        self.assertEqual((older.name, twin.name), ("mine", "Mine"))
        new = evolve(older, id=ClusterId("new"), name="MINE")
        for each in (older, twin):
            with self.assertRaises(ClusterNameTaken):
                self.now(lambda tx: tx.clusters.add(new))
            self.now(lambda tx, c=each: tx.clusters.drop(c.id))
        self.now(lambda tx: tx.clusters.add(new))
        self.assertEqual([c.name for c in self.all("clusters")], ["MINE"])

    def check_upgrade(self, number: int) -> None:
        """Every family reads what was written by the release that had schema `number`."""
        self.assertEqual(self.opened(number), migrations.newest())
        self._templates()
        self._clusters()
        self._data()
        self._executions()
        self._trusts(number)
        self._job_credentials(number)
        session, sealer = self.checked()
        try:
            found = list(check(session, sealer))
        finally:
            session.close()
        self.assertEqual([f for f in found if not isinstance(f, Counted)], [])
        empty = {f.table for f in found if not f.rows}
        self.assertEqual(empty, {t for t, since in _LATER.items() if number < since})

    def _templates(self) -> None:
        (group,) = self.all("node_group_templates")
        self.assertEqual(
            (group.name, group.description, group.node_processes, group.node_configs),
            ("workers", STRANGE, ("datanode", "nodemanager"),
             {"HDFS": {"dfs.datanode.handler.count": 5}}),
        )  # fmt: skip
        (template,) = self.all("cluster_templates")
        self.assertEqual(
            [(g.name, g.count, g.node_group_template_id) for g in template.node_groups],
            [("master", 1, None), ("worker", 2, group.id)],
        )

    def _clusters(self) -> None:
        (cluster,) = self.all("clusters")
        self.assertEqual(
            (cluster.name, cluster.status, cluster.description, cluster.generation,
             cluster.settled_generation, cluster.username),
            ("mine", ClusterStatus.ACTIVE, STRANGE, 1, 1, "svcd"),
        )  # fmt: skip
        self.assertEqual(
            [(i.instance_name, i.internal_ip, i.status) for i in cluster.instances()],
            [
                ("mine-master-001", "127.1.0.10", "ACTIVE"),
                ("mine-worker-001", "127.1.0.11", "ACTIVE"),
                ("mine-worker-002", "127.1.0.12", "ACTIVE"),
            ],
        )
        other = evolve(cluster, id=ClusterId("other"))
        self.assertEqual(self.now(lambda tx: tx.clusters.instances_of_others(other)), 3)
        self.assertEqual(self.now(lambda tx: tx.clusters.unsettled()), {})
        events = self.now(lambda tx: tx.clusters.events(TENANT, cluster.id))
        self.assertGreater(len(events), 10)
        self.assertIn("create server", {e.step for e in events})
        saved = self.now(lambda tx: tx.clusters.save(cluster))
        self.assertTrue(saved)

    def _trusts(self, number: int) -> None:
        found = self.now(lambda tx: tx.loose_trusts.first(10))
        self.assertEqual(
            [(f.id, f.tenant_id, f.expires_at, f.doomed, f.trouble) for f in found],
            [("loose", "demo", "2142-09-28T14:28:54.000000Z", False, STRANGE)]
            if number >= _LATER["loose_trusts"]
            else [],
        )

    def _job_credentials(self, number: int) -> None:
        """The record of one whose execution does not exist."""
        found = self.now(lambda tx: tx.job_credentials.loose(10))
        self.assertEqual(
            [(f.name, f.account.password, f.made, f.trouble) for f in found],
            [("svcd:noted", PASSWORD, None, STRANGE)]
            if number >= _LATER["job_credentials"]
            else [],
        )

    def _data(self) -> None:
        sources = {s.name: s for s in self.all("data_sources")}
        self.assertEqual(sorted(sources), ["data-in", "data-out"])
        self.assertEqual(
            sources["data-in"].credentials, Credentials(user="demo", password=PASSWORD)
        )
        binaries = {b.name: b for b in self.all("job_binaries")}
        self.assertEqual(sorted(binaries), ["count.pig", "kept-outside.jar"])
        self.assertEqual(
            binaries["kept-outside.jar"].extra, Credentials(user="demo", password=PASSWORD)
        )
        (job,) = self.all("jobs")
        self.assertEqual(
            (job.name, job.type, job.mains), ("count", JobType.PIG, (binaries["count.pig"].id,))
        )
        internals = {i.name: i for i in self.all("internals")}
        self.assertEqual(sorted(internals), ["count.pig", "in-pieces.jar"])
        id_ = JobBinaryInternalId("pieces")
        pieces = [self.now(lambda tx, n=n: tx.internals.piece(id_, n)) for n in range(5)]
        self.assertEqual(pieces, [*PIECES, None])

    def _executions(self) -> None:
        good, bad = self.all("executions")
        self.assertEqual(
            (good.status, bad.status), (ExecutionStatus.SUCCEEDED, ExecutionStatus.KILLED)
        )
        self.assertEqual(bad.job_configs.configs, {"svcd.fake.outcome": "fail"})
        self.assertEqual(self.now(lambda tx: tx.executions.unfinished()), [])
        of_cluster = self.now(lambda tx: tx.executions.of_cluster(good.cluster_id))
        self.assertEqual([e.id for e in of_cluster], [good.id, bad.id])


def add_tests(case: Any) -> None:
    """One test a schema."""

    def make(number: int) -> Callable[[Any], None]:
        def test(self: Any) -> None:
            self.check_upgrade(number)

        test.__doc__ = f"Schema {number} is brought up to date and read back."
        return test

    for number, _ in migrations.steps():
        setattr(case, f"test_schema_{number}", make(number))
