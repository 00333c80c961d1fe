"""What the planners can ask for (steps) and what comes of it (outcomes). Values only.

Every step is safe to repeat.
"""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from svcd.model.job import ExecutionStatus, Failure
from svcd.workflow.decide.failures import Code

# ---- steps --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Rest:
    """Nothing to do now. wait_s: plan again after this time; None: something will wake it."""

    wait_s: float | None = None


@frozen(kw_only=True)
class End:
    """The execution ends without the engine."""

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

    early: the submit may still be under way, so that the engine's no proves nothing.
    """

    early: bool = False


@frozen(kw_only=True)
class RemoveDefinition:
    """Remove the folder of a submit, so that the engine cannot run it any more."""

    folder: str | None


@frozen(kw_only=True)
class Adopt:
    """The engine has the job of this submit: follow it."""

    job_id: str


@frozen(kw_only=True)
class KillLate:
    """The engine took the submit after the execution was given up, or its files had gone."""

    job_id: str


@frozen(kw_only=True)
class Forget:
    """No engine is left that could run the submit."""


@frozen(kw_only=True)
class Again:
    """The submit makes no job any more: plan anew, as if it had not been."""


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
class Retry:
    """A passing fault. code, step, text: of the failure if there is no success in time.

    least_s: wait that long at least. unsent: the engine has not looked at the submit.
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
"""Performed at the cluster."""
Step: TypeAlias = RemoteStep | Rest | End | Adopt | Forget | Again | Retry
Outcome: TypeAlias = Done | Found | Denied | Retry | Fail
