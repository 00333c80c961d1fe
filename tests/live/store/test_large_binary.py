"""A binary of 200 MB, streamed into either database and out of it by a daemon that stays small."""

from __future__ import annotations

import hashlib
import random
import re
import shutil
from pathlib import Path

import treq.client
from twisted.web.client import Agent

from svcd.runtime.tasks import with_deadline
from tests.support.database.postgres_server import drop_database, new_database
from tests.support.processes import Daemon, DaemonCase, reactor, send
from tests.support.sample import SLOW

skip = SLOW

_PIECES = 200
_PIECE_BYTES = 1_000_000
_GROWTH_KIB = 48 * 1024
_LIMIT_S = 240.0


def peak_kib(pid: int) -> int:
    """The most memory that a process has had."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


class LargeBinaryTests(DaemonCase):
    """Digest and size are right, and the daemon's memory grows by a fraction of it."""

    timeout = 600

    async def test_in_a_file(self) -> None:
        """SQLite."""
        await self.check_stream(self.daemon())

    async def test_in_a_server(self) -> None:
        """PostgreSQL."""
        url, name = new_database()
        self.addCleanup(drop_database, name)
        await self.check_stream(self.daemon(database__url=url))

    async def check_stream(self, daemon: Daemon) -> None:
        file, digest = Path(self.mktemp()), hashlib.sha256()
        self.addCleanup(file.unlink)
        self.addCleanup(shutil.rmtree, daemon.state, ignore_errors=True)
        some = random.Random(7)
        with file.open("wb") as out:
            for _ in range(_PIECES):
                piece = some.randbytes(_PIECE_BYTES)
                digest.update(piece)
                out.write(piece)
        api = await daemon.start()
        base = f"{api['api']}/v1.1/{api['tenant']}/job-binary-internals"
        small = await send("PUT", f"{base}/small.jar", data=b"x" * _PIECE_BYTES)
        self.assertEqual(small.status, 202)
        before = peak_kib(api["pid"])
        client = treq.client.HTTPClient(Agent(reactor))
        with file.open("rb") as body:
            sending = client.put(f"{base}/large.jar", data=body)
            answer = await with_deadline(reactor, _LIMIT_S, "upload", sending)
            made = (await answer.json())["job_binary_internal"]
        self.assertEqual((answer.code, made["datasize"]), (202, _PIECES * _PIECE_BYTES))
        answer = await client.get(f"{base}/{made['id']}/data")
        found = hashlib.sha256()
        reading = treq.collect(answer, found.update)
        await with_deadline(reactor, _LIMIT_S, "download", reading)
        self.assertEqual(found.hexdigest(), digest.hexdigest())
        self.assertLess(peak_kib(api["pid"]) - before, _GROWTH_KIB)
        self.assertEqual((await send("DELETE", f"{base}/{made['id']}")).status, 204)
        self.assertEqual((await daemon.stop()).code, 0)
