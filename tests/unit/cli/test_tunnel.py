"""`svcd tunnel`: its pages and its ssh command. Real: tests/live/test_spark_connect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import tunnel
from svcd.cli.exits import CommandError


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
        self.assertIn(
            "IdentitiesOnly=yes", words
        )  # a server takes six keys, an agent may have more
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
