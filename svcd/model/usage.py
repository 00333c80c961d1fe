"""The use of machines by a cluster: its instance hours, by flavor. Pure.

A row keeps the seconds until its last change of machines, and their number since then. A machine
counts while the row has its server: a lost one until svcd notices it, a create call without a
server not at all. A clock that was set back adds nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated

import msgspec

from svcd.model import fields
from svcd.model.cluster import GONE, Cluster
from svcd.model.fields import means
from svcd.model.ids import timestamp


class FlavorUsage(msgspec.Struct, frozen=True):
    """The machines of one flavor."""

    flavor_id: fields.FlavorId
    machines: Annotated[int, means("number of machines that the cluster has")]
    instance_hours: Annotated[float, means("hours of all machines, also of former ones, together")]


class Usage(msgspec.Struct, frozen=True):
    """The instance hours of a cluster."""

    at: Annotated[str, means("time of the figures, UTC: a whole minute, or a later change")]
    flavors: Annotated[list[FlavorUsage], means("flavors of its machines, in the order of the ids")]


class _Stored(msgspec.Struct, array_like=True):
    """at: epoch seconds. flavors: id -> seconds of machines until `at`, and machines since then."""

    at: float = 0.0
    flavors: dict[str, tuple[float, int]] = {}

    def until(self, now: float) -> dict[str, tuple[float, int]]:
        """The flavors, with the seconds until `now`."""
        passed = max(0.0, now - self.at)
        return {id_: (s + count * passed, count) for id_, (s, count) in self.flavors.items()}


_read = msgspec.json.Decoder(_Stored).decode


def machines(cluster: Cluster) -> Mapping[str, int]:
    """The number of machines that the cluster has, by flavor."""
    return Counter(
        group.flavor_id
        for group in cluster.node_groups
        for instance in group.instances
        if instance.server_id is not None and instance.status != GONE
    )


def counted(stored: str, counts: Mapping[str, int], now: float) -> tuple[str, int]:
    """The text to store with `counts` of machines, and by how many they are more than before."""
    now = max(now, _read(stored).at)  # hours before a clock was set back count once
    known = _read(stored).until(now)
    before = {id_: count for id_, (_, count) in known.items() if count}
    if before == counts:
        return stored, 0
    ids, none = sorted({*known, *counts}), (0.0, 0)
    flavors = {id_: (known.get(id_, none)[0], counts.get(id_, 0)) for id_ in ids}
    more = sum(counts.values()) - sum(before.values())
    return msgspec.json.encode(_Stored(now, flavors)).decode(), more


@lru_cache(maxsize=256)  # callers often ask for the same cluster again
def shown(stored: bytes, minute: float) -> bytes:
    """The JSON of `Usage` at that time, or at a later change of the machines."""
    before = _read(stored)
    at = max(minute, before.at)
    rows = before.until(at).items()
    flavors = [FlavorUsage(id_, count, round(s / 3600, 4)) for id_, (s, count) in rows]
    return msgspec.json.encode(Usage(timestamp(at), flavors))
