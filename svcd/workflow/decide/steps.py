"""Steps that the planners can plan, and their outcomes. Values only.

Every step is safe to repeat.
"""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from svcd.model.failures import Code
from svcd.model.job import ExecutionStatus, Failure


@frozen(kw_only=True)
class Outage:
    """An engine has not answered since `since`; at `until` its executions fail. Epoch seconds."""

    since: float
    until: float
    text: str


# ---- steps --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Rest:
    """No step is due. wait_s: plan again after this time; None: after the next wake."""

    wait_s: float | None = None


@frozen(kw_only=True)
class End:
    """End the execution without the engine."""

    status: ExecutionStatus
    failure: Failure | None = None


@frozen(kw_only=True)
class Start:
    """Stage everything into `folder` unless that is done, then submit."""

    folder: str
    stage: bool


@frozen(kw_only=True)
class FindJob:
    """Ask the engine for a job of this execution.

    early: the submit may still be under way, so that the engine's "no" proves nothing.
    """

    early: bool = False


@frozen(kw_only=True)
class RemoveDefinition:
    """Remove the folder of a submit, so that the engine cannot run it any more."""

    folder: str | None


@frozen(kw_only=True)
class Adopt:
    """Follow the job: the engine has taken this submit."""

    job_id: str


@frozen(kw_only=True)
class KillLate:
    """Kill a job that the engine took after svcd gave up the execution or removed its files."""

    job_id: str


@frozen(kw_only=True)
class Forget:
    """Forget the submit: no engine is left that could run it."""


@frozen(kw_only=True)
class Again:
    """Plan anew without the submit: it can make no job any more."""


@frozen(kw_only=True)
class ReadRecord:
    """Read the engine's whole record of the job, and write the changes."""


@frozen(kw_only=True)
class KillJob:
    """Kill the job at its engine, then read its record."""


@frozen(kw_only=True)
class Condemn:
    """Write the reason for which the job would never end, then kill the job."""

    failure: Failure


@frozen(kw_only=True)
class MarkOutage:
    """Write that the engine does not answer; end the execution after the deadline."""

    outage: Outage


@frozen(kw_only=True)
class TidyUp:
    """After the end: keep log and record, delete the folder and the login."""


# ---- outcomes -----------------------------------------------------------------------------------


@frozen(kw_only=True)
class Done:
    """The step is done, or the row does not want it any more."""


@frozen(kw_only=True)
class Found:
    """The engine has the job."""

    job_id: str


@frozen(kw_only=True)
class Denied:
    """The engine answers that it does not know the job."""


@frozen(kw_only=True)
class Lost:
    """The engine no longer knows a job that it has run."""


@frozen(kw_only=True)
class Retry:
    """A passing fault. code, step, text: of the failure if no try succeeds in time.

    least_s: the shortest wait before the next try. unsent: the engine has not read the submit.
    """

    code: Code
    step: str
    text: str
    least_s: float = 0.0
    unsent: bool = False


@frozen(kw_only=True)
class Fail:
    """The execution cannot be started, now or ever."""

    failure: Failure


RemoteStep: TypeAlias = Start | FindJob | RemoveDefinition | KillLate
"""Steps of a submit that svcd performs at the cluster."""
EngineStep: TypeAlias = ReadRecord | KillJob | Condemn
"""Steps at the engine of a job that it runs."""
Step: TypeAlias = (
    RemoteStep | EngineStep | Rest | End | Adopt | Forget | Again | Retry | MarkOutage | TidyUp
)
Outcome: TypeAlias = Done | Found | Denied | Retry | Fail
