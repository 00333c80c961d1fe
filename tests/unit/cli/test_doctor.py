"""`svcd doctor`: good machines, bad machines, and the cure for each fault."""

from __future__ import annotations

import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.doctor import examine
from svcd.cli.finding import Finding
from svcd.settings import load


class DoctorTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.state = Path(self.mktemp()).absolute()

    def findings(self, *flags: str) -> dict[str, Finding]:
        """Findings by their subject; ports that are free unless given."""
        defaults = [
            f"server.state_dir={self.state}",
            "server.listen=tcp:127.0.0.1:0",
            "cloud.listen=tcp:127.0.0.1:0",
            "plugins.enabled=fake",
        ]
        found = examine(load(None, {}, [*defaults, *flags]).settings)
        return {f.what.split(" /")[0]: f for f in found}

    def test_good_machine(self) -> None:
        """All is well, nothing has a cure, and nothing was made."""
        found = self.findings()
        self.assertEqual([f for f in found.values() if not f.good or f.cure], [])
        self.assertLessEqual(
            {"python", "settings", "state folder", "server.listen", "loopback addresses"},
            set(found),
        )
        self.assertFalse(self.state.exists())

    def test_settings_that_do_not_go_together(self) -> None:
        """The rest is not checked."""
        found = self.findings("embedded.network=garbage")
        self.assertEqual(list(found), ["python", "settings"])
        self.assertFalse(found["settings"].good)

    def test_taken_port(self) -> None:
        """With the way to another one."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            text = f"tcp:127.0.0.1:{taken.getsockname()[1]}"
            finding = self.findings(f"server.listen={text}")["server.listen"]
        self.assertFalse(finding.good)
        self.assertIn("in use", finding.text)
        self.assertIn("--set server.listen=tcp:127.0.0.1:0", finding.cure)

    def test_port_in_the_words_of_twisted(self) -> None:
        """`tcp:PORT:interface=HOST` is checked too."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            text = f"tcp:{taken.getsockname()[1]}:interface=127.0.0.1"
            finding = self.findings(f"server.listen={text}")["server.listen"]
        self.assertFalse(finding.good)
        self.assertIn("in use", finding.text)

    def test_port_of_the_running_daemon(self) -> None:
        """Is as it should be, when it is the daemon of the same state folder."""
        self.state.mkdir()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            (self.state / "endpoints.json").write_text(
                f'{{"api": "http://127.0.0.1:{port}", "pid": {os.getpid()}}}'
            )
            finding = self.findings(f"server.listen=tcp:127.0.0.1:{port}")["server.listen"]
        self.assertTrue(finding.good)
        self.assertEqual(
            finding.text, f"tcp:127.0.0.1:{port} is served by process {os.getpid()} already"
        )

    def test_port_that_a_dead_daemon_had(self) -> None:
        """What is left of its `endpoints.json` excuses nobody else who listens there."""
        self.state.mkdir()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            (self.state / "endpoints.json").write_text(
                f'{{"api": "http://127.0.0.1:{port}", "pid": 999999999}}'
            )
            finding = self.findings(f"server.listen=tcp:127.0.0.1:{port}")["server.listen"]
        self.assertFalse(finding.good)

    def test_file_in_place_of_the_state_folder(self) -> None:
        """Not writable."""
        self.state.write_text("mine")
        finding = self.findings()["state folder"]
        self.assertFalse(finding.good)
        self.assertIn("server.state_dir", finding.cure)

    def test_addresses_that_are_not_ours(self) -> None:
        """A network outside of 127.0.0.0/8."""
        finding = self.findings("embedded.network=203.0.113.0/24", "auth.allow_none=true")[
            "loopback addresses"
        ]
        self.assertFalse(finding.good)
        self.assertIn("embedded.network=127.1.0.0/16", finding.cure)

    def test_missing_software(self) -> None:
        """The command that builds it."""
        tree = self.state / "image" / "vanilla-3.5.0"
        finding = self.findings("plugins.enabled=vanilla")["vanilla software"]
        self.assertFalse(finding.good)
        self.assertEqual(finding.cure, f"svcd image build vanilla {tree}")

    def test_identity_service(self) -> None:
        """Answering, answering wrongly, and not there."""
        flags = ["cloud.username=u", "cloud.password=p", "cloud.project=x"]
        server = HTTPServer(("127.0.0.1", 0), _Keystone)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        base = f"http://127.0.0.1:{server.server_port}"
        try:
            found = [
                self.findings("cloud.kind=openstack", f"cloud.auth_url={base}{path}", *flags)
                for path in ("/v3", "/none")
            ]
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        found.append(self.findings("cloud.kind=openstack", f"cloud.auth_url={base}/v3", *flags))
        self.assertIn("svcd's user", found[0])
        told = [each["identity service"] for each in found]
        self.assertEqual([f.good for f in told], [True, False, False])
        self.assertIn("/none answered 404", told[1].text)
        self.assertIn("cannot be reached", told[2].text)


class _Keystone(BaseHTTPRequestHandler):
    """Answers /v3 only."""

    def do_GET(self) -> None:
        body = b'{"version": {"id": "v3.14"}}' if self.path == "/v3" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""
