"""The story of a cluster, as the API tells it: the present work, the failure, the changes so far.

It is additive (v1.1).
"""

from __future__ import annotations

import enum
from typing import Annotated

from svcd.model import cluster, fields
from svcd.model.fields import means
from svcd.model.wire import Event, View


class ChangeOutcome(enum.StrEnum):
    """How a change ended. REPLACED: a later request came before its end."""

    GOING_ON = "going on"
    DONE = "done"
    FAILED = "failed"
    REPLACED = "replaced"


class ServerWait(View, frozen=True, kw_only=True):
    """A server that does not run yet."""

    machine: fields.MachineName
    status: Annotated[str, means("status of the server in the cloud; empty: it does not exist yet")]


class ClusterWork(View, frozen=True, kw_only=True):
    """What svcd does with a cluster in its present status."""

    since: Annotated[str, means("begin of the status, UTC")]
    until: fields.Until | None
    machines_done: Annotated[int, means("number of machines on which a step of the status is done")]
    waits: Annotated[
        list[Event], means("newest event of the ten newest steps that have begun and not ended")
    ]
    waits_in_all: Annotated[int, means("number of all such steps")]
    servers: Annotated[list[ServerWait], means("the first ten servers that the status waits for")]
    servers_in_all: Annotated[int, means("number of all such servers")]


class ClusterFailure(View, frozen=True, kw_only=True):
    """What is wrong with a cluster."""

    code: fields.Code
    text: fields.Words
    machine: fields.MachineOrNone
    by_health_check: Annotated[bool, means("whether a check of the Active cluster noticed it")]
    meaning: Annotated[str, means("meaning of the code; empty for a fault without a code")]
    advice: Annotated[str, means("remedy; empty when svcd knows none")]


class ClusterChange(View, frozen=True, kw_only=True):
    """An accepted request to create, resize, retry or delete the cluster."""

    generation: Annotated[int, means("number of the request")]
    at: Annotated[str, means("time of the request, UTC")]
    request: Annotated[
        str, means("words of the request; empty when its event is not kept any more")
    ]
    outcome: Annotated[ChangeOutcome, means("how the change ended")]
    code: fields.Code


class ClusterStory(View, frozen=True, kw_only=True):
    """The story of a cluster (additive)."""

    status: Annotated[cluster.ClusterStatus, means("status of the cluster")]
    work: Annotated[ClusterWork | None, means("the present work; null while the cluster rests")]
    failure: Annotated[ClusterFailure | None, means("what is wrong; null when nothing is")]
    changes: Annotated[list[ClusterChange], means("changes of which events are kept, oldest first")]
