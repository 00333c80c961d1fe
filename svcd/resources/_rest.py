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
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import Any, TypeAlias, cast

from klein import Klein
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.server import NOT_DONE_YET

from svcd.errors import (
    Forbidden,
    InternalError,
    MethodNotAllowed,
    NotFound,
    PlatformTimeout,
    ServiceUnavailable,
    Unauthorized,
)
from svcd.model.cloud import Caller
from svcd.model.ids import TenantId
from svcd.model.secret import Secret
from svcd.model.shapes import Shape
from svcd.ports.cloud import Identity
from svcd.ports.store import Store
from svcd.resources._answers import JSON, Answer, Download, encode, error_answer
from svcd.resources._bodies import Disconnected
from svcd.resources._body_rules import body_of, raw_body, refuse_if_gone
from svcd.resources._delivery import Delivery, packed, respond, unless_known
from svcd.resources._exchange import REFUSALS, Exchange, access_fields, record_of
from svcd.resources._faults import as_answerable
from svcd.resources._keyed import keyed_request, once
from svcd.resources._paths import decoded, shown, tenant_in
from svcd.resources._policy import Needs
from svcd.resources._query import MOST_WAIT_S, is_dry_run
from svcd.resources._route import Call, Options, Raw, Route, bound, route
from svcd.resources._running import Running
from svcd.resources._site import LARGE_ANSWER_BYTES, ApiRequest
from svcd.resources._streams import Stream
from svcd.resources.openapi import document
from svcd.runtime import logs
from svcd.runtime.metrics import Metrics
from svcd.runtime.tasks import incident_id
from svcd.web.routing import HasRoutes, Routed, at_once
from svcd.web.tree import Leaf, allowed, segments_of

log = Logger()

Reply: TypeAlias = Answer | Download | Stream

_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}\Z")
_TENANT = re.compile(r"[A-Za-z0-9._:@-]{1,64}\Z")
_JSON_SUFFIX = b".json"
_PAGES = (b"/console", b"/console/")
"""Paths to which links of other sites may lead."""
_METHODS = {
    m.encode(): m for m in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE")
}
"""Methods that metrics count by name; every other method counts as "other"."""


@lru_cache(maxsize=1024)
def _anonymous(tenant: str) -> Caller:
    return Caller(tenant_id=TenantId(tenant), user_id="anonymous", user_name="anonymous")


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
    ) -> None:
        self.metrics = metrics
        self._clock = clock
        self._identity = identity
        self._store = store
        self._options = options
        self._prefix = f"req-{uuid.uuid4().hex[:12]}-"
        self._count = 0
        self._running = Running()
        self._delivery = Delivery(clock, self._running, self._finished, options.stall_s)
        self._description: bytes | None = None
        super().__init__(self)

    # ---- routes ----

    def endpoints_of(self, resource: HasRoutes) -> Iterable[Route]:
        """The routes of `resource`, each with its Spec."""
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
        """See `_site.Door`."""
        if method in (b"GET", b"HEAD", b"DELETE"):
            return self._options.max_json_bytes, False
        found = self._find(uri.partition(b"?")[0], method)
        made = found[0].methods.get(method) if found else None
        if made is None:
            return self._options.max_json_bytes, False
        limit = self._options.max_json_bytes if made.limit is None else made.limit
        return limit, made.spec.streams

    def end_streams(self) -> None:
        """See `_site.Door`."""
        self._delivery.end_streams()

    def idle(self) -> Deferred[None]:
        """Fires when no handler runs any more."""
        return self._running.idle()

    # ---- resource ----

    def render(self, request: Any) -> Any:
        """Answer `request`, at once or when its handler has ended."""
        x = Exchange(request, self.new_request_id(), _given_id(request), self._clock.seconds())
        self.metrics.request_started()
        token = logs.request_id.set(x.request_id)
        tenant = logs.tenant.set("")
        try:
            answer = at_once(self._serve(x))
        except Exception as error:
            self._fail(x, error)
        else:
            if isinstance(answer, Deferred):
                self._carry_on(x, answer)
            else:
                self._answer(x, answer)
        finally:
            logs.tenant.reset(tenant)
            logs.request_id.reset(token)
        return NOT_DONE_YET

    def _carry_on(self, x: Exchange, work: Deferred[Reply]) -> None:
        self._running.begun()
        if not getattr(x.request, "early", False):
            x.timer = self._clock.callLater(self._options.request_timeout_s, self._late, x)

        def done(result: Any) -> None:
            if x.timer is not None and x.timer.active():
                x.timer.cancel()
            try:
                with logs.about(request=x.request_id, tenant=x.tenant):
                    if isinstance(result, Failure):
                        self._fail(x, cast("Exception", result.value))
                    else:
                        self._answer(x, result)
            finally:
                self._running.ended()

        work.addBoth(done)

    def _late(self, x: Exchange) -> None:
        if x.waits:
            x.waits = False
            x.timer = self._clock.callLater(MOST_WAIT_S, self._late, x)
            return
        seconds = self._options.request_timeout_s
        self._answer(
            x,
            error_answer(
                PlatformTimeout(
                    f"the request took longer than {seconds:g} s and may still succeed: "
                    "check the result before you try again"
                )
            ),
        )

    # ---- the checks ----

    def _find(
        self, path: bytes, method: bytes
    ) -> tuple[Leaf[Route], tuple[bytes, ...], bool] | None:
        """The leaf, the values in the path, and whether the suffix `.json` was removed."""
        segments = segments_of(path)
        if segments is None:
            return None
        if segments[-1].endswith(_JSON_SUFFIX):
            found = self.tree.find([*segments[:-1], segments[-1][: -len(_JSON_SUFFIX)]], method)
            if found is not None:
                made = found[0].methods.get(method)
                if made is None or made.spec.suffix:
                    return (*found, True)
        found = self.tree.find(segments, method)
        return None if found is None else (*found, False)

    async def _serve(self, x: Exchange) -> Reply:
        request = x.request
        method: bytes = request.method
        x.method = _METHODS.get(method, "other")
        fault = self._options.same_origin.fault(
            request.requestHeaders,
            isinstance(request, ApiRequest),
            is_page=method == b"GET" and request.path in _PAGES,
        )
        if fault:
            raise Forbidden(fault)
        found = self._find(request.path, method)
        if found is None:
            await self._authorize(x, tenant_in(request.path))
            raise NotFound(f"path {shown(request.path)} not found")
        leaf, raw_values, suffix = found
        made = leaf.methods.get(method)
        of_path = next(iter(leaf.methods.values())) if made is None else made
        x.pattern = of_path.pattern
        values = decoded(of_path.names, raw_values)
        if of_path.spec.needs is Needs.OPEN:
            caller = _anonymous("")
        else:
            tenant = None if values is None else values.pop("tenant_id")
            if self._identity is None:
                caller = self._anonymous_caller(x, tenant)
            else:
                caller = await self._authorize(x, tenant)
        if values is None:
            raise NotFound(f"path {shown(request.path)} not found")
        if made is None:
            allow = {"Allow": allowed(leaf.methods)}
            if method == b"OPTIONS":
                return Answer(200, headers=allow)
            raise MethodNotAllowed(f"{shown(method)} is not a method of this path", allow)
        x.writes = made.spec.needs is Needs.WRITE or made.spec.login
        x.waits = made.spec.waits
        policy = self._options.policy
        if not policy.allows(made.spec.needs, caller.roles):
            raise policy.refusal(made.spec.needs, caller.roles, f"{shown(method)} {made.pattern}")
        body = body_of(request, made, suffix, self._options.max_json_bytes)
        version = "1.1" if of_path.pattern.startswith("/v1.1") else "1.0"
        gone = partial(getattr, request, "_disconnected", False)
        call = Call(
            caller, version, request.args, policy, gone, request.notifyFinish, made.spec.query
        )
        call.head = method == b"HEAD"
        call.renew = partial(self._renewed, x, made, call)
        if made.spec.login:
            call.origin = self._options.addresses.origin(request)
            call.act_as = partial(setattr, x, "caller")
            call.authorize = partial(self._authorize, x, None)
        offered = made.plan is not None
        dry = x.writes and bool(request.args) and is_dry_run(request.args, offered, version)
        if dry or not made.spec.audited:
            x.writes = False
        elif made.spec.creates:
            keys = request.requestHeaders.getRawHeaders(b"Idempotency-Key")
            if keys is not None:
                now = self._clock.seconds()
                call.keyed = keyed = keyed_request(request, made, call, values, keys, now)
                act = partial(self._act, x, made, call, values, body)
                reply = await once(self._store, keyed, act)
                return self._replayed(x, made, reply) if isinstance(reply, bytes) else reply
        return await self._act(x, made, call, values, body, dry)

    async def _renewed(self, x: Exchange, made: Route, call: Call) -> Call:
        """See `Call.renew`."""
        caller = await self._authorize(x, call.tenant_id)
        policy = self._options.policy
        if not policy.allows(made.spec.needs, caller.roles):
            request = f"{made.method} {made.pattern}"
            raise policy.refusal(made.spec.needs, caller.roles, request)
        left = x.request.notifyFinish
        return Call(caller, call.version, {}, policy, call.gone, left, made.spec.query)

    async def _act(
        self,
        x: Exchange,
        made: Route,
        call: Call,
        values: dict[str, str],
        body: Any,
        dry: bool = False,
    ) -> Reply:
        """The last checks, and the handler. dry: or the method that plans."""
        if made.exists is not None:
            await made.exists(call, **values)
        if body is not None:  # the connection may be lost since it has come
            refuse_if_gone(body)
        call.read_query(x.request.requestHeaders)
        shape = made.spec.body
        if isinstance(shape, Shape):
            shaped = shape.decode(body.read() if body else b"", self._options.limits)
            if dry and made.plan is not None:
                plan = await made.plan(call, body=shaped, **values)
                return Answer(200, b'{"plan":' + encode(plan) + b"}")
            result = made.run(call, body=shaped, **values)
        elif isinstance(shape, Raw):
            result = made.run(call, body=raw_body(x.request), **values)
        else:
            result = made.run(call, **values)
        if isinstance(result, Deferred):
            result = await result
        if x.writes:
            x.made = getattr(result, "id", "")
        answer = self._wrapped(made, result)
        if call.headers and isinstance(answer, Answer):
            answer.headers = {**(answer.headers or {}), **call.headers}
        return answer

    def _replayed(self, x: Exchange, made: Route, kept: bytes) -> Reply:
        x.replayed = True
        answer = cast("Answer", self._wrapped(made, kept))
        answer.headers = {"Idempotent-Replayed": "true"}
        return answer

    async def _authorize(self, x: Exchange, tenant: str | None) -> Caller:
        """The caller; its tenant is the tenant of the path. tenant None: the path has no tenant."""
        if self._identity is None:
            return self._anonymous_caller(x, tenant)
        given = x.request.requestHeaders.getRawHeaders(b"X-Auth-Token")
        token = given[0].decode("latin-1").strip() if given else ""
        if not token:
            raise Unauthorized(
                "the header X-Auth-Token is missing: get a token from the identity service"
            )
        x.caller = caller = await self._identity.authenticate(
            Secret(token), lambda: self._options.addresses.of(x.request)
        )
        if caller.is_job:
            raise Forbidden(
                "the token is of the application credential of a job, which is for the object"
                " store only: log in as a user"
            )
        if tenant is not None and caller.tenant_id != tenant:
            raise Forbidden(
                f"the token is not for tenant {shown(tenant)}: get a token for that project"
            )
        x.tenant = caller.tenant_id
        logs.tenant.set(caller.tenant_id)
        return caller

    def _anonymous_caller(self, x: Exchange, tenant: str | None) -> Caller:
        """The caller with `auth.mode=none`: the path alone gives the tenant."""
        if tenant is None or not _TENANT.match(tenant):
            raise NotFound(f"path {shown(x.request.path)} not found")
        x.tenant = tenant
        logs.tenant.set(tenant)
        x.caller = caller = _anonymous(tenant)
        return caller

    # ---- the answer ----

    def _wrapped(self, made: Route, result: object) -> Reply:
        if made.spec.plain:
            assert isinstance(result, (Answer, Download, Stream))
            return result
        if made.spec.success == 204:
            return Answer(204)
        before, after = made.wrapper
        parts: tuple[bytes, ...]
        if isinstance(result, bytes):
            parts = (before, result, after)
        elif isinstance(result, list) and result and isinstance(result[0], bytes):
            between = [part for each in result[1:] for part in (b",", each)]
            parts = (before, b"[", result[0], *between, b"]", after)
        else:
            parts = (before, encode(result), after)
        return Answer(made.spec.success, b"".join(parts))

    def _answer(self, x: Exchange, answer: Reply) -> None:
        if x.answered:
            return
        x.answered = True
        request = x.request
        if isinstance(answer, Stream):
            self._delivery.stream(x, answer)
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
        if x.writes or status in REFUSALS:
            self._audit(x, status)
        if isinstance(answer, Download):
            self._delivery.download(x, answer)
            return
        respond(request, answer, x.request_id)
        self._finished(x, answer.status)

    def _audit(self, x: Exchange, status: int) -> None:
        audit = self._options.audit
        if audit is None:
            return
        if status in REFUSALS:
            audit.refusal(record_of(x, status, self._options.addresses))
        elif not 400 <= status < 500:  # a wrong request has changed nothing
            audit.change(record_of(x, status, self._options.addresses))

    def _fail(self, x: Exchange, error: BaseException) -> None:
        if isinstance(error, Disconnected):
            x.answered = True
            self._finished(x, 499)
            return
        answerable = as_answerable(error)
        if answerable is None:
            incident = incident_id()
            log.failure(
                "Request {method} {pattern} failed, incident {incident}",
                failure=Failure(error),
                method=x.method,
                pattern=x.pattern,
                incident=incident,
            )
            answerable = InternalError(
                f"internal error, incident {incident}: see the log of the service"
            )
        answer = error_answer(answerable)
        if answer.status == 401 and self._identity is not None:
            challenge = {"WWW-Authenticate": self._identity.challenge()}
            answer.headers = {**challenge, **answerable.headers}
        self._answer(x, answer)

    def _finished(self, x: Exchange, status: int) -> None:
        seconds = self._clock.seconds() - x.started
        self.metrics.request_finished(x.pattern, x.method, status, seconds)
        if self._options.access_log:
            log.info(
                "{method} {path} answered {status} in {ms:.1f} ms",
                method=x.method,
                path=shown(x.request.path),
                status=status,
                ms=seconds * 1000.0,
                fields=lambda: access_fields(x, status, seconds, self._options.addresses),
            )


def _given_id(request: Any) -> str:
    """The id that the caller has chosen for `request`; "" without a usable one."""
    given = request.requestHeaders.getRawHeaders(b"X-Request-Id")
    text: str = given[0].decode("latin-1") if given else ""
    return text if _SANE_ID.match(text) else ""
