"""The SSH client: its pool, deadlines and what it tells about faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import evolve
from twisted.conch.ssh import channel, common, connection, keys
from twisted.internet.defer import CancelledError, Deferred, gatherResults
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase, TestCase

from svcd.clients import ssh
from svcd.clients.ssh import SshRemote
from svcd.clients.ssh_wire import ClientTransport
from svcd.model.connect_rules import ConnectRules
from svcd.model.secret import Secret
from svcd.ports.faults import Fault
from svcd.ports.machines import Host, RemoteError
from svcd.runtime.clock import VirtualClock
from svcd.runtime.keys import new_key_pair
from svcd.runtime.slices import SLICE_S, Slices
from svcd.settings import Ssh
from tests.support.loopback import (
    free_port,
    host,
    machines,
    reactor,
    running,
    spec,
    until,
)

ADDRESS = "127.3.2.1"


class _Unwanted(channel.SSHChannel):
    """A channel that a machine opens to svcd. answer: the code of the refusal, or 0."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Deferred[int] = Deferred()

    def channelOpen(self, specificData: bytes) -> None:
        self.answer.callback(0)

    def openFailed(self, reason: Any) -> None:
        self.answer.callback(reason.data)


class SshRemoteTest(TestCase):
    """Against a loopback machine, with virtual time."""

    timeout = 60

    async def setUp(self) -> None:
        self.port = free_port(ADDRESS)
        self.root = Path(self.mktemp())
        self.machines = machines(str(self.root), self.port)
        await self.machines.boot(spec("m1", ADDRESS))
        self.clock = VirtualClock()
        self.slices = Slices(reactor)
        self.remote = SshRemote(reactor, self.clock, Ssh(), slices=self.slices)
        self.host = host(ADDRESS, self.port)

    async def tearDown(self) -> None:
        await self.remote.close()
        await self.machines.destroy("m1")

    async def run_it(self, command: str, timeout_s: float = 20.0) -> str:
        return (await self.remote.run(self.host, command, timeout_s=timeout_s)).stdout

    def connections(self) -> int:
        return self.machines.connections("m1")

    def heard(self) -> bool:
        """Whether the server has sent something since the clock last moved."""
        (link,) = self.remote._open
        return link.heard_at == self.clock.seconds()

    def begin(self, command: str, timeout_s: float = 20.0) -> Deferred[Any]:
        return Deferred.fromCoroutine(self.remote.run(self.host, command, timeout_s=timeout_s))

    def home(self, name: str) -> Path:
        return self.root / "machines" / "m1" / "home" / name

    async def fault(self, work: Deferred[Any]) -> RemoteError:
        try:
            await work
        except RemoteError as error:
            return error
        raise AssertionError("no RemoteError")

    async def test_runs_share_one_connection(self) -> None:
        """Also runs that begin while it is being made."""
        first, second = self.begin("echo 1"), self.begin("echo 2")
        self.assertEqual([(await first).stdout, (await second).stdout], ["1\n", "2\n"])
        await self.run_it("true")
        self.assertEqual(self.connections(), 1)

    async def test_a_run_whose_connection_breaks_before_its_slice_is_repeated(self) -> None:
        """It has certainly not begun."""

        def work_on_others() -> None:
            end = reactor.seconds() + SLICE_S
            while reactor.seconds() < end:
                pass

        await self.run_it("true")
        for _ in range(20):
            self.slices.later(work_on_others)
        waiting = self.begin("echo again")
        self.machines.abort_connections("m1")
        self.assertEqual((await waiting).stdout, "again\n")

    async def test_idle_connection_closes(self) -> None:
        """After a minute without commands; the next run makes a new one."""
        await self.run_it("true")
        self.clock.advance(70)
        await until(lambda: self.connections() == 0, "the connection closes")
        self.assertEqual(await self.run_it("echo again"), "again\n")

    async def test_silent_server_is_given_up(self) -> None:
        """A command does not wait for ever on a connection that says nothing."""
        waiting = self.begin("echo x > begun; sleep 79", timeout_s=3600)
        await until(self.home("begun").exists, "the command runs")
        self.clock.advance(120)
        error = await self.fault(waiting)
        self.assertEqual(error.kind, Fault.UNREACHABLE)
        self.assertIn("the server has been silent for 9", error.text)

    async def test_keep_alive_is_answered(self) -> None:
        """A silent but living connection stays."""
        waiting = self.begin("echo x > begun; sleep 1.5; echo done", timeout_s=3600)
        await until(self.home("begun").exists, "the command runs")
        for _ in range(12):
            self.clock.advance(35)
            await until(self.heard, "the keep-alive is answered")
        self.assertEqual((await waiting).stdout, "done\n")
        self.assertEqual(self.connections(), 1)

    async def test_time_out_kills_the_command(self) -> None:
        """The process does not go on behind the caller's back."""
        waiting = self.begin("echo $$ > pid; mv pid begun; sleep 79", timeout_s=30)
        await until(self.home("begun").exists, "the command runs")
        self.clock.advance(31)
        error = await self.fault(waiting)
        self.assertEqual(error.kind, Fault.TIMEOUT)
        self.assertIn("did not end within 30 s", error.text)
        await self._until_dead()

    async def test_cancel_kills_the_command(self) -> None:
        """A caller that goes away takes its command along; the connection stays."""
        waiting = self.begin("echo $$ > pid; mv pid begun; sleep 79")
        await until(self.home("begun").exists, "the command runs")
        waiting.cancel()
        await self.assertFailure(waiting, CancelledError)
        await self._until_dead()
        self.assertEqual(await self.run_it("echo on"), "on\n")
        self.assertEqual(self.connections(), 1)

    async def _until_dead(self) -> None:
        pid = int(self.home("begun").read_text())
        await until(lambda: not running(pid), "the process ends")

    async def test_no_free_channel_is_told(self) -> None:
        """A command that never began is known to have done nothing."""
        waiting = [self.begin("echo x > begun; sleep 79", timeout_s=3600) for _ in range(8)]
        await until(self.home("begun").exists, "the commands run")
        late = self.begin("touch late", timeout_s=5)
        self.clock.advance(6)
        error = await self.fault(late)
        self.assertEqual(error.kind, Fault.UNREACHABLE)
        self.assertIn("not begun within 5 s: all channels are in use", error.text)
        self.remote.forget(self.host)
        for each in waiting:
            self.assertEqual((await self.fault(each)).kind, Fault.UNREACHABLE)

    async def test_forget_drops_the_connection(self) -> None:
        """Its commands fail with the reason."""
        waiting = self.begin("echo x > begun; sleep 79")
        await until(self.home("begun").exists, "the command runs")
        self.remote.forget(self.host)
        error = await self.fault(waiting)
        self.assertIn("connection lost while the command was running", error.text)
        self.assertIn("the machine is being removed or has changed", error.text)

    async def test_channels_of_the_server_are_refused(self) -> None:
        """A machine can open no channel to svcd, of any kind."""
        await self.run_it("true")
        (wire,) = self.machines._machines["m1"]._server.connections  # type: ignore[union-attr]
        for kind in (b"session", b"direct-tcpip", b"forwarded-tcpip", b"x11"):
            asked = _Unwanted()
            asked.name = kind
            wire.service.openChannel(asked)
            self.assertEqual(await asked.answer, connection.OPEN_ADMINISTRATIVELY_PROHIBITED)
        self.assertEqual(await self.run_it("echo on"), "on\n")

    async def test_each_new_connection_beyond_the_most_closes_an_idle_one(self) -> None:
        """Also when several are dialled in one turn: what closes is open to its end."""
        self.patch(ssh, "_MOST_LINKS", 8)
        hosts = [evolve(self.host, internal=f"10.0.0.{number}") for number in range(11)]
        for each in hosts[:7]:
            await self.remote.run(each, "true", timeout_s=20.0)
            self.clock.advance(1)
        await gatherResults(
            Deferred.fromCoroutine(self.remote.run(each, "true", timeout_s=20.0))
            for each in hosts[7:]
        )
        await until(lambda: self.connections() == 8, "three idle connections close")
        self.assertEqual(
            {each.key[-1] for each in self.remote._open}, {h.internal for h in hosts[3:]}
        )


class FaultTest(TestCase):
    """Servers that are not there or not SSH."""

    timeout = 30

    async def tearDown(self) -> None:
        await self.remote.close()

    async def fault(self, at: Host, settings: Ssh | None = None) -> RemoteError:
        self.remote = SshRemote(reactor, reactor, settings or Ssh())
        try:
            await self.remote.run(at, "true", timeout_s=20)
        except RemoteError as error:
            return error
        raise AssertionError("no RemoteError")

    async def test_closed_port_is_unreachable(self) -> None:
        """The text names user, address, port and reason."""
        port = free_port(ADDRESS)
        error = await self.fault(host(ADDRESS, port))
        self.assertEqual(error.kind, Fault.UNREACHABLE)
        self.assertIn(f"ssh sam@{ADDRESS}:{port}: Connection was refused", error.text)

    async def test_mute_server_is_given_up(self) -> None:
        """A server that accepts and says nothing costs the connect time-out."""
        listening = reactor.listenTCP(0, Factory.forProtocol(Protocol), interface=ADDRESS)
        try:
            error = await self.fault(
                host(ADDRESS, listening.getHost().port), Ssh(connect_timeout_s=0.2)
            )
        finally:
            await listening.stopListening()
        self.assertEqual(error.kind, Fault.UNREACHABLE)
        self.assertIn("not logged in within 0.2 s", error.text)

    async def test_an_address_of_this_host_is_refused(self) -> None:
        """Nova would name it; nothing is dialled."""
        self.remote = SshRemote(reactor, reactor, Ssh(), ConnectRules.of((), ("22", "2222")))
        for address, port, setting in (
            ("127.0.0.1", 22, "cloud.machine_cidrs"),
            ("169.254.169.254", 22, "cloud.machine_cidrs"),
            ("203.0.113.1", 6379, "cloud.ssh_ports"),
        ):
            with self.assertRaises(RemoteError) as raised:
                await self.remote.run(host(address, port), "true", timeout_s=5)
            self.assertEqual(raised.exception.kind, Fault.FORBIDDEN)
            self.assertIn(setting, raised.exception.text)

    async def test_unreadable_private_key_is_refused(self) -> None:
        """The key's text is not in the message."""
        bad = evolve(host(ADDRESS, 1), private_key=Secret("hunter2"))
        error = await self.fault(bad)
        self.assertEqual(error.kind, Fault.UNAUTHORIZED)
        self.assertNotIn("hunter2", error.text)


class _FullWire(StringTransport):
    """A TCP connection whose peer reads nothing."""

    aborted = False
    held = 0

    def setTcpNoDelay(self, on: bool) -> None:
        """Nothing waits here."""

    def write(self, data: bytes) -> None:
        self.held += len(data)
        if self.producer is not None and self.held > 65_536:
            self.producer.pauseProducing()

    def abortConnection(self) -> None:
        self.aborted = True


class _Events:
    """The events of a connection. failed: its first fault."""

    failed: RemoteError | None = None

    def link_up(self) -> None:
        """Nothing waits here."""

    def link_failed(self, error: RemoteError) -> None:
        self.failed = self.failed or error

    def link_gone(self, error: RemoteError) -> None:
        """The end of the test."""


class UnreadTest(SynchronousTestCase):
    """A server that sends requests without end and reads no reply."""

    def setUp(self) -> None:
        key = keys.Key.fromString(new_key_pair("")[1].reveal())
        self.events, self.wire = _Events(), _FullWire()
        clock = Clock()
        self.client = ClientTransport("u", key, None, self.events, lambda: None, Slices(clock))
        self.client.makeConnection(self.wire)
        self.client._keyExchangeState = self.client._KEY_EXCHANGE_NONE
        self.client.setService(self.client.connection)

    def ask(self, number: int) -> None:
        asked = common.NS(b"anything") + b"\1"
        for _ in range(number):
            self.client.dispatchMessage(connection.MSG_GLOBAL_REQUEST, asked)
            if self.wire.aborted:
                return

    def fault(self) -> str:
        self.assertTrue(self.wire.aborted)
        assert self.events.failed is not None
        self.assertEqual(self.events.failed.kind, Fault.SERVER_ERROR)
        return self.events.failed.text

    def test_replies_that_it_does_not_read(self) -> None:
        """svcd keeps a bounded number of them, then aborts the connection."""
        self.ask(100_000)
        self.assertIn("does not read", self.fault())
        self.assertLess(self.wire.held, 2 << 20)
