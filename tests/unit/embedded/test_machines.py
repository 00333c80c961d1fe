"""Loopback machines: folders, SSH, processes, volumes."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import Any

from twisted.internet.protocol import Factory
from twisted.internet.utils import getProcessOutputAndValue
from twisted.trial.unittest import SkipTest, TestCase

from svcd.clients.ssh import SshRemote
from svcd.embedded import machine_ssh
from svcd.embedded.cloud.guests import GuestError
from svcd.ports.faults import Fault
from svcd.ports.machines import CommandResult, RemoteError
from svcd.runtime.keys import new_key_pair
from svcd.runtime.tasks import gather
from svcd.settings import Ssh
from tests.support.loopback import (
    PRIVATE_KEY,
    PUBLIC_KEY,
    ConchLog,
    free_port,
    host,
    machines,
    reactor,
    rsa_key_pair,
    running,
    spec,
    until,
)

A, B, FLOATING = "127.3.3.1", "127.3.3.2", "127.3.3.9"


class MachinesCase(TestCase):
    """Machines below a new folder, and a client."""

    timeout = 60

    async def setUp(self) -> None:
        self.port = free_port(A)
        self.root = Path(self.mktemp()).absolute()
        self.machines = machines(str(self.root), self.port)
        self.remote = SshRemote(reactor, reactor, Ssh())

    async def tearDown(self) -> None:
        await self.remote.close()
        for server_id in ("m1", "m2"):
            await self.machines.destroy(server_id)

    def folder(self, server_id: str = "m1") -> Path:
        return self.root / "machines" / server_id

    async def run_on(self, address: str, command: str, stdin: bytes = b"") -> CommandResult:
        return await self.remote.run(host(address, self.port), command, stdin=stdin, timeout_s=20)

    async def refused(self, address: str) -> Fault:
        try:
            await self.run_on(address, "true")
        except RemoteError as error:
            return error.kind
        raise AssertionError("it answered")

    async def wrong(self, work: Any) -> str:
        try:
            await work
        except GuestError as error:
            return str(error)
        raise AssertionError("no GuestError")

    async def daemon(self, address: str = A) -> int:
        """Start a daemon as svcd does; its process id."""
        result = await self.run_on(
            address, "setsid nohup sleep 1000 >$SVCD_MACHINE_ROOT/log/d 2>&1 </dev/null & echo $!"
        )
        return int(result.stdout)


class CommandTest(MachinesCase):
    """What a command finds on a machine."""

    async def setUp(self) -> None:
        await super().setUp()
        await self.machines.boot(spec("m1", A))

    async def test_command_finds_its_machine_and_nothing_of_the_daemon(self) -> None:
        """It begins at home; sudo says that there is none."""
        said = (await self.run_on(A, "pwd; cat $SVCD_HOSTS_FILE; env -0")).stdout
        root = str(self.folder())
        begin = f"{root}/home\n127.0.0.1 localhost\n{A} host-m1\n"
        self.assertEqual(said[: len(begin)], begin)
        found = dict(each.split("=", 1) for each in said[len(begin) :].rstrip("\0").split("\0"))
        self.assertEqual(
            {k: v for k, v in found.items() if k not in ("PWD", "OLDPWD", "SHLVL", "_")},
            {
                "HOME": f"{root}/home",
                "SVCD_MACHINE_ROOT": root,
                "SVCD_MACHINE_ADDRESS": A,
                "SVCD_HOSTS_FILE": f"{root}/etc/hosts",
                "SVCD_VANILLA_PREFIX": "/opt/none",
                "TMPDIR": f"{root}/tmp",
                "USER": "sam",
                "LOGNAME": "sam",
                "SHELL": "/bin/sh",
                "PATH": f"{root}/bin:{os.environ['PATH']}",
                "LANG": "C.UTF-8",
            },
        )
        ran = await self.run_on(A, "sudo -n true")
        self.assertEqual((ran.exit_code, ran.stdout), (1, ""))
        self.assertIn("machines of the embedded cloud have no sudo", ran.stderr)

    async def test_too_long_command_is_refused(self) -> None:
        """Files go by stdin."""
        try:
            await self.run_on(A, "true " + "x" * 130_000)
        except RemoteError as error:
            self.assertEqual(error.kind, Fault.REFUSED)
            self.assertIn("longer than 120,000 bytes", error.text)
        else:
            self.fail("it was run")

    async def test_broken_connection_kills_what_is_attached(self) -> None:
        """The command and its children."""
        work = gather([lambda: self.run_on(A, "sleep 999 & echo $! > pid; wait")], 1)
        pid_file = self.folder() / "home" / "pid"

        async def cut() -> None:
            await until(lambda: pid_file.exists() and pid_file.read_text() != "", "it runs")
            self.machines.abort_connections("m1")

        results = await gather([lambda: work, cut], 2)
        self.assertIsInstance(results[0][0], RemoteError)
        await until(lambda: not running(int(pid_file.read_text())), "the child ends")


class LoginTest(MachinesCase):
    """Who may log in."""

    async def test_the_usual_client_works(self) -> None:
        """OpenSSH's `ssh` runs commands and a shell, with an RSA key too; passwords are out."""
        ssh = shutil.which("ssh")
        if ssh is None:
            raise SkipTest("ssh is not installed (apt-get install openssh-client)")
        public, private = rsa_key_pair()
        await self.machines.boot(spec("m1", A, authorized_keys=(PUBLIC_KEY, public)))
        for name, key in (("ed25519", PRIVATE_KEY), ("rsa", private)):
            key_file = self.root / name
            key_file.write_text(key.reveal())
            key_file.chmod(0o600)
            options = ["-F", "none", "-i", str(key_file), "-p", str(self.port)]
            for option in ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null"):
                options += ["-o", option]
            with ConchLog() as conch:
                out, err, code = await getProcessOutputAndValue(
                    ssh, [*options, f"sam@{A}", "echo hi; echo bad >&2; exit 5"], reactor=reactor
                )
            self.assertEqual((out, code), (b"hi\n", 5), err.decode())
            self.assertIn(b"bad\n", err)
            self.assertNotIn(b"protocol_error", err)
            self.assertEqual(conch.events, [])
        out, _, code = await getProcessOutputAndValue(
            "/bin/sh",
            ["-c", 'echo "pwd; exit 4" | "$@"', "sh", ssh, *options, f"sam@{A}"],
            reactor=reactor,
        )
        self.assertEqual((out, code), (f"{self.folder()}/home\n".encode(), 4))
        other = self.root / "other"
        other.write_text(new_key_pair("other")[1].reveal())
        other.chmod(0o600)
        options[options.index("-i") + 1] = str(other)
        _, err, code = await getProcessOutputAndValue(
            ssh, [*options, f"sam@{A}", "true"], reactor=reactor
        )
        self.assertEqual(code, 255)
        self.assertIn(b"Permission denied (publickey)", err)

    async def test_a_session_outlives_the_grace_for_logging_in(self) -> None:
        """The time limit is for those who do not log in."""
        self.patch(machine_ssh, "_LOGIN_GRACE_S", 0.5)
        await self.machines.boot(spec("m1", A, authorized_keys=(PUBLIC_KEY,)))
        self.assertEqual((await self.run_on(A, "sleep 1; echo done")).stdout, "done\n")


class FloodTest(MachinesCase):
    """Strangers and greedy users of one machine."""

    async def test_strangers_lock_no_user_out(self) -> None:
        """Silent connections make place for newcomers, and never for those that have logged in."""
        await self.machines.boot(spec("m1", A))
        await self.run_on(A, "true")
        strangers = []
        try:
            for n in range(250):
                strangers.append(socket.socket())
                strangers[-1].setblocking(False)
                strangers[-1].connect_ex((A, self.port))
                if n % 25 == 24:
                    await self.run_on(A, "true")
            await until(lambda: 1 < self.machines.connections("m1") <= 33, "the oldest are dropped")
            newcomer = SshRemote(reactor, reactor, Ssh())
            said = await newcomer.run(host(A, self.port), "echo in", timeout_s=20)
            await newcomer.close()
            self.assertEqual(said.stdout, "in\n")
            self.assertEqual((await self.run_on(A, "echo still")).stdout, "still\n")
        finally:
            for each in strangers:
                each.close()


class UserDataTest(MachinesCase):
    """The first boot."""

    async def test_script_runs_once(self) -> None:
        """Its output is kept; neither a boot nor an adoption runs it again."""
        script = b"#!/bin/sh\necho ran >> $HOME/ran; echo said; echo $SVCD_MACHINE_ROOT >&2\n"
        await self.machines.boot(spec("m1", A, user_data=script))
        said = self.folder() / "log" / "user-data.log"
        expected = f"said\n{self.folder()}\n"
        await until(lambda: said.exists() and said.read_text() == expected, "the script ends")
        await self.machines.boot(spec("m1", A, user_data=script))
        await self.machines.halt("m1")
        await self.machines.boot(spec("m1", A, user_data=script))
        await self.run_on(A, "sleep 0.2")
        self.assertEqual((self.folder() / "home" / "ran").read_text(), "ran\n")


class LifeTest(MachinesCase):
    """Halt, adoption, destruction."""

    async def test_adopted_machine_goes_on(self) -> None:
        """A new daemon listens again, and processes have not noticed."""
        await self.machines.boot(spec("m1", A))
        pid = await self.daemon()
        await self.machines.shutdown()
        self.assertEqual(await self.refused(A), Fault.UNREACHABLE)
        self.assertTrue(running(pid))
        self.machines = machines(str(self.root), self.port)
        await self.machines.boot(spec("m1", A))
        self.assertEqual((await self.run_on(A, f"kill -0 {pid}")).exit_code, 0)

    async def test_destroyed_machines_leave_nothing(self) -> None:
        """Every process and the folders go, several machines at once; volumes stay."""
        pids = []
        for server_id, address in (("m1", A), ("m2", B)):
            await self.machines.boot(spec(server_id, address))
            pids.append(await self.daemon(address))
        await self.machines.attach("m1", "v1", "/dev/vdb")
        await gather([lambda s=s: self.machines.destroy(s) for s in ("m1", "m2")], 2)
        self.assertEqual([running(pid) for pid in pids], [False, False])
        self.assertEqual(list((self.root / "machines").iterdir()), [])
        self.assertTrue((self.root / "volumes" / "v1").is_dir())
        self.assertEqual(await self.refused(A), Fault.UNREACHABLE)

    async def test_busy_machine_is_destroyed(self) -> None:
        """Processes that keep starting others and writing files do not escape."""
        await self.machines.boot(spec("m1", A))
        await self.run_on(
            A,
            'setsid nohup sh -c \'while :; do setsid sh -c "date > $TMPDIR/$$.f; sleep 0.05" & '
            "sleep 0.02; done' >/dev/null 2>&1 </dev/null &",
        )
        await self.machines.destroy("m1")
        self.assertFalse(self.folder().exists())

    async def test_halted_machine_boots_again(self) -> None:
        """Its processes are ended, its files kept."""
        await self.machines.boot(spec("m1", A))
        pid = await self.daemon()
        await self.run_on(A, "echo kept > file")
        await self.machines.halt("m1")
        self.assertFalse(running(pid))
        self.assertEqual(await self.refused(A), Fault.UNREACHABLE)
        await self.machines.boot(spec("m1", A))
        self.assertEqual((await self.run_on(A, "cat file")).stdout, "kept\n")

    async def test_machine_without_server_is_removed(self) -> None:
        """And a stray process whose folder is gone."""
        for server_id, address in (("m1", A), ("m2", B)):
            await self.machines.boot(spec(server_id, address))
        stray, kept = await self.daemon(A), await self.daemon(B)
        await self.machines.shutdown()
        shutil.rmtree(self.folder("m1"))
        self.machines = machines(str(self.root), self.port)
        await self.machines.reconcile({"m2"})
        self.assertEqual((running(stray), running(kept)), (False, True))
        self.assertTrue(self.folder("m2").is_dir())
        await self.machines.reconcile(set())
        self.assertFalse(running(kept))
        self.assertFalse(self.folder("m2").exists())


class AddressTest(MachinesCase):
    """Where a machine answers."""

    async def test_floating_address_comes_and_goes(self) -> None:
        """Beside the fixed one."""
        await self.machines.boot(spec("m1", A))
        await self.machines.boot(spec("m1", A, addresses=(A, FLOATING)))
        said = (await self.run_on(FLOATING, "echo $SVCD_MACHINE_ADDRESS")).stdout
        self.assertEqual(said, f"{A}\n")
        await self.machines.boot(spec("m1", A))
        self.remote.forget(host(FLOATING, self.port))
        self.assertEqual(await self.refused(FLOATING), Fault.UNREACHABLE)
        self.assertEqual((await self.run_on(A, "true")).exit_code, 0)

    async def test_taken_port_is_explained(self) -> None:
        """Which address, which port, what to do; a later boot works."""
        taken = reactor.listenTCP(self.port, Factory(), interface=A)
        try:
            text = await self.wrong(self.machines.boot(spec("m1", A)))
        finally:
            await taken.stopListening()
        self.assertIn(f"the port {A}:{self.port} is taken: process {os.getpid()} (", text)
        self.assertIn("svcd cluster rm CLUSTER", text)
        await self.machines.boot(spec("m1", A))
        self.assertEqual((await self.run_on(A, "true")).exit_code, 0)

    async def test_odd_id_and_outer_address_are_refused(self) -> None:
        """A machine never leaves its folder, and never answers to the outside."""
        text = await self.wrong(self.machines.boot(spec("m1", "0.0.0.0")))
        self.assertIn("0.0.0.0 is no loopback address", text)
        for server_id in ("..", "a/b", "", ".hidden"):
            self.assertIn("cannot name", await self.wrong(self.machines.destroy(server_id)))


class VolumeTest(MachinesCase):
    """Volumes are folders that a machine sees below dev."""

    async def test_volume_moves_between_machines(self) -> None:
        """With its content, until it is destroyed."""
        await self.machines.boot(spec("m1", A))
        await self.machines.boot(spec("m2", B))
        await self.machines.attach("m1", "v1", "/dev/vdb")
        await self.run_on(A, "echo data > $SVCD_MACHINE_ROOT/dev/vdb/file")
        await self.machines.detach("m1", "v1")
        self.assertEqual(os.listdir(self.folder() / "dev"), [])
        await self.machines.attach("m2", "v1", "/dev/vdc")
        said = (await self.run_on(B, "cat $SVCD_MACHINE_ROOT/dev/vdc/file")).stdout
        self.assertEqual(said, "data\n")
        await self.machines.destroy_volume("v1")
        self.assertFalse((self.root / "volumes" / "v1").exists())
        await self.machines.detach("m2", "v1")
        await self.machines.detach("m3", "v9")
        await self.machines.destroy_volume("v9")
