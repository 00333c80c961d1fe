"""A scripted resource manager: its REST answers about nodes and applications, in memory. Pure.

Shaped as Hadoop 3.5 answers (tests/fixtures/yarn), as far as svcd reads it; the applications are
those of the scripted engine's jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import md5
from typing import Final

from attrs import define, field

from svcd.embedded.oozie_jobs import Job

_EMPTY: Final = (
    "[Sun Nov 22 00:03:01 +0000 2026] Application is added to the scheduler and is not yet "
    "activated. Skipping AM assignment as cluster resource is empty.  Details : "
)


_DIED: Final = (
    "Application failed 1 times (global limit =2; local limit is =1) due to AM Container exited "
    "with  exitCode: 137"
)


@define
class ScriptedYarn:
    """nodes: host -> (state, health report); a host that is RUNNING takes work."""

    nodes: dict[str, tuple[str, str]] = field(factory=lambda: {"worker-1": ("RUNNING", "")})

    @property
    def active(self) -> int:
        """Nodes that take work."""
        return sum(state == "RUNNING" for state, _ in self.nodes.values())

    def answer(
        self, path: str, jobs: Iterable[Job], now: float, tag: str = ""
    ) -> Mapping[str, object] | None:
        """The answer of `/ws/v1/cluster/<path>`; None for an unknown path.

        tag: of the applications that are asked for, also ended ones; "": all live ones.
        """
        match path.split("/"):
            case ["metrics"]:
                states = [state for state, _ in self.nodes.values()]
                counts = {f"{n.lower()}Nodes": states.count(n) for n in ("LOST", "UNHEALTHY")}
                metrics = {"activeNodes": self.active, "totalNodes": len(states), **counts}
                return {"clusterMetrics": metrics}
            case ["nodes"]:
                nodes = [
                    {"id": f"{host}:8041", "nodeHostName": host, "state": s, "healthReport": report}
                    for host, (s, report) in self.nodes.items()
                ]
                return {"nodes": {"node": nodes} if nodes else None}
            case ["apps"]:
                known = list(jobs)
                apps = [self._application(job, now) for job in known if job.in_yarn(now)]
                apps += [_child(job) for job in known if _is_live(job, now)]
                begun = [job for job in known if job.spark_application and job.started_at]
                apps += [_spark(job, now) for job in begun if tag or job.in_yarn(now)]
                if tag:
                    apps = [app for app in apps if app["applicationTags"] == tag]
                return {"apps": {"app": apps} if apps else None}
            case ["apps", id_]:
                for job in jobs:
                    if job.application == id_ and job.launcher_died(now):
                        return {"app": {"id": id_, "state": "FAILED", "diagnostics": _DIED}}
        return None

    def kill(self, path: str, jobs: Iterable[Job], now: float) -> bool:
        """`PUT /ws/v1/cluster/apps/<id>/state`; False: there is no such application."""
        for job in jobs:
            if path == f"apps/{child_of(job)}/state" and _is_live(job, now):
                job.child_killed = True
                return True
        return False

    def _application(self, job: Job, now: float) -> Mapping[str, object]:
        held = job.queued or ("" if self.active else _EMPTY)
        action = job.definition.action
        return {
            **_known(job),
            "id": job.application,
            "name": f"oozie:action:T={job.definition.kind}:A={action}:ID={job.id}",
            "state": "ACCEPTED" if held else "RUNNING",
            "diagnostics": held,
            "progress": 0.0 if held else job.progress(now),
            "elapsedTime": int((now - (job.started_at or now)) * 1000),
        }


def child_of(job: Job) -> str:
    """The application that a job's launcher has started."""
    return f"{job.application}1"


def _is_live(job: Job, now: float) -> bool:
    return job.launcher_died(now) and not job.child_killed


def _child(job: Job) -> Mapping[str, object]:
    return {**_known(job), "id": child_of(job), "name": "PigLatin:script.pig"}


def _spark(job: Job, now: float) -> Mapping[str, object]:
    ended = {"SUCCEEDED": ("FINISHED", "SUCCEEDED"), "KILLED": ("FINISHED", "FAILED")}
    state, final = ended.get(job.status(now), ("RUNNING", "UNDEFINED"))
    if job.killed_at is not None:
        state, final = "KILLED", "KILLED"
    return {
        **_known(job),
        "id": job.spark_application,
        "name": "a program of Spark",
        "applicationType": "SPARK",
        "state": state,
        "finalStatus": final,
        "progress": 100.0 if state == "FINISHED" else job.progress(now),
        "trackingUrl": f"{job.console}/proxy/{job.spark_application}/",
    }


def _known(job: Job) -> Mapping[str, object]:
    """The common fields of the running applications of a job."""
    return {
        "state": "RUNNING",
        "finalStatus": "UNDEFINED",
        "diagnostics": "",
        "elapsedTime": 1000,
        "applicationTags": tag_of(f"{job.id}@{job.definition.action}"),
    }


def tag_of(action: str) -> str:
    """The tag of an action's children; the digest is written as a number."""
    return f"oozie-{int(md5(action.encode(), usedforsecurity=False).hexdigest(), 16):x}"
