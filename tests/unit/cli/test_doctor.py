"""`svcd doctor`: good machines, bad machines, and the remedy for each fault."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.doctor import examine
from svcd.cli.door import running
from svcd.cli.finding import Finding, Scene
from svcd.cli.start_doctor import examine_start
from svcd.settings import load
from tests.unit.provisioning.distributions.vanilla.image.trees import (
    empty_tree,
    without_class_data,
)


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
        """All is well, nothing has a remedy, and nothing was made."""
        found = self.findings()
        found.pop("machines")  # those of other programs on the machine of this test
        self.assertEqual([f for f in found.values() if not f.good or f.remedy], [])
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

    def test_a_link_to_no_key(self) -> None:
        """A start would refuse it, too."""
        path = self.state.parent / f"{self.state.name}.key"
        path.symlink_to(path.with_name("nothing"))
        found = self.findings(f"server.seal_key={path}")["seal key"]
        self.assertFalse(found.good)
        self.assertEqual(found.text, f"cannot use key file {path}: No such file or directory")

    def test_a_path_of_the_key_that_cannot_be_read(self) -> None:
        """The other checks are made."""
        path = self.state / ("x" * 300) / "seal.key"
        self.state.mkdir()
        found = self.findings(f"server.seal_key={path}")
        self.assertEqual(found["seal key"].text, f"{path} cannot be read: File name too long")
        self.assertTrue(found["server.listen"].good)

    def test_one_port_for_two_listeners(self) -> None:
        """A free one, which the second listener would find taken."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            text = f"tcp:127.0.0.1:{probe.getsockname()[1]}"
        found = self.findings(f"server.listen={text}", f"cloud.listen={text}")
        self.assertTrue(found["server.listen"].good)
        self.assertFalse(found["cloud.listen"].good)
        self.assertEqual(found["cloud.listen"].text, f"{text} is the port of server.listen")

    def test_taken_port(self) -> None:
        """With the way to another one."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            text = f"tcp:127.0.0.1:{taken.getsockname()[1]}"
            finding = self.findings(f"server.listen={text}")["server.listen"]
        self.assertFalse(finding.good)
        self.assertRegex(finding.text, rf"is in use by process {os.getpid()} \(.+\)")
        self.assertIn("--set server.listen=tcp:127.0.0.1:0", finding.remedy)

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

    def test_port_of_a_daemon_behind_a_proxy(self) -> None:
        """Its process listens there, whatever URL `endpoints.json` names."""
        self.state.mkdir()
        text = f'{{"api": "https://svcd.example", "pid": {os.getpid()}}}'
        (self.state / "endpoints.json").write_text(text)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            finding = self.findings(f"server.listen=tcp:127.0.0.1:{port}")["server.listen"]
        self.assertTrue(finding.good, finding.text)

    def test_daemon_with_another_port_than_the_settings(self) -> None:
        """A free port of the settings is not the daemon's: a warning. Any port is in order."""
        self.state.mkdir()
        api = "http://127.0.0.1:1"
        (self.state / "endpoints.json").write_text(f'{{"api": "{api}", "pid": {os.getpid()}}}')
        served = f"process {os.getpid()}, serves {api}: it has other settings than this command"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            listen = f"tcp:127.0.0.1:{free.getsockname()[1]}"
        found = self.findings(f"server.listen={listen}", "cloud.listen=tcp:127.0.0.1:0")
        self.assertEqual(found["server.listen"].word, "warn")
        self.assertEqual(
            found["server.listen"].text, f"{listen} is free, but the running daemon, {served}"
        )
        self.assertEqual(found["cloud.listen"].text, "tcp:127.0.0.1:0 is free")
        self.assertEqual(
            self.findings()["server.listen"].text,
            f"tcp:127.0.0.1:0 is any free port; process {os.getpid()} serves {api}",
        )

    def test_settings_that_are_not_given_are_those_of_the_running_daemon(self) -> None:
        """Its endpoints are found as by every command; the default ports do not matter."""
        self.state.mkdir()
        api, identity = "http://127.0.0.1:1", "http://127.0.0.1:2/v3"
        (self.state / "endpoints.json").write_text(
            f'{{"api": "{api}", "identity": "{identity}", "pid": {os.getpid()}}}'
        )
        settings = load(None, {}, [f"server.state_dir={self.state}"]).settings
        found = {
            each.what: each for each in examine_start(Scene(settings, known=running(self.state)))
        }
        for key, url in (("server.listen", api), ("cloud.listen", identity)):
            self.assertEqual(found[key], Finding(key, True, f"process {os.getpid()} serves {url}"))

    def test_port_of_another_program_beside_a_running_daemon(self) -> None:
        """Each port has its own process, whatever `endpoints.json` says about the daemon."""
        self.state.mkdir()
        code = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen();"
        code += "print(s.getsockname()[1], flush=True); input()"
        with (
            subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            ) as other,
            socket.socket() as taken,
        ):
            assert other.stdin and other.stdout
            theirs = int(other.stdout.readline())
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            ours = taken.getsockname()[1]
            (self.state / "endpoints.json").write_text(
                f'{{"api": "http://127.0.0.1:{ours}", "identity": "http://127.0.0.1:{theirs}",'
                f' "pid": {os.getpid()}}}'
            )
            found = self.findings(
                f"server.listen=tcp:127.0.0.1:{ours}", f"cloud.listen=tcp:127.0.0.1:{theirs}"
            )
            other.stdin.close()
        self.assertTrue(found["server.listen"].good)
        self.assertFalse(found["cloud.listen"].good)
        self.assertIn(f"is in use by process {other.pid} (", found["cloud.listen"].text)
        self.assertIn(f"ps -p {other.pid} shows it", found["cloud.listen"].remedy)

    def test_a_login_of_settings_that_the_embedded_cloud_does_not_use(self) -> None:
        """It is a warning: the daemon works."""
        finding = self.findings("cloud.username=me", "cloud.password=s3cret")["svcd's user"]
        self.assertEqual(finding.word, "warn")
        self.assertEqual(
            finding.text,
            "cloud.username, cloud.password: without effect, because cloud.kind is embedded",
        )

    def test_variables_that_name_no_setting(self) -> None:
        """A warning with the nearest name."""
        loaded = load(None, {"SVCD_SEVRER_LISTEN": "x"}, [f"server.state_dir={self.state}"])
        (finding,) = [
            f for f in examine(loaded.settings, None, loaded.unknown) if f.what == "environment"
        ]
        self.assertEqual(finding.word, "warn")
        self.assertIn("did you mean SVCD_SERVER_LISTEN?", finding.text)

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
        self.assertIn("server.state_dir", finding.remedy)

    def test_addresses_that_are_not_ours(self) -> None:
        """A network outside of 127.0.0.0/8."""
        finding = self.findings("embedded.network=203.0.113.0/24", "auth.allow_none=true")[
            "loopback addresses"
        ]
        self.assertFalse(finding.good)
        self.assertIn("embedded.network=127.1.0.0/16", finding.remedy)

    def test_addresses_that_other_programs_use(self) -> None:
        """New machines get others."""
        if not Path("/proc/net/tcp").exists():
            self.skipTest("this system has no /proc")
        network = "127.4.6.0/24"
        with socket.create_server(("127.4.6.9", 0)), socket.create_server(("127.4.7.9", 0)):
            finding = self.findings(f"embedded.network={network}")["loopback addresses"]
        text = "; programs listen on 1 of its addresses, a new machine gets another"
        self.assertEqual((finding.good, finding.text), (True, f"{network} can be used{text}"))
        finding = self.findings(f"embedded.network={network}")["loopback addresses"]
        self.assertEqual(finding.text, f"{network} can be used")

    def test_missing_software(self) -> None:
        """The command that builds it."""
        tree = self.state / "image" / "vanilla-3.5.0"
        finding = self.findings("plugins.enabled=vanilla")["vanilla software"]
        self.assertFalse(finding.good)
        self.assertEqual(finding.remedy, f"svcd image build vanilla {tree}")

    def test_software_without_spark(self) -> None:
        """It is complete as it was asked for; the command that makes it again keeps the choice."""
        tree = self.state / "image" / "vanilla-3.5.0"
        empty_tree(tree, spark=False)
        finding = self.findings("plugins.enabled=vanilla")["vanilla software"]
        self.assertEqual((finding.good, finding.text), (True, f"complete in {tree}, without Spark"))
        (tree / "java/opens").unlink()
        finding = self.findings("plugins.enabled=vanilla")["vanilla software"]
        self.assertEqual(finding.remedy, f"svcd image build vanilla {tree} --without spark")

    def test_software_without_class_data(self) -> None:
        """A warning: everything works, and starts later."""
        tree = self.state / "image" / "vanilla-3.5.0"
        empty_tree(tree)
        without_class_data(tree)
        finding = self.findings("plugins.enabled=vanilla")["vanilla software"]
        self.assertEqual(
            (finding.word, finding.text, finding.remedy),
            (
                "warn",
                "complete, but daemons and jobs start later: x.jsa is missing",
                f"{tree}/bin/class-data",
            ),
        )

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
