"""The story of a cluster or a job execution as lines for a person, made of the API's answers. Pure.

Says what was asked for, what has happened and how long after that, machine by machine, what is
waited for and until when, what failed, what to do about it, and what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from svcd.cli.times import duration, moment, seconds
from svcd.model.failures import KNOWN, Code

Json = Mapping[str, Any]

_RESTING: Final = frozenset({"Active", "Error"})
_OVER: Final = frozenset({"SUCCEEDED", "KILLED", "FAILED"})
_MOST_LINES: Final = 120
_MOST_MACHINES: Final = 60
_MOST_NAMES: Final = 4
_HEALTH: Final = "health"
"""The step of events about an Active cluster that nobody has asked anything of."""
_MARKS: Final = {"failed": "FAILED", "retry": "again", "waiting": "waits", "started": "begins"}


@frozen(kw_only=True)
class _Line:
    """One or several events that say the same. machines: their names, in order."""

    at: float
    step: str
    outcome: str
    machines: tuple[str, ...]
    event: Json


# ---- clusters -----------------------------------------------------------------------------------


def of_cluster(
    cluster: Json, events: Sequence[Json], now: float | None, whole: bool = False
) -> Iterator[str]:
    """now: the daemon's time in epoch seconds. whole: all requests, all lines."""
    status = cluster["status"]
    yield f"cluster {cluster['name']} ({cluster['id']}): {status}"
    yield f"  {cluster['plugin_name']} {cluster['engine_version']}, {_sizes(cluster)}"
    if status not in _RESTING:
        yield from _under_way(cluster, events, now)
    yield from _failure(cluster, events)
    requests = _requests(events)
    shown = requests if whole else requests[-1:]
    if len(requests) > len(shown):
        yield ""
        yield "requests before (--all tells them too)"
        for begin, mine in requests[: -len(shown)]:
            yield f"  {moment(begin)}  {_asked(mine)}: {_ending(mine)}"
    for begin, mine in shown:
        yield ""
        yield f"{_asked(mine)}, {moment(begin)}"
        yield from _told(mine, begin, None if whole else _MOST_LINES)
    yield from _machines(cluster, events)


def _sizes(cluster: Json) -> str:
    groups = cluster["node_groups"]
    return (
        ", ".join(f"{g['name']} {len(g['instances'])} of {g['count']}" for g in groups) or "empty"
    )


def _requests(events: Sequence[Json]) -> list[tuple[float, Sequence[Json]]]:
    """Events by request, with the moment of each request."""
    found: dict[int, list[Json]] = {}
    for event in events:
        found.setdefault(event["generation"], []).append(event)
    return [(seconds(mine[0]["at"]) or 0.0, mine) for mine in found.values()]


def _asked(events: Sequence[Json]) -> str:
    first = events[0]
    if first["step"] == "request":
        return f"asked for: {first['text']}"
    return f"request {first['generation']}"  # its beginning is not kept any more


def _ending(events: Sequence[Json]) -> str:
    for event in reversed(events):
        if event["step"] == _HEALTH:
            continue  # it was found later, and is nobody's request
        if event["outcome"] == "failed":
            return f"failed with {event['code'] or 'a fault'}"
        if event["step"] == "Active":
            return "done"
    return "overtaken by the next"


def _under_way(cluster: Json, events: Sequence[Json], now: float | None) -> Iterator[str]:
    """What is being done or waited for, since when and until when."""
    status = cluster["status"]
    since = next((e for e in reversed(events) if _begins(e, status)), None)
    if since is None:
        return
    began, until = seconds(since["at"]), seconds(since.get("until"))
    spent = duration(None if now is None or began is None else now - began)
    limit = ""
    if until is not None:
        left = "" if now is None else f", in {duration(until - now)}"
        limit = f"; is given up at {moment(until)}{left}"
    yield f"  {status} since {moment(began)}, for {spent}{limit}"
    yield from _unready(cluster)
    for each in _open(events[events.index(since) :]):
        where = f" on {each['machine']}" if each["machine"] else ""
        times = f" ({each['attempt']} times so far)" if each["attempt"] else ""
        code = f"{each['code']}: " if each["code"] else ""
        told = f": {code}{_first(each['text'])}" if each["text"] else ""
        at = seconds(each["at"])
        ago = "" if now is None or at is None else f", {duration(now - at)} ago"
        yield f"    {each['step']}{where}{told}{times}{ago}"


def _unready(cluster: Json) -> Iterator[str]:
    """Machines without a server that runs, as far as they hold up the present phase."""
    if cluster["status"] not in ("Waiting", "Spawning"):
        return
    instances = [i for g in cluster["node_groups"] for i in g["instances"]]
    found = [i for i in instances if i.get("status") != "ACTIVE"]
    for each in found[:10]:
        yield f"    server {each['instance_name']} is {each.get('status', 'not there yet')}"
    if len(found) > 10:
        yield f"    and {len(found) - 10} servers more"


def _begins(event: Json, status: str) -> bool:
    if status in ("Waiting", "Validating", "Deleting"):
        return bool(event["step"] == "request")
    return bool(event["step"] == status and event["outcome"] == "started")


def _open(events: Sequence[Json]) -> Sequence[Json]:
    """What was begun, or did not succeed, and has not been told as done since; at most ten."""
    found: dict[tuple[str, str], Json] = {}
    for event in events[1:]:
        key = (event["step"], event["machine"])
        if event["outcome"] in ("started", "retry", "waiting"):
            found[key] = event
        else:
            found.pop(key, None)
    return list(found.values())[-10:]


def _failure(cluster: Json, events: Sequence[Json]) -> Iterator[str]:
    """The reason that the cluster shows, and what to do."""
    if not cluster["status_description"]:
        return
    told = cluster["status_description"]
    failed = [e for e in events if e["outcome"] == "failed" and e["code"] and e["code"] in told]
    yield ""
    if failed and failed[-1]["step"] == _HEALTH:
        yield "what is wrong"
    else:
        yield "what failed" if cluster["status"] == "Error" else "what did not succeed"
    yield from _indented(_without_advice(told, failed[-1]["code"]) if failed else told, "  ")
    if failed:
        last = failed[-1]
        where = next((e["machine"] for e in reversed(failed) if e["machine"]), "")
        if where:
            yield f"  machine: {where}"
        yield from explained(last["code"])


def _without_advice(text: str, code: str) -> str:
    """What the API tells, but for the advice at its end: `explained` says it in its own line."""
    if code not in Code.__members__:
        return text
    advice = KNOWN[Code(code)].advice
    return text.removesuffix(f" ({advice})").removesuffix(f"; {advice}")


def explained(code: str) -> Iterator[str]:
    """Meaning and advice of a code of the closed list."""
    if code in Code.__members__:
        known = KNOWN[Code(code)]
        yield f"  {code} means: {known.meaning}"
        yield f"  what to do: {known.advice}"


def _told(events: Sequence[Json], begin: float, most: int | None) -> Iterator[str]:
    lines = list(_lines(events))
    if most is not None and len(lines) > most:
        head = most // 3
        cut = len(lines) - most
        kept: list[_Line | None] = [*lines[:head], None, *lines[head + cut :]]
    else:
        kept = list(lines)
    for line in kept:
        if line is None:
            yield f"    … {len(lines) - (most or 0)} lines (--all tells them too)"
            continue
        yield from _rendered(line, begin)


def _lines(events: Sequence[Json]) -> Iterator[_Line]:
    """What is the same on several machines, one after the other, is one line."""
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
    """What an event says, whichever machine it is of."""
    text = event["text"].replace(event["machine"], "") if event["machine"] else event["text"]
    return event["step"], event["outcome"], event["code"], event["attempt"], text


def _is_phase(event: Json) -> bool:
    """Whether it is about a whole status and not about a step."""
    return bool(event["step"][:1].isupper())


def _rendered(line: _Line, begin: float) -> Iterator[str]:
    names = ", ".join(line.machines[:_MOST_NAMES])
    if len(line.machines) > _MOST_NAMES:
        names = f"{len(line.machines)} machines ({line.machines[0]} … {line.machines[-1]})"
    event, mark = line.event, _MARKS.get(line.outcome, line.outcome)
    if line.outcome == "failed" and _is_phase(event):  # its step has told the rest
        yield f"  +{duration(line.at - begin):>10}  FAILED {line.step}: {event['code']}"
        return
    text = " ".join(part for part in (mark, line.step, names) if part)
    if event["attempt"]:
        text += f" (attempt {event['attempt']})"
    until = seconds(event.get("until"))
    if line.outcome == "started" and until is not None:
        text += f" (for at most {duration(until - line.at)})"
    said = event["text"].splitlines()
    told = [s for s in said if s.strip()][:12]
    code = (
        f"{event['code']}: "
        if event["code"] and not event["text"].startswith(event["code"])
        else ""
    )
    head = f": {code}{told[0]}" if told else ""
    yield f"  +{duration(line.at - begin):>10}  {text}{head}"
    for more in told[1:]:
        yield f"  {'':>11}    {more}"


def _machines(cluster: Json, events: Sequence[Json]) -> Iterator[str]:
    """Each machine: what there is of it, and the last that was told of it."""
    last = {e["machine"]: e for e in events if e["machine"] and not _is_phase(e)}
    instances = [i for g in cluster["node_groups"] for i in g["instances"]]
    if not instances:
        return
    yield ""
    yield "machines" if cluster["status"] != "Error" else "machines, and what is left of them"
    for each in instances[:_MOST_MACHINES]:
        parts = []
        if "server_id" in each:
            parts.append(f"server {each['server_id']} {each.get('status', '')}".strip())
        if each.get("management_ip"):
            parts.append(each["management_ip"])
        if each["volumes"]:
            parts.append(f"volumes {' '.join(each['volumes'])}")
        known = last.get(each["instance_name"])
        if known is not None:
            parts.append(f"last: {known['step']} {known['outcome']}")
        yield f"  {each['instance_name']}: {', '.join(parts) or 'nothing'}"
    if len(instances) > _MOST_MACHINES:
        yield f"  … and {len(instances) - _MOST_MACHINES} more"


# ---- job executions -----------------------------------------------------------------------------


def of_execution(
    execution: Json,
    job: Json | None,
    cluster: Json | None,
    events: Sequence[Json],
    now: float | None,
    base: str,
) -> Iterator[str]:
    """job, cluster: None when they are gone. events: the cluster's. base: URL of the tenant."""
    info = execution["info"]
    status = info["status"]
    created = seconds(execution["created_at"])
    yield f"job execution {execution['id']}: {status}"
    if job is not None:
        yield f"  of job {job['name']} ({job['type']}, {job['id']})"
    yield f"  on {_place(execution, cluster)}"
    yield f"  asked for at {moment(created)}"
    for word, key in (("begun at the engine", "start_time"), ("ended", "end_time")):
        at = seconds(execution[key])
        if at is not None:
            after = "" if created is None else f", {duration(at - created)} later"
            yield f"  {word} at {moment(at)}{after}"
    if status not in _OVER:
        yield from _awaited(execution, cluster, events, now)
    yield from _execution_failure(info)
    yield from _engine(execution, info)
    yield ""
    yield "logs"
    yield f"  {base}/job-executions/{execution['id']}/log"
    for action in _actions(info):
        url = action.get("consoleUrl")
        if url and url != "-":
            yield f"  {action.get('name')}: {url}"


def _place(execution: Json, cluster: Json | None) -> str:
    if cluster is not None:
        return f"cluster {cluster['name']} ({cluster['id']}, {cluster['status']})"
    if execution["cluster_id"]:
        return f"cluster {execution['cluster_id']}, which is gone"
    return "a cluster that was deleted"


def _awaited(
    execution: Json, cluster: Json | None, events: Sequence[Json], now: float | None
) -> Iterator[str]:
    """What an execution that has not ended waits for."""
    info = execution["info"]
    waiting = info.get("waiting")
    if waiting:
        since, until = seconds(waiting["since"]), seconds(waiting["until"])
        spent = "" if now is None or since is None else f", for {duration(now - since)}"
        limit = ""
        if until is not None:
            left = "" if now is None else f", in {duration(until - now)}"
            limit = f"; is given up at {moment(until)}{left}"
        yield f"  waits in step {waiting['step']} since {moment(since)}{spent}{limit}"
        text = _without_advice(waiting["text"], waiting["code"])
        yield f"    {waiting['code']}: {text}"
        yield from explained(waiting["code"])
    elif info["status"] == "Pending" and cluster is not None and cluster["status"] != "Active":
        yield f"  waits for the cluster to become Active; it is {cluster['status']}"
        yield from (f"  {line}" for line in _under_way(cluster, events, now))
    elif now is not None and seconds(execution["start_time"]) is not None:
        yield f"  it runs for {duration(now - (seconds(execution['start_time']) or now))}"
    elif info["status"] == "Pending":
        yield "  is being handed to the engine"


def _execution_failure(info: Json) -> Iterator[str]:
    failure = info.get("failure")
    if not failure:
        return
    yield ""
    yield f"what failed: {failure['code']} in step {failure['step']}"
    yield from _indented(_without_advice(failure["text"], failure["code"]), "  ")
    yield from explained(failure["code"])


def _engine(execution: Json, info: Json) -> Iterator[str]:
    """The engine's word, and its actions."""
    if not execution["workflow_job_id"]:
        return
    yield ""
    yield f"workflow engine: {execution['workflow_job_id']} is {info['status']}"
    for action in _actions(info):
        if str(action.get("type", "")).startswith(":"):
            continue
        told = f"  action {action.get('name')} ({action.get('type')}): {action.get('status')}"
        external = action.get("externalId")
        if external and external != "-":
            told += f", {external} {action.get('externalStatus') or ''}".rstrip()
        yield told
        for key in ("startTime", "endTime"):
            if action.get(key):
                yield f"    {'begun' if key == 'startTime' else 'ended'} {action[key]}"
        error = " ".join(str(action[k]) for k in ("errorCode", "errorMessage") if action.get(k))
        if error:
            yield from _indented(error, "    ")


def _actions(info: Json) -> Sequence[Json]:
    found = info.get("actions")
    return [a for a in found if isinstance(a, dict)] if isinstance(found, list) else []


def of_lost_cluster(cluster_id: str, executions: Sequence[Json]) -> Iterator[str]:
    """executions: those that ended with it; nothing else of it is kept."""
    yield f"cluster {cluster_id}: it was deleted, and its own story went with it"
    yield ""
    yield "job executions that ended because of that"
    for each in executions[-_MOST_MACHINES:]:
        ended = f", ended {each['end_time']}" if each["end_time"] else ""
        yield f"  {each['id']} of job {each['job_id']}: {each['info']['status']}{ended}"
    if len(executions) > _MOST_MACHINES:
        yield f"  and {len(executions) - _MOST_MACHINES} before them"
    yield "  `svcd why` with the id of one tells more"


# ---- words --------------------------------------------------------------------------------------


def _indented(text: str, indent: str) -> Iterator[str]:
    for line in text.splitlines()[:40]:
        if line.strip():
            yield indent + line.rstrip()


def _first(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")
