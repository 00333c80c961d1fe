"""The story of a job execution as lines for people: its history, changes, and result. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from svcd.cli.cluster_story import explained, indented, limit, progress_lines
from svcd.cli.times import duration, moment, seconds
from svcd.cli.words import CANCELLED, in_commands, status_of
from svcd.model.failures import Code

Json = Mapping[str, Any]

OVER: Final = frozenset({"SUCCEEDED", "KILLED", "FAILED"})
"""The statuses of an execution that has ended."""


def is_over(execution: Json) -> bool:
    """Whether the execution has ended."""
    return execution["info"]["status"] in OVER


# ---- its history (svcd why) ---------------------------------------------------------------------


def of_execution(
    execution: Json,
    job: Json | None,
    cluster: Json | None,
    story: Json | None,
    now: float | None,
    base: str,
) -> Iterator[str]:
    """The history of an execution.

    job, cluster: None after their deletion. story: the cluster's, if the execution waits for it.
    base: URL of the tenant.
    """
    info = execution["info"]
    status = info["status"]
    created = seconds(execution["created_at"])
    yield f"job execution {execution['id']}: {status_of(execution)}"
    if job is not None:
        yield f"  of job {job['name']} ({job['type']}, {job['id']})"
    yield f"  on {_place(execution, cluster)}"
    yield f"  requested at {moment(created)}"
    for word, key in (("started by the engine", "start_time"), ("ended", "end_time")):
        at = seconds(execution[key])
        if at is not None:
            after = "" if created is None else f", {duration(at - created)} later"
            yield f"  {word} at {moment(at)}{after}"
    if status not in OVER:
        yield from _waiting(execution, cluster, story, now)
    if info.get("failure"):
        yield ""
        yield from failure_of(info)
    elif status == "KILLED":
        yield "  cancelled by a request to svcd"
    yield from _engine(execution, info)
    yield ""
    yield "logs"
    yield f"  {base}/job-executions/{execution['id']}/log"
    for action in _actions(info):
        url = action.get("consoleUrl")
        if url and url != "-":  # YARN's proxy takes applications alone
            url = url.replace("/proxy/job_", "/proxy/application_")
            yield f"  {action.get('name')}: {url}"


def _place(execution: Json, cluster: Json | None) -> str:
    if cluster is not None:
        return f"cluster {cluster['name']} ({cluster['id']}, {cluster['status']})"
    if execution["cluster_id"]:
        return f"cluster {execution['cluster_id']}, which no longer exists"
    return "a cluster that was deleted"


def _waiting(
    execution: Json, cluster: Json | None, story: Json | None, now: float | None
) -> Iterator[str]:
    """The reason why an execution has not ended yet."""
    info = execution["info"]
    waiting = info.get("waiting")
    if waiting:
        since, until = seconds(waiting["since"]), seconds(waiting["until"])
        spent = "" if now is None or since is None else f", for {duration(now - since)}"
        until_text = limit(until, now)
        yield f"  waits in step {waiting['step']} since {moment(since)}{spent}{until_text}"
        text, lines = _of_code(waiting)
        yield f"    {waiting['code']}: {text}"
        yield from lines
    elif info["status"] == "Pending" and cluster is not None and cluster["status"] != "Active":
        yield f"  waits for the cluster to become Active; it is {cluster['status']}"
        if story is not None:
            yield from (f"  {line}" for line in progress_lines(story, now))
    elif now is not None and seconds(execution["start_time"]) is not None:
        yield f"  running for {duration(now - (seconds(execution['start_time']) or now))}"
    elif info["status"] == "Pending":
        yield "  svcd is submitting it to the workflow engine"


def failure_of(info: Json) -> Iterator[str]:
    """The failure of an execution with its meaning and advice; no line without one."""
    failure = info.get("failure")
    if not failure:
        return
    yield f"failure: {failure['code']} in step {failure['step']}"
    text, lines = _of_code(failure)
    yield from indented(in_commands(text), "  ")
    yield from lines


def _of_code(failure: Json) -> tuple[str, Iterator[str]]:
    """The text of a failure or wait without the advice in it, and the lines that explain it."""
    code = failure["code"]
    if code not in Code.__members__:
        return failure["text"], iter(())
    known = Code(code)
    return known.without_advice(failure["text"]), explained(code, known.meaning, known.advice)


def _engine(execution: Json, info: Json) -> Iterator[str]:
    """The engine's status of the job, and its actions."""
    if not execution["workflow_job_id"]:
        return
    yield ""
    yield f"workflow engine: {execution['workflow_job_id']} is {info['status']}"
    for action in _actions(info):
        line = f"  action {action.get('name')} ({action.get('type')}): {action.get('status')}"
        external = action.get("externalId")
        if external and external != "-":
            line += f", {external} {action.get('externalStatus') or ''}".rstrip()
        yield line
        for key in ("startTime", "endTime"):
            if action.get(key):
                word = "started" if key == "startTime" else "ended"
                yield f"    {word} at {_engine_time(action[key])}"
        error = " ".join(str(action[k]) for k in ("errorCode", "errorMessage") if action.get(k))
        if error:
            yield from indented(error, "    ")


def _engine_time(text: object) -> str:
    """A time of Oozie, such as `Wed, 09 Oct 2013 12:37:15 GMT`, as `moment` writes times."""
    from email.utils import parsedate_to_datetime

    try:
        return moment(parsedate_to_datetime(str(text)).timestamp())
    except ValueError:
        return str(text)


# ---- while a command follows it -----------------------------------------------------------------


def changes(before: Json | None, after: Json) -> Iterator[str]:
    """Lines for what has changed between two answers of an execution."""
    old, new = ({} if before is None else before["info"]), after["info"]
    waiting = new.get("waiting")
    if waiting and waiting["text"] != (old.get("waiting") or {}).get("text"):
        until = f" (until {waiting['until']} at most)" if waiting.get("until") else ""
        yield f"waits in step {waiting['step']}: {waiting['text']}{until}"
    elif old.get("waiting") and not waiting and not is_over(after):
        yield "goes on"
    if new["status"] != old.get("status") and not is_over(after):
        engine = after.get("workflow_job_id")
        yield f"job is {new['status']}" + (f", workflow {engine}" if engine else "")
    known = {_key(each) for each in _actions(old)}
    for each in _actions(new):
        if _key(each) not in known and _key(each)[1]:
            yield f"step {each.get('name')} runs as {each['externalId']}"


def _actions(info: Json) -> Sequence[Json]:
    found = info.get("actions")
    usable = found if isinstance(found, list) else []
    return [
        each
        for each in usable
        if isinstance(each, dict) and not str(each.get("type") or "").startswith(":")
    ]


def _key(action: Json) -> tuple[str, str]:
    external = str(action.get("externalId") or "")
    return str(action.get("name")), "" if external == "-" else external


def state(execution: Json, now: float | None) -> str:
    """The present state in a few words, for a line that is written again and again."""
    began = seconds(execution["created_at"])
    spent = "" if now is None or began is None else f", {duration(now - began)}"
    progress = execution.get("progress")
    share = f", {progress:.0%}" if isinstance(progress, (int, float)) else ""
    waiting = execution["info"].get("waiting")
    reason = f"; step {waiting['step']} waits: {waiting['text']}" if waiting else ""
    return f"job is {execution['info']['status']}{share}{spent}{reason}"


def outcome(execution: Json) -> tuple[int, Sequence[str]]:
    """The exit code for an execution that has ended, and the lines that explain it."""
    info = execution["info"]
    began, ended = seconds(execution["created_at"]), seconds(execution["end_time"])
    after = "" if began is None or ended is None else f" after {duration(ended - began)}"
    word = status_of(execution)
    if word == "SUCCEEDED":
        return 0, [f"job SUCCEEDED{after}"]
    if word == CANCELLED:
        return 1, [f"job cancelled by a request to svcd{after}"]
    code = (info.get("failure") or {}).get("code")
    logs = f"svcd job logs {execution['id']}"
    lines = [f"job {word}{after}"]
    lines += [
        line.replace("the log of this job execution", f"its log: {logs}")
        for line in failure_of(info)
    ]
    if code == "OUTPUT_EXISTS":
        lines.append(f"  either remove it, or name another place: {_elsewhere(execution)}")
    exit_code = execution.get("return_code")
    if exit_code is not None:
        lines.append(f"its program ended with exit code {exit_code}")
    return 1, lines


def _elsewhere(execution: Json) -> str:
    return f"svcd job rerun {execution['id']} --output URL"
