"""The service inside a test: a fresh one, a whole life in it, and its answers."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Final

from benchmarks.figures import Figure
from benchmarks.lives import asked, new_cluster, whole_life
from svcd.testing import FakeService

_SOME: Final = 20
_FIRST: Final = 30


def _cpu_ms(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return (time.process_time() - before) * 1000.0


def _measured(name: str, work: Callable[[], float], rounds: int, target: float) -> Figure:
    taken = tuple(work() for _ in range(rounds))
    return Figure(benchmark="fake", name=name, unit="ms", rounds=taken, target=target)


def _fresh() -> float:
    services: list[FakeService] = []
    taken = _cpu_ms(lambda: services.append(FakeService()))
    services[0].close()
    return taken


def _memory_kib() -> float:
    """KiB of a service by Python's allocators, the mean of some; SQLite's pages are not counted.

    Python makes room for thirty attributes in the first object of a class, and for one less in each
    later one, down to those that the objects have. So the services after the thirtieth count.
    """
    for _ in range(_FIRST):
        _fresh()
    tracemalloc.start()
    try:
        services = [FakeService() for _ in range(_SOME)]
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] / _SOME / 1024.0
    finally:
        tracemalloc.stop()
    for service in services:
        service.close()
    return taken


def _life() -> float:
    with FakeService() as service:
        return _cpu_ms(lambda: whole_life(service))


def _calls() -> float:
    with FakeService() as service:
        cluster = asked(service, "POST", "/clusters", new_cluster(service, "one"))["cluster"]["id"]
        path = f"/v1.1/{service.tenant}/clusters/{cluster}"
        return _cpu_ms(lambda: [service.call("GET", path) for _ in range(1000)])


def run(quick: bool) -> list[Figure]:
    """All figures."""
    few = 5 if quick else 25
    _life()
    return [
        _measured("fresh FakeService, CPU", _fresh, few, 3.5),
        Figure(
            benchmark="fake",
            name="fresh FakeService, memory",
            unit="KiB",
            rounds=(_memory_kib(),),
            target=90.0,
        ),
        _measured("whole life, CPU", _life, few, 50.0),
        _measured("1000 calls of GET one cluster, CPU", _calls, 5, 200.0),
    ]
