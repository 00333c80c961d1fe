"""A plain HTTP client for the demo, such as a user's own script would have."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

_TIMEOUT_S = 30.0
"""Time for each connect and each read of a request."""
_DIRECT = urllib.request.build_opener(
    urllib.request.ProxyHandler({})
)  # every server is on this machine


class Refused(Exception):
    """An answer with an error status: method, URL, status and body."""

    def __init__(self, method: str, url: str, status: int, body: str) -> None:
        super().__init__(f"{method} {url} answered {status}: {body[:2000]}")
        self.status = status


def send(
    method: str,
    url: str,
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[Mapping[str, str], bytes]:
    """Send a request; return headers and body of a success. Raises Refused."""
    request = urllib.request.Request(url, data=data, method=method, headers=dict(headers or {}))
    try:
        with _DIRECT.open(request, timeout=_TIMEOUT_S) as answer:
            return answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        raise Refused(method, url, error.code, error.read().decode(errors="replace")) from None


class Service:
    """The v1.1 interface of svcd for one tenant."""

    def __init__(self, base: str, tenant: str) -> None:
        self._base = f"{base}/v1.1/{quote(tenant, safe='')}"

    def get(self, path: str) -> Any:
        return json.loads(send("GET", self._base + path)[1])

    def post(self, path: str, body: object) -> Any:
        return self._json("POST", path, body)

    def put(self, path: str, body: object) -> Any:
        return self._json("PUT", path, body)

    def upload(self, path: str, data: bytes) -> Any:
        return json.loads(send("PUT", self._base + path, data)[1])

    def delete(self, path: str) -> None:
        send("DELETE", self._base + path)

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
        except Refused as refused:
            if refused.status == 404:
                return False
            raise
        return True

    def _json(self, method: str, path: str, body: object) -> Any:
        data = json.dumps(body).encode()
        return json.loads(
            send(method, self._base + path, data, {"Content-Type": "application/json"})[1]
        )


class ObjectStore:
    """The cloud's object store, for the user of `endpoints.json` (Keystone v3 and Swift)."""

    def __init__(self, endpoints: Mapping[str, Any]) -> None:
        user = {
            "name": endpoints["username"],
            "domain": {"id": "default"},
            "password": endpoints["password"],
        }
        scope = {"project": {"name": endpoints["tenant"], "domain": {"id": "default"}}}
        body = {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": scope,
            }
        }
        headers, _ = send(
            "POST",
            f"{endpoints['identity']}/auth/tokens",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        self._headers = {"X-Auth-Token": headers["X-Subject-Token"]}
        self._base = str(endpoints["object_store"])

    def make(self, container: str) -> None:
        send("PUT", f"{self._base}/{container}", b"", self._headers)

    def write(self, container: str, name: str, data: bytes) -> None:
        send("PUT", f"{self._base}/{container}/{quote(name)}", data, self._headers)

    def names(self, container: str, prefix: str = "") -> list[str]:
        url = f"{self._base}/{container}?format=json&prefix={quote(prefix)}"
        return [e["name"] for e in json.loads(send("GET", url, None, self._headers)[1])]

    def read(self, container: str, name: str) -> bytes:
        return send("GET", f"{self._base}/{container}/{quote(name)}", None, self._headers)[1]

    def remove(self, container: str) -> None:
        for name in self.names(container):
            send("DELETE", f"{self._base}/{container}/{quote(name)}", None, self._headers)
        send("DELETE", f"{self._base}/{container}", None, self._headers)


class Steps:
    """Prints lines with the time since the start, and keeps the duration of each step."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._open: tuple[str, float] | None = None
        self.done: list[tuple[str, float]] = []

    def begin(self, name: str) -> None:
        """End the present step and begin the step `name`."""
        self.end()
        self._open = (name, time.monotonic())
        self.say(name)

    def end(self) -> None:
        if self._open is not None:
            name, since = self._open
            self.done.append((name, time.monotonic() - since))
            self._open = None

    def say(self, text: str) -> None:
        print(f"[{self.elapsed_s():6.1f} s] {text}", flush=True)

    def elapsed_s(self) -> float:
        return time.monotonic() - self._start
