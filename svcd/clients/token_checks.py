"""Limits the tokens of callers that wait for the identity service, in all and of each address.

It decides by counts and never calls. Known tokens never come here, so a flood of wrong
tokens delays only the first request with a new token.

Note: what one address may do. A dashboard sends the tokens of many users from one address, and a
page of theirs may end up with some expired ones. So an address may have half of the places, and
many refusals in a minute; above that its unknown tokens are not checked until the minute ends.
A loopback address or a socket file may be a proxy that `server.trusted_proxies` does not name, with
all callers behind it. There one of them must not shut out the others, so only the total counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv6Network, ip_address
from typing import Final

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import PlatformTimeout, ServiceUnavailable, TooManyRequests
from svcd.model.loopback import is_loopback
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.runtime.tasks import sleep
from svcd.runtime.waits import Gate
from svcd.settings import UNIX

log = Logger()

_REASONS: Final = {
    Fault.TIMEOUT: "it has not answered in time",
    Fault.UNREACHABLE: "svcd does not reach it",
    Fault.BUSY: "it is busy",
}
_WAITING: Final = 10
"""Places for tokens for each check that may run at once."""
_ADDRESSES: Final = 10_000
"""Addresses whose refusals are counted in one minute."""
_MINUTE_S: Final = 60


class TokenChecks:
    """The places for tokens that are being checked, or wait for it.

    at_once: checks at the same time. refusals: refused tokens of one address in a minute; 0: no
    limit.
    """

    def __init__(self, clock: IReactorTime, at_once: int, refusals: int) -> None:
        self._clock = clock
        self._at_once = max(1, at_once)
        self._gate = Gate(self._at_once)
        self._most = _WAITING * self._at_once
        self._most_refusals = refusals
        self._places: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._minute = 0

    @asynccontextmanager
    async def place(self, address: str) -> AsyncIterator[None]:
        """Wait for the turn of a token. Raises TooManyRequests, ServiceUnavailable, at once."""
        peer = peer_of(address)
        self._admit(peer, address)
        self._places[peer] += 1
        try:
            waits = self._places.total() > self._at_once
            async with self._gate:
                if waits:  # or checks that end at once would follow each other in one deep stack
                    await sleep(self._clock, 0.0)
                yield
        finally:
            self._places[peer] -= 1
            if not self._places[peer]:
                del self._places[peer]

    def _admit(self, peer: str, address: str) -> None:
        if not _is_local(address):
            self._admit_one(peer, address)
        if self._places.total() >= self._most:
            raise ServiceUnavailable("too many tokens wait to be checked; try again", 1)

    def _admit_one(self, peer: str, address: str) -> None:
        now = self._clock.seconds()
        if int(now) // _MINUTE_S != self._minute:
            self._minute = int(now) // _MINUTE_S
            self._refusals.clear()
        if self._most_refusals and self._refusals[peer] >= self._most_refusals:
            raise TooManyRequests(
                f"too many wrong tokens came from {address}: its new tokens are checked again in"
                " the next minute; behind a proxy set server.trusted_proxies",
                _MINUTE_S - int(now) % _MINUTE_S,
            )
        if 2 * self._places[peer] >= self._most:
            raise TooManyRequests(f"too many tokens of {address} wait to be checked; try again", 1)

    def refused(self, address: str) -> None:
        """Count a token of `address` that the identity service has refused."""
        peer = peer_of(address)
        if peer in self._refusals or len(self._refusals) < _ADDRESSES:
            self._refusals[peer] += 1


def no_answer_of_identity(what: str, error: CloudError) -> ServiceUnavailable | PlatformTimeout:
    """The refusal of a caller when the identity service cannot do `what`.

    The caller may be anybody, so only the log has the address of the service and its words.
    """
    log.warn("The identity service could not {what}: {text}", what=what, text=error.text)
    reason = _REASONS.get(error.kind, "it has given no usable answer")
    text = f"the identity service cannot {what} now: {reason}; try again, or see the log of svcd"
    if error.kind is Fault.TIMEOUT:
        return PlatformTimeout(text)
    return ServiceUnavailable(text)


def _is_local(address: str) -> bool:
    """Whether an address may stand for many callers, see the note."""
    return address == UNIX or is_loopback(address)


def peer_of(address: str) -> str:
    """The addresses of one owner count as one: an IPv4 address, the /64 of an IPv6 address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(IPv6Network((parsed, 64), strict=False))
