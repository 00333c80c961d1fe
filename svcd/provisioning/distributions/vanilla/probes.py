"""What daemons say over HTTP, and what is still missing.

Each is a value that takes (status, body) and returns "" or what it waits for, so plans can be
compared. A body that makes no sense is something to wait for, never an exception.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from attrs import frozen

from svcd.model import foreign


@frozen
class Answers:
    """Any good answer of `what`."""

    what: str

    def __call__(self, status: int, body: bytes) -> str:
        return "" if status == 200 else f"{self.what} answers with status {status}"


@frozen
class LiveDataNodes:
    """The name node knows the data nodes at `addresses`, alive and in service.

    least: how many of them suffice; 0: all.
    """

    addresses: tuple[str, ...]
    least: int = 0

    def __call__(self, status: int, body: bytes) -> str:
        if status != 200:
            return f"the name node answers with status {status}"
        nodes = dict(_nodes(_bean(body), "LiveNodes"))
        absent = [a for a in self.addresses if nodes.get(a, {}).get("adminState") != "In Service"]
        if len(self.addresses) - len(absent) >= (self.least or len(self.addresses)):
            return ""
        return f"data nodes not in service yet: {', '.join(absent)}"


@frozen
class DataNodeServes:
    """The name node counts the data node at `address` among the living, and it is in service."""

    address: str

    def __call__(self, status: int, body: bytes) -> str:
        if status != 200:
            return f"the name node answers with status {status}"
        bean = _bean(body)
        if "LiveNodes" not in bean:
            return "the name node does not list its nodes"
        node = dict(_nodes(bean, "LiveNodes")).get(self.address)
        if node is None:
            return "the name node hears nothing of it"
        state = node.get("adminState")
        return "" if state == "In Service" else f"the name node has it as {state!r}"


@frozen
class SafeModeOff:
    """The name node takes changes."""

    def __call__(self, status: int, body: bytes) -> str:
        if status != 200:
            return f"the name node answers with status {status}"
        bean = _bean(body)
        if "Safemode" not in bean:
            return "the name node has not read its files yet"
        return str(bean["Safemode"])


@frozen
class Decommissioned:
    """The name node needs nothing of the data nodes at `addresses` any more (or they are dead)."""

    addresses: tuple[str, ...]

    def __call__(self, status: int, body: bytes) -> str:
        if status != 200:
            return f"the name node answers with status {status}"
        bean = _bean(body)
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

    machines: name by address. A node manager gives the name that its address has for Java: that of
    the hosts file, the address itself on machines that are folders.
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
    """The resource manager gives work to the node manager at `address`. name: see RunningNodes."""

    address: str
    name: str

    def __call__(self, status: int, body: bytes) -> str:
        if status != 200:
            return f"the resource manager answers with status {status}"
        if "nodes" not in _json(body):
            return "the resource manager does not list its nodes"
        mine = [row for row in _rows(body) if _listed(self.address, self.name, [_host(row)])]
        if any(row.get("state") == "RUNNING" for row in mine):
            return ""
        if not mine:
            return "the resource manager hears nothing of it"
        report = " ".join(str(mine[-1].get("healthReport") or "").split())[:200]
        return f"the resource manager has it as {mine[-1].get('state')}: {report}".rstrip(": ")


@frozen
class NodesGone:
    """The resource manager gives the node managers on `machines` no work any more.

    machines: as for RunningNodes.
    """

    machines: Mapping[str, str]

    def __call__(self, status: int, body: bytes) -> str:
        if status != 200 or not isinstance(_json(body).get("nodes", {}), (dict, type(None))):
            return f"the resource manager answers with status {status}"
        if "nodes" not in _json(body):
            return "the resource manager does not list its nodes"
        working = {a for a, state in _yarn_nodes(body) if state in ("RUNNING", "DECOMMISSIONING")}
        left = [a for a, name in self.machines.items() if _listed(a, name, working)]
        return f"node managers still at work: {', '.join(left)}" if left else ""


@frozen
class OozieNormal:
    """Oozie takes jobs."""

    def __call__(self, status: int, body: bytes) -> str:
        mode = _json(body).get("systemMode") if status == 200 else f"status {status}"
        return "" if mode == "NORMAL" else f"Oozie is not ready: {mode}"


@frozen
class ShareLibraryKnown:
    """Oozie has read its share library. (The question makes it read.)"""

    def __call__(self, status: int, body: bytes) -> str:
        found = _json(body)
        updates = found.get("sharelibUpdate") if status == 200 else None
        rows = updates if isinstance(updates, list) else [updates]
        if any(isinstance(r, dict) and r.get("status") == "Successful" for r in rows):
            return ""
        return f"Oozie has not read the share library: status {status}"


def _listed(address: str, name: str, hosts: Collection[str]) -> bool:
    """Whether one of `hosts` is the machine: its address, or its name with or without a domain."""
    return any(h == address or h.lower().partition(".")[0] == name.lower() for h in hosts)


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        found = foreign.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _bean(body: bytes) -> Mapping[str, Any]:
    beans = _json(body).get("beans")
    first = beans[0] if isinstance(beans, list) and beans else None
    return first if isinstance(first, dict) else {}


def _nodes(bean: Mapping[str, Any], key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    text = bean.get(key)
    for name, node in _json(text.encode() if isinstance(text, str) else b"").items():
        if isinstance(node, dict):
            # the name it gave itself, and where the name node saw it come from
            yield str(name).rsplit(":", 1)[0], node
            yield str(node.get("xferaddr") or name).rsplit(":", 1)[0], node


def _rows(body: bytes) -> Iterator[Mapping[str, Any]]:
    nodes = _json(body).get("nodes")
    rows = nodes.get("node") if isinstance(nodes, dict) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            yield row


def _host(row: Mapping[str, Any]) -> str:
    return str(row.get("id", "")).rsplit(":", 1)[0]


def _yarn_nodes(body: bytes) -> Iterator[tuple[str, str]]:
    for row in _rows(body):
        yield _host(row), str(row.get("state"))
