"""The whole daemon while PostgreSQL suffers: nothing acknowledged is lost, nothing is half there.

The store alone at its worst is in tests/live/store/test_postgres_faults.py.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SkipTest

from svcd.runtime.tasks import sleep
from tests.support.database.postgres_server import (
    PostgresServer,
    drop_database,
    execute,
    new_database,
    own_server,
)
from tests.support.live import Tenant
from tests.support.processes import Daemon, DaemonCase, Reply, reactor, send, until
from tests.support.sample import SLOW

skip = SLOW

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

    async def test_clients_hang_up(self) -> None:
        """In their request, and while it is worked on: no connection of the database suffers."""
        tenant = await self.begin(database__connections="4")
        where = urlsplit(self.api["api"])
        path = f"/v1.1/{tenant.tenant}"
        for number in range(60):
            content = str(body(f"s{number}")).replace("'", '"').encode()
            lines = [
                f"POST {path}/data-sources HTTP/1.1",
                f"Host: {where.netloc}",
                "Content-Type: application/json",
                f"Content-Length: {len(content)}",
            ]
            request = "\r\n".join(lines).encode() + b"\r\n\r\n" + content
            if number % 3 == 0:
                request = request[:-10]
            elif number % 3 == 1:
                head = f"PUT {path}/job-binary-internals/b{number} HTTP/1.1\r\n{lines[1]}\r\n"
                request = f"{head}Content-Length: 2000000\r\n\r\n".encode() + bytes(700_000)
            with socket.create_connection((where.hostname or "", where.port or 0), 30) as peer:
                peer.sendall(request)
            await sleep(reactor, 0.0)

        async def resting() -> bool:
            shown = await self.metrics()
            return shown['svcd_database_connections{state="busy"}'] == 0.0

        await until(resting, "all has ended", 30.0)
        self.assertEqual((await self.metrics())["svcd_database_connections_lost_total"], 0.0)
        await tenant.done("POST", "/data-sources", body("last"))
        found = await self.sources(tenant)
        self.assertLessEqual(set(found) - {"last"}, {f"s{n}" for n in range(2, 60, 3)})

        async def swept() -> bool:
            return bool(execute(self.url, _ORPHANS)[0][0] == 0)

        await until(swept, "pieces without an owner are gone", 10.0)
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
