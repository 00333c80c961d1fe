"""Whether an Active cluster is well, and what is said when it is not. Pure.

A look asks the cloud for the servers and the daemons by the distribution's `check`. Here answers
become ailments, and ailments become a row and lines of its story. Nothing is repaired: what is dead
is told, with what a person can do.

Note: no flapping. What two looks in a row have found is told; at once only that a server is gone,
for the cloud was asked for that one by its id. What is told stays until a look has found that part
well: a look that could not find out (the daemon that knows of it is silent) changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from attrs import evolve, field, frozen

from svcd.model.cloud import Server
from svcd.model.cluster import Ailment, Cluster, ClusterEvent, Unwell
from svcd.model.ids import InstanceId, Timestamp, seconds_of, timestamp
from svcd.provisioning.decide import lifecycle
from svcd.provisioning.decide.failures import MOST_TEXT, Code, describe
from svcd.provisioning.distributions.spi import Command, HttpProbe, Plan

Key: TypeAlias = tuple[str, str]

STEP: Final = "health"
"""The step under which the story tells of it."""
SERVER: Final = "server"
CLOUD: Final = "cloud"
DISTRIBUTION: Final = "distribution"
MOST_KEPT: Final = 50
_MOST_SHOWN: Final = 10

_RUNNING: Final = frozenset({"ACTIVE", "PASSWORD", "MIGRATING", "VERIFY_RESIZE"})
"""Statuses of a server that does its work."""


@frozen(kw_only=True)
class Answer:
    """What a daemon said: a probe's status and body, or why there is none.

    A command's exit code is 0, or `error` says how it ended. code: what a fault is called.
    """

    status: int = 0
    body: bytes = field(default=b"", repr=False)
    error: str = ""
    code: Code = Code.DAEMON_DOWN


@frozen(kw_only=True)
class Seen:
    """What one look has found.

    bad, good: parts that are certainly so now; of all others it could not be found out. sure: of
    the bad ones those that need no second look. statuses: of servers, as the cloud shows them.
    """

    bad: tuple[Ailment, ...] = ()
    good: frozenset[Key] = frozenset()
    sure: frozenset[Key] = frozenset()
    statuses: Mapping[InstanceId, str] = field(factory=dict)

    def and_of(self, other: Seen) -> Seen:
        """Both."""
        return Seen(
            bad=self.bad + other.bad,
            good=self.good | other.good,
            sure=self.sure | other.sure,
            statuses={**self.statuses, **other.statuses},
        )


@frozen(kw_only=True)
class Judged:
    """What comes of a look. cluster: the row to write, if it differs. suspected: for the next look,
    with the moment.

    unwell: whether something is told of it, by this or by its last request.
    """

    cluster: Cluster
    events: tuple[ClusterEvent, ...] = ()
    suspected: Mapping[Key, Timestamp] = field(factory=dict)
    unwell: bool = False


# ---- what is found ------------------------------------------------------------------------------


def unlisted(cluster: Cluster, servers: Iterable[Server]) -> Sequence[str]:
    """Ids of servers that the row has and the list has not: to be asked for one by one.

    First those that are not known to be gone: of very many a look asks for some.
    """
    listed = {s.id for s in servers}
    instances = sorted(cluster.instances(), key=lambda i: i.status == lifecycle.GONE)
    return [i.server_id for i in instances if i.server_id and i.server_id not in listed]


def of_servers(
    cluster: Cluster, servers: Iterable[Server], gone: Iterable[str], now: Timestamp
) -> Seen:
    """servers: listed or asked for. gone: ids of which the cloud says that there is none."""
    shown = {s.id: s for s in servers}
    absent = {*gone, *(s.id for s in shown.values() if s.status == lifecycle.GONE)}
    bad: list[Ailment] = []
    good: list[Key] = []
    sure: list[Key] = []
    statuses: dict[InstanceId, str] = {}
    for each in cluster.instances():
        if each.server_id is None:
            continue
        key = (each.instance_name, SERVER)
        found = shown.get(each.server_id)
        where = f"server {each.server_id} of {each.instance_name}"
        if each.server_id in absent:
            bad.append(_ailment(Code.SERVER_VANISHED, key, f"{where} is gone", now))
            sure.append(key)
            statuses[each.instance_id] = lifecycle.GONE
        elif found is None or found.task_state == "deleting":
            continue  # not known; it will be gone soon
        elif found.status in _RUNNING:
            good.append(key)
            statuses[each.instance_id] = found.status
        else:
            why = f": {found.fault}" if found.fault else ""
            text = f"{where} is {found.status}{why}"
            bad.append(_ailment(Code.SERVER_DOWN, key, text, now))
            statuses[each.instance_id] = found.status
    return Seen(bad=tuple(bad), good=frozenset(good), sure=frozenset(sure), statuses=statuses)


def of_cloud(code: Code, reason: str, now: Timestamp) -> Seen:
    """The cloud refuses to show the cluster: its trust is lost, a role is missing."""
    return Seen(bad=(_ailment(code, ("", CLOUD), reason, now),))


CLOUD_ANSWERS: Final = Seen(good=frozenset({("", CLOUD)}))


def of_missing_distribution(reason: str, now: Timestamp) -> Seen:
    """Nobody knows what to ask the daemons."""
    return Seen(bad=(_ailment(Code.PLUGIN_GONE, ("", DISTRIBUTION), reason, now),))


def questions(plan: Plan) -> Sequence[tuple[HttpProbe | Command, str]]:
    """What a check asks, with the advice of its stage, in order. A check writes no files."""
    return [
        (action, stage.advice)
        for stage in plan
        for chain in stage.chains
        for action in chain
        if isinstance(action, HttpProbe | Command)
    ]


def of_daemons(
    cluster: Cluster,
    asked: Sequence[tuple[HttpProbe | Command, str]],
    answers: Sequence[Answer],
    now: Timestamp,
) -> Seen:
    """answers: one of each question.

    A daemon that is silent is told of once, by the first question to it; of what is known only
    through it nothing is found out.
    """
    names = {i.instance_id: i.instance_name for i in cluster.instances()}
    bad: list[Ailment] = []
    good: list[Key] = [("", DISTRIBUTION)]
    silent: set[str] = set()
    for (question, advice), answer in zip(asked, answers, strict=True):
        key = (names.get(question.machine, ""), question.what)
        missing = answer.error
        if isinstance(question, HttpProbe):
            place = urlsplit(question.url).netloc
            if place in silent:
                continue
            if answer.error or answer.status != 200:
                silent.add(place)
            missing = answer.error or question.missing(answer.status, answer.body)
        if missing:
            text = f"{question.what} on {key[0]}: {missing}"
            bad.append(_ailment(answer.code, key, text, now, advice))
        else:
            good.append(key)
    return Seen(bad=tuple(bad), good=frozenset(good))


def keys_of(cluster: Cluster, plan: Plan) -> frozenset[Key]:
    """All parts of which a look at the whole cluster may find something."""
    names = {i.instance_id: i.instance_name for i in cluster.instances()}
    daemons = [(names.get(q.machine, ""), q.what) for q, _ in questions(plan)]
    servers = [(name, SERVER) for name in names.values()]
    return frozenset([*daemons, *servers, ("", CLOUD), ("", DISTRIBUTION)])


def _ailment(code: Code, key: Key, text: str, now: Timestamp, advice: str = "") -> Ailment:
    return Ailment(
        code=code, machine=key[0], what=key[1], text=text[:500], advice=advice, since=now
    )


# ---- what comes of it ---------------------------------------------------------------------------


def judged(
    cluster: Cluster,
    seen: Seen,
    parts: frozenset[Key],
    suspected: Mapping[Key, Timestamp],
    now: float,
) -> Judged:
    """parts: those that the cluster has. suspected: of the look before, for the same request."""
    told = () if cluster.unwell is None else cluster.unwell.ailments
    known = {(a.key, a.code): a for a in told}
    down = {a.machine for a in seen.bad if a.what == SERVER}
    confirmed: list[Ailment] = []
    doubted: dict[Key, Timestamp] = {}
    covered = False
    for each in seen.bad:
        if each.text in cluster.status_description:  # the last request has found and told it
            covered = True
            continue
        before = known.get((each.key, each.code))
        if before is not None:
            confirmed.append(before)
        elif each.key in seen.sure or each.key in suspected:
            confirmed.append(evolve(each, since=suspected.get(each.key, each.since)))
        else:
            doubted[each.key] = each.since
    again = {a.key for a in confirmed}
    unknown = {
        a.key
        for a in told
        if a.key not in again
        and a.key not in seen.good
        and a.key in parts
        and not (a.machine in down and a.what != SERVER)
    }
    found = {(a.key, a.code) for a in confirmed}
    still = [a for a in told if (a.key, a.code) in found or a.key in unknown]
    new = [a for a in confirmed if (a.key, a.code) not in known]
    fresh = new[: max(0, MOST_KEPT - len(still))]
    ailments = (*still, *fresh)
    well = [a for a in told if a.key in seen.good]
    written = _with(cluster, ailments)
    shown = {a.machine for a in (*confirmed, *still) if a.what == SERVER}
    written = lifecycle.with_instances(written, _statuses(cluster, seen, shown))
    events: tuple[ClusterEvent, ...] = ()
    if written != cluster:
        written = evolve(written, updated_at=timestamp(now))
        events = (
            *_begun(cluster, fresh, now),
            *_ended(cluster, well, not (ailments or doubted or covered), now),
        )
    return Judged(
        cluster=written,
        events=events,
        suspected=doubted,
        unwell=covered or bool(ailments),
    )


def _with(cluster: Cluster, ailments: tuple[Ailment, ...]) -> Cluster:
    told = cluster.unwell.ailments if cluster.unwell is not None else ()
    if ailments == told:
        return cluster
    unwell = Unwell(text=_text(ailments), ailments=ailments) if ailments else None
    return evolve(cluster, unwell=unwell)


def _statuses(
    cluster: Cluster, seen: Seen, told: Iterable[str]
) -> Mapping[InstanceId, Mapping[str, str]]:
    """What instances show: of what is told, and of what runs again."""
    shown = set(told)
    changes: dict[InstanceId, Mapping[str, str]] = {}
    for each in cluster.instances():
        status = seen.statuses.get(each.instance_id)
        if status is None or status == each.status:
            continue
        if each.instance_name in shown or status == "ACTIVE":
            changes[each.instance_id] = {"status": status}
    return changes


def _by_code(ailments: Iterable[Ailment]) -> Mapping[Code, Sequence[Ailment]]:
    found: dict[Code, list[Ailment]] = {}
    for each in ailments:
        found.setdefault(Code(each.code), []).append(each)
    return found


def _described(code: Code, ailments: Sequence[Ailment]) -> str:
    reasons = "; ".join(a.text for a in ailments[:_MOST_SHOWN])
    if len(ailments) > _MOST_SHOWN:
        reasons += f"; and {len(ailments) - _MOST_SHOWN} more"
    advice = "\n".join(dict.fromkeys(a.advice for a in ailments if a.advice))
    return describe(code, f"{reasons}\n{advice}" if advice else reasons)


def _text(ailments: Sequence[Ailment]) -> str:
    groups = _by_code(ailments)
    return "\n".join(_described(code, mine) for code, mine in groups.items())[: 2 * MOST_TEXT]


def _begun(cluster: Cluster, fresh: Sequence[Ailment], now: float) -> Iterable[ClusterEvent]:
    for code, mine in _by_code(fresh).items():
        machine = mine[0].machine if len(mine) == 1 else ""
        text = _described(code, mine)
        yield lifecycle.event(cluster, STEP, "failed", now, text, machine, code)


def _ended(
    cluster: Cluster, well: Sequence[Ailment], all_well: bool, now: float
) -> Iterable[ClusterEvent]:
    if not well:
        return
    told = [
        f"{_part(a)} is well again after {now - seconds_of(a.since):.0f} s"
        for a in well[:_MOST_SHOWN]
    ]
    if len(well) > _MOST_SHOWN:
        told.append(f"and {len(well) - _MOST_SHOWN} more")
    if all_well:
        told.append("all is well")
    machine = well[0].machine if len(well) == 1 else ""
    yield lifecycle.event(cluster, STEP, "done", now, "; ".join(told), machine)


def _part(ailment: Ailment) -> str:
    if not ailment.machine:
        return f"the {ailment.what}"
    return f"{ailment.what} of {ailment.machine}"
