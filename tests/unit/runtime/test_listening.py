"""Endpoint texts."""

from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.protocol import ServerFactory
from twisted.internet.testing import MemoryReactor
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.listening import (
    EndpointError,
    beyond_loopback,
    description,
    encrypted,
    listen,
    malformed,
    url_of,
    with_port,
)


class DescriptionTests(SynchronousTestCase):
    def test_host_and_port_become_twisteds_form(self) -> None:
        """Names, IPv4 and bracketed IPv6 addresses; many peers may knock at once."""
        for text, expected in (
            ("tcp:127.0.0.1:8386", "tcp:8386:backlog=1024:interface=127.0.0.1"),
            ("tcp:localhost:0", "tcp:0:backlog=1024:interface=localhost"),
            ("tcp:[::1]:80", r"tcp6:80:backlog=1024:interface=\:\:1"),
        ):
            self.assertEqual(description(text), expected)


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


class OpennessTests(SynchronousTestCase):
    def test_which_endpoints_other_machines_reach(self) -> None:
        """All but loopback addresses, socket files and what is no endpoint."""
        for text, expected in (
            ("tcp:127.0.0.1:8386", False),
            ("tcp:127.9.9.9:8386", False),
            ("tcp:localhost:0", False),
            ("tcp:[::1]:80", False),
            ("tcp:80:127.0.0.1", False),
            ("tcp:port=80:interface=127.0.0.1", False),
            ("ssl:443:privateKey=k.pem:interface=127.0.0.1", False),
            ("unix:/run/svcd.sock", False),
            ("tcp:8386", True),
            ("tcp:0.0.0.0:8386", True),
            ("tcp:example.org:8386", True),
            ("tcp:8386:backlog=5", True),
            ("tcp6:80", True),
            ("ssl:443:privateKey=k.pem", True),
            ("systemd:domain=INET:index=0", True),
            ("8386", False),
            ("tcp:80:interface=127.0.0.1:interface=0.0.0.0", True),
            ("tcp:80:interface=0.0.0.0:interface=127.0.0.1", False),
            (r"tcp:80:interface=127.0.0.1:inter\face=0.0.0.0", True),
            (r"tcp6:80:interface=\:\:1", False),
            (r"tcp\:80", False),
        ):
            self.assertEqual(beyond_loopback(text), expected, text)

    def test_a_text_without_a_kind_is_completed(self) -> None:
        """Many programs take HOST:PORT. A kind of Twisted is a word without dots."""
        for text, whole in (
            ("127.0.0.1:8386", "tcp:127.0.0.1:8386"),
            ("localhost:8386", "tcp:localhost:8386"),
            ("[::1]:8386", "tcp:[::1]:8386"),
            ("8386", "tcp:127.0.0.1:8386"),
            (":8386", "tcp:127.0.0.1:8386"),
        ):
            expected = f"{text} does not say how to listen: write {whole}"
            self.assertEqual(malformed(text), expected)
        for text in (
            "tcp:8386",
            "tcp:127.0.0.1:0",
            "ssl:443",
            "unix:/run/svcd.sock",
            "systemd:domain=INET:index=0",
            "haproxy:tcp:8386",
            "HAPROXY:tcp:8386",
            "",
        ):
            self.assertEqual(malformed(text), "", text)
        for text in ("myhost:8386", "http://127.0.0.1:8386", "*:8386", " tcp:8386", "/a.sock:600"):
            self.assertEqual(
                malformed(text),
                f"{text!r} begins with no kind of endpoint: write tcp:HOST:PORT or unix:PATH",
            )
        for text in ("tcp:127.0.0.1", "tcp:127.0.0.1:\u0663\u0664", "tcp:", "tcp"):
            self.assertEqual(
                malformed(text), f"{text!r} has no port in its place: write tcp:HOST:PORT"
            )

    def test_the_scheme_of_an_encrypted_endpoint_is_https(self) -> None:
        """In the log and in endpoints.json."""
        for text, expected in (
            ("tcp:127.0.0.1:1", "http://127.0.0.1:8386"),
            ("ssl:1:privateKey=k.pem", "https://127.0.0.1:8386"),
        ):
            port: Any = _Port()
            self.assertEqual((url_of(port, text), encrypted(text)), (expected, "ssl" in text))


@frozen
class _Address:
    host: str = "0.0.0.0"
    port: int = 8386


class _Port:
    """A listening port on all addresses."""

    def getHost(self) -> _Address:
        return _Address()


class HandedOverTests(SynchronousTestCase):
    def test_a_socket_that_was_not_handed_over_is_named(self) -> None:
        """By its name or its number; with the units that hand one over."""
        for text in ("systemd:domain=INET:name=svcd", "systemd:domain=INET:index=0"):
            work = listen(MemoryReactor(), "server.listen", text, ServerFactory())
            failure = self.failureResultOf(Deferred.fromCoroutine(work), EndpointError)
            said = str(failure.value)
            self.assertIn(f"cannot listen on {text}: the service manager has handed over no", said)
            self.assertIn("or write server.listen as tcp:HOST:PORT", said)
