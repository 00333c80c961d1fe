"""When svcd deletes a cluster by itself: after a time without use, or at an age. Pure.

The row alone says it, so the answers and the daemon, also one that takes over, agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import evolve, frozen

from svcd.model.cluster import Cluster, Desired
from svcd.model.ids import seconds_of

IDLE_DELETE_S: Final = "idle_delete_s"
MAX_AGE_S: Final = "max_age_s"
NOTICE_S: Final = 60.0
"""Shortest time between the warning and the deletion."""


@frozen(kw_only=True)
class End:
    """The coming deletion. at, warn_at: epoch seconds. field: the field of the cluster behind it.

    warn_at: a tenth of the whole time before `at`, at least a minute.
    """

    at: float
    warn_at: float
    field: str


def may_end(cluster: Cluster) -> bool:
    """Whether svcd may delete the cluster by itself some time, beside a transient one."""
    limited = cluster.idle_delete_s or cluster.max_age_s
    return bool(limited) and cluster.desired is not Desired.DELETED


def end_of(cluster: Cluster) -> End | None:
    """The next deletion by itself, when nothing changes; None without one."""
    if cluster.desired is Desired.DELETED:
        return None
    end = min(_ends(cluster), key=lambda end: end.at, default=None)
    if end is None or cluster.warned_at is None:
        return end
    return evolve(end, at=max(end.at, seconds_of(cluster.warned_at) + NOTICE_S))


def _ends(cluster: Cluster) -> Iterator[End]:
    keep = 0.0 if cluster.keep_until is None else seconds_of(cluster.keep_until)
    for name, since in ((MAX_AGE_S, cluster.created_at), (IDLE_DELETE_S, cluster.idle_since)):
        seconds: int = getattr(cluster, name)
        if seconds and since is not None:
            at = max(seconds_of(since) + seconds, keep)
            yield End(at=at, warn_at=at - max(seconds / 10, NOTICE_S), field=name)
