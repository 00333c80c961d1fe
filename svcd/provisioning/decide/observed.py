"""What the cloud shows of a cluster, and how far its lists are believed. Values only."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from svcd.model.cloud import FloatingIp, Server, VolumeState
from svcd.model.cluster import Instance
from svcd.model.ids import seconds_of

VISIBLE_S: Final = 30.0
"""A cloud shows what it accepted within this time (see the planner's note on visibility)."""

CALL_S: Final = 30.0
"""A create call whose wait was given up takes effect within this time, or never."""


@frozen(kw_only=True)
class Observed:
    """Servers and volumes by their metadata, floating addresses by their description.

    at: when the lists were asked for, None for now. One list may come long after the others.
    """

    at: float | None = None
    servers: tuple[Server, ...] = ()
    volumes: tuple[VolumeState, ...] = ()
    floating_ips: tuple[FloatingIp, ...] = ()


def seen_at(observed: Observed, now: float) -> float:
    """The moment that `observed` may be as old as."""
    return now if observed.at is None else observed.at


def is_fresh(instance: Instance, now: float) -> bool:
    """Whether something was asked for so recently that lists may not show it.

    An intent bears the moment until which its call may be under way, so that a daemon that begins
    meanwhile waits for it; when the call has ended, that moment counts.
    """
    return instance.requested_at is not None and now - seconds_of(instance.requested_at) < VISIBLE_S
