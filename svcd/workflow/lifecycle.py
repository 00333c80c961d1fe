"""The states of a job execution and the moves between them. Pure.

`Pending` is ours, the rest are the engine's words passed through. The engine's answers may be late
or come twice, so a move that is not in the table is ignored, never an error; a terminal state is
never left, whoever asks. Thereby a cancel and a status tick cannot overwrite each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve

from svcd.model.ids import Timestamp
from svcd.model.job import Execution, ExecutionStatus, Failure

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
"""From each state, the states it can be left for."""

_WORDS: Final[Mapping[str, ExecutionStatus]] = {
    **{status.value: status for status in _S if status is not _S.PENDING},
    "PREPSUSPENDED": _S.SUSPENDED,
    "DONEWITHERROR": _S.FAILED,
}


def status_of(word: object) -> ExecutionStatus | None:
    """The status an engine's word stands for; None for a word that is not known."""
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
) -> Execution:
    """`execution` after news of it; the same object when there is nothing new.

    now: becomes `updated_at`, and `end_time` of an end whose moment `ended` is not known. started
    and ended count once: a later value does not replace an earlier one. record: None keeps the one
    there is. No end comes before its start, though the engine's clock may differ from ours.
    failure: kept only by a move into `KILLED` or `FAILED`. With the end all waiting and
    all doubt about the submit end too.
    """
    moves = can_move(execution.status, status)
    if not moves and status is not execution.status:
        return execution
    if not moves and is_over(execution):
        return execution
    over = status in TERMINAL
    start = execution.start_time or started
    after = evolve(
        execution,
        status=status,
        record=execution.record if record is None else record,
        start_time=start,
        end_time=(execution.end_time or _latest(ended or now, start)) if over else None,
        failure=None if status is _S.SUCCEEDED else failure if over else execution.failure,
        suspended_since=execution.suspended_since if status is _S.SUSPENDED else None,
        waiting=None if over else execution.waiting,
        submitting=execution.submitting and not over,
        doubt=None if over else execution.doubt,
    )
    return execution if after == execution else evolve(after, updated_at=now)


def _latest(moment: Timestamp, other: Timestamp | None) -> Timestamp:
    return moment if other is None else max(moment, other)
