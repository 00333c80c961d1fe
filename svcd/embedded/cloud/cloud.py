# mypy: allow-untyped-calls
"""The embedded cloud as one resource: `/identity`, `/compute`, … each with its own Klein app."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import datetimeToString
from twisted.web.resource import IResource, Resource
from twisted.web.server import NOT_DONE_YET, Request

from svcd.embedded.cloud.admin import Admin
from svcd.embedded.cloud.compute import Compute
from svcd.embedded.cloud.core import Core
from svcd.embedded.cloud.guests import Guests
from svcd.embedded.cloud.identity import Identity
from svcd.embedded.cloud.image import ImageService
from svcd.embedded.cloud.life import Life
from svcd.embedded.cloud.network import Network
from svcd.embedded.cloud.objects import Bodies
from svcd.embedded.cloud.objectstore import ObjectStoreService
from svcd.embedded.cloud.volume import VolumeService
from svcd.embedded.cloud.web import Call, Refusal, Reply, Service, compiled, find, send, split
from svcd.embedded.faults import GARBAGE, Effect, Fault, Faults
from svcd.settings import Embedded

log = Logger()

_CONTAINER_SEGMENTS = 3  # /v1/account/container: beyond that a slash at the end is part of a name


class EmbeddedCloud:
    """One cloud: `resource` serves it, `start` takes up what was left, `stop` ends it.

    state: the daemon's state folder, what is kept lies in `cloud/` below; None: nothing is kept.
    public_url: origin of the URLs in the catalog, without a slash at the end.
    image_problem: "" when the vanilla image's software can be used, else what to do.
    hosts: how many pretended hosts anti-affinity spreads over.
    """

    def __init__(
        self,
        clock: IReactorTime,
        config: Embedded,
        guests: Guests,
        faults: Faults,
        state: Path | None,
        public_url: str,
        new_id: Callable[[], str],
        rng: random.Random,
        image_problem: Callable[[], str],
        *,
        admin: bool = False,
        open_projects: bool = True,
        hosts: int = 32,
    ) -> None:
        self.faults = faults
        self.calls: Counter[str] = Counter()
        self.core = Core(
            clock,
            config,
            None if state is None else state / "cloud",
            public_url,
            new_id,
            rng,
            image_problem,
            hosts,
            open_projects,
        )
        self._life = life = Life(self.core, guests)
        folder = self.core.folder
        self._bodies = Bodies(clock, None if folder is None else folder / "objects", new_id)
        self._services: dict[str, Service] = {
            "identity": Identity(self.core),
            "compute": Compute(self.core, life),
            "image": ImageService(self.core),
            "network": Network(self.core, life),
            "volume": VolumeService(self.core, life),
            "object-store": ObjectStoreService(self.core, self._bodies),
        }
        if admin:
            self._services["admin"] = Admin(self.core, faults, self.calls)
        self.resource: IResource = _Root(self)
        self._engine: IResource | None = None

    def mount_engine(self, factory: Callable[[], IResource]) -> None:
        """Serve `/engine/…` by what `factory` makes; it sees the path below `/engine`."""
        self._engine = factory()

    @property
    def engine(self) -> IResource | None:
        """What serves `/engine`."""
        return self._engine

    def service(self, name: str) -> Service | None:
        """By the first segment of the path."""
        return self._services.get(name)

    def set_public_url(self, url: str) -> None:
        """The origin became known late (port 0)."""
        self.core.public_url = url.rstrip("/")

    def start(self) -> None:
        """Take up unfinished changes; adopt the machines of a former process."""
        self._bodies.sweep(each.blob for each in self.core.state.objects.values())
        self._life.start()

    async def stop(self) -> None:
        """No change any more; the files are closed, machines live on."""
        await self._life.stop()
        self.core.state.close()


def _engine_call(request: Request) -> str:
    """For example `engine POST oozie/v1/jobs`: without the ids of cluster and job."""
    words = request.path.decode("latin-1").split("/")[3:]
    most = 3 if words[:1] == ["oozie"] else 1
    return f"engine {request.method.decode('latin-1')} {'/'.join(words[:most])}"


class _Root(Resource):
    """Finds the service, plays faults, turns what handlers return into answers."""

    isLeaf = True

    def __init__(self, cloud: EmbeddedCloud) -> None:
        super().__init__()
        self._cloud = cloud

    def render(self, request: Request) -> int | bytes:
        """See IResource."""
        request.setHeader(b"date", datetimeToString(self._cloud.core.now()))
        path = request.path.decode("latin-1")
        _, name, rest = (path + "/").split("/", 2)
        service = self._cloud.service(name)
        if service is None:
            if name == "engine" and self._cloud.engine is not None:
                return self._render_engine(request, self._cloud.engine)
            send(request, Reply(status=404, body={"error": {"code": 404, "message": "no service"}}))
            return NOT_DONE_YET
        segments = split(rest[:-1])
        most = _CONTAINER_SEGMENTS if service.where == "object-store" else len(segments)
        while segments and not segments[-1] and len(segments) <= most + 1:
            segments.pop()
        rule = self._cloud.faults.match(
            service.where, request.method.decode("latin-1"), request.uri.decode("latin-1")
        )
        if rule is None:
            self._answer(request, service, segments)
        else:
            self._play(rule, request, service, segments)
        return NOT_DONE_YET

    def _render_engine(self, request: Request, engine: IResource) -> int | bytes:
        """Move to the path below /engine, as traversal would."""
        self._cloud.calls[_engine_call(request)] += 1
        request.prepath = [b"engine"]
        request.postpath = (request.postpath or [])[1:]
        found: IResource = engine
        while request.postpath and not found.isLeaf:
            segment = request.postpath.pop(0)
            request.prepath.append(segment)
            found = found.getChildWithDefault(segment, request)
        result: int | bytes = found.render(request)
        return result

    def _answer(self, request: Request, service: Service, segments: list[str]) -> None:
        reply = self._perform(request, service, segments)
        if isinstance(reply, Deferred):
            gone: list[object] = []
            request.notifyFinish().addErrback(gone.append)
            reply.addCallback(lambda done: None if gone else send(request, done))
        else:
            send(request, reply)

    def _perform(
        self, request: Request, service: Service, segments: list[str]
    ) -> Reply | Deferred[Reply]:
        """Do what is asked; every fault becomes an answer of the service."""
        call = Call(request)
        try:
            with self._cloud.core.state.transaction():
                done = self._dispatch(call, service, segments)
            if isinstance(done, Reply):
                return self._stored(call, done)
        except Refusal as refusal:
            return service.envelope(refusal)
        except Exception:  # the boundary of the embedded services
            return self._bug(service, Failure())
        return Deferred.fromCoroutine(self._guarded(call, service, done))

    def _stored(self, call: Call, reply: Reply) -> Reply:
        """`reply`, unless what it acknowledges is not on the disk. Raises Refusal."""
        problem = self._cloud.core.state.problem
        if problem and call.method not in ("GET", "HEAD"):
            raise Refusal(503, f"the change cannot be stored: {problem}")
        return reply

    async def _guarded(
        self, call: Call, service: Service, work: Coroutine[Any, Any, Reply]
    ) -> Reply:
        try:
            return self._stored(call, await work)
        except Refusal as refusal:
            return service.envelope(refusal)
        except Exception:  # the boundary of the embedded services
            return self._bug(service, Failure())

    def _dispatch(
        self, call: Call, service: Service, segments: list[str]
    ) -> Reply | Coroutine[Any, Any, Reply]:
        service.authorize(call, segments)
        hit = find(compiled(cast("Any", type(service))), segments)
        if hit is None:
            raise Refusal(404, "The resource could not be found.")
        node, values = hit
        taken = node.methods.get(call.method)
        if taken is None:
            allowed = ", ".join(sorted(node.methods))
            raise Refusal(
                405, "The method is not allowed for this resource.", headers={"Allow": allowed}
            )
        self._cloud.calls[f"{service.where} {call.method} {taken.rule}"] += 1
        return taken.handler(service, call, *values)

    def _bug(self, service: Service, failure: Failure) -> Reply:
        log.failure("The embedded {where} service failed", failure=failure, where=service.where)
        return service.envelope(Refusal(500, "Unexpected API Error."))

    def _play(self, rule: Fault, request: Request, service: Service, segments: list[str]) -> None:
        """Apply a fault rule to the call."""
        gone: list[object] = []
        request.notifyFinish().addErrback(gone.append)
        late = rule.effect is Effect.LATE
        sent = request.content.read() if late and request.content is not None else b""

        def now() -> None:
            effect = rule.effect
            if late:
                request.content = io.BytesIO(sent)  # that before is closed with the connection
                if gone:
                    self._perform(request, service, segments)
            if gone:
                return
            if effect in (Effect.TIMEOUT_AFTER, Effect.RESET_AFTER, Effect.GARBAGE):
                self._perform(request, service, segments)
            if effect in (Effect.DELAY, Effect.LATE):
                self._answer(request, service, segments)
            elif effect is Effect.ANSWER:
                body = rule.body.encode("utf-8")
                send(request, Reply(status=rule.status, body=body, headers=rule.headers))
            elif effect is Effect.GARBAGE:
                send(request, Reply(body=rule.body.encode("utf-8") or GARBAGE))
            elif effect is Effect.REFUSED:
                refuse = getattr(request.channel, "refuse", request.channel.forceAbortClient)
                refuse()
            elif effect in (Effect.RESET_BEFORE, Effect.RESET_AFTER):
                request.channel.forceAbortClient()

        if rule.delay_s > 0:
            self._cloud.core.clock.callLater(rule.delay_s, now)
        else:
            now()
