"""The kind of work of a step, by the words of the step in a cluster's event. Pure.

The command line and the console show a step by its kind: `Oozie` is an answer for which svcd waits,
`start oozie` starts a daemon. A distribution chooses the words of its steps.
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import Final

from svcd.model.cluster import ClusterStatus

REQUEST: Final = "request"
"""The step of the events of accepted requests."""
HEALTH: Final = "health"
"""The step of the events of health checks."""
END: Final = "end"
"""The step of the events that warn of a deletion by itself."""
JOB: Final = "job"
"""The step of the events of jobs that wait for something outside the cluster."""

RUN_SCRIPT: Final = "run script"
"""The beginning of the steps of first-boot scripts, before the name that a user has chosen."""


class StepKind(enum.StrEnum):
    """The kind of a step."""

    REQUEST = "request"
    STATUS = "status"
    HEALTH = "health"
    JOB = "job"
    END = "end"
    WAIT = "wait"
    CLOUD = "cloud"
    MACHINE = "machine"
    DAEMONS = "daemons"
    FILES = "files"


_NAMED: Final = {
    REQUEST: StepKind.REQUEST,
    HEALTH: StepKind.HEALTH,
    JOB: StepKind.JOB,
    END: StepKind.END,
    **{status.value: StepKind.STATUS for status in ClusterStatus},
}
_DEEDS: Final = (
    (re.compile("create|change|delete|attach|allocate|associate|release|remove"), StepKind.CLOUD),
    (re.compile(f"log in|prepare|{RUN_SCRIPT}"), StepKind.MACHINE),
    (re.compile("start|stop"), StepKind.DAEMONS),
    (re.compile(r"wait|the |an? |[A-Z\d]"), StepKind.WAIT),
)
"""Beginning of a step -> its kind, in this order; a step with another beginning is of `FILES`."""


@lru_cache(maxsize=512)
def kind_of(step: str) -> StepKind:
    """The kind of `step`. A noun, such as `the resource manager`, names an answer to wait for."""
    if step in _NAMED:
        return _NAMED[step]
    return next((kind for words, kind in _DEEDS if words.match(step)), StepKind.FILES)
