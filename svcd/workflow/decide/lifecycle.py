"""The states of a job execution, those of its submit, and the moves between them. Pure.

`Pending` is svcd's own state; the other states are those of the engine. The engine's answers may be
late or come twice, so svcd ignores a move that is not in the table, and it is no error. No move
leads out of a terminal state. So a cancel and a status tick cannot overwrite each other.

Note: the submit. It has its own state, which `submit_of` reads from the row, so that a restart
finds it. svcd writes `SEND` before the call. From then on the engine may have a job that svcd does
not know, and only the moves below resolve this.

    IDLE --send--> SENT --deny--> DENIED --fence--> FENCED --clear--> IDLE
      ^             | ^              |               |  ^
      |             | +---silence----+       silence |  | deny
      +--turn away--+                                v  |
                    |                             UNHEARD
                    +--take--> TAKEN (from each state)

The end of an execution (`END`) ends its submit too, with one exception: when svcd gives up an
execution before the state of its submit is known, the same moves continue until it is known
(`give_up`), also after a restart.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from svcd.model.ids import Timestamp, timestamp
from svcd.model.job import Doubt, Execution, ExecutionStatus, Failure, Waiting

_S = ExecutionStatus

TERMINAL: Final = frozenset({_S.SUCCEEDED, _S.KILLED, _S.FAILED})

MOVES: Final[Mapping[ExecutionStatus, frozenset[ExecutionStatus]]] = {
    _S.PENDING: frozenset({_S.PREP, _S.RUNNING, _S.SUSPENDED, *TERMINAL}),
    _S.PREP: frozenset({_S.RUNNING, _S.SUSPENDED, *TERMINAL}),
    _S.RUNNING: frozenset({_S.SUSPENDED, *TERMINAL}),
    _S.SUSPENDED: frozenset({_S.RUNNING, *TERMINAL}),
    _S.SUCCEEDED: frozenset(),
    _S.KILLED: frozenset(),
    _S.FAILED: frozenset(),
}
"""From each state, the states that may follow."""


class Submit(enum.StrEnum):
    """The state of an execution's submit."""

    IDLE = "idle"  # no submit is under way
    SENT = "sent"  # the call is under way, or its answer was lost
    DENIED = "denied"  # the engine answers that it does not know the job
    FENCED = "fenced"  # the same, after the definition was removed
    UNHEARD = "unheard"  # the definition was removed, then the engine did not answer
    TAKEN = "taken"  # the engine's job is known


class Move(enum.StrEnum):
    """The events that can change the state of a submit."""

    SEND = "send"
    TURN_AWAY = "turn away"  # the call did not leave, or the engine was too busy to read it
    TAKE = "take"  # the engine has the job
    DENY = "deny"  # the engine says that it has no such job
    SILENCE = "silence"  # the engine does not answer the question for the job
    FENCE = "fence"  # the definition was removed: a late submit cannot run any more
    CLEAR = "clear"  # it is sure that the submit makes no job any more
    END = "end"  # the execution has ended


SUBMITS: Final[Mapping[Submit, Mapping[Move, Submit]]] = {
    # taken while idle: the execution was ended while the call was under way
    Submit.IDLE: {Move.SEND: Submit.SENT, Move.TAKE: Submit.TAKEN},
    Submit.SENT: {
        Move.TURN_AWAY: Submit.IDLE,
        Move.TAKE: Submit.TAKEN,
        Move.DENY: Submit.DENIED,
        Move.END: Submit.IDLE,
    },
    Submit.DENIED: {
        Move.TAKE: Submit.TAKEN,
        Move.SILENCE: Submit.SENT,
        Move.FENCE: Submit.FENCED,
        Move.END: Submit.IDLE,
    },
    Submit.FENCED: {
        Move.TAKE: Submit.TAKEN,
        Move.SILENCE: Submit.UNHEARD,
        Move.CLEAR: Submit.IDLE,
        Move.END: Submit.IDLE,
    },
    Submit.UNHEARD: {Move.TAKE: Submit.TAKEN, Move.DENY: Submit.FENCED, Move.END: Submit.IDLE},
    Submit.TAKEN: {},
}
"""State -> move -> next state of a submit. svcd ignores a move that is missing."""

_WORDS: Final[Mapping[str, ExecutionStatus]] = {
    **{status.value: status for status in _S if status is not _S.PENDING},
    "PREPSUSPENDED": _S.SUSPENDED,
    "DONEWITHERROR": _S.FAILED,
}


def status_of(word: object) -> ExecutionStatus | None:
    """The status for an engine's status word; None for an unknown word."""
    return _WORDS.get(word) if isinstance(word, str) else None


def can_move(before: ExecutionStatus, after: ExecutionStatus) -> bool:
    """Whether `after` may follow `before`. A state does not follow itself."""
    return after in MOVES[before]


def is_over(execution: Execution) -> bool:
    """Whether the execution has ended."""
    return execution.status in TERMINAL


def advance(
    execution: Execution,
    status: ExecutionStatus,
    now: Timestamp,
    *,
    record: Mapping[str, object] | None = None,
    started: Timestamp | None = None,
    ended: Timestamp | None = None,
    failure: Failure | None = None,
    return_code: int | None = None,
) -> Execution:
    """`execution` after an answer of the engine; the same object when nothing changes.

    now: becomes `updated_at`, and `end_time` of an end whose moment `ended` is not known. started
    and ended count once: a later value does not replace an earlier one. record: None keeps the one
    there is. No end comes before its start, though the engine's clock may differ from ours.
    failure, return_code: kept only by a move into `KILLED` or `FAILED`. With the end all waiting
    and all doubt about the submit end too.
    """
    moves = can_move(execution.status, status)
    if not moves and status is not execution.status:
        return execution
    if not moves and is_over(execution):
        return execution
    over = status in TERMINAL
    succeeded = status is _S.SUCCEEDED
    start = execution.start_time or started
    after = evolve(
        execution,
        status=status,
        record=execution.record if record is None else record,
        start_time=start,
        end_time=(execution.end_time or _latest(ended or now, start)) if over else None,
        failure=None if succeeded else failure if over else execution.failure,
        return_code=0 if succeeded else return_code if over else None,
        progress=1.0 if succeeded else execution.progress,
        suspended_since=execution.suspended_since if status is _S.SUSPENDED else None,
        waiting=None if over else execution.waiting,
        submitting=execution.submitting and not over,
        doubt=None if over else execution.doubt,
    )
    return execution if after == execution else evolve(after, updated_at=now)


def failed(execution: Execution, failure: Failure, now: Timestamp) -> Execution:
    """`execution` after its end by a failure, which is a kill when a cancel was requested."""
    if execution.cancel_requested:
        return advance(execution, _S.KILLED, now)
    return advance(execution, _S.FAILED, now, failure=failure)


def wished(execution: Execution, delete: bool, now: Timestamp) -> Execution:
    """`execution` after a cancel or a delete. One that was never submitted ends at once."""
    if delete:
        execution = evolve(execution, delete_requested=True)
    if is_over(execution):
        return execution
    execution = evolve(execution, cancel_requested=True)
    if execution.workflow_job_id is None and not execution.submitting:
        return advance(execution, _S.KILLED, now)
    return execution


def is_tidy(execution: Execution) -> bool:
    """Whether no work is left: the execution and its submit have ended, and the folder is gone."""
    return is_over(execution) and not execution.submitting and execution.workflow_dir is None


def waiting_for(
    execution: Execution, failure: Failure, now: Timestamp, until: Timestamp | None
) -> Waiting:
    """The wait that the row shows. The same wait keeps its beginning."""
    before = execution.waiting
    same = before is not None and (before.code, before.step) == (failure.code, failure.step)
    since = before.since if before is not None and same else now
    return Waiting(
        code=failure.code, step=failure.step, text=failure.text, since=since, until=until
    )


def _latest(moment: Timestamp, other: Timestamp | None) -> Timestamp:
    return moment if other is None else max(moment, other)


# ---- the submit ---------------------------------------------------------------------------------


def submit_of(execution: Execution) -> Submit:
    """The state of the submit that the row shows."""
    if execution.workflow_job_id is not None:
        return Submit.TAKEN
    if not execution.submitting:
        return Submit.IDLE
    doubt = execution.doubt or Doubt()
    if doubt.fenced_at is None:
        return Submit.SENT if doubt.denied_at is None else Submit.DENIED
    return Submit.UNHEARD if doubt.denied_at is None else Submit.FENCED


def submit_move(execution: Execution, move: Move, now: float, **fields: Any) -> Execution:
    """`execution` after `move`; the same object when its submit's state does not have it.

    now: when it happened. fields: others of the row to write with it.
    """
    if move not in SUBMITS[submit_of(execution)]:
        return execution
    doubt = execution.doubt or Doubt()
    match move:
        case Move.SEND:
            submit: dict[str, Any] = {"submitting": True, "doubt": None}
        case Move.DENY:
            submit = {"doubt": evolve(doubt, denied_at=timestamp(now))}
        case Move.SILENCE:
            submit = {"doubt": evolve(doubt, denied_at=None)}
        case Move.FENCE:
            submit = {"doubt": evolve(doubt, fenced_at=timestamp(now))}
        case Move.TURN_AWAY | Move.TAKE | Move.CLEAR | Move.END:
            submit = {"submitting": False, "doubt": None}
    if move is Move.CLEAR:  # the folder has gone
        submit |= {"staged": False, "workflow_dir": None, "retry_at": None}
    return evolve(execution, **{**submit, **fields})


def give_up(
    execution: Execution, failure: Failure, now: Timestamp, watch_until: Timestamp
) -> Execution:
    """End the execution. Its submit keeps its state; svcd watches it until `watch_until`."""
    if is_over(execution):
        return execution
    over = evolve(failed(execution, failure, now), retry_at=None)
    if not execution.submitting:
        return over
    doubt = evolve(execution.doubt or Doubt(), watch_until=watch_until)
    return evolve(over, submitting=True, doubt=doubt, attempts=0)
