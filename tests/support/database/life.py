"""A life that leaves rows in every table: what the kept dumps and the copies of a database hold.

It is lived through the interface by the daemon itself, on whatever database it is given.
"""

from __future__ import annotations

from collections.abc import Mapping

from twisted.internet.defer import Deferred

from svcd.model import ownership_tags
from svcd.model.ids import ClusterId, ExecutionId, JobBinaryInternalId, TenantId, timestamp
from svcd.model.job import Credentials, JobBinaryInternal
from svcd.model.job_credential import JobCredential
from svcd.model.trust import LooseTrust
from svcd.ports.store import Sealer
from svcd.store.database import Database
from svcd.store.store import SqlStore
from svcd.testing import FakeService
from tests.support.api import now
from tests.support.fakes import MASTER, WORKER, Api

PIECES = (b"\x00\x01\xff", b"", "ä'\"\\%s:name;\n".encode(), b"end")
BINARY_SHA256 = "63088ddf48e631820a55683a834534bda1c7b6280bcd09b099b6372aab96a4fb"
BINARY_SIZE = 20
PASSWORD = "demo-password-of-a-source"
STRANGE = 'it\'s "100%" :name \\ ü 漢 \U0001f40d'


class Lived(FakeService):
    """A fake service whose rows are kept in `database`, sealed by `sealer`."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._lived = (database, sealer)
        super().__init__()

    def restart(self, settings: Mapping[str, str] | None = None) -> None:
        """See FakeService."""
        self._database, self._sealer = self._lived  # type: ignore[assignment]
        super().restart(settings)


def live(database: Database, sealer: Sealer) -> None:
    """Leave the rows there, and the database open."""
    svcd = Lived(database, sealer)
    api = Api(svcd)
    group = api.post(
        "/node-group-templates",
        {
            "name": "workers",
            "description": STRANGE,
            "plugin_name": "fake",
            "engine_version": "0.1",
            "flavor_id": "2",
            "node_processes": WORKER,
            "node_configs": {"HDFS": {"dfs.datanode.handler.count": 5}},
        },
    )["node_group_template"]["id"]
    template = api.post(
        "/cluster-templates",
        {
            "name": "small",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "default_image_id": svcd.image_id,
            "node_groups": [
                {"name": "master", "count": 1, "flavor_id": "2", "node_processes": MASTER},
                {"name": "worker", "count": 2, "node_group_template_id": group},
            ],
        },
    )["cluster_template"]["id"]
    made = api.post(
        "/clusters",
        {
            "name": "mine",
            "description": STRANGE,
            "plugin_name": "fake",
            "engine_version": "0.1",
            "cluster_template_id": template,
            "user_keypair_id": svcd.keypair,
        },
    )
    cluster = str(made["cluster"]["id"])
    api.until_status(cluster, "Active")
    job, sources = api.new_job(), api.new_sources()
    api.until_over(api.execute(job, cluster, sources))
    api.until_over(api.execute(job, cluster, sources, {"svcd.fake.outcome": "fail"}))
    api.ask(
        "POST",
        "/job-binaries",
        202,
        json={
            "name": "kept-outside.jar",
            "url": "objstore-internal://box/kept.jar",
            "extra": {"user": "demo", "password": PASSWORD},
        },
        headers={"Idempotency-Key": "life"},
    )
    svcd.advance(10)  # svcd keeps the logs of the executions
    svcd.kill()
    store = SqlStore(database, sealer)

    async def binary() -> None:
        record = JobBinaryInternal(
            id=JobBinaryInternalId("pieces"),
            tenant_id=TenantId(svcd.tenant),
            name="in-pieces.jar",
            datasize=BINARY_SIZE,
            digest=BINARY_SHA256,
            created_at=timestamp(svcd.clock.seconds()),
        )
        await store.tx(lambda tx: tx.internals.begin("pieces", record.tenant_id, BINARY_SIZE))
        for number, piece in enumerate(PIECES):
            await store.tx(lambda tx, n=number, p=piece: tx.internals.append("pieces", n, p))
        await store.tx(lambda tx: tx.internals.finish("pieces", record))
        await store.tx(lambda tx: tx.internals.begin("cut-short", TenantId(svcd.tenant), 100))
        await store.tx(lambda tx: tx.internals.append("cut-short", 0, b"never finished"))

    now(Deferred.fromCoroutine(binary()))
    loose = LooseTrust(
        id="loose",
        cluster_id=ClusterId(cluster),
        tenant_id=TenantId(svcd.tenant),
        trustor_id="somebody",
        expires_at=ownership_tags.trust_end("loose"),
        asked_at=timestamp(svcd.clock.seconds()),
        due_at=timestamp(svcd.clock.seconds() + 300.0),
        trouble=STRANGE,
    )
    now(Deferred.fromCoroutine(store.tx(lambda tx: tx.loose_trusts.add(loose))))
    noted = JobCredential(
        name="svcd:noted",
        execution_id=ExecutionId("gone"),
        cluster_id=ClusterId(cluster),
        tenant_id=TenantId(svcd.tenant),
        account=Credentials(user="demo", password=PASSWORD),
        asked_at=timestamp(svcd.clock.seconds()),
        expires_at=timestamp(svcd.clock.seconds() + 600.0),
        due_at=timestamp(svcd.clock.seconds() + 300.0),
        trouble=STRANGE,
    )
    now(Deferred.fromCoroutine(store.tx(lambda tx: tx.job_credentials.add(noted))))
