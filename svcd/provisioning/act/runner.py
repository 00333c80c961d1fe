"""Runs the plans of a distribution on machines, over SSH and HTTP.

The stages of a plan follow one another, the chains of a stage run in parallel, the actions of a
chain follow one another. The first failure of a chain stops the other chains, so that svcd reports
a dead daemon at once, without waiting for other deadlines. Decides nothing about clusters.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from attrs import frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.model.backoff import Backoff
from svcd.model.cluster import StepName
from svcd.model.ids import InstanceId
from svcd.ports.faults import Fault
from svcd.ports.machines import (
    CommandResult,
    Probe,
    ProbeError,
    RemoteError,
)
from svcd.provisioning.act.rows import Journal
from svcd.provisioning.act.shells import Shells
from svcd.provisioning.decide import shell
from svcd.provisioning.decide.failures import Code
from svcd.provisioning.decide.steps import Done, Fail, Span
from svcd.provisioning.distributions.spi import (
    Action,
    Chain,
    Command,
    HttpProbe,
    Plan,
    Stage,
    WriteFile,
)
from svcd.runtime.tasks import DeadlineExceeded, gather, sleep, with_deadline
from svcd.runtime.waits import Interrupt, Interrupted

log = Logger()

_CONNECT_TRIES = 4
_BACKOFF = Backoff(first_s=0.3, most_s=5.0)
_WRITE_S = 60.0
"""Time-out of the command that writes files."""
_TAIL_S = 10.0
"""Time-out of short commands: the last lines of a log, the check for a live daemon."""
_FLUSH_S = 0.5
"""Events are written at most once in this time."""
_FIRST_ALIVE_S = 1.0
"""Time from the first probe of a daemon to the first check that the daemon is alive."""
_STRANGER_S = 1.0
"""A stranger that answers for so long has the place of the daemon, which may begin with a 404."""
_ALIVE_S = 2.0
"""Time between two of these checks."""
_PROBE_S = 5.0
"""Time-out of one HTTP probe."""
_WRITE = "write files"
"""The step of an event of written files."""
_LONG_WRITE_S = 1.0
"""Files that are written faster have no event: a large cluster has no room for one a machine."""
_OUTPUT_LINES = 20
"""Last lines of a command's output that a failure shows."""


class PlanFailed(Exception):
    """An action failed and no try follows. Only this module raises and catches it."""

    def __init__(self, code: Code, machine: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.machine = machine
        self.text = text


@frozen(kw_only=True)
class _Awaited:
    """A probe that a chain waits for, and the part that is still missing."""

    probe: HttpProbe
    missing: str


class PlanRunner:
    """Runs one plan at a time.

    journal: gets the events. The runner flushes it at each stage's start, and about twice a second
    while the stage runs. An action has one event, at its end, with its begin; a stage has two.
    """

    def __init__(
        self,
        shells: Shells,
        probe: Probe,
        clock: IReactorTime,
        rng: random.Random,
        journal: Journal,
    ) -> None:
        self._shells = shells
        self._probe = probe
        self._clock = clock
        self._rng = rng
        self._journal = journal
        self._awaited: dict[int, _Awaited] = {}
        self._flushed_at = 0.0
        self._unflushed = False
        self._began = 0.0  # of the present stage
        self._waited_for: StepName | None = None  # by the present stage

    async def run(self, plan: Plan, deadline_s: float) -> Done | Fail:
        """Run all stages within `deadline_s`; the first failure ends the run. Safe to repeat."""
        end = self._clock.seconds() + deadline_s
        for stage in plan:
            left = end - self._clock.seconds()
            failure = await self._stage(stage, max(0.0, min(left, stage.deadline_s)))
            if failure is not None:
                return failure
        return Done(quiet=True)

    async def _stage(self, stage: Stage, deadline_s: float) -> Fail | None:
        self._awaited.clear()
        self._began = began = self._clock.seconds()
        self._waited_for = waited_for = self._journal.last
        going = Span(began=began, waited_for=waited_for)
        self._journal.report(stage.name, "started", until=began + deadline_s, span=going)
        await self._journal.flush()
        self._flushed_at = self._clock.seconds()
        stop = Interrupt()
        try:
            results = await with_deadline(
                self._clock,
                deadline_s,
                stage.name,
                gather(
                    [partial(self._guarded, stop, n, c) for n, c in enumerate(stage.chains)],
                    max(1, len(stage.chains)),
                ),
            )
        except DeadlineExceeded:
            return await self._late(stage, deadline_s)
        troubles = [r for r in results if isinstance(r, BaseException)]
        for trouble in troubles:
            if isinstance(trouble, PlanFailed):
                return self._failed(stage, trouble.code, trouble.machine, trouble.text)
        for trouble in troubles:
            raise trouble
        spent = self._clock.seconds() - began
        span = self._span(began, waited_for)
        self._journal.report(stage.name, "done", f"in {spent:.1f} s", span=span)
        if self._journal.last is waited_for:  # no action has an event
            self._journal.last = StepName(step=stage.name)
        return None

    def _span(self, began: float, waited_for: StepName | None) -> Span:
        """The span of a step that ends now."""
        return Span(began=began, ended=self._clock.seconds(), waited_for=waited_for)

    async def _guarded(self, stop: Interrupt, number: int, chain: Chain) -> None:
        try:
            await stop.guard(self._chain(stage_number=number, chain=chain))
        except Interrupted:
            pass  # another chain failed and reports the reason
        except BaseException:
            stop.fire()
            raise

    def _failed(self, stage: Stage, code: Code, machine: str, text: str) -> Fail:
        where = f" on {machine}" if machine else ""
        advice = f"\n{stage.advice}" if stage.advice else ""
        span = self._span(self._began, self._waited_for)
        self._journal.report(stage.name, "failed", text, machine, code, span=span)
        return Fail(code=code, reason=f"{stage.name}{where}: {text}{advice}", machine=machine)

    async def _late(self, stage: Stage, deadline_s: float) -> Fail:
        waiting = list(self._awaited.values())
        if not waiting:
            return self._failed(
                stage, Code.DAEMON_TIMEOUT, "", f"not done within {deadline_s:.0f} s"
            )
        first = next((w for w in waiting if w.probe.log is not None), waiting[0])
        text = f"not done within {deadline_s:.0f} s: " + "; ".join(
            f"{self._shells.name(w.probe.machine)}: {w.probe.what}: {w.missing}"
            for w in waiting[:5]
        )
        text += await self._tail(first.probe.machine, first.probe.log)
        return self._failed(
            stage, Code.DAEMON_TIMEOUT, self._shells.name(first.probe.machine), text
        )

    async def _chain(self, stage_number: int, chain: Chain) -> None:
        waited_for = self._waited_for
        for part in _batches(chain):
            first, began = part[0], self._clock.seconds()
            what = _WRITE if isinstance(first, WriteFile) else first.what
            if isinstance(first, WriteFile):
                await self._write([f for f in part if isinstance(f, WriteFile)])
            elif isinstance(first, Command):
                await self._command(first)
            else:
                await self._await(stage_number, first)
            span = self._span(began, waited_for)
            if what == _WRITE and self._clock.seconds() - began < _LONG_WRITE_S:
                continue
            waited_for = StepName(step=what, machine=self._shells.name(first.machine))
            await self._progressed(waited_for, span)

    async def _write(self, files: Sequence[WriteFile]) -> None:
        command, content = shell.write_files([self._shells.filled(f) for f in files])
        machine = files[0].machine
        result = await self._run(machine, _WRITE, command, content, _WRITE_S, None)
        if result.exit_code != 0:
            names = ", ".join(f.path for f in files[:5])
            text = f"could not write {names}: {ending(result)}"
            raise PlanFailed(Code.COMMAND_FAILED, self._shells.name(machine), text)

    async def _command(self, command: Command) -> None:
        result = await self._run(
            command.machine,
            command.what,
            command.script,
            command.stdin,
            command.timeout_s,
            command.log,
        )
        if result.exit_code != 0:
            text = f"{command.what}: {ending(result)}" + await self._tail(
                command.machine, command.log
            )
            raise PlanFailed(Code.COMMAND_FAILED, self._shells.name(command.machine), text)

    async def _progressed(self, step: StepName, span: Span) -> None:
        self._journal.report(step.step, "done", machine=step.machine, span=span)
        self._journal.last = step
        self._unflushed = True
        await self._flush_when_due()

    async def _flush_when_due(self) -> None:
        now = self._clock.seconds()
        if self._unflushed and now - self._flushed_at >= _FLUSH_S:
            self._unflushed, self._flushed_at = False, now
            await self._journal.flush()

    async def _run(
        self,
        machine: InstanceId,
        what: str,
        command: str,
        stdin: bytes,
        timeout_s: float,
        logged: str | None,
    ) -> CommandResult:
        """Run a command. Repeat it a few times if the machine is unreachable, not if it is slow."""
        name = self._shells.name(machine)
        for attempt in range(1, _CONNECT_TRIES + 1):
            began = self._clock.seconds()
            try:
                return await self._shells.work(machine, command, stdin=stdin, timeout_s=timeout_s)
            except RemoteError as error:
                spent = self._clock.seconds() - began
                if error.kind is Fault.HOST_KEY:
                    raise PlanFailed(Code.HOST_KEY_CHANGED, name, error.text) from None
                if error.kind is Fault.TIMEOUT and spent >= 0.9 * timeout_s:
                    text = f"{what}: not done within {timeout_s:.0f} s"
                    text += await self._tail(machine, logged)
                    raise PlanFailed(Code.COMMAND_TIMEOUT, name, text) from None
                if attempt == _CONNECT_TRIES:
                    text = f"{what}: {error.text} ({attempt} tries)"
                    raise PlanFailed(Code.MACHINE_UNREACHABLE, name, text) from None
                self._journal.report(
                    what,
                    "retry",
                    error.text,
                    name,
                    Code.MACHINE_UNREACHABLE,
                    attempt,
                    span=self._span(began, None),
                )
                await sleep(self._clock, _BACKOFF.delay_s(attempt, self._rng))
        raise AssertionError("the loop returns or raises")

    async def _await(self, number: int, probe: HttpProbe) -> None:
        next_alive = self._clock.seconds() + _FIRST_ALIVE_S
        strange_since: float | None = None
        while True:
            stranger = ""
            try:
                answer = await self._probe.get(self._shells.at(probe.url), _PROBE_S)
                missing = probe.missing(*answer)
                stranger = "" if missing else probe.stranger(*answer)
            except ProbeError as error:
                if error.kind is Fault.FORBIDDEN:  # the machine does not forward to its own ports
                    name = self._shells.name(probe.machine)
                    raise PlanFailed(Code.MACHINE_UNREACHABLE, name, error.text) from None
                missing = error.text or "no answer"
            if not missing and not stranger:
                if probe.alive is not None:
                    await self._check_alive(
                        probe, probe.alive, "a good answer came, perhaps of another program"
                    )
                self._awaited.pop(number, None)
                return
            now = self._clock.seconds()
            strange_since = (strange_since or now) if stranger else None
            if strange_since is not None and now - strange_since >= _STRANGER_S:
                name = self._shells.name(probe.machine)
                raise PlanFailed(Code.FOREIGN_DAEMON, name, f"{probe.what}: {stranger}")
            missing = missing or stranger
            self._awaited[number] = _Awaited(probe=probe, missing=missing)
            if probe.alive is not None and self._clock.seconds() >= next_alive:
                await self._check_alive(probe, probe.alive, missing)
                next_alive = self._clock.seconds() + _ALIVE_S
            await self._flush_when_due()
            await sleep(self._clock, probe.every_s)

    async def _check_alive(self, probe: HttpProbe, script: str, missing: str) -> None:
        try:
            result = await self._shells.work(probe.machine, script, timeout_s=_TAIL_S)
        except RemoteError:
            return  # the next round, or the deadline, decides
        if result.exit_code not in (0, None):
            text = f"{probe.what}: the daemon has died ({missing})"
            text += await self._tail(probe.machine, probe.log)
            raise PlanFailed(Code.DAEMON_DIED, self._shells.name(probe.machine), text)

    async def _tail(self, machine: InstanceId, path: str | None) -> str:
        """The last lines of a log, to append to a text; "" when they cannot be read."""
        if path is None:
            return ""
        try:
            result = await self._shells.work(machine, shell.tail(path), timeout_s=_TAIL_S)
        except RemoteError:
            return ""
        lines = result.stdout.strip()
        return f"\nlast lines of {path}:\n{lines[-1500:]}" if lines else f"\n{path} is empty"


def _batches(chain: Chain) -> Iterator[list[Action]]:
    """Group consecutive files of one machine; each other action is alone."""
    for key, part in groupby(
        enumerate(chain),
        key=lambda p: p[1].machine if isinstance(p[1], WriteFile) else p[0],
    ):
        del key
        yield [action for _, action in part]


def ending(result: CommandResult) -> str:
    """The exit code or signal of a command, with the last lines of its output."""
    how = f"exit code {result.exit_code}" if result.exit_code is not None else result.signal
    said = (result.stderr.strip() or result.stdout.strip()).splitlines()[-_OUTPUT_LINES:]
    return how + (": " + "\n".join(said) if said else "")
