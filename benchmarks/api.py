"""The API of a daemon for one tenant, with JSON in and out, on one connection."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.client import connect, request
from benchmarks.lives import MASTER, WORKER

_IDLE_S: Final = 10.0
"""A connection that was idle for longer is not used again: `server.idle_timeout_s` would end it."""

ALL_IN_ONE: Final = (("all", 1, (*MASTER, *WORKER)),)
"""Groups of a cluster of one machine, for `Api.cluster`."""


def master_and_workers(nodes: int) -> Sequence[tuple[str, int, Sequence[str]]]:
    """Groups of a cluster of `nodes` machines, for `Api.cluster`."""
    return (("master", 1, MASTER), ("worker", nodes - 1, WORKER))


class Api:
    """Requests to a daemon beside an embedded cloud. told: the endpoints of the cloud."""

    def __init__(self, port: int, told: Mapping[str, Any]) -> None:
        self._port = port
        self._base = f"/v1.1/{told['tenant']}"
        self._image = next(image["id"] for image in told["images"] if image["name"] == "plain")
        self._connection = connect(port)
        self._used_at = time.perf_counter()
        self.asked("POST", f"/images/{self._image}", {"username": "svcd", "description": ""})
        self.asked("POST", f"/images/{self._image}/tag", {"tags": ["fake", "0.1"]})

    def asked(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of a success; None without a body. Raises Refused, OSError.

        body: bytes are sent as they are, anything else as JSON.
        """
        data = body if isinstance(body, bytes) else b"" if body is None else _encoded(body)
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        if time.perf_counter() - self._used_at > _IDLE_S:
            self._connection.close()
            self._connection = connect(self._port)
        answer = self._connection.exchange(request(method, self._base + path, data, kind))
        self._used_at = time.perf_counter()
        return json.loads(answer) if answer else None

    def cluster(self, name: str, groups: Sequence[tuple[str, int, Sequence[str]]]) -> str:
        """Ask for a cluster; its id. groups: name, count and processes of each."""
        body = {
            "name": name,
            "plugin_name": "fake",
            "engine_version": "0.1",
            "default_image_id": self._image,
            "user_keypair_id": "demo",
            "node_groups": [
                {"name": group, "count": count, "flavor_id": "2", "node_processes": [*processes]}
                for group, count, processes in groups
            ],
        }
        id_: str = self.asked("POST", "/clusters", body)["cluster"]["id"]
        return id_

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def _encoded(body: object) -> bytes:
    return json.dumps(body).encode()
