"""Waits until a cluster rests, and shows its progress; the same for its deletion.

On a terminal one line is drawn over: the phase, a bar over machines and steps, what is waited for
and until when. Elsewhere each new phase and each trouble is a line. All of it goes to stderr. The
waiting ends with the cluster, with svcd's own deadlines, with `--timeout`, or by Ctrl-C; the last
two leave the cluster as it is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from svcd.cli.client import Api, safe
from svcd.cli.exits import FAILED, INTERRUPTED, CommandError, OutOfTime
from svcd.cli.session import Session
from svcd.cli.show import get
from svcd.cli.times import duration, seconds
from svcd.cli.words import step_title

Json = Mapping[str, Any]

_WAIT_S: Final = 20
"""Seconds that the daemon waits for a new event before it answers a request."""
_AT_ONCE_S: Final = 1.0
"""Time between two requests for events to a daemon that stops, and so does not wait."""

_LOOK_S: Final = 0.5
"""Seconds between two looks at first; they double up to the next value."""
_SLOW_S: Final = 2.0
_PATIENCE_S: Final = 300.0
"""Seconds for which the command waits for an absent daemon."""
_BAR: Final = 10
"""Cells of the bar; the last one fills when the cluster is Active, which ends the waiting."""
PHASES: Final = ("Waiting", "Validating", "Spawning", "Preparing", "Configuring", "Starting")
"""The statuses on the way to Active. A cluster may also pass Decommissioning, when it shrinks."""
_RESTING: Final = frozenset({"Active", "Error"})


def await_cluster(session: Session, cluster: Json, gone: bool = False) -> Any:
    """The body of the cluster when it rests; None when it is gone. Raises CommandError for Error.

    gone: wait for its deletion.
    """
    name, id_ = get(cluster, "name"), get(cluster, "id")
    session.api.be_patient(_PATIENCE_S)
    try:
        body = _watched(session, id_, gone)
    except KeyboardInterrupt:
        session.clear()
        session.note(_goes_on(name, gone))
        raise CommandError("interrupted", INTERRUPTED) from None
    except OutOfTime as late:
        session.clear()
        raise OutOfTime(f"{late}; {_goes_on(name, gone)}", late.code) from None
    finally:
        session.clear()
    if body is None:
        if gone:
            return None
        raise CommandError(f"cluster {name} was deleted meanwhile", FAILED)
    if body["cluster"]["status"] == "Error":
        _explain(session, body["cluster"])
    return body


def await_change(session: Session, cluster: Json) -> Any:
    """As `await_cluster`, after a request. Raises CommandError when it failed and was undone."""
    body = await_cluster(session, cluster)
    name = get(cluster, "name")
    answer = session.api.get(f"/clusters/{safe(get(cluster, 'id'))}/story")
    changes = answer["story"]["changes"] if answer is not None else ()
    if changes and changes[-1]["outcome"] == "failed":
        _note_failure(session, answer)
        text = f"the change of cluster {name} failed and was undone: {changes[-1]['code']}"
        raise CommandError(f"{text}; svcd why {name} shows its history", FAILED)
    return body


def _goes_on(name: str, gone: bool) -> str:
    if gone:
        return f"the deletion of {name} goes on; follow it: svcd cluster events {name} -f"
    return (
        f"the work on {name} goes on; follow it: svcd cluster events {name} -f; "
        f"give it up: svcd cluster rm {name}"
    )


def _watched(session: Session, id_: str, gone: bool) -> Any:
    """The body when the cluster rests, None when it is gone; draws its progress."""
    following = ClusterFollower(session, id_)
    while True:
        body = following.look()
        if body is None or (not gone and rests(body)):
            return body
        following.draw(body)
        time.sleep(following.pause_s)


def rests(body: Any) -> bool:
    """Whether svcd does nothing with the cluster of this body."""
    return get(body["cluster"], "status") in _RESTING


class ClusterFollower:
    """Reports the work of svcd on a cluster since the newest request, from look to look.

    pause_s: time until the next look.
    """

    def __init__(self, session: Session, id_: str) -> None:
        self._session = session
        self._path = f"/clusters/{safe(id_)}"
        self._last: Json | None = None
        self._story: Json | None = None
        self._noted = ""
        self.pause_s = _LOOK_S

    def look(self) -> Any:
        """The body, None when the cluster is gone. Without a terminal it notes what is new."""
        body = self._session.api.get(self._path)
        if body is not None and not self._session.interactive:
            self._note_news(get(body["cluster"], "name"))
        return body

    def draw(self, body: Any) -> None:
        """Draw the line of progress on a terminal."""
        session = self._session
        if not session.interactive:
            return
        answer = session.api.get(f"{self._path}/story")
        if answer is None:
            return
        story = answer["story"]
        self._slow_down(story == self._story)
        self._story = story
        session.draw(progress(body["cluster"], story, session.now()))

    def _note_news(self, name: str) -> None:
        fresh = newer(self._session.api, f"{self._path}/events", self._last) or []
        if self._last is None:
            fresh = fresh[_newest_request(fresh) :]
        self._last = fresh[-1] if fresh else self._last
        self._slow_down(not fresh)
        for text in news(fresh):
            if text != self._noted:
                self._session.note(f"{name}: {text}")
            self._noted = text

    def _slow_down(self, nothing_new: bool) -> None:
        self.pause_s = min(self.pause_s * 1.5, _SLOW_S) if nothing_new else _LOOK_S


def news(events: Sequence[Json]) -> Sequence[str]:
    """The lines about new events for a log: phases and troubles. Pure."""
    lines = []
    for event in events:
        step, outcome, where = get(event, "step"), get(event, "outcome"), get(event, "machine")
        on = f" on {where}" if where else ""
        if outcome == "started" and event["kind"] == "status":
            lines.append(step)
        elif outcome in ("retry", "failed", "waiting"):
            said = " ".join(get(event, "text").split())
            code = get(event, "code")
            lines.append(f"{outcome}: {step_title(event)}{on}: {code} {said}".rstrip(": "))
    return lines


def progress(cluster: Json, story: Json, now: float) -> str:
    """The line of progress: phase, bar, what is waited for, until when. Pure."""
    status, work = get(story, "status"), story["work"]
    machines = sum(len(group["instances"]) for group in cluster["node_groups"])
    parts = [status]
    if status in PHASES:
        ready = work["machines_done"] if work else 0
        share = ready / machines if machines else 0.0
        whole = (PHASES.index(status) + share) / len(PHASES)
        filled = min(int(whole * _BAR), _BAR - 1)
        parts.append(f"[{'#' * filled}{'.' * (_BAR - filled)}]")
        parts.append(f"{ready}/{machines} machines")
    if work:
        parts += filter(None, [_waited_for(work)])
        until = seconds(work["until"])
        if until is not None:
            parts.append(f"gives up in {duration(until - now)}")
    return "  ".join(parts)


def _waited_for(work: Json) -> str:
    """The step that has not ended, else the servers that do not run. Pure."""
    if work["waits"]:
        event = work["waits"][-1]
        where, number = event["machine"], work["waits_in_all"]
        name = f"{step_title(event)}{f' on {where}' if where else ''}"
    elif work["servers"]:
        name, number = f"waiting for server {work['servers'][0]['machine']}", work["servers_in_all"]
    else:
        return ""
    return name + (f" and {number - 1} more" if number > 1 else "")


def _newest_request(events: Sequence[Json]) -> int:
    """The index of the event of the newest request."""
    begin = ("request", "accepted")
    numbers = [n for n, e in enumerate(events) if (get(e, "step"), get(e, "outcome")) == begin]
    return numbers[-1] if numbers else 0


def new_events(api: Api, path: str) -> Iterator[Json]:
    """All events, then each new one. path: of the list of events. Ends when the cluster is gone."""
    last: Json | None = None
    while True:
        began = time.monotonic()
        fresh = newer(api, path, last, _WAIT_S)
        if fresh is None:
            return
        yield from fresh
        sys.stdout.flush()
        last = fresh[-1] if fresh else last
        if not fresh and time.monotonic() - began < _AT_ONCE_S:
            time.sleep(_AT_ONCE_S)


def newer(api: Api, path: str, last: Json | None, wait_s: int = 0) -> list[Json] | None:
    """The events after `last`, all for None; None when the cluster is gone.

    wait_s: how long the daemon waits for one that is newer than `last`.
    """
    query = ""
    if last is not None:
        query = f"?since={get(last, 'number')}" + (f"&wait={wait_s}" if wait_s else "")
    body = api.get(path + query)
    return None if body is None else list(body["events"])


def _note_failure(session: Session, answer: Any) -> None:
    """Note the reason and the advice of `svcd why`. answer: the story, or None."""
    from svcd.cli.cluster_story import failure

    for text in failure(answer["story"]) if answer is not None else ():
        if text:
            session.note(text)


def _explain(session: Session, cluster: Json) -> None:
    """End with the reason and the advice. Raises CommandError."""
    _note_failure(session, session.api.get(f"/clusters/{safe(get(cluster, 'id'))}/story"))
    name = get(cluster, "name")
    text = f"cluster {name} is in Error; svcd why {name} shows its history; "
    raise CommandError(
        f"{text}svcd cluster retry {name} tries again, svcd cluster rm {name} deletes it", FAILED
    )
