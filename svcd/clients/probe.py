"""Implements ports.Probe: one plain GET or PUT to a daemon on a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.interfaces import IReactorTime
from twisted.web.iweb import IAgent

from svcd.clients.http import HttpClient
from svcd.ports.faults import Fault, PortError
from svcd.ports.machines import Location, ProbeError

if TYPE_CHECKING:
    from svcd.clients.ssh import SshRemote

_MOST_BYTES = 4 << 20
"""Limits the body of an answer."""


def _error(service: str, kind: Fault, text: str, retry_after_s: float | None) -> PortError:
    return ProbeError(kind, text, retry_after_s)


class HttpProbe:
    """Sends probes through `machines`, or by `agent`. It follows no redirects."""

    def __init__(
        self, agent: IAgent, clock: IReactorTime, machines: SshRemote | None = None
    ) -> None:
        self._http = HttpClient(agent, clock, _error, max_body_bytes=_MOST_BYTES, machines=machines)

    async def get(self, at: Location, timeout_s: float) -> tuple[int, bytes]:
        """See ports.Probe."""
        answer = await self._http.request("GET", at.url, timeout_s=timeout_s, through=at.machine)
        return answer.status, answer.body

    async def put(self, at: Location, body: bytes, timeout_s: float) -> int:
        """See ports.Probe."""
        answer = await self._http.request(
            "PUT",
            at.url,
            headers={"Content-Type": "application/json"},
            body=body,
            timeout_s=timeout_s,
            repeatable=True,
            through=at.machine,
        )
        return answer.status
