"""`svcd tunnel`: its pages, its ssh command, and a tunnel to a loopback machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionRefusedError
from twisted.internet.protocol import ProcessProtocol
from twisted.trial.unittest import SkipTest, SynchronousTestCase, TestCase
from twisted.web.client import Agent, readBody
from twisted.web.server import Site

from svcd.cli import tunnel
from svcd.cli.exits import CommandError
from svcd.clients.ssh import SshRemote
from svcd.runtime.tasks import sleep
from svcd.settings import Ssh
from tests.contract.forward import Service, pinned
from tests.support.loopback import PRIVATE_KEY, USER, free_port, host, machines, reactor, spec

ADDRESS = "127.3.2.9"


def machine(name: str, number: int, **more: Any) -> dict[str, Any]:
    shown = {
        "instance_name": name,
        "address": f"203.0.113.{number}",
        "internal_ip": f"10.0.0.{number}",
        "port": 22,
        "username": "debian",
        "host_key": "ssh-ed25519 AAAA",
    }
    return {**shown, **more}


MACHINES = [machine("m", 2), machine("w", 3)]
CLUSTER = {
    "name": "mine",
    "info": {
        "HDFS": {"Web UI": "http://203.0.113.2:9870", "NameNode": "hdfs://10.0.0.2:8020"},
        "JobFlow": {
            "Oozie": "http://203.0.113.2:11000",
            "Web UI": "http://203.0.113.2:11000/oozie",
        },
        "YARN": {"Web UI": "http://203.0.113.3:8088"},
    },
}


class EndTests(SynchronousTestCase):
    def test_ssh_ends_with_a_killed_command(self) -> None:
        """The child holds the pipe open for as long as it lives."""
        text = """
from svcd.cli.tunnel import started
process = started(["sleep", "60"])
print("up", flush=True)
process.wait()
"""
        command = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
        assert command.stdout is not None
        self.assertEqual(command.stdout.readline(), b"up\n")
        command.kill()
        self.assertEqual(command.communicate(timeout=20), (b"", None))


class CommandTests(SynchronousTestCase):
    """The pages and the command, without a process."""

    def pages(self, target: str | None = None) -> Any:
        return tunnel.pages(CLUSTER, MACHINES, target, lambda port: port + 10_000)

    def test_pages_have_local_urls(self) -> None:
        """Two pages of one port share a local port; a URL of HDFS is no page."""
        self.assertEqual(
            [(page.name, page.url) for page in self.pages()],
            [
                ("HDFS Web UI", "http://localhost:19870"),
                ("JobFlow Oozie", "http://localhost:21000"),
                ("JobFlow Web UI", "http://localhost:21000/oozie"),
                ("YARN Web UI", "http://localhost:18088"),
            ],
        )

    def test_target_chooses_pages(self) -> None:
        """Without regard to case; an unknown one is refused with the known ones."""
        self.assertEqual([page.port for page in self.pages("yarn")], [8088])
        parts = "cluster mine has no page of %s; its parts are HDFS, JobFlow, YARN"
        error = self.assertRaises(CommandError, self.pages, "Hive")
        self.assertEqual((error.code, str(error)), (3, parts % "Hive"))
        error = self.assertRaises(CommandError, self.pages, "spark")
        self.assertTrue(str(error).startswith(parts % "spark"), error)
        self.assertIn("created with --with sparkconnect", str(error))

    def test_spark_connect_has_a_local_url(self) -> None:
        """With the name localhost: to others the client sends its token over TLS only."""
        info = {"Spark": {"Connect": "sc://10.0.0.3:15002/;token=c0ffee"}}
        (page,) = tunnel.pages({**CLUSTER, "info": info}, MACHINES, "spark", lambda port: port)
        self.assertEqual((page.name, page.address), ("Spark Connect", "10.0.0.3"))
        self.assertEqual((page.port, page.url), (15002, "sc://localhost:15002/;token=c0ffee"))

    def test_command_trusts_the_pinned_key_alone(self) -> None:
        """It forwards to internal addresses, by the machine of the first page.

        Without a pinned key ssh would ask the user to trust any key. A named key is offered alone.
        """
        known = Path(self.mktemp())
        words = tunnel.ssh_command(self.pages("JobFlow"), MACHINES, known, 1080, Path("k.pem"))
        self.assertEqual(known.read_text(), "203.0.113.2 ssh-ed25519 AAAA\n")
        self.assertEqual(words[:4], ["ssh", "-N", "-D", "127.0.0.1:1080"])
        self.assertIn("IdentitiesOnly=yes", words)
        self.assertNotIn("IdentitiesOnly=yes", tunnel.login_words(MACHINES[0], known, None))
        self.assertIn("StrictHostKeyChecking=yes", words)
        self.assertIn(f"UserKnownHostsFile={known}", words)
        self.assertEqual(
            words[-6:],
            ["-i", "k.pem", "-L", "127.0.0.1:21000:10.0.0.2:11000", "--", "debian@203.0.113.2"],
        )
        unknown = [machine("m", 2, host_key="", port=2222)]
        pages = tunnel.pages(CLUSTER, unknown, "HDFS", lambda port: port)
        self.assertRaises(CommandError, tunnel.ssh_command, pages, unknown, known, 1080, None)


class _Ssh(ProcessProtocol):
    """A process of ssh. ended: fires with what it wrote."""

    def __init__(self) -> None:
        self.ended: Deferred[bytes] = Deferred()
        self.said = b""

    def errReceived(self, data: bytes) -> None:
        self.said += data

    def processEnded(self, reason: object) -> None:
        self.ended.callback(self.said)


class TunnelTests(TestCase):
    """The system's ssh and a loopback machine."""

    timeout = 60
    agent = ""

    async def setUp(self) -> None:
        if shutil.which("ssh") is None:
            raise SkipTest("ssh is not installed (apt-get install openssh-client)")
        self.port = free_port(ADDRESS)
        self.folder = Path(self.mktemp()).absolute()
        self.machines = machines(str(self.folder), self.port)
        await self.machines.boot(spec("m1", ADDRESS))
        remote = SshRemote(reactor, reactor, Ssh())
        self.key = (await pinned(remote, host(ADDRESS, self.port))).host_key
        await remote.close()
        site = Site(Service())
        site.noisy = False
        listening = reactor.listenTCP(0, site, interface=ADDRESS)
        self.addCleanup(listening.stopListening)
        self.service_port = listening.getHost().port
        self.identity = self.folder / "key"
        self.identity.write_text(PRIVATE_KEY.reveal())
        self.identity.chmod(0o600)

    async def tearDown(self) -> None:
        if hasattr(self, "machines"):
            await self.machines.destroy("m1")

    def start(self, key: str | None) -> tuple[_Ssh, int, Any]:
        shown = machine("m", 2, address=ADDRESS, internal_ip=ADDRESS, port=self.port)
        shown |= {"username": USER, "host_key": key}
        cluster = {"name": "c", "info": {"T": {"Page": f"http://{ADDRESS}:{self.service_port}"}}}
        (page,) = tunnel.pages(cluster, [shown], None, lambda _: free_port("127.0.0.1"))
        known, socks = self.folder / "known", free_port("127.0.0.1")
        words = tunnel.ssh_command([page], [shown], known, socks, self.identity)
        process = _Ssh()
        environment = {"HOME": "/", "SSH_AUTH_SOCK": self.agent}
        handle = reactor.spawnProcess(process, shutil.which("ssh"), words, env=environment)
        return process, page.local, handle

    def fill_agent(self, count: int) -> None:
        """Start an agent that holds `count` keys of which the machine knows none."""
        folder = tempfile.mkdtemp(prefix="a-")  # the path of a socket has a bound
        self.addCleanup(shutil.rmtree, folder)
        self.agent = f"{folder}/s"
        agent = subprocess.Popen(
            ["ssh-agent", "-D", "-a", self.agent], stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(agent.wait, 10)
        self.addCleanup(agent.terminate)
        assert agent.stdout is not None
        self.addCleanup(agent.stdout.close)
        agent.stdout.readline()  # the agent says where it listens
        keys = [f"{folder}/{number}" for number in range(count)]
        for key in keys:
            make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key]
            subprocess.run(make, check=True, timeout=20)
        environment = {"SSH_AUTH_SOCK": self.agent}
        subprocess.run(["ssh-add", "-q", *keys], check=True, timeout=20, env=environment)

    async def test_page_is_served_on_this_machine(self) -> None:
        """Through the forward of ssh, beside seven keys of the agent: a server takes six."""
        self.fill_agent(7)
        process, local, handle = self.start(self.key)
        agent, answer = Agent(reactor), None
        end = reactor.seconds() + 20
        while answer is None and reactor.seconds() < end and not process.ended.called:
            try:
                answer = await agent.request(b"GET", f"http://127.0.0.1:{local}/small".encode())
            except ConnectionRefusedError:
                await sleep(reactor, 0.1)
        assert answer is not None, process.said
        self.assertEqual(await readBody(answer), b"small")
        (self.folder / "known").unlink()  # the command removes it after the login
        answer = await agent.request(b"GET", f"http://127.0.0.1:{local}/small".encode())
        self.assertEqual(await readBody(answer), b"small")
        handle.signalProcess("TERM")
        await process.ended
