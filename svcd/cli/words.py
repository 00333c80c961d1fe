"""Turns words of the API into words for people: advice, steps of clusters, statuses of jobs. Pure.

Note: advice. The API's texts are for all its callers, so their advice names requests. A person at a
terminal needs the command that sends the request.

Note: KILLED. The API keeps the engine's words for statuses of jobs. Commands show people how a job
ended (`svcd.model.execution_outcome`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from svcd.model.execution_outcome import ExecutionOutcome, outcome_of
from svcd.model.failures import EMPTY_RESIZE

_WORDS: Final = (
    (re.compile(r"register it by POST images/(\S+)"),
     r"svcd image register \1 --user LOGIN registers it"),
    (re.compile(re.escape(EMPTY_RESIZE)), "svcd cluster retry"),
    (re.compile(r"in the params of job_configs"), "with svcd run -p NAME=VALUE"),
    (re.compile(r"(use|delete it with) force=true"), "use svcd cluster rm --force"),
    (re.compile(r"the header X-Auth-Token is missing: get a token from the identity service"),
     "the daemon accepts only requests with a login"),
    (re.compile(r"\b(GET|POST|PUT|DELETE) /v1\S+ needs one of"), "this command needs one of"),
    (re.compile(r"(?m)^\$\.((idle_delete_s|max_age_s|keep_until)|\S*\.init_scripts): unknown.*"),
     r"\1: the daemon is older than this command and has no such field: upgrade it"),
    (re.compile(r"^\$(\.|: )", re.M), ""),
)  # fmt: skip
"""Words of the API, and those of the command line."""


def in_commands(text: str) -> str:
    """`text` with the commands in the place of the requests that it names."""
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text


def in_one_line(text: str) -> str:
    """`text`, which has a fault in each line, as one line."""
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


# ---- steps of clusters --------------------------------------------------------------------------


def step_title(event: Mapping[str, Any]) -> str:
    """The step of an event with a verb: `wait for Oozie` where the API has `Oozie`."""
    step = str(event["step"])
    is_thing = event["kind"] == "wait" and not step.startswith("wait ")
    return f"wait for {step}" if is_thing else step


# ---- statuses of jobs ---------------------------------------------------------------------------

_AS_THE_ENGINE: Final = (ExecutionOutcome.GOING_ON, ExecutionOutcome.SUCCEEDED)


def status_of(execution: Mapping[str, Any]) -> str:
    """The status: of the engine, or `failed`, `cancelled` (a request to svcd), or `killed`."""
    info = execution.get("info") or {}
    status, failure = str(info.get("status") or ""), info.get("failure") or None
    return status_word(status, outcome_of(status, failure and str(failure.get("code"))))


def status_word(status: str, outcome: str) -> str:
    """The status for people of an execution that the API gives this status and outcome."""
    return status if outcome in _AS_THE_ENGINE else str(outcome)
