"""Decides how many leases each daemon holds. Pure.

A key (mostly a cluster's id) belongs to one of SHARDS shards, and each shard has one lease. Every
daemon applies the same rule to the same rows, so daemons agree without messages: each living daemon
holds the same number of leases; if a remainder is left, the first daemons by name hold one more.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from attrs import frozen

SHARDS: Final = 64
"""The number of rows that migration 0004 inserts. It must never change for an existing database."""


@frozen
class Share:
    """The changes of one daemon. take: number of free leases to take. give: shards to give up."""

    take: int = 0
    give: tuple[int, ...] = ()


def shard_of(key: str) -> int:
    """The shard of a key. It is the same in every process and release."""
    return zlib.crc32(key.encode()) % SHARDS


def due(living: Collection[str]) -> Mapping[str, int]:
    """The number of leases for each living daemon; together they hold all."""
    each, more = divmod(SHARDS, max(1, len(living)))
    return {name: each + (rank < more) for rank, name in enumerate(sorted(living))}


def share(
    me: str, living: Collection[str], holders: Mapping[int, str], busy: Collection[int]
) -> Share:
    """The leases that `me` takes and gives now.

    holders: shard -> the name of its holder, "" when it is free. busy: shards with running work,
    which are given last. A daemon gives a lease only when another daemon lacks one.
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
