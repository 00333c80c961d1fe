"""Asks the daemons and machines of a cluster the questions of its distribution. Only reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from svcd.model.cluster import Cluster
from svcd.ports.faults import Fault
from svcd.ports.machines import Location, ProbeError, RemoteError
from svcd.provisioning.act.perform import Ports
from svcd.provisioning.act.runner import ending
from svcd.provisioning.act.shells import Shells
from svcd.provisioning.decide.failures import Code
from svcd.provisioning.decide.health import Answer
from svcd.provisioning.distributions.spi import Command, HttpProbe
from svcd.runtime.tasks import gather

_AT_ONCE: Final = 8
"""Probes and commands of one call in parallel."""
_PROBE_S: Final = 10.0
"""Time-out of one HTTP probe."""
_COMMAND_S: Final = 30.0
"""Time-out of one command."""


class Questions:
    """Asks questions over the ports."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def ask(
        self, cluster: Cluster, questions: Sequence[HttpProbe | Command]
    ) -> Sequence[Answer]:
        """The answers to `questions`, in their order. Each URL is requested once."""
        urls = list(dict.fromkeys(q.url for q in questions if isinstance(q, HttpProbe)))
        commands = [q for q in questions if isinstance(q, Command)]
        shells = Shells.of(self._ports.remote, self._ports.sealer, cluster, _AT_ONCE)
        work = [partial(self._get, shells.at(url)) for url in urls]
        work += [partial(_run, shells, command) for command in commands]
        answers: list[Answer] = []
        for result in await gather(work, _AT_ONCE):
            if isinstance(result, BaseException):
                raise result
            answers.append(result)
        by_url = dict(zip(urls, answers, strict=False))
        ran = iter(answers[len(urls) :])
        return [by_url[q.url] if isinstance(q, HttpProbe) else next(ran) for q in questions]

    async def _get(self, at: Location) -> Answer:
        try:
            status, body = await self._ports.probe.get(at, _PROBE_S)
        except ProbeError as error:
            return Answer(error=error.text or "no answer")
        return Answer(status=status, body=body)


async def _run(shells: Shells, command: Command) -> Answer:
    try:
        result = await shells.work(
            command.machine,
            command.script,
            stdin=command.stdin,
            timeout_s=min(command.timeout_s, _COMMAND_S),
        )
    except RemoteError as error:
        changed = error.kind is Fault.HOST_KEY
        code = Code.HOST_KEY_CHANGED if changed else Code.MACHINE_UNREACHABLE
        return Answer(error=error.text, code=code)
    return Answer(error="" if result.exit_code == 0 else ending(result))
