"""Programs of ours as child processes, and waiting for what they do. For tests with sockets."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import treq.client
from attrs import frozen
from twisted.internet import reactor as _reactor  # noqa: TID251 - tests with processes need one
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent

from svcd.embedded.process_marks import below, marked
from svcd.embedded.watchdog import Watchdog
from svcd.runtime.tasks import sleep, with_deadline
from svcd.settings import schema

reactor: Any = _reactor
ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
_WITH_CONSTANTS = (
    "from svcd import tap; from twisted.scripts.twistd import run;"
    " tap.Options.constants = True; run()"
)
"""`twistd` with values of constants that a test chooses."""
LOOK_S = 0.05
READY_S = 60.0
ENDED_S = 60.0


@cache
def watchdog() -> Watchdog:
    """Ends what this process leaves when it is killed in the middle of a test."""
    return Watchdog()


@frozen(kw_only=True)
class Ended:
    """How a program ended. code: negative for a signal."""

    code: int
    out: str
    err: str


class Program(ProcessProtocol):
    """A child process with all that it says."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        folder: str | None = None,
    ) -> None:
        self._said: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        self._waiting: list[Deferred[None]] = []
        self.code: int | None = None
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SVCD_", "OS_"))}
        env.update({"PYTHONPATH": str(ROOT), **(environment or {})})
        self._process = reactor.spawnProcess(self, command[0], command, env=env, path=folder)
        self.pid: int = self._process.pid
        watchdog().process(self.pid)

    @property
    def out(self) -> str:
        return self._said[1].decode(errors="replace")

    @property
    def err(self) -> str:
        return self._said[2].decode(errors="replace")

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        self._said[childFD] += data

    def processEnded(self, reason: Any) -> None:
        value = reason.value
        self.code = value.exitCode if value.signal is None else -value.signal
        for waiting in self._waiting:
            waiting.callback(None)

    def write(self, data: bytes) -> None:
        """Write to its stdin."""
        self._process.write(data)

    def signal(self, number: int) -> None:
        """Nothing happens when it has ended."""
        try:
            self._process.signalProcess(number)
        except ProcessExitedAlready:
            return

    async def end(self, limit_s: float = ENDED_S) -> Ended:
        """Wait until it has ended; it is killed when that takes too long."""
        if self.code is None:
            waiting: Deferred[None] = Deferred()
            self._waiting.append(waiting)
            overdue = reactor.callLater(limit_s, self.signal, signal.SIGKILL)
            await waiting
            if not overdue.active():
                raise AssertionError(f"no end within {limit_s:.0f} s: {self.out[-2000:]}{self.err}")
            overdue.cancel()
        assert self.code is not None
        return Ended(code=self.code, out=self.out, err=self.err)


async def run(
    *command: str,
    environment: Mapping[str, str] | None = None,
    folder: str | None = None,
    limit_s: float = ENDED_S,
) -> Ended:
    """Run a program of the virtual environment to its end."""
    program = Program([str(BIN / command[0]), *command[1:]], environment, folder)
    return await program.end(limit_s)


async def until(
    condition: Callable[[], Awaitable[Any]], what: str, limit_s: float, look_s: float = LOOK_S
) -> Any:
    """The first true answer of `condition`, which is asked again and again."""
    end = reactor.seconds() + limit_s
    while True:
        answer = await condition()
        if answer:
            return answer
        if reactor.seconds() > end:
            raise AssertionError(f"not within {limit_s:.0f} s: {what}")
        await sleep(reactor, look_s)


def own_network() -> str:
    """A part of 127.0.0.0/8 that is most likely nobody else's."""
    chosen = random.Random()
    return f"127.{chosen.randrange(20, 250)}.{chosen.randrange(0, 255)}.0/24"


class Daemon:
    """`twistd svcd` (or svcd-cloud) in a state folder; it can be started again and again.

    before: a command that starts it (with a path), for example with other limits. environment: more
    variables.
    """

    def __init__(self, state: str | Path, kind: str = "svcd", **settings: str) -> None:
        self.state = Path(state).absolute()
        self.kind = kind
        self.settings = {
            "server.state_dir": str(self.state),
            "server.listen": "tcp:127.0.0.1:0",
            "cloud.listen": "tcp:127.0.0.1:0",
            "embedded.network": own_network(),
            "embedded.quota_instances": "200",  # these machines are small, whatever the memory
            "plugins.enabled": "fake",
            "workflow.poll_s": "0.2",
            **{name.replace("__", "."): value for name, value in settings.items()},
        }
        self.before: Sequence[str] = ()
        self.environment: dict[str, str] = {}
        self.endpoints: dict[str, Any] = {}
        self.programs: list[Program] = []
        watchdog().machines(self.state)

    @property
    def program(self) -> Program:
        """The newest process."""
        return self.programs[-1]

    @property
    def said(self) -> str:
        """All that its processes have said."""
        return "".join(p.out + p.err for p in self.programs)

    def spawn(self, fresh: bool = True) -> Program:
        """Start a process and do not wait. fresh: without what a killed one could not remove."""
        if fresh:
            (self.state / "endpoints.json").unlink(missing_ok=True)
        twistd = [str(BIN / "twistd")]
        if not self.settings.keys() <= schema().keys():
            twistd = [sys.executable, "-c", _WITH_CONSTANTS]
        command = [*self.before, *twistd, "-n", "--pidfile=", self.kind]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        self.programs.append(Program(command, self.environment))
        return self.program

    async def start(self) -> dict[str, Any]:
        """Start a process and wait for its endpoints."""
        program = self.spawn()

        async def ready() -> bool:
            if program.code is not None:
                raise AssertionError(f"ended with {program.code}: {program.out}{program.err}")
            return (self.state / "endpoints.json").exists()

        await until(ready, "endpoints.json", READY_S, 0.01)
        self.endpoints = json.loads((self.state / "endpoints.json").read_text())
        return self.endpoints

    def password(self, user: str) -> str:
        """Of a user of the embedded cloud besides the one in `endpoints.json`."""
        known = json.loads((self.state / "cloud" / "passwords.json").read_text())
        return str(known[user])

    async def stop(self) -> Ended:
        """SIGTERM, and how it ended."""
        self.program.signal(signal.SIGTERM)
        return await self.program.end()

    async def kill(self) -> None:
        """kill -9."""
        self.program.signal(signal.SIGKILL)
        await self.program.end()

    async def remove(self) -> None:
        """End every process, those of the machines too."""
        for program in self.programs:
            program.signal(signal.SIGKILL)
            await program.end()
        for pid in machine_processes(self.state):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def machine_processes(state: Path) -> list[int]:
    """Processes of loopback machines below the state folder."""
    mine = below(state)
    return [pid for pid, root in marked() if mine(root)]


def proc_text(pid: int, name: str) -> str:
    """A file of a process below /proc; empty when the process has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text("utf-8", "replace")
    except OSError:
        return ""


@frozen(kw_only=True)
class Reply:
    """An HTTP answer with its whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """None when there is no body."""
        return json.loads(self.body) if self.body else None


async def send(
    method: str,
    url: str,
    json: object = None,
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    limit_s: float = 60.0,
) -> Reply:
    """One request on a connection of its own."""
    client = treq.client.HTTPClient(Agent(reactor))
    more: dict[str, Any] = {"json": json} if json is not None else {"data": data}

    async def exchange() -> Reply:
        answer = await client.request(method, url, headers=dict(headers or {}), **more)
        body = await answer.content()
        fields = {
            name.decode().lower(): values[-1].decode(errors="replace")
            for name, values in answer.headers.getAllRawHeaders()
        }
        return Reply(status=answer.code, headers=fields, body=body)

    reply: Reply = await with_deadline(
        reactor, limit_s, f"{method} {url}", Deferred.fromCoroutine(exchange())
    )
    return reply


class DaemonCase(TestCase):
    """A test case that ends what its tests have started."""

    timeout = 180

    def daemon(self, kind: str = "svcd", **settings: str) -> Daemon:
        """A daemon in a new state folder, not started yet."""
        made = Daemon(self.mktemp(), kind, **settings)
        self.addCleanup(lambda: Deferred.fromCoroutine(made.remove()))
        return made

    def program(self, *command: str, **more: Any) -> Program:
        """A child process; a command without a path is one of the virtual environment."""
        made = Program([str(BIN / command[0]), *command[1:]], **more)

        async def end() -> None:
            made.signal(signal.SIGKILL)
            await made.end()

        self.addCleanup(lambda: Deferred.fromCoroutine(end()))
        return made
