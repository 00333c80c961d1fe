"""Finds and removes objects with svcd's ownership tags that belong to no cluster.

Note: no race with a cluster that is being created. svcd writes a cluster's row before it creates
the cluster's objects, and deletes the row after their removal. So the search lists the cloud first
and reads the rows afterwards. It does so twice with a pause: an orphan of both searches belongs
neither to a cluster that was just created nor to one that was just deleted. Only trusts are created
before their row, and they carry no tag: the search removes them only by their id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime

from svcd.cli.client import Api
from svcd.cli.exits import UNREACHABLE, CommandError
from svcd.cli.times import duration, moment
from svcd.clients.ownership_tags import Kind, TaggedCloud, Thing
from svcd.model.ids import timestamp
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.runtime.tasks import sleep

_PAUSE_S: Final = 5.0
"""Time between the two searches."""
_AGAIN_S: Final = 2.0
"""Time between two attempts to remove objects."""
YOUNG_S: Final = 600.0
"""Default of `--younger`: age below which objects are left alone."""
WAIT_S: Final = 180.0
"""Default of `--wait`: time for the removal of all objects."""


@frozen(kw_only=True)
class Rows:
    """The daemon's objects in the tenant: ids of clusters and of the caller's trusts.

    job_credentials: names of the application credentials that the daemon deletes itself.
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
    """The rules for the removal of orphans.

    ids: objects that may be removed whatever their tag says. unmarked: objects whose tag has no
    installation may be removed too. young_s: younger objects, and all of their clusters, may not.
    """

    ids: frozenset[str] = frozenset()
    unmarked: bool = False
    young_s: float = YOUNG_S


def judged(things: Sequence[Thing], rows: Rows, rules: Rules, now: float) -> Sequence[Orphan]:
    """The things that belong to no row, each with the reason to leave it alone. Pure."""
    orphans = [t for t in things if not _has_row(t, rows)]
    ours = {
        t.tag.cluster_id
        for t in orphans
        if t.tag is not None and t.tag.installation == rows.installation
    }
    foreign = {
        t.tag.cluster_id
        for t in orphans
        if t.tag is not None and t.tag.installation not in ("", rows.installation)
    }
    young = {
        t.tag.cluster_id if t.tag is not None else t.id
        for t in orphans
        if t.made_at is not None and now - t.made_at < rules.young_s
    }
    return [Orphan(thing=t, why=_why_not(t, ours, foreign, young, rules)) for t in orphans]


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


@frozen(kw_only=True)
class Outcome:
    """The end of a search. unlisted: kinds that the cloud forbids to list, with the reason.

    troubles: the reason for each orphan that should go and was not removed, by its id. delete:
    whether orphans should go.
    """

    orphans: Sequence[Orphan] = ()
    unlisted: Mapping[Kind, str] = field(factory=dict)
    troubles: Mapping[str, str] = field(factory=dict)
    delete: bool = False

    @property
    def body(self) -> Mapping[str, Any]:
        """The outcome as an object for JSON."""
        return {
            "orphans": [self._row(orphan) for orphan in self.orphans],
            "not_searched": [
                {"kind": kind, "reason": reason} for kind, reason in self.unlisted.items()
            ],
        }

    def _row(self, orphan: Orphan) -> Mapping[str, Any]:
        thing = orphan.thing
        trouble = self.troubles.get(thing.id)
        return {
            "kind": str(thing.kind),
            "id": thing.id,
            "name": thing.name,
            "status": thing.status,
            "cluster_id": None if thing.tag is None else thing.tag.cluster_id,
            "created_at": None if thing.made_at is None else timestamp(thing.made_at),
            "left_alone": orphan.why or None,
            "removed": self.delete and not orphan.why and trouble is None,
            "not_removed": trouble,
        }


class Search:
    """Finds and removes orphans. Its methods raise CommandError and CloudError.

    say: takes a line for people. confirm: asks before the named objects go; raises CommandError.
    """

    def __init__(
        self,
        cloud: TaggedCloud,
        rows: Callable[[], Rows],
        clock: IReactorTime,
        rules: Rules,
        say: Callable[[str], None],
        confirm: Callable[[Sequence[str]], None] = lambda names: None,
    ) -> None:
        self._cloud = cloud
        self._rows = rows
        self._clock = clock
        self._rules = rules
        self._say = say
        self._confirm = confirm

    async def found(self) -> Sequence[Orphan]:
        """The orphans now. It lists the cloud first, then the rows; see the note."""
        things = await self._cloud.things()
        return judged(things, self._rows(), self._rules, self._clock.seconds())

    async def run(self, delete: bool, wait_s: float = WAIT_S) -> Outcome:
        """Show the orphans, and remove them with `delete`, after the question."""
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
        for orphan in first:
            self._show(orphan)
        doomed = [o.thing for o in first if not o.why]
        kept = len(first) - len(doomed)
        self._say(f"{len(first)} found, {len(doomed)} to be removed, {kept} left alone")
        outcome = Outcome(orphans=first, unlisted=dict(self._cloud.unlisted), delete=delete)
        if not delete:
            if doomed:
                self._say("nothing was removed: run the command again with --delete")
            return outcome
        self._confirm([f"{thing.kind} {thing.name or thing.id}" for thing in doomed])
        return evolve(outcome, troubles=await self._remove(doomed, wait_s))

    def _show(self, orphan: Orphan) -> None:
        thing = orphan.thing
        parts = [thing.kind, thing.id]
        if thing.name:
            parts.append(thing.name)
        if thing.status:
            parts.append(thing.status)
        if thing.tag is not None:
            parts.append(f"of cluster {thing.tag.cluster_id}")
        if thing.made_at is not None:
            age = duration(self._clock.seconds() - thing.made_at)
            parts.append(f"created {moment(thing.made_at)}, {age} ago")
        line = "  ".join(parts)
        self._say(f"{line}\n    left alone: {orphan.why}" if orphan.why else line)

    async def _remove(self, doomed: Sequence[Thing], wait_s: float) -> Mapping[str, str]:
        """Remove kind by kind, since one kind holds the next; for at most `wait_s`.

        Returns the reason for each object that is left, by its id.
        """
        end = self._clock.seconds() + wait_s
        left = list(doomed)
        troubles: dict[str, str] = {}
        asked: set[str] = set()
        final: set[str] = set()
        while left:
            first_kind = next((k for k in Kind if any(self._open(t, k, final) for t in left)), None)
            for thing in left:
                if thing.kind is not first_kind or thing.id in asked | final:
                    continue
                try:
                    await self._cloud.remove(thing)
                    asked.add(thing.id)
                    troubles.pop(thing.id, None)
                except CloudError as error:
                    troubles[thing.id] = error.text
                    if not error.passing and error.kind is not Fault.NOT_FOUND:
                        final.add(thing.id)
            there = {t.id for t in await self._cloud.things()}
            for thing in [t for t in left if t.id not in there]:
                self._say(f"removed {thing.kind} {thing.id} {thing.name}".rstrip())
                left.remove(thing)
            if not [t for t in left if t.id not in final]:
                break
            if self._clock.seconds() >= end:
                break
            if left:
                await sleep(self._clock, _AGAIN_S)
        reasons = {}
        for thing in left:
            why = troubles.get(thing.id) or f"it still exists after {duration(wait_s)}"
            reasons[thing.id] = why
            self._say(f"NOT removed {thing.kind} {thing.id} {thing.name}: {why}")
        return reasons

    @staticmethod
    def _open(thing: Thing, kind: Kind, final: set[str]) -> bool:
        return thing.kind is kind and thing.id not in final


def rows_of(api: Api) -> Rows:
    """Read the ids that the daemon knows now. Raises CommandError."""
    body = api.get("/marks")
    try:
        marks = body["marks"]
        return Rows(
            installation=str(marks["installation"]),
            clusters=frozenset(map(str, marks["clusters"])),
            trusts=frozenset(map(str, marks["trusts"])),
            job_credentials=frozenset(map(str, marks["job_credentials"])),
        )
    except (KeyError, TypeError):
        raise CommandError(
            f"{api.door.base}/marks does not list the clusters: the daemon has another release",
            UNREACHABLE,
        ) from None
