# mypy: allow-untyped-calls
"""The door: every request passes through it, and it alone sets status codes and headers.

Order of checks (behaviour, Part I 4): HTTP -> token -> tenant -> route -> size and media type ->
id in the path -> shape -> references -> rules -> act. The door makes the first five checks and the
check of the shape. `exists` of a route checks the id in the path. The commands make the others.

Note: shielded. The door never cancels a handler. When the caller disconnects, the handler runs to
its end. When the handler takes longer than `request_timeout_s`, the caller gets a 504, the handler
runs to its end, and the log reports a failure. So no database call is ever interrupted.

The door finds the handler and keeps the order of the checks. Klein runs the handler.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, cast

from attrs import field, frozen
from klein import Klein
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.server import NOT_DONE_YET

from svcd.errors import Forbidden, InternalError, PlatformTimeout, ServiceUnavailable
from svcd.model.requests import Limits
from svcd.ports.cloud import Identity
from svcd.ports.store import Store
from svcd.resources._act import Reply, act, reply_of
from svcd.resources._addresses import Addresses
from svcd.resources._answers import JSON, Answer, Download, encode, error_answer, shown
from svcd.resources._bodies import Disconnected
from svcd.resources._body_rules import body_of
from svcd.resources._call import REFUSALS, Call, access_fields, record_of
from svcd.resources._callers import Callers
from svcd.resources._delivery import Delivery, packed, respond, unless_known
from svcd.resources._faults import as_answerable
from svcd.resources._keyed import keyed, once
from svcd.resources._paths import find, route_at, target_of
from svcd.resources._policy import Needs, Policy
from svcd.resources._query import MOST_WAIT_S, is_dry_run
from svcd.resources._route import JSON_BODY, Route, bound, route
from svcd.resources._running import Running
from svcd.resources._site import LARGE_ANSWER_BYTES, ApiRequest
from svcd.resources._streams import Stream
from svcd.resources.openapi import document
from svcd.runtime import logs
from svcd.runtime.audit import Audit
from svcd.runtime.metrics import Metrics
from svcd.runtime.same_origin import SameOrigin
from svcd.runtime.tasks import incident_id
from svcd.web.routing import HasRoutes, Routed

log = Logger()

_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}\Z")
_PAGES = (b"/console", b"/console/")
"""Paths to which links of other sites may lead."""


@frozen(kw_only=True)
class Options:
    """The settings of the door.

    policy: who may send which request. same_origin: the check of requests of browsers. addresses:
    of callers. audit: None when it is off. stall_s: the door disconnects a peer that reads nothing
    of a download for so many seconds. sizes: most bytes of a body, by the `limit` names of routes.
    """

    policy: Policy
    same_origin: SameOrigin
    sizes: Mapping[str, int]
    addresses: Addresses = field(factory=Addresses)
    audit: Audit | None = None
    request_timeout_s: float = 60.0
    stall_s: float = 60.0
    limits: Limits = field(factory=Limits)
    access_log: bool = True


class Rest(Routed[Route]):
    """The API as one leaf resource of twisted.web."""

    app = Klein()

    def __init__(
        self,
        clock: IReactorTime,
        metrics: Metrics,
        identity: Identity | None,
        store: Store,
        options: Options,
        resources: Iterable[HasRoutes] = (),
    ) -> None:
        """resources: those that the door serves beside its own description."""
        self.metrics = metrics
        self._clock = clock
        self._callers = Callers(identity, options.policy, options.addresses)
        self._store = store
        self._options = options
        self._prefix = f"req-{uuid.uuid4().hex[:12]}-"
        self._count = 0
        self._running = Running()
        self._delivery = Delivery(clock, self._running, self._finished, options.stall_s)
        self._description: bytes | None = None
        super().__init__(self, *resources)

    # ---- routes ----

    def endpoints_of(self, resource: HasRoutes) -> Iterable[Route]:
        """The routes of `resource`, each with its `route`."""
        return bound(resource, self._options.sizes)

    @route(app, "GET", "/openapi.json", needs=Needs.OPEN, plain=True, operation="getOpenApi")
    async def describe(self, call: Call) -> Answer:
        """Return this description of the interface."""
        if self._description is None:
            self._description = encode(document(self.routes()))
        return Answer(200, self._description, JSON)

    # ---- called by the site ----

    def new_request_id(self) -> str:
        """An id that is unique in this process, and very likely across restarts."""
        self._count += 1
        return f"{self._prefix}{self._count:x}"

    def body_rule(self, method: bytes, uri: bytes) -> tuple[int, bool]:
        """Most bytes of the body of such a request, and whether the handler streams it."""
        target = find(self.tree, uri.partition(b"?")[0], method)
        route = target[0].methods.get(method) if target else None
        if route is None:
            return self._options.sizes[JSON_BODY], False
        return route.limit, route.spec.streams

    def now(self) -> float:
        """The daemon's time, which connections need not share."""
        return self._clock.seconds()

    def end_streams(self) -> None:
        """End all answers that would go on without an end."""
        self._delivery.end_streams()

    def idle(self) -> Deferred[None]:
        """Fires when no handler runs any more."""
        return self._running.idle()

    # ---- resource ----

    def render(self, request: Any) -> Any:
        """Answer `request`, at once or when its handler has ended."""
        call = Call(
            request,
            self._callers,
            self.new_request_id(),
            _given_id(request),
            self._clock.seconds(),
        )
        self.metrics.request_started()
        self._running.begun()
        work = Deferred.fromCoroutine(self._serve(call))
        if not work.called and not getattr(request, "early", False):
            call.timer = self._clock.callLater(self._options.request_timeout_s, self._late, call)
        work.addBoth(self._ended, call)
        return NOT_DONE_YET

    def _ended(self, result: Reply | Failure, call: Call) -> None:
        if call.timer is not None and call.timer.active():
            call.timer.cancel()
        try:
            with logs.about(request=call.request_id, tenant=call.tenant):
                if isinstance(result, Failure):
                    self._fail(call, cast("BaseException", result.value))
                else:
                    self._answer(call, result)
        finally:
            self._running.ended()

    def _late(self, call: Call, waited: bool = False) -> None:
        """The time is over. A request that may wait for something newer has that time too."""
        if not waited and call.route is not None and call.route.spec.waits:
            call.timer = self._clock.callLater(MOST_WAIT_S, self._late, call, True)
            return
        seconds = self._options.request_timeout_s
        self._answer(
            call,
            error_answer(
                PlatformTimeout(
                    f"the request took longer than {seconds:g} s and may still succeed: "
                    "check the result before you try again"
                )
            ),
        )

    # ---- the stages ----

    async def _serve(self, call: Call) -> Reply:
        """Take `call` through the stages, in the order of the checks, in a context of its own."""
        options = self._options
        logs.request_id.set(call.request_id)
        logs.tenant.set("")
        self._refuse_foreign_page(call)
        target = target_of(self.tree, call.request.path, call.request.method)
        call.pattern = target.pattern
        if not target.is_open:
            await self._callers.authenticate(call, target.tenant)
        route = route_at(target, call.request)
        if isinstance(route, Answer):  # the answer to OPTIONS
            return route
        call.route = route
        self._callers.authorize(call, route)
        body = body_of(call.request, route, target.suffix)
        if route.changes:
            call.dry = is_dry_run(call.request.args, route.plan is not None, route.version)
        call.key = key = keyed(call, route, target.values, self._clock.seconds())
        work = partial(act, call, route, target.values, body, options.limits)
        result = await (work() if key is None else once(self._store, key, work))
        return reply_of(call, route, result)

    def _refuse_foreign_page(self, call: Call) -> None:
        """Raises Forbidden for a request that a web page of others has sent."""
        request = call.request
        fault = self._options.same_origin.fault(
            request.requestHeaders,
            isinstance(request, ApiRequest),
            is_page=request.method == b"GET" and request.path in _PAGES,
        )
        if fault:
            raise Forbidden(fault)

    # ---- the answer ----

    def _answer(self, call: Call, answer: Reply) -> None:
        if call.answered:
            return
        call.answered = True
        request = call.request
        if isinstance(answer, Stream):
            self._delivery.stream(call, answer)
            return
        if isinstance(answer, Answer):
            answer = packed(request, unless_known(request, answer))
        large = isinstance(answer, Download) or len(answer.body) > LARGE_ANSWER_BYTES
        if large and isinstance(request, ApiRequest) and request.crowded():
            if isinstance(answer, Download):
                self._delivery.forget(answer)
            answer = error_answer(
                ServiceUnavailable("too many large answers wait for slow readers; try again", 5)
            )
        status = 200 if isinstance(answer, Download) else answer.status
        if call.writes or status in REFUSALS:
            self._audit(call, status)
        if isinstance(answer, Download):
            self._delivery.download(call, answer)
            return
        respond(request, answer, call.request_id)
        self._finished(call, answer.status)

    def _audit(self, call: Call, status: int) -> None:
        audit = self._options.audit
        if audit is None:
            return
        if status in REFUSALS:
            audit.refusal(record_of(call, status, self._options.addresses))
        elif not 400 <= status < 500:  # a refused request has changed nothing
            audit.change(record_of(call, status, self._options.addresses))

    def _fail(self, call: Call, error: BaseException) -> None:
        if isinstance(error, Disconnected):
            call.answered = True
            self._finished(call, 499)
            return
        answerable = as_answerable(error)
        if answerable is None:
            incident = incident_id()
            log.failure(
                "Request {method} {pattern} failed, incident {incident}",
                failure=Failure(error),
                method=call.method,
                pattern=call.pattern,
                incident=incident,
            )
            answerable = InternalError(
                f"internal error, incident {incident}: see the log of the service"
            )
        answer = error_answer(answerable)
        if answer.status == 401:
            answer.headers = {**self._callers.challenge(), **answerable.headers}
        self._answer(call, answer)

    def _finished(self, call: Call, status: int) -> None:
        seconds = self._clock.seconds() - call.started
        self.metrics.request_finished(call.pattern, call.method, status, seconds)
        if self._options.access_log:
            log.info(
                "{method} {path} answered {status} in {ms:.1f} ms",
                method=call.method,
                path=shown(call.request.path),
                status=status,
                ms=seconds * 1000.0,
                fields=lambda: access_fields(call, status, seconds, self._options.addresses),
            )


def _given_id(request: Any) -> str:
    """The id that the caller has chosen for `request`; "" without a usable id."""
    given = request.requestHeaders.getRawHeaders(b"X-Request-Id")
    text: str = given[0].decode("latin-1") if given else ""
    return text if _SANE_ID.match(text) else ""
