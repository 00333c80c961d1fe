"""The change feed: its kinds, its changes, and the cursor that names a place in it. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final, Literal, Self, TypeAlias

import msgspec
from attrs import evolve, frozen

CLUSTER_EVENTS: Final = "cluster_events"
"""The kind of the events of clusters. It comes with `clusters`."""

KINDS: Final[Mapping[str, str]] = {
    "clusters": "cluster",
    CLUSTER_EVENTS: "cluster_event",
    "cluster_templates": "cluster_template",
    "node_group_templates": "node_group_template",
    "data_sources": "data_source",
    "job_binaries": "job_binary",
    "job_binary_internals": "job_binary_internal",
    "jobs": "job",
    "job_executions": "job_execution",
}
"""Kind of change (plural) -> its word in the singular."""

_LONGEST: Final = 15_000
"""Characters of a cursor; the request line has no room for more."""

Word: TypeAlias = Literal["created", "updated", "deleted"]

Key: TypeAlias = tuple[int, str, str]
"""The place of a change among those of one read: its number, its kind, its id."""


@frozen(kw_only=True)
class Change:
    """The newest change of a record, or an event of a cluster.

    id: of the record; of an event `CLUSTER_ID/NUMBER`. version: of the record, 1 when it cannot
    change; of an event its number.
    """

    number: int
    kind: str
    id: str
    version: int
    word: Word

    @property
    def key(self) -> Key:
        return self.number, self.kind, self.id


@frozen(kw_only=True)
class Cursor:
    """A place in the feed.

    epoch: of the database. made_s: when `since` was the newest position (epoch seconds). since: the
    position after which changes follow. until, after: the reader has read the changes between
    `since` and `until` up to the key `after`; both are empty when it has read all of them.
    """

    epoch: str
    made_s: int
    since: str
    until: str = ""
    after: Key | None = None

    def at(self, change: Change, until: str) -> Self:
        """The cursor after `change`, which was read between `since` and `until`."""
        return evolve(self, until=until, after=change.key)

    @property
    def text(self) -> str:
        """The cursor for callers: letters, digits, `-` and `_`."""
        values = [self.epoch, self.made_s, self.since, self.until, self.after]
        return base64.urlsafe_b64encode(msgspec.json.encode(values)).rstrip(b"=").decode()

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The cursor of `text`; None when the text is not a cursor."""
        if len(text) > _LONGEST:
            return None
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            values = _decoder.decode(base64.b64decode(padded, b"-_", validate=True))
        except (UnicodeError, binascii.Error, msgspec.MsgspecError, RecursionError):
            return None
        epoch, made_s, since, until, after = values
        if (after is None) != (until == "") or not 0 <= made_s < 1 << 53:
            return None
        if after is not None:
            number, kind, id_ = after
            if not (0 <= number < 1 << 63 and kind in KINDS and id_.isprintable()):
                return None  # PostgreSQL refuses a NUL: the read for all watchers would fail
        return cls(epoch=epoch, made_s=made_s, since=since, until=until, after=after)


_decoder = msgspec.json.Decoder(tuple[str, int, str, str, Key | None])


@frozen(kw_only=True)
class Changes:
    """A part of the feed. changes: in order. until: the position up to which it was read.

    cursor: the place after the last change of the part. whole: no change is left before it.
    """

    changes: tuple[Change, ...]
    until: str
    cursor: Cursor
    whole: bool
