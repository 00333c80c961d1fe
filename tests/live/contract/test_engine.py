"""The engine's contract on a real Oozie, HDFS and YARN; whole jobs: tests/live/test_main_job.

Skipped unless SVCD_TEST_OOZIE_URL (…/oozie) and SVCD_TEST_WEBHDFS_URL are set. Further variables:
SVCD_TEST_NAME_NODE (hdfs://…), SVCD_TEST_RESOURCE_MANAGER (host:port), SVCD_TEST_HDFS_USER.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Coroutine
from typing import Any

from twisted.internet import reactor as _reactor  # noqa: TID251
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorCore, IReactorTime
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool

from svcd.clients.http import HttpClient
from svcd.clients.oozie import OozieClient, engine_error
from svcd.ports.machines import Location
from svcd.runtime.tasks import sleep
from tests.contract.engine import EngineContract
from tests.support.hdfs import ReadingClient

OOZIE = os.environ.get("SVCD_TEST_OOZIE_URL", "")
WEBHDFS = os.environ.get("SVCD_TEST_WEBHDFS_URL", "")
USER = os.environ.get("SVCD_TEST_HDFS_USER", "root")


class LiveEngineContract(EngineContract, TestCase):
    """The suite on the real server."""

    if not (OOZIE and WEBHDFS):
        skip = "SVCD_TEST_OOZIE_URL and SVCD_TEST_WEBHDFS_URL are not set"
    timeout = 300

    def setUp(self) -> None:
        self.clock: IReactorTime = _reactor  # type: ignore[assignment]
        core: IReactorCore = _reactor  # type: ignore[assignment]
        self.pool = HTTPConnectionPool(core)
        http = HttpClient(Agent(core, pool=self.pool), self.clock, engine_error)
        self.engine = OozieClient(http)
        self.files = ReadingClient(http)
        self.base, self.webhdfs, self.user = Location(OOZIE), Location(WEBHDFS), USER
        self.mark = uuid.uuid4().hex[:8]
        self.folder = f"/user/{USER}/contract-{self.mark}"
        self.properties = {
            "nameNode": os.environ.get("SVCD_TEST_NAME_NODE", ""),
            "jobTracker": os.environ.get("SVCD_TEST_RESOURCE_MANAGER", ""),
            "user.name": USER,
            "oozie.use.system.libpath": "true",
        }

    async def pause(self, seconds: float) -> None:
        await sleep(self.clock, seconds)

    def external(self, name: str) -> str:
        return f"{name}-{self.mark}"

    def run_live(self, work: Coroutine[Any, Any, None]) -> Deferred[None]:
        async def bounded() -> None:
            try:
                await work
            finally:
                await self.files.delete(self.webhdfs, self.folder, USER)
                await self.pool.closeCachedConnections()

        return Deferred.fromCoroutine(bounded())

    def test_status(self) -> Deferred[None]:
        return self.run_live(self.check_status())

    def test_life(self) -> Deferred[None]:
        return self.run_live(self.check_life())

    def test_kill(self) -> Deferred[None]:
        return self.run_live(self.check_kill())

    def test_unknown(self) -> Deferred[None]:
        return self.run_live(self.check_unknown())

    def test_refusals(self) -> Deferred[None]:
        return self.run_live(self.check_refusals())

    def test_files(self) -> Deferred[None]:
        return self.run_live(self.check_files())
