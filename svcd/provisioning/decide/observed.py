"""The cloud's lists of a cluster, and the time for which they may be late. Values only."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from svcd.model.cloud import FloatingIp, Server, VolumeState
from svcd.model.cluster import Instance
from svcd.model.ids import seconds_of

VISIBLE_S: Final = 30.0
"""The cloud's lists show a new object within this time (see the planner's note on visibility)."""

CALL_S: Final = 30.0
"""A create call takes effect within this time, or never, also when svcd stops waiting for it."""


@frozen(kw_only=True)
class Observed:
    """Servers and volumes by their metadata, floating addresses by their description.

    at: the time of the requests for the lists, None for now. Lists may arrive long after it.
    """

    at: float | None = None
    servers: tuple[Server, ...] = ()
    volumes: tuple[VolumeState, ...] = ()
    floating_ips: tuple[FloatingIp, ...] = ()


def seen_at(observed: Observed, now: float) -> float:
    """The time of the requests for `observed`: it may be as old as this."""
    return now if observed.at is None else observed.at


def is_fresh(instance: Instance, now: float) -> bool:
    """Whether the last create call is so recent that lists may not show its object.

    While the call is under way, `requested_at` is its latest end, so that another daemon waits for
    it. After the call it is the real end.
    """
    return instance.requested_at is not None and now - seconds_of(instance.requested_at) < VISIBLE_S
