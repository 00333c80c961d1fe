"""The story of a cluster, as the API tells it: the present work, the failure, the changes so far.

It is additive (v1.1).
"""

from __future__ import annotations

import enum
from typing import Annotated

from svcd.model import cluster, fields
from svcd.model.fields import means
from svcd.model.step_kind import StepKind
from svcd.model.wire import Event, StepName, View


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
    machines_done: Annotated[
        int, means("number of machines on which a step of the status is done and whose server runs")
    ]
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


class StoryStep(View, frozen=True, kw_only=True):
    """An attempt of a step of a change."""

    step: fields.Step
    kind: Annotated[StepKind, means("kind of the step: what sort of work it is")]
    machine: fields.MachineOrNone
    outcome: Annotated[
        str,
        means(
            "result of the attempt; `started` while it goes on; `replaced`: svcd gave the server up"
        ),
    ]
    code: fields.Code
    text: fields.Words
    attempt: Annotated[int, means("number of the attempt, from 1; 0 without a count")]
    began: Annotated[str, means("begin of the attempt, UTC")]
    ended: Annotated[str | None, means("end of the attempt, UTC; null while it goes on")]
    until: fields.Until | None
    waited_for: Annotated[
        StepName | None, means("step whose end let this one begin; null when there was none")
    ]
    longest_path: Annotated[bool, means("whether it is on the longest path")]


class StoryPhase(View, frozen=True, kw_only=True):
    """A status that the cluster had in a change."""

    status: Annotated[cluster.ClusterStatus, means("status of the cluster")]
    began: Annotated[str, means("begin of the status, UTC")]
    ended: Annotated[str | None, means("end of the status, UTC; null while it goes on")]
    until: fields.Until | None
    failed: Annotated[bool, means("whether the change failed in this status")]


class StoryMachine(View, frozen=True, kw_only=True):
    """A machine that a change works on."""

    machine: fields.MachineName
    group: Annotated[str, means("name of its group")]
    done: Annotated[
        bool,
        means("whether its newest step is done; while the change goes on: one of this status"),
    ]
    replaced: Annotated[int, means("number of servers that svcd gave up")]
    notable: Annotated[
        bool,
        means(
            "whether a step of it failed, was tried again, ended with a replacement or is on the"
            " longest path, or after the change its steps took longest in its group"
        ),
    ]


class StoryFault(View, frozen=True, kw_only=True):
    """A failure or a trouble in a change, once for each step and code."""

    step: fields.Step
    kind: Annotated[StepKind, means("kind of the step: what sort of work it is")]
    code: fields.Code
    outcome: Annotated[
        str,
        means(
            "`failed`, `retry` for a step that svcd tried again, `replaced` for a server that it"
            " gave up"
        ),
    ]
    text: fields.Words
    times: Annotated[int, means("number of times")]
    machines: fields.MachineNames


class ChangeSteps(View, frozen=True, kw_only=True):
    """The steps of a change."""

    generation: Annotated[int, means("number of the request")]
    outcome: Annotated[ChangeOutcome, means("how the change ended")]
    began: Annotated[str, means("begin of the first step, UTC")]
    ended: Annotated[str | None, means("end of the last step, UTC; null while it goes on")]
    phases: Annotated[list[StoryPhase], means("statuses of the cluster, in their order")]
    machines: Annotated[
        list[StoryMachine],
        means("machines with a step, or that will have one; in the order of their groups"),
    ]
    steps: Annotated[list[StoryStep], means("attempts of all steps, in the order of their begins")]
    longest_path: Annotated[
        list[int],
        means("places in `steps` of those that decided how long the change took, in their order"),
    ]
    faults: Annotated[list[StoryFault], means("what went wrong, oldest first")]


class ClusterStory(View, frozen=True, kw_only=True):
    """The story of a cluster (additive)."""

    status: Annotated[cluster.ClusterStatus, means("status of the cluster")]
    work: Annotated[ClusterWork | None, means("the present work; null while the cluster rests")]
    failure: Annotated[ClusterFailure | None, means("what is wrong; null when nothing is")]
    ailing: Annotated[
        str, means("what health checks found before the present change; empty when all was well")
    ]
    changes: Annotated[list[ClusterChange], means("changes of which events are kept, oldest first")]
    change: Annotated[
        ChangeSteps | None, means("the steps of the change that `change` names; null without it")
    ]
