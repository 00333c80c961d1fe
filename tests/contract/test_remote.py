"""The runs of the contracts of machines: scripted, on a loopback machine, on OpenSSH's server."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.trial.unittest import SkipTest, TestCase

from svcd.clients.connections import ForwardingForbidden
from svcd.clients.ssh import SshRemote
from svcd.embedded.faults import Effect, FaultRule, Faults
from svcd.embedded.scripted import Said, ScriptedRemote
from svcd.model.secret import Secret
from svcd.ports.faults import Fault
from svcd.ports.machines import RemoteError
from svcd.runtime.keys import new_key_pair
from svcd.runtime.tasks import sleep
from svcd.settings import Ssh
from tests.contract.forward import ForwardContract, pinned
from tests.contract.remote import RemoteContract
from tests.support.loopback import (
    PRIVATE_KEY,
    PUBLIC_KEY,
    free_port,
    host,
    machines,
    reactor,
    rsa_key_pair,
    spec,
)

_SSHD = "/usr/sbin/sshd"


class ScriptedRemoteTest(RemoteContract, TestCase):
    """The scripted machines of the in-process fake."""

    timeout = 30

    def setUp(self) -> None:
        self.faults = Faults()
        self.scripted = ScriptedRemote(reactor, self.faults)
        self.scripted.only_key = PRIVATE_KEY
        self.remote = self.scripted
        self.host = host("10.0.0.5", 22)

    def script(self, command: str, **said: Any) -> None:
        """See RemoteContract."""
        self.scripted.script(f"^{re.escape(command)}$", Said(**said))

    def other_key(self) -> Secret:
        """See RemoteContract."""
        return new_key_pair("other")[1]

    async def change_host_key(self) -> None:
        """See RemoteContract."""
        self.scripted.rebuild(self.host.address)

    def cut(self) -> None:
        """See RemoteContract."""
        self.faults.add(FaultRule(where="ssh", times=1, effect=Effect.RESET_AFTER))


class LoopbackCase(TestCase):
    """A loopback machine that serves SSH."""

    timeout = 60
    address = "127.3.1.1"

    async def setUp(self) -> None:
        self.port = free_port(self.address)
        self.root = self.mktemp()
        self.machines = machines(self.root, self.port)
        self.rsa_public, self.rsa_private = rsa_key_pair()
        await self._boot()
        self.remote = SshRemote(reactor, reactor, Ssh())
        self.host = host(self.address, self.port)

    async def tearDown(self) -> None:
        await self.remote.close()
        await self.machines.destroy("m1")

    def other_key(self) -> Secret:
        """See RemoteContract."""
        return new_key_pair("other")[1]

    async def change_host_key(self) -> None:
        """See RemoteContract."""
        await self.machines.destroy("m1")
        await self._boot()

    async def _boot(self) -> None:
        accepted = (PUBLIC_KEY, self.rsa_public)
        await self.machines.boot(spec("m1", self.address, authorized_keys=accepted))

    def rsa_key(self) -> Secret:
        """See RemoteContract."""
        return self.rsa_private

    def cut(self) -> None:
        """See RemoteContract."""
        reactor.callLater(0.3, self.machines.abort_connections, "m1")


class LoopbackRemoteTest(LoopbackCase, RemoteContract):
    """The SSH client against the SSH server of a loopback machine."""


class LoopbackForwardTest(ForwardContract, LoopbackCase):
    """Forwards of the SSH server of a loopback machine."""

    async def test_other_addresses_are_forbidden(self) -> None:
        """A machine forwards to itself only."""
        elsewhere = evolve(self.host, internal="127.3.1.77")
        error = await self.fault("/", elsewhere)
        self.assertEqual(error.kind, Fault.FORBIDDEN)
        self.assertIn("port 80 of 127.3.1.77", error.text)

    async def test_service_sees_its_own_machine(self) -> None:
        """The address of the client is the machine's, as a proxy user's rule needs it."""
        self.assertEqual(await self.get("/client"), self.address.encode())

    def connections(self) -> int:
        """See ForwardContract."""
        return self.machines.connections("m1")


class OpenSshCase(TestCase):
    """A real OpenSSH server, where one is installed."""

    timeout = 60
    address = "127.3.1.2"
    options = ""

    async def setUp(self) -> None:
        keygen = shutil.which("ssh-keygen")
        if not Path(_SSHD).exists() or keygen is None:
            raise SkipTest(f"{_SSHD} is not installed (apt-get install openssh-server)")
        if os.geteuid() == 0 and not Path("/run/sshd").is_dir():
            raise SkipTest("the folder /run/sshd, which sshd needs, does not exist")
        self.root = Path(self.mktemp()).absolute()
        self.root.mkdir()
        self.port = free_port(self.address)
        rsa_public, self.rsa_private = rsa_key_pair()
        (self.root / "authorized_keys").write_text(f"{PUBLIC_KEY}\n{rsa_public}\n")
        (self.root / "sshd_config").write_text(
            f"ListenAddress {self.address}\nPort {self.port}\nHostKey {self.root}/host_key\n"
            f"AuthorizedKeysFile {self.root}/authorized_keys\nPidFile {self.root}/pid\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nUseDNS no\n"
            f"{self.options}"
        )
        self._new_host_key()
        self.remote = SshRemote(reactor, reactor, Ssh())
        user = os.environ.get("USER") or ("root" if os.geteuid() == 0 else os.getlogin())
        self.host = evolve(host(self.address, self.port), user=user)
        await self._start()

    async def tearDown(self) -> None:
        if hasattr(self, "server"):
            await self.remote.close()
            await self._stop()

    def other_key(self) -> Secret:
        """See RemoteContract."""
        return new_key_pair("other")[1]

    async def change_host_key(self) -> None:
        """See RemoteContract."""
        self.remote.forget(self.host)
        await self._stop()
        self._new_host_key()
        await self._start()

    def rsa_key(self) -> Secret:
        """See RemoteContract."""
        return self.rsa_private

    def cut(self) -> None:
        """See RemoteContract."""
        reactor.callLater(0.3, self.server.kill_children)

    def _new_host_key(self) -> None:
        path = self.root / "host_key"
        path.write_text(new_key_pair("host")[1].reveal())
        path.chmod(0o600)

    async def _start(self) -> None:
        self.server = _Sshd()
        reactor.spawnProcess(
            self.server, _SSHD, [_SSHD, "-D", "-e", "-f", str(self.root / "sshd_config")], env={}
        )
        await self.server.listening

    async def _stop(self) -> None:
        self.server.stop()
        await self.server.ended
        await sleep(reactor, 0)


class OpenSshRemoteTest(OpenSshCase, RemoteContract):
    """The SSH client against a real OpenSSH server."""


class OpenSshForwardTest(ForwardContract, OpenSshCase):
    """Forwards of a real OpenSSH server."""

    def connections(self) -> int:
        """See ForwardContract."""
        return self.server.connections()


class ForbiddenForwardTest(OpenSshCase):
    """A real OpenSSH server that does not forward."""

    options = "AllowTcpForwarding no\n"

    async def test_error_names_the_settings(self) -> None:
        """The caller learns the machine, the port and the settings to check."""
        host = await pinned(self.remote, self.host)
        async with self.remote.agent(host) as agent:
            connecting = agent.request(b"GET", b"http://any.example:8088/")
            error = await self.assertFailure(connecting, ForwardingForbidden)
        self.assertIn("port 8088 of 127.3.1.2", str(error))
        self.assertIn("AllowTcpForwarding", str(error))


class ChosenAlgorithmsTest(OpenSshCase):
    """A hardened OpenSSH server, with algorithms that Conch does not have."""

    options = "Ciphers aes256-gcm@openssh.com\n"

    async def test_error_names_the_algorithms(self) -> None:
        """The bare error would be a connection that closes cleanly."""
        running = Deferred.fromCoroutine(self.remote.run(self.host, "true", timeout_s=20))
        error = await self.assertFailure(running, RemoteError)
        self.assertIn("aes128-ctr", error.text)


class _Sshd(ProcessProtocol):
    """One sshd in the foreground, whose stderr is read."""

    transport: Any

    def __init__(self) -> None:
        self.listening: Deferred[None] = Deferred()
        self.ended: Deferred[None] = Deferred()
        self.said = b""

    def errReceived(self, data: bytes) -> None:
        self.said += data
        if b"Server listening" in self.said and not self.listening.called:
            self.listening.callback(None)

    def processEnded(self, reason: Any) -> None:
        if not self.listening.called:
            self.listening.errback(RuntimeError(f"sshd does not start: {self.said!r}"))
        self.ended.callback(None)

    def stop(self) -> None:
        """End it; connections are separate processes."""
        try:
            self.transport.signalProcess("TERM")
        except ProcessExitedAlready:
            return

    def connections(self) -> int:
        """The number of its connections: one child for each, and a grandchild after the login."""
        return len(self._children())

    def kill_children(self) -> None:
        """Kill the processes that serve connections."""
        for pid in self._children():
            os.kill(pid, 9)

    def _children(self) -> list[int]:
        path = Path(f"/proc/{self.transport.pid}/task/{self.transport.pid}/children")
        return [int(word) for word in path.read_text().split()]
