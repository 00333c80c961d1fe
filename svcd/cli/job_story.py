"""Follows a job execution: the new part of its log, and what has changed. Pure.

A daemon that keeps one text for each execution answers offsets of it. From another daemon the
command reads the whole log again and again. Its parts (`==> title <==`) grow each on its own, so
the command remembers how much of each part it has shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, Final

from attrs import evolve, field, frozen

from svcd.cli.job_status import CANCELLED, status_of
from svcd.cli.report import failure_of
from svcd.cli.times import duration, seconds
from svcd.model.log_title import TITLE

Json = Mapping[str, Any]

OVER: Final = frozenset({"SUCCEEDED", "KILLED", "FAILED"})
"""The statuses of an execution that has ended."""
_HEAD: Final = "job execution "
"""The beginning of the title of the first part, which holds the status and not the log."""
_ANCHOR: Final = 4096
"""Characters at the end of a shown part that are searched in its next version."""


# ---- the log ------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Part:
    """An answer of the log. body: its bytes. The rest is None without the headers of offsets.

    offset: the offset after the last byte. complete: nothing will follow.
    """

    body: bytes = field(repr=False)
    offset: int | None = None
    complete: bool | None = None


@frozen(kw_only=True)
class Shown:
    """What was shown. offset: bytes of the kept text, also a part of a character in `rest`.

    ends: the end of each part that was shown, by its title, of a daemon without offsets. title: of
    the part that was shown last.
    """

    offset: int = 0
    rest: bytes = field(default=b"", repr=False)
    ends: Mapping[str, str] = field(factory=dict, repr=False)
    title: str = ""
    complete: bool = False


def part_of(body: bytes, headers: Mapping[str, str]) -> Part:
    """An answer of the log. headers: names in lower case."""
    offset = _number(headers.get("x-log-offset"))
    if offset is None:
        return Part(body=body)
    complete = headers.get("x-log-complete", "").lower() == "true"
    return Part(body=body, offset=offset, complete=complete)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None


def fresh(shown: Shown, part: Part) -> tuple[str, Shown]:
    """The text of `part` that was not shown yet, and what is shown after it."""
    if part.offset is None:
        return _by_titles(shown, part.body.decode("utf-8", "replace"))
    data = shown.rest + part.body
    whole = data if part.complete else data[: len(data) - _cut(data)]
    after = evolve(
        shown,
        offset=part.offset,
        rest=data[len(whole) :],
        complete=bool(part.complete),
    )
    return whole.decode("utf-8", "replace"), after


def _cut(data: bytes) -> int:
    """The number of bytes at the end of `data` that begin a character and do not end it."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needs = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if needs > back else 0
    return 0


def _by_titles(shown: Shown, text: str) -> tuple[str, Shown]:
    made: list[str] = []
    ends = dict(shown.ends)
    title = shown.title
    for name, content in _parts(text):
        if name.startswith(_HEAD):
            continue
        new = _after(ends.get(name, ""), content)
        if not new:
            continue
        if name != title:
            made.append(f"==> {name} <==\n")
            title = name
        made.append(new + "\n")
        ends[name] = content[-_ANCHOR:]
    return "".join(made), evolve(shown, ends=ends, title=title)


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """The titles of a log's parts and their contents, without empty lines around them."""
    title, lines = "", list[str]()
    for line in StringIO(text, newline="\n"):
        found = TITLE.match(line)
        if found is None:
            lines.append(line)
            continue
        if title:
            yield title, "".join(lines).strip("\n")
        title, lines = found[1], []
    if title:
        yield title, "".join(lines).strip("\n")


def _after(end: str, content: str) -> str:
    """The part of `content` after the text that ended with `end`."""
    if not end:
        return content
    at = content.rfind(end)
    if at >= 0:
        return content[at + len(end) :].lstrip("\n")
    # the old text has moved out at the front: look for the longest end that is still there
    lines = end.split("\n")
    for first in range(1, len(lines)):
        piece = "\n".join(lines[first:])
        if content.startswith(piece):
            return content[len(piece) :].lstrip("\n")
    return content


# ---- the execution ------------------------------------------------------------------------------


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
