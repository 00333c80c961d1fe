"""Processes of svcd in a world of their own: tenants, weather, deaths, and the story of it all.

The world hears every call of the processes to the outside before it has an effect: there it delays,
and there it kills, stops or freezes who calls. Nothing in it is random but by its seed.
"""

from __future__ import annotations

import json as json_codec
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from svcd.embedded.faults import Effect, FaultRule
from svcd.testing import CLOUD_URL, FakeService
from tests.simulation.database import Server
from tests.simulation.leftovers import Told
from tests.simulation.lines import Drift, Line, Stage
from tests.simulation.process import Process
from tests.simulation.watch import Watch

Row = tuple[Any, ...]

USERS: Mapping[str, str] = {"alpha": "alice", "beta": "bob"}


@frozen
class Heard:
    """One call of the daemon to the outside."""

    where: str
    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.where} {self.method} {self.path}".strip()


@define
class Asked:
    """A request of a tenant. status 0: no answer yet, -1: the connection broke.

    key: its Idempotency-Key, "" without one.
    """

    tenant: str
    method: str
    path: str
    name: str
    status: int = 0
    json: Any = None
    key: str = ""

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300


@frozen
class Freeze:
    """How a process is frozen. before: the call at which it happens is sent when it is thawed."""

    before: bool
    seconds: float
    timers_first: bool


@define
class Plan:
    """What befalls the calls that are still to come: number of the call (from 1) -> what.

    crashes: whether its effect comes about. stops: who makes it is stopped, and ends well.
    calls: what is called beside.
    """

    crashes: dict[int, bool] = field(factory=dict)
    stops: set[int] = field(factory=set)
    freezes: dict[int, Freeze] = field(factory=dict)
    rules: dict[int, Callable[[Heard], FaultRule]] = field(factory=dict)
    calls: dict[int, Callable[[], None]] = field(factory=dict)

    def clear(self) -> None:
        """Nothing any more."""
        for each in (self.crashes, self.stops, self.freezes, self.rules, self.calls):
            each.clear()


DRIFT_S = 1.3
DRIFT_RATE = 2e-5
"""Of a machine with a time service: with both, clocks differ by less than 3 s in a history."""
_CREATES = re.compile(r"/(clusters|data-sources|job-binaries|jobs|jobs/[^/]+/execute)")
_TWINS = 0.2
"""So many of the requests with a key are sent twice anyway, at once or later."""
_STOP_S = 60.0
"""The longest stop: requests 10 s, then work of three rooms 15 s each, then transactions 5 s."""


class World:
    """Processes, one after the other at each place, on the same rows, cloud, engine and machines.

    daemons: how many share the database by leases; 1: it is alone, and needs none.
    late: files and folders of HDFS whose calls may take effect after their daemon's death.
    weather: asked for each call that no plan takes; a rule that it returns is played.
    retries: how often a POST that creates is sent again, with its Idempotency-Key, after a 5xx or a
    broken connection; 0: it has no key. first: key -> the first answer of success.
    """

    def __init__(self, seed: int, settings: Mapping[str, str], daemons: int = 1) -> None:
        self.rng = rng = random.Random(f"world {seed}")
        self.svcd = FakeService(settings, seed)
        self.svcd.kill()
        self.clock = self.svcd.clock
        self.trusted = settings.get("auth.mode") == "keystone"
        self.epoch = self.clock.seconds()
        self.story: list[str] = []
        self.names: dict[str, str] = {}
        self.asked: list[Asked] = []
        self.retries = 0
        self.first: dict[str, bytes] = {}
        self.calls: list[Heard] = []
        self.plan = Plan()
        self.late: set[str] = set()
        self.weather: Callable[[Heard], FaultRule | None] = lambda _: None
        self.downtime_s: Callable[[], float] = lambda: 1.0
        self.crashes = self.stops = self.freezes = 0
        self._outsider = False
        self._trapped: dict[str, Freeze] = {}
        self.stage: Stage[Process] = Stage()
        self.server = Server(self.clock, self.svcd._database, rng)
        self.strangers: dict[str, float] = {}  # by cluster whose engine is another's: since when
        self.watch = Watch(self)
        self.told = Told()
        self.tenants = tuple(USERS)
        self.begun = self.ending = False
        shared = daemons > 1
        self.processes = [
            Process(self, f"d{n}", shared, self._drift(n) if shared else Drift())
            for n in range(1, daemons + 1)
        ]
        for each in self.processes:
            each.start()
        if shared:  # until one has the lease
            self.clock.advance(4 * self.svcd._settings.database.renew_s + 5.0)
        self.at_start = self.activity()
        self.begun = True
        self.svcd.faults.listen(self._hear)

    def _drift(self, number: int) -> Drift:
        rate = self.rng.uniform(-DRIFT_RATE, DRIFT_RATE)
        return Drift(self.rng.uniform(-DRIFT_S, DRIFT_S), rate)

    # ---- time and story ----

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.clock.seconds() - self.epoch

    def tell(self, text: str) -> None:
        """A line of the story."""
        self.story.append(f"{self.now:9.2f}  {text}")

    def name(self, id_: str, name: str = "") -> str:
        """A short name for an id; given once, shown ever after."""
        return self.names.setdefault(id_, name or id_)

    def named(self, text: str) -> str:
        """`text` with the ids that have names replaced."""
        for id_, name in self.names.items():
            text = text.replace(id_, name)
        return text

    def send_away(self, cluster_id: str) -> None:
        """The cluster's own engine answers again."""
        if self.strangers.pop(cluster_id, None) is not None:
            self.tell(f"the engine of {self.name(cluster_id)} is its own again")
            self.svcd.engines.engine(cluster_id).cluster = ""

    def advance(self, seconds: float) -> None:
        self.svcd.advance(seconds)
        self.watch.look()

    # ---- the daemon's calls ----

    def _hear(self, where: str, method: str, path: str) -> FaultRule | None:
        if self._outsider:
            return FaultRule(where=where, effect=Effect.DELAY)  # no rule befalls it
        heard = Heard(where, method, path)
        by = self.stage.speaker
        if by is None:
            raise RuntimeError(f"nobody calls {heard}")
        self.watch.look()
        self.watch.acts(by, heard)
        self.calls.append(heard)
        number = len(self.calls)
        plan = self.plan
        done = plan.crashes.pop(number, None)
        if done is not None:
            self.crash(by, heard, done)
            return None if done else FaultRule(where=where, effect=Effect.TIMEOUT_BEFORE)
        call = plan.calls.pop(number, None)
        if call is not None:
            self.clock.callLater(0.0, call)
        if number in plan.stops:
            plan.stops.discard(number)
            self.clock.callLater(0.0, self.stop, by, heard)
        freeze = plan.freezes.pop(number, None)
        if freeze is not None:
            self._trapped[by.name] = freeze
            if freeze.before:
                by.line.spring()
            else:
                self.trapped(by, heard)
        made = plan.rules.pop(number, None)
        if made is not None:
            rule = made(heard)
            self.tell(f"  fault {rule.effect.value} at {self.named(str(heard))}")
            return rule
        return self.weather(heard)

    # ---- what befalls processes ----

    def crash(self, by: Process, heard: Heard | None = None, done: bool = False) -> None:
        """The process dies; another one begins in its place after a while."""
        if by.state == "down":
            return
        self.crashes += 1
        where = "" if heard is None else f" {'after' if done else 'before'} "
        amid = " amid its stop" if by.state == "stopping" else ""
        shown = "" if heard is None else self.named(str(heard))
        self.tell(f"{by.label}CRASH{amid}{where}{shown}")
        by.kill()
        self._back_later(by)

    def stop(self, by: Process, heard: Heard | None = None) -> None:
        """The process is told to end; another one begins in its place after a while."""
        if by.state != "up":
            return
        self.stops += 1
        self.tell(f"{by.label}STOP{'' if heard is None else ' at ' + self.named(str(heard))}")
        by.stop(lambda: self._back_later(by))

    def stopped(self, by: Process) -> None:
        """Looks at what is ending by itself.

        A read of the cloud that several have asked for together may outlive them, but not at rest.
        """
        self.tell(f"{by.label}has ended")
        if by.stopped_in_s > _STOP_S + by.frozen_s:
            self.watch.breach(f"{by.label}took {by.stopped_in_s:.0f} s to stop")
        left = by.activity()
        if left["clusters"] or left["executions"]:
            self.watch.breach(f"{by.label}ended amid its work: {left}")
        if self.ending and (left["timers"] or left["calls"]):
            self.watch.breach(f"{by.label}ended with {left}")

    def freeze(self, by: Process, freeze: Freeze, heard: Heard | None = None) -> None:
        """The process does nothing for a while."""
        if by.state not in ("up", "stopping", "starting"):
            return
        self.freezes += 1
        where = "" if heard is None else f" after {self.named(str(heard))}"
        self.tell(f"{by.label}FROZEN for {freeze.seconds:.1f} s{where}")
        by.freeze()
        self.clock.callLater(freeze.seconds, self._thaw, by, by.line, freeze)

    def trapped(self, by: Process, heard: Heard | None = None) -> None:
        """A process is at the call where its plan freezes it."""
        freeze = self._trapped.pop(by.name, None)
        if freeze is not None:
            self.freeze(by, freeze, heard)

    def _thaw(self, by: Process, line: Line, freeze: Freeze) -> None:
        if by.line is line and by.state == "frozen":
            self.tell(f"{by.label}thawed")
            by.frozen_s += freeze.seconds
            by.thaw(freeze.timers_first)

    def _back_later(self, by: Process) -> None:
        self.clock.callLater(self.downtime_s(), by.start_if_down)

    def bug(self, failure: Failure) -> None:
        """The simulation itself has failed."""
        self.watch.breach(f"the simulation failed: {failure.getTraceback()}")

    def activity(self) -> Mapping[str, int]:
        """What all processes together have under way: see `FakeService.activity`."""
        total: Counter[str] = Counter(clusters=0, executions=0, calls=0, timers=0)
        for each in self.processes:
            if each.state != "down":
                total.update(each.activity())
        return dict(total)

    # ---- tenants ----

    def ask(
        self,
        tenant: str,
        method: str,
        path: str,
        body: object = None,
        data: bytes | None = None,
        name: str = "",
    ) -> Asked:
        """Send a request as a user of the tenant; the answer is filled in when it comes.

        name: of what the request makes, for the story.
        """
        asked = Asked(tenant, method, path, name)
        self.asked.append(asked)
        headers = {"accept": "application/json"}
        if body is not None:
            data = json_codec.dumps(body).encode()
            headers["content-type"] = "application/json"
        if self.retries and method == "POST" and _CREATES.fullmatch(path):
            asked.key = headers["idempotency-key"] = f"key-{len(self.asked)}"
            if self.rng.random() < _TWINS:
                twin = evolve(asked)
                self.asked.append(twin)
                wait_s = self.rng.choice([0.0, 0.0, 0.1, 2.0, 30.0])
                self.clock.callLater(wait_s, self._send, twin, headers, data, self.retries)
        self._send(asked, headers, data, self.retries if asked.key else 0)
        return asked

    def _send(
        self, asked: Asked, headers: Mapping[str, str], data: bytes | None, retries: int
    ) -> None:
        if self.trusted:
            headers = {**headers, "x-auth-token": self.token(asked.tenant)}
        to = self._door()
        url = f"{to.url}/v1.1/{asked.tenant}{asked.path}"
        shown = self.named(f"{asked.tenant} {asked.method} {asked.path}")
        shown += f" {asked.name}" if asked.name else ""
        answer: Deferred[Any] = to.treq.request(asked.method, url, headers=headers, data=data)
        answer.addCallback(lambda got: got.content().addCallback(lambda all_: (got.code, all_)))

        def arrived(result: tuple[int, bytes] | Failure) -> None:
            status, content = (-1, b"") if isinstance(result, Failure) else result
            parsed = json_codec.loads(content) if content else None
            accepted = 200 <= status < 300
            error = "" if accepted else " " + (parsed or {}).get("error_name", "connection broke")
            if retries and (status < 0 or status >= 500):
                self.tell(f"{shown} -> {status}{error}, will be sent again")
                wait_s = self.rng.uniform(0.0, 20.0)
                self.clock.callLater(wait_s, self._send, asked, headers, data, retries - 1)
                return
            asked.status, asked.json = status, parsed
            if accepted and asked.name:
                self._learn(asked.json, asked.name)
            self.tell(f"{shown} -> {status}{error}")
            if asked.key:
                self._compare(asked, content)

        answer.addBoth(arrived)

    def _compare(self, asked: Asked, content: bytes) -> None:
        """All answers of success to one key are the same, and none is of another request."""
        if asked.accepted:
            if self.first.setdefault(asked.key, content) != content:
                self.watch.breach(f"{asked.key} has a second answer: {content!r}")
        elif asked.status == 409 or (asked.key in self.first and asked.status == 400):
            self.watch.breach(f"{asked.key} was refused: {content!r}")

    def _door(self) -> Process:
        """A process that answers, as a rule."""
        if len(self.processes) == 1:
            return self.processes[0]
        awake = [each for each in self.processes if each.awake]
        return self.rng.choice(awake if awake and self.rng.random() < 0.9 else self.processes)

    def _learn(self, json: Any, name: str) -> None:
        """The id of what was made gets the name that was given."""
        for key in ("cluster", "job_execution", "job", "job_binary_internal", "data_source"):
            if isinstance(json, dict) and key in json:
                self.name(json[key]["id"], name)

    def answer(self, asked: Asked, limit_s: float = 120.0) -> Asked:
        """`asked` once it is answered; time moves only as far as needed."""
        end = self.now + limit_s
        while asked.status == 0 and self.now < end:
            step = self.clock.next_call_in()
            if step is None:
                break
            self.clock.advance(step)
        return asked

    def token(self, tenant: str) -> str:
        """A fresh one of the tenant's user."""
        with self.outsider():
            return self.svcd.token(USERS[tenant], project=tenant)

    def outsiders_token(self, tenant: str) -> str:
        """Of the user whom everybody is without tokens."""
        with self.outsider():
            return self.svcd.token(project=tenant)

    def ask_cloud(self, tenant: str, method: str, path: str, body: object = None) -> Any:
        """Somebody else of the tenant uses the cloud; the answer's JSON."""
        with self.outsider():
            user = (USERS[tenant],) if self.trusted else ()
            token = self.svcd.token(*user, project=tenant)
            headers = {"X-Auth-Token": token}
            return self.svcd.call(method, CLOUD_URL + path, json=body, headers=headers).json

    @contextmanager
    def outsider(self) -> Iterator[None]:
        """Calls inside are not the daemon's."""
        self._outsider = True
        try:
            yield
        finally:
            self._outsider = False

    # ---- rows ----

    def rows(self, sql: str) -> Sequence[Row]:
        """What is stored, without the daemon's knowledge."""
        connection = self.svcd._database._connection
        return connection.execute(sql).fetchall()

    def close(self) -> None:
        for each in self.processes:
            each.kill()
        self.told.close()
        self.svcd.close()
