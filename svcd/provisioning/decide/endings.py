"""Decides when svcd deletes a cluster by itself: after a time without use, or at an age. Pure.

All state is in the row: a daemon that takes over, or that was down, decides the same. Note: the
notice. svcd deletes only a cluster whose row says that an event has warned of it, a minute ago or
more. So a daemon that was down at the time of the warning warns first.

Note: use between two looks. Another newest job execution, or another mark of the probes, shows it,
and the idle time begins anew. `idle_mark` holds both, because times of several clocks do not
compare. A cluster whose use is not known is not idle.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from attrs import evolve, frozen

from svcd.model.cluster import Cluster, ClusterEvent
from svcd.model.ids import Timestamp, iso_seconds, timestamp
from svcd.model.lifetime import IDLE_DELETE_S, MAX_AGE_S, End, end_of
from svcd.model.step_kind import END
from svcd.provisioning.decide import lifecycle
from svcd.provisioning.decide.health import Answer
from svcd.provisioning.distributions.spi import Command, HttpProbe, IdleProbe

LAST_JOB: Final = "deleted by itself: its last job has ended (is_transient)"
"""The reason of the deletion of a transient cluster."""
_MOST_MARK: Final = 100
"""Most characters of a mark in the row; the row has the SHA-256 of a longer one."""
_LEAST_S: Final = 30.0
_MOST_S: Final = 300.0
"""Shortest and longest time between two looks at the use of a cluster."""
_RARELY_S: Final = 3600.0
"""Longest time between two looks at a cluster whose use does not matter."""
_SOON_S: Final = 0.01
"""Shortest wait: a wait that rounds to nothing must not repeat the look at once."""


@frozen(kw_only=True)
class Look:
    """The findings of a look at the use of a cluster, which began at `at` (epoch seconds).

    busy: the use of it, or why its use is not known; "": it is not used. mark: of the probes.
    newest: when its newest job execution was created. asked: whether svcd looked at the use.
    """

    at: float
    asked: bool = True
    busy: str = ""
    mark: str = ""
    newest: Timestamp | None = None


@frozen(kw_only=True)
class Decided:
    """The decision after a look.

    cluster: the row to write, if it differs. ends_by: the field behind the deletion that is due
    now; "": none is. wait_s: seconds until the next look; None: not before another change of the
    row.
    """

    cluster: Cluster
    events: tuple[ClusterEvent, ...] = ()
    ends_by: str = ""
    wait_s: float | None


def unasked(cluster: Cluster, now: float) -> Look | None:
    """The look at a cluster without questions to it; None: svcd must ask for its use.

    svcd need not ask when the cluster has no idle time, or when its age alone decides now.
    """
    end = end_of(cluster)
    by_age = False
    if end is not None and end.field == MAX_AGE_S:
        by_age = now >= (end.warn_at if cluster.warned_at is None else end.at)
    if by_age or not cluster.idle_delete_s:
        return Look(at=now, asked=False)
    if not lifecycle.may_be_checked(cluster):
        return Look(at=now, busy=f"it is {cluster.status}")
    return None


def look_of(
    questions: Sequence[HttpProbe | Command],
    answers: Sequence[Answer],
    at: float,
    newest: Timestamp | None,
) -> Look:
    """The findings of a distribution's idle probes. answers: one for each question."""
    marks: list[str] = []
    for question, answer in zip(questions, answers, strict=True):
        busy = answer.error
        if isinstance(question, HttpProbe) and not busy:
            busy = question.missing(answer.status, answer.body)
            busy = busy or question.stranger(answer.status, answer.body)
        if busy:
            return Look(at=at, busy=f"{question.what}: {busy}", newest=newest)
        if isinstance(question, IdleProbe):
            marks.append(question.mark(answer.body))
    mark = " ".join(marks)
    if len(mark) > _MOST_MARK:
        mark = hashlib.sha256(mark.encode(errors="surrogatepass")).hexdigest()
    return Look(at=at, mark=mark, newest=newest)


def decided(cluster: Cluster, look: Look, now: float) -> Decided:
    """The decision on a cluster after `look`. now: epoch seconds, at the end of the look.

    A deletion needs a look that began after its time.
    """
    before = end_of(cluster)
    after = _with_use(cluster, look)
    end = end_of(after)
    events: list[ClusterEvent] = []
    by_idle = before is not None and before.field == IDLE_DELETE_S
    was_used = by_idle and cluster.idle_since != after.idle_since
    if after.warned_at is not None and (was_used or end is None or now < end.warn_at):
        after = evolve(after, warned_at=None)
        end = end_of(after)
        text = f"svcd does not delete the cluster now: {look.busy or 'it was used'}"
        events.append(lifecycle.event(after, END, "done", now, text))
    after, warnings = warned(after, now)
    end = end_of(after)
    events += warnings
    ends_by = ""
    if end is not None and after.warned_at is not None and look.at >= end.at:
        ends_by = end.field
    return Decided(
        cluster=after,
        events=tuple(events),
        ends_by=ends_by,
        wait_s=_wait_s(after, end, now),
    )


def warned(cluster: Cluster, now: float) -> tuple[Cluster, Sequence[ClusterEvent]]:
    """`cluster` with the warning of its deletion, and its event, when the time for it has come."""
    end = end_of(cluster)
    if end is None or cluster.warned_at is not None or now < end.warn_at:
        return cluster, ()
    after = evolve(cluster, warned_at=timestamp(now))
    end = end_of(after) or end
    return after, [lifecycle.event(after, END, "waiting", now, _warning(after, end), until=end.at)]


def reason(cluster: Cluster, field: str) -> str:
    """The reason of the deletion that is due by `field`, for the row and the event."""
    if field == IDLE_DELETE_S:
        why = f"it was not used for {_span(cluster.idle_delete_s)}"
    else:
        why = f"it is older than {_span(cluster.max_age_s)}"
    return f"deleted by itself: {why} ({field})"


def audit_record(cluster: Cluster, reason: str) -> dict[str, object]:
    """The record of the deletion in the audit log: svcd itself is the user."""
    return {
        "user_name": "svcd",
        "project": cluster.tenant_id,
        "action": "DELETE cluster",
        "target": cluster.id,
        "name": cluster.name,
        "reason": reason,
        "outcome": "accepted",
    }


def _with_use(cluster: Cluster, look: Look) -> Cluster:
    if not (cluster.idle_delete_s and look.asked):
        return cluster
    if look.busy:
        return evolve(cluster, idle_since=None)
    mark = f"{look.newest or ''} {look.mark}".strip()
    if cluster.idle_since is not None and mark == cluster.idle_mark:
        return cluster
    return evolve(cluster, idle_since=timestamp(look.at), idle_mark=mark)


def _warning(cluster: Cluster, end: End) -> str:
    if end.field == IDLE_DELETE_S:
        why = f"if it is not used before (idle_delete_s: {_span(cluster.idle_delete_s)})"
    else:
        why = f"because of its age (max_age_s: {_span(cluster.max_age_s)})"
    at = iso_seconds(timestamp(end.at))
    return (
        f"svcd deletes the cluster at {at}Z {why}; to keep it longer:"
        f" svcd cluster keep {cluster.name}"
    )


def _span(seconds: int) -> str:
    """`2 h`, `90 min` or `100 s`: the exact value."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _wait_s(cluster: Cluster, end: End | None, now: float) -> float | None:
    most = _RARELY_S
    active = lifecycle.may_be_checked(cluster)
    if end is None and not active:
        return None
    if active and cluster.idle_delete_s:
        most = min(max(cluster.idle_delete_s / 10, _LEAST_S), _MOST_S)
    moments = () if end is None else (end.warn_at, end.at)
    ahead = [moment - now for moment in moments if moment > now]
    return max(min([most, *ahead]), _SOON_S)
