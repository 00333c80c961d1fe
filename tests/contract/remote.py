"""What every `ports.Remote` does, whether it talks to a script, a loopback machine or OpenSSH.

A run mixes `RemoteContract` into a TestCase and provides the hooks. `script` prepares machines
that cannot run anything; real ones ignore it.
"""

from __future__ import annotations

import hashlib

from attrs import evolve

from svcd.model.secret import Secret
from svcd.ports.faults import Fault
from svcd.ports.machines import CommandResult, Host, Remote, RemoteError
from svcd.runtime.tasks import gather


class RemoteContract:
    """The suite. Hooks: `remote`, `host`, `script`, `other_key`, `change_host_key`, `cut`."""

    remote: Remote
    host: Host

    def script(self, command: str, **said: object) -> None:
        """Prepare the answer to exactly `command` (fields of scripted.Said, or `answer`)."""

    def other_key(self) -> Secret:
        """A private key that the machine does not accept."""
        raise NotImplementedError

    async def change_host_key(self) -> None:
        """Let another machine answer at the address."""
        raise NotImplementedError

    def cut(self) -> None:
        """Break the connection while a command runs."""
        raise NotImplementedError

    def rsa_key(self) -> Secret:
        """An RSA private key that the machine accepts."""
        return self.host.private_key

    async def run_it(
        self, command: str, *, stdin: bytes = b"", timeout_s: float = 20.0
    ) -> CommandResult:
        return await self.remote.run(self.host, command, stdin=stdin, timeout_s=timeout_s)

    async def refused(self, host: Host, command: str = "true", timeout_s: float = 20.0) -> Fault:
        try:
            await self.remote.run(host, command, timeout_s=timeout_s)
        except RemoteError as error:
            self.assertIn(host.address, error.text)
            return error.kind
        raise AssertionError(f"{command!r} was run")

    async def test_failure_carries_code_and_both_outputs(self) -> None:
        """stdout and stderr stay apart."""
        self.script("echo out; echo err >&2; exit 7", exit_code=7, stdout="out\n", stderr="err\n")
        result = await self.run_it("echo out; echo err >&2; exit 7")
        self.assertEqual(
            (result.exit_code, result.signal, result.stdout, result.stderr),
            (7, "", "out\n", "err\n"),
        )

    async def test_signal_has_no_exit_code(self) -> None:
        """A killed command says by which signal."""
        self.script("kill -9 $$", exit_code=None, signal="KILL")
        result = await self.run_it("kill -9 $$")
        self.assertEqual((result.exit_code, result.signal), (None, "KILL"))

    async def test_stdin_of_five_megabytes_arrives_whole(self) -> None:
        """More than any window takes at once; the command reads all of it, then EOF."""
        content = bytes(range(256)) * (5_000_000 // 256)
        expected = hashlib.sha256(content).hexdigest()
        self.script("sha256sum", stdout=f"{expected}  -\n")
        result = await self.run_it("sha256sum", stdin=content)
        self.assertEqual(result.stdout.split()[0], expected)

    async def test_unread_stdin_does_not_hang(self) -> None:
        """A command that ends without reading its stdin still ends."""
        self.script("exit 3", exit_code=3)
        result = await self.run_it("exit 3", stdin=b"x" * 3_000_000)
        self.assertEqual(result.exit_code, 3)

    async def test_twenty_commands_at_once_all_answer(self) -> None:
        """More commands than channels wait for their turn."""
        for n in range(20):
            self.script(f"sleep 0.1; echo {n}", stdout=f"{n}\n")
        results = await gather(
            [lambda n=n: self.run_it(f"sleep 0.1; echo {n}") for n in range(20)], 20
        )
        said = [r.stdout if isinstance(r, CommandResult) else repr(r) for r in results]
        self.assertEqual(said, [f"{n}\n" for n in range(20)])

    async def test_host_key_is_learnt_and_pinned(self) -> None:
        """The key of the first contact is accepted from then on."""
        learnt = (await self.run_it("true")).host_key
        self.assertRegex(learnt, r"^ssh-ed25519 \S+$")
        pinned = evolve(self.host, host_key=learnt)
        result = await self.remote.run(pinned, "true", timeout_s=20.0)
        self.assertEqual((result.exit_code, result.host_key), (0, learnt))

    async def test_changed_host_key_is_refused(self) -> None:
        """Another machine at the address gets no command."""
        learnt = (await self.run_it("true")).host_key
        await self.change_host_key()
        kind = await self.refused(evolve(self.host, host_key=learnt))
        self.assertEqual(kind, Fault.HOST_KEY)

    async def test_unknown_key_is_refused(self) -> None:
        """A key that nobody authorized opens nothing."""
        kind = await self.refused(evolve(self.host, private_key=self.other_key()))
        self.assertEqual(kind, Fault.UNAUTHORIZED)

    async def test_rsa_key_is_accepted(self) -> None:
        """The user's own key pair may be RSA; it is not signed with SHA-1."""
        host = evolve(self.host, private_key=self.rsa_key())
        self.assertEqual((await self.remote.run(host, "true", timeout_s=20.0)).exit_code, 0)

    async def test_large_output_keeps_both_ends(self) -> None:
        """Of ten megabytes the first and last 128 KiB come back, and how much is missing."""
        command = "echo begin; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo end"
        cut = "begin\n" + "x" * 131_066 + "\n[9737867 bytes left out]\n" + "x" * 131_067 + "\nend\n"
        self.script(command, stdout=cut)
        result = await self.run_it(command)
        self.assertEqual((result.exit_code, result.stdout), (0, cut))

    async def test_slow_command_is_stopped(self) -> None:
        """After the time-out the caller is told, and the connection still serves."""
        self.script("sleep 77", delay_s=77.0)
        self.assertEqual(await self.refused(self.host, "sleep 77", 0.5), Fault.TIMEOUT)
        self.assertEqual((await self.run_it("true")).exit_code, 0)

    async def test_broken_connection_is_told_and_mended(self) -> None:
        """A command whose connection breaks fails as unreachable; the next run works."""
        self.assertEqual((await self.run_it("true")).exit_code, 0)
        self.cut()
        self.assertEqual(await self.refused(self.host, "sleep 78"), Fault.UNREACHABLE)
        self.assertEqual((await self.run_it("true")).exit_code, 0)
