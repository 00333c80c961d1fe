"""Writes log lines in two forms: `human` for people, `json` for programs.

Request, tenant, cluster and execution ids come from context variables, so that a line from a deep
call names its request or cluster. This module does not decide what is logged. It removes the
secrets that are alive in the process from the texts of unexpected exceptions.

Note: a log that cannot be written. Its disk may be full, or its reader gone. The daemon continues,
counts the lost lines, and logs their number as soon as a line can be written again.

Note: fields. An event may have `fields`, a function that returns names and values. The JSON line
has them beside its message; the human line has no use for them, and does not call the function.
svcd writes no other field of an event, because some hold secrets.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO

from twisted.logger import (
    FilteringLogObserver,
    ILogObserver,
    LogEvent,
    LogLevel,
    LogLevelFilterPredicate,
    formatEvent,
)

from svcd.model import secret
from svcd.model.controls import visible
from svcd.model.redaction import hidden, shown_url

request_id: ContextVar[str] = ContextVar("request_id", default="")
tenant: ContextVar[str] = ContextVar("tenant", default="")
cluster: ContextVar[str] = ContextVar("cluster", default="")
execution: ContextVar[str] = ContextVar("execution", default="")

_CONTEXT = {
    "request": request_id,
    "tenant": tenant,
    "cluster": cluster,
    "execution": execution,
}
_TRACEBACK_LINES = 60
"""Most lines of a logged traceback; the last ones are kept."""
_CHATTY = ("twisted", "log_legacy")
"""Namespaces of Twisted. Their info lines (a port was opened) appear at level debug only."""


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Add the given ids (request, tenant, cluster, execution) to the lines logged in the block."""
    tokens = [(_CONTEXT[name], _CONTEXT[name].set(value)) for name, value in ids.items()]
    thrown_away = False
    try:
        yield
    except GeneratorExit:  # garbage collection closes the coroutine, in an unrelated context
        thrown_away = True
        raise
    finally:
        if not thrown_away:
            for variable, token in reversed(tokens):
                variable.reset(token)


def observer(stream: IO[str], form: str, level: str) -> ILogObserver:
    """An observer that writes one line for each event, and a failure's traceback, to `stream`."""
    write = _json_line if form == "json" else _human_line
    lost = 0

    def emit(event: LogEvent) -> None:
        nonlocal lost
        line = write(event)
        if lost:
            gap = {**event, "log_level": LogLevel.warn, "log_namespace": __name__}
            gap |= {"log_format": "{lost} log lines could not be written", "lost": lost}
            for name in ("log_failure", "fields"):
                gap.pop(name, None)
            line = "\n" + write(gap) + line  # part of the last lost line may be in the file
        try:
            stream.write(line)
            stream.flush()
        except (OSError, ValueError):  # ValueError: the stream was closed
            lost += 1
        else:
            lost = 0

    wanted = LogLevelFilterPredicate(LogLevel.levelWithName(level))
    if level == "info":
        for namespace in _CHATTY:
            wanted.setLogLevelForNamespace(namespace, LogLevel.warn)
    filtered: ILogObserver = FilteringLogObserver(
        emit,  # type: ignore[arg-type]
        [wanted],
    )
    return filtered


def _ids(event: LogEvent) -> dict[str, str]:
    found = {name: variable.get() for name, variable in _CONTEXT.items()}
    return {name: _one_line(value) for name, value in found.items() if value}


def _time(event: LogEvent) -> str:
    moment = datetime.datetime.fromtimestamp(event.get("log_time", 0.0), datetime.UTC)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _text(event: LogEvent) -> str:
    """The event's message in one line.

    Python's formatting is ten times faster than Twisted's, which also handles `{name()}`.
    """
    try:
        text: str = event["log_format"].format_map(event)
    except (LookupError, AttributeError, TypeError, ValueError, RuntimeError):
        text = formatEvent(event)
    failure = event.get("log_failure")
    if failure is not None:  # the message may quote the exception's text
        text = shown_url(hidden(text, secret.living(), whole=True))
    return _one_line(text)


def _one_line(text: str) -> str:
    return visible(text.replace("\n", "\\n").replace("\r", "\\r"))


def _traceback(event: LogEvent) -> str:
    failure = event.get("log_failure")
    if failure is None:
        return ""
    lines = failure.getTraceback().rstrip().splitlines()
    text = "\n".join(lines[-_TRACEBACK_LINES:])
    return visible(shown_url(hidden(text, secret.living(), whole=True)))


def _human_line(event: LogEvent) -> str:
    level = event.get("log_level", LogLevel.info).name
    ids = "".join(f" {name}={value}" for name, value in _ids(event).items())
    line = f"{_time(event)} {level:8} {event.get('log_namespace', '-')}: {_text(event)}{ids}\n"
    traceback = _traceback(event)
    if traceback:
        line += "".join(f"    {row}\n" for row in traceback.splitlines())
    return line


def _fields(event: LogEvent) -> dict[str, object]:
    """The names and values of the event's `fields`."""
    read: Callable[[], Mapping[str, object]] | object = event.get("fields")
    given = read() if callable(read) else {}  # another library may use the name for a value
    return {name: _one_line(v) if isinstance(v, str) else v for name, v in given.items()}


def _json_line(event: LogEvent) -> str:
    record: dict[str, object] = {
        "time": _time(event),
        "level": event.get("log_level", LogLevel.info).name,
        "logger": event.get("log_namespace", "-"),
        "message": _text(event),
        **_ids(event),
        **_fields(event),
    }
    traceback = _traceback(event)
    if traceback:
        record["traceback"] = traceback
    return json.dumps(record, ensure_ascii=False) + "\n"
