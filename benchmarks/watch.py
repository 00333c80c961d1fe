"""The change feed over sockets: 1,000 watchers of one tenant, svcd with SQLite in a file.

A frame is one change as one watcher gets it. Its processor time is that of the daemon while changes
are made and delivered, less that of the same changes without a watcher. The latency is the time
from the answer to the change, which follows its commit, to the arrival at the last watcher.
"""

from __future__ import annotations

import itertools
import json
import selectors
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.client import Connection, connect, request
from benchmarks.figures import Figure, quantile
from benchmarks.processes import Server, twistd

WATCHERS: Final = 1000
_MOST_US: Final = 30.0
_MOST_MS: Final = 100.0
_ROUNDS: Final = 5
_CHANGES: Final = 10
_BURST: Final = 20
_APART_S: Final = 0.15
_TIMEOUT_S: Final = 30.0
_MICRO: Final = 1e6
_MILLI: Final = 1e3
_PATH: Final = "/v1.1/demo"


class Crowd:
    """Watchers on sockets of their own. frames: counted for each by the word `event:`."""

    def __init__(self, port: int, count: int) -> None:
        self._waiting = selectors.DefaultSelector()
        self._all = [connect(port) for _ in range(count)]
        self._frames = dict.fromkeys(range(count), 0)
        ask = request("GET", f"{_PATH}/watch")
        for index, each in enumerate(self._all):
            each.send(ask)
            each.socket.setblocking(False)
            self._waiting.register(each.socket, selectors.EVENT_READ, index)

    def until(self, frames: int) -> float:
        """The time when the last watcher has so many frames."""
        left = sum(count < frames for count in self._frames.values())
        at = time.perf_counter()
        end = at + _TIMEOUT_S
        while left:
            for key, _ in self._waiting.select(_TIMEOUT_S):
                data = self._all[key.data].socket.recv(1 << 20)
                before = self._frames[key.data]
                self._frames[key.data] += data.count(b"event: ")
                left -= before < frames <= self._frames[key.data]
            at = time.perf_counter()
            if at > end:
                raise TimeoutError(f"{left} watchers have fewer than {frames} events")
        return at

    def close(self) -> None:
        """Hang up."""
        self._waiting.close()
        for each in self._all:
            each.close()


def run(quick: bool) -> list[Figure]:
    """All figures."""
    rounds = 2 if quick else _ROUNDS
    with tempfile.TemporaryDirectory(prefix="svcd-watch-") as name:
        server, _, _ = twistd(
            "watch", "svcd", Path(name), {"log.access": "false", "limits.watchers": "0"}
        )
        try:
            return list(_figures(server, rounds))
        finally:
            server.stop()


def _figures(server: Server, rounds: int) -> Iterator[Figure]:
    number = itertools.count()
    writer = connect(server.port)
    alone = [_cpu_s(server, writer, number, None, 0) for _ in range(rounds)]
    burst_alone = [_cpu_s(server, writer, number, None, 0, _BURST) for _ in range(rounds)]
    for count in (1, WATCHERS):
        crowd = Crowd(server.port, count)
        frames = 1
        crowd.until(frames)
        cpu_us, waits_ms, burst_us = [], [], []
        for turn in range(rounds):
            waits: list[float] = []
            used = _cpu_s(server, writer, number, crowd, frames, waits=waits)
            frames += _CHANGES
            cpu_us.append((used - alone[turn]) * _MICRO / (_CHANGES * count))
            waits_ms += waits
            used = _cpu_s(server, writer, number, crowd, frames, _BURST)
            frames += _CHANGES * _BURST
            burst_us.append((used - burst_alone[turn]) * _MICRO / (_CHANGES * _BURST * count))
        crowd.close()
        if count == WATCHERS:
            yield _figure("frame to 1,000 watchers, cpu", "us", cpu_us, _MOST_US)
            yield _figure(f"frame in a burst of {_BURST}, cpu", "us", burst_us, _MOST_US)
        of = "one watcher" if count == 1 else "1,000 watchers, the last one"
        yield _figure(f"commit to {of}, p50", "ms", [quantile(waits_ms, 0.5)], _MOST_MS)
        yield _figure(f"commit to {of}, p99", "ms", [quantile(waits_ms, 0.99)], _MOST_MS)
    writer.close()


def _figure(name: str, unit: str, rounds: Sequence[float], target: float) -> Figure:
    return Figure(benchmark="watch", name=name, unit=unit, rounds=tuple(rounds), target=target)


def _cpu_s(
    server: Server,
    writer: Connection,
    number: Iterator[int],
    crowd: Crowd | None,
    frames: int,
    at_once: int = 1,
    waits: list[float] | None = None,
) -> float:
    """Processor time of `_CHANGES` changes, or bursts of `at_once`, apart from each other."""
    before = server.cpu_s()
    for _ in range(_CHANGES):
        began = time.perf_counter()
        for _ in range(at_once):
            body = {"name": f"s{next(number)}", "type": "hdfs", "url": "/data/in"}
            writer.exchange(request("POST", f"{_PATH}/data-sources", json.dumps(body).encode()))
        committed = time.perf_counter()
        frames += at_once
        if crowd is not None:
            arrived = crowd.until(frames)
            if waits is not None:
                waits.append((arrived - committed) * _MILLI)
        time.sleep(max(0.0, began + _APART_S - time.perf_counter()))
    return server.cpu_s() - before
