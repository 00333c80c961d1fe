"""The start of processes, with real ones."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Any

from twisted.internet import process
from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure
from twisted.trial.unittest import TestCase

from svcd.embedded.machine_processes import SessionLeaders, session_leader
from tests.support.processes import reactor


class _Run(ProcessProtocol):
    """Collects the output; `ended` is called with the exit code."""

    transport: Any

    def __init__(self) -> None:
        self.output = b""
        self.errors = b""
        self.ended: Deferred[int] = Deferred()

    def outReceived(self, data: bytes) -> None:
        self.output += data

    def errReceived(self, data: bytes) -> None:
        self.errors += data

    def processEnded(self, reason: Failure) -> None:
        self.ended.callback(reason.value.exitCode)


class SessionLeaderTests(TestCase):
    timeout = 60

    def start(self, shell: str, *words: str, **environment: str) -> _Run:
        run = _Run()
        session_leader(reactor, run, {"PATH": os.environ["PATH"], **environment}, shell, *words)
        return run

    async def test_streams_words_and_environment(self) -> None:
        """All three pipes, the given variables alone, and the code of its end."""
        run = self.start(
            'cat; echo "$0 $1 $X"; env | cut -d= -f1 | sort; echo bad >&2; exit 7',
            "a b",
            "ü",
            X="y",
        )
        run.transport.write(b"in\n")
        run.transport.closeStdin()
        self.assertEqual(await run.ended, 7)
        lines = run.output.decode().splitlines()
        self.assertEqual(lines[:2], ["in", "a b ü y"])
        of_shell = {"PWD", "OLDPWD", "SHLVL", "_"}
        self.assertEqual(set(lines[2:]) - of_shell, {"PATH", "X"})
        self.assertEqual(run.errors, b"bad\n")

    async def test_a_session_of_its_own(self) -> None:
        """Its pid is that of the session and of the group."""
        run = self.start('read -r line; exec cut -d " " -f 5,6 "/proc/$$/stat"')
        pid = run.transport.pid
        self.assertEqual((os.getsid(pid), os.getpgid(pid)), (pid, pid))
        run.transport.write(b"\n")
        self.assertEqual(await run.ended, 0)
        self.assertEqual(run.output, b"%d %d\n" % (pid, pid))

    async def test_open_files_are_not_for_children(self) -> None:
        """Nor are they looked at: many machines have many of them. The last one is the folder's."""
        sockets = [socket.socket() for _ in range(50)]
        for each in sockets:
            self.addCleanup(each.close)
        asked: list[None] = []
        self.patch(process, "_listOpenFDs", lambda: asked.append(None) or [])
        run = self.start("exec ls /proc/self/fd")
        self.assertEqual(await run.ended, 0)
        self.assertEqual((run.output.split(), asked), ([b"0", b"1", b"2", b"3"], []))

    async def test_ignored_signals_end_the_child(self) -> None:
        """Python ignores SIGPIPE, and a program that is started with nohup SIGHUP."""
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            run = self.start('grep SigIgn "/proc/$$/status"')
        finally:
            signal.signal(signal.SIGHUP, before)
        self.assertEqual(await run.ended, 0)
        ignored = int(run.output.split()[1], 16)
        for number in (signal.SIGHUP, signal.SIGPIPE):
            self.assertEqual(ignored >> (number - 1) & 1, 0, number)

    async def test_program_that_is_not_there(self) -> None:
        """An OSError, and no pipe stays open."""
        before = len(list(Path("/proc/self/fd").iterdir()))
        with self.assertRaises(OSError):
            SessionLeaders(reactor).spawnProcess(_Run(), "/nowhere/sh", ["sh"])
        self.assertEqual(len(list(Path("/proc/self/fd").iterdir())), before)
