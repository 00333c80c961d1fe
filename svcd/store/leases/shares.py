"""Who should hold which lease. Pure.

A key (a cluster's id, mostly) belongs to one of SHARDS shards, and each shard has one lease. Every
daemon decides for itself by the same rule from the same rows, so they agree without talking: each
living one is due the same number, and the first by name one more where it does not come out even.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from attrs import frozen

SHARDS: Final = 64
"""As many as migration 0004 makes rows. It can never change for a database that has them."""


@frozen
class Share:
    """take: so many of the free leases. give: these shards, in the order in which they are due."""

    take: int = 0
    give: tuple[int, ...] = ()


def shard_of(key: str) -> int:
    """The shard of a key: the same in every process and release."""
    return zlib.crc32(key.encode()) % SHARDS


def due(living: Collection[str]) -> Mapping[str, int]:
    """How many leases each of the living daemons should hold; all of them together hold all."""
    each, more = divmod(SHARDS, max(1, len(living)))
    return {name: each + (rank < more) for rank, name in enumerate(sorted(living))}


def share(
    me: str, living: Collection[str], holders: Mapping[int, str], busy: Collection[int]
) -> Share:
    """What `me` should do now.

    holders: shard -> the name of its holder, "" when it is free. busy: shards with work under way,
    which are given last. Nothing is given that nobody lacks.
    """
    wanted = due({*living, me})
    held = Counter(holders.values())
    mine = [shard for shard, holder in holders.items() if holder == me]
    free = held[""]
    if len(mine) <= wanted[me]:
        return Share(take=min(wanted[me] - len(mine), free))
    lacking = sum(max(0, wanted[name] - held[name]) for name in wanted)
    surplus = min(len(mine) - wanted[me], max(0, lacking - free))
    mine.sort(key=lambda shard: (shard in busy, shard))
    return Share(give=tuple(mine[:surplus]))
