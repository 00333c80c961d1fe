"""Running jobs: what the daemon uses for 10,000 jobs on 100 engines, beside 1,000 watchers.

Cloud and engines are `svcd-cloud`, a process of its own. The jobs run until they are killed, so the
daemon only follows them; a few that end show how old a status can be.
"""

from __future__ import annotations

import email.utils
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.api import ALL_IN_ONE, Api
from benchmarks.figures import Figure, quantile
from benchmarks.growing import SETTINGS
from benchmarks.lives import Unexpected
from benchmarks.processes import Server, cloud_and_daemon
from benchmarks.watch import WATCHERS, Crowd

_ENGINES: Final = 100
_EACH: Final = 100
_ENDING: Final = 40
_POLL_S: Final = 5.0
"""The default of `workflow.poll_s`."""
_QUIET_S: Final = 60.0
_LOOK_S: Final = 0.2
_LONGEST_S: Final = 3600.0
_SHARE: Final = 5.0
_JOB_MS: Final = 3.0
_JOB_KIB: Final = 40.0
_ROUNDS: Final = 3


def run(quick: bool) -> list[Figure]:
    """All figures."""
    engines, jobs, watchers = (5, 20, 50) if quick else (_ENGINES, _EACH, WATCHERS)
    cloud_settings = {key: SETTINGS[key] for key in SETTINGS if key.startswith("embedded.")}
    settings = {
        "limits.instances": "0",
        "limits.executions": "0",
        "limits.watchers": "0",
        "log.access": "false",
    }
    with (
        tempfile.TemporaryDirectory(prefix="svcd-bench-") as folder,
        cloud_and_daemon(Path(folder), cloud_settings, settings) as (_, daemon, told),
    ):
        return list(_Following(daemon, told).figures(engines, jobs, watchers, quick))


class _Following:
    """The jobs, through the API of `daemon`. told: the endpoints of the cloud."""

    def __init__(self, daemon: Server, told: Mapping[str, Any]) -> None:
        self._daemon = daemon
        self._api = Api(daemon.port, told)

    def figures(self, engines: int, jobs: int, watchers: int, quick: bool) -> Iterator[Figure]:
        clusters = self._clusters(engines)
        job, source, target = self._job()
        count = engines * jobs
        memory, used = self._daemon.memory_mib(), self._daemon.cpu_s()
        for cluster in clusters * jobs:
            self._execute(job, cluster, source, target, {"svcd.fake.outcome": "hang"})
        accepted = self._daemon.cpu_s()
        self._until(self._all_run, f"{count} jobs run")
        started = self._daemon.cpu_s()
        name = f"{count} jobs on {engines} engines"
        yield _figure(f"{name}: accept one, CPU", "ms", (accepted - used) * 1e3 / count)
        whole = (started - used) * 1e3 / count
        yield _figure(f"{name}: until one runs, CPU", "ms", whole, target=_JOB_MS)
        kib = (self._daemon.memory_mib() - memory) * 1024.0 / count
        yield _figure(f"{name}: memory of one", "KiB", kib, target=_JOB_KIB)
        yield _figure(f"{name}: share of a core", "%", *self._shares(quick), target=_SHARE)
        crowd = Crowd(self._daemon.port, watchers)
        try:
            shares = self._shares(quick)
        finally:
            crowd.close()
        yield _figure(f"{name}: share of a core, {watchers} watchers", "%", *shares, target=_SHARE)
        ages = self._ages(clusters, job, source, target)
        most_s = 2.0 * _POLL_S
        yield _figure(f"{name}: age of a status, longest", "s", quantile(ages, 1.0), target=most_s)

    def _clusters(self, count: int) -> list[str]:
        ids = [self._api.cluster(f"c{number}", ALL_IN_ONE) for number in range(count)]

        def active() -> bool:
            clusters = self._api.asked("GET", "/clusters")["clusters"]
            failed = [c["status_description"] for c in clusters if c["status"] == "Error"]
            if failed:
                raise Unexpected(failed[0])
            return sum(cluster["status"] == "Active" for cluster in clusters) == count

        self._until(active, f"{count} clusters are Active")
        return ids

    def _job(self) -> tuple[str, str, str]:
        """A Pig job, and where it reads and writes: their ids."""
        program = self._api.asked(
            "PUT", "/job-binary-internals/count.pig", b"lines = LOAD '$INPUT';\n"
        )
        url = f"internaldb://{program['job_binary_internal']['id']}"
        binary = self._api.asked("POST", "/job-binaries", {"name": "count.pig", "url": url})
        sources = [
            self._api.asked(
                "POST", "/data-sources", {"name": n, "type": "hdfs", "url": f"/data/{n}"}
            )
            for n in ("in", "out")
        ]
        body = {"name": "count", "type": "Pig", "mains": [binary["job_binary"]["id"]], "libs": []}
        job = self._api.asked("POST", "/jobs", body)["job"]["id"]
        return job, sources[0]["data_source"]["id"], sources[1]["data_source"]["id"]

    def _execute(
        self, job: str, cluster: str, source: str, target: str, configs: Mapping[str, str]
    ) -> str:
        body = {
            "cluster_id": cluster,
            "input_id": source,
            "output_id": target,
            "job_configs": {"configs": configs, "args": {}, "params": {}},
        }
        id_: str = self._api.asked("POST", f"/jobs/{job}/execute", body)["job_execution"]["id"]
        return id_

    def _all_run(self) -> bool:
        return not any(
            self._api.asked("GET", f"/job-executions?status={status}&limit=1")["job_executions"]
            for status in ("Pending", "PREP")
        )

    def _shares(self, quick: bool) -> list[float]:
        """Percent of a core that the daemon uses while nothing changes."""
        shares = []
        for _ in range(1 if quick else _ROUNDS):
            began, used = time.perf_counter(), self._daemon.cpu_s()
            time.sleep(_QUIET_S / 4.0 if quick else _QUIET_S)
            seconds = time.perf_counter() - began
            shares.append((self._daemon.cpu_s() - used) / seconds * 100.0)
        return shares

    def _ages(self, clusters: list[str], job: str, source: str, target: str) -> list[float]:
        """Seconds from the end of a job at its engine until the API shows the end.

        The engine's times have whole seconds, so an age can be too long by one.
        """
        left = {
            self._execute(job, clusters[n % len(clusters)], source, target, {})
            for n in range(_ENDING)
        }
        ages: list[float] = []

        def ended() -> bool:
            for id_ in list(left):
                info = self._api.asked("GET", f"/job-executions/{id_}")["info"]
                if info["status"] == "SUCCEEDED":
                    left.remove(id_)
                    end = email.utils.parsedate_to_datetime(info["endTime"]).timestamp()
                    ages.append(time.time() - end)
            return not left

        self._until(ended, f"{_ENDING} jobs have ended")
        return ages

    def _until(self, look: Callable[[], bool], what: str) -> None:
        end = time.perf_counter() + _LONGEST_S
        while not look():
            if time.perf_counter() > end:
                raise Unexpected(f"not in time: {what}")
            time.sleep(_LOOK_S)


def _figure(name: str, unit: str, *rounds: float, target: float | None = None) -> Figure:
    return Figure(benchmark="running", name=name, unit=unit, rounds=rounds, target=target)
