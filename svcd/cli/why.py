"""`svcd why`: shows the history of a cluster or a job execution, or explains a failure code.

The command asks the daemon over HTTP and changes nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from svcd.cli.client import Api, safe
from svcd.cli.cluster_story import of_cluster, of_lost_cluster
from svcd.cli.command import Command, settings_options
from svcd.cli.exits import NOT_FOUND, USAGE, CommandError
from svcd.cli.failures import explained
from svcd.cli.job_story import Look, of_execution
from svcd.cli.jobs import EXECUTION, JOB, cluster_or_execution
from svcd.cli.names import CLUSTER, Kind, is_id
from svcd.cli.session import Session
from svcd.model.failures import Code


class NotThere(CommandError):
    """The project has no cluster, execution or job of that name or id."""


@click.command("why", cls=Command)
@click.argument("what", metavar="WHAT")
@click.option("--all", "whole", is_flag=True, help="show every request and every line")
@settings_options
@click.pass_obj
def command(
    session: Session, what: str, whole: bool, config: Path | None, flags: Sequence[str]
) -> None:
    """Show the history of a cluster or a job execution, its failure, and what to do.

    WHAT: id or name of a cluster, id of a job execution, name of a job, or their unique beginning,
    or a failure code.
    """
    refuse_data(session)
    if what in Code.__members__:
        sys.stdout.write(explained(Code(what)))
        return
    session.configure(config, flags)
    try:
        lines = list(history(session.api, what, whole))
    except NotThere:
        if what.upper() not in Code.__members__:
            raise
        sys.stdout.write(explained(Code(what.upper())))  # a cluster or job of that name comes first
        return
    for line in lines:
        print(line)


def refuse_data(session: Session) -> None:
    """Refuse `-o`: the history is a text for people. Raises CommandError."""
    if session.output not in ("table", "wide"):
        text = f"-o {session.output}: the history is a text; for data use svcd cluster events NAME"
        raise CommandError(f"{text} or svcd job show ID, with -o", USAGE)


def history(api: Api, what: str, whole: bool = False) -> Iterator[str]:
    """The history of the cluster or execution that `what` names. Raises CommandError, NotThere."""
    try:
        cluster, execution = cluster_or_execution(api, what)
    except CommandError as error:
        if error.code != NOT_FOUND:
            raise
        lost = _lost_with(api, what)
        if not lost:
            raise NotThere(
                f"project {api.door.tenant} has no cluster and no job execution {what!r}; "
                "svcd keeps no history of deleted ones",
                NOT_FOUND,
            ) from None
        yield from of_lost_cluster(what, lost)
        return
    if cluster is None:
        yield from _execution(api, execution)
        return
    story, events = (_part(api, CLUSTER, cluster["id"], name) for name in ("story", "events"))
    if story is None or events is None:
        raise CommandError(f"cluster {cluster['name']} was deleted meanwhile", NOT_FOUND)
    yield from of_cluster(cluster, story, events, api.seconds, whole)


def _execution(api: Api, execution: Any) -> Iterator[str]:
    job = _one(api, JOB, execution["job_id"])
    cluster, waited = None, None
    if execution["cluster_id"]:
        cluster = _one(api, CLUSTER, execution["cluster_id"])
    story = _part(api, EXECUTION, execution["id"], "story")
    if story is None:
        raise CommandError(f"job execution {execution['id']} was deleted meanwhile", NOT_FOUND)
    if story["work"] is not None and story["work"]["kind"] == "cluster":
        waited = _part(api, CLUSTER, execution["cluster_id"], "story")
    look = Look(execution=execution, story=story)
    return of_execution(look, job, cluster, waited, api.seconds, api.door.base)


def _one(api: Api, kind: Kind, id_: str) -> Any:
    body = api.get(f"{kind.path}/{safe(id_)}")
    return None if body is None else body[kind.one]


def _part(api: Api, kind: Kind, id_: str, name: str) -> Any:
    """The story or the events of a record; None when it was deleted between two requests."""
    body = api.get(f"{kind.path}/{safe(id_)}/{name}")
    return None if body is None else body[name]


def _lost_with(api: Api, cluster_id: str) -> Sequence[Any]:
    """Executions that the deletion of the cluster ended: their failure text has its id."""
    if not is_id(cluster_id):
        return []
    killed = api.rows(f"{EXECUTION.path}?status=KILLED", EXECUTION.many)
    return [
        execution
        for execution in killed
        if _names_lost(execution["info"].get("failure"), cluster_id)
    ]


def _names_lost(failure: Any, cluster_id: str) -> bool:
    return bool(failure) and failure["code"] == Code.CLUSTER_GONE and cluster_id in failure["text"]
