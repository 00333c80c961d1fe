"""Peers that repeat in a refusal what was sent to them: headers and body, in any coding, cut."""

from __future__ import annotations

import base64
import json
import random
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

from twisted.web.http import Request
from twisted.web.resource import IResource, Resource, getChildForRequest

from svcd.embedded.scripted import Said
from svcd.ports.machines import Host

STATUSES = (400, 401, 403, 404, 409, 500, 502, 503)
_BODY_BYTES = 20_000
_CODINGS = (
    str,
    str,
    lambda t: quote(t, safe=""),
    lambda t: json.dumps(t)[1:-1],
    escape,
    lambda t: base64.b64encode(t.encode()).decode(),
    lambda t: base64.b64encode(b"x" + t.encode()).decode(),
    lambda t: base64.urlsafe_b64encode(b"xy" + t.encode()).decode(),
    repr,
)


def echo(rng: random.Random, headers: str, body: str) -> str:
    """Some of both, from anywhere in them."""
    said = rng.choice((headers, body, body, f"{headers} {body}"))
    marks = [m for m in ("password", "secret", "oken", "value>", '"id"') if m in said]
    start = said.find(rng.choice(marks)) if marks and rng.random() < 0.7 else 0
    if rng.random() < 0.3:
        start = rng.randrange(len(said) + 1)
    size = rng.choice((40, 90, 250, 1000, _BODY_BYTES))
    return "you sent: " + rng.choice(_CODINGS)(said[start : start + size])


class EvilCloud(Resource):
    """In front of the cloud and the engines. rate: how often it refuses and repeats."""

    isLeaf = True

    def __init__(self, inner: IResource, rng: random.Random) -> None:
        super().__init__()
        self._inner = inner
        self._rng = rng
        self.rate = 0.0
        self.echoed = 0

    def render(self, request: Request) -> Any:
        if self._rng.random() >= self.rate:
            return getChildForRequest(self._inner, request).render(request)
        self.echoed += 1
        return self._refuse(request)

    def _refuse(self, request: Request) -> bytes:
        rng = self._rng
        headers = " ".join(
            f"{name.decode('latin-1')}: {value.decode('latin-1')}"
            for name, values in request.requestHeaders.getAllRawHeaders()
            for value in values
        )
        request.content.seek(0)
        body = request.content.read(_BODY_BYTES).decode("utf-8", "replace")
        said = echo(rng, headers, body)
        request.setResponseCode(rng.choice(STATUSES))
        path = request.path.decode("latin-1")
        if "/webhdfs/" in path:
            told = {"exception": rng.choice(("IOException", said)), "message": said}
            return json.dumps({"RemoteException": told}).encode()
        if path.startswith("/engine/"):
            return self._engine(request, said)
        kind = rng.choice(("json", "json", "network", "html", "text"))
        if kind == "text":
            return said.encode()
        if kind == "html":
            return f"<html><head><title>no</title></head><body>{said}</body></html>".encode()
        if kind == "network":
            inner = {"type": said[:60], "message": said, "detail": said}
            return json.dumps({"NeutronError": inner}).encode()
        fault = {"code": 400, "message": said, "title": said}
        return json.dumps({"error": fault}, ensure_ascii=False).encode()

    def _engine(self, request: Request, said: str) -> bytes:
        kind = self._rng.choice(("headers", "json", "html"))
        if kind == "headers":
            line = " ".join(said.split())[:2000].encode("utf-8")
            request.setHeader(b"oozie-error-code", self._rng.choice((b"E0803", b"E0501", b"")))
            request.setHeader(b"oozie-error-message", line)
            return b""
        if kind == "json":
            return json.dumps({"errorMessage": said, "httpStatusCode": 400}).encode()
        return f"<html><body><h1>HTTP Status 500</h1>{said}</body></html>".encode()


class EvilMachines:
    """Commands that fail and repeat themselves and their input on stderr or stdout."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.rate = 0.0

    def __call__(self, host: Host, command: str, stdin: bytes) -> Said:
        if self._rng.random() >= self.rate:
            return Said()
        said = echo(self._rng, command, stdin.decode("utf-8", "replace"))
        if self._rng.random() < 0.3:
            return Said(exit_code=1, stdout=said)
        return Said(exit_code=1, stderr=said)
