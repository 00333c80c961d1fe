"""Checks the fields that say when svcd deletes a cluster by itself, against the operator's maxima.

Pure. An operator's maximum holds for new clusters: it is their default, and it stays in the row. A
later change of a cluster is checked against the looser of that maximum and the present one.
"""

from __future__ import annotations

import datetime
from typing import Final

from attrs import evolve

from svcd.errors import InvalidData, InvalidReference, SvcdError
from svcd.model.cluster import Cluster, Desired
from svcd.model.ids import iso_seconds, seconds_of, timestamp
from svcd.model.lifetime import IDLE_DELETE_S, MAX_AGE_S, NOTICE_S, end_of
from svcd.model.requests import ScaleRequest
from svcd.provisioning.decide.facts import Bounds
from svcd.provisioning.distributions.spi import IDistribution, IIdleProbes

DURATIONS: Final = (IDLE_DELETE_S, MAX_AGE_S)
SHORTEST_S: Final = 60
"""The shortest time that a request may give."""


def fitting(bounds: Bounds, distribution: IDistribution | None) -> Bounds:
    """`bounds` for the clusters of a distribution: one that shows no use has no idle time."""
    return bounds if _shows_use(distribution) else evolve(bounds, most_idle_s=0)


def _shows_use(distribution: IDistribution | None) -> bool:
    return distribution is not None and bool(IIdleProbes.providedBy(distribution))


def fault(
    path: str, name: str, seconds: int | None, bounds: Bounds, distribution: IDistribution | None
) -> str:
    """The fault of a given duration, or "". name: of the field; path: of the place with it."""
    if seconds is None:
        return ""
    where = f"{path}.{name}"
    most = bounds.most_age_s if name == MAX_AGE_S else fitting(bounds, distribution).most_idle_s
    if name == IDLE_DELETE_S and seconds and not _shows_use(distribution):
        return f"{where}: the plugin does not show whether a cluster is used; leave it out"
    if most and not 0 < seconds <= most:
        never = " (never)" if seconds == 0 else ""
        return f"{where}: the operator allows at most {most} seconds, got {seconds}{never}"
    if 0 < seconds < SHORTEST_S:
        return f"{where}: expected at least {SHORTEST_S} seconds, or 0 for never, got {seconds}"
    return ""


def changed(
    cluster: Cluster,
    change: ScaleRequest,
    bounds: Bounds,
    distribution: IDistribution | None,
    now: float,
) -> tuple[Cluster, list[SvcdError]]:
    """`cluster` with the lifetime of a request, and the faults.

    bounds: with the operator's present maxima.
    """
    given = dict(change.life)
    if not given:
        return cluster, []
    if cluster.desired is Desired.DELETED:
        text = f"cluster {cluster.name!r} is being deleted; its lifetime cannot be changed"
        return cluster, [InvalidReference(text)]
    loose = evolve(
        bounds,
        most_idle_s=_looser(cluster.most_idle_s, bounds.most_idle_s),
        most_age_s=_looser(cluster.most_age_s, bounds.most_age_s),
    )
    faults = [fault("$", name, given.get(name), loose, distribution) for name in DURATIONS]
    if "keep_until" in given:
        keep = _seconds(given["keep_until"])
        faults.append(_keep_fault(cluster, keep, loose, now))
        given["keep_until"] = None if keep is None else timestamp(keep)
    after = evolve(cluster, **given, updated_at=timestamp(now))
    if not after.idle_delete_s:
        after = evolve(after, idle_since=None, idle_mark="")
    if not _holds_warning(cluster, after, now):
        after = evolve(after, warned_at=None)
    return after, [InvalidData(text) for text in faults if text]


def _holds_warning(before: Cluster, after: Cluster, now: float) -> bool:
    """Whether the warning of `before` is one of the deletion of `after`.

    It is none of an earlier deletion, but repeated requests do not put off one that is near.
    """
    old, new = end_of(before), end_of(after)
    if old is None or new is None or now < new.warn_at:
        return False
    return new.at >= old.at or old.at <= now + NOTICE_S


def _looser(first: int, second: int) -> int:
    return max(first, second) if first and second else 0


def _keep_fault(cluster: Cluster, keep: float | None, loose: Bounds, now: float) -> str:
    """The fault of `keep_until`, in epoch seconds; None: the calendar does not have it."""
    if keep is None:
        return "$.keep_until: there is no such time"
    if keep < now:
        return f"$.keep_until: expected a time that is not over; it is {_utc(now)} now"
    limits = [
        since + most
        for since, most in (
            (seconds_of(cluster.created_at), loose.most_age_s),
            (now, loose.most_idle_s),
        )
        if most
    ]
    if limits and keep > min(limits):
        return f"$.keep_until: the operator allows at most {_utc(min(limits))} for this cluster"
    return ""


def _utc(seconds: float) -> str:
    return f"{iso_seconds(timestamp(seconds))}Z"


def _seconds(text: str) -> float | None:
    """Epoch seconds of a time in UTC; None when the calendar does not have it."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=datetime.UTC).timestamp()
