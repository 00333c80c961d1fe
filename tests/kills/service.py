"""The daemon that is killed, and a tenant whose requests meet its deaths.

The daemon is `twistd svcd` with `cloud.kind=openstack` and `auth.mode=keystone`; so clusters have
trusts, and machines, jobs and objects outlive every kill. Several users may ask at the same time:
one kill is under way at a time, and each of them can lose an answer by it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectError, ConnectionClosed
from twisted.web.client import ResponseFailed
from twisted.web.server import Site

from svcd.embedded.oozie import ScriptedEngines
from svcd.runtime.tasks import sleep
from tests.kills.clouds import Cloud
from tests.kills.things import Wrong
from tests.support.live import Tenant, seconds
from tests.support.processes import Daemon, Reply, own_network, reactor, run, until

T = TypeVar("T")
LOST = (ConnectError, ConnectionClosed, ResponseFailed)
"""A request whose daemon died under it, or is not there."""
READY_S = 180.0
"""Until it serves, whoever kills it again meanwhile."""
STORY_LINES = 400
ORPHANS_S = 300.0


class Enduring(Tenant):
    """What is safe to repeat is repeated until a daemon answers; the rest is lost with it."""

    def __init__(self, api: Mapping[str, Any], cloud: Cloud, token: str) -> None:
        super().__init__(api, cloud.told, headers={"X-Auth-Token": token})
        self._token = cloud.token

    async def token(self, username: str = "", password: str = "", project: str = "") -> str:
        return await self._token()

    async def ask(self, method: str, path: str, json: object = None) -> Reply:
        if method != "GET" and not path.startswith("/images/"):
            return await super().ask(method, path, json)
        plain = super().ask

        async def look() -> Reply | None:
            try:
                return await plain(method, path, json)
            except LOST:
                return None

        reply: Reply = await until(look, f"{method} {path} answered", READY_S, 0.1)
        return reply

    async def new_source(self, name: str, container: str, path: str) -> str:
        """Looked up by its name when the answer is lost."""

        async def made() -> str:
            try:
                return await super(Enduring, self).new_source(name, container, path)
            except LOST:
                rows = (await self.done("GET", "/data-sources"))["data_sources"]
                return next((str(row["id"]) for row in rows if row["name"] == name), "")

        return str(await until(made, f"data source {name}", READY_S, 0.1))


class Service:
    """The daemon, its cloud, the engines of plugin `fake`, and one tenant of all.

    engines: outlive the daemon, and tell what was submitted. kills: so far. ready_at: when the
    present daemon began to serve, in seconds of the reactor. story: the last lines.
    """

    def __init__(self, state: Path, cloud: Cloud, rng: random.Random) -> None:
        self.state = state
        self.cloud = cloud
        self.rng = rng
        self.kills = 0
        self.ready_at = 0.0
        self.story: deque[str] = deque(maxlen=STORY_LINES)
        self.engines = ScriptedEngines(reactor, run_s=2.0)
        host = own_network().replace(".0/24", ".250")
        site: Any = Site
        self._port: Any = reactor.listenTCP(0, site(self.engines.resource()), interface=host)
        self.daemon = Daemon(
            state / "daemon",
            auth__mode="keystone",
            cloud__kind="openstack",
            server__listen=f"tcp:{host}:8386",  # the same one after each death
            plugins__enabled="vanilla,fake",
            provisioning__endings_poll_s="2",
            log__access="false",
            fake__engine_url=f"http://{host}:{self._port.getHost().port}",
        )
        self.tenant: Tenant
        self._serving = False
        self._dying = False

    # ---- life and death -------------------------------------------------------------------------

    async def begin(self) -> None:
        """Start both."""
        self.daemon.settings.update(await self.cloud.begin())
        await self.start()
        token = await self.cloud.token()  # it outlives the run
        self.tenant = Enduring(self.daemon.endpoints, self.cloud, token)

    async def start(self) -> None:
        """Start the daemon, and wait until it serves."""
        await self.daemon.start()
        self.ready_at = seconds()
        self._serving = True

    async def end(self) -> None:
        """No process is left."""
        await self.daemon.remove()
        await self.cloud.remove()
        await self._port.stopListening()

    async def killed(self, delay_s: float) -> None:
        """kill -9 `delay_s` from now; at times again soon after or in the next one's start.

        Nothing but to wait when another one is about to do so.
        """
        if self._dying:
            await self.serving()
            return
        self._dying = True
        try:
            await self._kill(delay_s, "")
            while self.rng.random() < 0.4:
                self.daemon.spawn()
                await self._kill(self.rng.uniform(0.0, 2.0), " in its start")
            await self.start()
            while self.rng.random() < 0.5:
                await self._kill(self.rng.uniform(0.0, 1.5), " again")
                await self.start()
        finally:
            self._dying = False

    async def _kill(self, delay_s: float, how: str) -> None:
        await sleep(reactor, delay_s)
        self._serving = False
        await self.daemon.kill()
        self.kills += 1
        self.say(f"kill -9{how} after {delay_s:.3f} s")

    async def serving(self) -> None:
        """Until a daemon answers."""

        async def look() -> bool:
            return self._serving

        await until(look, "a daemon that serves", READY_S)

    async def killed_during(
        self, asked: Callable[[], Awaitable[T]], delay_s: float | None
    ) -> T | None:
        """Ask, and kill the daemon `delay_s` after the request; None: the answer was lost.

        delay_s None: it is not killed, unless by another one.
        """

        async def ask() -> T | None:
            try:
                return await asked()
            except LOST as error:
                self.say(f"no answer: {type(error).__name__}")
                return None

        answer = Deferred.fromCoroutine(ask())
        if delay_s is not None:
            await self.killed(delay_s)
        found = await answer
        await self.serving()
        return found

    def moment(self, rng: random.Random, most_s: float) -> float:
        """A random delay: half of them within the first half second."""
        return rng.choice((0.1, 0.5, min(3.0, most_s), most_s)) * rng.random()

    def say(self, text: str) -> None:
        """A line of the story."""
        self.story.append(f"{seconds():.2f} {text}")

    # ---- what is there --------------------------------------------------------------------------

    async def check(self) -> set[str]:
        """The cloud holds what the rows say of all clusters, and nothing more; they rest.

        The loose trusts.
        """
        shown = (await self.tenant.done("GET", "/clusters"))["clusters"]
        marks = (await self.tenant.done("GET", "/marks"))["marks"]
        ids = [c["id"] for c in shown]
        return await self.cloud.check(shown, ids, marks["trusts"], True)

    async def check_cluster(self, cluster_id: str) -> None:
        """The same of one cluster, or of one that is gone, whatever the others do."""
        reply = await self.tenant.ask("GET", f"/clusters/{cluster_id}")
        shown = [reply.json["cluster"]] if reply.status == 200 else []
        await self.cloud.check(shown, [cluster_id], (), False)

    async def orphans(self) -> None:
        """`svcd orphans --delete`, whatever the age of what it finds. Raises Wrong."""
        environment = {
            "OS_AUTH_URL": self.cloud.told["identity"],
            "OS_TOKEN": await self.cloud.token(),
        }
        command = ["svcd", "orphans", "--delete", "--yes", "--younger", "0"]
        command += ["--api", self.tenant.api, "--tenant", self.tenant.tenant]
        ended = await run(*command, environment=environment, limit_s=ORPHANS_S)
        if ended.code != 0:
            raise Wrong(f"svcd orphans: {ended}")
