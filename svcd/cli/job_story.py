"""The story of a job execution as lines for people: its history, changes, and result. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from svcd.cli.cluster_story import explained, indented, limit, progress_lines
from svcd.cli.times import duration, moment, seconds
from svcd.cli.words import in_commands, status_word

Json = Mapping[str, Any]


@frozen(kw_only=True)
class Look:
    """An execution, and its story, which the API told after it."""

    execution: Json
    story: Json


def is_over(look: Look) -> bool:
    """Whether the execution has ended, and its record tells so."""
    status = look.execution["info"]["status"]
    return look.story["work"] is None and look.story["status"] == status


def _status(story: Json) -> str:
    return status_word(story["status"], story["outcome"])


# ---- its history (svcd why) ---------------------------------------------------------------------


def of_execution(
    look: Look,
    job: Json | None,
    cluster: Json | None,
    cluster_story: Json | None,
    now: float | None,
    base: str,
) -> Iterator[str]:
    """The history of an execution.

    job, cluster: None after their deletion. cluster_story: if the execution waits for its cluster.
    base: URL of the tenant.
    """
    execution, story = look.execution, look.story
    created = seconds(execution["created_at"])
    yield f"job execution {execution['id']}: {_status(story)}"
    if job is not None:
        yield f"  of job {job['name']} ({job['type']}, {job['id']})"
    yield f"  on {_place(execution, cluster)}"
    yield f"  requested at {moment(created)}"
    for word, key in (("started by the engine", "start_time"), ("ended", "end_time")):
        at = seconds(execution[key])
        if at is not None:
            after = "" if created is None else f", {duration(at - created)} later"
            yield f"  {word} at {moment(at)}{after}"
    if story["work"] is not None:
        yield from _working(story["work"], cluster_story, now)
    if story["failure"] is not None:
        yield ""
        yield from failure_of(story)
    elif story["outcome"] == "cancelled":
        yield "  cancelled by a request to svcd"
    yield from _engine(execution, story)
    yield ""
    yield "logs"
    yield f"  {base}/job-executions/{execution['id']}/log"
    for step in story["steps"]:
        if step["page"]:
            yield f"  {step['name']}: {step['page']}"


def _place(execution: Json, cluster: Json | None) -> str:
    if cluster is not None:
        return f"cluster {cluster['name']} ({cluster['id']}, {cluster['status']})"
    if execution["cluster_id"]:
        return f"cluster {execution['cluster_id']}, which no longer exists"
    return "a cluster that was deleted"


def _working(work: Json, cluster_story: Json | None, now: float | None) -> Iterator[str]:
    """The reason why an execution has not ended yet."""
    since = seconds(work["since"])
    spent = None if now is None or since is None else duration(now - since)
    wait = work["wait"]
    if wait is not None:
        during = "" if spent is None else f", for {spent}"
        until = limit(seconds(work["until"]), now)
        yield f"  waits in step {wait['step']} since {moment(since)}{during}{until}"
        yield f"    {wait['code']}: {wait['text']}"
        yield from _explained(wait)
    elif work["kind"] == "cluster":
        yield f"  waits for the cluster to become Active; it is {work['cluster_status']}"
        if cluster_story is not None:
            yield from (f"  {line}" for line in progress_lines(cluster_story, now))
    elif work["kind"] == "run" and spent is not None:
        yield f"  running for {spent}"
    elif work["kind"] == "submit":
        yield "  svcd is submitting it to the workflow engine"


def failure_of(story: Json) -> Iterator[str]:
    """The failure of an execution with its meaning and advice; no line without one."""
    failure = story["failure"]
    if failure is None:
        return
    yield f"failure: {failure['code']} in step {failure['step']}"
    yield from indented(in_commands(failure["text"]), "  ")
    yield from _explained(failure)


def _explained(fault: Json) -> Iterator[str]:
    if fault["meaning"]:
        yield from explained(fault["code"], fault["meaning"], fault["advice"])


def _engine(execution: Json, story: Json) -> Iterator[str]:
    """The engine's status of the job, and its actions."""
    if not execution["workflow_job_id"]:
        return
    yield ""
    yield f"workflow engine: {execution['workflow_job_id']} is {story['status']}"
    for step in story["steps"]:
        line = f"  action {step['name']} ({step['type']}): {step['status']}"
        if step["external_id"]:
            line += f", {step['external_id']} {step['external_status']}".rstrip()
        yield line
        for word, key in (("started", "began"), ("ended", "ended")):
            if step[key]:
                yield f"    {word} at {moment(seconds(step[key]))}"
        error = " ".join(step[key] for key in ("error_code", "error_text") if step[key])
        if error:
            yield from indented(error, "    ")


# ---- while a command follows it -----------------------------------------------------------------


def changes(before: Look | None, after: Look) -> Iterator[str]:
    """Lines for what has changed between two looks at an execution."""
    old: Json = {"status": None, "work": None, "steps": ()} if before is None else before.story
    new = after.story
    wait, was = _wait(new), _wait(old)
    if wait is not None and (was is None or _with_advice(wait) != _with_advice(was)):
        until = f" (until {new['work']['until']} at most)" if new["work"]["until"] else ""
        yield f"waits in step {wait['step']}: {_with_advice(wait)}{until}"
    elif wait is None and was is not None and new["work"] is not None:
        yield "goes on"
    if new["status"] != old["status"] and new["work"] is not None:
        engine = after.execution["workflow_job_id"]
        yield f"job is {new['status']}" + (f", workflow {engine}" if engine else "")
    known = {(step["name"], step["external_id"]) for step in old["steps"]}
    for step in new["steps"]:
        if step["external_id"] and (step["name"], step["external_id"]) not in known:
            yield f"step {step['name']} runs as {step['external_id']}"


def _wait(story: Json) -> Json | None:
    """The missing thing for which the execution waits."""
    work: Json | None = story["work"]
    return None if work is None else work["wait"]


def _with_advice(fault: Json) -> str:
    return "; ".join(text for text in (fault["text"], fault["advice"]) if text)


def state(look: Look, now: float | None) -> str:
    """The present state in a few words, for a line that is written again and again."""
    work = look.story["work"]
    began = seconds(look.execution["created_at"])
    spent = "" if now is None or began is None else f", {duration(now - began)}"
    share = "" if work is None or work["progress"] is None else f", {work['progress']:.0%}"
    wait = _wait(look.story)
    reason = "" if wait is None else f"; step {wait['step']} waits: {_with_advice(wait)}"
    return f"job is {look.story['status']}{share}{spent}{reason}"


def outcome(look: Look) -> tuple[int, Sequence[str]]:
    """The exit code for an execution that has ended, and the lines that explain it."""
    execution, story = look.execution, look.story
    began, ended = seconds(execution["created_at"]), seconds(execution["end_time"])
    after = "" if began is None or ended is None else f" after {duration(ended - began)}"
    if story["outcome"] == "succeeded":
        return 0, [f"job SUCCEEDED{after}"]
    if story["outcome"] == "cancelled":
        return 1, [f"job cancelled by a request to svcd{after}"]
    logs = f"svcd job logs {execution['id']}"
    lines = [f"job {_status(story)}{after}"]
    lines += [
        line.replace("the log of this job execution", f"its log: {logs}")
        for line in failure_of(story)
    ]
    if story["failure"] is not None and story["failure"]["code"] == "OUTPUT_EXISTS":
        lines.append(f"  either remove it, or name another place: {_elsewhere(execution)}")
    exit_code = execution.get("return_code")
    if exit_code is not None:
        lines.append(f"its program ended with exit code {exit_code}")
    return 1, lines


def _elsewhere(execution: Json) -> str:
    return f"svcd job rerun {execution['id']} --output URL"
