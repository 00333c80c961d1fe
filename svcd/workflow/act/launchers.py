"""Finds out whether a job's launcher died, and kills its children in YARN.

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

Source: Hadoop 3.5, ResourceManager REST APIs (applications, application state).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from twisted.internet.interfaces import IReactorTime

from svcd.model.engine_record import Action, Record
from svcd.model.job import Failure
from svcd.ports.engine import EngineError
from svcd.ports.faults import Fault
from svcd.ports.machines import Location, Probe, ProbeError
from svcd.runtime.tasks import sleep
from svcd.workflow.act.rows import Place
from svcd.workflow.act.yarn import ALIVE, CALL_S, applications_of, ask, below, manager_of
from svcd.workflow.decide.launchers import Sweep, died, lost, suspect
from svcd.workflow.decide.progress import is_program, submitter
from svcd.workflow.decide.stalls import SPARK, Application, tag_of

_LOOK_S: Final = 0.5
"""Time between two checks whether the children have ended."""
_LIVE: Final = frozenset(ALIVE.split(","))
_BUDGET_S: Final = 15.0
"""Time for killing all children of one launcher."""


class Launchers:
    """Asks the resource managers of clusters about launchers, and kills applications there."""

    def __init__(self, probe: Probe, clock: IReactorTime) -> None:
        self._probe = probe
        self._clock = clock

    async def settle(self, place: Place, record: Record) -> Failure | None:
        """The failure, once no child is left. None: the launcher did not die, or is not known.

        record: of a workflow that has ended. Takes at most half a minute. Safe to repeat.
        """
        action = suspect(record)
        if action is None:
            return None
        base = self._manager(place, action)
        if base is None:
            return None
        try:
            application = (await ask(self._probe, base, f"apps/{action.external_id}")).get("app")
        except ProbeError:
            return None
        if not isinstance(application, dict) or not died(application):
            return None
        sweep = await self._sweep(base, tag_of(action.id), place.endpoints.user)
        return lost(action, str(application.get("diagnostics") or ""), sweep)

    async def children(self, place: Place, record: Record) -> Sequence[Application] | None:
        """The Spark applications of the job's action, ended ones too. None: not known."""
        action = submitter(record)
        base = None if action is None else self._manager(place, action)
        if action is None or base is None:
            return ()
        query = f"apps?applicationTags={tag_of(action.id)}&applicationTypes={SPARK}"
        try:
            found = applications_of(await ask(self._probe, base, query))
        except ProbeError:
            return None
        return None if found is None else [a for a in found if is_program(action, a)]

    async def end_children(self, place: Place, record: Record) -> Sequence[str]:
        """Kill the Spark applications of a job that has ended, and return the ids of all.

        A cancel may come at the moment of a submit, before the engine sees the application. Raises
        EngineError when svcd cannot ask, or when one still runs.
        """
        found = await self.children(place, record)
        if found is None:
            raise EngineError(Fault.UNREACHABLE, "the resource manager does not answer")
        action = submitter(record)
        base = None if action is None else self._manager(place, action)
        if action is not None and base is not None and any(a.state in _LIVE for a in found):
            sweep = await self._sweep(base, tag_of(action.id), place.endpoints.user)
            if sweep.left is None or sweep.left:
                raise EngineError(Fault.UNREACHABLE, f"applications still run: {sweep.reason}")
        return [a.id for a in found]

    def _manager(self, place: Place, action: Action) -> Location | None:
        host = place.endpoints.resource_manager.rpartition(":")[0]
        return place.at(manager_of(action.console_url, host))

    async def _sweep(self, base: Location, tag: str, user: str) -> Sweep:
        """Kill all applications with the tag, and wait until they have ended."""
        until = self._clock.seconds() + _BUDGET_S
        begun: dict[str, None] = {}
        while True:
            alive, reason = await self._kill_all(base, tag, user)
            begun.update(dict.fromkeys(alive or ()))
            if alive is not None and not alive:
                return Sweep(killed=list(begun))
            if self._clock.seconds() >= until:
                gone = [id_ for id_ in begun if alive is not None and id_ not in alive]
                return Sweep(killed=gone, left=alive, reason=reason)
            await sleep(self._clock, _LOOK_S)

    async def _kill_all(
        self, base: Location, tag: str, user: str
    ) -> tuple[Sequence[str] | None, str]:
        """The applications that were alive (None: not known), and why they may still be alive."""
        try:
            found = applications_of(
                await ask(self._probe, base, f"apps?applicationTags={tag}&states={ALIVE}")
            )
            if found is None:
                return None, "the resource manager does not list its applications"
            alive = [each.id for each in found if tag in each.tags]
            reason = "YARN has not ended them in time"
            for id_ in alive:
                at = below(base, f"apps/{id_}/state?user.name={quote(user)}")
                status = await self._probe.put(at, b'{"state": "KILLED"}', CALL_S)
                if status >= 400:
                    reason = f"the resource manager refuses to kill them: HTTP {status}"
            return alive, reason
        except ProbeError as error:
            return None, f"the resource manager does not answer: {error.text}"
