"""What has changed of a job execution, and its result, as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from svcd.cli.report import failure_of
from svcd.cli.times import duration, seconds
from svcd.cli.words import CANCELLED, status_of

Json = Mapping[str, Any]

OVER: Final = frozenset({"SUCCEEDED", "KILLED", "FAILED"})
"""The statuses of an execution that has ended."""


def is_over(execution: Json) -> bool:
    """Whether the execution has ended."""
    return execution["info"]["status"] in OVER


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
