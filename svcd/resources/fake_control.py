"""The control routes of a fake service behind a socket; no other daemon has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Protocol

from attrs import frozen
from klein import Klein
from msgspec import Meta

from svcd.errors import NotFound, ValidationError
from svcd.model import fields
from svcd.model.fields import means
from svcd.model.template import ConfigValue
from svcd.model.wire import View
from svcd.resources._call import Call
from svcd.resources._policy import Needs
from svcd.resources._route import route

_MOST_S = 31 * 24 * 3600
"""Of one request: each virtual day of a cluster takes a second or so."""
_Seconds = Annotated[int, Meta(ge=0, le=_MOST_S)]
_Count = Annotated[int, Meta(ge=0)]


@frozen(kw_only=True)
class FakeAdvance:
    """The time that is to pass."""

    seconds: Annotated[_Seconds, means("virtual seconds")]


@frozen(kw_only=True)
class FakeUntil:
    """The answer of the API to wait for."""

    path: Annotated[fields.Text, means("path of a GET with its query, `/v1.1/demo/clusters/ID`")]
    field: Annotated[
        fields.Text, means("place of a value in the answer, with dots: `cluster.status`")
    ]
    values: Annotated[
        tuple[str, ...], Meta(min_length=1), means("texts of the value, one of which ends the wait")
    ]
    seconds: Annotated[_Seconds, means("most virtual seconds; 3600 when it is left out")] = 3600


@frozen(kw_only=True)
class FakeFault:
    """A rule that makes a peer of svcd misbehave, with the fields of `svcd.testing.FaultRule`."""

    where: Annotated[str, means("identity, compute, image, network, volume, ssh, store …")]
    method: Annotated[str, means("HTTP method; empty: any")] = ""
    path: Annotated[str, means("regular expression, searched in path and query")] = ""
    times: Annotated[_Count | None, means("calls that the rule takes; null: all")] = None
    after: Annotated[_Count, means("matching calls that pass before")] = 0
    effect: Annotated[str, means("answer, timeout_before, timeout_after, refused, delay …")] = (
        "answer"
    )
    status: Annotated[
        int, Meta(ge=0, le=599), means("status of the effect `answer`; of ssh the exit code")
    ] = 500
    body: Annotated[
        str, Meta(extra={"lines": True}), means("body of the effects `answer` and `garbage`")
    ] = ""
    headers: Annotated[
        Mapping[str, ConfigValue] | None, means("header fields of the effect `answer`")
    ] = None
    delay_s: Annotated[_Seconds, means("virtual seconds that pass before any effect")] = 0


class FakeTime(View, frozen=True, kw_only=True):
    """The virtual time."""

    now: Annotated[str, means("UTC, as `YYYY-MM-DD HH:MM:SS.ffffff`")]
    passed_s: Annotated[float, means("virtual seconds that this request let pass")]
    value: Annotated[str | None, means("the value that ended the wait; null without a wait")] = None


class FakeRule(View, frozen=True, kw_only=True):
    """A rule in force."""

    id: Annotated[int, means("for its removal")]
    where: Annotated[str, means("the peer")]
    method: Annotated[str, means("HTTP method; empty: any")]
    path: Annotated[str, means("regular expression")]
    times: Annotated[int | None, means("calls that it takes; null: all")]
    effect: Annotated[str, means("the effect")]
    status: Annotated[int, means("status of the effect `answer`")]
    hits: Annotated[int, means("calls that it took")]


class FakeRequest(View, frozen=True, kw_only=True):
    """A request that reached the API."""

    method: Annotated[str, means("HTTP method")]
    path: Annotated[str, means("path with its query")]


class Controlled(Protocol):
    """The fake behind the routes. Its refusals are ValueErrors, and LookupError for no rule."""

    def advance(self, seconds: float) -> FakeTime: ...
    def until(self, wanted: FakeUntil, headers: Mapping[str, str]) -> FakeTime: ...
    def add(self, fault: FakeFault) -> FakeRule: ...
    def rules(self) -> Sequence[FakeRule]: ...
    def remove(self, rule: int) -> None: ...
    def clear(self) -> None: ...
    def requests(self) -> Sequence[FakeRequest]: ...
    def reset(self) -> None: ...


class FakeControls:
    """Time, faults and requests of a fake service."""

    app = Klein()

    def __init__(self, fake: Controlled) -> None:
        self._fake = fake

    @route(
        app,
        "POST",
        "/_fake/advance",
        needs=Needs.OPEN,
        body=FakeAdvance,
        returns="time",
        success=200,
        operation="advanceFake",
    )
    async def advance(self, call: Call, body: FakeAdvance) -> FakeTime:
        """Let virtual time pass. Each timer that falls due runs at its own moment."""
        return self._fake.advance(body.seconds)

    @route(
        app,
        "POST",
        "/_fake/until",
        needs=Needs.OPEN,
        body=FakeUntil,
        returns="time",
        success=200,
        operation="waitForFake",
    )
    async def until(self, call: Call, body: FakeUntil) -> FakeTime:
        """Let virtual time pass until a GET has one of some values.

        A 400 names the last value when the time is over. The token of this request is sent.
        """
        token = call.request.getHeader("X-Auth-Token")
        try:
            return self._fake.until(body, {"X-Auth-Token": token} if token else {})
        except ValueError as error:
            raise ValidationError(str(error)) from error

    @route(
        app,
        "POST",
        "/_fake/faults",
        needs=Needs.OPEN,
        body=FakeFault,
        returns="fault",
        success=200,
        operation="addFakeFault",
    )
    async def add(self, call: Call, body: FakeFault) -> FakeRule:
        """Let a peer of the daemon misbehave from now on."""
        try:
            return self._fake.add(body)
        except ValueError as error:
            raise ValidationError(str(error)) from error

    @route(
        app, "GET", "/_fake/faults", needs=Needs.OPEN, returns="faults", operation="listFakeFaults"
    )
    async def rules(self, call: Call) -> Sequence[FakeRule]:
        """List the rules in force."""
        return self._fake.rules()

    @route(app, "DELETE", "/_fake/faults", needs=Needs.OPEN, operation="clearFakeFaults")
    async def clear(self, call: Call) -> None:
        """End all rules."""
        self._fake.clear()

    @route(app, "DELETE", "/_fake/faults/<rule_id>", needs=Needs.OPEN, operation="removeFakeFault")
    async def remove(self, call: Call, rule_id: str) -> None:
        """End a rule."""
        try:
            self._fake.remove(int(rule_id))
        except (LookupError, ValueError) as error:
            raise NotFound(f"fault {rule_id!r:.40} not found") from error

    @route(
        app,
        "GET",
        "/_fake/requests",
        needs=Needs.OPEN,
        returns="requests",
        operation="listFakeRequests",
    )
    async def requests(self, call: Call) -> Sequence[FakeRequest]:
        """List the newest 10,000 requests that reached the API, the newest last."""
        return self._fake.requests()

    @route(app, "POST", "/_fake/reset", needs=Needs.OPEN, success=204, operation="resetFake")
    async def reset(self, call: Call) -> None:
        """Begin anew: no records, no faults, no requests, and the first moment again."""
        self._fake.reset()
