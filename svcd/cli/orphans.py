"""`svcd orphans`: what carries svcd's marks in the tenant's cloud and belongs to no cluster.

Asks the daemon for the tenant's clusters; without a daemon that answers nothing is judged. Removes
only with `--delete`, only what has our marks, and of that only what this installation has made,
unless an id is named or `--unmarked` is given. Exit codes: 0 all that was asked for was done,
1 it could not be found out, or something was not removed, 2 wrong usage.

Note: no race with a cluster that is being made. Its row is written before anything of it is made,
and goes after everything of it. So the cloud is listed first and the rows are read afterwards; and
that twice: what is judged twice, with a pause between, was neither just made nor just on its way
out. Trusts alone are made before their row, and carry no mark: they are removed only by their id.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime

from svcd.cli import clouds, door
from svcd.cli.door import Api, Door, DoorError
from svcd.cli.times import duration, moment
from svcd.clients.ownership_tags import Kind, MarkedCloud, Thing
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.runtime.tasks import sleep
from svcd.settings import CloudSettings, load

_PAUSE_S: Final = 5.0
_AGAIN_S: Final = 2.0
_YOUNG_S: Final = 600.0
_WAIT_S: Final = 180.0


class Cloud(Protocol):
    """`svcd.clients.ownership_tags.MarkedCloud`."""

    async def check(self) -> None: ...
    async def things(self) -> Sequence[Thing]: ...
    async def remove(self, thing: Thing) -> None: ...


@frozen(kw_only=True)
class Rows:
    """What the daemon has in the tenant. trusts: of the user who asks."""

    installation: str
    clusters: frozenset[str]
    trusts: frozenset[str]


@frozen(kw_only=True)
class Orphan:
    """why: "" when it may be removed, else why it is left alone."""

    thing: Thing
    why: str = ""


@frozen(kw_only=True)
class Rules:
    """What may be removed.

    ids: named one by one, whatever their mark. unmarked: also what does not tell its installation.
    young_s: what is younger is left alone, with all that is of the same cluster.
    """

    ids: frozenset[str] = frozenset()
    unmarked: bool = False
    young_s: float = _YOUNG_S


def judged(things: Sequence[Thing], rows: Rows, rules: Rules, now: float) -> Sequence[Orphan]:
    """Those that belong to no row, and whether they may be removed. Pure."""
    found = [t for t in things if not _has_row(t, rows)]
    ours = {
        t.mark.cluster_id
        for t in found
        if t.mark is not None and t.mark.installation == rows.installation
    }
    foreign = {
        t.mark.cluster_id
        for t in found
        if t.mark is not None and t.mark.installation not in ("", rows.installation)
    }
    young = {
        t.mark.cluster_id if t.mark is not None else t.id
        for t in found
        if t.made_at is not None and now - t.made_at < rules.young_s
    }
    return [Orphan(thing=t, why=_why_not(t, ours, foreign, young, rules)) for t in found]


def _has_row(thing: Thing, rows: Rows) -> bool:
    if thing.mark is None:
        return thing.id in rows.trusts
    return thing.mark.cluster_id in rows.clusters


def _why_not(thing: Thing, ours: set[str], foreign: set[str], young: set[str], rules: Rules) -> str:
    """Things of one cluster vouch for each other: not every service lets us leave a full mark."""
    if (thing.id if thing.mark is None else thing.mark.cluster_id) in young:
        return f"something of its cluster is younger than {duration(rules.young_s)}"
    if thing.id in rules.ids:
        return ""
    if thing.mark is None:
        return "trusts carry no mark; name it with --id when nothing uses it"
    cluster_id = thing.mark.cluster_id
    if cluster_id in foreign:
        return "another installation has made it; name it with --id when that one is gone"
    if cluster_id in ours or rules.unmarked:
        return ""
    return "it does not tell which installation has made it; see --unmarked and --id"


class Search:
    """Finds and removes orphans. `rows` raises DoorError, the cloud CloudError."""

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

    async def look(self) -> Sequence[Orphan]:
        """Cloud first, then rows; see the note."""
        things = await self._cloud.things()
        return judged(things, await self._rows(), self._rules, self._clock.seconds())

    async def run(self, delete: bool, wait_s: float = _WAIT_S) -> bool:
        """Tell, and with `delete` remove; whether everything that may be removed is gone."""
        await self._cloud.check()
        first = await self.look()
        if first:
            await sleep(self._clock, _PAUSE_S)
            again = {o.thing.id: o for o in await self.look()}
            first = [again[o.thing.id] for o in first if o.thing.id in again]
        for each in first:
            self._tell(each)
        doomed = [o.thing for o in first if not o.why]
        kept = len(first) - len(doomed)
        self._say(f"{len(first)} found, {len(doomed)} to be removed, {kept} left alone")
        if not delete:
            if doomed:
                self._say("nothing was removed: run it again with --delete")
            return True
        return await self._remove(doomed, wait_s)

    def _tell(self, orphan: Orphan) -> None:
        each = orphan.thing
        parts = [each.kind, each.id]
        if each.name:
            parts.append(each.name)
        if each.status:
            parts.append(each.status)
        if each.mark is not None:
            parts.append(f"of cluster {each.mark.cluster_id}")
        if each.made_at is not None:
            age = duration(self._clock.seconds() - each.made_at)
            parts.append(f"made {moment(each.made_at)}, {age} ago")
        line = "  ".join(parts)
        self._say(f"{line}\n    left alone: {orphan.why}" if orphan.why else line)

    async def _remove(self, doomed: Sequence[Thing], wait_s: float) -> bool:
        """Kind by kind, for one holds the next; until all are gone, or `wait_s` have passed."""
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
            why = troubles.get(each.id) or f"it is still there after {duration(wait_s)}"
            self._say(f"NOT removed {each.kind} {each.id} {each.name}: {why}")
        return not left

    @staticmethod
    def _open(thing: Thing, kind: Kind, final: set[str]) -> bool:
        return thing.kind is kind and thing.id not in final


# ---- the command --------------------------------------------------------------------------------


def add_command(commands: Any, settings_options: Callable[[argparse.ArgumentParser], None]) -> None:
    """`commands`: the sub-parsers."""
    text = "what carries svcd's marks in the cloud and belongs to no cluster"
    parser = commands.add_parser("orphans", help=text, description=text)
    parser.add_argument("--delete", action="store_true", help="remove it (asks nothing)")
    parser.add_argument(
        "--id", action="append", default=[], help="may be removed whatever its mark; repeatable"
    )
    parser.add_argument(
        "--unmarked",
        action="store_true",
        help="remove also what does not tell which installation has made it (older releases)",
    )
    parser.add_argument(
        "--younger",
        type=float,
        default=_YOUNG_S,
        metavar="SECONDS",
        help="leave alone what was made less than that ago (default: %(default)s)",
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=_WAIT_S,
        metavar="SECONDS",
        help="how long to wait for things to go (default: %(default)s)",
    )
    door.add_options(parser)
    clouds.add_option(parser)
    settings_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """The exit code."""
    settings = load(options.config, os.environ, options.set).settings
    try:
        environment = clouds.chosen(options, os.environ, Path.cwd(), Path.home())
        clouds.trust(environment)
        found = door.find(options, settings, environment)
        rows_of(Api(found))  # before the cloud is asked for anything
        if not found.auth_url:
            raise DoorError(
                "where is the cloud? set OS_AUTH_URL, or cloud.auth_url in the settings"
            )
        if not found.token:
            raise DoorError("no token: set OS_TOKEN, or OS_USERNAME, OS_PASSWORD and so on")
    except DoorError as error:
        print(f"svcd orphans: {error}", file=sys.stderr)
        return 1
    cloud = evolve(
        settings.cloud,
        auth_url=found.auth_url,
        region=environment.get("OS_REGION_NAME") or settings.cloud.region,
        interface=_interface(environment) or settings.cloud.interface,
    )
    outcome: list[bool | str] = []

    async def work(reactor: Any) -> None:
        try:
            outcome.append(await _search(reactor, found, cloud, options))
        except (DoorError, CloudError) as error:
            outcome.append(str(error))

    _on_reactor(work)
    if outcome == [True]:
        return 0
    for said in outcome:
        if isinstance(said, str):
            print(f"svcd orphans: {said}", file=sys.stderr)
    return 1


async def _search(
    reactor: Any, found: Door, cloud: CloudSettings, options: argparse.Namespace
) -> bool:
    from twisted.web.client import Agent

    agent: Any = Agent
    marked = MarkedCloud(
        agent(reactor, connectTimeout=10),
        reactor,
        cloud,
        Secret(found.token),
        found.tenant,
    )
    api = Api(found)

    async def rows() -> Rows:
        return rows_of(api)

    rules = Rules(
        ids=frozenset(options.id), unmarked=options.unmarked, young_s=max(0.0, options.younger)
    )
    search = Search(marked, rows, reactor, rules, lambda line: print(line, flush=True))
    return await search.run(options.delete, max(0.0, options.wait))


def _interface(environment: Mapping[str, str]) -> str:
    """As the catalog writes it: the variable may be the older `publicURL`."""
    given = environment.get("OS_INTERFACE") or environment.get("OS_ENDPOINT_TYPE") or ""
    return given.removesuffix("URL")


def rows_of(api: Api) -> Rows:
    """What the daemon has now. Raises DoorError."""
    found = api.get("/marks")
    try:
        told = found["marks"]
        return Rows(
            installation=str(told["installation"]),
            clusters=frozenset(map(str, told["clusters"])),
            trusts=frozenset(map(str, told["trusts"])),
        )
    except (KeyError, TypeError):
        raise DoorError(
            f"{api.door.base}/marks does not tell the clusters: that is no svcd of this release"
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
