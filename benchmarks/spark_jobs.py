"""What svcd adds to a job of Spark: the same programs by `svcd run` and by spark-submit.

Both count words on one cluster in YARN's cluster mode; spark-submit runs on the master and waits
for the end. svcd's own way has a launcher more, whose time YARN tells: from its start to that of
the Spark application, without the time that spark-submit takes for its submit.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from attrs import frozen

from benchmarks.figures import Figure

_MOST_S: Final = 3.0
"""Seconds that `svcd run` may take longer than spark-submit and the launcher."""
_CALL_S: Final = 30.0

Svcd = Callable[..., str]
"""Runs `svcd` with these arguments, and returns its output."""


@frozen(kw_only=True)
class Taken:
    """Seconds of one job: in all, and from its first sign to the start of the application.

    The first sign is the start of the command, or of the launcher.
    """

    whole: float
    submit: float


@frozen(kw_only=True)
class Program:
    """A word count of the image. bare, ours: the options of spark-submit, and of `svcd run`."""

    name: str
    file: str
    bare: Sequence[str] = ()
    ours: Sequence[str] = ()


_CLASS: Final = "org.svcd.examples.spark.WordCount"
_PROGRAMS: Final = (
    Program(name="PySpark", file="wordcount.py"),
    Program(
        name="Spark jar",
        file="svcd-spark-examples.jar",
        bare=("--class", _CLASS),
        ours=("--type", "Spark", "--main-class", _CLASS),
    ),
)


def figures(svcd: Svcd, manager: str, image: Path, rounds: int) -> Sequence[Figure]:
    """All figures. manager: URL of YARN's web services. The first round warms up the cluster."""
    found: list[Figure] = []
    for each in _PROGRAMS:
        path = image / "examples" / each.file
        if not path.is_file():
            print(f"jobs: no Spark at {image}", file=sys.stderr)
            return []
        found += _of(each, path, svcd, manager, rounds)
    return found


def _of(program: Program, path: Path, svcd: Svcd, manager: str, rounds: int) -> Sequence[Figure]:
    bare, ours = list[Taken](), list[Taken]()
    run = ("run", str(path), *program.ours, "--on", "bench", "--input", "hdfs:///in")
    submit = shlex.join(["spark-submit", *program.bare, str(path), "hdfs:///in"])
    for number in range(rounds + 1):
        out = f"hdfs:///out/{path.stem}-{number}"
        command = f". svcd/env.sh; {submit} {out}-bare"
        bare.append(_bare(partial(svcd, "cluster", "ssh", "bench", "--", command), manager))
        ours.append(_ours(partial(svcd, *run, "--output", f"{out}-svcd"), manager))
        print(f"jobs: {program.name} {bare[-1]} {ours[-1]}", file=sys.stderr, flush=True)
    del bare[0], ours[0]
    launcher = [one.submit - other.submit for one, other in zip(ours, bare, strict=True)]
    over = median(t.whole for t in ours) - median(t.whole for t in bare) - median(launcher)
    name = program.name
    return [
        _figure(f"{name} job by spark-submit, in all", *(each.whole for each in bare)),
        _figure(f"{name} job by svcd run, in all", *(each.whole for each in ours)),
        _figure(f"{name} job by svcd run, launcher", *launcher),
        _figure(f"{name}: svcd run - spark-submit - launcher, medians", over, target=_MOST_S),
    ]


def _figure(name: str, *rounds: float, target: float | None = None) -> Figure:
    return Figure(benchmark="jobs", name=name, unit="s", rounds=rounds, target=target)


def _bare(job: Callable[[], object], manager: str) -> Taken:
    at, began = time.time(), time.perf_counter()
    job()
    whole = time.perf_counter() - began
    (spark,) = [app for app in _since(manager, at) if app["applicationType"] == "SPARK"]
    return Taken(whole=whole, submit=spark["startedTime"] / 1000 - at)


def _ours(job: Callable[[], object], manager: str) -> Taken:
    at, began = time.time(), time.perf_counter()
    job()
    whole = time.perf_counter() - began
    apps = _since(manager, at)
    (spark,) = [app["startedTime"] for app in apps if app["applicationType"] == "SPARK"]
    launcher = min(app["startedTime"] for app in apps)
    return Taken(whole=whole, submit=(spark - launcher) / 1000)


def _since(manager: str, at: float) -> Sequence[Any]:
    """The applications of YARN that began after `at`."""
    url = f"{manager}/ws/v1/cluster/apps?startedTimeBegin={int(at * 1000)}"
    with urllib.request.urlopen(url, timeout=_CALL_S) as answer:
        found: Sequence[Any] = (json.loads(answer.read())["apps"] or {}).get("app", [])
    return found
