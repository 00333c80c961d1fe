# mypy: allow-untyped-calls
"""A FakeService behind two ports of loopback, for programs in any language: `svcd fake`.

The API's port has the control routes `/_fake/…` too; the other port is the cloud's. Virtual time
follows the real one at a speed, or moves only when a control route says so; then a request gets the
time that its answer needs, as with `FakeService.call`. Connections always live in real time.
"""

from __future__ import annotations

import itertools
import json
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred, gatherResults, maybeDeferred
from twisted.internet.task import LoopingCall
from twisted.python.failure import Failure
from twisted.web.server import Request, Site

from svcd.embedded.faults import Handle
from svcd.model.ids import timestamp
from svcd.resources._site import ApiRequest
from svcd.resources.api import ApiSite, build
from svcd.resources.fake_control import (
    FakeControls,
    FakeFault,
    FakeRequest,
    FakeRule,
    FakeTime,
    FakeUntil,
)
from svcd.testing import FakeService, Requested

CONTROL: Final = "/_fake/"
_TICK_S: Final = 0.01
_MOST_TICK_S: Final = 0.1
"""Most real seconds of one step: virtual time falls back where the machine is too slow."""
_ANSWER_S: Final = 300.0
"""Virtual seconds that one answer may take when time moves by control routes only."""
_HOST: Final = "127.0.0.1"


class FakeSocket:
    """The service, its ports and its clock.

    speed: virtual seconds in a real one; None: time moves by the control routes only.
    failed: called with the error that has ended the clock.
    """

    def __init__(
        self,
        reactor: Any,
        settings: Mapping[str, str],
        seed: int,
        speed: float | None,
        failed: Callable[[BaseException | None], None],
    ) -> None:
        self._reactor = reactor
        self._given, self._seed = dict(settings), seed
        self._speed, self._failed = speed, failed
        self._ports: list[Any] = []
        self._ticks = LoopingCall(self._tick)
        self._ticks.clock = reactor
        self._ticked = 0.0

    def start(self, port: int = 0) -> None:
        """Listen, and begin. port: of the API; 0: any free one. Raises OSError."""
        with _bound(port) as api, _bound(0) as cloud:
            self.url, self._cloud_url = _url(api), _url(cloud)
            self._begin()
            self._api, self._cloud = self._api_site(), _CloudSite(self)
            for opened, site in ((api, self._api), (cloud, self._cloud)):
                adopted = self._reactor.adoptStreamPort(opened.fileno(), socket.AF_INET, site)
                self._ports.append(adopted)
        if self._speed is not None:
            self._ticked = self._reactor.seconds()
            self._ticks.start(_TICK_S).addErrback(self._stopped)

    async def stop(self) -> None:
        """Close the ports and the service. Idempotent."""
        if self._ticks.running:
            self._ticks.stop()
        ports, self._ports = self._ports, []
        closing: Deferred[Any] = gatherResults([maybeDeferred(p.stopListening) for p in ports])
        await closing
        self.service.close()

    @property
    def about(self) -> Mapping[str, str]:
        """What a client needs: URLs, the tenant, and what a cluster is made of."""
        service = self.service
        return {
            "url": self.url,
            "cloud_url": self._cloud_url,
            "tenant": service.tenant,
            "image_id": service.image_id,
            "flavor_id": service.flavor_id,
            "keypair": service.keypair,
        }

    # ---- control --------------------------------------------------------------------------------

    def advance(self, seconds: float) -> FakeTime:
        return self._after(lambda: self.service.advance(seconds))

    def until(self, wanted: FakeUntil, headers: Mapping[str, str]) -> FakeTime:
        last = ""

        def value() -> tuple[str, ...]:
            nonlocal last
            last = self._value(wanted, headers)
            return (last,) if last in wanted.values else ()

        try:
            return self._after(lambda: self.service.until(value, wanted.seconds))
        except RuntimeError:
            raise ValueError(
                f"{wanted.field} of GET {wanted.path} is {last!r:.200} after"
                f" {wanted.seconds} virtual seconds, and none of {', '.join(wanted.values):.200}"
            ) from None

    def add(self, fault: FakeFault) -> FakeRule:
        handle = self.service.faults.add(
            where=fault.where,
            method=fault.method,
            path=fault.path,
            times=fault.times,
            after=fault.after,
            effect=fault.effect,
            status=fault.status,
            body=fault.body,
            headers={name: str(text) for name, text in (fault.headers or {}).items()},
            delay_s=float(fault.delay_s),
        )
        number = next(self._numbers)
        self._handles[number] = handle
        return _rule(number, handle)

    def rules(self) -> Sequence[FakeRule]:
        return [_rule(number, handle) for number, handle in self._handles.items()]

    def remove(self, rule: int) -> None:
        self._handles.pop(rule).remove()

    def clear(self) -> None:
        self.service.faults.clear()
        self._handles.clear()

    def requests(self) -> Sequence[FakeRequest]:
        return [FakeRequest(method=r.method, path=r.path) for r in self.service.requests]

    def reset(self) -> None:
        self._api.door.end_streams()
        self.service.close()
        self._begin()
        self._api.door = self._api_site().door
        self._cloud.resource = self.service.cloud.resource

    # ---- inside ---------------------------------------------------------------------------------

    def _begin(self) -> None:
        begins_at = None if self._speed is None else self._reactor.seconds()
        self.service = _AtUrls(self.url, self._cloud_url, begins_at, self._given, self._seed)
        self._handles: dict[int, Handle] = {}
        self._numbers = itertools.count()
        self.service.services.waits.never = self._speed is None

    def _api_site(self) -> ApiSite:
        site = build(self.service.services, [FakeControls(self)], self._reactor)[1]
        site.noisy = False
        make: Any = partial(_ApiRequest, self)
        site.requestFactory = make
        return site

    def settle(self, request: Any) -> None:
        """Let the time pass that an answer needs, when no other clock does."""
        if self._speed is not None:
            return
        clock = self.service.clock
        end = clock.seconds() + _ANSWER_S
        while not (request.startedWriting or request._disconnected):
            step = clock.next_call_in()
            if step is None or clock.seconds() + step > end:
                return
            clock.advance(step)

    def _stopped(self, failure: Failure) -> None:
        self._failed(failure.value)

    def _tick(self) -> None:
        now = self._reactor.seconds()
        passed, self._ticked = now - self._ticked, now
        self.service.advance(min(max(passed, 0.0), _MOST_TICK_S) * (self._speed or 0.0))

    def _after(self, move: Callable[[], Any]) -> FakeTime:
        clock = self.service.clock
        before = clock.seconds()
        value = move()
        now = clock.seconds()
        return FakeTime(
            now=timestamp(now),
            passed_s=round(now - before, 6),
            value=value[0] if value else None,
        )

    def _value(self, wanted: FakeUntil, headers: Mapping[str, str]) -> str:
        if not wanted.path.startswith("/") or wanted.path.startswith(CONTROL):
            raise ValueError(f"path {wanted.path!r:.100} is no path of the API")
        answer = self.service.call("GET", wanted.path, headers=headers)
        if answer.status != 200:
            raise ValueError(
                f"GET {wanted.path} answered {answer.status}: {answer.body.decode()[:500]}"
            )
        try:
            value = answer.json
        except ValueError:
            raise ValueError(f"GET {wanted.path} answers no JSON") from None
        for key in wanted.field.split("."):
            if not isinstance(value, dict) or key not in value:
                kind = "a list, into which no field leads" if isinstance(value, list) else "a value"
                known = ", ".join(value) if isinstance(value, dict) else kind
                raise ValueError(
                    f"field {wanted.field!r:.100}: GET {wanted.path} has no {key!r:.100}"
                    f" there, but {known[:300]}"
                )
            value = value[key]
        return value if isinstance(value, str) else json.dumps(value)


class _AtUrls(FakeService):
    """A FakeService with the URLs of two ports, whose requests come through their sites."""

    def __init__(
        self,
        url: str,
        cloud_url: str,
        begins_at: float | None,
        settings: Mapping[str, str],
        seed: int,
    ) -> None:
        self.url, self.cloud_url, self.begins_at = url, cloud_url, begins_at
        super().__init__(settings, seed)
        self._agent: Any = self._memory  # `until` sends requests that no client has sent

    def saw(self, request: ApiRequest) -> None:
        """Remember a request to the API."""
        path = request.uri.decode("latin-1")
        if not path.startswith(CONTROL):
            self._requests.append(Requested(method=request.method.decode("latin-1"), path=path))


class _ApiRequest(ApiRequest):
    def __init__(self, fake: FakeSocket, *of_channel: Any) -> None:
        super().__init__(*of_channel)
        self._fake = fake

    def process(self) -> None:
        self._fake.service.saw(self)
        super().process()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        super().requestReceived(command, path, version)
        self._fake.settle(self)


class _CloudRequest(Request):
    def __init__(self, fake: FakeSocket, *of_channel: Any) -> None:
        super().__init__(*of_channel)
        self._fake = fake

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        super().requestReceived(command, path, version)
        self._fake.settle(self)


class _CloudSite(Site):
    noisy = False

    def __init__(self, fake: FakeSocket) -> None:
        super().__init__(
            fake.service.cloud.resource,
            requestFactory=partial(_CloudRequest, fake),
            reactor=fake._reactor,
            parsePOSTFormSubmission=False,
        )

    def startFactory(self) -> None:
        """Does nothing: Twisted would open its own access log."""

    def stopFactory(self) -> None:
        """Does nothing, see startFactory."""

    def log(self, request: Any) -> None:
        """Does nothing: there is no log."""


def _rule(number: int, handle: Handle) -> FakeRule:
    rule = handle.rule
    return FakeRule.filled(rule, id=number, effect=rule.effect.value, hits=handle.hits())


def _bound(port: int) -> socket.socket:
    """A socket that listens. Raises OSError."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((_HOST, port))
        opened.listen(128)
        opened.setblocking(False)
    except OSError:
        opened.close()
        raise
    return opened


def _url(opened: socket.socket) -> str:
    host, port = opened.getsockname()
    return f"http://{host}:{port}"
