"""A `FakeService` in a world of its own: tenants, weather, crashes, and the story of what happened.

The world hears every call of the daemon to the outside before it has an effect: there it delays,
and there it kills the daemon. Nothing in it is random but by its seed.
"""

from __future__ import annotations

import json as json_codec
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from svcd.embedded.faults import Effect, FaultRule
from svcd.errors import ServiceUnavailable
from svcd.testing import CLOUD_URL, FakeService
from tests.simulation.watch import Watch

Row = tuple[Any, ...]

RESTART_AGAIN_S = 5.0
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
    """A request of a tenant. status 0: no answer yet, -1: the connection broke."""

    tenant: str
    method: str
    path: str
    name: str
    status: int = 0
    json: Any = None

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300


@define
class Plan:
    """What befalls the calls that are still to come: number of the call (from 1) -> what."""

    crashes: dict[int, bool] = field(factory=dict)  # number -> whether its effect comes about
    rules: dict[int, FaultRule] = field(factory=dict)


class World:
    """One daemon after the other on the same rows, cloud, engine and machines.

    weather: asked for each call that no plan takes; a rule that it returns is played.
    """

    def __init__(self, seed: int, settings: Mapping[str, str]) -> None:
        self.svcd = FakeService(settings, seed)
        self.trusted = settings.get("auth.mode") == "keystone"
        self.epoch = self.svcd.clock.seconds()
        self.at_start = dict(self.svcd.activity())
        self.story: list[str] = []
        self.names: dict[str, str] = {}
        self.asked: list[Asked] = []
        self.calls: list[Heard] = []
        self.plan = Plan()
        self.weather: Callable[[Heard], FaultRule | None] = lambda _: None
        self.downtime_s: Callable[[], float] = lambda: 1.0
        self.crashes = 0
        self._outsider = False
        self.watch = Watch(self)
        self.svcd.faults.listen(self._hear)

    # ---- time and story ----

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.svcd.clock.seconds() - self.epoch

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

    def advance(self, seconds: float) -> None:
        self.svcd.advance(seconds)
        self.watch.look()

    # ---- the daemon's calls ----

    def _hear(self, where: str, method: str, path: str) -> FaultRule | None:
        if self._outsider:
            return FaultRule(where=where, effect=Effect.DELAY)  # no rule befalls it
        heard = Heard(where, method, path)
        self.watch.look()
        self.calls.append(heard)
        number = len(self.calls)
        done = self.plan.crashes.pop(number, None)
        if done is not None:
            self.crash(heard, done)
            return None if done else FaultRule(where=where, effect=Effect.TIMEOUT_BEFORE)
        rule = self.plan.rules.pop(number, None)
        if rule is not None:
            self.tell(f"  fault {rule.effect.value} at {self.named(str(heard))}")
            return rule
        return self.weather(heard)

    def crash(self, heard: Heard | None = None, done: bool = False) -> None:
        """The daemon dies; another one begins after a while."""
        self.crashes += 1
        where = "" if heard is None else f" {'after' if done else 'before'} "
        self.tell(f"CRASH{where}{'' if heard is None else self.named(str(heard))}")
        self.svcd.kill()
        self.svcd.clock.callLater(self.downtime_s(), self._restart)

    def _restart(self) -> None:
        try:
            self.svcd.restart()
        except ServiceUnavailable:
            self.svcd.clock.callLater(RESTART_AGAIN_S, self._restart)
            return
        if self.svcd.activity()["timers"]:  # else it died again while it began
            self.tell("restarted")

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
        if self.trusted:
            headers["x-auth-token"] = self.token(tenant)
        if body is not None:
            data = json_codec.dumps(body).encode()
            headers["content-type"] = "application/json"
        url = f"{self.svcd.url}/v1.1/{tenant}{path}"
        shown = self.named(f"{tenant} {method} {path}") + (f" {name}" if name else "")
        answer: Deferred[Any] = self.svcd.treq.request(method, url, headers=headers, data=data)
        answer.addCallback(lambda got: got.content().addCallback(lambda all_: (got.code, all_)))

        def arrived(result: tuple[int, bytes] | Failure) -> None:
            if isinstance(result, Failure):
                asked.status = -1
                self.tell(f"{shown} -> connection broke")
                return
            asked.status, content = result
            asked.json = json_codec.loads(content) if content else None
            error = "" if asked.accepted else " " + (asked.json or {}).get("error_name", "")
            if asked.accepted and name:
                self._learn(asked.json, name)
            self.tell(f"{shown} -> {asked.status}{error}")

        answer.addBoth(arrived)
        return asked

    def _learn(self, json: Any, name: str) -> None:
        """The id of what was made gets the name that was given."""
        for key in ("cluster", "job_execution", "job", "job_binary_internal", "data_source"):
            if isinstance(json, dict) and key in json:
                self.name(json[key]["id"], name)

    def answer(self, asked: Asked, limit_s: float = 120.0) -> Asked:
        """`asked` once it is answered; time moves only as far as needed."""
        end = self.now + limit_s
        while asked.status == 0 and self.now < end:
            step = self.svcd.clock.next_call_in()
            if step is None:
                break
            self.svcd.clock.advance(step)
        return asked

    def token(self, tenant: str) -> str:
        """A fresh one of the tenant's user."""
        with self.outsider():
            return self.svcd.token(USERS[tenant], project=tenant)

    def ask_cloud(self, tenant: str, method: str, path: str, body: object = None) -> Any:
        """Somebody else of the tenant uses the cloud; the answer's JSON."""
        with self.outsider():
            token = self.svcd.token(USERS[tenant], project=tenant) if self.trusted else ""
            token = token or self.svcd.token(project=tenant)
            headers = {"X-Auth-Token": token}
            return self.svcd.call(method, CLOUD_URL + path, json=body, headers=headers).json

    def outsider(self) -> _Outsider:
        """Calls inside are not the daemon's."""
        return _Outsider(self)

    # ---- rows ----

    def rows(self, sql: str) -> Sequence[Row]:
        """What is stored, without the daemon's knowledge."""
        connection = self.svcd._database._connection
        return connection.execute(sql).fetchall()

    def close(self) -> None:
        self.svcd.kill()
        self.svcd.close()


class _Outsider:
    def __init__(self, world: World) -> None:
        self._world = world

    def __enter__(self) -> None:
        self._world._outsider = True

    def __exit__(self, *_: object) -> None:
        self._world._outsider = False
