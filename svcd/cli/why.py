"""`svcd why`: shows the history of a cluster or a job execution, or explains a failure code.

The command asks the daemon over HTTP and changes nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from svcd.cli.api import Api
from svcd.cli.api import safe as _safe
from svcd.cli.command import Command, settings_options
from svcd.cli.exits import NOT_FOUND, CommandError
from svcd.cli.failures import explained
from svcd.cli.report import of_cluster, of_execution, of_lost_cluster
from svcd.cli.session import Session
from svcd.model.failures import Code

_ID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")


class NotThere(CommandError):
    """The tenant has no cluster, execution or job of that name or id."""


@click.command("why", cls=Command)
@click.argument("what", metavar="WHAT")
@click.option("--all", "whole", is_flag=True, help="show every request and every line")
@settings_options
@click.pass_obj
def command(
    session: Session, what: str, whole: bool, config: Path | None, flags: Sequence[str]
) -> None:
    """Show the history of a cluster or a job execution, its failure, and what to do.

    WHAT: id or name of a cluster, id of a job execution, name of a job, or a failure code.
    """
    if what in Code.__members__:
        sys.stdout.write(explained(Code(what)))
        return
    session.configure(config, flags)
    for line in history(session.api, what, whole):
        print(line)


def history(api: Api, what: str, whole: bool = False) -> Iterator[str]:
    """The history of the cluster or execution that `what` names. Raises CommandError, NotThere."""
    cluster = _one(api, f"/clusters/{_safe(what)}", "cluster")
    execution = None if cluster else _one(api, f"/job-executions/{_safe(what)}")
    if not cluster and not execution:
        cluster = _newest(api, f"/clusters?name={_safe(what)}", "clusters")
    if not cluster and not execution:
        execution = _of_job(api, what)
    if cluster:
        yield from of_cluster(cluster, _events(api, cluster["id"]), api.seconds, whole)
    elif execution:
        yield from _execution(api, execution)
    elif lost := _lost_with(api, what):
        yield from of_lost_cluster(what, lost)
    else:
        raise NotThere(
            f"tenant {api.door.tenant} has no cluster and no job execution {what!r}; "
            "svcd keeps no history of deleted ones",
            NOT_FOUND,
        )


def _execution(api: Api, execution: Any) -> Iterator[str]:
    job = _one(api, f"/jobs/{_safe(execution['job_id'])}", "job")
    cluster, events = None, []
    if execution["cluster_id"]:
        cluster = _one(api, f"/clusters/{_safe(execution['cluster_id'])}", "cluster")
        events = _events(api, execution["cluster_id"]) if cluster else []
    return of_execution(execution, job, cluster, events, api.seconds, api.door.base)


def _events(api: Api, cluster_id: str) -> list[Any]:
    found = api.get(f"/clusters/{_safe(cluster_id)}/events")
    return (
        [] if found is None else list(found["events"])
    )  # the cluster may be deleted between the two requests


def _one(api: Api, path: str, key: str = "") -> Any:
    found = api.one(path, key)
    return found[key] if found and key else found


def _newest(api: Api, path: str, key: str) -> Any:
    found: Sequence[Any] = api.listed(path, key)[key]
    return found[-1] if found else None


def _of_job(api: Api, name: str) -> Any:
    """The newest execution of the job `name`; None when there is none."""
    job = _newest(api, f"/jobs?name={_safe(name)}", "jobs")
    if job is None:
        return None
    return _newest(api, f"/job-executions?job_id={_safe(job['id'])}", "job_executions")


def _lost_with(api: Api, cluster_id: str) -> Sequence[Any]:
    """Executions that the deletion of the cluster ended: their failure text has its id."""
    if not _ID.match(cluster_id):
        return []
    killed = (api.get("/job-executions?status=KILLED") or {"job_executions": []})["job_executions"]
    return [each for each in killed if _names_lost(each["info"].get("failure"), cluster_id)]


def _names_lost(failure: Any, cluster_id: str) -> bool:
    return bool(failure) and failure["code"] == Code.CLUSTER_GONE and cluster_id in failure["text"]
