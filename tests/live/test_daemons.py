"""Two and three daemons on one PostgreSQL: killed, stopped, and woken up late.

The embedded cloud and the scripted engine run in a process of their own and count every call. So
whatever happens to the daemons, what was made twice would show there.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

from twisted.internet.defer import Deferred, gatherResults

from svcd.runtime.tasks import gather, sleep
from tests.support.database.postgres_server import drop_database, execute, new_database
from tests.support.live import Tenant, seconds
from tests.support.processes import Daemon, DaemonCase, reactor, send, until
from tests.support.sample import SLOW

skip = SLOW

_TAKEN_OVER_S = 60.0
"""The lease runs out after 5 s; the machine of the tests may be busy."""
_SERVERS = "compute POST /v2.1/servers"
_SUBMITS = "engine POST oozie/v1/jobs"


class SharedCase(DaemonCase):
    timeout = 300

    def setUp(self) -> None:
        self.url, name = new_database()
        self.addCleanup(drop_database, name)

    async def shared(self, count: int, **cloud: str) -> list[Tenant]:
        """So many daemons on one cloud and one database, each as a tenant sees it."""
        self.cloud = self.daemon("svcd-cloud", **cloud)
        shown = await self.cloud.start()
        key = str(self.cloud.state / "common.key")
        settings = {
            "cloud__kind": "openstack",
            "cloud__auth_url": shown["identity"],
            "cloud__username": shown["username"],
            "cloud__password": shown["password"],
            "cloud__project": shown["tenant"],
            "database__url": self.url,
            "server__seal_key": key,
        }
        self.daemons = [self.daemon(**settings) for _ in range(count)]
        started = await gather([each.start for each in self.daemons], count)
        for each in started:
            if isinstance(each, BaseException):
                raise each
        return [Tenant(each.endpoints, shown) for each in self.daemons]

    def stranger(self) -> Daemon:
        """One that starts with a key of its own."""
        given = {k.replace(".", "__"): v for k, v in self.daemons[0].settings.items()}
        del given["server__state_dir"], given["server__seal_key"]
        made = self.daemon(**given)
        made.spawn()
        return made

    # ---- the lease ------------------------------------------------------------------------------

    def worker(self) -> Daemon | None:
        """The daemon that holds the lease."""
        rows = execute(self.url, "select d.about from lease l join daemons d on d.id = l.holder")
        marks = [f"process {each.program.pid}" for each in self.daemons]
        found = [d for (about,) in rows for d, m in zip(self.daemons, marks, strict=True)
                 if about.endswith(m)]  # fmt: skip
        return found[0] if found else None

    async def until_works(self, *among: Daemon) -> Daemon:
        """The daemon of `among` that works, as soon as one of them does."""

        async def so() -> bool:
            return self.worker() in among

        await until(so, "another daemon has the lease", _TAKEN_OVER_S)
        worker = self.worker()
        assert worker is not None
        return worker

    def as_tenant(self, daemon: Daemon) -> Tenant:
        """The interface of a daemon."""
        return Tenant(daemon.endpoints, self.cloud.endpoints)

    async def until_ready(self, tenant: Tenant) -> None:
        """Until the daemon says that it can serve, and shares the database."""

        async def ready() -> bool:
            return (await send("GET", f"{tenant.api}/readyz")).status == 200

        await until(ready, "ready", _TAKEN_OVER_S)

    # ---- the cloud's own word -------------------------------------------------------------------

    def admin(self, path: str) -> str:
        origin = "/".join(self.cloud.endpoints["identity"].split("/")[:3])
        return f"{origin}{path}"

    async def calls(self) -> dict[str, int]:
        """What the cloud and the engine were asked, and how often."""
        counted: dict[str, int] = (await send("GET", self.admin("/admin/calls"))).json["calls"]
        return {call: count for call, count in counted.items() if not call.startswith("admin ")}

    async def workflows(self, cluster_id: str) -> int:
        """How many workflows the cluster's engine has."""
        url = self.admin(f"/engine/{cluster_id}/oozie/v1/jobs?jobtype=wf&len=100")
        return int((await send("GET", url)).json["total"])

    async def check_once(self, tenant: Tenant, cluster_ids: Sequence[str]) -> None:
        """Each instance has one server and one volume; no server was asked for twice."""
        shown = [await tenant.cluster(each) for each in cluster_ids]
        instances = [i for c in shown for g in c["node_groups"] for i in g["instances"]]
        servers, volumes = await tenant.servers(), await tenant.volumes()
        self.assertEqual(
            sorted(s["id"] for s in servers), sorted(i["server_id"] for i in instances)
        )
        self.assertEqual(
            sorted(v["id"] for v in volumes), sorted(v for i in instances for v in i["volumes"])
        )

    async def check_gone(self, tenant: Tenant, cluster_ids: Sequence[str]) -> None:
        """They are deleted, and nothing is left."""
        for each in cluster_ids:
            await tenant.done("DELETE", f"/clusters/{each}")
        for each in cluster_ids:
            await tenant.until_gone(each)
        self.assertEqual((await tenant.servers(), await tenant.volumes()), ([], []))

    async def check_key(self, tenants: Sequence[Tenant]) -> None:
        """Requests with one key, at once and again, at any daemon: one answer, one record."""
        body = {"name": "keyed", "type": "hdfs", "url": "/keyed"}
        replies = []
        for _ in range(2):
            replies += await gatherResults(
                [
                    Deferred.fromCoroutine(
                        send(
                            "POST",
                            f"{each.api}/v1.1/{each.tenant}/data-sources",
                            json=body,
                            headers={"Idempotency-Key": "k"},
                        )
                    )
                    for each in (*tenants, *tenants)
                ]
            )
        self.assertEqual({(each.status, each.body) for each in replies}, {(202, replies[0].body)})
        acted = [each for each in replies if "idempotent-replayed" not in each.headers]
        self.assertEqual(len(acted), 1)

    async def pig_job(self, tenant: Tenant) -> tuple[str, str, str]:
        """A job, its input and its output."""
        job = await tenant.new_pig_job("a", b"a = load '$INPUT';")
        source, target = [await tenant.new_hdfs_source(n, f"/data/{n}") for n in ("in", "out")]
        return job, source, target

    async def execute(
        self, tenant: Tenant, job: tuple[str, str, str], cluster_id: str, **configs: str
    ) -> str:
        """The id of a new execution."""
        given = {key.replace("__", "."): value for key, value in configs.items()}
        return await tenant.execute(cluster_id, *job, given)


class SharingTests(SharedCase):
    async def test_requests_on_any_daemon(self) -> None:
        """What one accepts the other does, soon; the lease is given up at a stop.

        A daemon with another key is refused before it seals anything.
        """
        await self.shared(2)
        stranger = self.stranger()
        worker = await self.until_works(*self.daemons)
        [other] = [each for each in self.daemons if each is not worker]
        tenants = first, second = self.as_tenant(other), self.as_tenant(worker)
        clusters = [await each.new_cluster(f"c{n}", 1) for n, each in enumerate(tenants)]
        for cluster_id in clusters:
            await second.cluster(cluster_id)
        for cluster_id in clusters:
            await first.until_active(cluster_id)
        cluster_id, elsewhere = clusters
        await self.check_key(tenants)
        job = await self.pig_job(first)
        execution = await self.execute(first, job, cluster_id, svcd__fake__outcome="hang")
        await second.until_execution(execution, "RUNNING", 60.0)
        refreshed = await first.done("GET", f"/job-executions/{execution}/refresh-status")
        self.assertEqual(refreshed["info"]["status"], "RUNNING")
        began = seconds()
        cancelled = await first.done("GET", f"/job-executions/{execution}/cancel")
        self.assertEqual(cancelled["info"]["status"], "KILLED")
        self.assertLess(seconds() - began, 15.0)
        shown = await second.done("GET", f"/job-executions/{execution}")
        self.assertEqual(
            (shown["info"]["status"], shown["end_time"]), ("KILLED", cancelled["end_time"])
        )
        await first.scale(cluster_id, 2)
        await second.scale(elsewhere, 2)
        await first.until_active(cluster_id)
        await first.until_active(elsewhere)
        await self.check_once(second, clusters)
        self.assertEqual(await self.workflows(cluster_id), 1)
        for each, held in ((first, 0.0), (second, 1.0)):
            metrics = (await send("GET", f"{each.api}/metrics")).body.decode()
            self.assertIn(f"svcd_lease_held {held}", metrics)
        ended = await stranger.program.end()
        self.assertEqual(
            (ended.code, "copy the seal.key of the daemon" in ended.err), (1, True), ended.err
        )
        self.assertEqual((await worker.stop()).code, 0)
        began = seconds()
        await self.until_works(other)
        self.assertLess(seconds() - began, 2.0)
        await self.check_gone(first, clusters)
        self.assertEqual((await other.stop()).code, 0)
        self.assertEqual(execute(self.url, "select count(*) from daemons"), [(0,)])


class DeathTests(SharedCase):
    async def test_killed_in_the_middle(self) -> None:
        """Of three daemons one is killed and one stopped while clusters are made and scaled.

        The last one finishes everything, and nothing is made twice.
        """
        tenants = await self.shared(3, embedded__boot_s="1.5")
        clusters = [await tenants[n % 3].new_cluster(f"c{n}", 1) for n in range(3)]
        await sleep(reactor, 0.7)
        killed = await self.until_works(*self.daemons)
        await killed.kill()
        stopped = await self.until_works(*(d for d in self.daemons if d is not killed))
        [left] = [each for each in self.daemons if each not in (killed, stopped)]
        last = self.as_tenant(left)
        for cluster_id in clusters:
            await last.until_active(cluster_id)
        await self.check_once(last, clusters)
        self.assertEqual((await self.calls())[_SERVERS], 6)
        for number, cluster_id in enumerate(clusters):
            await (last, self.as_tenant(stopped))[number % 2].scale(cluster_id, 2)
        await stopped.stop()
        await self.until_works(left)
        for cluster_id in clusters:
            await last.until_active(cluster_id)
        await self.check_once(last, clusters)
        self.assertEqual((await self.calls())[_SERVERS], 9)
        await self.check_gone(last, clusters)

    async def test_asleep_and_woken_late(self) -> None:
        """A worker that was stopped for longer than the lease neither sends nor writes."""
        await self.shared(2, embedded__boot_s="1.0")
        asleep = await self.until_works(*self.daemons)
        [other] = [each for each in self.daemons if each is not asleep]
        tenants = [self.as_tenant(asleep), self.as_tenant(other)]
        clusters = [await tenants[n % 2].new_cluster(f"c{n}", 1) for n in range(4)]
        for cluster_id in clusters:
            await tenants[1].until_active(cluster_id)
        job = await self.pig_job(tenants[0])
        for cluster_id in clusters:
            await tenants[0].scale(cluster_id, 2)
        executions = [await self.execute(tenants[0], job, each) for each in clusters]
        await sleep(reactor, 0.5)
        asleep.program.signal(signal.SIGSTOP)
        await self.until_works(other)
        for cluster_id in clusters:
            await tenants[1].until_active(cluster_id)
        for execution in executions:
            await tenants[1].until_execution(execution, "SUCCEEDED", 120.0)
        ended = [await tenants[1].done("GET", f"/job-executions/{e}") for e in executions]
        asleep.program.signal(signal.SIGCONT)
        await self.until_ready(tenants[0])
        self.assertIs(self.worker(), other)
        await self.check_once(tenants[0], clusters)
        counted = await self.calls()
        self.assertEqual(counted[_SERVERS], 12)
        self.assertEqual(counted[_SUBMITS], 4)
        self.assertEqual([await self.workflows(each) for each in clusters], [1, 1, 1, 1])
        again = [await tenants[0].done("GET", f"/job-executions/{e}") for e in executions]
        self.assertEqual(
            [(e["info"]["status"], e["end_time"]) for e in again],
            [(e["info"]["status"], e["end_time"]) for e in ended],
        )
        self.assertNotIn("Traceback", asleep.said)
        await self.check_gone(tenants[0], clusters)
