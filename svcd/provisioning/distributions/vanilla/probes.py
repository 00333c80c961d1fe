"""Checks of the answers that daemons give over HTTP.

Each check is a value that takes (status, body). It returns "" for a good answer, else the missing
part as text. Because the checks are values, plans can be compared. A malformed body counts as
"not ready yet" and never raises an exception.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from svcd.model import foreign

NODE_IDENTITY = "svcd-cluster"
"""The attribute by which a node manager tells the resource manager the id of its cluster."""


@frozen
class Shows:
    """`what` shows its configuration: the value of `option`, or a 404 that names the option.

    The identity of the probe decides whether the answer is the cluster's own. A daemon that begins
    or ends answers 404 for any page.
    """

    what: str
    option: str = ""

    def __call__(self, status: int, body: bytes) -> str:
        unknown = status == 404 and self.option != "" and self.option.encode() in body
        return "" if status == 200 or unknown else f"{self.what} answers with status {status}"


class _OfNameNode(ABC):
    """A check of the name node's answer about its nodes. missing: the missing part, or ""."""

    def __call__(self, status: int, body: bytes) -> str:
        if status != 200:
            return f"the name node answers with status {status}"
        return self.missing(_bean(body))

    @abstractmethod
    def missing(self, bean: Mapping[str, Any]) -> str: ...


@frozen
class AnyDataNode(_OfNameNode):
    """One of the data nodes at `addresses` is live and in service."""

    addresses: tuple[str, ...]

    def missing(self, bean: Mapping[str, Any]) -> str:
        nodes = dict(_nodes(bean, "LiveNodes"))
        if any(nodes.get(a, {}).get("adminState") == "In Service" for a in self.addresses):
            return ""
        return f"no data node is in service yet: {', '.join(self.addresses)}"


@frozen
class DataNodeServes(_OfNameNode):
    """The name node lists the data node at `address` as live and in service."""

    address: str

    def missing(self, bean: Mapping[str, Any]) -> str:
        if "LiveNodes" not in bean:
            return "the name node does not list its nodes"
        node = dict(_nodes(bean, "LiveNodes")).get(self.address)
        if node is None:
            return "the name node gets no heartbeat of this data node"
        state = node.get("adminState")
        return "" if state == "In Service" else f"the name node shows this data node as {state!r}"


@frozen
class SafeModeOff(_OfNameNode):
    """The name node has left safe mode and accepts changes."""

    def missing(self, bean: Mapping[str, Any]) -> str:
        if "Safemode" not in bean:
            return "the name node has not read its files yet"
        return str(bean["Safemode"])


@frozen
class Decommissioned(_OfNameNode):
    """The name node has no more need of the data nodes at `addresses`, or they are dead."""

    addresses: tuple[str, ...]

    def missing(self, bean: Mapping[str, Any]) -> str:
        if "LiveNodes" not in bean:
            return "the name node does not list its nodes"
        nodes = dict(_nodes(bean, "LiveNodes"))
        waiting = [
            f"{a} ({nodes[a].get('adminState')}, {nodes[a].get('numBlocks')} blocks)"
            for a in self.addresses
            if a in nodes and nodes[a].get("adminState") != "Decommissioned"
        ]
        return f"data nodes still giving up their blocks: {', '.join(waiting)}" if waiting else ""


class _OfManager(ABC):
    """A check of the resource manager's list of nodes. missing: the missing part, or ""."""

    def __call__(self, status: int, body: bytes) -> str:
        answer = foreign.mapping(body)
        nodes = answer.get("nodes")
        if status != 200 or not isinstance(nodes, (dict, type(None))):
            return f"the resource manager answers with status {status}"
        if "nodes" not in answer:
            return "the resource manager does not list its nodes"
        rows = nodes.get("node") if nodes else None
        known = rows if isinstance(rows, list) else []
        return self.missing([row for row in known if isinstance(row, dict)])

    @abstractmethod
    def missing(self, rows: Sequence[Mapping[str, Any]]) -> str: ...


@frozen
class NodeManagerServes(_OfManager):
    """The resource manager gives work to the cluster's node manager at `address`.

    name: a node manager reports the name that Java finds for its address: the name in the hosts
    file, or the address itself on machines that are folders. cluster_id: see `NODE_IDENTITY`.
    """

    address: str
    name: str
    cluster_id: str

    def missing(self, rows: Sequence[Mapping[str, Any]]) -> str:
        mine = [row for row in rows if _listed(self.address, self.name, [_host(row)])]
        running = [_cluster_of(row) for row in mine if row.get("state") == "RUNNING"]
        if self.cluster_id in running:
            return ""
        if running:
            return f"the node manager at {self.address} belongs to {_other(running[0])}"
        if not mine:
            return "the resource manager gets no heartbeat of this node manager"
        report = " ".join(str(mine[-1].get("healthReport") or "").split())[:200]
        state = mine[-1].get("state")
        return f"the resource manager shows this node manager as {state}: {report}".rstrip(": ")


@frozen
class OwnNodes(_OfManager):
    """The resource manager gives work to node managers of the cluster only.

    A node manager stays with the address of its resource manager. When a cloud gives this address
    to another cluster, the node manager registers there, and gets that cluster's containers.
    """

    cluster_id: str

    def missing(self, rows: Sequence[Mapping[str, Any]]) -> str:
        others = [
            f"{_host(row)} ({_other(_cluster_of(row))})"
            for row in rows
            if row.get("state") == "RUNNING" and _cluster_of(row) != self.cluster_id
        ]
        return f"node managers that are not of this cluster: {', '.join(others)}" if others else ""


@frozen
class NodesGone(_OfManager):
    """The node managers on `machines` have finished their work and get no more.

    machines: name by address, see NodeManagerServes.
    """

    machines: Mapping[str, str]

    def missing(self, rows: Sequence[Mapping[str, Any]]) -> str:
        at_work = ("RUNNING", "DECOMMISSIONING")
        working = {_host(row) for row in rows if row.get("state") in at_work}
        left = [a for a, name in self.machines.items() if _listed(a, name, working)]
        return f"node managers still at work: {', '.join(left)}" if left else ""


@frozen
class NoApplications:
    """YARN runs no application. The one with `tag` may run while it has no container."""

    tag: str

    def __call__(self, status: int, body: bytes) -> str:
        rows = _applications(body) if status == 200 else None
        if rows is None:
            return f"the resource manager does not list its applications: status {status}"
        for row in rows:
            known = self.tag in str(row.get("applicationTags")).split(",")
            if not known or row.get("state") != "RUNNING" or row.get("runningContainers") != 0:
                return f"{str(row.get('id'))[:60]} is {str(row.get('state'))[:20]} in YARN"
        return ""


@frozen
class Counts:
    """A daemon shows the counters of `mark`."""

    mark: Callable[[bytes], str]

    def __call__(self, status: int, body: bytes) -> str:
        return "" if status == 200 and self.mark(body) else f"no counters: status {status}"


def memory_used(body: bytes) -> str:
    """The mark of a list of applications: it changes when one has had a container."""
    return " ".join(str(row.get("memorySeconds"))[:20] for row in _applications(body) or ())


def submissions(body: bytes) -> str:
    """The mark of YARN: the number of its applications so far."""
    return _numbers(foreign.mapping(body).get("clusterMetrics"), "appsSubmitted")


def blocks_used(body: bytes) -> str:
    """The mark of HDFS: how often blocks were written or read so far, some seconds ago."""
    return _numbers(_bean(body), "AddBlockOps", "GetBlockLocations")


@frozen
class OozieNormal:
    """Oozie accepts jobs."""

    def __call__(self, status: int, body: bytes) -> str:
        mode = foreign.mapping(body).get("systemMode") if status == 200 else f"status {status}"
        return "" if mode == "NORMAL" else f"Oozie is not ready: {mode}"


@frozen
class ShareLibraryKnown:
    """Oozie has read its share library. The request itself makes Oozie read it."""

    def __call__(self, status: int, body: bytes) -> str:
        found = foreign.mapping(body)
        updates = found.get("sharelibUpdate") if status == 200 else None
        rows = updates if isinstance(updates, list) else [updates]
        if any(isinstance(r, dict) and r.get("status") == "Successful" for r in rows):
            return ""
        return f"Oozie has not read the share library: status {status}"


def _listed(address: str, name: str, hosts: Collection[str]) -> bool:
    """Whether one of `hosts` is the machine: its address, or its name with or without a domain."""
    return any(h == address or h.lower().partition(".")[0] == name.lower() for h in hosts)


def _bean(body: bytes) -> Mapping[str, Any]:
    beans = foreign.mapping(body).get("beans")
    first = beans[0] if isinstance(beans, list) and beans else None
    return first if isinstance(first, dict) else {}


def _nodes(bean: Mapping[str, Any], key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    text = bean.get(key)
    for name, node in foreign.mapping(text.encode() if isinstance(text, str) else b"").items():
        if isinstance(node, dict):
            # the name that the node reports, and the address that the name node saw
            yield str(name).rsplit(":", 1)[0], node
            yield str(node.get("xferaddr") or name).rsplit(":", 1)[0], node


def _numbers(part: object, *names: str) -> str:
    """The values of `names`, as a text; "" when one is no number."""
    values = [part.get(name) if isinstance(part, dict) else None for name in names]
    return " ".join(map(str, values)) if all(type(v) is int for v in values) else ""


def _applications(body: bytes) -> Sequence[Mapping[str, Any]] | None:
    """The applications in an answer of the resource manager; None when it is malformed."""
    apps = foreign.mapping(body).get("apps", "")
    rows = apps.get("app", []) if isinstance(apps, dict) else [] if apps is None else None
    return rows if isinstance(rows, list) and all(isinstance(r, dict) for r in rows) else None


def _cluster_of(row: Mapping[str, Any]) -> str:
    """The id of the cluster that a node manager has reported; "" when it has reported none."""
    shown = row.get("nodeAttributesInfo")
    attributes = shown.get("nodeAttributeInfo") if isinstance(shown, dict) else None
    for attribute in attributes if isinstance(attributes, list) else ():
        if isinstance(attribute, dict) and attribute.get("name") == NODE_IDENTITY:
            return str(attribute.get("value"))
    return ""


def _other(cluster_id: str) -> str:
    return f"cluster {cluster_id}" if cluster_id else "no cluster of svcd"


def _host(row: Mapping[str, Any]) -> str:
    return str(row.get("id", "")).rsplit(":", 1)[0]
