"""A job whose launcher died: how svcd recognizes it, and the failure it has. Pure.

Oozie starts each job by a launcher. The launcher is an application of YARN that starts the job's
own applications, its children. When its JVM dies, Oozie fails the action and leaves the children
alone.

Note: never left behind. A launcher has one attempt (see `document`), so a dead one starts no new
children. svcd finds the children by the tag that Oozie gives them. It does not find the children of
a Shell job whose program submits by itself, without the tag. svcd kills nothing of a job whose
launcher has ended normally: a map-reduce job outlives its launcher.

Note: the engine's status is no proof. Oozie has no status for a dead launcher. When the launcher of
a map-reduce job dies right after its submit, Oozie even follows the child to its end, and then
fails the action with an error of its own (NullPointerException). So svcd asks YARN about the
launcher of each failed action.

`act.yarn` asks YARN, and kills the children of the launcher.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from attrs import frozen

from svcd.model.engine_record import Action, Record
from svcd.model.failures import Code
from svcd.model.job import Failure
from svcd.workflow.decide import causes, failures
from svcd.workflow.decide.excerpts import yarn_cause
from svcd.workflow.decide.stalls import Application

_APPLICATION: Final = re.compile(r"application_\d{1,20}_\d{1,20}\Z", re.ASCII)
_DEAD: Final = frozenset({"FAILED", "KILLED"})
_MOST_WORDS: Final = 400
"""Characters of YARN's diagnostics in a failure."""


@frozen(kw_only=True)
class Family:
    """The applications of an action. launcher: None: there is none, or YARN does not know it.

    children: they carry the tag of the action. silent: why YARN does not tell of the launcher.
    """

    launcher: Application | None = None
    children: Sequence[Application] = ()
    silent: str = ""


@frozen(kw_only=True)
class Sweep:
    """The result of killing children, in ids of YARN.

    left: the children that still run, None when not known. reason: why they run or are not known.
    """

    killed: Sequence[str] = ()
    left: Sequence[str] | None = ()
    reason: str = ""


def suspect(record: Record) -> Action | None:
    """The action that failed, unless it was killed or never had a launcher; else None."""
    action = record.failed
    if action is None or action.status == "KILLED":
        return None
    return action if is_application(action.external_id) else None


def is_application(id_: str) -> bool:
    """Whether the id is that of an application of YARN."""
    return _APPLICATION.match(id_) is not None


def died(state: str) -> bool:
    """Whether YARN ended the launcher; one that ends by itself is FINISHED, with any result."""
    return state in _DEAD


def lost(action: Action, diagnostics: str, sweep: Sweep) -> Failure:
    """The failure of a job whose launcher died. diagnostics: YARN's text.

    A cause that YARN knows has its own code: the launcher is innocent then.
    """
    cause = yarn_cause(diagnostics)
    found = causes.by_text(cause)
    code = found if found in causes.OF_YARN else Code.LAUNCHER_LOST
    words = " ".join(diagnostics.split())[:_MOST_WORDS] or "YARN gives no reason"
    text = f"the launcher {action.external_id} died: {words}"
    if code is not Code.LAUNCHER_LOST:
        text = cause
    if sweep.killed:
        text += f"; svcd killed its children {', '.join(sweep.killed)}"
    if sweep.left is None:
        text += f"; whether more of it runs is not known ({sweep.reason})"
    elif sweep.left:
        text += f"; still running: {', '.join(sweep.left)} ({sweep.reason})"
    return failures.failure(code, action.step, text)
