"""Checks of the answers that daemons give over HTTP.

Each check is a value that takes (status, body). It returns "" for a good answer, else the missing
part as text. Because the checks are values, plans can be compared. A malformed body counts as
"not ready yet" and never raises an exception.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from attrs import frozen

from svcd.model import foreign


@frozen
class Answers:
    """`what` answers with status 200."""

    what: str

    def __call__(self, status: int, body: bytes) -> str:
        return "" if status == 200 else f"{self.what} answers with status {status}"


class _OfNameNode(ABC):
    """A check of the name node's answer about its nodes. missing: the missing part, or ""."""

    def __call__(self, status: int, body: bytes) -> str:
        if status != 200:
            return f"the name node answers with status {status}"
        return self.missing(_bean(body))

    @abstractmethod
    def missing(self, bean: Mapping[str, Any]) -> str: ...


@frozen
class LiveDataNodes(_OfNameNode):
    """The name node knows the data nodes at `addresses`, alive and in service.

    least: the number of data nodes that suffices; 0: all.
    """

    addresses: tuple[str, ...]
    least: int = 0

    def missing(self, bean: Mapping[str, Any]) -> str:
        nodes = dict(_nodes(bean, "LiveNodes"))
        absent = [a for a in self.addresses if nodes.get(a, {}).get("adminState") != "In Service"]
        if len(self.addresses) - len(absent) >= (self.least or len(self.addresses)):
            return ""
        return f"data nodes not in service yet: {', '.join(absent)}"


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


@frozen
class RunningNodes:
    """The resource manager knows the node managers on `machines` as running.

    machines: name by address. A node manager reports the name that Java finds for its address: the
    name in the hosts file, or the address itself on machines that are folders.
    """

    machines: Mapping[str, str]

    def __call__(self, status: int, body: bytes) -> str:
        if status != 200:
            return f"the resource manager answers with status {status}"
        running = {a for a, state in _yarn_nodes(body) if state == "RUNNING"}
        absent = [a for a, name in self.machines.items() if not _listed(a, name, running)]
        return f"node managers not registered yet: {', '.join(absent)}" if absent else ""


@frozen
class NodeManagerServes:
    """The resource manager gives work to the node manager at `address`.

    name: see RunningNodes.
    """

    address: str
    name: str

    def __call__(self, status: int, body: bytes) -> str:
        if status != 200:
            return f"the resource manager answers with status {status}"
        if "nodes" not in foreign.mapping(body):
            return "the resource manager does not list its nodes"
        mine = [row for row in _rows(body) if _listed(self.address, self.name, [_host(row)])]
        if any(row.get("state") == "RUNNING" for row in mine):
            return ""
        if not mine:
            return "the resource manager gets no heartbeat of this node manager"
        report = " ".join(str(mine[-1].get("healthReport") or "").split())[:200]
        state = mine[-1].get("state")
        return f"the resource manager shows this node manager as {state}: {report}".rstrip(": ")


@frozen
class NodesGone:
    """The node managers on `machines` have finished their work and get no more.

    machines: as for RunningNodes.
    """

    machines: Mapping[str, str]

    def __call__(self, status: int, body: bytes) -> str:
        found = foreign.mapping(body)
        if status != 200 or not isinstance(found.get("nodes", {}), (dict, type(None))):
            return f"the resource manager answers with status {status}"
        if "nodes" not in found:
            return "the resource manager does not list its nodes"
        working = {a for a, state in _yarn_nodes(body) if state in ("RUNNING", "DECOMMISSIONING")}
        left = [a for a, name in self.machines.items() if _listed(a, name, working)]
        return f"node managers still at work: {', '.join(left)}" if left else ""


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


def _rows(body: bytes) -> Iterator[Mapping[str, Any]]:
    nodes = foreign.mapping(body).get("nodes")
    rows = nodes.get("node") if isinstance(nodes, dict) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            yield row


def _host(row: Mapping[str, Any]) -> str:
    return str(row.get("id", "")).rsplit(":", 1)[0]


def _yarn_nodes(body: bytes) -> Iterator[tuple[str, str]]:
    for row in _rows(body):
        yield _host(row), str(row.get("state"))
