"""`svcd doctor`: good machines, bad machines, and the remedy for each fault."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.cloud_doctor import CloudUser
from svcd.cli.database_doctor import examine_database, refused_ports
from svcd.cli.doctor import examine
from svcd.cli.door import running
from svcd.cli.embedded_doctor import examine_embedded
from svcd.cli.finding import Finding, Scene
from svcd.cli.http import Answer
from svcd.cli.start_doctor import examine_start
from svcd.settings import load
from tests.support.http import AnsweredBy
from tests.unit.cli.databases import lived_in
from tests.unit.provisioning.distributions.vanilla.image.trees import empty_tree, without_class_data

REAL = ("cloud.kind=openstack", "cloud.auth_url=https://cloud.test/v3")


class _Case(SynchronousTestCase):
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


class DoctorTests(_Case):
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

    def test_keys_that_cannot_be_read(self) -> None:
        """A link to no key, which a start would refuse, and a wrong path; the rest is checked."""
        link = self.state / "link.key"
        self.state.mkdir()
        link.symlink_to(self.state / "nothing")
        long = self.state / ("x" * 300) / "seal.key"
        for path, text in (
            (link, f"cannot use key file {link}: No such file or directory"),
            (long, f"{long} cannot be read: File name too long"),
        ):
            found = self.findings(f"server.seal_key={path}")
            self.assertEqual((found["seal key"].good, found["seal key"].text), (False, text))
            self.assertTrue(found["server.listen"].good)

    def test_settings_without_effect(self) -> None:
        """A login that the embedded cloud does not use, and variables that name no setting."""
        finding = self.findings("cloud.username=me", "cloud.password=s3cret")["svcd's user"]
        text = "cloud.username, cloud.password: without effect, because cloud.kind is embedded"
        self.assertEqual((finding.word, finding.text), ("warn", text))
        loaded = load(None, {"SVCD_SEVRER_LISTEN": "x"}, [f"server.state_dir={self.state}"])
        found = {f.what: f for f in examine(loaded.settings, None, loaded.unknown)}
        self.assertEqual(found["environment"].word, "warn")
        self.assertIn("did you mean SVCD_SERVER_LISTEN?", found["environment"].text)

    def test_addresses_that_are_not_ours(self) -> None:
        """A network outside of 127.0.0.0/8."""
        found = self.findings("embedded.network=203.0.113.0/24", "auth.allow_none=true")
        finding = found["loopback addresses"]
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

    def test_software(self) -> None:
        """What is missing has the command that makes it, with the choice of the former build."""
        tree = self.state / "image" / "vanilla-3.5.0"
        build = f"svcd image build vanilla {tree}"

        def found() -> tuple[str, str, str]:
            finding = self.findings("plugins.enabled=vanilla")["vanilla software"]
            return finding.word, finding.text, finding.remedy

        word, _, remedy = found()
        self.assertEqual((word, remedy), ("fail", build))
        empty_tree(tree, spark=False)
        self.assertEqual(found(), ("ok", f"complete in {tree}, without Spark", ""))
        without_class_data(tree)
        later = "complete, but daemons and jobs start later: x.jsa is missing"
        self.assertEqual(found(), ("warn", later, f"{tree}/bin/class-data"))
        (tree / "java/opens").unlink()
        self.assertEqual(found()[2], f"{build} --without spark")

    def test_cloud_that_is_not_there(self) -> None:
        """The rest of the machine is checked."""
        real = ("cloud.kind=openstack", "cloud.auth_url=http://127.0.0.1:1/v3", "cloud.username=u",
                "cloud.password=p", "cloud.project=x")  # fmt: skip
        found = self.findings(*real)
        self.assertFalse(found["identity service"].good)
        self.assertIn("cannot be reached", found["identity service"].text)
        self.assertTrue(found["server.listen"].good)


class PortTests(_Case):
    """Ports of the settings, free and taken, beside the daemon of the state folder or without."""

    def setUp(self) -> None:
        super().setUp()
        self.state.mkdir()
        self.me = os.getpid()

    def taken(self) -> int:
        """A port on which this process listens."""
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        return int(listening.getsockname()[1])

    def free(self) -> int:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            return int(probe.getsockname()[1])

    def daemon(self, **known: object) -> None:
        """What a daemon has written, or one that is dead."""
        (self.state / "endpoints.json").write_text(json.dumps({"pid": self.me, **known}))

    def listener(self, port: int) -> Finding:
        return self.findings(f"server.listen=tcp:127.0.0.1:{port}")["server.listen"]

    def test_one_port_for_two_listeners(self) -> None:
        """A free one, which the second listener would find taken."""
        text = f"tcp:127.0.0.1:{self.free()}"
        found = self.findings(f"server.listen={text}", f"cloud.listen={text}")
        self.assertTrue(found["server.listen"].good)
        self.assertEqual(
            (found["cloud.listen"].good, found["cloud.listen"].text),
            (False, f"{text} is the port of server.listen"),
        )

    def test_taken_port(self) -> None:
        """With the way to another one; in the words of Twisted, too."""
        port = self.taken()
        for text in (f"tcp:127.0.0.1:{port}", f"tcp:{port}:interface=127.0.0.1"):
            finding = self.findings(f"server.listen={text}")["server.listen"]
            self.assertFalse(finding.good)
            self.assertRegex(finding.text, rf"is in use by process {self.me} \(.+\)")
            self.assertIn("--set server.listen=tcp:127.0.0.1:0", finding.remedy)

    def test_port_of_the_running_daemon(self) -> None:
        """Is as it should be, also behind a proxy. What a dead daemon left excuses nobody.

        Nor does another process whose port this is not.
        """
        port = self.taken()
        for api, pid, good in (
            (f"http://127.0.0.1:{port}", self.me, True),
            ("https://svcd.example", self.me, True),
            (f"http://127.0.0.1:{port}", 999999999, False),
            (f"http://127.0.0.1:{port}", os.getppid(), False),
        ):
            self.daemon(api=api, pid=pid)
            finding = self.listener(port)
            self.assertEqual(finding.good, good, finding.text)
            if good:
                text = f"tcp:127.0.0.1:{port} is served by process {self.me} already"
                self.assertEqual(finding.text, text)

    def test_daemon_with_another_port_than_the_settings(self) -> None:
        """A free port of the settings is not the daemon's: a warning. Any port is in order."""
        api = "http://127.0.0.1:1"
        self.daemon(api=api)
        port = self.free()
        self.assertEqual(
            self.listener(port).text,
            f"tcp:127.0.0.1:{port} is free, but the running daemon, process {self.me}, serves"
            f" {api}: it has other settings than this command",
        )
        self.assertEqual(self.listener(port).word, "warn")
        found = self.findings()
        self.assertEqual(found["cloud.listen"].text, "tcp:127.0.0.1:0 is free")
        text = f"tcp:127.0.0.1:0 is any free port; process {self.me} serves {api}"
        self.assertEqual(found["server.listen"].text, text)

    def test_settings_that_are_not_given_are_those_of_the_running_daemon(self) -> None:
        """Its endpoints are found as by every command; the default ports do not matter."""
        api, identity = "http://127.0.0.1:1", "http://127.0.0.1:2/v3"
        self.daemon(api=api, identity=identity)
        settings = load(None, {}, [f"server.state_dir={self.state}"]).settings
        scene = Scene(settings, known=running(self.state))
        found = {each.what: each for each in examine_start(scene)}
        for key, url in (("server.listen", api), ("cloud.listen", identity)):
            self.assertEqual(found[key], Finding(key, True, f"process {self.me} serves {url}"))


class EmbeddedLoginTests(SynchronousTestCase):
    """The login of a user at a running embedded cloud, which answers with `status`."""

    login = {"OS_USERNAME": "demo", "OS_PASSWORD": "s3cret", "OS_PROJECT_NAME": "demo"}

    def user(self, status: int, user: CloudUser, running: bool = True) -> Finding:
        self.sent: list[tuple[str, str, Any]] = []

        def send(method: str, url: str, body: bytes | None, _headers: Any) -> Answer:
            self.sent.append((method, url, body and json.loads(body)))
            if status >= 300:
                return Answer(status, {}, b"{}")
            body = json.dumps({"token": {"project": {"id": "demo"}}}).encode()
            return Answer(status, {"x-subject-token": "t"}, body)

        known = {"identity": "http://127.0.0.1:8387/identity/v3"} if running else {}
        scene = Scene(load(None, {}).settings, user, known=known)
        _, finding, *_ = examine_embedded(scene, AnsweredBy(send))
        return finding

    def test_a_password(self) -> None:
        """The login of `svcd why`; a refusal has the place of the right one, and no password."""
        finding = self.user(201, CloudUser("", self.login))
        self.assertEqual((finding.word, finding.text), ("ok", "demo can log in, project demo"))
        ((method, url, body),) = self.sent
        self.assertEqual((method, url), ("POST", "http://127.0.0.1:8387/identity/v3/auth/tokens"))
        self.assertEqual(body["auth"]["identity"]["password"]["user"]["password"], "s3cret")
        self.assertEqual(body["auth"]["scope"]["project"]["name"], "demo")
        finding = self.user(401, CloudUser("", self.login))
        self.assertEqual(finding.word, "fail")
        self.assertIn("was refused", finding.text)
        self.assertIn("endpoints.json", finding.remedy)
        self.assertNotIn("s3cret", finding.text + finding.remedy)

    def test_a_token(self) -> None:
        """It is valid, or it is refused."""
        found = [self.user(status, CloudUser("t", {})).word for status in (200, 404)]
        self.assertEqual(found, ["ok", "fail"])

    def test_a_login_that_is_not_sent(self) -> None:
        """One for another cloud, to which its password belongs, and one for none that runs."""
        other = CloudUser("", {**self.login, "OS_AUTH_URL": "https://cloud.example:5000"})
        finding = self.user(201, other)
        self.assertEqual((finding.word, self.sent), ("warn", []))
        self.assertIn("OS_AUTH_URL is https://cloud.example:5000", finding.text)
        finding = self.user(201, CloudUser("", self.login), running=False)
        self.assertEqual((finding.word, self.sent), ("warn", []))

    def test_a_password_that_is_not_the_running_daemons(self) -> None:
        """In the settings of the command."""
        settings = load(None, {}, ["embedded.password=other"]).settings
        known = {"username": "demo", "password": "p"}
        finding, *_ = examine_embedded(Scene(settings, known=known))
        self.assertEqual(finding.word, "warn")
        self.assertIn("embedded.password: not the value of the running daemon", finding.text)


class StoredClusterTests(SynchronousTestCase):
    """Stored clusters whose SSH port the settings refuse."""

    def test_refused_clusters_are_named_with_the_setting(self) -> None:
        """The setting keeps its ports; each new port is in it once."""
        clusters = [("a", "p", 22), ("b", "p", 2222), ("c", "q", 2022), ("d", "q", 2222)]
        found = refused_ports(["22"], clusters)
        self.assertEqual((found.word, found.what), ("fail", "cloud.ssh_ports"))
        self.assertTrue(
            found.text.endswith(
                ": b (project p, port 2222), c (project q, port 2022), d (project q, port 2222)"
            ),
            found.text,
        )
        self.assertIn("--set cloud.ssh_ports=22,2022,2222", found.remedy)

    def findings(self, *flags: str, state: Path | None = None) -> list[Finding]:
        given = [f"server.state_dir={state or lived_in(self.mktemp())}", *flags]
        found = examine_database(Scene(load(None, {}, given).settings))
        return [each for each in found if each.what == "cloud.ssh_ports"]

    def test_a_stored_cluster_is_found(self) -> None:
        """In the rows, while a daemon may use them."""
        (found,) = self.findings(*REAL)
        self.assertFalse(found.good)
        self.assertIn(": mine (project demo, port 2222)", found.text)
        self.assertTrue(self.findings(*REAL, "cloud.ssh_ports=22,2222")[0].good)

    def test_development_clouds_and_new_installations_have_no_finding(self) -> None:
        """svcd does not restrict ports there, or there are no rows."""
        loopback = ("cloud.kind=openstack", "cloud.auth_url=http://127.0.0.1:5000/v3")
        new = self.findings(*REAL, state=Path(self.mktemp()))
        self.assertEqual([self.findings(), self.findings(*loopback), new], [[], [], []])
