"""The engine's contract on the Oozie, HDFS and YARN of a real cluster; test_main_job has one."""

from __future__ import annotations

import uuid

from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool

from svcd.clients.http import HttpClient
from svcd.clients.oozie import OozieClient, engine_error
from svcd.ports.machines import Location
from svcd.runtime.tasks import sleep
from tests.contract.engine import EngineContract
from tests.support.hdfs import ReadingClient
from tests.support.processes import reactor


class RealEngine(EngineContract, TestCase):
    """The suite at a cluster of vanilla. address: of its master."""

    def __init__(self, address: str) -> None:
        super().__init__("check_life")
        self.pool = HTTPConnectionPool(reactor)
        http = HttpClient(Agent(reactor, pool=self.pool), reactor, engine_error)
        self.engine = OozieClient(http)
        self.files = ReadingClient(http)
        self.base = Location(f"http://{address}:11000/oozie")
        self.webhdfs = Location(f"http://{address}:9870")
        self.user = "svcd"
        self.mark = uuid.uuid4().hex[:8]
        self.folder = f"/user/{self.user}/contract-{self.mark}"
        self.properties = {
            "nameNode": f"hdfs://{address}:8020",
            "jobTracker": f"{address}:8032",
            "user.name": self.user,
            "oozie.use.system.libpath": "true",
        }

    async def pause(self, seconds: float) -> None:
        await sleep(reactor, seconds)

    def external(self, name: str) -> str:
        return f"{name}-{self.mark}"

    async def check(self) -> None:
        """All of the suite."""
        try:
            await self.check_status()
            await self.check_life()
            await self.check_kill()
            await self.check_unknown()
            await self.check_refusals()
            await self.check_files()
        finally:
            await self.files.delete(self.webhdfs, self.folder, self.user)
            await self.pool.closeCachedConnections()
