"""A small Keystone and object store in threads that misbehaves on request.

It knows one user and one container in memory, and only the requests the faults are about. A fault
is consumed by the first request that fits it. Behaviour towards a healthy store is tested against
a real one instead.
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

Action = Literal["status", "early", "cut", "silent", "stall", "lost"]


@dataclass
class Fault:
    """One misbehaviour.

    action: `status` answers with it, `early` the same without reading the body and closes, `cut`
    sends half of a body and closes, `silent` never answers, `stall` never reads the body of a
    request, `lost` does what was asked and closes without an answer.
    """

    method: str
    text: str
    action: Action
    status: int = 503


@dataclass
class Peer:
    """The store; `url` is its Keystone address while it runs.

    objects: of the container `c`.
    faults: what will go wrong, see Fault.
    types: content types, of the objects that came with one.
    requests: `METHOD path` of each request.
    page: most names of one listing; 0: all.
    refuse_user: Keystone answers 401, or with `refusal`.
    logins: the body of each login.
    fail_tokens_after: Keystone answers 503 once it has given so many tokens.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    valid_token: str = ""
    tokens: int = 0
    refuse_user: bool = False
    refusal: int = 401
    logins: list[str] = field(default_factory=list)
    fail_tokens_after: int | None = None
    page: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self.released = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.peer = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v3"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the server and every request that hangs in it."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def note(self, method: str, path: str) -> Fault | None:
        """Records a request and takes the fault that is meant for it."""
        with self._lock:
            self.requests.append(f"{method} {path}")
            for fault in self.faults:
                if fault.method == method and fault.text in path:
                    self.faults.remove(fault)
                    return fault
        return None

    def new_token(self) -> str:
        """A token that replaces the one before."""
        with self._lock:
            self.tokens += 1
            self.valid_token = f"token-{self.tokens}"
            return self.valid_token

    def count(self, text: str) -> int:
        """How many requests held this text."""
        with self._lock:
            return sum(text in each for each in self.requests)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    peer: Peer

    def handle_error(self, request: object, client_address: object) -> None:
        """Cut connections are what this is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        peer = self.server.peer
        peer.logins.append(self._body().decode())
        fault = peer.note("POST", self.path)
        if fault is not None and self._misbehave(fault):
            return
        if peer.fail_tokens_after is not None and peer.tokens >= peer.fail_tokens_after:
            self._answer(503, b"")
            return
        if peer.refuse_user:
            self._answer(peer.refusal, b"{}")
            return
        store = peer.url.removesuffix("/v3") + "/v1/AUTH_p"
        token = {
            "expires_at": "2199-01-01T00:00:00.000000Z",
            "catalog": [
                {
                    "type": "object-store",
                    "endpoints": [{"interface": "public", "region": "R", "url": store}],
                }
            ],
        }
        body = json.dumps({"token": token}).encode()
        self._answer(201, body, {"X-Subject-Token": peer.new_token()})

    def do_GET(self) -> None:
        self._object()

    def do_HEAD(self) -> None:
        self._object()

    def do_PUT(self) -> None:
        self._object()

    def do_DELETE(self) -> None:
        self._object()

    def _object(self) -> None:
        peer = self.server.peer
        fault = peer.note(self.command, self.path)
        if fault is not None and fault.action == "stall":
            self._hang()
            return
        if fault is not None and fault.action == "early":
            self._answer(fault.status, b"")
            self._cut()
            return
        body = self._body() if self.command == "PUT" else b""
        if fault is not None and fault.action in ("status", "silent") and self._misbehave(fault):
            return
        if self.headers["X-Auth-Token"] != peer.valid_token:
            self._answer(401, b"who are you")
            return
        parts = urlsplit(self.path)
        _, _, _, container, *rest = unquote(parts.path).split("/", 4)
        if container != "c":
            self._answer(404, b"")
        elif not rest or not rest[0]:
            self._container(parse_qs(parts.query))
        else:
            self._one(rest[0], body, fault)

    def _container(self, query: dict[str, list[str]]) -> None:
        prefix, marker, slash = (query.get(k, [""])[0] for k in ("prefix", "marker", "delimiter"))
        passed = marker if slash and marker.endswith(slash) else None
        peer = self.server.peer
        names = sorted(n for n in peer.objects if n.startswith(prefix) and n > marker)
        entries: dict[str, dict[str, object]] = {}
        for name in names:
            below, found, _ = name[len(prefix) :].partition(slash) if slash else (name, "", "")
            if passed is not None and name.startswith(passed):
                continue
            if found:
                entries[f"{prefix}{below}/"] = {"subdir": f"{prefix}{below}/"}
            else:
                kind = peer.types.get(name, "text/plain")
                size = len(peer.objects[name])
                entries[name] = {"name": name, "bytes": size, "content_type": kind}
            if peer.page and len(entries) == peer.page:
                break
        self._answer(200, json.dumps(list(entries.values())).encode())

    def _one(self, key: str, body: bytes, fault: Fault | None) -> None:
        objects = self.server.peer.objects
        if self.command == "PUT":
            if self.headers["If-None-Match"] == "*" and key in objects:
                self._answer(412, b"")
                return
            copied = unquote(self.headers["X-Copy-From"] or "").removeprefix("/c/")
            if copied and copied not in objects:
                self._answer(404, b"")
                return
            objects[key] = objects[copied] if copied else body
            types = self.server.peer.types
            if kind := types.get(copied) if copied else self.headers["Content-Type"]:
                types[key] = kind
            if fault is not None and fault.action == "lost":
                self._cut()
                return
            self._answer(201, b"")
        elif key not in objects:
            self._answer(404, b"")
        elif self.command == "DELETE":
            del objects[key]
            self._answer(204, b"")
        else:
            self._content(key, objects[key], fault)

    def _content(self, key: str, whole: bytes, fault: Fault | None) -> None:
        etag = {"ETag": hashlib.md5(whole, usedforsecurity=False).hexdigest()}
        if kind := self.server.peer.types.get(key):
            etag["Content-Type"] = kind
        asked = self.headers["Range"]
        if asked is None:
            self._answer(200, whole, etag)
            return
        first, last = (int(each) for each in asked.removeprefix("bytes=").split("-"))
        part = whole[first : last + 1]
        if fault is not None and fault.action == "cut":
            self.send_response(206)
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part[: len(part) // 2])
            self._cut()
            return
        self._answer(206, part, etag)

    def _misbehave(self, fault: Fault) -> bool:
        if fault.action == "status":
            self._answer(fault.status, b"<html><h1>Not now</h1></html>")
            return True
        if fault.action == "silent":
            self._hang()
            return True
        return False

    def _hang(self) -> None:
        self.server.peer.released.wait(120)
        self.close_connection = True

    def _cut(self) -> None:
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"] or 0))

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        if status == 401:  # as Swift does; Java reacts to it
            self.send_header("WWW-Authenticate", f"Keystone uri='{self.server.peer.url}'")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
