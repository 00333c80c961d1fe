"""`svcd status`: the daemon of the commands, its clusters and jobs, and troubles."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import click

from svcd.cli import lifetime
from svcd.cli.client import Api, safe
from svcd.cli.command import Command
from svcd.cli.output import write
from svcd.cli.session import Session
from svcd.cli.show import as_text, get, since
from svcd.cli.times import seconds
from svcd.cli.words import in_commands
from svcd.embedded import installations
from svcd.model.controls import visible

Json = Mapping[str, Any]

_UNDER_WAY: Final = ("Pending", "PREP", "RUNNING", "SUSPENDED")
_RECENT_S: Final = 24 * 3600.0
"""Age up to which a failed execution needs attention."""
_MOST: Final = 10
"""Lines of each part."""


@click.command("status", cls=Command)
@click.pass_obj
def command(session: Session) -> None:
    """Show the API, the project, its clusters and running jobs, and what needs attention."""
    for left in installations.leftovers(installations.running()):
        session.note(left.warning)
    api = session.api
    clusters = api.listed("/clusters")["clusters"]
    running = [row for status in _UNDER_WAY for row in _executions(api, status)]
    failed = recent(_executions(api, "FAILED"), session.now())
    body = {
        "api": api.door.api,
        "project": api.door.tenant,
        "clusters": clusters,
        "job_executions": running,
        "attention": list(attention(clusters, failed, session.now())),
    }
    if session.output in ("json", "yaml"):
        write(as_text(body, session.output))
    else:
        names = _names(api, running[:_MOST])
        for line in lines(body, names, session.now()):
            write(f"{visible(line)}\n")


def _executions(api: Api, status: str) -> Iterator[Any]:
    return api.rows(f"/job-executions?status={status}", "job_executions")


def _names(api: Api, running: Sequence[Json]) -> Mapping[str, str]:
    """The names of the jobs of executions, by their ids."""
    ids = {get(row, "job_id") for row in running} - {""}
    found = {id_: api.get(f"/jobs/{safe(id_)}") for id_ in sorted(ids)}
    return {id_: get(body, "job.name") for id_, body in found.items() if body is not None}


def recent(failed: Iterable[Json], now: float) -> Sequence[Json]:
    """The last executions that failed within a day; it keeps no others. Pure."""
    return deque(
        (
            row
            for row in failed
            if now - (seconds(get(row, "end_time") or get(row, "updated_at")) or 0.0) < _RECENT_S
        ),
        _MOST,
    )


def attention(clusters: Sequence[Json], failed: Sequence[Json], now: float) -> Iterator[Json]:
    """What a person should look at: kind, name or id, and the reason. failed: recent ones. Pure."""
    for row in clusters:
        reason = get(row, "status_description")
        status = get(row, "status")
        if status == "Error" or (reason and status != "Deleting"):  # it has its reason to go
            yield {
                "kind": "cluster",
                "name": get(row, "name"),
                "reason": f"{get(row, 'status')}: {reason}" if reason else get(row, "status"),
            }
        if left := lifetime.warning(row, now):
            text = f"ends in {left}; to keep it: svcd cluster keep {get(row, 'name')}"
            yield {"kind": "cluster", "name": get(row, "name"), "reason": text}
    for row in failed:
        code, text = get(row, "info.failure.code"), get(row, "info.failure.text")
        reason = f"FAILED {since(get(row, 'end_time'), now)}: {code} {text}"
        yield {"kind": "job execution", "name": get(row, "id"), "reason": reason.rstrip(": ")}


def lines(body: Json, names: Mapping[str, str], now: float) -> Iterator[str]:
    """The lines for people. names: of jobs, by their ids. Pure."""
    yield f"API       {body['api']}"
    yield f"project   {body['project']}"
    counted = Counter(get(row, "status") for row in body["clusters"])
    kinds = ", ".join(f"{number} {status}" for status, number in counted.items())
    yield f"clusters  {kinds or 'none'}"
    running = body["job_executions"]
    yield f"jobs      {f'{len(running)} under way' if running else 'none under way'}"
    for row in running[:_MOST]:
        name = names.get(get(row, "job_id")) or get(row, "job_id")
        status, begun = get(row, "info.status"), since(get(row, "created_at"), now)
        yield f"  {name}  {status}  {begun}  {get(row, 'id')}"
    if len(running) > _MOST:
        yield f"  and {len(running) - _MOST} more"
    if not body["attention"]:
        return
    yield ""
    yield "needs attention"
    for row in body["attention"][:_MOST]:
        reason = " ".join(in_commands(row["reason"]).split())
        yield f"  {row['kind']} {row['name']}: {reason}"
        yield f"    svcd why {row['name']} shows its history"
    if len(body["attention"]) > _MOST:
        yield f"  and {len(body['attention']) - _MOST} more"
