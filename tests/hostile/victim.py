"""`python -m tests.hostile.victim STATE_DIR`: a whole daemon whose clients meet hostile peers.

It prints the URL of its API, then carries out cases from stdin, one line of JSON each, and prints
one line each: the outcomes of each peer's calls, the longest stall of the reactor, the most memory.

Note: stall. The processor time of one turn of the reactor, and not the time that passes, so that
other programs of the machine do not count.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet import reactor as _reactor  # noqa: TID251 - a program
from twisted.internet.defer import Deferred
from twisted.internet.stdio import StandardIO
from twisted.protocols.basic import LineOnlyReceiver
from twisted.web.client import Agent

from svcd.clients.cloud import cloud_error
from svcd.clients.connections import Connections
from svcd.clients.http import HttpClient
from svcd.clients.objectstore import read_object
from svcd.clients.oozie import OozieClient, engine_error
from svcd.clients.probe import HttpProbe
from svcd.clients.rest import Rest
from svcd.clients.ssh import SshRemote
from svcd.clients.webhdfs import WebHdfsClient
from svcd.model import foreign
from svcd.model.ids import ExecutionId
from svcd.model.secret import Secret
from svcd.ports.faults import PortError
from svcd.ports.machines import Host, Location, ProbeError
from svcd.provisioning.distributions.vanilla import probes
from svcd.runtime.keys import new_key_pair
from svcd.runtime.tasks import DeadlineExceeded, gather, with_deadline
from svcd.service import DaemonService
from svcd.settings import Ssh, load
from svcd.workflow.act.perform import read_record
from svcd.workflow.act.yarn import active_of, applications_of, idle_of

reactor: Any = _reactor
CALL_S = 2.0
"""Time-out of each call."""
CASE_S = 20.0
"""Each call ends by itself in this time."""
_, PRIVATE_KEY = new_key_pair("test")
PINNED = new_key_pair("pinned")[0]

Call = Callable[[], Awaitable[object]]


class Stalls:
    """Measures each turn of the reactor, from its start to the start of the next one."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._before = time.thread_time()
        self._turn = reactor.runUntilCurrent
        reactor.runUntilCurrent = self._measure

    def _measure(self) -> None:
        now = time.thread_time()
        self.longest_ms = max(self.longest_ms, (now - self._before) * 1000)
        self._before = now
        self._turn()


class _Session:
    """Gives the object store of a case."""

    def __init__(self, base: str) -> None:
        self._base = base

    async def token(self) -> Secret:
        return Secret("a-token-of-some-length")

    async def endpoint(self, *types: str) -> str:
        return self._base

    async def refused(self, token: Secret, service: str) -> None:
        """Try again."""


class Calls:
    """The calls of svcd's clients, by peer."""

    def __init__(self) -> None:
        agent = Agent(reactor, pool=Connections(reactor, persistent=True), connectTimeout=CALL_S)
        engine = HttpClient(agent, reactor, engine_error, timeout_s=CALL_S, max_body_bytes=1 << 20)
        self._oozie = OozieClient(engine, timeout_s=CALL_S)
        self._files = WebHdfsClient(engine, timeout_s=CALL_S, write_timeout_s=CALL_S)
        self._probe = HttpProbe(agent, reactor)
        self._cloud = HttpClient(agent, reactor, cloud_error, timeout_s=CALL_S)
        settings = Ssh(connect_timeout_s=CALL_S, keepalive_s=CALL_S)
        self._ssh = SshRemote(reactor, reactor, settings)

    def of(self, peer: str, base: str, port: int) -> Sequence[Call]:
        made: Mapping[str, Callable[[], Sequence[Call]]] = {
            "oozie": lambda: self._engine_calls(base),
            "webhdfs": lambda: self._file_calls(base),
            "yarn": lambda: self._probe_calls(base),
            "objectstore": lambda: [partial(self._object, base)],
            "ssh": lambda: [partial(self._run, port, None)],
            "ssh-pinned": lambda: [partial(self._run, port, PINNED)],
        }
        return made[peer]()

    def _engine_calls(self, base: str) -> Sequence[Call]:
        oozie, at = self._oozie, Location(url=base)
        return [
            lambda: oozie.status(at),
            lambda: oozie.submit(at, {"password": "a secret"}),
            lambda: oozie.find(at, ExecutionId("e")),
            lambda: oozie.lines(at, ["job"]),
            lambda: oozie.kill(at, "job"),
            lambda: oozie.log(at, "job"),
            lambda: self._record(base),
        ]

    async def _record(self, base: str) -> object:
        """What the watch of a job does, with as many secrets as an execution may have."""
        raw = await self._oozie.record(Location(url=base), "job")
        read = await read_record(reactor, raw, [Secret(f"a-secret-{at:06}") for at in range(100)])
        return len(json.dumps(read.tree))

    def _file_calls(self, base: str) -> Sequence[Call]:
        files, at = self._files, Location(url=base)

        async def content() -> AsyncIterator[bytes]:
            yield b"x" * 100_000

        return [
            lambda: files.make_folders(at, "/a", "u"),
            lambda: files.write(at, "/a", "u", content(), 100_000, {}),
            lambda: files.delete(at, "/a", "u"),
            lambda: files.delete(at, "/b", "u"),
            lambda: files.make_folders(at, "/b", "u"),
        ]

    def _probe_calls(self, base: str) -> Sequence[Call]:
        async def nodes() -> str:
            status, body = await self._probe.get(Location(url=base), CALL_S)
            return probes.NodeManagerServes("10.0.0.1", "n", "c")(status, body)

        return [
            lambda: self._known(base, active_of),
            lambda: self._known(base, lambda tree: idle_of(tree, {})),
            lambda: self._known(base, applications_of),
            nodes,
        ]

    async def _known(self, base: str, of: Callable[[Any], object]) -> object:
        _, body = await self._probe.get(Location(url=base), CALL_S)
        return of(foreign.mapping(body))

    async def _object(self, base: str) -> object:
        rest = Rest(self._cloud, _Session(base), "object-store", ("object-store",), "")
        size, pieces = await read_object(rest, "c", "o")
        got = 0
        async for piece in pieces:
            got += len(piece)
            if got > 200 << 20:
                return "200 MiB, and a caller with a limit"
        return f"{got} of {size} bytes"

    async def _run(self, port: int, pinned: str | None) -> object:
        host = Host(
            address="127.0.0.1", port=port, user="u", private_key=PRIVATE_KEY, host_key=pinned
        )
        done = await self._ssh.run(host, "true", stdin=b"x" * 200_000, timeout_s=CALL_S)
        return f"exit {done.exit_code}, {len(done.stdout)} characters"


async def _outcome(call: Call) -> str:
    """The kind and the text of the fault, or the value."""
    try:
        value = await with_deadline(reactor, CASE_S, "the call", call())
    except PortError as error:
        kind = "probe" if isinstance(error, ProbeError) else "fault"
        return f"{kind} {error.kind.value}: {error.text}"
    except DeadlineExceeded:
        return "no end"
    except Exception as error:
        return f"bug: {error!r}"
    return f"value {value!r:.200}"


def peak_kib(reset: bool = False) -> int:
    """The most memory since the last reset."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    return int(found[1])


class Cases(LineOnlyReceiver):
    """Reads cases and writes their results."""

    delimiter = b"\n"
    transport: Any

    def __init__(self) -> None:
        self._calls = Calls()
        self._stalls = Stalls()

    def lineReceived(self, line: bytes) -> None:
        Deferred.fromCoroutine(self._case(json.loads(line))).addErrback(self._broken)

    def _broken(self, failure: Any) -> None:
        self.sendLine(json.dumps({"bug": repr(failure)}).encode())

    async def _case(self, case: Mapping[str, Any]) -> None:
        """All peers of the case at once, each call by call, or all calls at once."""
        peers = [self._calls.of(e["kind"], e["base"], e["port"]) for e in case["peers"]]
        peak_kib(reset=True)
        self._stalls.longest_ms = 0.0

        async def called(calls: Sequence[Call]) -> Sequence[object]:
            at_once = len(calls) if case["slow"] else 1
            return await gather([partial(_outcome, call) for call in calls], at_once)

        outcomes = await gather([partial(called, calls) for calls in peers], len(peers))
        stall_ms = self._stalls.longest_ms
        result = {"outcomes": outcomes, "stall_ms": stall_ms, "peak_kib": peak_kib()}
        self.sendLine(json.dumps(result).encode())


async def main(state: str) -> None:
    flags = [
        f"server.state_dir={state}",
        "server.listen=tcp:127.0.0.1:0",
        "cloud.listen=tcp:127.0.0.1:0",
        "plugins.enabled=fake",
        "log.access=false",
    ]
    service = DaemonService(reactor, load(None, {}, flags))
    await service.start()
    ready = json.loads((Path(state) / "endpoints.json").read_text())
    cases = Cases()
    StandardIO(cases)
    cases.sendLine(json.dumps({"api": ready["api"]}).encode())


def failed(failure: Any) -> None:
    print(failure, file=sys.stderr)
    reactor.stop()


if __name__ == "__main__":
    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(main(sys.argv[1])).addErrback(failed))
    reactor.run()
