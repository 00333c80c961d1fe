"""What the costliest bodies of a megabyte take of the processor until they are taken or refused.

The unit of comparison is a plain decode of the same bytes: the ratio says what the checks add.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from attrs import frozen

from benchmarks.figures import Figure, ratio
from svcd.errors import SvcdError
from svcd.model.requests import ExecuteRequest, Limits, NewCluster, NewJob
from svcd.model.shapes import Shape

BODY_BYTES: Final = 1_048_576
MOST_MS: Final = 100.0
_LIMITS: Final = Limits()
_GROUP: Final = {"name": "a", "count": 1, "flavor_id": "2", "node_processes": ["namenode"]}


@frozen(kw_only=True)
class Body:
    """A body of nearly `BODY_BYTES`. make: of so many parts."""

    name: str
    cls: type
    make: Callable[[int], Any]

    def bytes(self) -> bytes:
        """As many parts as fit, or nearly."""
        parts = 64
        while 2 * len(self._encoded(parts)) <= BODY_BYTES:
            parts *= 2
        parts = parts * BODY_BYTES // len(self._encoded(parts))
        while len(data := self._encoded(parts)) > BODY_BYTES:
            parts -= parts // 50 + 1
        return data

    def _encoded(self, parts: int) -> bytes:
        return msgspec.json.encode(self.make(parts))


def _cluster(**more: Any) -> Mapping[str, Any]:
    return {
        "name": "c",
        "plugin_name": "vanilla",
        "engine_version": "3.5.0",
        "default_image_id": "i",
        "node_groups": [_GROUP],
        **more,
    }


def _groups(count: int, **more: Any) -> Sequence[Any]:
    return [{**_GROUP, "name": f"a{n}", **more} for n in range(count)]


def _options(count: int, value: Any = 1) -> dict[str, Any]:
    return {f"{n:x}": value for n in range(count)}


def _job(**configs: Any) -> Mapping[str, Any]:
    return {"cluster_id": "c", "job_configs": configs}


_BAD: Final = {"description": "\n"}
_ESCAPED: Final = {"description": '"'}

WORST: Final[Sequence[Body]] = (
    Body(name="fields that nobody knows", cls=NewCluster,
         make=lambda n: {**_cluster(), **_options(n)}),
    Body(name="options, all right", cls=NewCluster,
         make=lambda n: _cluster(**_ESCAPED, cluster_configs={"HDFS": _options(n)})),
    Body(name="options, one fault elsewhere", cls=NewCluster,
         make=lambda n: _cluster(**_BAD, cluster_configs={"HDFS": _options(n)})),
    Body(name="options, all wrong", cls=NewCluster,
         make=lambda n: _cluster(cluster_configs={"HDFS": _options(n, 1.5)})),
    Body(name="options of 90 targets, a fault in each", cls=NewCluster,
         make=lambda n: _cluster(
             cluster_configs={f"{t}": {**_options(n), "z": None} for t in range(90)})),
    Body(name="targets without options", cls=NewCluster,
         make=lambda n: _cluster(**_BAD, cluster_configs=_options(n, {}))),
    Body(name="groups, one fault elsewhere", cls=NewCluster,
         make=lambda n: _cluster(**_BAD, node_groups=_groups(n))),
    Body(name="groups of nothing", cls=NewCluster,
         make=lambda n: _cluster(node_groups=[{}] * n)),
    Body(name="100 groups of 100 targets, one fault elsewhere", cls=NewCluster,
         make=lambda n: _cluster(
             **_BAD,
             node_groups=_groups(100, node_configs={f"{t}": _options(n) for t in range(100)}))),
    Body(name="texts with escapes", cls=NewCluster,
         make=lambda n: _cluster(description="\\\"" * n)),
    Body(name="one long key", cls=NewCluster,
         make=lambda n: {**_cluster(), "k" * n: 1}),
    Body(name="arguments, one fault elsewhere", cls=ExecuteRequest,
         make=lambda n: {**_job(args=[""] * n), "input_id": "\n"}),
    Body(name="arguments, one of them wrong", cls=ExecuteRequest,
         make=lambda n: _job(args=[*[""] * n, "\n"])),
    Body(name="configs of a job, one of them wrong", cls=ExecuteRequest,
         make=lambda n: _job(configs={**_options(n), "z": 1.5})),
    Body(name="binaries of a job, all wrong", cls=NewJob,
         make=lambda n: {"name": "j", "type": "Pig", "mains": [[]] * n}),
)  # fmt: skip


def checked(body: Body) -> Callable[[bytes], object]:
    """The checks as the door does them; the request, or the error that refuses it."""
    shape: Shape[Any] = Shape(body.cls)

    def check(data: bytes) -> object:
        try:
            return shape.decode(data, _LIMITS)
        except SvcdError as error:
            return error

    return check


def run(quick: bool) -> list[Figure]:
    """All figures."""
    figures: list[Figure] = []
    for body in WORST:
        data = body.bytes()
        rounds = 3 if quick else 9
        ours = [_ms(checked(body), data) for _ in range(rounds)]
        plain = [_ms(msgspec.json.decode, data) for _ in range(rounds)]
        figures.append(
            Figure(benchmark="body", name=body.name, unit="ms", rounds=tuple(ours), target=MOST_MS)
        )
        figures.append(ratio("body", f"{body.name} / plain decode", ours, plain))
    return figures


def _ms(work: Callable[[bytes], object], data: bytes) -> float:
    before = time.process_time()
    kept = work(data)
    spent = time.process_time() - before
    del kept
    return spent * 1000.0
