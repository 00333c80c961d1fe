"""Listening sockets and their processes in the words of the kernel (little-endian machines)."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from svcd.runtime.listeners import Listener, described, listeners, owners, parsed

TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0A003D7F:08AE 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 4711 1 0 100 0
   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 0 12 1 0 100 0 0
   2: 0A003D7F:08AE 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000 0 13 1 0 20 4 30
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue rx
   0: 0000000000000000FFFF00000B003D7F:1F54 00000000000000000000000000000000:0000 0A 0 0 0 0 0 14
   1: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 0 0 0 0 0 15
   2: 00000000000000000000000001000000:1F91 00000000000000000000000000000000:0000 0A 0 0 0 0 0 16
   3: cut
"""


class ListenersTests(SynchronousTestCase):
    def setUp(self) -> None:
        if sys.byteorder != "little":
            raise SkipTest("the tables of this test are of a little-endian machine")

    def proc(self) -> Path:
        """A folder like /proc with the tables, and process 77, which holds the first socket."""
        proc = Path(self.mktemp()).absolute()
        (proc / "net").mkdir(parents=True)
        (proc / "net" / "tcp").write_text(TCP)
        (proc / "net" / "tcp6").write_text(TCP6)
        (proc / "77" / "fd").mkdir(parents=True)
        (proc / "77" / "fd" / "3").symlink_to("socket:[4711]")
        (proc / "77" / "cwd").symlink_to("/home/ada")
        words = [
            "/a/bin/python",
            "/a/bin/twistd",
            "-n",
            "svcd",
            "--set",
            "embedded.password=secret99",
        ]
        (proc / "77" / "cmdline").write_text("\0".join(words) + "\0")
        return proc

    def test_sockets_that_listen_are_found(self) -> None:
        """With the addresses of IPv4 that the kernel shows as IPv6, and no other connections."""
        self.assertEqual(
            list(parsed(TCP)),
            [Listener("127.61.0.10", 2222, "4711"), Listener("0.0.0.0", 8080, "12")],
        )
        self.assertEqual(
            list(parsed(TCP6)),
            [
                Listener("127.61.0.11", 8020, "14"),
                Listener("::", 22, "15"),
                Listener("::1", 8081, "16"),
            ],
        )

    def test_processes_are_found_and_described(self) -> None:
        """By the socket; the command line shows no secret."""
        proc = self.proc()
        self.assertEqual(owners("127.61.0.10", 2222, proc), [77])
        self.assertEqual(owners("127.61.0.10", 2223, proc), [])
        text = "process 77 (python twistd -n svcd --set embedded.password=***, in /home/ada)"
        self.assertEqual(described(77, proc), text)
        self.assertEqual(described(78, proc), "process 78")
        (proc / "77" / "cmdline").write_text("java\0" + "x" * 200)
        self.assertEqual(described(77, proc), f"process 77 (java {'x' * 95}…, in /home/ada)")

    def test_a_real_socket_is_found(self) -> None:
        """That of this process."""
        if not Path("/proc/net/tcp").exists():
            raise SkipTest("this system has no /proc")
        with socket.socket() as server:
            server.bind(("127.4.4.4", 0))
            server.listen()
            port = server.getsockname()[1]
            found = [each for each in listeners() if each.address == "127.4.4.4"]
            self.assertEqual([each.port for each in found], [port])
            self.assertEqual(owners("127.4.4.4", port), [os.getpid()])
