"""A job whose launcher died: what it had begun is killed in YARN, then the job has failed.

Oozie begins each job by a launcher, an application of YARN that begins the job's own ones, its
children. When its JVM dies, Oozie fails the action without a word and leaves the children alone.

Note: never left behind. A launcher has one attempt (see `document`), so nothing new is begun. The
children are found by the tag that Oozie gives them. A program of a Shell job that submits by itself
may leave the tag out: such a child is not found here. Nothing is done for a job whose launcher has
ended as it should: a map-reduce job outlives its launcher. Oozie follows the child of one that died
later than it had submitted, and then the action ends as the child does.

Source: Hadoop 3.5, ResourceManager REST APIs (applications, application state).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from svcd.model import foreign
from svcd.model.cluster import Cluster
from svcd.model.job import Failure
from svcd.ports import Probe, ProbeError
from svcd.tasks import sleep
from svcd.workflow import failures
from svcd.workflow.addresses import addresses_of, reachable
from svcd.workflow.engines import Endpoints
from svcd.workflow.failures import Code
from svcd.workflow.manager import ALIVE, applications_of, manager_of, tag_of

_CALL_S: Final = 5.0
_LOOK_S: Final = 0.5
_BUDGET_S: Final = 15.0
_APPLICATION: Final = re.compile(r"application_\d+_\d+\Z")
_DEAD: Final = frozenset({"FAILED", "KILLED"})
_MOST_WORDS: Final = 400


@frozen(kw_only=True)
class Sweep:
    """What was found and done, in ids of YARN.

    left: those that still run, None when that is not known; reason: why either is so.
    """

    killed: Sequence[str] = ()
    left: Sequence[str] | None = ()
    reason: str = ""


def suspect(record: Mapping[str, object]) -> Mapping[str, object] | None:
    """The action that failed and of whose launcher there is no word, or None."""
    action = failures.failed_action(record)
    if action is None or action.get("status") != "ERROR":
        return None
    if action.get("errorCode") or action.get("errorMessage"):
        return None
    return action if _APPLICATION.match(str(action.get("externalId") or "")) else None


def died(application: Mapping[str, object]) -> bool:
    """Whether YARN ended the launcher; one that ends by itself is FINISHED, with any result."""
    return application.get("state") in _DEAD


def lost(action: Mapping[str, object], diagnostics: str, sweep: Sweep) -> Failure:
    """The failure of a job whose launcher died. diagnostics: what YARN says of it."""
    words = " ".join(diagnostics.split())[:_MOST_WORDS] or "YARN gives no reason"
    text = f"the launcher {action.get('externalId')} died: {words}"
    if sweep.killed:
        text += f"; of what it had begun, killed: {', '.join(sweep.killed)}"
    if sweep.left is None:
        text += f"; whether more of it runs is not known ({sweep.reason})"
    elif sweep.left:
        text += f"; still running: {', '.join(sweep.left)} ({sweep.reason})"
    return failures.failure(Code.LAUNCHER_LOST, str(action.get("name") or "workflow"), text)


class Launchers:
    """Asks the resource managers of clusters, and kills there."""

    def __init__(self, probe: Probe, clock: IReactorTime) -> None:
        self._probe = probe
        self._clock = clock

    async def settle(
        self, cluster: Cluster, endpoints: Endpoints, record: Mapping[str, object]
    ) -> Failure | None:
        """The failure, once no child is left; None: the launcher did not die, or nobody knows.

        record: of a workflow that has ended. In half a minute at most. Safe to repeat.
        """
        action = suspect(record)
        if action is None:
            return None
        host = endpoints.resource_manager.rpartition(":")[0]
        manager = manager_of(str(action.get("consoleUrl") or ""), host)
        base = reachable(manager, addresses_of(cluster, endpoints))
        if base is None:
            return None
        apps = f"{base}/ws/v1/cluster/apps"
        try:
            application = (await self._ask(f"{apps}/{action['externalId']}")).get("app")
        except ProbeError:
            return None
        if not isinstance(application, dict) or not died(application):
            return None
        sweep = await self._sweep(apps, tag_of(str(action.get("id") or "")), endpoints.user)
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
