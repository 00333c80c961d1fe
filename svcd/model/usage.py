"""The use of machines by a cluster: its instance hours, by flavor. Pure.

A row keeps the seconds until its last change of machines, and their number since then. So each
machine counts while the row has its server: a lost or replaced one until svcd notices it, and a
create call without a server not at all. A clock that was set back adds nothing.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Struct

from svcd.model import fields
from svcd.model.cluster import GONE, Cluster
from svcd.model.fields import means
from svcd.model.ids import timestamp

_MINUTE_S = 60.0


class FlavorUsage(Struct, frozen=True, kw_only=True):
    """The machines of one flavor."""

    flavor_id: fields.FlavorId
    machines: Annotated[int, means("number of machines that the cluster has now")]
    instance_hours: Annotated[
        float, means("hours of all machines that the cluster has and had, added up")
    ]


class Usage(Struct, frozen=True, kw_only=True):
    """The instance hours of a cluster."""

    at: Annotated[
        str, means("time of the figures, UTC: the begin of the minute, or a later change")
    ]
    flavors: Annotated[list[FlavorUsage], means("flavors of its machines, in the order of the ids")]


class _Stored(Struct, frozen=True):
    """at: epoch seconds. flavors: id -> seconds of machines until `at`, and machines since then."""

    at: float = 0.0
    flavors: dict[str, tuple[float, int]] = msgspec.field(default_factory=dict)

    def until(self, now: float) -> dict[str, tuple[float, int]]:
        """The flavors, with the seconds until `now`."""
        passed = max(0.0, now - self.at)
        return {id_: (s + count * passed, count) for id_, (s, count) in self.flavors.items()}


_decode = msgspec.json.Decoder(_Stored).decode
_NOTHING = _Stored()


def _read(stored: str | bytes) -> _Stored:
    return _decode(stored) if stored else _NOTHING


def counted(stored: str, cluster: Cluster, now: float) -> str:
    """The text to store with the row in its new state. stored: the text before, "" at first."""
    counts: Counter[str] = Counter()
    for group in cluster.node_groups:
        present = [i for i in group.instances if i.server_id is not None and i.status != GONE]
        counts[group.flavor_id] += len(present)
    before = _read(stored)
    if {id_: count for id_, (_, count) in before.flavors.items() if count} == +counts:
        return stored
    seconds = {id_: value for id_, (value, _) in before.until(now).items()}
    flavors = {id_: (seconds.get(id_, 0.0), counts[id_]) for id_ in sorted({*seconds, *+counts})}
    return msgspec.json.encode(_Stored(now, flavors)).decode()


def machines(stored: str) -> int:
    """The number of machines in a stored text."""
    return sum(count for _, count in _read(stored).flavors.values())


def shown(stored: bytes, now: float) -> bytes:
    """The JSON of `Usage`. It stays the same within a minute, unless the machines change."""
    return _shown(stored, now - now % _MINUTE_S)


@lru_cache(maxsize=256)
def _shown(stored: bytes, minute: float) -> bytes:
    """As `shown`. Callers often ask for the same cluster again."""
    before = _read(stored)
    at = max(minute, before.at)
    flavors = [
        FlavorUsage(flavor_id=id_, machines=count, instance_hours=round(seconds / 3600, 4))
        for id_, (seconds, count) in before.until(at).items()
    ]
    return msgspec.json.encode(Usage(at=timestamp(at), flavors=flavors))
