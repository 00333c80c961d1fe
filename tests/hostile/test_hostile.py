"""The table of hostile peers: each fails the call clearly, and disturbs nobody else.

For each peer and each way to misbehave, a daemon's own clients call the peer, while another tenant
reads from the API of the same daemon.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred

from svcd.runtime.tasks import sleep
from tests.hostile import http_peer, ssh_peer
from tests.support.processes import DaemonCase, Program, reactor, send, until
from tests.support.sample import SLOW

skip = SLOW

STALL_MS = 50.0
GROWN_KIB = 64 << 10
P99_MS = 50.0
_EVERY_S = 0.01
"""Time between two requests of the other tenant."""


def p99(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


class HostileTests(DaemonCase):
    timeout = 900

    async def setUp(self) -> None:
        self.peers = self.program(sys.executable, "-m", "tests.hostile.peers")
        self.ports = json.loads(await self._line(self.peers, 0))
        self.victim = self.program(sys.executable, "-m", "tests.hostile.victim", self.mktemp())
        self.api = json.loads(await self._line(self.victim, 0))["api"]
        control = self.program(sys.executable, "-m", "tests.hostile.victim", self.mktemp())
        self.control_api = json.loads(await self._line(control, 0))["api"]
        self.answers = 0
        self.latencies: list[float] = []
        self.control: list[float] = []
        self.idle_kib = 0

    async def _line(self, program: Program, number: int) -> str:
        async def there() -> Any:
            self.assertIsNone(program.code, program.err[-3000:])
            lines = program.out.split("\n")
            return lines[number] if len(lines) > number + 1 else None

        line: str = await until(there, f"line {number}", 30, 0.005)
        return line

    async def other_tenant(self) -> None:
        """Reads all the time, also from a daemon without hostile peers on the same machine."""
        while self.reading:
            for api, latencies in ((self.api, self.latencies), (self.control_api, self.control)):
                before = reactor.seconds()
                reply = await send("GET", f"{api}/v1.1/other/clusters")
                self.assertEqual(reply.status, 200)
                latencies.append((reactor.seconds() - before) * 1000)
            await sleep(reactor, _EVERY_S)

    async def case(self, peer: str, **more: object) -> dict[str, Any]:
        self.answers += 1
        line = json.dumps({"peer": peer, **more})
        self.victim.write(line.encode() + b"\n")
        result: dict[str, Any] = json.loads(await self._line(self.victim, self.answers))
        return result

    async def table(self, rows: Sequence[tuple[str, str, dict[str, object]]]) -> None:
        """Run all rows, print the figures, and check them."""
        self.reading = True
        other = Deferred.fromCoroutine(self.other_tenant())
        first = await self.case(
            "oozie", base=f"http://127.0.0.1:{self.ports['http']}/close-at-once"
        )
        self.idle_kib = first["peak_kib"]
        wrong: list[str] = []
        worst_ms = grown_kib = 0.0
        try:
            for peer, way, where in rows:
                seen = len(self.latencies)
                got = await self.case(peer, **where)
                slowest_ms = max(self.latencies[seen:], default=0.0)
                grown = got["peak_kib"] - self.idle_kib
                worst_ms, grown_kib = max(worst_ms, got["stall_ms"]), max(grown_kib, grown)
                figures = (
                    f"stall {got['stall_ms']:.0f} ms, answer {slowest_ms:.0f} ms,"
                    f" memory {grown / 1024:+.0f} MiB"
                )
                print(f"\n{peer:12} {way:28} {figures:48} {got['outcomes'][-1][:120]}", end="")
                bad = [each for each in got["outcomes"] if each.startswith(("bug", "no end"))]
                bad += [each for each in got["outcomes"] if len(each) > 3000]
                if got["stall_ms"] > STALL_MS:
                    bad.append(f"stall of {got['stall_ms']:.0f} ms")
                if grown > GROWN_KIB:
                    bad.append(f"{grown / 1024:.0f} MiB of memory")
                wrong += [f"{peer} {way}: {each[:300]}" for each in bad]
        finally:
            self.reading = False
            await other
        p99_ms = p99(self.latencies)
        print(
            f"\n{len(rows)} rows: longest stall {worst_ms:.0f} ms,"
            f" memory {grown_kib / 1024:+.0f} MiB,"
            f" p99 of {len(self.latencies)} answers to another tenant {p99_ms:.1f} ms,"
            f" without hostile peers {p99(self.control):.1f} ms",
            end=" ",
        )
        self.assertEqual("\n".join(wrong), "")
        self.assertLess(p99_ms, P99_MS + 2 * p99(self.control))  # the machine may be busy
        self.assertNotIn("Traceback", self.victim.err)

    async def test_http_peers(self) -> None:
        """Oozie, WebHDFS, YARN and the object store."""
        http = f"http://127.0.0.1:{self.ports['http']}"
        rows: list[tuple[str, str, dict[str, object]]] = [
            (peer, way, {"base": f"{http}/{way}", "slow": way in http_peer.SLOW})
            for way in http_peer.WAYS
            for peer in ("oozie", "webhdfs", "yarn", "objectstore")
        ]
        await self.table(rows)

    async def test_ssh_servers(self) -> None:
        """A wrong key, floods, lying lengths, keys that take an hour."""
        await self.table(
            [
                ("ssh-pinned" if way == "wrong-host-key" else "ssh", way, {"port": port})
                for way, port in self.ports["ssh"].items()
                if way in ssh_peer.WAYS
            ]
        )
