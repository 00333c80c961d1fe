# mypy: allow-untyped-calls
"""FakeService: the whole daemon on a virtual clock, with no socket, thread, file or JVM.

    from svcd.testing import Effect, FakeService, FaultRule

svcd's ordinary clients talk to the embedded cloud, the scripted engine and machines with a scripted
shell. So serialisation, status codes and errors are the real ones. Time moves only by `advance`,
and as far as one answer needs. Services are independent of each other.
"""

from __future__ import annotations

import functools
import json as json_codec
import random
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

import treq.client
from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.client import readBody
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer, IResponse
from zope.interface import implementer

from svcd.clients.bodies import Bytes
from svcd.clients.cloud import OpenStack
from svcd.clients.http import HttpClient
from svcd.clients.oozie import OozieClient, engine_error
from svcd.clients.probe import HttpProbe
from svcd.clients.webhdfs import WebHdfsClient
from svcd.daemon import Daemon, Outside
from svcd.embedded.cloud.cloud import EmbeddedCloud
from svcd.embedded.cloud.core import (
    DEMO_KEYPAIR,
    LOGIN,
    PLAIN_IMAGE_ID,
)
from svcd.embedded.cloud.guests import Guests
from svcd.embedded.faults import Effect, FaultRule, Faults
from svcd.embedded.lifeline import Lifeline
from svcd.embedded.memory_agent import MemoryAgent
from svcd.embedded.scripted import ScriptedProbe, ScriptedRemote
from svcd.errors import ServiceUnavailable
from svcd.model.ids import timestamp
from svcd.model.wire import IMAGE_USERNAME
from svcd.provisioning.distributions.registry import Distributions
from svcd.provisioning.distributions.spi import IDistribution
from svcd.runtime.audit import Audit
from svcd.runtime.clock import VirtualClock
from svcd.runtime.metrics import Metrics
from svcd.settings import Settings, load
from svcd.store.database import Sql
from svcd.store.migrations import migrate
from svcd.store.sealer import MemorySealer
from svcd.store.sqlite import SqliteDatabase
from svcd.store.store import SqlStore

if TYPE_CHECKING:
    import httpx
    from requests import Session

    from svcd.resources.api import ApiServices
    from svcd.store.lease.keeper import LeaseKeeper

__all__ = [
    "Answer",
    "AnswerHeaders",
    "Effect",
    "FakeService",
    "FakeServiceMixin",
    "FaultRule",
    "Requested",
]

T = TypeVar("T")

API_URL = "http://svcd.test:8386"
CLOUD_URL = "http://cloud.test:8387"
_ANSWER_S = 300.0
"""Virtual seconds that one result may take."""
_REMEMBERED = 10_000
"""Newest requests and audit records that a FakeService keeps."""
_DEFAULTS = {"plugins.enabled": "fake", "log.access": "false"}


@frozen(kw_only=True)
class Requested:
    """A request that reached the API. path: includes the query."""

    method: str
    path: str


class AnswerHeaders(Mapping[str, str]):
    """Header fields of an answer. Names match in any case; a repeated field has its last value."""

    def __init__(self, fields: Sequence[tuple[str, str]]) -> None:
        self._fields = {name.lower(): (name, value) for name, value in fields}

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower()][1]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._fields.values())

    def __len__(self) -> int:
        return len(self._fields)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._fields

    def __repr__(self) -> str:
        return f"AnswerHeaders({dict(self)!r})"


@frozen(kw_only=True)
class Answer:
    """An answer of the API."""

    status: int
    headers: AnswerHeaders
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON, None when there is no body."""
        return json_codec.loads(self.body) if self.body else None


class FakeService:
    """One svcd with its cloud, engine and machines, all in memory.

    url, tenant, image_id, flavor_id, keypair: ready for use; the image is registered.
    cloud_url: the URL of the cloud, which is not the daemon's.
    treq: a treq client for asynchronous code; its URLs are absolute, below `url`.
    faults: rules (FaultRule) that make cloud, engine, HDFS, SSH or store misbehave.
    settings: `section.key` -> text, as for `--set`, also for the constants that stand beside the
    settings in `svcd.settings`. distributions: further distributions that
    `plugins.enabled` can name, as if they were installed as plug-ins.
    """

    url = API_URL
    cloud_url = CLOUD_URL
    image_id = PLAIN_IMAGE_ID
    flavor_id = "2"
    keypair = DEMO_KEYPAIR
    begins_at: float | None = None
    """Seconds since the epoch at the start; None: always the same moment."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        seed: int = 0,
        distributions: Sequence[IDistribution] = (),
    ) -> None:
        self._flags = {**_DEFAULTS, **(settings or {})}
        self._distributions = tuple(distributions)
        self._settings = loaded = _loaded(self._flags)
        self.tenant = loaded.embedded.tenant
        self.clock = VirtualClock() if self.begins_at is None else VirtualClock(self.begins_at)
        self.faults = Faults()
        self._requests: deque[Requested] = deque(maxlen=_REMEMBERED)
        self._audited: deque[str] = deque(maxlen=_REMEMBERED)
        self._seed = seed
        self._rng = random.Random(seed)
        self._ids = 0
        self._starts = 0
        self._closed = False
        self._memory = memory = MemoryAgent(self.clock)
        self.cloud = EmbeddedCloud(
            self.clock,
            loaded.embedded,
            Guests(),
            self.faults,
            None,
            self.cloud_url,
            self._new_id,
            self._rng,
            lambda: "",
        )
        self.engines = self.cloud.engines
        memory.serve(self.cloud_url, self.cloud.resource)
        self.remote = ScriptedRemote(self.clock, self.faults)
        self._database = SqliteDatabase(None)
        _empty_database().copy_to(self._database)
        self._sealer = MemorySealer()
        images = self.cloud.core.state.images
        if (image := images.get(self.image_id)) is not None:
            images.put(evolve(image, properties={**image.properties, IMAGE_USERNAME: LOGIN}))
        self.cloud.start()
        self._agent = _Recording(memory, self.url, self._requests)
        # treq's own producer would read the body with the global reactor
        self.treq = treq.client.HTTPClient(self._agent, data_to_body_producer=_body)
        self._ahead_s = 0.0
        self._line = Lifeline(self.clock)
        self._daemon: Daemon | None = None
        self.restart()

    # ---- use ------------------------------------------------------------------------------------

    @property
    def requests(self) -> Sequence[Requested]:
        """The requests that reached the API, newest last; only the newest 10,000."""
        return list(self._requests)

    @property
    def audited(self) -> Sequence[Mapping[str, Any]]:
        """The records of the audit log, newest last; only the newest 10,000."""
        return [json_codec.loads(line) for line in self._audited]

    def token(
        self, username: str = "", password: str = "", project: str = "", domain: str = "default"
    ) -> str:
        """A token of the cloud's identity service, for `auth.mode=keystone`.

        Without arguments the token is for the user of `tenant`. Users, each with the name as
        password: demo in project demo, alice (member), carol (reader) and dave (admin) in alpha,
        bob (member) in beta.
        """
        name = username or self._settings.embedded.username
        known = self.cloud.core.users_by_name.get(name)
        user = {
            "name": name,
            "password": password or (known.password if known else name),
            "domain": {"id": domain},
        }
        scope = {"project": {"name": project or self.tenant, "domain": {"id": domain}}}
        identity = {"methods": ["password"], "password": {"user": user}}
        answer = self.call(
            "POST",
            f"{self.cloud_url}/identity/v3/auth/tokens",
            json={"auth": {"identity": identity, "scope": scope}},
        )
        if answer.status != 201:
            raise RuntimeError(f"no token for {user['name']}: {answer.body.decode()}")
        return answer.headers["X-Subject-Token"]

    def call(
        self,
        method: str,
        path: str,
        json: object = None,
        data: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request to the API and return its answer. path: for example /v1.1/demo/jobs.

        It treats `?wait=S` as 0. Use `treq` for requests that wait.
        """
        if self._closed:
            raise RuntimeError("this FakeService is closed")
        sent = {"accept": "application/json"}
        data = data.encode() if isinstance(data, str) else data
        if json is not None:
            data = json_codec.dumps(json).encode()
            sent["content-type"] = "application/json"
        sent.update((k.lower(), v) for k, v in (headers or {}).items())
        url = path if path.startswith("http") else self.url + path
        waits = self._daemon.services.waits if self._daemon is not None else None
        never = waits is not None and waits.never
        if waits is not None:
            waits.never = True  # nothing could change meanwhile
        try:
            return self.result_of(Deferred.fromCoroutine(self._exchange(method, url, data, sent)))
        finally:
            if waits is not None:
                waits.never = never

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Each timer that falls due runs at its own moment."""
        self.clock.advance(seconds)

    def until(self, done: Callable[[], T], seconds: float = 3600.0) -> T:
        """The first result of `done` that is true. Time passes from one timer to the next.

        Raises RuntimeError when there is none within so many virtual seconds.
        """
        end = self.clock.seconds() + seconds
        while not (result := done()):
            step = self.clock.next_call_in()
            left = end - self.clock.seconds()
            if step is None or step > left:
                self.clock.advance(left)
                if result := done():
                    break
                raise RuntimeError(f"not done within {seconds:g} virtual seconds")
            self.clock.advance(step)
        return result

    def result_of(self, waiting: Deferred[T]) -> T:
        """The result of `waiting`. Time moves only as far as the result needs, at most 300 s."""
        found: list[T | Failure] = []
        waiting.addBoth(found.append)
        end = self.clock.seconds() + _ANSWER_S
        while not found:
            step = self.clock.next_call_in()
            if step is None or self.clock.seconds() + step > end:
                raise RuntimeError(f"no result within {_ANSWER_S:.0f} virtual seconds")
            self.clock.advance(step)
        result = found[0]
        if isinstance(result, Failure):
            result.raiseException()
        return result

    def session(self) -> Session:
        """A session of `requests` whose requests to `url` and `cloud_url` come here."""
        from svcd.testing_clients import session  # here: most tests need neither library

        return session(self.call, (self.url, self.cloud_url))

    def transport(self) -> httpx.BaseTransport:
        """A transport for `httpx.Client(transport=…, base_url=fake.url)`."""
        from svcd.testing_clients import transport

        return transport(self.call)

    def set_clock(self, seconds: float) -> None:
        """Set the clock of the daemon's machine forward by `seconds`, or back when below zero.

        No time passes. Cloud, engine and machines keep their clocks. A restart keeps the new clock.
        """
        self._ahead_s += seconds
        self._line.set_clock(self._ahead_s)

    def kill(self) -> None:
        """End the daemon as `kill -9` does; cloud, engine, machines and rows stay as they are.

        Its peers carry out the requests that it has sent, and it never gets their answers. The API
        refuses connections from now on, and unanswered requests fail with ConnectionLost.
        """
        self._line.cut()
        self._memory.unserve(self.url)

    def restart(self, settings: Mapping[str, str] | None = None) -> None:
        """Kill the present daemon, if there is one, and start a new one on the same rows.

        settings: changes from now on; the settings of the embedded cloud cannot change.
        Raises ServiceUnavailable when a fault rule makes the store fail: try again.
        """
        if settings:
            self._flags |= settings
            self._settings = _loaded(self._flags)
        self.kill()
        self._line = line = Lifeline(self.clock, self._ahead_s)
        self._starts += 1
        faulty = _Faulty(self._database, self.faults, line)
        limits = self._settings.limits
        store = SqlStore(faulty, self._sealer, limits=limits, seconds=line.seconds)

        async def begin() -> None:
            await store.open(timestamp(line.seconds()))
            self._daemon = daemon = self._build(store, line)
            await daemon.start()
            self._memory.serve(self.url, daemon.resource)

        begun = Deferred.fromCoroutine(begin())
        if line.alive:  # or a listener has killed the daemon before its start
            try:
                _result(begun)
            except BaseException:
                line.cut()
                raise

    @property
    def services(self) -> ApiServices:
        """What the API of the present daemon is built of. Raises RuntimeError without a daemon."""
        if self._daemon is None:
            raise RuntimeError("no daemon has started")
        return self._daemon.services

    def activity(self) -> Mapping[str, int]:
        """How much work the daemon has at this moment.

        clusters, executions: with a running task; calls: unanswered, to its peers; timers: set.
        """
        working = self._daemon.activity() if self._daemon is not None else {}
        line = self._line
        return {**working, "calls": line.in_flight, "timers": len(line.timers())}

    def close(self) -> None:
        """Stop the daemon and its peers. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self.result_of(Deferred.fromCoroutine(self._stop()))
        for origin in (self.url, self.cloud_url):
            self._memory.unserve(origin)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ---- inside ---------------------------------------------------------------------------------

    def _build(self, store: SqlStore, line: Lifeline, keeper: LeaseKeeper | None = None) -> Daemon:
        settings = self._settings
        agent = line.agent(self._memory)
        cloud_settings = self.cloud.client_settings(settings)
        metrics = Metrics()
        engine_http = HttpClient(
            agent,
            line,
            engine_error,
            max_body_bytes=settings.limits.answer_bytes,
            setting="limits.answer_bytes",
        )
        outside = Outside(
            clock=line,
            store=store,
            cloud=OpenStack(agent, line, cloud_settings, metrics.work.cloud_called),
            remote=line.remote(self.remote),
            probe=line.probe(
                ScriptedProbe(
                    self.clock, self.faults, (f"{self.cloud_url}/engine", HttpProbe(agent, line))
                )
            ),
            engine=OozieClient(engine_http),
            files=WebHdfsClient(engine_http),
            sealer=self._sealer,
            installation=self._sealer.installation,
            new_id=self._new_id,
            rng=random.Random(f"{self._seed} {self._starts}"),
            audit=Audit(line, self._audited.append),
            keeper=keeper,
            metrics=metrics,
        )
        distributions = Distributions(
            settings.plugins.enabled,
            fake_engine_url=f"{self.cloud_url}/engine",
            found=self._distributions,
        )
        return Daemon(outside, settings, distributions, cloud_settings.auth_url)

    def _new_id(self) -> str:
        """A new id. Ids sort in the order of creation: many records have the same virtual time."""
        self._ids += 1
        return str(uuid.UUID(int=self._ids << 96 | self._rng.getrandbits(96), version=4))

    async def _exchange(
        self, method: str, url: str, data: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        response: IResponse = await self._agent.request(
            method.encode(),
            url.encode(),
            Headers({k: [v] for k, v in headers.items()}),
            Bytes.of(data),
        )
        reading = readBody(response)
        if response.headers.getRawHeaders(b"content-type") == [b"text/event-stream"]:
            reading.addErrback(lambda _: None)
            reading.cancel()
            raise ValueError("the answer has no end: request it by `treq`, not by `call`")
        body: bytes = await reading
        fields = [
            (name.decode("latin-1"), values[-1].decode("latin-1"))
            for name, values in response.headers.getAllRawHeaders()
        ]
        return Answer(status=response.code, headers=AnswerHeaders(fields), body=body)

    async def _stop(self) -> None:
        if self._daemon is not None and self._line.alive:
            await self._daemon.stop()
        await self.cloud.stop()
        await self.remote.close()
        await self._database.close()


class FakeServiceMixin:
    """Mix-in for trial test cases: `self.fake_service()` makes a service for one test."""

    def fake_service(self, settings: Mapping[str, str] | None = None, seed: int = 0) -> FakeService:
        """A new FakeService, which is closed after the test."""
        service = FakeService(settings, seed)
        cast("_Cleans", self).addCleanup(service.close)
        return service


class _Cleans(Protocol):
    def addCleanup(self, f: Callable[[], object]) -> object: ...


class _Faulty:
    """The database as one daemon uses it, subject to the fault rules for `store`."""

    def __init__(self, database: SqliteDatabase, faults: Faults, line: Lifeline) -> None:
        self._database = database
        self._faults = faults
        self._line = line
        self.where = database.where

    async def tx(self, work: Callable[[Sql], Awaitable[T]]) -> T:
        return await self._line.held(lambda: self._suffer("tx", lambda: self._database.tx(work)))

    async def read(self, work: Callable[[Sql], Awaitable[T]]) -> T:
        return await self._line.held(
            lambda: self._suffer("read", lambda: self._database.read(work))
        )

    async def script(self, text: str) -> None:
        await self._database.script(text)

    async def close(self) -> None:
        """Does nothing: the next daemon uses the same rows."""

    async def _suffer(self, kind: str, work: Callable[[], Awaitable[T]]) -> T:
        rule = self._faults.match("store", kind, "")
        if rule is None:
            return await work()
        if rule.effect in (Effect.TIMEOUT_AFTER, Effect.RESET_AFTER):
            await work()
        raise ServiceUnavailable("the database cannot serve now (a fault rule says so)")


@implementer(IAgent)
class _Recording:
    """An agent that records the requests to the API."""

    def __init__(self, agent: IAgent, url: str, requests: deque[Requested]) -> None:
        self._agent = agent
        self._url = url
        self._requests = requests

    def request(
        self,
        method: bytes,
        uri: bytes,
        headers: Headers | None = None,
        bodyProducer: IBodyProducer | None = None,
    ) -> Deferred[IResponse]:
        path = uri.decode("latin-1").removeprefix(self._url)
        if path.startswith("/"):
            self._requests.append(Requested(method=method.decode("latin-1"), path=path))
        return self._agent.request(method, uri, headers, bodyProducer)


def _body(data: bytes | str | IO[bytes]) -> Bytes:
    """A request body in memory."""
    if isinstance(data, str):
        data = data.encode()
    return Bytes(data if isinstance(data, bytes) else data.read())


def _loaded(given: Mapping[str, str]) -> Settings:
    flags = [f"{key}={value}" for key, value in given.items()]
    return load(None, {}, flags, constants=True).settings


@functools.cache
def _empty_database() -> SqliteDatabase:
    """The newest schema without rows. Each FakeService copies it instead of applying the scripts.

    The scripts are constants of the package, so the copy is the same as their result.
    """
    database = SqliteDatabase(None)
    _result(Deferred.fromCoroutine(migrate(database, timestamp(VirtualClock().seconds()))))
    return database


def _result(done: Deferred[Any]) -> None:
    """Raise the failure of `done`, which must have fired."""
    found: list[object] = []
    done.addBoth(found.append)
    if not found:
        raise RuntimeError("the start must not wait")
    if isinstance(found[0], Failure):
        found[0].raiseException()
