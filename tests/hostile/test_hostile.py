"""The table of hostile peers: each fails the call clearly, and disturbs nobody else.

For each way to misbehave, a daemon's own clients call peers of all kinds at the same time, while
another tenant reads from the API of the same daemon.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from attrs import asdict, frozen
from twisted.internet.defer import Deferred

from svcd.runtime.tasks import sleep
from tests.hostile import http_peer
from tests.support.processes import READY_S, DaemonCase, Program, reactor, send, until
from tests.support.sample import SLOW

skip = SLOW

STALL_MS = 50.0
GROWN_KIB = 64 << 10
P99_MS = 50.0
_EVERY_S = 0.01
"""Time between two requests of the other tenant."""


@frozen(kw_only=True)
class Peer:
    """A hostile peer, which a client of svcd calls."""

    kind: str
    way: str
    base: str = ""
    port: int = 0


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

    async def _line(self, program: Program, number: int) -> str:
        async def there() -> Any:
            self.assertIsNone(program.code, program.err[-3000:])
            lines = program.out.split("\n")
            return lines[number] if len(lines) > number + 1 else None

        line: str = await until(there, f"line {number}", READY_S, 0.005)
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

    async def case(self, peers: Sequence[Peer], slow: bool = False) -> dict[str, Any]:
        """What came of the calls of several peers at once."""
        self.answers += 1
        line = json.dumps({"peers": [asdict(each) for each in peers], "slow": slow})
        self.victim.write(line.encode() + b"\n")
        result: dict[str, Any] = json.loads(await self._line(self.victim, self.answers))
        self.assertNotIn("bug", result)
        return result

    async def table(self, cases: Sequence[Sequence[Peer]]) -> None:
        """Carry out all cases, print the figures, and check them."""
        self.reading = True
        other = Deferred.fromCoroutine(self.other_tenant())
        idle = await self.case([self.http("oozie", "close-at-once")])
        wrong: list[str] = []
        worst_ms = grown_kib = 0.0
        try:
            for peers in cases:
                seen = len(self.latencies)
                got = await self.case(peers, peers[0].way in http_peer.SLOW)
                slowest_ms = max(self.latencies[seen:], default=0.0)
                stall_ms, grown = got["stall_ms"], got["peak_kib"] - idle["peak_kib"]
                worst_ms, grown_kib = max(worst_ms, stall_ms), max(grown_kib, grown)
                print(
                    f"\nstall {stall_ms:.0f} ms, answer {slowest_ms:.0f} ms,"
                    f" memory {grown / 1024:+.0f} MiB"
                )
                bad = []
                for peer, outcomes in zip(peers, got["outcomes"], strict=True):
                    print(f"  {peer.kind:12} {peer.way:28} {outcomes[-1][:120]}")
                    bad += [e for e in outcomes if e.startswith(("bug", "no end"))]
                    bad += [e for e in outcomes if len(e) > 3000]
                if stall_ms > STALL_MS:
                    bad.append(f"stall of {stall_ms:.0f} ms")
                if grown > GROWN_KIB:
                    bad.append(f"{grown / 1024:.0f} MiB of memory")
                wrong += [f"{[p.way for p in peers]}: {each[:300]}" for each in bad]
        finally:
            self.reading = False
            await other
        p99_ms = p99(self.latencies)
        print(
            f"\n{len(cases)} cases: longest stall {worst_ms:.0f} ms,"
            f" memory {grown_kib / 1024:+.0f} MiB,"
            f" p99 of {len(self.latencies)} answers to another tenant {p99_ms:.1f} ms,"
            f" without hostile peers {p99(self.control):.1f} ms",
            end=" ",
        )
        self.assertEqual("\n".join(wrong), "")
        self.assertLess(p99_ms, P99_MS + 2 * p99(self.control))  # the machine may be busy
        self.assertNotIn("Traceback", self.victim.err)

    def http(self, kind: str, way: str) -> Peer:
        return Peer(kind=kind, way=way, base=f"http://127.0.0.1:{self.ports['http']}/{way}")

    async def test_http_peers(self) -> None:
        """Oozie, WebHDFS, YARN and the object store, the four of a way at once."""
        kinds = ("oozie", "webhdfs", "yarn", "objectstore")
        await self.table([[self.http(kind, way) for kind in kinds] for way in http_peer.WAYS])

    async def test_ssh_servers(self) -> None:
        """A wrong key, floods, lying lengths, keys that take an hour; four ways at once."""
        servers = [
            Peer(kind="ssh-pinned" if way == "wrong-host-key" else "ssh", way=way, port=port)
            for way, port in self.ports["ssh"].items()
        ]
        await self.table([servers[at : at + 4] for at in range(0, len(servers), 4)])
