"""Scripted machines: `ports.Remote` and `ports.Probe` in memory, for the in-process fake.

No socket, no process, no thread: the output of a command is data, and time is the given clock.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from attrs import field, frozen
from twisted.internet.interfaces import IReactorTime

from svcd.embedded.faults import Effect, FaultRule, Faults
from svcd.model.secret import Secret
from svcd.ports.faults import Fault
from svcd.ports.machines import CommandResult, Host, Location, Probe, ProbeError, RemoteError
from svcd.runtime.tasks import sleep

FACTS_MARKER: Final = "svcd-facts"
"""A command that contains it asks a machine for its facts."""

_REMEMBERED: Final = 10_000


@frozen(kw_only=True)
class Said:
    """The answer of a scripted command, after `delay_s`. exit_code None: ended by `signal`."""

    exit_code: int | None = 0
    stdout: str = ""
    stderr: str = ""
    signal: str = ""
    delay_s: float = 0.0


Script = Said | Callable[[Host, str, bytes], Said]


@frozen(kw_only=True)
class Ran:
    """One command that a machine got. at: clock seconds."""

    address: str
    user: str
    command: str
    stdin: bytes = field(repr=False)
    at: float


class ScriptedRemote:
    """Machines that answer every command with success, unless a rule says otherwise.

    faults: rules with where="ssh" match on "<address> <command>"; Effect.ANSWER makes the command
    fail with `status` as exit code (1 if above 255) and `body` on stderr. latency_s: of each run.
    """

    def __init__(
        self, clock: IReactorTime, faults: Faults | None = None, latency_s: float = 0.0
    ) -> None:
        self.latency_s = latency_s
        self.only_key: Secret | None = None  # when set, machines refuse any other private key
        self._clock = clock
        self._faults = faults or Faults()
        self._scripts: list[tuple[re.Pattern[str], Script]] = []
        self._down: set[str] = set()
        self._rebuilt: dict[str, int] = {}
        self._ran: deque[Ran] = deque(maxlen=_REMEMBERED)
        self._closed = False

    @property
    def ran(self) -> Sequence[Ran]:
        """The newest 10,000 commands, oldest first."""
        return tuple(self._ran)

    def script(self, pattern: str, script: Script) -> None:
        """Answer commands in which the regular expression is found. The newest rule wins."""
        self._scripts.insert(0, (re.compile(pattern, re.DOTALL), script))

    def take_down(self, address: str) -> None:
        """Make the machine unreachable."""
        self._down.add(address)

    def bring_up(self, address: str) -> None:
        """Make the machine reachable again."""
        self._down.discard(address)

    def rebuild(self, address: str) -> None:
        """Another machine, with another host key, answers at the address from now on."""
        self._rebuilt[address] = self._rebuilt.get(address, 0) + 1

    def host_key(self, address: str) -> str:
        """The machine's key line. It is well-formed; no private key for it exists."""
        seed = f"{address} {self._rebuilt.get(address, 0)}".encode()
        kind = b"ssh-ed25519"
        blob = b"".join(
            len(part).to_bytes(4, "big") + part for part in (kind, hashlib.sha256(seed).digest())
        )
        return f"ssh-ed25519 {base64.b64encode(blob).decode('ascii')}"

    async def run(
        self, host: Host, command: str, *, stdin: bytes = b"", timeout_s: float
    ) -> CommandResult:
        """See Remote."""
        where = f"ssh {host.user}@{host.address}:{host.port}"
        if self._closed:
            raise RemoteError(Fault.UNREACHABLE, f"{where}: the client is closed")
        rule = self._faults.match("ssh", "", f"{host.address} {command}")
        wait_s = self.latency_s + (rule.delay_s if rule is not None else 0.0)
        if wait_s > 0:
            await sleep(self._clock, min(wait_s, timeout_s))
        if host.address in self._down:
            raise RemoteError(Fault.UNREACHABLE, f"{where}: no route to host (scripted)")
        if self.only_key is not None and host.private_key != self.only_key:
            raise RemoteError(Fault.UNAUTHORIZED, f"{where}: the server refused the key")
        key = self.host_key(host.address)
        if host.host_key is not None and host.host_key.split()[:2] != key.split():
            raise RemoteError(Fault.HOST_KEY, f"{where}: the host key has changed")
        said = Said()
        if rule is None or rule.effect in _DONE:
            said = self._say(host, command, stdin)
        elif rule.effect is Effect.ANSWER:
            code = rule.status if rule.status < 256 else 1
            said = Said(exit_code=code, stderr=rule.body)
        if rule is not None:
            await _suffer(self._clock, rule, where, timeout_s, wait_s, RemoteError)
        if wait_s + said.delay_s > timeout_s:
            await sleep(self._clock, max(0.0, timeout_s - wait_s))
            raise RemoteError(Fault.TIMEOUT, f"{where}: no end within {timeout_s:g} s (scripted)")
        if said.delay_s > 0:
            await sleep(self._clock, said.delay_s)
        return CommandResult(
            exit_code=said.exit_code,
            signal=said.signal,
            stdout=said.stdout,
            stderr=said.stderr,
            host_key=key,
        )

    def forget(self, host: Host) -> None:
        """See Remote: there is nothing to drop."""

    async def close(self) -> None:
        """See Remote."""
        self._closed = True

    def _say(self, host: Host, command: str, stdin: bytes) -> Said:
        if self._ran:  # the machines of a cluster get the same texts: kept once
            last = self._ran[-1]
            command = last.command if last.command == command else command
            stdin = last.stdin if last.stdin == stdin else stdin
        self._ran.append(
            Ran(
                address=host.address,
                user=host.user,
                command=command,
                stdin=stdin,
                at=self._clock.seconds(),
            )
        )
        for pattern, script in self._scripts:
            if pattern.search(command):
                return script if isinstance(script, Said) else script(host, command, stdin)
        if FACTS_MARKER in command:
            return Said(
                stdout=f"home=/home/{host.user}\nroot=\nprefix=/opt/svcd/vanilla\n"
                "cores=4\nmemory_mib=8192\n"
            )
        return Said()


_DONE: Final = frozenset(
    {
        Effect.TIMEOUT_AFTER,
        Effect.RESET_AFTER,
        Effect.GARBAGE,
        Effect.DELAY,
        Effect.LATE,
    }
)


async def _suffer(
    clock: IReactorTime,
    rule: FaultRule,
    where: str,
    timeout_s: float,
    waited_s: float,
    error: Callable[[Fault, str], Exception],
) -> None:
    """Raise the error of a rule that lets no answer come. waited_s: of the time-out."""
    match rule.effect:
        case Effect.TIMEOUT_BEFORE | Effect.TIMEOUT_AFTER:
            await sleep(clock, max(0.0, timeout_s - waited_s))
            raise error(Fault.TIMEOUT, f"{where}: no answer in {timeout_s:g} s (fault)")
        case Effect.RESET_BEFORE | Effect.RESET_AFTER | Effect.REFUSED:
            raise error(Fault.UNREACHABLE, f"{where}: connection refused (fault)")
        case Effect.GARBAGE:
            raise error(Fault.SERVER_ERROR, f"{where}: an answer makes no sense (fault)")


class ScriptedProbe:
    """`ports.Probe` that answers 200 with `{}`, unless a rule says otherwise.

    faults: rules with where="probe" match on the URL. engines: the URL of the scripted engines,
    and the probe that asks them when no rule matches.
    """

    def __init__(
        self,
        clock: IReactorTime,
        faults: Faults | None = None,
        engines: tuple[str, Probe] | None = None,
    ) -> None:
        self._clock = clock
        self._faults = faults or Faults()
        self._engines = engines
        self._answers: list[tuple[re.Pattern[str], int, bytes]] = []
        self._asked: deque[str] = deque(maxlen=_REMEMBERED)

    @property
    def asked(self) -> Sequence[str]:
        """The newest 10,000 URLs, oldest first."""
        return tuple(self._asked)

    def answer(self, pattern: str, status: int, body: bytes) -> None:
        """Answer URLs in which the regular expression is found. The newest rule wins."""
        self._answers.insert(0, (re.compile(pattern), status, body))

    async def get(self, at: Location, timeout_s: float) -> tuple[int, bytes]:
        """See Probe."""
        said = await self._said("GET", at.url, timeout_s)
        if said is None and self._engines is not None and at.url.startswith(self._engines[0]):
            said = await self._engines[1].get(at, timeout_s)
        return said or (200, b"{}")

    async def put(self, at: Location, body: bytes, timeout_s: float) -> int:
        """See Probe."""
        said = await self._said("PUT", at.url, timeout_s)
        if said is None and self._engines is not None and at.url.startswith(self._engines[0]):
            return await self._engines[1].put(at, body, timeout_s)
        return said[0] if said is not None else 200

    async def _said(self, method: str, url: str, timeout_s: float) -> tuple[int, bytes] | None:
        self._asked.append(url)
        rule = self._faults.match("probe", method, url)
        if rule is not None:
            if rule.delay_s > 0:
                await sleep(self._clock, min(rule.delay_s, timeout_s))
            if rule.effect is Effect.ANSWER:
                return rule.status, rule.body.encode()
            await _suffer(self._clock, rule, url, timeout_s, rule.delay_s, ProbeError)
        for pattern, status, body in self._answers:
            if pattern.search(url):
                return status, body
        return None
