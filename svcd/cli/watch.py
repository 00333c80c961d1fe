"""`svcd watch`: one line for each change in the project.

It reads the stream `watch` of the API. When the connection breaks later or the daemon restarts, it
goes on after the last change it has seen.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from svcd.cli.client import safe
from svcd.cli.command import Command
from svcd.cli.http import Lost
from svcd.cli.output import write
from svcd.cli.session import Session
from svcd.cli.show import as_json, get
from svcd.cli.words import in_commands, status_of, step_title
from svcd.model.controls import visible

Json = Mapping[str, Any]

KINDS: Final = (
    "clusters",
    "cluster_templates",
    "node_group_templates",
    "data_sources",
    "job_binaries",
    "job_binary_internals",
    "jobs",
    "job_executions",
)
"""The kinds of `watch`."""
_AGAIN_S: Final = 1.0
_PATIENCE_S: Final = 300.0
_MOST_KNOWN: Final = 10_000
"""Most objects whose last shown state the command remembers."""


@click.command("watch", cls=Command)
@click.argument("kind", required=False)
@click.pass_obj
def command(session: Session, kind: str | None) -> None:
    """Show one line for each change, until Ctrl-C. A state is not repeated, except with -o json.

    KIND: clusters, job_executions, jobs, data_sources, job_binaries, job_binary_internals,
    cluster_templates or node_group_templates; without it all of them, and the events of clusters.
    """
    kinds = [] if kind is None else [kind_of(kind)]
    session.api.be_patient(_PATIENCE_S)
    states = States()
    for event, data in changes(session, kinds):
        if session.output == "json" or states.is_new(event, data):
            write(line(event, data, session))
            sys.stdout.flush()


def kind_of(text: str) -> str:
    """The kind that `text` names: `cluster`, `job-executions`, `job_ex`. Raises UsageError."""
    plain = text.lower().replace("-", "_")
    fits = [kind for kind in KINDS if plain in (kind, singular(kind))]
    fits = fits or [kind for kind in KINDS if kind.startswith(plain)]
    if len(fits) != 1:
        raise click.UsageError(f"no kind {text!r}: the kinds are {', '.join(KINDS)}")
    return fits[0]


def singular(kind: str) -> str:
    """The word of `watch` for one of a kind."""
    return kind.replace("binaries", "binary").removesuffix("s")


class States:
    """The last shown state of each object, for a person, who does not want to read it twice."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, ...], Sequence[str]] = {}

    def is_new(self, event: str, data: Json) -> bool:
        """Whether a change differs in what a line shows of it; remembers it then.

        An object without a status has no state: each of its changes is new.
        """
        if event == "cluster_event":
            key = (event, *(get(data, name) for name in ("cluster_id", "step", "machine")))
            state = [get(data, name) for name in ("generation", "outcome", "code", "text")]
        else:
            key = (event, get(data, "id"))
            status, reason = _status(data)
            gone = get(data, "change") == "deleted"
            state = [get(data, "name"), status, reason] if status and not gone else []
        if state and self._last.get(key) == state:
            return False
        self._last.pop(key, None)
        if state:
            self._last[key] = state
        if len(self._last) > _MOST_KNOWN:
            del self._last[next(iter(self._last))]
        return True


def line(event: str, data: Json, session: Session) -> str:
    """One change as one line: JSON with `-o json`."""
    if session.output == "json":
        return " ".join(as_json({"kind": event, **data}).split("\n")).strip() + "\n"
    if session.output == "name":
        return f"{visible(get(data, 'name') or get(data, 'id'))}\n"
    if event == "cluster_event":
        others = (get(data, key) for key in ("machine", "outcome", "code", "text"))
        cells = [step_title(data), *others]
    else:
        cells = [get(data, "change"), get(data, "name") or get(data, "id"), *_status(data)]
    at = time.strftime("%H:%M:%S", time.gmtime(session.now()))
    text = " ".join(" ".join(cell for cell in cells if cell).split())
    return f"{at}  {event:16}  {visible(text)}\n"


def _status(data: Json) -> tuple[str, str]:
    """The status of a cluster or an execution, and its reason; "" without one."""
    status = get(data, "status") or status_of(data)
    reason = get(data, "status_description") or get(data, "info.failure.code")
    return status, in_commands(reason)


def changes(session: Session, kinds: Sequence[str]) -> Iterator[tuple[str, Json]]:
    """Kind and data of each change from now on. kinds: empty for all."""
    api, since = session.api, ""
    lost_at: float | None = None
    began = False
    while True:
        parts = [f"since={safe(since)}"] if since else []
        parts += [f"kinds={','.join(kinds)}"] if kinds else []
        path = "/watch" + (f"?{'&'.join(parts)}" if parts else "")
        try:
            stream = api.events(path)
            began = True
            for id_, event, data in stream:
                lost_at = None
                since = id_ or since
                if event == "reset":
                    since = id_
                    session.note("some changes may be missing here: the stream began anew")
                elif event not in ("hello", "bye", "message") and isinstance(data, dict):
                    yield event, data
        except Lost:
            if not began:
                raise
            now = time.monotonic()
            lost_at = now if lost_at is None else lost_at
            if now - lost_at > _PATIENCE_S:
                raise
            if now == lost_at:  # once for each break, however long it lasts
                session.note("the connection broke: trying again")
        time.sleep(_AGAIN_S)
