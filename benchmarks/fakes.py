"""The service inside a test: a fresh one, a whole life in it, and a thousand clusters at once.

Each figure is also given in terms of a fixed piece of Python work that takes turns with it.
"""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.figures import Figure, ratio
from benchmarks.lives import asked, converge, new_cluster, whole_life
from svcd.testing import FakeService

_MANY: Final = 1000
_SOME: Final = 20
_FIRST: Final = 30
_NO_QUOTA: Final = {
    "embedded.quota_instances": "100000",
    "embedded.quota_cores": "1000000",
    "embedded.quota_ram_mib": "1000000000",
}
_TREE: Final = {"rows": [{"id": str(n), "names": ["a", "b"], "size": n} for n in range(50)]}


def _reference() -> None:
    for _ in range(20):
        json.loads(json.dumps(_TREE))


def _cpu_ms(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return (time.process_time() - before) * 1000.0


def _measured(
    name: str,
    work: Callable[[], float],
    rounds: int,
    target: float,
    most_ratio: float | None = None,
) -> list[Figure]:
    taken: list[float] = []
    references: list[float] = []
    for _ in range(rounds):
        references.append(_cpu_ms(_reference))
        taken.append(work())
    return [
        Figure(benchmark="fake", name=name, unit="ms", rounds=tuple(taken), target=target),
        ratio("fake", f"{name} / reference", taken, references, most_ratio),
    ]


def _fresh() -> float:
    made: list[FakeService] = []
    taken = _cpu_ms(lambda: made.append(FakeService()))
    made[0].close()
    return taken


def _memory_kib() -> float:
    """What Python's allocators give one of some; SQLite's pages are not counted.

    Python makes room for thirty attributes in the first object of a class, and for one less in each
    later one, down to those that the objects have. So the services after the thirtieth count.
    """
    for _ in range(_FIRST):
        _fresh()
    tracemalloc.start()
    try:
        made = [FakeService() for _ in range(_SOME)]
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] / _SOME / 1024.0
    finally:
        tracemalloc.stop()
    for each in made:
        each.close()
    return taken


def _life() -> float:
    with FakeService() as service:
        return _cpu_ms(lambda: whole_life(service))


def _calls() -> float:
    with FakeService() as service:
        cluster = asked(service, "POST", "/clusters", new_cluster(service, "one"))["cluster"]["id"]
        path = f"/v1.1/{service.tenant}/clusters/{cluster}"
        return _cpu_ms(lambda: [service.call("GET", path) for _ in range(1000)])


def _many(count: int) -> float:
    with FakeService(_NO_QUOTA) as service:
        return _cpu_ms(lambda: converge(service, count))


def run(quick: bool) -> list[Figure]:
    """All figures."""
    few = 5 if quick else 25
    count = _MANY // 10 if quick else _MANY
    _life()
    figures = [
        *_measured("fresh FakeService, CPU", _fresh, few, 5.0, 1.5),
        Figure(
            benchmark="fake",
            name="fresh FakeService, memory",
            unit="KiB",
            rounds=(_memory_kib(),),
            target=90.0,
        ),
        *_measured("whole life, CPU", _life, few, 100.0, 25.0),
        *_measured("1000 calls of GET one cluster, CPU", _calls, 5, 200.0),
        *_measured(f"{count} clusters converge, CPU", lambda: _many(count), 2, 100.0 * count),
    ]
    each: Sequence[float] = [ms / count for ms in figures[-2].rounds]
    figures.append(Figure(benchmark="fake", name="one of them, CPU", unit="ms", rounds=tuple(each)))
    return figures
