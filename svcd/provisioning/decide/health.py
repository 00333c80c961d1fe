"""Judges the health of an Active cluster, and writes its ailments as texts and events. Pure.

A check asks the cloud for the servers, and the daemons by the distribution's `check`. This module
turns answers into ailments, and ailments into a row and its events. svcd repairs nothing: the row
names the dead part, with the advice for a person.

Note: no flapping. svcd shows an ailment when two checks in a row have found it. It shows certain
findings at once: the cloud has no server of this id; it shows a server in ERROR with the fault; a
stranger answers in place of a daemon. It shows the ailment until a check finds the part well. A
check without an answer about the part (the daemon that knows the part does not answer) changes
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from attrs import evolve, field, frozen

from svcd.model.cloud import Server
from svcd.model.cluster import Ailment, Cluster, ClusterEvent, Unwell
from svcd.model.ids import InstanceId, Timestamp, seconds_of, timestamp
from svcd.model.step_kind import HEALTH
from svcd.provisioning.decide import lifecycle
from svcd.provisioning.decide.failures import MOST_TEXT, Code, describe
from svcd.provisioning.distributions.spi import Command, HttpProbe, Plan

Key: TypeAlias = tuple[str, str]

SERVER: Final = "server"
CLOUD: Final = "cloud"
DISTRIBUTION: Final = "distribution"
ALL_WELL: Final = "all is well"
"""The end of the text of an event after which no ailment is left."""
MOST_KEPT: Final = 50
"""Ailments that a row holds."""
_MOST_SHOWN: Final = 10
"""Ailments that a text names."""

_RUNNING: Final = frozenset({"ACTIVE", "PASSWORD", "MIGRATING", "VERIFY_RESIZE"})
"""Statuses of a server that does its work."""
_STARTS: Final = {
    "SHUTOFF": "start the server in the cloud, then its daemons",
    "PAUSED": "unpause the server in the cloud",
    "SUSPENDED": "resume the server in the cloud",
    "SHELVED": "unshelve the server in the cloud, then start its daemons",
    "SHELVED_OFFLOADED": "unshelve the server in the cloud, then start its daemons",
}
"""The remedy for a server by its status; svcd does not know one for others, such as ERROR."""


@frozen(kw_only=True)
class Answer:
    """The answer of a daemon: status and body of a probe, or `error`, the reason for none.

    After a command, `error` is empty when the exit code is 0. code: the failure code of a fault.
    """

    status: int = 0
    body: bytes = field(default=b"", repr=False)
    error: str = ""
    code: Code = Code.DAEMON_DOWN


@frozen(kw_only=True)
class Seen:
    """The findings of one check.

    bad, good: parts whose state is certain; the state of all other parts is unknown. sure: the bad
    parts that need no second check. statuses: of servers, as the cloud shows them.
    """

    bad: tuple[Ailment, ...] = ()
    good: frozenset[Key] = frozenset()
    sure: frozenset[Key] = frozenset()
    statuses: Mapping[InstanceId, str] = field(factory=dict)

    def and_of(self, other: Seen) -> Seen:
        """The findings of both checks together."""
        return Seen(
            bad=self.bad + other.bad,
            good=self.good | other.good,
            sure=self.sure | other.sure,
            statuses={**self.statuses, **other.statuses},
        )


@frozen(kw_only=True)
class Judged:
    """The result of a check. cluster: the row to write, if it differs.

    suspected: parts for the next check to confirm, each with the time of the finding. unwell:
    whether the row shows an ailment, or a failure of the last request.
    """

    cluster: Cluster
    events: tuple[ClusterEvent, ...] = ()
    suspected: Mapping[Key, Timestamp] = field(factory=dict)
    unwell: bool = False


# ---- findings -----------------------------------------------------------------------------------


def unlisted(cluster: Cluster, servers: Iterable[Server]) -> Sequence[str]:
    """Ids of servers in the row that the list lacks, for requests by id.

    Servers that the row shows as gone come last, because a check asks only for the first ones.
    """
    listed = {s.id for s in servers}
    instances = sorted(cluster.instances(), key=lambda i: i.status == lifecycle.GONE)
    return [i.server_id for i in instances if i.server_id and i.server_id not in listed]


def of_servers(
    cluster: Cluster, servers: Iterable[Server], gone: Iterable[str], now: Timestamp
) -> Seen:
    """The findings on servers. servers: from the list or by id. gone: ids that the cloud lacks."""
    shown = {s.id: s for s in servers}
    absent = {*gone, *(s.id for s in shown.values() if s.status == lifecycle.GONE)}
    bad: list[Ailment] = []
    good: list[Key] = []
    sure: list[Key] = []
    statuses: dict[InstanceId, str] = {}
    for instance in cluster.instances():
        if instance.server_id is None:
            continue
        key = (instance.instance_name, SERVER)
        server = shown.get(instance.server_id)
        where = f"server {instance.server_id} of {instance.instance_name}"
        if instance.server_id in absent:
            bad.append(_ailment(Code.SERVER_VANISHED, key, f"{where} is gone", now))
            sure.append(key)
            statuses[instance.instance_id] = lifecycle.GONE
        elif server is None or server.task_state == "deleting":
            continue  # the state of a server in deletion says nothing
        elif server.status in _RUNNING:
            good.append(key)
            statuses[instance.instance_id] = server.status
        else:
            why = f": {server.fault}" if server.fault else ""
            text = f"{where} is {server.status}{why}"
            bad.append(_ailment(Code.SERVER_DOWN, key, text, now, _STARTS.get(server.status, "")))
            if server.status == "ERROR" and server.fault:
                sure.append(key)
            statuses[instance.instance_id] = server.status
    return Seen(bad=tuple(bad), good=frozenset(good), sure=frozenset(sure), statuses=statuses)


def of_cloud(code: Code, reason: str, now: Timestamp) -> Seen:
    """The finding when the cloud refuses its lists: the trust is lost, or a role is missing."""
    return Seen(bad=(_ailment(code, ("", CLOUD), reason, now),))


CLOUD_ANSWERS: Final = Seen(good=frozenset({("", CLOUD)}))


def of_missing_distribution(reason: str, now: Timestamp) -> Seen:
    """The finding when the distribution is missing: svcd cannot ask the daemons without it."""
    return Seen(bad=(_ailment(Code.PLUGIN_GONE, ("", DISTRIBUTION), reason, now),))


def questions(plan: Plan) -> Sequence[tuple[HttpProbe | Command, str]]:
    """The questions of a check, each with the advice of its stage. A check writes no files."""
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
    """The findings on daemons. answers: one for each question.

    For a daemon that does not answer, the findings name only the first question to it. The state
    of parts that only this daemon knows stays unknown.
    """
    names = {i.instance_id: i.instance_name for i in cluster.instances()}
    bad: list[Ailment] = []
    good: list[Key] = [("", DISTRIBUTION)]
    silent: set[str] = set()
    for (question, advice), answer in zip(asked, answers, strict=True):
        key = (names.get(question.machine, ""), question.what)
        missing, code = answer.error, answer.code
        if isinstance(question, HttpProbe):
            place = urlsplit(question.url).netloc
            if place in silent:
                continue
            missing = answer.error or question.missing(answer.status, answer.body)
            if not missing and (missing := question.stranger(answer.status, answer.body)):
                code = Code.FOREIGN_DAEMON
            if answer.error or answer.status != 200 or code is Code.FOREIGN_DAEMON:
                silent.add(place)
        if missing:
            text = f"{question.what} on {key[0]}: {missing}"
            known = advice if code is Code.DAEMON_DOWN else ""
            bad.append(_ailment(code, key, text, now, known))
        else:
            good.append(key)
    sure = frozenset(a.key for a in bad if a.code == Code.FOREIGN_DAEMON)
    return Seen(bad=tuple(bad), good=frozenset(good), sure=sure)


def keys_of(cluster: Cluster, plan: Plan) -> frozenset[Key]:
    """The keys of all parts that a check of the whole cluster covers."""
    names = {i.instance_id: i.instance_name for i in cluster.instances()}
    daemons = [(names.get(q.machine, ""), q.what) for q, _ in questions(plan)]
    servers = [(name, SERVER) for name in names.values()]
    return frozenset([*daemons, *servers, ("", CLOUD), ("", DISTRIBUTION)])


def _ailment(code: Code, key: Key, text: str, now: Timestamp, advice: str = "") -> Ailment:
    return Ailment(
        code=code, machine=key[0], what=key[1], text=text[:500], advice=advice, since=now
    )


# ---- judgement ----------------------------------------------------------------------------------


def judged(
    cluster: Cluster,
    seen: Seen,
    parts: frozenset[Key],
    suspected: Mapping[Key, Timestamp],
    now: float,
) -> Judged:
    """The result of a check.

    parts: all parts of the cluster. suspected: from the check before, for the same request.
    """
    shown = () if cluster.unwell is None else cluster.unwell.ailments
    known = {(a.key, a.code): a for a in shown}
    down = {a.machine for a in seen.bad if a.what == SERVER}
    confirmed: list[Ailment] = []
    doubted: dict[Key, Timestamp] = {}
    covered = False
    for ailment in seen.bad:
        # the text of the last request already shows the ailment
        if ailment.text in cluster.status_description:
            covered = True
            continue
        before = known.get((ailment.key, ailment.code))
        if before is not None:
            confirmed.append(before)
        elif ailment.key in seen.sure or ailment.key in suspected:
            confirmed.append(evolve(ailment, since=suspected.get(ailment.key, ailment.since)))
        else:
            doubted[ailment.key] = ailment.since
    again = {a.key for a in confirmed}
    unknown = {
        a.key
        for a in shown
        if a.key not in again
        and a.key not in seen.good
        and a.key in parts
        and not (a.machine in down and a.what != SERVER)
    }
    found = {(a.key, a.code) for a in confirmed}
    still = [a for a in shown if (a.key, a.code) in found or a.key in unknown]
    new = [a for a in confirmed if (a.key, a.code) not in known]
    fresh = new[: max(0, MOST_KEPT - len(still))]
    ailments = (*still, *fresh)
    well = [a for a in shown if a.key in seen.good]
    written = _with(cluster, ailments)
    lost = {a.machine for a in (*confirmed, *still) if a.what == SERVER}
    written = lifecycle.with_instances(written, _statuses(cluster, seen, lost))
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
    shown = cluster.unwell.ailments if cluster.unwell is not None else ()
    if ailments == shown:
        return cluster
    unwell = Unwell(text=_text(ailments), ailments=ailments) if ailments else None
    return evolve(cluster, unwell=unwell)


def _statuses(
    cluster: Cluster, seen: Seen, lost: Collection[str]
) -> Mapping[InstanceId, Mapping[str, str]]:
    """New statuses of instances: those in `lost`, and those whose servers run again."""
    changes: dict[InstanceId, Mapping[str, str]] = {}
    for instance in cluster.instances():
        status = seen.statuses.get(instance.instance_id)
        if status is None or status == instance.status:
            continue
        if instance.instance_name in lost or status == "ACTIVE":
            changes[instance.instance_id] = {"status": status}
    return changes


def _by_code(ailments: Iterable[Ailment]) -> Mapping[Code, Sequence[Ailment]]:
    found: dict[Code, list[Ailment]] = {}
    for ailment in ailments:
        found.setdefault(Code(ailment.code), []).append(ailment)
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
        yield lifecycle.event(cluster, HEALTH, "failed", now, text, machine, code)


def _ended(
    cluster: Cluster, well: Sequence[Ailment], all_well: bool, now: float
) -> Iterable[ClusterEvent]:
    if not well:
        return
    lines = [
        f"{_part(a)} is well again after {now - seconds_of(a.since):.0f} s"
        for a in well[:_MOST_SHOWN]
    ]
    if len(well) > _MOST_SHOWN:
        lines.append(f"and {len(well) - _MOST_SHOWN} more")
    if all_well:
        lines.append(ALL_WELL)
    machine = well[0].machine if len(well) == 1 else ""
    yield lifecycle.event(cluster, HEALTH, "done", now, "; ".join(lines), machine)


def _part(ailment: Ailment) -> str:
    if not ailment.machine:
        return f"the {ailment.what}"
    return f"{ailment.what} of {ailment.machine}"
