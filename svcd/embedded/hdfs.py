"""A file system in memory with the answers of WebHDFS, for the scripted engine.

It has the operations that svcd uses and that tests read. It keeps contents, so its size is bounded:
it refuses a write beyond `most_bytes` as a name node refuses a write over quota. It checks no
permissions.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping

from attrs import define, field


class HdfsFault(Exception):
    """An answer that is a RemoteException."""

    def __init__(self, status: int, exception: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = json.dumps(
            {
                "RemoteException": {
                    "exception": exception,
                    "javaClassName": f"java.io.{exception}",
                    "message": message,
                }
            }
        ).encode()


@define
class Node:
    """A file (content not None) or a folder."""

    owner: str
    modified: float
    content: bytes | None = None
    group: str = "supergroup"
    permission: str = "755"


@define
class MemoryFiles:
    """The tree: absolute path -> node. `/` and `/user` are there from the start."""

    most_bytes: int = 512 * 1024 * 1024
    nodes: dict[str, Node] = field(factory=lambda: {"/": Node("hdfs", 0.0)})

    def make_folders(self, path: str, user: str, now: float, permission: str = "755") -> None:
        """Make a folder with its parents; existing folders stay unchanged."""
        path = _normal(path)
        for folder in [*_parents(path), path]:
            node = self.nodes.get(folder)
            if node is None:
                mode = permission if folder == path else "755"
                self.nodes[folder] = Node(user, now, permission=mode)
            elif node.content is not None:
                raise HdfsFault(
                    403,
                    "ParentNotDirectoryException",
                    f"{folder} (is not a directory)",
                )

    def write(self, path: str, user: str, content: bytes, now: float) -> None:
        """Make or replace a file; its folders are made."""
        path = _normal(path)
        there = self.nodes.get(path)
        if there is not None and there.content is None:
            raise HdfsFault(
                403, "FileAlreadyExistsException", f"{path} already exists as a directory"
            )
        if self.size() - len((there and there.content) or b"") + len(content) > self.most_bytes:
            raise HdfsFault(
                403, "DSQuotaExceededException", "the disk space quota of / is exceeded"
            )
        self.make_folders(posixpath.dirname(path), user, now)
        self.nodes[path] = Node(user, now, content=content, permission="644")

    def read(self, path: str) -> bytes:
        """Raises HdfsFault."""
        node = self._node(path)
        if node.content is None:
            raise HdfsFault(403, "IOException", f"Path is not a file: {path}")
        return node.content

    def exists(self, path: str) -> bool:
        """Whether `path` exists."""
        return _normal(path) in self.nodes

    def delete(self, path: str) -> bool:
        """Remove a path with everything below; False when it did not exist."""
        path = _normal(path)
        if path not in self.nodes:
            return False
        below = path.rstrip("/") + "/"
        for node in [p for p in self.nodes if p == path or p.startswith(below)]:
            if node != "/":
                del self.nodes[node]
        return True

    def children(self, path: str) -> Iterator[tuple[str, Node]]:
        """Names and nodes in a folder, sorted; a file is its own only child with the name ""."""
        path = _normal(path)
        node = self._node(path)
        if node.content is not None:
            yield "", node
            return
        for child in sorted(self.nodes):
            if child != "/" and posixpath.dirname(child) == path:
                yield posixpath.basename(child), self.nodes[child]

    def statuses(self, path: str) -> list[Mapping[str, object]]:
        """LISTSTATUS."""
        return [_status(name, node) for name, node in self.children(path)]

    def size(self) -> int:
        """Bytes of all files."""
        return sum(len(node.content) for node in self.nodes.values() if node.content)

    def _node(self, path: str) -> Node:
        node = self.nodes.get(_normal(path))
        if node is None:
            raise HdfsFault(404, "FileNotFoundException", f"File does not exist: {path}")
        return node


def _normal(path: str) -> str:
    return "/" + posixpath.normpath("/" + path).lstrip("/")


def _parents(path: str) -> list[str]:
    parts = path.strip("/").split("/")[:-1]
    return ["/" + "/".join(parts[: n + 1]) for n in range(len(parts)) if parts[n]]


def _status(name: str, node: Node) -> Mapping[str, object]:
    milliseconds = int(node.modified * 1000)
    return {
        "accessTime": 0 if node.content is None else milliseconds,
        "blockSize": 0 if node.content is None else 134217728,
        "childrenNum": 0,
        "fileId": 16386,
        "group": node.group,
        "length": len(node.content or b""),
        "modificationTime": milliseconds,
        "owner": node.owner,
        "pathSuffix": name,
        "permission": node.permission,
        "replication": 0 if node.content is None else 1,
        "storagePolicy": 0,
        "type": "DIRECTORY" if node.content is None else "FILE",
    }
