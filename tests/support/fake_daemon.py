"""A FakeService behind a real socket, for commands that run as processes.

Its virtual time runs with the reactor's, faster by `speed`. The cloud of the FakeService is served
below `/cloud`, and a state folder with an `endpoints.json` names both.
"""

from __future__ import annotations

import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path
from typing import Any

import treq
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site

from svcd.testing import CLOUD_URL, FakeService
from tests.support.processes import ROOT, Ended, Program, reactor

_TICK_S = 0.05


class _Forward(Resource):
    """Hands each request to a FakeService, and keeps method, path, headers."""

    isLeaf = True

    def __init__(self, service: FakeService) -> None:
        super().__init__()
        self._service = service
        self.channels: set[Any] = set()
        self.asked: list[tuple[str, str, Mapping[str, str]]] = []
        self.answers: list[tuple[int, Mapping[str, str], bytes]] = []
        """Answers that are given in the place of the service's, the first one next."""
        self.streamed = 0
        """Bytes of answers without an end that were handed on."""

    def render(self, request: Any) -> bytes:
        self.channels.add(request.channel)
        path = request.uri.decode()
        headers = {
            name.decode().lower(): values[-1].decode()
            for name, values in request.requestHeaders.getAllRawHeaders()
        }
        self.asked.append((request.method.decode(), path, headers))
        if self.answers:
            status, fields, body = self.answers.pop(0)
            request.setResponseCode(status)
            for name, value in fields.items():
                request.setHeader(name, value)
            return body
        for name in ("host", "content-length", "connection", "accept-encoding"):
            headers.pop(name, None)
        if path.startswith("/cloud/"):
            path = CLOUD_URL + path.removeprefix("/cloud")
        if "/watch" in path:
            self.stream(path, headers, request)
            return NOT_DONE_YET  # type: ignore[return-value]
        data = request.content.read() or None
        answer = self._service.call(request.method.decode(), path, data=data, headers=headers)
        request.setResponseCode(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "server"):
                request.setHeader(name, value)
        if "/identity/" in path:  # the catalog names the port
            cloud = f"http://{request.getRequestHostname().decode()}:{request.getHost().port}/cloud"
            return answer.body.replace(CLOUD_URL.encode(), cloud.encode())
        return answer.body

    def stream(self, path: str, headers: Mapping[str, str], request: Any) -> None:
        """Hand on an answer that has no end, piece by piece."""

        def hand_on(piece: bytes) -> None:
            self.streamed += len(piece)
            request.write(piece)

        async def work() -> None:
            request.notifyFinish().addErrback(lambda _: None)  # the client may leave
            url = self._service.url + path
            response = await self._service.treq.get(url, headers=headers, unbuffered=True)
            request.setResponseCode(response.code)
            for name, values in response.headers.getAllRawHeaders():
                request.responseHeaders.setRawHeaders(name, values)
            await treq.collect(response, hand_on)
            request.finish()

        Deferred.fromCoroutine(work()).addErrback(lambda _: None)


class FakeDaemonCase(TestCase):
    """A FakeService behind a socket, and commands that use it. settings: for the service."""

    settings: Mapping[str, str] = {}
    speed = 20.0

    def setUp(self) -> None:
        self.svcd = FakeService({"embedded.boot_s": "5", **self.settings})
        self.addCleanup(self.svcd.close)
        self.forward = _Forward(self.svcd)
        self._port: Any = None
        self.serve()
        clock = LoopingCall(lambda: self.svcd.advance(_TICK_S * self.speed))
        clock.clock = reactor
        clock.start(_TICK_S)
        self.addCleanup(clock.stop)
        self.state = Path(self.mktemp()).absolute()
        self.state.mkdir()
        self.endpoints = self.write_endpoints()
        self.addCleanup(self.deaf)

    def serve(self) -> None:
        """Listen, again on the same port after `deaf`."""
        number = getattr(self, "number", 0)
        self._port = reactor.listenTCP(number, Site(self.forward), interface="127.0.0.1")
        self.number = int(self._port.getHost().port)
        self.api = f"http://127.0.0.1:{self.number}"

    async def deaf(self) -> None:
        """Listen no more, and break off all connections."""
        if self._port is not None:
            port, self._port = self._port, None
            await port.stopListening()
            for channel in self.forward.channels:
                if channel.transport is not None:
                    channel.transport.abortConnection()
            self.forward.channels.clear()

    def write_endpoints(self, **more: Any) -> Mapping[str, Any]:
        cloud = self.svcd.cloud.core
        found = {
            "api": self.api,
            "tenant": self.svcd.tenant,
            "identity": f"{self.api}/cloud/identity/v3",
            "compute": f"{self.api}/cloud/compute/v2.1",
            "username": "demo",
            "password": cloud.users_by_name["demo"].password,
            "images": [{"id": self.svcd.image_id, "name": "plain", "username": "svcd", "tags": []}],
            "keypairs": ["demo"],
            **more,
        }
        (self.state / "endpoints.json").write_text(json.dumps(found))
        return found

    def command(self, *words: str, **variables: str) -> Program:
        """Start `svcd WORDS` without a terminal."""
        environment = {"SVCD_SERVER_STATE_DIR": str(self.state), **variables}
        return Program([sys.executable, "-m", "svcd", *words], environment)

    async def ran(self, *words: str, **variables: str) -> Ended:
        """Run `svcd WORDS` without a terminal."""
        return await self.command(*words, **variables).end()

    async def seen(
        self, columns: int, *words: str, typed: str = "", **variables: str
    ) -> tuple[int, str]:
        """Run `svcd WORDS` in a terminal; its exit code, and all that the terminal got."""
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SVCD_", "OS_"))},
            "PYTHONPATH": str(ROOT),
            "SVCD_SERVER_STATE_DIR": str(self.state),
            "TERM": "xterm",
            **variables,
        }
        environment.pop("COLUMNS", None)
        result: tuple[int, str] = await deferToThread(
            in_terminal, [sys.executable, "-m", "svcd", *words], columns, environment, typed
        )
        return result


def in_terminal(
    command: Sequence[str], columns: int, environment: Mapping[str, str], typed: str
) -> tuple[int, str]:
    """Run a program in a pseudo-terminal. typed: what the person types at once."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        os.close(theirs)
        os.write(ours, typed.encode())
        got = bytearray()
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            got += piece
        code = process.wait(60)
    os.close(ours)
    return code, got.decode(errors="replace").replace("\r\n", "\n")
