"""A daemon whose SQLite file another process has locked for writing.

`LOCK_S` seconds, or as many as SVCD_TEST_LOCK_S says. Prints what the longest answers took.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from svcd.runtime.tasks import gather, sleep
from tests.support.live import Tenant
from tests.support.processes import DaemonCase, reactor, send

LOCK_S = float(os.environ.get("SVCD_TEST_LOCK_S", "4"))
_LONGEST_READ_S = 1.0
"""SQLite would wait for two seconds, and the daemon with it."""


class LockedDatabaseTests(DaemonCase):
    """Reads go on, writes are refused in time, and the work resumes afterwards."""

    async def test_reads_go_on_while_writes_wait(self) -> None:
        """A cluster that is being made when the lock begins becomes Active after its end."""
        daemon = self.daemon()
        tenant = Tenant(await daemon.start())
        cluster_id = await tenant.new_cluster("locked", 2)
        other = sqlite3.connect(Path(daemon.state, "svcd.sqlite"), isolation_level=None)
        self.addCleanup(other.close)
        other.execute("begin immediate")
        end = reactor.seconds() + LOCK_S
        reads: list[float] = []
        writes: list[float] = []

        async def read(url: str) -> None:
            while reactor.seconds() < end:
                began = reactor.seconds()
                reply = await send("GET", url)
                self.assertEqual(reply.status, 200, reply.body)
                reads.append(reactor.seconds() - began)
                await sleep(reactor, 0.05)

        async def write() -> None:
            number = 0
            while reactor.seconds() < end - 3.0:
                number += 1
                began = reactor.seconds()
                reply = await tenant.ask("POST", "/data-sources", _source(f"s{number}"))
                self.assertEqual(reply.status, 503, reply.body)
                self.assertIn("nothing was changed, try again", reply.body.decode())
                writes.append(reactor.seconds() - began)

        clusters = f"{tenant.api}/v1.1/{tenant.tenant}/clusters"
        asked: list[Any] = [lambda: read(f"{tenant.api}/healthz"), lambda: read(clusters)]
        for ended in await gather([*asked, write, write, write], 5):
            if ended is not None:
                raise ended
        other.execute("commit")
        print(f"{len(reads)} reads, at most {max(reads):.3f} s; {len(writes)} writes refused")
        self.assertLess(max(reads), _LONGEST_READ_S)
        self.assertLess(max(writes), 2.0 + _LONGEST_READ_S)
        await tenant.done("POST", "/data-sources", _source("s1"))
        shown = await tenant.until_active(cluster_id)
        self.assertEqual([len(g["instances"]) for g in shown["node_groups"]], [1, 2])
        self.assertEqual(len(await tenant.servers()), 3)


def _source(name: str) -> dict[str, str]:
    return {"name": name, "type": "hdfs", "url": f"hdfs:///{name}"}
