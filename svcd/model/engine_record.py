"""The workflow engine's record of a job, as a typed value. Pure.

`Record.tree` is stored in the row and shown in `info`, after `svcd.workflow.decide.masking` has
masked it. All other code of svcd reads the typed fields: `Execution.engine_record`.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping
from functools import cached_property

from attrs import field, frozen

from svcd.model.ids import Timestamp, timestamp

_RETRIED = frozenset({"START_RETRY", "END_RETRY", "USER_RETRY"})
_MANUAL = frozenset({"START_MANUAL", "END_MANUAL"})
_WRONG = frozenset({"ERROR", "FAILED", "KILLED"})
_APPLICATION = re.compile(r"(?:application|job)_(\d+_\d+)\Z")


@frozen(kw_only=True)
class Action:
    """One node of the workflow. A text that the engine left out is "".

    external_id, child_ids: of YARN applications and map-reduce jobs; external_status: YARN's word.
    console_url: of the resource manager's page. started_on, ended_on: HTTP dates. ended: the
    engine gives an end time.
    """

    id: str = ""
    name: str = ""
    type: str = ""
    status: str = ""
    error_code: str = ""
    error_message: str = ""
    external_id: str = ""
    external_status: str = ""
    child_ids: tuple[str, ...] = ()
    console_url: str = ""
    started_on: str = ""
    ended_on: str = ""
    ended: bool = False

    @property
    def is_control(self) -> bool:
        """Whether the node is a start, end or kill node and the like, which does no work."""
        return self.type.startswith(":")

    @property
    def step(self) -> str:
        """The step that a `Failure` or a `Waiting` names."""
        return self.name or "workflow"

    @property
    def waits_for_a_person(self) -> bool:
        return self.status in _MANUAL

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers of its YARN applications, see `number_of`."""
        ids = (self.external_id, *self.child_ids)
        return frozenset(filter(None, map(number_of, ids)))


@frozen(kw_only=True)
class Record:
    """The engine's record of one job; all fields are empty before the engine has the job.

    tree: all that the engine sent, credentials masked. modified: as in the engine's batch list.
    created_on, started_on, ended_on: HTTP dates.
    """

    tree: Mapping[str, object] = field(factory=dict, repr=False)
    status: str = ""
    modified: str | None = None
    created_on: str = ""
    started_on: str = ""
    ended_on: str = ""
    actions: tuple[Action, ...] = ()

    @property
    def created(self) -> Timestamp | None:
        return moment_of(self.created_on)

    @property
    def started(self) -> Timestamp | None:
        return moment_of(self.started_on)

    @property
    def ended(self) -> Timestamp | None:
        return moment_of(self.ended_on)

    @property
    def gave_up(self) -> Action | None:
        """The action of a suspended workflow that waits for a person."""
        return next((a for a in self.actions if a.waits_for_a_person), None)

    @property
    def held(self) -> Action | None:
        """The action whose start or end the engine repeats."""
        retried = (a for a in self.actions if a.status in _RETRIED)
        return self.gave_up or next(retried, None)

    @cached_property
    def unlaunched(self) -> Action | None:
        """The action of a running workflow that no machine of the cluster has taken yet."""
        work = (a for a in self.actions if not a.is_control)
        return next((a for a in work if not a.ended and not a.external_id), None)

    @cached_property
    def launched(self) -> Action | None:
        """The action that the engine has handed to YARN and that runs there."""
        return next((a for a in self.actions if a.status == "RUNNING" and a.numbers), None)

    @cached_property
    def running(self) -> tuple[str, str] | None:
        """The id and the name of the action that runs in YARN."""
        action = self.launched
        return None if action is None else (action.id, action.name)

    @property
    def failed(self) -> Action | None:
        """The first action that failed; control nodes do not count."""
        work = (a for a in self.actions if not a.is_control)
        return next((a for a in work if a.status in _WRONG), None)

    @property
    def is_settled(self) -> bool:
        """Whether no action of an ended workflow has the status of a running one."""
        return all(a.ended for a in self.actions)


def parsed(tree: Mapping[str, object]) -> Record:
    """The record in `tree`. It lacks values of an unexpected type."""
    actions = tree.get("actions")
    modified = tree.get("lastModTime")
    return Record(
        tree=tree,
        status=text_in(tree, "status"),
        modified=modified if isinstance(modified, str) else None,
        created_on=text_in(tree, "createdTime"),
        started_on=text_in(tree, "startTime"),
        ended_on=text_in(tree, "endTime"),
        actions=tuple(
            _action(action)
            for action in (actions if isinstance(actions, list | tuple) else ())
            if isinstance(action, dict)
        ),
    )


def number_of(id_: str) -> str:
    """The number that a YARN application shares with its map-reduce job; "" for another id."""
    found = _APPLICATION.match(id_)
    return "" if found is None else found.group(1)


def moment_of(date: str) -> Timestamp | None:
    """An engine's HTTP date; None for a text that is no date."""
    parsed = email.utils.parsedate_tz(date)
    return None if parsed is None else timestamp(email.utils.mktime_tz(parsed))


def _action(tree: Mapping[str, object]) -> Action:
    children = (part.strip() for part in text_in(tree, "externalChildIDs").split(","))
    return Action(
        id=text_in(tree, "id"),
        name=text_in(tree, "name"),
        type=text_in(tree, "type"),
        status=text_in(tree, "status"),
        error_code=text_in(tree, "errorCode"),
        error_message=text_in(tree, "errorMessage"),
        external_id=text_in(tree, "externalId"),
        external_status=text_in(tree, "externalStatus"),
        child_ids=tuple(child for child in children if child),
        console_url=text_in(tree, "consoleUrl"),
        started_on=text_in(tree, "startTime"),
        ended_on=text_in(tree, "endTime"),
        ended=tree.get("endTime") is not None,
    )


def text_in(tree: Mapping[str, object], key: str) -> str:
    """The text at `key`, without white space around it; "" for any other value."""
    value = tree.get(key)
    return value.strip() if isinstance(value, str) else ""
