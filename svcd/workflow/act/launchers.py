"""Finds out whether a job's launcher died, and kills in YARN what it had begun.

Oozie begins each job by a launcher, an application of YARN that begins the job's own ones, its
children. When its JVM dies, Oozie fails the action and leaves the children alone.

Note: never left behind. A launcher has one attempt (see `document`), so nothing new is begun. The
children are found by the tag that Oozie gives them. A program of a Shell job that submits by itself
leaves the tag out: such a child is not found here. Nothing is done for a job whose launcher has
ended as it should: a map-reduce job outlives its launcher.

Note: what the engine says is no proof. It has no word for a dead launcher, with one exception: of a
map-reduce job whose launcher died right after it had submitted, Oozie follows the child to its end
and then fails the action by an error of its own (NullPointerException). So YARN is asked about the
launcher of each action that failed.

Source: Hadoop 3.5, ResourceManager REST APIs (applications, application state).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from twisted.internet.interfaces import IReactorTime

from svcd.model import foreign
from svcd.model.cluster import Cluster
from svcd.model.job import Failure
from svcd.ports.machines import Probe, ProbeError
from svcd.runtime.tasks import sleep
from svcd.workflow.act.yarn import ALIVE, applications_of, manager_of
from svcd.workflow.decide.addresses import addresses_of, reachable
from svcd.workflow.decide.launchers import Sweep, died, lost, suspect
from svcd.workflow.decide.record import Record
from svcd.workflow.decide.stalls import tag_of
from svcd.workflow.engines import Endpoints

_CALL_S: Final = 5.0
_LOOK_S: Final = 0.5
_BUDGET_S: Final = 15.0


class Launchers:
    """Asks the resource managers of clusters, and kills there."""

    def __init__(self, probe: Probe, clock: IReactorTime) -> None:
        self._probe = probe
        self._clock = clock

    async def settle(
        self, cluster: Cluster, endpoints: Endpoints, record: Record
    ) -> Failure | None:
        """The failure, once no child is left; None: the launcher did not die, or it is not known.

        record: of a workflow that has ended. In half a minute at most. Safe to repeat.
        """
        action = suspect(record)
        if action is None:
            return None
        host = endpoints.resource_manager.rpartition(":")[0]
        manager = manager_of(action.console_url, host)
        base = reachable(manager, addresses_of(cluster, endpoints))
        if base is None:
            return None
        apps = f"{base}/ws/v1/cluster/apps"
        try:
            application = (await self._ask(f"{apps}/{action.external_id}")).get("app")
        except ProbeError:
            return None
        if not isinstance(application, dict) or not died(application):
            return None
        sweep = await self._sweep(apps, tag_of(action.id), endpoints.user)
        return lost(action, str(application.get("diagnostics") or ""), sweep)

    async def _sweep(self, apps: str, tag: str, user: str) -> Sweep:
        """Kill all that have the tag, and see them end."""
        until = self._clock.seconds() + _BUDGET_S
        begun: dict[str, None] = {}
        while True:
            alive, reason = await self._kill_all(apps, tag, user)
            begun.update(dict.fromkeys(alive or ()))
            if alive is not None and not alive:
                return Sweep(killed=list(begun))
            if self._clock.seconds() >= until:
                gone = [id_ for id_ in begun if alive is not None and id_ not in alive]
                return Sweep(killed=gone, left=alive, reason=reason)
            await sleep(self._clock, _LOOK_S)

    async def _kill_all(self, apps: str, tag: str, user: str) -> tuple[Sequence[str] | None, str]:
        """Those that were alive, None when that is not known; and why they may go on to be."""
        try:
            found = applications_of(await self._ask(f"{apps}?applicationTags={tag}&states={ALIVE}"))
            if found is None:
                return None, "the resource manager does not tell its applications"
            alive = [each.id for each in found if tag in each.tags]
            reason = "YARN has not ended them in time"
            for id_ in alive:
                url = f"{apps}/{id_}/state?user.name={quote(user)}"
                status = await self._probe.put(url, b'{"state": "KILLED"}', _CALL_S)
                if status >= 400:
                    reason = f"the resource manager refuses to kill them: HTTP {status}"
            return alive, reason
        except ProbeError as error:
            return None, f"the resource manager does not answer: {error.text}"

    async def _ask(self, url: str) -> Mapping[str, object]:
        status, body = await self._probe.get(url, _CALL_S)
        if status != 200:
            return {}
        try:
            tree = foreign.loads(body)
        except ValueError:
            return {}
        return tree if isinstance(tree, dict) else {}
