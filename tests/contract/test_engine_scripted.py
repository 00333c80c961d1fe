from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource

from svcd.clients.http import HttpClient
from svcd.clients.oozie import OozieClient, engine_error
from svcd.embedded.memory_agent import MemoryAgent
from svcd.embedded.oozie import ScriptedEngines
from svcd.ports.machines import Location
from svcd.runtime.clock import VirtualClock
from svcd.runtime.tasks import sleep
from tests.contract.engine import EngineContract
from tests.support.hdfs import ReadingClient


class ScriptedEngineContract(EngineContract, SynchronousTestCase):
    """The suite on the scripted engine, in memory and on a virtual clock."""

    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.engines = ScriptedEngines(self.clock)
        root = Resource()
        root.putChild(b"engine", self.engines.resource())
        agent = MemoryAgent(self.clock)
        agent.serve("http://cloud.memory", root)
        http = HttpClient(agent, self.clock, engine_error)
        self.engine = OozieClient(http)
        self.files = ReadingClient(http)
        self.base = Location("http://cloud.memory/engine/c1/oozie")
        self.webhdfs = Location("http://cloud.memory/engine/c1")
        self.user = "svcd"
        self.folder = "/user/svcd/contract"
        self.properties = {
            "nameNode": "hdfs://c1:8020",
            "jobTracker": "c1:8032",
            "user.name": "svcd",
        }

    def external(self, name: str) -> str:
        return f"contract-{name}"

    async def pause(self, seconds: float) -> None:
        await sleep(self.clock, seconds)

    def run_on_clock(self, work: Coroutine[Any, Any, None]) -> None:
        running = Deferred.fromCoroutine(work)
        for _ in range(1000):
            if running.called:
                break
            self.clock.advance(1.0)
        self.successResultOf(running)

    def test_status(self) -> None:
        self.run_on_clock(self.check_status())

    def test_life(self) -> None:
        self.run_on_clock(self.check_life())

    def test_kill(self) -> None:
        self.run_on_clock(self.check_kill())

    def test_unknown(self) -> None:
        self.run_on_clock(self.check_unknown())

    def test_refusals(self) -> None:
        self.run_on_clock(self.check_refusals())

    def test_files(self) -> None:
        self.run_on_clock(self.check_files())
