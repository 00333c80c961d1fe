"""Proves that the daemons at a cluster's addresses are the cluster's own.

After a change of servers another program may answer at an address that the row still has. A job
must not start there, and svcd must not remove anything there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from svcd.model.failures import Code
from svcd.ports.engine import EngineError, Identity
from svcd.ports.faults import Fault
from svcd.ports.machines import Location, Probe, ProbeError
from svcd.runtime.tasks import gather, sleep
from svcd.workflow.act.rows import Place, Rows
from svcd.workflow.decide import failures
from svcd.workflow.decide.steps import Fail, Retry

_IDENTITY_S: Final = 5.0
"""Time-out of the request for a daemon's identity."""
_STRANGER_S: Final = 1.0
"""Time between the two requests whose answers prove a stranger."""


@frozen
class _Look:
    """The answer of a daemon that was asked for its identity; both empty: it is the cluster's own.

    stranger: another program has answered. silence: the daemon does not show its cluster.
    """

    stranger: str = ""
    silence: str = ""


class Identities:
    """Asks the daemons of clusters for their identity."""

    def __init__(self, rows: Rows, probe: Probe, clock: IReactorTime) -> None:
        self._rows = rows
        self._probe = probe
        self._clock = clock

    async def prove(self, place: Place, endpoint: str) -> None:
        """Make sure that the cluster's own daemon answers at a URL. Raises EngineError."""
        own = [i for i in place.endpoints.identities if _same_place(i.url, endpoint)]
        for look in await self._looks(place, own):
            if look.stranger or look.silence:
                raise EngineError(Fault.UNREACHABLE, look.stranger or look.silence)

    async def unproven(self, place: Place) -> Fail | Retry | None:
        """Ask the daemons that a job uses for their identity; None when the job may start.

        Engine and name node must show their identity. Another daemon that is silent is no stranger.
        """
        endpoints, waits = place.endpoints, None
        looks = await self._looks(place, endpoints.identities)
        for identity, look in zip(endpoints.identities, looks, strict=True):
            if look.stranger:
                failure = failures.failure(Code.FOREIGN_DAEMON, "start", look.stranger)
                return Fail(failure=failure)
            if look.silence and _same_place(identity.url, endpoints.engine):
                waits = Retry(code=Code.ENGINE_UNREACHABLE, step="submit", text=look.silence)
            elif look.silence and _same_place(identity.url, endpoints.webhdfs):
                waits = Retry(code=Code.STAGING_FAILED, step="staging", text=look.silence)
        return waits

    async def _looks(self, place: Place, identities: Sequence[Identity]) -> Sequence[_Look]:
        """Look at each daemon; look again when a stranger answers: one answer may be broken."""
        looks = await self._looks_once(place, identities)
        if any(look.stranger for look in looks):
            await sleep(self._clock, _STRANGER_S)
            looks = await self._looks_once(place, identities)
        return looks

    async def _looks_once(self, place: Place, identities: Sequence[Identity]) -> Sequence[_Look]:
        asked = [partial(self._look, identity, place) for identity in identities]
        looks: list[_Look] = []
        for look in await gather(asked, max(1, len(asked))):
            if isinstance(look, BaseException):
                raise look
            looks.append(look)
        if any(look.stranger for look in looks):
            self._rows.notice(place.cluster.id)
        return looks

    async def _look(self, identity: Identity, place: Place) -> _Look:
        at = place.at(identity.url) or Location(identity.url)
        try:
            answer = await self._probe.get(at, _IDENTITY_S)
        except ProbeError as error:
            return _Look(silence=f"{identity.what}: {error.text}")
        missing = identity.missing(*answer)
        stranger = "" if missing else identity.stranger(*answer)
        return _Look(
            stranger=f"{identity.what}: {stranger}" if stranger else "",
            silence=f"{identity.what}: {missing}" if missing else "",
        )


def _same_place(url: str, other: str) -> bool:
    """Whether two URLs have the same host and port."""
    return urlsplit(url).netloc == urlsplit(other).netloc
