"""What a tenant's cloud holds of svcd's, and whether that is what the rows say. Pure but for lists.

Two things are allowed beyond the rows: a second group of a cluster's name, unused, that a call made
after its daemon's death, and that goes with its cluster; and for some minutes a loose trust, whose
request died with the daemon before the row was written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from svcd.model import ownership_tags
from svcd.runtime.tasks import gather
from tests.support.processes import send

_COMPUTE = {"OpenStack-API-Version": "compute 2.60"}
_LISTS = {
    "servers": ("compute", "/servers/detail", "servers"),
    "server_groups": ("compute", "/os-server-groups", "server_groups"),
    "volumes": ("volume", "/volumes/detail", "volumes"),
    "ports": ("network", "/v2.0/ports", "ports"),
    "addresses": ("network", "/v2.0/floatingips", "floatingips"),
    "security_groups": ("network", "/v2.0/security-groups", "security_groups"),
    "trusts": ("identity", "/OS-TRUST/trusts", "trusts"),
}


class Wrong(AssertionError):
    """Something is not as it must be."""


def check_said(said: str) -> None:
    """No bug in what a daemon said. Raises Wrong."""
    for mark in ("Traceback", "incident"):
        at = said.find(mark)
        if at >= 0:
            raise Wrong(f"the daemon said: {said[max(0, at - 500) : at + 1500]}")


@frozen(kw_only=True)
class Things:
    """The services' own records: of the tenant, and all trusts."""

    servers: Sequence[Any]
    server_groups: Sequence[Any]
    volumes: Sequence[Any]
    ports: Sequence[Any]
    addresses: Sequence[Any]
    security_groups: Sequence[Any]
    trusts: Sequence[Any]


async def listed(told: Mapping[str, Any], token: str, admin: str) -> Things:
    """told: URLs by service. admin: a token that sees the trusts. Raises Wrong."""

    async def rows(service: str, path: str, kind: str) -> Sequence[Any]:
        headers = {"X-Auth-Token": admin if kind == "trusts" else token}
        if service == "compute":
            headers |= _COMPUTE
        reply = await send("GET", told[service] + path, headers=headers)
        if reply.status != 200:
            raise Wrong(f"GET {service} {path}: {reply.status} {reply.body.decode()}")
        found: Sequence[Any] = reply.json[kind]
        return found

    answers = await gather([partial(rows, *each) for each in _LISTS.values()], 4)
    found: dict[str, Any] = {}
    for name, answer in zip(_LISTS, answers, strict=True):
        if isinstance(answer, BaseException):
            raise answer
        found[name] = answer
    return Things(**found)


def faults(
    things: Things,
    shown: Sequence[Any],
    ids: Sequence[str],
    trusts: Sequence[str],
    whole: bool,
) -> tuple[list[str], set[str]]:
    """What is wrong with the clusters of the ids, in words, and the loose trusts.

    shown: the API's records of those that are there. whole: no other cluster is there; only then
    are trusts looked at.
    """
    wrong: list[str] = []
    known = {c["id"]: c for c in shown}
    for cluster_id in dict.fromkeys([*ids, *known]):
        wrong += [
            f"{cluster_id}: {fault}"
            for fault in _cluster(things, known.get(cluster_id), cluster_id)
        ]
    if not whole:
        return wrong, set()
    wrong += [f"of no cluster: {what}" for what in _strays(things, known)]
    present = {t["id"] for t in things.trusts}
    gone = sorted(set(trusts) - present)
    if gone or len(trusts) != len(shown):
        wrong.append(f"{len(shown)} clusters have the trusts {trusts}; not there: {gone}")
    return wrong, present - set(trusts)


def _cluster(things: Things, cluster: Any, cluster_id: str) -> list[str]:
    """cluster: None when it is gone."""
    groups = cluster["node_groups"] if cluster else []
    pairs = [(group, each) for group in groups for each in group["instances"]]
    wrong: list[str] = []

    def same(what: str, found: Any, expected: Any) -> None:
        if sorted(found) != sorted(expected):
            wrong.append(f"{what}: {sorted(found)}, by the rows {sorted(expected)}")

    servers = [s for s in things.servers if _of(s["metadata"]) == cluster_id]
    same(
        "servers",
        [(s["metadata"][ownership_tags.INSTANCE], s["id"], s["status"]) for s in servers],
        [(i["instance_id"], i.get("server_id", "none"), "ACTIVE") for _, i in pairs],
    )
    server_ids = [s["id"] for s in servers]
    same("ports' servers", [p for p in _devices(things) if p in server_ids], server_ids)
    volumes = [v for v in things.volumes if _of(v["metadata"]) == cluster_id]
    same(
        "volumes",
        [
            (v["metadata"][ownership_tags.INSTANCE], v["id"], v["status"], _attached(v))
            for v in volumes
        ],
        [
            (i["instance_id"], v, "in-use", (i.get("server_id", "none"),))
            for _, i in pairs
            for v in i["volumes"]
        ],
    )
    for group, each in pairs:
        if len(each["volumes"]) != group["volumes_per_node"]:
            wrong.append(f"{each['instance_name']} has the volumes {each['volumes']}")
    ports = {p["id"]: p for p in things.ports}
    addresses = [a for a in things.addresses if cluster_id in a["description"]]
    same(
        "addresses",
        [
            (
                a["description"].rpartition(":")[2],
                a["floating_ip_address"],
                str(ports.get(a["port_id"], {}).get("device_id")),
            )
            for a in addresses
        ],
        [
            (i["instance_id"], i.get("management_ip", "none"), i.get("server_id", "none"))
            for group, i in pairs
            if group.get("floating_ip_pool")
        ],
    )
    name = ownership_tags.group_name(cluster_id)
    security = {g["id"] for g in things.security_groups if g["name"] == name}
    used = [
        security & set(p["security_groups"]) for p in things.ports if p["device_id"] in server_ids
    ]
    if cluster is None and security:
        wrong.append(f"security groups {sorted(security)}")
    if any(len(each) != 1 for each in used):
        wrong.append(f"ports with the security groups {used}")
    server_groups = [g for g in things.server_groups if g["name"] == name]
    members = [g["members"] for g in server_groups if g["members"]]
    apart = set(cluster["anti_affinity"] if cluster else ())
    wanted = [
        i.get("server_id", "none")
        for group, i in pairs
        if not apart.isdisjoint(group["node_processes"])
    ]
    if not cluster and server_groups:
        wrong.append(f"server groups {server_groups}")
    same("members of server groups", map(sorted, members), [sorted(wanted)] if wanted else [])
    return wrong


def _strays(things: Things, known: Mapping[str, Any]) -> list[str]:
    """Marked with a cluster that is not there."""
    found: list[str] = []
    for kind, rows in (("server", things.servers), ("volume", things.volumes)):
        of = [(row["id"], _of(row["metadata"])) for row in rows]
        found += [
            f"{kind} {id_} of {cluster}" for id_, cluster in of if cluster not in (*known, "")
        ]
    for row in things.addresses:
        mark = ownership_tags.of_address(row["description"])
        if mark is not None and mark.cluster_id not in known:
            found.append(f"floating IP {row['id']} of {mark.cluster_id}")
    for kind, rows in (
        ("security group", things.security_groups),
        ("server group", things.server_groups),
    ):
        for row in rows:
            mark = ownership_tags.of_server_group(row["name"])
            if mark is not None and mark.cluster_id not in known:
                found.append(f"{kind} {row['id']} of {mark.cluster_id}")
    servers = {s["id"] for s in things.servers}
    for row in things.ports:
        if (
            str(row.get("device_owner", "")).startswith("compute:")
            and row["device_id"] not in servers
        ):
            found.append(f"port {row['id']} of server {row['device_id']}, which is not there")
    twice = [id_ for id_, count in Counter(_devices(things)).items() if count > 1]
    return found + [f"server {id_} has several ports" for id_ in twice]


def _of(metadata: Mapping[str, str]) -> str:
    return str(metadata.get(ownership_tags.CLUSTER, ""))


def _devices(things: Things) -> list[str]:
    servers = {s["id"] for s in things.servers}
    return [str(p["device_id"]) for p in things.ports if p["device_id"] in servers]


def _attached(volume: Any) -> tuple[str, ...]:
    return tuple(str(a["server_id"]) for a in volume["attachments"])
