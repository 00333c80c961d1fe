"""Programs of others at the addresses of a cluster: it never becomes well on them, or uses them.

Needs the software tree of the vanilla distribution. About a minute on two cores.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Mapping
from typing import Any, Final

from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from tests.live.test_main_job import vanilla_prefix
from tests.support.live import Tenant
from tests.support.processes import DaemonCase, reactor, run, until
from tests.support.sample import SLOW

skip = SLOW

PAGES: Final[Mapping[str, int]] = {
    "namenode": 9870,
    "resourcemanager": 8088,
    "historyserver": 19888,
    "oozie": 11000,
}
"""The daemons of a master, each with the port of its pages."""
ACTIVE_S: Final = 120.0
SCRIPT: Final = b"STORE (LOAD '$INPUT' AS (line:chararray)) INTO '$OUTPUT';"


class Stranger(Resource):
    """A daemon of another cluster. asked: the requests that it got."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def render(self, request: Request) -> bytes:
        """Every page is there, and says what a well daemon says."""
        request.setHeader(b"connection", b"close")  # it keeps none when it stops to listen
        self.asked.append(f"{request.method.decode()} {request.uri.decode()}")
        bean = {"ClusterId": "CID-other", "Safemode": "", "LiveNodes": "{}"}
        page = {"SVCD_CLUSTER": "other", "systemMode": "NORMAL", "beans": [bean]}
        return json.dumps(page).encode()


class StrangerTests(DaemonCase):
    timeout = 420

    async def test_no_stranger_gets_a_job_or_joins_the_cluster(self) -> None:
        """A foreign daemon in the place of each of ours, and a foreign node manager."""
        self.own = self.daemon(
            plugins__enabled="vanilla",
            embedded__image_prefix=str(vanilla_prefix()),
            provisioning__health_poll_s="2",
        )
        self.tenant = Tenant(await self.own.start())
        self.cluster_id = await self.tenant.new_cluster("first", 1, "vanilla", "3.5.0")
        self.shown = await self.tenant.until_active(self.cluster_id, ACTIVE_S)
        await self.another_node_manager()
        await self.strangers()

    def machine(self, group: int) -> Mapping[str, Any]:
        """The first machine of a group: 0 is the master's, 1 the worker's."""
        shown: Mapping[str, Any] = self.shown["node_groups"][group]["instances"][0]
        return shown

    async def command(self, *words: str) -> str:
        """The output of an `svcd` command."""
        ended = await run("svcd", "--state-dir", str(self.own.state), *words)
        self.assertEqual(ended.code, 0, ended.out + ended.err)
        return ended.out

    async def until_described(self, word: str) -> None:
        """Until the description of the cluster contains `word`; "": until it is empty."""

        text = ""

        async def described() -> bool:
            nonlocal text
            text = (await self.tenant.cluster(self.cluster_id))["status_description"]
            return word in text if word else not text

        try:
            await until(described, f"a description with {word!r}", 90.0)
        except AssertionError as error:
            raise AssertionError(f"{error}: {text!r}") from None

    async def strangers(self) -> None:
        """The cluster shows it, and the stranger gets no request but the look at its pages."""
        await self.tenant.upload("in", "text", b"a\n")
        source = await self.tenant.new_source("in", "in", "text")
        job = await self.tenant.new_pig_job("copy", SCRIPT)
        address = self.machine(0)["internal_ip"]
        for number, (name, page) in enumerate(PAGES.items()):
            pids = await self.command("cluster", "ssh", "first", "--", f"cat svcd/run/{name}.pid")
            os.kill(int(pids), signal.SIGKILL)
            stranger = Stranger()
            port = await self.listening(address, page, stranger)
            output = await self.tenant.new_hdfs_source(f"out-{number}", f"/out/{number}")
            execution = await self.tenant.execute(self.cluster_id, job, source, output, {})
            ended = await self.tenant.until_execution(execution, "FAILED", 30.0)
            self.assertEqual(ended["info"]["failure"]["code"], "FOREIGN_DAEMON", name)
            self.assertIn(f"{address}:{page}/", ended["info"]["failure"]["text"])
            await self.until_described("FOREIGN_DAEMON")
            self.assertEqual([a for a in stranger.asked if not a.startswith("GET /")], [])
            await port.stopListening()
            await self.command("cluster", "ssh", "first", "--", f"sh svcd/bin/daemon start {name}")
            await self.until_described("")
        output = await self.tenant.new_hdfs_source("out", "/out/last")
        execution = await self.tenant.execute(self.cluster_id, job, source, output, {})
        await self.tenant.until_execution(execution, "SUCCEEDED", 120.0)

    async def listening(self, address: str, page: int, stranger: Stranger) -> IListeningPort:
        """A port of a daemon that has just been killed, with the stranger on it."""
        found: list[IListeningPort] = []

        async def listens() -> bool:
            try:
                found.append(reactor.listenTCP(page, Site(stranger), interface=address))
            except CannotListenError:
                return False
            return True

        await until(listens, f"port {page} of {address}", 10.0)
        self.addCleanup(found[0].stopListening)
        return found[0]

    async def another_node_manager(self) -> None:
        """It registers at the address that its own resource manager had before, and ends."""
        server, address = self.machine(1)["server_id"], self.machine(1)["internal_ip"]
        home = self.own.state / "cloud" / "machines" / server / "home"
        other = home / "other" / "svcd"
        shutil.copytree(home / "svcd", other, ignore=shutil.ignore_patterns("*.pid", "*.log"))
        for path in (*other.glob("conf/*"), other / "env.sh", other / "bin" / "daemon"):
            text = path.read_text().replace(f"{home}/", f"{home}/other/")
            text = text.replace(address, elsewhere(address)).replace(self.cluster_id, "other")
            path.write_text(text)
        on_worker = ("cluster", "ssh", "first", "first-worker-001", "--")
        await self.command(*on_worker, "sh other/svcd/bin/daemon start nodemanager")

        async def ended() -> bool:
            alive = "sh other/svcd/bin/daemon alive nodemanager 2>&1 || true"
            return "is not running" in await self.command(*on_worker, alive)

        await until(ended, "the end of the other node manager", 60.0)
        log = (other / "logs" / "nodemanager.log").read_text()
        self.assertIn("Disallowed NodeManager", log)
        await self.until_described("")


def elsewhere(address: str) -> str:
    """Another address of this host, which no cluster of the test has."""
    return address.rpartition(".")[0] + ".201"
