"""`svcd doctor` on settings that open svcd: each opening by the name of its setting."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.finding import Scene
from svcd.cli.openings import examine_openings
from svcd.settings import load

REAL = ("auth.mode=keystone", "cloud.kind=openstack", "cloud.auth_url=https://cloud.test/v3")
PROXY = "server.trusted_proxies=127.0.0.1,unix"


class OpeningsTests(SynchronousTestCase):
    def warnings(self, *flags: str) -> list[str]:
        """Subject, text and remedy of each finding that is not good; all of them are warnings."""
        found = list(examine_openings(Scene(load(None, {}, flags).settings)))
        self.assertEqual([f.what for f in found if not f.good and not f.warning], [])
        return [f"{f.what}: {f.text} - {f.remedy}" for f in found if not f.good]

    def test_the_defaults_open_nothing(self) -> None:
        """Also with a real cloud, TLS of svcd's own, a socket file, a cloud on loopback."""
        self.assertEqual(self.warnings(), [])
        for flags in (
            (),
            ("server.listen=ssl:443:privateKey=k.pem",),
            ("server.listen=unix:/run/svcd.sock",),
            ("cloud.auth_url=http://127.0.0.1:5000/v3",),
        ):
            self.assertEqual(self.warnings(*REAL, *flags, PROXY), [])

    def test_a_listener_for_a_proxy_needs_its_name(self) -> None:
        """With logins, on loopback or a socket file: all callers would have one address."""
        for listener in ("tcp:127.0.0.1:8386", "tcp:localhost:1", "unix:/run/svcd.sock"):
            (found,) = self.warnings(*REAL, f"server.listen={listener}")
            self.assertIn("server.trusted_proxies: none", found)
            self.assertEqual(self.warnings(*REAL, f"server.listen={listener}", PROXY), [])
        beyond = "server.listen=ssl:443:privateKey=k.pem"
        self.assertEqual(self.warnings(*REAL, beyond), [])

    def test_each_opening_is_named(self) -> None:
        """With the way back."""
        for flags, parts in (
            (
                ("auth.allow_none=true", "server.listen=tcp:1"),
                ("auth.allow_none", "auth.mode=keystone"),
            ),
            ((*REAL, "server.listen=tcp:1"), ("encryption: ", "server.listen", "ssl:")),
            ((*REAL, "cloud.auth_url=http://cloud.test/v3"), ("identity service", "https://")),
            ((*REAL, "auth.write_roles=operator"), ("auth.write_roles", "auth.read_roles")),
            (("server.trusted_proxies=0.0.0.0/0",), ("server.trusted_proxies", "invent")),
            (("server.trusted_proxies=0.0.0.0/1,128.0.0.0/1",), ("0.0.0.0/1, 128.0.0.0/1",)),
            (("server.trusted_proxies=::/0",), ("::/0", "invent")),
            (("server.hosts=*",), ("server.hosts: ", "DNS rebinding")),
            (("log.audit=off",), ("log.audit: off", "--set log.audit=FILE")),
        ):
            found = self.warnings(*flags)
            for part in parts:
                self.assertIn(part, found[0], flags)
