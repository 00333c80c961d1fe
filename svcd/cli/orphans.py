"""`svcd orphans`: lists or removes objects with svcd's ownership tags that belong to no cluster.

The command asks the daemon for the tenant's clusters. When no daemon answers, the command lists
and removes nothing. It removes only with `--delete`, only objects with ownership tags, and
only objects of this installation, unless `--id` or `--unmarked` is given. Exit codes: 0 success,
1 the search failed or an object was not removed, 2 wrong usage.

Note: no race with a cluster that is being created. svcd writes a cluster's row before it creates
the cluster's objects, and deletes the row after their removal. So the command lists the cloud first
and reads the rows afterwards. It does so twice with a pause: an orphan of both searches belongs
neither to a cluster that was just created nor to one that was just deleted. Only trusts are created
before their row, and they carry no tag: the command removes them only by their id.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import click
from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime

from svcd.cli import clouds, door
from svcd.cli.api import Api
from svcd.cli.command import door_given, door_options, settings_of, settings_options
from svcd.cli.door import Door, Given
from svcd.cli.exits import CommandError
from svcd.cli.times import duration, moment
from svcd.clients.ownership_tags import Kind, TaggedCloud, Thing
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.runtime.tasks import sleep
from svcd.settings import CloudSettings

_PAUSE_S: Final = 5.0
"""Time between the two searches."""
_AGAIN_S: Final = 2.0
"""Time between two attempts to remove objects."""
_YOUNG_S: Final = 600.0
"""Default of `--younger`: age below which objects are left alone."""
_WAIT_S: Final = 180.0
"""Default of `--wait`: time for the removal of all objects."""


class Cloud(Protocol):
    """The part of `svcd.clients.ownership_tags.TaggedCloud` that the search uses."""

    @property
    def unlisted(self) -> Mapping[Kind, str]: ...
    async def check(self) -> None: ...
    async def things(self) -> Sequence[Thing]: ...
    async def remove(self, thing: Thing) -> None: ...


@frozen(kw_only=True)
class Rows:
    """What the daemon knows in the tenant: ids of clusters and of the caller's trusts.

    job_credentials: names of the application credentials that it deletes itself.
    """

    installation: str
    clusters: frozenset[str]
    trusts: frozenset[str]
    job_credentials: frozenset[str] = frozenset()


@frozen(kw_only=True)
class Orphan:
    """An object without a row. why: the reason to leave it alone; "" when it may be removed."""

    thing: Thing
    why: str = ""


@frozen(kw_only=True)
class Rules:
    """Which orphans may be removed.

    ids: objects that may be removed whatever their tag says. unmarked: objects whose tag has no
    installation may be removed too. young_s: younger objects, and all of their clusters, may not.
    """

    ids: frozenset[str] = frozenset()
    unmarked: bool = False
    young_s: float = _YOUNG_S


def judged(things: Sequence[Thing], rows: Rows, rules: Rules, now: float) -> Sequence[Orphan]:
    """The things that belong to no row, each with the reason to leave it alone. Pure."""
    found = [t for t in things if not _has_row(t, rows)]
    ours = {
        t.tag.cluster_id
        for t in found
        if t.tag is not None and t.tag.installation == rows.installation
    }
    foreign = {
        t.tag.cluster_id
        for t in found
        if t.tag is not None and t.tag.installation not in ("", rows.installation)
    }
    young = {
        t.tag.cluster_id if t.tag is not None else t.id
        for t in found
        if t.made_at is not None and now - t.made_at < rules.young_s
    }
    return [Orphan(thing=t, why=_why_not(t, ours, foreign, young, rules)) for t in found]


def _has_row(thing: Thing, rows: Rows) -> bool:
    if thing.kind is Kind.APPLICATION_CREDENTIAL:
        return thing.name in rows.job_credentials
    if thing.tag is None:
        return thing.id in rows.trusts
    return thing.tag.cluster_id in rows.clusters


def _why_not(thing: Thing, ours: set[str], foreign: set[str], young: set[str], rules: Rules) -> str:
    """The reason to leave an orphan alone; "" when it may be removed.

    Not every service can store a full tag. So the full tag of one object counts for all objects of
    its cluster.
    """
    if (thing.id if thing.tag is None else thing.tag.cluster_id) in young:
        return f"an object of its cluster is younger than {duration(rules.young_s)}"
    if thing.id in rules.ids:
        return ""
    if thing.tag is None:
        return "a trust carries no ownership tag; give --id ID if nothing uses it"
    cluster_id = thing.tag.cluster_id
    if cluster_id in foreign:
        return "another installation created it; give --id ID if that installation is gone"
    if cluster_id in ours or rules.unmarked:
        return ""
    return "its tag does not name an installation; see --unmarked and --id"


class Search:
    """Finds and removes orphans. Its methods raise CommandError and CloudError."""

    def __init__(
        self,
        cloud: Cloud,
        rows: Callable[[], Awaitable[Rows]],
        clock: IReactorTime,
        rules: Rules,
        say: Callable[[str], None],
    ) -> None:
        self._cloud = cloud
        self._rows = rows
        self._clock = clock
        self._rules = rules
        self._say = say

    async def found(self) -> Sequence[Orphan]:
        """The orphans now. It lists the cloud first, then the rows; see the note."""
        things = await self._cloud.things()
        return judged(things, await self._rows(), self._rules, self._clock.seconds())

    async def run(self, delete: bool, wait_s: float = _WAIT_S) -> bool:
        """Show the orphans, and remove them with `delete`. False when some were not removed."""
        await self._cloud.check()
        first = await self.found()
        for kind, reason in self._cloud.unlisted.items():
            self._say(
                f"NOT searched: {kind}s. The cloud forbids this user to list them ({reason});"
                " log in with a password, or ask the administrator of the cloud"
            )
        if first:
            await sleep(self._clock, _PAUSE_S)
            again = {o.thing.id: o for o in await self.found()}
            first = [again[o.thing.id] for o in first if o.thing.id in again]
        for each in first:
            self._show(each)
        doomed = [o.thing for o in first if not o.why]
        kept = len(first) - len(doomed)
        self._say(f"{len(first)} found, {len(doomed)} to be removed, {kept} left alone")
        if not delete:
            if doomed:
                self._say("nothing was removed: run the command again with --delete")
            return True
        return await self._remove(doomed, wait_s)

    def _show(self, orphan: Orphan) -> None:
        each = orphan.thing
        parts = [each.kind, each.id]
        if each.name:
            parts.append(each.name)
        if each.status:
            parts.append(each.status)
        if each.tag is not None:
            parts.append(f"of cluster {each.tag.cluster_id}")
        if each.made_at is not None:
            age = duration(self._clock.seconds() - each.made_at)
            parts.append(f"created {moment(each.made_at)}, {age} ago")
        line = "  ".join(parts)
        self._say(f"{line}\n    left alone: {orphan.why}" if orphan.why else line)

    async def _remove(self, doomed: Sequence[Thing], wait_s: float) -> bool:
        """Remove kind by kind, since one kind holds the next; for at most `wait_s`."""
        end = self._clock.seconds() + wait_s
        left = list(doomed)
        troubles: dict[str, str] = {}
        asked: set[str] = set()
        final: set[str] = set()
        while left:
            first_kind = next((k for k in Kind if any(self._open(t, k, final) for t in left)), None)
            for each in left:
                if each.kind is not first_kind or each.id in asked | final:
                    continue
                try:
                    await self._cloud.remove(each)
                    asked.add(each.id)
                    troubles.pop(each.id, None)
                except CloudError as error:
                    troubles[each.id] = error.text
                    if not error.passing and error.kind is not Fault.NOT_FOUND:
                        final.add(each.id)
            there = {t.id for t in await self._cloud.things()}
            for each in [t for t in left if t.id not in there]:
                self._say(f"removed {each.kind} {each.id} {each.name}".rstrip())
                left.remove(each)
            if not [t for t in left if t.id not in final]:
                break
            if self._clock.seconds() >= end:
                break
            if left:
                await sleep(self._clock, _AGAIN_S)
        for each in left:
            why = troubles.get(each.id) or f"it still exists after {duration(wait_s)}"
            self._say(f"NOT removed {each.kind} {each.id} {each.name}: {why}")
        return not left

    @staticmethod
    def _open(thing: Thing, kind: Kind, final: set[str]) -> bool:
        return thing.kind is kind and thing.id not in final


# ---- the command --------------------------------------------------------------------------------


@click.command("orphans")
@click.option("--delete", is_flag=True, help="remove the objects, without a question")
@click.option(
    "--id",
    "ids",
    multiple=True,
    metavar="ID",
    help="remove this object whatever its tag says; repeatable",
)
@click.option(
    "--unmarked",
    is_flag=True,
    help="also remove objects whose tag names no installation (older releases made them)",
)
@click.option(
    "--younger",
    type=float,
    default=_YOUNG_S,
    metavar="SECONDS",
    show_default=True,
    help="leave alone objects younger than this",
)
@click.option(
    "--wait",
    type=float,
    default=_WAIT_S,
    metavar="SECONDS",
    show_default=True,
    help="wait at most so long for the removal",
)
@door_options
@settings_options
def command(
    delete: bool,
    ids: Sequence[str],
    unmarked: bool,
    younger: float,
    wait: float,
    config: Path | None,
    flags: Sequence[str],
    **options: str | None,
) -> int:
    """List or remove objects with svcd's ownership tags that belong to no cluster."""
    settings = settings_of(config, flags).settings
    given = door_given(options)
    try:
        environment = clouds.chosen(given["os_cloud"], os.environ, Path.cwd(), Path.home())
        clouds.trust(environment)
        found = door.find(
            Given(
                state_dir=settings.server.state_dir,
                api=given["api"],
                tenant=given["tenant"],
                token=given["token"],
                auth_url=settings.cloud.auth_url,
            ),
            environment,
        )
        rows_of(
            Api(found)
        )  # a fault of the daemon ends the command before any request to the cloud
        if not found.auth_url:
            raise CommandError(
                "the URL of the cloud is unknown: set OS_AUTH_URL, or the setting cloud.auth_url"
            )
        if not found.token:
            raise CommandError(
                "no token: set OS_TOKEN, or OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME"
            )
    except CommandError as error:
        print(f"svcd orphans: {error}", file=sys.stderr)
        return 1
    cloud = evolve(
        settings.cloud,
        auth_url=found.auth_url,
        region=environment.get("OS_REGION_NAME") or settings.cloud.region,
        interface=_interface(environment) or settings.cloud.interface,
    )
    rules = Rules(ids=frozenset(ids), unmarked=unmarked, young_s=max(0.0, younger))
    outcome: list[bool | str] = []

    async def work(reactor: Any) -> None:
        try:
            outcome.append(await _search(reactor, found, cloud, rules, delete, wait))
        except (CommandError, CloudError) as error:
            outcome.append(str(error))

    _on_reactor(work)
    if outcome == [True]:
        return 0
    for fault in outcome:
        if isinstance(fault, str):
            print(f"svcd orphans: {fault}", file=sys.stderr)
    return 1


async def _search(
    reactor: Any, found: Door, cloud: CloudSettings, rules: Rules, delete: bool, wait_s: float
) -> bool:
    from twisted.web.client import Agent

    agent: Any = Agent
    tagged = TaggedCloud(
        agent(reactor, connectTimeout=10),
        reactor,
        cloud,
        Secret(found.token),
        found.tenant,
    )
    api = Api(found)

    async def rows() -> Rows:
        return rows_of(api)

    search = Search(tagged, rows, reactor, rules, lambda line: print(line, flush=True))
    return await search.run(delete, max(0.0, wait_s))


def _interface(environment: Mapping[str, str]) -> str:
    """The interface as the catalog names it; the variable may hold the older `publicURL`."""
    given = environment.get("OS_INTERFACE") or environment.get("OS_ENDPOINT_TYPE") or ""
    return given.removesuffix("URL")


def rows_of(api: Api) -> Rows:
    """Read the ids that the daemon knows now. Raises CommandError."""
    found = api.get("/marks")
    try:
        marks = found["marks"]
        return Rows(
            installation=str(marks["installation"]),
            clusters=frozenset(map(str, marks["clusters"])),
            trusts=frozenset(map(str, marks["trusts"])),
            job_credentials=frozenset(map(str, marks["job_credentials"])),
        )
    except (KeyError, TypeError):
        raise CommandError(
            f"{api.door.base}/marks does not list the clusters: the daemon has another release"
        ) from None


def _on_reactor(work: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    """Run `work` on the reactor, once in a process."""
    from twisted.internet.defer import Deferred
    from twisted.internet.task import react

    try:
        react(lambda reactor: Deferred.fromCoroutine(work(reactor)))
    except SystemExit as ended:
        if ended.code:
            raise
