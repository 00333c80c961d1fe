"""Asks a cluster's ResourceManager about its nodes and its applications, and kills applications.

A value that the answers lack stays unknown. Decides nothing: see `decide.stalls` for steps that run
without a change, and `decide.launchers` for a job whose launcher died.

Source: Hadoop 3.5, ResourceManager REST APIs (metrics, nodes, applications, application state).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

from attrs import evolve
from twisted.internet.interfaces import IReactorTime

from svcd.model import foreign
from svcd.model.cluster import Cluster
from svcd.model.engine_record import Action, Record
from svcd.model.job import Failure
from svcd.ports.engine import EngineError
from svcd.ports.faults import Fault
from svcd.ports.machines import Location, Probe, ProbeError
from svcd.runtime.tasks import sleep
from svcd.workflow.act.rows import Place
from svcd.workflow.decide.launchers import Family, Sweep, died, is_application, lost, suspect
from svcd.workflow.decide.progress import is_program, submitter
from svcd.workflow.decide.stalls import Application, ClusterMetrics, Node, is_alone, tag_of

MOST_APPLICATIONS: Final = 500
"""Applications in one answer."""
CALL_S: Final = 5.0
"""Time-out of one request."""
_PORT: Final = 8088
ALIVE: Final = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
"""States of an application that has not ended."""
_APPS: Final = (
    f"apps?states={ALIVE}&limit={MOST_APPLICATIONS}&deSelects=resourceRequests,resourceInfo"
)
_WORKING: Final = frozenset({"NEW", "RUNNING", "DECOMMISSIONING"})
_MOST_ALONE: Final = 5
"""Applications for whose missing containers one round asks."""
_MOST_REPORT: Final = 300
"""Characters of a node's health report that svcd keeps."""
_LOOK_S: Final = 0.5
"""Time between two checks whether the children have ended."""
_LIVE: Final = frozenset(ALIVE.split(","))
_BUDGET_S: Final = 15.0
"""Time for killing all children of one launcher."""


class ResourceManager:
    """Talks to the ResourceManagers of clusters."""

    def __init__(self, probe: Probe, clock: IReactorTime) -> None:
        self._probe = probe
        self._clock = clock

    # ---- steps that run ----

    async def metrics(self, place: Place, console: str) -> ClusterMetrics:
        """One round of requests, in 15 s at most. console: of an action, see `manager_of`."""
        base = self._base(place, console)
        if base is None:
            return ClusterMetrics()
        try:
            active = active_of(await ask(self._probe, base, "metrics"))
        except ProbeError as error:
            return ClusterMetrics(error=error.text)
        if active is None:
            return ClusterMetrics()
        try:
            if active == 0:
                tree = await ask(self._probe, base, "nodes")
                return ClusterMetrics(active=0, idle=idle_of(tree, _names(place.cluster)))
            tree = await ask(self._probe, base, _APPS)
            applications = applications_of(tree)
            if applications is not None:
                applications = await self._with_wants(base, applications)
            return ClusterMetrics(active=active, applications=applications)
        except ProbeError:
            return ClusterMetrics(active=active)

    async def _with_wants(
        self, base: Location, applications: Sequence[Application]
    ) -> Sequence[Application]:
        """`applications`, with the wants of the first few drivers that have no executor."""
        alone = [a.id for a in applications if is_alone(a)][:_MOST_ALONE]
        wants = {id_: wants_of(await ask(self._probe, base, f"apps/{id_}")) for id_ in alone}
        return [evolve(a, wants=wants.get(a.id, "")) for a in applications]

    # ---- launchers and their children ----

    async def family(self, place: Place, action: Action) -> Family:
        """The applications of an action that has ended."""
        base = self._base(place, action.console_url)
        if base is None:
            return Family()
        silent = ""
        for _ in range(2 if is_application(action.external_id) else 0):
            try:  # one lost answer proves nothing, so svcd asks twice
                app = (await ask(self._probe, base, f"apps/{action.external_id}")).get("app")
            except ProbeError as error:
                silent = error.text
                continue
            launcher = None
            if isinstance(app, dict):
                launcher = evolve(application_of(app), id=action.external_id)
            return Family(launcher=launcher, children=await self._children(base, action) or ())
        return Family(children=await self._children(base, action) or (), silent=silent)

    async def settle(self, place: Place, record: Record, family: Family) -> Failure | None:
        """The failure, once no child is left. None: the launcher did not die, or is not known.

        record: of a workflow that has ended. Takes at most half a minute. Safe to repeat.
        """
        action, launcher = suspect(record), family.launcher
        if action is None or launcher is None or not died(launcher.state):
            return None
        base = self._base(place, action.console_url)
        if base is None:
            return None
        sweep = await self._sweep(base, tag_of(action.id), place.endpoints.user)
        return lost(action, launcher.diagnostics, sweep)

    async def children(self, place: Place, action: Action | None) -> Sequence[Application] | None:
        """The applications that an action has submitted, also ended ones. None: not known."""
        base = None if action is None else self._base(place, action.console_url)
        return () if action is None or base is None else await self._children(base, action)

    async def _children(self, base: Location, action: Action) -> Sequence[Application] | None:
        try:
            query = f"apps?applicationTags={tag_of(action.id)}"
            return applications_of(await ask(self._probe, base, query))
        except ProbeError:
            return None

    async def end_children(self, place: Place, record: Record) -> Sequence[str]:
        """Kill the Spark applications of a job that has ended, and return the ids of all.

        A cancel may come at the moment of a submit, before the engine sees the application. Raises
        EngineError when svcd cannot ask, or when one still runs.
        """
        action = submitter(record)
        base = None if action is None else self._base(place, action.console_url)
        if action is None or base is None:
            return ()
        children = await self._children(base, action)
        if children is None:
            raise EngineError(Fault.UNREACHABLE, "the resource manager does not answer")
        programs = [child for child in children if is_program(action, child)]
        if any(program.state in _LIVE for program in programs):
            sweep = await self._sweep(base, tag_of(action.id), place.endpoints.user)
            if sweep.left is None or sweep.left:
                raise EngineError(Fault.UNREACHABLE, f"applications still run: {sweep.reason}")
        return [program.id for program in programs]

    def _base(self, place: Place, console: str) -> Location | None:
        host = place.endpoints.resource_manager.rpartition(":")[0]
        return place.at(manager_of(console, host))

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
            applications = applications_of(
                await ask(self._probe, base, f"apps?applicationTags={tag}&states={ALIVE}")
            )
            if applications is None:
                return None, "the resource manager does not list its applications"
            alive = [application.id for application in applications if tag in application.tags]
            reason = "YARN has not ended them in time"
            for id_ in alive:
                at = below(base, f"apps/{id_}/state?user.name={quote(user)}")
                status = await self._probe.put(at, b'{"state": "KILLED"}', CALL_S)
                if status >= 400:
                    reason = f"the resource manager refuses to kill them: HTTP {status}"
            return alive, reason
        except ProbeError as error:
            return None, f"the resource manager does not answer: {error.text}"


async def ask(probe: Probe, base: Location, path: str) -> Mapping[str, object]:
    """The JSON object at `path`, see `below`; {} for any other answer. Raises ProbeError."""
    status, body = await probe.get(below(base, path), CALL_S)
    return foreign.mapping(body) if status == 200 else {}


def below(base: Location, path: str) -> Location:
    """The location of `path` in the web services of the resource manager at `base`."""
    return evolve(base, url=f"{base.url}/ws/v1/cluster/{path}")


def manager_of(console: str, host: str) -> str:
    """Base URL of the resource manager's web services.

    console: of an action; an engine that does not know the manager's web address says localhost;
    one that has not started the action says nothing. host: the manager's, as jobs are sent to it.
    """
    try:
        parts = urlsplit(console)
        port = parts.port or _PORT
    except ValueError:  # no URL at all
        return f"http://{host}:{_PORT}"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"http://{host}:{_PORT}"
    if parts.hostname in ("localhost", "0.0.0.0"):
        return f"{parts.scheme}://{host}:{port}"
    before, proxied, _ = parts.path.partition("/proxy/")
    return urlunsplit((parts.scheme, parts.netloc, before if proxied else "", "", ""))


def active_of(tree: Mapping[str, object]) -> int | None:
    """The number of nodes that take work, in an answer to `metrics`."""
    metrics = tree.get("clusterMetrics")
    active = metrics.get("activeNodes") if isinstance(metrics, dict) else None
    return active if isinstance(active, int) and not isinstance(active, bool) else None


def idle_of(tree: Mapping[str, object], names: Mapping[str, str]) -> Sequence[Node]:
    """Nodes that take no work, in an answer to `nodes`. names: address -> name of a machine."""
    nodes = []
    for row in rows_of(tree, "nodes", "node"):
        host, state = str(row.get("nodeHostName") or row.get("id") or ""), str(row.get("state"))
        if state not in _WORKING:
            report = " ".join(str(row.get("healthReport") or "").split())[:_MOST_REPORT]
            nodes.append(Node(name=names.get(host, host), state=state, report=report))
    return nodes


def applications_of(tree: Mapping[str, object]) -> Sequence[Application] | None:
    """All applications in an answer to `apps`; None when there may be more."""
    if "apps" not in tree:
        return None
    rows = rows_of(tree, "apps", "app")
    if len(rows) >= MOST_APPLICATIONS:
        return None
    return [application_of(row) for row in rows]


def application_of(row: Mapping[str, object]) -> Application:
    """An application in an answer to `apps` or `apps/<id>`."""
    return Application(
        id=str(row.get("id")),
        name=str(row.get("name") or ""),
        state=str(row.get("state")),
        age_s=_seconds(row.get("elapsedTime")),
        progress=_share(row.get("progress")),
        tags=frozenset(filter(None, str(row.get("applicationTags") or "").split(","))),
        diagnostics=str(row.get("diagnostics") or "").strip(),
        kind=str(row.get("applicationType") or ""),
        tracking_url=str(row.get("trackingUrl") or ""),
        containers=count if isinstance(count := row.get("runningContainers"), int) else None,
        logs=str(row.get("amContainerLogs") or ""),
    )


def wants_of(tree: Mapping[str, object]) -> str:
    """The containers that an application has asked for and not got, in an answer to `apps/<id>`."""
    app = tree.get("app")
    requests = app.get("resourceRequests") if isinstance(app, dict) else None
    for request in requests if isinstance(requests, list) else ():
        if not isinstance(request, dict) or request.get("resourceName") != "*":
            continue
        count, size = request.get("numContainers"), request.get("capability")
        memory = size.get("memory") if isinstance(size, dict) else None
        if isinstance(count, int) and count > 0 and isinstance(memory, int):
            return f"{count} container{'s' if count > 1 else ''} of {memory} MB"
    return ""


def rows_of(tree: Mapping[str, object], outer: str, inner: str) -> Sequence[Mapping[str, object]]:
    """The rows of one of Hadoop's lists. Hadoop writes a single row without brackets."""
    middle = tree.get(outer)
    rows = middle.get(inner) if isinstance(middle, dict) else None
    if isinstance(rows, dict):
        rows = [rows]
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _share(percent: object) -> float:
    """The progress from 0.0 to 1.0. A master may report any number, or none."""
    if not isinstance(percent, int | float) or not percent > 0:
        return 0.0
    return 1.0 if percent >= 100 else percent / 100


def _seconds(milliseconds: object) -> float:
    return milliseconds / 1000 if isinstance(milliseconds, int | float) else 0.0


def _names(cluster: Cluster) -> Mapping[str, str]:
    return {
        address: instance.instance_name
        for instance in cluster.instances()
        for address in (instance.internal_ip, instance.management_ip)
        if address
    }
