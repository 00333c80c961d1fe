"""PostgreSQL at its worst: many at once, killed, stopped, frozen, full, and owned by another.

First the store alone, then the whole daemon: nothing acknowledged is lost, nothing is half there.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any

import psycopg2
from attrs import evolve
from twisted.internet import reactor as _reactor  # noqa: TID251 - sockets
from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SkipTest, TestCase

from svcd.errors import ServiceUnavailable
from svcd.model.ids import ClusterId
from svcd.ports.store import Page, Tx
from svcd.runtime.tasks import gather, sleep
from svcd.settings import Database
from svcd.store.database import Conflict, SchemaError, Sql
from svcd.store.lease.lock import LOCK_KEY
from svcd.store.postgres import PostgresDatabase
from svcd.store.sealer import MemorySealer
from svcd.store.store import SqlStore
from tests.contract.store.rows import TENANT, at, cluster
from tests.support.database.postgres_server import (
    PostgresServer,
    cut_owner,
    drop_database,
    execute,
    new_database,
    own_server,
    steal,
)
from tests.support.live import Tenant
from tests.support.processes import Daemon, DaemonCase, Reply, send, until
from tests.support.sample import SLOW

skip = SLOW

reactor: Any = _reactor

_SETTINGS = Database(connections=8, connect_timeout_s=1.0, statement_timeout_s=5.0, wait_s=3.0)
_KILL = """
select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid()
"""
_OWNER = """
select pid from pg_locks where locktype = 'advisory'
   and database = (select oid from pg_database where datname = current_database())
"""


_KILL_ONE = """
select pg_terminate_backend(pid) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and application_name ~ '^svcd-'
   and pid not in (select pid from pg_locks where locktype = 'advisory')
 order by random() limit 1
"""
_WAITING = "select count(*) from pg_locks where not granted"
_ORPHANS = """
select count(*) from pieces where upload_id not in (select upload_id from internals)
"""
_DISK_MIB = 32
_FILLER_MIB = 10
_PIECE = 3 * 1024 * 1024


class _PostgresCase(TestCase):
    timeout = 120

    def setUp(self) -> None:
        self.url, name = new_database()
        self.addCleanup(drop_database, name)
        self.taken: list[str] = []
        self.sealer = MemorySealer()

    async def opened(self, **changes: Any) -> SqlStore:
        """A store on the test's database, which the test's end closes."""
        settings = evolve(_SETTINGS, **{"url": self.url, **changes})
        self.database = PostgresDatabase(reactor, settings, self.taken.append)
        await self.database.open()
        store = SqlStore(self.database, self.sealer)
        self.addCleanup(lambda: Deferred.fromCoroutine(store.close()))
        await store.open(at(0))
        await self.database.keeper.begin()
        return store

    async def fails(self, work: Awaitable[object], kind: type[Exception]) -> str:
        try:
            await work
        except kind as error:
            return str(error)
        raise AssertionError(f"{kind.__name__} was not raised")

    def server(self) -> PostgresServer:
        """One that can be stopped."""
        if not self.url.startswith("postgresql://svcd@"):
            raise SkipTest("the server of PGHOST is not ours to stop")
        return own_server()


class ManyAtOnceTests(_PostgresCase):
    """Transactions beside each other."""

    async def test_no_increment_is_lost(self) -> None:
        """Sixty read and write one row at once."""
        store = await self.opened(wait_s=20.0)
        await store.tx(lambda tx: tx.clusters.add(cluster(generation=0)))

        async def increment(tx: Tx) -> None:
            found = await tx.clusters.get(TENANT, ClusterId("c-1"))
            if not await tx.clusters.save(evolve(found, generation=found.generation + 1)):
                raise AssertionError("somebody came between")

        results = await gather([lambda: store.tx(increment)] * 60, 60)
        self.assertEqual([r for r in results if r is not None], [])
        found = await store.read(lambda tx: tx.clusters.get(TENANT, ClusterId("c-1")))
        self.assertEqual(found.generation, 60)

    async def test_read_of_several_statements_sees_one_moment(self) -> None:
        """What is committed in between does not show."""
        await self.opened()
        await self.database.script("create table t (n integer);\ninsert into t values (1);\n")
        seen: list[list[int]] = []

        async def look(sql: Sql) -> None:
            first = await sql.one("select n from t")
            again = await sql.one("select n from t")
            execute(self.url, "update t set n = n + 1")
            third = await sql.one("select n from t")
            assert first is not None and again is not None and third is not None
            seen.append([first[0], again[0], third[0]])

        await self.database.read(look)
        self.assertEqual(seen, [[1, 1, 1]])


class MistakeTests(_PostgresCase):
    """What our own code or its callers do wrong."""

    async def test_failed_statement_cannot_be_passed_over(self) -> None:
        """The server would take all back and say nothing."""
        await self.opened()

        async def work(sql: Sql) -> None:
            await sql.run("insert into uploads values ('u', '', 't', 0)")
            with contextlib.suppress(Conflict):
                await sql.run("insert into uploads values ('u', '', 't', 0)")

        await self.fails(self.database.tx(work), RuntimeError)
        self.assertEqual(execute(self.url, "select * from uploads"), [])

    async def test_cancelled_caller_leaves_a_clean_connection(self) -> None:
        """The transaction runs to its end without it."""
        store = await self.opened(connections=1)

        async def work(sql: Sql) -> None:
            await sql.one("select pg_sleep(0.2)")
            await sql.run("insert into uploads values ('u', '', 't', 0)")

        running = Deferred.fromCoroutine(self.database.tx(work))
        await sleep(reactor, 0.05)
        running.cancel()
        await self.fails(running, CancelledError)
        await store.tx(lambda tx: tx.clusters.add(cluster()))
        self.assertEqual(execute(self.url, "select id from uploads"), [("u",)])

    async def test_statement_that_takes_too_long(self) -> None:
        """It is told apart from a cancel, and the connection goes on."""
        await self.opened(connections=1, statement_timeout_s=0.2)
        text = await self.fails(
            self.database.tx(lambda sql: sql.one("select pg_sleep(5)")), ServiceUnavailable
        )
        self.assertIn("took too long for a statement", text)
        await self.database.tx(lambda sql: sql.one("select 1"))


class BrokenServerTests(_PostgresCase):
    """The server and its processes end, or stand still."""

    async def test_killed_between_statements(self) -> None:
        """Nothing was changed, whatever the author makes of the error; the next one serves."""
        store = await self.opened()

        async def work(sql: Sql) -> None:
            await sql.run("insert into uploads values ('u', '', 't', 0)")
            execute(self.url, _KILL)
            with contextlib.suppress(ServiceUnavailable):
                await sql.one("select 1")

        text = await self.fails(self.database.tx(work), ServiceUnavailable)
        self.assertIn("nothing was changed", text)
        self.assertEqual(execute(self.url, "select * from uploads"), [])
        await sleep(reactor, 0.05)
        await store.tx(lambda tx: tx.clusters.add(cluster()))
        self.assertEqual(self.taken, [])

    async def test_killed_before_the_commit(self) -> None:
        """It cannot be known whether the change was made."""
        store = await self.opened()

        async def work(tx: Tx) -> None:
            await tx.clusters.add(cluster())
            execute(self.url, _KILL)

        text = await self.fails(store.tx(work), ServiceUnavailable)
        self.assertIn("not known", text)

    async def test_frozen_server_is_given_up(self) -> None:
        """Each call ends in time; when the server goes on, so do we."""
        server = self.server()
        self.addCleanup(server.thaw)
        store = await self.opened(statement_timeout_s=0.5, wait_s=1.0)
        await store.tx(lambda tx: tx.clusters.add(cluster()))
        server.freeze()
        began = reactor.seconds()
        for _ in range(3):
            await self.fails(
                store.read(lambda tx: tx.clusters.page(TENANT, Page())), ServiceUnavailable
            )
        self.assertLess(reactor.seconds() - began, 12.0)
        server.thaw()

        async def well() -> bool:
            return await store.ready() == ""

        await until(well, "ready", 10.0)
        self.assertEqual(len(await store.read(lambda tx: tx.clusters.page(TENANT, Page()))), 1)


class OwnerTests(_PostgresCase):
    """One daemon a database."""

    async def test_lock_is_taken_again(self) -> None:
        """When only its connection was cut."""
        store = await self.opened()
        cut_owner(self.url)
        await sleep(reactor, 0.05)
        await store.tx(lambda tx: tx.clusters.add(cluster()))
        await self.fails(self.opened(), SchemaError)
        self.assertEqual(self.taken, [])

    async def test_lock_of_our_own_broken_connection(self) -> None:
        """The server has not noticed its end yet: that is no other daemon."""
        self.server()
        await self.opened(statement_timeout_s=0.2, wait_s=0.5)
        owner = int(execute(self.url, _OWNER)[0][0])
        os.kill(owner, signal.SIGSTOP)

        async def missed() -> bool:
            return "lease" in self.database.keeper.problem

        async def well() -> bool:
            return self.database.keeper.problem == ""

        try:
            await until(missed, "the lock is missed", 10.0)
            await sleep(reactor, 0.5)
        finally:
            os.kill(owner, signal.SIGCONT)
        await until(well, "the lock is held again", 5.0)
        self.assertEqual(self.taken, [])


class ClosingTests(_PostgresCase):
    async def test_at_any_moment(self) -> None:
        """Also while connections are being made; no error is logged, nothing is left."""
        for turns in range(12):
            settings = evolve(_SETTINGS, url=self.url)
            database = PostgresDatabase(reactor, settings, self.taken.append)
            await database.open()
            many = [
                Deferred.fromCoroutine(database.tx(lambda sql: sql.one("select 1")))
                for _ in range(4)
            ]
            for _ in range(turns):
                await sleep(reactor, 0.0)
            await database.close()
            for each in many:
                each.addErrback(lambda failure: failure.trap(ServiceUnavailable))
                await each


class OpeningTests(_PostgresCase):
    """What is wrong at the start is said in a line, without the password."""

    async def refused(self, url: str) -> str:
        text = await self.fails(self.opened(url=url), SchemaError)
        self.assertNotIn("s3cret", text)
        self.assertNotIn("\n", text)
        return text

    async def test_wrong_addresses(self) -> None:
        """Nobody there, no such host, no such database, no such parameter."""
        for url, words in (
            ("postgresql://u:s3cret@127.0.0.1:1/db", "refused"),
            ("postgresql://u:s3cret@nowhere.invalid/db", "'nowhere.invalid' has no address"),
            (re.sub(r"/svcd_\w+", "/nowhere", self.url), '"nowhere" does not exist'),
            ("postgresql://u:s3cret@host/db?nonsense=1", "database.url"),
        ):
            self.assertIn(words, await self.refused(url))

    async def test_other_encoding(self) -> None:
        """Names of all scripts must fit."""
        name = self.url.split("?")[0].rsplit("/", 1)[1] + "_latin"
        execute(self.url, f"create database {name} encoding 'LATIN1' template template0")
        self.addCleanup(drop_database, name)
        text = await self.refused(re.sub(r"/svcd_\w+", f"/{name}", self.url))
        self.assertIn("LATIN1", text)

    async def test_user_without_rights(self) -> None:
        """With the remedy."""
        self.server()
        execute(self.url, "revoke all on schema public from public")
        execute(self.url, "drop role if exists nobody_much")
        execute(self.url, "create role nobody_much login")
        text = await self.refused(self.url.replace("svcd@", "nobody_much@"))
        self.assertIn("owner of the database", text)


def body(name: str) -> dict[str, Any]:
    """The request for a data source."""
    return {
        "name": name,
        "type": "objstore",
        "url": f"objstore://box/{name}",
        "credentials": {"user": "ann", "password": "secret"},
    }


class _Load:
    """Makes data sources without a pause, and remembers what it was told of each."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self._stop = False
        self.acknowledged: set[str] = set()
        self.unchanged: set[str] = set()  # refused, and told that nothing was changed
        self.strange: list[str] = []  # neither a success nor a proper 503
        self._running = [Deferred.fromCoroutine(self._work(n)) for n in range(8)]

    async def _work(self, number: int) -> None:
        count = 0
        while not self._stop:
            count += 1
            name = f"s{number}-{count}"
            reply = await self._tenant.ask("POST", "/data-sources", body(name))
            if reply.status == 202:
                self.acknowledged.add(name)
            elif reply.status == 503 and reply.json["error_name"] == "SERVICE_UNAVAILABLE":
                if "nothing was changed" in reply.json["error_message"]:
                    self.unchanged.add(name)
                await sleep(reactor, 0.01)
            else:
                self.strange.append(f"{name}: {reply.status} {reply.body!r}")

    async def served(self) -> None:
        """Until some more are acknowledged."""
        had = len(self.acknowledged)

        async def more() -> bool:
            return len(self.acknowledged) > had + 8

        await until(more, "served again", 20.0, 0.01)

    async def end(self) -> None:
        self._stop = True
        for each in self._running:
            await each


class _FaultCase(DaemonCase):
    timeout = 180

    async def begin(self, **settings: str) -> Tenant:
        """A daemon on a database of its own."""
        if not hasattr(self, "url"):
            self.url, name = new_database()
            self.addCleanup(drop_database, name)
        self.one: Daemon = self.daemon(database__url=self.url, **settings)
        self.api = await self.one.start()
        return Tenant(self.api)

    def server(self) -> PostgresServer:
        """One that can be stopped."""
        if os.environ.get("PGHOST"):
            raise SkipTest("the server of PGHOST is not ours to stop")
        return own_server()

    async def sources(self, tenant: Tenant) -> Mapping[str, Any]:
        """name -> what the API shows of it."""
        listed = await tenant.done("GET", "/data-sources")
        return {each["name"]: each for each in listed["data_sources"]}

    async def metrics(self) -> Mapping[str, float]:
        """What `/metrics` says of the database."""
        text = (await send("GET", f"{self.api['api']}/metrics")).body.decode()
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if line[:5] == "svcd_"]
        return {name: float(value) for name, value in lines if "database" in name}

    async def check(self, tenant: Tenant, load: _Load) -> None:
        """What is there is what was acknowledged, whole; and the daemon has nothing to hide."""
        found = await self.sources(tenant)
        self.assertEqual(load.strange, [])
        self.assertEqual(load.acknowledged - found.keys(), set(), "acknowledged and lost")
        self.assertEqual(load.unchanged & found.keys(), set(), "said to be unchanged, and there")
        for name, shown in found.items():
            self.assertEqual(
                (shown["url"], shown["credentials"]), (f"objstore://box/{name}",
                 {"user": "ann", "password": "secret"}),
            )  # fmt: skip
        await self.clean()

    async def clean(self) -> None:
        """It stops well, and has never said anything that nobody handled."""
        self.assertEqual((await self.one.stop()).code, 0)
        for each in ("Unhandled", "Traceback", "incident"):
            self.assertNotIn(each, self.one.said)


class UnderLoadTests(_FaultCase):
    async def test_connections_are_killed(self) -> None:
        """One after the other, in statements and between them."""
        tenant = await self.begin()
        load = _Load(tenant)
        await load.served()
        for _ in range(40):
            execute(self.url, _KILL_ONE)
            await sleep(reactor, 0.02)
        await load.served()
        await load.end()
        self.assertGreater((await self.metrics())["svcd_database_connections_lost_total"], 5)
        await self.check(tenant, load)

    async def test_server_is_stopped_and_started(self) -> None:
        """Twice. While it is away all is answered 503; soon after it is back all is well."""
        server = self.server()
        tenant = await self.begin()
        load = _Load(tenant)
        for _ in range(2):
            await load.served()
            server.stop()
            try:
                await sleep(reactor, 0.7)
                had = len(load.acknowledged)
                answers = [
                    (await tenant.ask("GET", "/clusters")).status,
                    (await send("GET", f"{self.api['api']}/readyz")).status,
                ]
                await self.shows_reachable(0.0)
            finally:
                server.start()
            self.assertEqual(answers, [503, 503])
            self.assertEqual(len(load.acknowledged), had)
            await load.served()
        await load.end()
        await self.shows_reachable(1.0)
        await self.check(tenant, load)

    async def shows_reachable(self, value: float) -> None:
        """The metrics show it; they are rendered once a second."""

        async def shown() -> bool:
            return (await self.metrics())["svcd_database_reachable"] == value

        await until(shown, f"svcd_database_reachable {value:g}", 5)


class WaitingTests(_FaultCase):
    async def test_all_connections_are_taken(self) -> None:
        """Who gets none in time is told to come again; metrics say so; then all goes on."""
        tenant = await self.begin(
            database__connections="2", database__wait_s="0.5", database__statement_timeout_s="20"
        )
        blocking = psycopg2.connect(self.url)
        try:
            with blocking.cursor() as cursor:
                cursor.execute("lock table data_sources in access exclusive mode")
            stuck = [
                Deferred.fromCoroutine(tenant.ask("POST", "/data-sources", body(f"s{n}")))
                for n in range(2)
            ]

            async def taken() -> bool:
                return bool(execute(self.url, _WAITING)[0][0] == 2)

            await until(taken, "both wait for the table", 10.0)
            answer = await tenant.ask("GET", "/clusters")
            shown = await self.metrics()
        finally:
            blocking.close()
        self.assertEqual(answer.status, 503)
        self.assertIn("2 are in use", answer.json["error_message"])
        self.assertIn("retry-after", answer.headers)
        self.assertEqual(shown['svcd_database_connections{state="busy"}'], 2.0)
        self.assertGreaterEqual(shown["svcd_database_refused_total"], 1.0)
        self.assertEqual([(await each).status for each in stuck], [202, 202])
        self.assertEqual((await tenant.ask("GET", "/clusters")).status, 200)
        self.assertEqual(set(await self.sources(tenant)), {"s0", "s1"})
        await self.clean()


class DiskTests(_FaultCase):
    def small_disk(self) -> Path:
        """The database goes to a disk of its own that is soon full; the folder that it is at."""
        server = self.server()
        place = Path(tempfile.mkdtemp(prefix="svcd-disk-"))
        self.addCleanup(place.rmdir)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MIB}m", "tmpfs", str(place)],
            capture_output=True,
        )
        if mounted.returncode:
            raise SkipTest(f"a small disk cannot be mounted: {mounted.stderr.decode().strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(place)], check=True)
        place.chmod(0o755)
        (place / "filler").write_bytes(bytes(_FILLER_MIB << 20))
        (place / "rows").mkdir()
        server.own(place / "rows")
        name = f"svcd_{uuid.uuid4().hex[:12]}"
        server.execute(f"create tablespace {name} location '{place / 'rows'}'")
        self.addCleanup(server.execute, f"drop tablespace {name}")
        server.execute(f"create database {name} tablespace {name}")
        self.addCleanup(drop_database, name)
        self.url = server.url(name)
        return place

    async def test_disk_is_full(self) -> None:
        """What does not fit is refused; the rest is served; when there is room, all goes on."""
        place = self.small_disk()
        tenant = await self.begin()
        rng = random.Random(5)
        stored: dict[str, bytes] = {}
        refused: Reply | None = None
        for number in range(_DISK_MIB):
            name, data = f"b{number}", rng.randbytes(_PIECE)
            reply = await self.put(tenant, name, data)
            if reply.status != 202:
                refused = reply
                break
            stored[reply.json["job_binary_internal"]["id"]] = data
        assert refused is not None
        self.assertEqual(refused.status, 503)
        self.assertIn("No space left", refused.json["error_message"])
        self.assertIn("nothing was changed", refused.json["error_message"])
        self.assertGreater(len(stored), 1)
        await self.same(tenant, stored)
        self.assertEqual((await tenant.ask("GET", "/clusters")).status, 200)
        (place / "filler").unlink()
        later = rng.randbytes(_PIECE)
        reply = await self.put(tenant, "later", later)
        self.assertEqual(reply.status, 202)
        stored[reply.json["job_binary_internal"]["id"]] = later
        await self.same(tenant, stored)
        self.assertEqual(execute(self.url, _ORPHANS), [(0,)])
        await self.clean()

    async def put(self, tenant: Tenant, name: str, data: bytes) -> Reply:
        url = f"{self.api['api']}/v1.1/{tenant.tenant}/job-binary-internals/{name}"
        return await send("PUT", url, data=data)

    async def same(self, tenant: Tenant, stored: Mapping[str, bytes]) -> None:
        """The API has exactly these, byte for byte."""
        listed = await tenant.done("GET", "/job-binary-internals")
        self.assertEqual({each["id"] for each in listed["binaries"]}, set(stored))
        for id_, data in stored.items():
            reply = await tenant.ask("GET", f"/job-binary-internals/{id_}/data")
            self.assertEqual((reply.status, reply.body == data), (200, True))


class OwnerDaemonTests(_FaultCase):
    """Whose database it is, as an operator sees it."""

    async def test_second_daemon_ends_with_1(self) -> None:
        """And says who has the database; the first one goes on."""
        tenant = await self.begin()
        ended = await self.daemon(database__url=self.url).spawn().end()
        self.assertEqual(ended.code, 1)
        self.assertIn("another svcd has this database", ended.err)
        await tenant.done("GET", "/clusters")

    async def test_daemon_whose_database_was_taken_ends_with_1(self) -> None:
        """It must not work on rows that are another's now."""
        await self.begin()
        self.addCleanup(steal(self.url, LOCK_KEY).close)
        ended = await self.one.program.end(30.0)
        self.assertEqual(ended.code, 1)
        self.assertIn("another svcd has this database", ended.err)
