"""HTTP through the SSH connection of a machine, compared with HTTP directly to it.

The processor's time is that of this process; the machines are in another one. Ways alternate, and
ratios are taken round by round.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.epollreactor import EPollReactor
from twisted.python.failure import Failure
from twisted.web.client import Agent

from benchmarks.figures import Figure, ratio
from svcd.clients.connections import Connections
from svcd.clients.http import HttpClient
from svcd.clients.ssh import SshRemote
from svcd.model.secret import Secret
from svcd.ports.faults import Fault, PortError
from svcd.ports.machines import Host
from svcd.runtime.keys import new_key_pair
from svcd.runtime.tasks import gather
from svcd.settings import Ssh

_MIB: Final = 1 << 20
_ADDRESSES: Final = tuple(f"127.3.9.{n}" for n in range(1, 7))
_PIECE: Final = bytes(262_144)
_LINKS_EACH: Final = 190
"""A machine's SSH server accepts 200 connections."""


def run(quick: bool) -> list[Figure]:
    """The figures of the benchmark `forward`."""
    public, private = new_key_pair("benchmark")
    with socket.socket() as probe:
        probe.bind((_ADDRESSES[0], 0))
        ssh_port = probe.getsockname()[1]
    peer = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.forward_peer", str(ssh_port), public, *_ADDRESSES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert peer.stdin is not None and peer.stdout is not None
    try:
        line = peer.stdout.readline()
        if not line:
            raise RuntimeError("the machines of the benchmark did not start")
        return _in_reactor(quick, ssh_port, private, int(json.loads(line)["http"]))
    finally:
        peer.stdin.close()
        peer.wait(30)


def _in_reactor(quick: bool, ssh_port: int, key: Secret, port: int) -> list[Figure]:
    reactor: Any = EPollReactor()
    out: list[Any] = []

    def end(result: Any) -> None:
        out.append(result)
        reactor.stop()

    def begin() -> None:
        work = _Forward(reactor, ssh_port, key, port).figures(quick)
        Deferred.fromCoroutine(work).addBoth(end)

    reactor.callWhenRunning(begin)
    reactor.run(installSignalHandlers=False)
    if isinstance(out[0], Failure):
        out[0].raiseException()
    return list(out[0])


class _Forward:
    def __init__(self, reactor: Any, ssh_port: int, key: Secret, port: int) -> None:
        self._reactor = reactor
        self._remote = SshRemote(reactor, reactor, Ssh())
        self._pool = Connections(reactor, persistent=True)
        agent = Agent(reactor, pool=self._pool)
        self._http = HttpClient(agent, reactor, _error, timeout_s=120, machines=self._remote)
        self._port = port
        self._host = Host(address=_ADDRESSES[0], port=ssh_port, user="svcd", private_key=key)

    async def figures(self, quick: bool) -> list[Figure]:
        """All figures."""
        try:
            host = self._host = await self._pinned(self._host)
            rounds, gets = (3, 300) if quick else (7, 1000)
            direct: list[tuple[float, float]] = []
            forward: list[tuple[float, float]] = []
            await self._gets(None, 50)
            await self._gets(host, 50)
            for _ in range(rounds):
                direct.append(await self._gets(None, gets))
                forward.append(await self._gets(host, gets))
            found = [
                ratio("forward", "GET of 1 KiB, CPU: SSH / direct",
                      [f[0] for f in forward], [d[0] for d in direct], 2.0),
                ratio("forward", "GET of 1 KiB, latency: SSH / direct",
                      [f[1] for f in forward], [d[1] for d in direct], 2.5),
                Figure(benchmark="forward", name="CPU of 1,000 GETs through SSH", unit="ms",
                       rounds=tuple(f[0] * 1e6 for f in forward)),
                Figure(benchmark="forward", name="added latency of a GET", unit="ms",
                       rounds=tuple((f[1] - d[1]) * 1e3
                                    for f, d in zip(forward, direct, strict=True))),
            ]  # fmt: skip
            found += await self._bulk(32 if quick else 512)
            found.append(await self._links(100 if quick else 1000))
            return found
        finally:
            await self._remote.close()
            await self._pool.closeCachedConnections()

    async def _pinned(self, host: Host) -> Host:
        shown = await self._remote.run(host, "true", timeout_s=20)
        return evolve(host, host_key=shown.host_key)

    def _url(self, host: Host) -> str:
        return f"http://{host.address}:{self._port}/"

    async def _gets(self, through: Host | None, count: int) -> tuple[float, float]:
        """Seconds of the processor and of the clock for one GET."""
        url, cpu, began = self._url(self._host), time.process_time(), time.perf_counter()
        for _ in range(count):
            await self._http.request("GET", url, through=through)
        spent = time.process_time() - cpu, time.perf_counter() - began
        return spent[0] / count, spent[1] / count

    async def _bulk(self, mib: int) -> list[Figure]:
        """A PUT of `mib`: CPU a MiB each way, and the longest stall of the reactor."""
        cpu: dict[bool, float] = {}
        stall = 0.0
        for forwarded in (False, True):
            watch = _Stalls(self._reactor)
            began = time.process_time()
            through = self._host if forwarded else None
            await self._http.stream_put(
                self._url(self._host), _content(mib), mib * _MIB, through=through
            )
            cpu[forwarded] = (time.process_time() - began) / mib
            stall = watch.end()
        return [
            Figure(benchmark="forward", name=f"CPU of 1 MiB of a PUT of {mib} MiB through SSH",
                   unit="ms", rounds=(cpu[True] * 1e3,)),
            ratio("forward", "the same, SSH / direct", [cpu[True]], [cpu[False]]),
            Figure(benchmark="forward", name="longest stall during this PUT",
                   unit="ms", rounds=(stall * 1e3,), target=50.0),
        ]  # fmt: skip

    async def _links(self, count: int) -> Figure:
        """Memory of a machine's connection with one kept HTTP connection."""
        pins = {
            a: await self._pinned(evolve(self._host, address=a, host_key=None)) for a in _ADDRESSES
        }
        before = _resident()

        def ask(number: int) -> Callable[[], Awaitable[object]]:
            host = pins[_ADDRESSES[number // _LINKS_EACH]]
            text = host.private_key.reveal() + "\n" * (number % _LINKS_EACH)
            each = evolve(host, private_key=Secret(text))
            return lambda: self._http.request("GET", self._url(each), through=each)

        for result in await gather([ask(n) for n in range(count)], 8):
            if isinstance(result, BaseException):
                raise result
        name = f"memory of a connection with one HTTP connection, of {count}"
        size = (_resident() - before) / count / 1024
        return Figure(benchmark="forward", name=name, unit="KiB", rounds=(size,), target=64.0)


class _Stalls:
    """The longest time between two turns of a timer of 1 ms."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._longest = 0.0
        self._last = time.perf_counter()
        self._timer = reactor.callLater(0.001, self._turn)

    def end(self) -> float:
        """The longest time, in seconds."""
        self._timer.cancel()
        return self._longest

    def _turn(self) -> None:
        now = time.perf_counter()
        self._longest = max(self._longest, now - self._last - 0.001)
        self._last = now
        self._timer = self._reactor.callLater(0.001, self._turn)


async def _content(mib: int) -> AsyncIterator[bytes]:
    for _ in range(mib * _MIB // len(_PIECE)):
        yield _PIECE


def _resident() -> int:
    """The resident memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _error(service: str, kind: Fault, text: str, _: float | None) -> PortError:
    return PortError(kind, text)
