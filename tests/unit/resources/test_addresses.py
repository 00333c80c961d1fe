"""Where a request comes from, by its connection and by what trusted proxies say."""

from __future__ import annotations

from typing import Any

from attrs import frozen
from twisted.internet.address import IPv4Address, UNIXAddress
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from svcd.resources._addresses import Addresses

FAR, NEAR = (IPv4Address("TCP", host, 1) for host in ("192.0.2.1", "127.0.0.1"))
SOCKET_FILE = UNIXAddress(None)


@frozen
class _Request:
    """A request with a peer, TLS or not, and headers."""

    peer: Any
    secure: bool
    requestHeaders: Headers

    def getClientAddress(self) -> Any:
        return self.peer

    def isSecure(self) -> bool:
        return self.secure


class AddressTests(SynchronousTestCase):
    def test_a_caller_behind_a_trusted_proxy_has_its_own_address(self) -> None:
        """The last entry that no trusted proxy has written; others may be invented."""
        for trusted, peer, sent, address in (
            ((), NEAR, "1.1.1.1", "127.0.0.1"),
            (("127.0.0.0/8",), NEAR, "1.1.1.1", "1.1.1.1"),
            (("127.0.0.1",), NEAR, "9.9.9.9, 1.1.1.1", "1.1.1.1"),
            (("127.0.0.1", "1.1.1.1"), NEAR, "9.9.9.9, 1.1.1.1", "9.9.9.9"),
            (("127.0.0.1",), NEAR, "::ffff:1.1.1.1", "1.1.1.1"),
            (("127.0.0.1",), NEAR, "nonsense", "127.0.0.1"),
            (("10.0.0.0/8",), NEAR, "1.1.1.1", "127.0.0.1"),
            (("unix",), SOCKET_FILE, "1.1.1.1", "1.1.1.1"),
            ((), SOCKET_FILE, "1.1.1.1", "unix"),
        ):
            headers = Headers({"X-Forwarded-For": [sent]})
            found = Addresses(trusted).of(_Request(peer, False, headers))
            self.assertEqual(found, address, (trusted, sent))

    def test_a_request_that_nobody_can_read_is_secure(self) -> None:
        """TLS, loopback and socket files, unless a proxy says `http`."""
        for peer, tls, proto, secure in (
            (FAR, False, "", False),
            (FAR, False, "https", False),
            (FAR, True, "", True),
            (NEAR, False, "", True),
            (NEAR, False, "https", True),
            (NEAR, False, "https, http", False),
            (NEAR, False, "HTTP", False),
            (SOCKET_FILE, False, "", True),
        ):
            headers = Headers({"X-Forwarded-Proto": [proto]} if proto else {})
            found = Addresses().origin(_Request(peer, tls, headers))
            self.assertEqual(found.is_secure, secure, (peer, tls, proto))
