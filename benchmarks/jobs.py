"""What `svcd run` adds to a job: the same Pig job by it and by a bare client of Oozie, in turn.

Both run the word count of docs/examples on one cluster of the embedded default (a master and a
worker, real Hadoop). The bare client does what nobody can leave out: it writes script and workflow
to HDFS, submits, and asks for the status as often as `svcd run` does.

The job itself takes longer or shorter by seconds on a machine with two cores. So the benchmark also
watches the engine: what a client takes before the engine has the job, and after the job's end.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final
from xml.sax.saxutils import escape

from attrs import frozen

from benchmarks import spark_jobs
from benchmarks.figures import Figure
from svcd.cli.demo_daemon import DemoDaemon

_ROOT: Final = Path(__file__).parents[1]
_IMAGE: Final = Path(
    os.environ.get("SVCD_VANILLA_PREFIX") or _ROOT / "state" / "image" / "vanilla-3.5.0"
)
_SCRIPT: Final = _ROOT / "docs" / "examples" / "count.pig"
_SVCD: Final = str(Path(sys.executable).with_name("svcd"))
_TEXT: Final = b"to be or not to be\nnot two\n"
_USER: Final = "svcd"
_MOST_S: Final = 1.0
"""Seconds that `svcd run` may take longer than the bare client."""
_ROUNDS: Final = 3
_LOOK_S: Final = 0.5
"""Time between two requests for the status, as in `svcd run`."""
_WATCH_S: Final = 0.1
"""Time between two looks at the engine's newest job."""
_JOB_S: Final = 240.0
_CALL_S: Final = 30.0
_ALIVE: Final = ("PREP", "RUNNING")
_WORKFLOW: Final = """<workflow-app xmlns="uri:oozie:workflow:0.5" name="bare"><start to="count"/>
<action name="count"><pig><job-tracker>${jobTracker}</job-tracker><name-node>${nameNode}</name-node>
<script>count.pig</script><param>INPUT=%s</param><param>OUTPUT=%s</param></pig>
<ok to="end"/><error to="fail"/></action>
<kill name="fail"><message>failed</message></kill><end name="end"/></workflow-app>
"""


@frozen(kw_only=True)
class Taken:
    """Seconds of one job by one client: in all, before the engine had it, and after its end."""

    whole: float
    before: float
    after: float


def run(quick: bool) -> list[Figure]:
    """All figures; none without Hadoop. The first round of each client warms up the cluster."""
    if not (_IMAGE / "hadoop").is_dir():
        print(f"jobs: no Hadoop at {_IMAGE}: make image builds it", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory(prefix="svcd-bench-") as name:
        daemon = DemoDaemon(Path(name), _IMAGE)
        try:
            daemon.start()
            bare, svcd, spark = _measured(Path(name), 1 if quick else _ROUNDS)
        finally:
            daemon.stop()
    longer = median(each.whole for each in svcd) - median(each.whole for each in bare)
    figures = []
    for name, taken in (("a bare client", bare), ("svcd run", svcd)):
        for part, rounds in (
            ("in all", [each.whole for each in taken]),
            ("before the engine has it", [each.before for each in taken]),
            ("after the engine's end", [each.after for each in taken]),
        ):
            figures.append(_figure(f"Pig job by {name}, {part}", *rounds))
    beside = [
        one.before + one.after - other.before - other.after
        for one, other in zip(svcd, bare, strict=True)
    ]
    return [
        *figures,
        _figure("svcd run - bare, beside the engine", *beside),
        _figure("svcd run - bare, medians in all", longer, target=_MOST_S),
        *spark,
    ]


def _figure(name: str, *rounds: float, target: float | None = None) -> Figure:
    return Figure(benchmark="jobs", name=name, unit="s", rounds=rounds, target=target)


def _measured(
    state: Path, rounds: int
) -> tuple[Sequence[Taken], Sequence[Taken], Sequence[Figure]]:
    """What each Pig job took, by the bare client and by `svcd run`; the figures of Spark."""
    create = ("cluster", "create", "bench", "--plugin", "vanilla", "--workers", "1", "--wait")
    _svcd(state, *create)
    cluster = json.loads(_svcd(state, "cluster", "show", "bench", "-o", "json"))["cluster"]
    bare = _Bare(json.dumps(cluster["info"]))
    bare.write("/in/text", _TEXT)

    def by_svcd(source: str, to: str) -> None:
        _svcd(state, "run", str(_SCRIPT), "--on", "bench", "--input", source, "--output", to)

    taken: tuple[list[Taken], list[Taken]] = ([], [])
    for number in range(rounds + 1):
        for name, times, job in (("bare", taken[0], bare.job), ("svcd", taken[1], by_svcd)):
            to = f"hdfs:///out/{name}-{number}"
            times.append(_timed(bare, partial(job, "hdfs:///in", to)))
            print(f"jobs: {name} {times[-1]}", file=sys.stderr, flush=True)
    manager = _found(r"http://[^:]+:8088", json.dumps(cluster["info"]))
    spark = spark_jobs.figures(partial(_svcd, state), manager, _IMAGE, rounds)
    return taken[0][1:], taken[1][1:], spark


def _timed(bare: _Bare, job: Callable[[], None]) -> Taken:
    """Run `job`, and watch the engine meanwhile."""
    known, seen, stop = bare.newest()[0], list[float](), threading.Event()

    def watch() -> None:
        while not stop.wait(_WATCH_S) and len(seen) < 2:
            id_, status = bare.newest()
            if id_ != known and (not seen or status not in _ALIVE):
                seen.append(time.perf_counter())

    watcher = threading.Thread(target=watch, daemon=True)
    began = time.perf_counter()
    watcher.start()
    try:
        job()
        ended = time.perf_counter()
        watcher.join(_CALL_S)
    finally:
        stop.set()
    first, last = seen[0], min(seen[1], ended)
    return Taken(whole=ended - began, before=first - began, after=ended - last)


def _svcd(state: Path, *arguments: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SVCD_", "OS_"))}
    done = subprocess.run(
        [_SVCD, *arguments],
        env={**environment, "SVCD_SERVER_STATE_DIR": str(state)},
        capture_output=True,
        text=True,
        timeout=_JOB_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"svcd {arguments[0]} ended with {done.returncode}: {done.stderr}")
    return done.stdout


class _Bare:
    """The HTTP interfaces of Oozie and HDFS, and nothing else. info: of the cluster, as JSON."""

    def __init__(self, info: str) -> None:
        self._oozie = f"{_found(r'http://[^:]+:11000', info)}/oozie/v1"
        self._webhdfs = f"{_found(r'http://[^:]+:9870', info)}/webhdfs/v1"
        self._name_node = _found(r"hdfs://[^:]+:8020", info)
        self._manager = f"{self._name_node[7:].partition(':')[0]}:8032"
        self._jobs = 0

    def write(self, path: str, data: bytes) -> None:
        """Write a file: the name node names the data node, and the data node takes the data."""
        url = f"{self._webhdfs}{path}?op=CREATE&overwrite=true&noredirect=true&user.name={_USER}"
        to = json.loads(_asked("PUT", url))["Location"]
        _asked("PUT", to, data, {"Content-Type": "application/octet-stream"})

    def newest(self) -> tuple[str, str]:
        """Id and status of the engine's newest job; empty without one."""
        found = json.loads(_asked("GET", f"{self._oozie}/jobs?len=1"))["workflows"]
        return (found[0]["id"], found[0]["status"]) if found else ("", "")

    def job(self, source: str, to: str) -> None:
        """Run the Pig job to its end. Raises RuntimeError when it fails."""
        self._jobs += 1
        folder = f"/user/{_USER}/bare-{self._jobs}"
        self.write(f"{folder}/count.pig", _SCRIPT.read_bytes())
        self.write(f"{folder}/workflow.xml", (_WORKFLOW % (source, to)).encode())
        values = {
            "user.name": _USER,
            "oozie.use.system.libpath": "true",
            "oozie.wf.application.path": f"{self._name_node}{folder}/workflow.xml",
            "jobTracker": self._manager,
            "nameNode": self._name_node,
        }
        properties = "".join(
            f"<property><name>{name}</name><value>{escape(value)}</value></property>"
            for name, value in values.items()
        )
        body = f"<configuration>{properties}</configuration>".encode()
        xml = {"Content-Type": "application/xml;charset=UTF-8"}
        id_ = json.loads(_asked("POST", f"{self._oozie}/jobs?action=start", body, xml))["id"]
        end = time.monotonic() + _JOB_S
        while time.monotonic() < end:
            status = json.loads(_asked("GET", f"{self._oozie}/job/{id_}?show=info"))["status"]
            if status == "SUCCEEDED":
                return
            if status not in _ALIVE:
                raise RuntimeError(f"the bare job {id_} is {status}")
            time.sleep(_LOOK_S)
        raise RuntimeError(f"the bare job {id_} did not end within {_JOB_S:.0f} s")


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"no {pattern} in {text}")
    return found[0]


def _asked(
    method: str, url: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> Any:
    request = urllib.request.Request(url, data=body, method=method, headers=headers or {})
    with urllib.request.urlopen(request, timeout=_CALL_S) as answer:
        return answer.read()
