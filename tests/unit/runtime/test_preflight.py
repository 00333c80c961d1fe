"""Settings that cannot work together are refused before anything starts."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.declaration import SettingsError
from svcd.runtime.preflight import check
from svcd.settings import load


class PreflightTests(SynchronousTestCase):
    def refused(self, *flags: str) -> str:
        with self.assertRaises(SettingsError) as raised:
            check(load(None, {}, flags).settings)
        return str(raised.exception)

    def test_roles_that_lock_out_or_rule_everything(self) -> None:
        """An empty list refuses every caller, and a trust must not carry admin."""
        for key in ("auth.read_roles", "auth.write_roles", "cloud.trust_roles"):
            self.assertIn(f"{key} is empty", self.refused(f"{key}=,"))
        self.assertIn("cloud.trust_roles: admin", self.refused("cloud.trust_roles=member,Admin"))

    def test_hosts_are_names_or_addresses(self) -> None:
        """Without a port: the check of requests compares the host alone."""
        check(load(None, {}, ["server.hosts=svcd.test,10.0.0.5,fe80::1,*"]).settings)
        for wrong in ("svcd.test:8386", "http://svcd.test", "[::1]", "a b"):
            self.assertIn("without a scheme or a port", self.refused(f"server.hosts={wrong}"))

    def test_a_listener_without_a_kind_is_completed(self) -> None:
        """Not told to be open to other machines, whatever the login."""
        for key in ("server.listen", "server.admin_listen", "cloud.listen"):
            self.assertEqual(
                self.refused(f"{key}=127.0.0.1:9391"),
                f"{key}: 127.0.0.1:9391 does not say how to listen: write tcp:127.0.0.1:9391",
            )

    def test_proxies_are_addresses_or_networks(self) -> None:
        """Or every process that uses a socket file."""
        check(load(None, {}, ["server.trusted_proxies=10.0.0.5,10.1.0.0/16,unix"]).settings)
        self.assertIn(
            "'proxy.test' is no address", self.refused("server.trusted_proxies=proxy.test")
        )

    def test_no_login_beyond_this_machine_is_a_setting(self) -> None:
        """With a real cloud, or on a port that others reach: refused by default."""
        for flags, words in (
            ((*self.COMPLETE, "auth.mode=none"), "every project of the cloud"),
            (("server.listen=tcp:8386",), "other machines can reach server.listen (tcp:8386)"),
            (("server.listen=tcp:0.0.0.0:8386",), "reach server.listen"),
            (("server.listen=systemd:domain=INET:index=0",), "reach server.listen"),
            (("cloud.listen=tcp:192.0.2.1:8387",), "reach cloud.listen"),
            (("server.listen=tcp:1:interface=127.0.0.1:interface=0.0.0.0",), "server.listen"),
            (("embedded.network=10.1.0.0/16",), "embedded.network (10.1.0.0/16) is not within"),
            (("embedded.network=126.0.0.0/7",), "embedded.network"),
            ((*self.NEAR, "server.listen=tcp6:8386:interface=\\:\\:"), "reach server.listen"),
        ):
            text = self.refused(*flags)
            self.assertIn(words, text)
            self.assertIn("auth.allow_none=true", text)
            check(load(None, {}, [*flags, "auth.allow_none=true"]).settings)

    def test_no_login_on_this_machine_is_fine(self) -> None:
        """On loopback and socket files; a cloud on loopback counts as a development cloud."""
        for flags in (
            ("server.listen=tcp:localhost:1",),
            ("server.listen=tcp:[::1]:1", "cloud.listen=tcp:1:interface=127.0.0.1"),
            ("server.listen=unix:/run/svcd.sock:mode=600",),
            self.NEAR,
            (*self.COMPLETE, "server.listen=tcp:1"),
        ):
            check(load(None, {}, flags).settings)

    def test_a_socket_file_of_all_users_needs_a_login(self) -> None:
        """Twisted makes it with mode 666 when the setting has none."""
        text = self.refused("server.listen=unix:/run/svcd.sock")
        self.assertIn("unix:/run/svcd.sock:mode=600", text)
        check(load(None, {}, [*self.COMPLETE, "server.listen=unix:/run/svcd.sock"]).settings)

    COMPLETE = (
        "auth.mode=keystone",
        "cloud.kind=openstack",
        "cloud.auth_url=https://cloud.example/identity/v3",
        "cloud.username=svcd",
        "cloud.password=x",
        "cloud.project=service",
    )
    NEAR = (*COMPLETE, "cloud.auth_url=http://127.0.0.1:5000/v3", "auth.mode=none")

    def test_a_blank_in_the_folder_of_loopback_machines(self) -> None:
        """Hadoop would not start there; without Hadoop nothing is wrong with it."""
        folder = "server.state_dir=/srv/my state"
        text = self.refused(folder, "plugins.enabled=vanilla")
        self.assertIn("server.state_dir: '/srv/my state' has a blank in it", text)
        self.assertIn("name a folder without one", text)
        text = self.refused("embedded.image_prefix=/opt/a b", "plugins.enabled=vanilla")
        self.assertIn("embedded.image_prefix: '/opt/a b' has a blank in it", text)
        check(load(None, {}, [folder, "plugins.enabled=fake"]).settings)
        check(load(None, {}, [folder, "plugins.enabled=vanilla", *self.COMPLETE]).settings)

    def test_an_application_credential_is_refused(self) -> None:
        """Every cluster would fail, for it cannot use a trust."""
        text = self.refused(*self.COMPLETE, "cloud.application_credential_id=a")
        self.assertIn("svcd must use trusts and choose projects", text)

    def test_missing_parts_of_openstack_are_all_named(self) -> None:
        """In one go."""
        text = self.refused("cloud.kind=openstack", "cloud.username=svcd")
        self.assertIn("needs cloud.auth_url, cloud.password, cloud.project", text)

    def test_wrong_networks_ports_and_names(self) -> None:
        """Each with its setting."""
        for flag, words in (
            ("embedded.network=garbage", "embedded.network: 'garbage' does not appear"),
            ("embedded.network=127.0.0.1/30", "embedded.network: 127.0.0.1/30 has host bits set"),
            ("embedded.network=127.0.1.0/30", "at least 32 addresses"),
            ("embedded.network=fd00::/64", "give an IPv4 network"),
            ("embedded.ssh_port=0", "expected a number of at least 1, got '0'"),
            ("embedded.ssh_port=99999", "expected a number of at most 65535, got '99999'"),
            ("embedded.tenant=", "embedded.tenant is empty"),
            ("embedded.username=", "embedded.username is empty"),
            ("plugins.enabled=", "plugins.enabled is empty"),
            ("database.url=mysql://x", "expected sqlite:///PATH"),
            ("database.url=sqlite:///", "expected sqlite:///PATH"),
        ):
            self.assertIn(words, self.refused(flag))

    def test_database_urls(self) -> None:
        """SQLite and PostgreSQL; what else there is, is named without its password."""
        for url in ("sqlite:///x.sqlite", "postgresql://u:p@host:5432/db", "postgres:///db"):
            check(load(None, {}, [f"database.url={url}"]).settings)
        text = self.refused("database.url=mysql://u:s3cret@host/db")
        self.assertIn("mysql://u:***@host/db", text)

    def test_auth_url_is_a_url(self) -> None:
        """Not a host name."""
        given = ["cloud.username=u", "cloud.password=p", "cloud.project=x"]
        text = self.refused("cloud.kind=openstack", "cloud.auth_url=host:5000", *given)
        self.assertIn("cloud.auth_url: expected a URL", text)
