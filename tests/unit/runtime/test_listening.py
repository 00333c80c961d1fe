"""Endpoint texts."""

from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.listening import description, with_port


class DescriptionTests(SynchronousTestCase):
    def test_host_and_port_become_twisteds_form(self) -> None:
        """Names, IPv4 and bracketed IPv6 addresses; many peers may knock at once."""
        for text, expected in (
            ("tcp:127.0.0.1:8386", "tcp:8386:backlog=1024:interface=127.0.0.1"),
            ("tcp:localhost:0", "tcp:0:backlog=1024:interface=localhost"),
            ("tcp:[::1]:80", r"tcp6:80:backlog=1024:interface=\:\:1"),
        ):
            self.assertEqual(description(text), expected)

    def test_twisteds_own_forms_are_left_alone(self) -> None:
        """So TLS, UNIX sockets and socket activation work."""
        for text in (
            "tcp:8386",
            "tcp:8386:interface=127.0.0.1",
            "unix:/run/svcd.sock",
            "systemd:domain=INET:index=0",
            "ssl:443:privateKey=k.pem",
        ):
            self.assertEqual(description(text), text)


class PortTests(SynchronousTestCase):
    def test_only_port_0_is_replaced(self) -> None:
        """In our form and in Twisted's."""
        for text, expected in (
            ("tcp:127.0.0.1:0", "tcp:127.0.0.1:8387"),
            ("tcp:0", "tcp:8387"),
            ("tcp:0:interface=127.0.0.1", "tcp:8387:interface=127.0.0.1"),
            ("tcp:[::1]:0", "tcp:[::1]:8387"),
            ("tcp:127.0.0.1:80", ""),
            ("tcp:8080", ""),
            ("unix:/run/svcd.sock", ""),
        ):
            self.assertEqual(with_port(text, 8387), expected, text)
