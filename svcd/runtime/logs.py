"""Log lines: what they carry, and how they look (`human` for people, `json` for machines).

Request, tenant, cluster and execution ids come from context variables, so that a line deep in a
chain says whose work it was. Nothing here decides what is logged, but what an unexpected exception
says is searched for the secrets that are alive in the process.

Note: a log that takes nothing. Its disk may be full, its reader gone. The daemon goes on without a
word, counts what it could not say, and says how many lines that were as soon as it can.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
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
_CHATTY = ("twisted", "log_legacy")
"""What Twisted says at info (a port was opened, a factory was started) we take for debug."""


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Lines logged inside carry the given ids: request, tenant, cluster, execution."""
    tokens = [(_CONTEXT[name], _CONTEXT[name].set(value)) for name, value in ids.items()]
    thrown_away = False
    try:
        yield
    except GeneratorExit:  # the coroutine is forgotten, and closed in whatever context there is
        thrown_away = True
        raise
    finally:
        if not thrown_away:
            for variable, token in reversed(tokens):
                variable.reset(token)


def observer(stream: IO[str], form: str, level: str) -> ILogObserver:
    """An observer that writes one line an event (and the traceback of a failure) to `stream`."""
    write = _json_line if form == "json" else _human_line
    lost = 0

    def emit(event: LogEvent) -> None:
        nonlocal lost
        line = write(event)
        if lost:
            told = {**event, "log_level": LogLevel.warn, "log_namespace": __name__}
            told |= {"log_format": "{lost} log lines could not be written", "lost": lost}
            told.pop("log_failure", None)
            line = "\n" + write(told) + line  # a part of the last lost one may stand there
        try:
            stream.write(line)
            stream.flush()
        except (OSError, ValueError):  # ValueError: it was closed
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
    """Python's own formatting is ten times faster; Twisted's knows calls such as `{name()}`."""
    try:
        text: str = event["log_format"].format_map(event)
    except (LookupError, AttributeError, TypeError, ValueError, RuntimeError):
        text = formatEvent(event)
    failure = event.get("log_failure")
    if failure is not None:  # its text may be quoted
        text = shown_url(hidden(text, secret.living(), whole=True))
    return _one_line(text)


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r")


def _traceback(event: LogEvent) -> str:
    failure = event.get("log_failure")
    if failure is None:
        return ""
    lines = failure.getTraceback().rstrip().splitlines()
    text = "\n".join(lines[-_TRACEBACK_LINES:])
    return shown_url(hidden(text, secret.living(), whole=True))


def _human_line(event: LogEvent) -> str:
    level = event.get("log_level", LogLevel.info).name
    ids = "".join(f" {name}={value}" for name, value in _ids(event).items())
    line = f"{_time(event)} {level:8} {event.get('log_namespace', '-')}: {_text(event)}{ids}\n"
    traceback = _traceback(event)
    if traceback:
        line += "".join(f"    {row}\n" for row in traceback.splitlines())
    return line


def _json_line(event: LogEvent) -> str:
    record: dict[str, object] = {
        "time": _time(event),
        "level": event.get("log_level", LogLevel.info).name,
        "logger": event.get("log_namespace", "-"),
        "message": _text(event),
        **_ids(event),
    }
    traceback = _traceback(event)
    if traceback:
        record["traceback"] = traceback
    return json.dumps(record, ensure_ascii=False) + "\n"
