"""The history of a cluster as lines of text, made from its story and its events. Pure.

The lines show the request, each event with its time after the request and its machines, the
steps that are not finished and their deadline, the failure with advice, and the remaining objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from svcd.cli import lifetime
from svcd.cli.times import duration, moment, seconds
from svcd.cli.words import in_commands, status_of, step_title

Json = Mapping[str, Any]

_MOST_LINES: Final = 120
"""Lines of one request's history without `--all`."""
_MOST_MACHINES: Final = 60
"""Machines, or executions of a deleted cluster, that are listed."""
_MOST_NAMES: Final = 4
"""Machine names in one line; more are shown as a number."""


@frozen(kw_only=True)
class _Line:
    """One event, or several equal events of different machines. machines: their names, in order."""

    at: float
    step: str
    outcome: str
    machines: tuple[str, ...]
    event: Json


def of_cluster(
    cluster: Json, story: Json, events: Sequence[Json], now: float | None, whole: bool = False
) -> Iterator[str]:
    """The history of a cluster. now: the daemon's time in epoch seconds. whole: every line."""
    yield f"cluster {cluster['name']} ({cluster['id']}): {cluster['status']}"
    yield f"  {cluster['plugin_name']} {cluster['engine_version']}, {_sizes(cluster)}"
    for line in lifetime.lines(cluster, now) if now is not None else ():
        yield f"  {line}"
    yield from progress_lines(story, now)
    yield from failure(story)
    changes = story["changes"]
    shown = changes if whole else changes[-1:]
    if len(changes) > len(shown):
        yield ""
        yield "earlier requests (--all shows their events)"
        for change in changes[: -len(shown)]:
            yield f"  {moment(seconds(change['at']))}  {_title(change)}: {_outcome(change)}"
    for change in shown:
        mine = [event for event in events if event["generation"] == change["generation"]]
        begin = seconds(change["at"]) or 0.0
        yield ""
        yield f"{_title(change)}, {moment(begin)}"
        if mine:
            yield from _history_lines(mine, begin, None if whole else _MOST_LINES)
    yield from _machines(cluster, events)


def _sizes(cluster: Json) -> str:
    """The machines that run, of those that each group wants; as `svcd cluster ls` counts them."""
    groups = [
        (group, sum(instance.get("status") == "ACTIVE" for instance in group["instances"]))
        for group in cluster["node_groups"]
    ]
    return ", ".join(f"{g['name']} {running} of {g['count']}" for g, running in groups) or "empty"


def _title(change: Json) -> str:
    """The text of the request, or its number: its event may not be kept any more."""
    return (
        f"request: {change['request']}" if change["request"] else f"request {change['generation']}"
    )


def _outcome(change: Json) -> str:
    """How a request that is not the newest one ended."""
    if change["outcome"] == "failed":
        return f"failed with {change['code'] or 'an error without a code'}"
    return "done" if change["outcome"] == "done" else "replaced by the next request"


def progress_lines(story: Json, now: float | None) -> Iterator[str]:
    """The present status with its begin and deadline, and its unfinished steps."""
    work = story["work"]
    if work is None:
        return
    began = seconds(work["since"])
    spent = duration(None if now is None or began is None else now - began)
    until = limit(seconds(work["until"]), now)
    yield f"  {story['status']} since {moment(began)}, for {spent}{until}"
    for server in work["servers"]:
        yield f"    server {server['machine']} is {server['status'] or 'not created yet'}"
    more = work["servers_in_all"] - len(work["servers"])
    if more:
        yield f"    and {more} more servers"
    for event in work["waits"]:
        where = f" on {event['machine']}" if event["machine"] else ""
        times = f" ({event['attempt']} times so far)" if event["attempt"] else ""
        code = f"{event['code']}: " if event["code"] else ""
        text = f": {code}{_first(event['text'])}" if event["text"] else ""
        at = seconds(event["at"])
        ago = "" if now is None or at is None else f", {duration(now - at)} ago"
        yield f"    {step_title(event)}{where}{text}{times}{ago}"


def limit(until: float | None, now: float | None) -> str:
    """The end of a line with the time when svcd gives up; "" without a deadline."""
    if until is None:
        return ""
    left = "" if now is None else f", in {duration(until - now)}"
    return f"; svcd gives up at {moment(until)}{left}"


def failure(story: Json) -> Iterator[str]:
    """The failure that the cluster shows, with its meaning and advice."""
    failed = story["failure"]
    if failed is None:
        return
    yield ""
    yield "failure that a health check found" if failed["by_health_check"] else "failure"
    yield from indented(in_commands(failed["text"]), "  ")
    if failed["machine"]:
        yield f"  machine: {failed['machine']}"
    if failed["meaning"]:
        yield from explained(failed["code"], failed["meaning"], failed["advice"])


def explained(code: str, meaning: str, advice: str) -> Iterator[str]:
    """Lines with the meaning of a code, and its advice if it has one."""
    yield f"  {code} means: {meaning}"
    if advice:
        yield f"  what to do: {in_commands(advice)}"


def _history_lines(events: Sequence[Json], begin: float, most: int | None) -> Iterator[str]:
    """The events of one request as text. most: lines; the middle is left out."""
    lines = list(_lines(events))
    if most is not None and len(lines) > most:
        head = most // 3
        cut = len(lines) - most
        kept: list[_Line | None] = [*lines[:head], None, *lines[head + cut :]]
    else:
        kept = list(lines)
    for line in kept:
        if line is None:
            yield f"    … {len(lines) - (most or 0)} lines left out (--all shows them)"
            continue
        yield from _rendered(line, begin)


def _lines(events: Sequence[Json]) -> Iterator[_Line]:
    """The lines of `events`. Consecutive equal events of several machines share one line."""
    gathered: list[Json] = []

    def flush() -> Iterator[_Line]:
        if gathered:
            first = gathered[0]
            names = tuple(e["machine"] for e in gathered if e["machine"])
            yield _Line(
                at=seconds(gathered[-1]["at"]) or 0.0,
                step=first["step"],
                outcome=first["outcome"],
                machines=names,
                event=first,
            )
            gathered.clear()

    for event in events[1:] if events[0]["step"] == "request" else events:
        alike = bool(gathered) and _same(event) == _same(gathered[0])
        if not (alike and event["outcome"] in ("done", "retry") and event["machine"]):
            yield from flush()
        gathered.append(event)
    yield from flush()


def _same(event: Json) -> tuple[object, ...]:
    """A key that equal events of different machines share."""
    text = event["text"].replace(event["machine"], "") if event["machine"] else event["text"]
    return event["step"], event["outcome"], event["code"], event["attempt"], text


def _rendered(line: _Line, begin: float) -> Iterator[str]:
    names = ", ".join(line.machines[:_MOST_NAMES])
    if len(line.machines) > _MOST_NAMES:
        names = f"{len(line.machines)} machines ({line.machines[0]} … {line.machines[-1]})"
    event, outcome = line.event, "FAILED" if line.outcome == "failed" else line.outcome
    if line.outcome == "failed" and event["kind"] == "status":  # the event of the step has the text
        yield f"  +{duration(line.at - begin):>10}  FAILED {line.step}: {event['code']}"
        return
    title = step_title(event)
    if outcome == "waiting":
        title = title.removeprefix("wait ")  # not "waiting wait for server"
    text = " ".join(part for part in (outcome, title, names) if part)
    if event["attempt"]:
        text += f" (attempt {event['attempt']})"
    until = seconds(event.get("until"))
    if line.outcome == "started" and until is not None:
        text += f" (for at most {duration(until - line.at)})"
    texts = [t for t in event["text"].splitlines() if t.strip()][:12]
    code = (
        f"{event['code']}: "
        if event["code"] and not event["text"].startswith(event["code"])
        else ""
    )
    head = f": {code}{texts[0]}" if texts else ""
    yield f"  +{duration(line.at - begin):>10}  {text}{head}"
    for more in texts[1:]:
        yield f"  {'':>11}    {more}"


def _machines(cluster: Json, events: Sequence[Json]) -> Iterator[str]:
    """A line for each machine: its server, address and volumes, and its last event."""
    last = {e["machine"]: e for e in events if e["machine"] and e["kind"] != "status"}
    instances = [i for g in cluster["node_groups"] for i in g["instances"]]
    if not instances:
        return
    yield ""
    yield "machines" if cluster["status"] != "Error" else "machines and their remaining objects"
    for instance in instances[:_MOST_MACHINES]:
        parts = []
        if "server_id" in instance:
            parts.append(f"server {instance['server_id']} {instance.get('status', '')}".strip())
        if instance.get("management_ip"):
            parts.append(instance["management_ip"])
        if instance["volumes"]:
            parts.append(f"volumes {' '.join(instance['volumes'])}")
        known = last.get(instance["instance_name"])
        if known is not None:
            parts.append(f"last event: {step_title(known)} {known['outcome']}")
        yield f"  {instance['instance_name']}: {', '.join(parts) or 'no objects in the cloud'}"
    if len(instances) > _MOST_MACHINES:
        yield f"  … and {len(instances) - _MOST_MACHINES} more"


def of_lost_cluster(cluster_id: str, executions: Sequence[Json]) -> Iterator[str]:
    """The remains of a deleted cluster. executions: those that its deletion ended."""
    yield f"cluster {cluster_id} was deleted, and its events with it"
    yield ""
    yield "job executions that ended with the cluster"
    for execution in executions[-_MOST_MACHINES:]:
        ended = f", ended {execution['end_time']}" if execution["end_time"] else ""
        yield f"  {execution['id']} of job {execution['job_id']}: {status_of(execution)}{ended}"
    if len(executions) > _MOST_MACHINES:
        yield f"  and {len(executions) - _MOST_MACHINES} earlier ones"
    yield "  `svcd why EXECUTION_ID` shows the history of an execution"


# ---- texts --------------------------------------------------------------------------------------


def indented(text: str, indent: str) -> Iterator[str]:
    for line in text.splitlines()[:40]:
        if line.strip():
            yield indent + line.rstrip()


def _first(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")
