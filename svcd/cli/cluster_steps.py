"""How the steps of a cluster's events are named to people. Pure; imports nothing heavy."""

from __future__ import annotations

import re
from typing import Final

PHASES: Final = frozenset(
    {
        *("Waiting", "Validating", "Spawning", "Preparing", "Configuring", "Starting"),
        *("Decommissioning", "Active", "Deleting", "Error"),
    }
)
"""The statuses of clusters, which are steps of events too."""
_AWAITED: Final = re.compile(r"(the |an? |[A-Z])")
"""The beginning of a step that is an answer for which svcd waits: `the resource manager`."""


def is_phase(step: str) -> bool:
    """Whether the step of an event is a status of the cluster."""
    return step in PHASES


def step_title(step: str) -> str:
    """The step as a deed: `wait for Oozie` where the API has `Oozie`."""
    return f"wait for {step}" if _AWAITED.match(step) and not is_phase(step) else step
