"""The addresses and ports of machines to which svcd connects."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.connect_rules import ConnectRules

ANY = ConnectRules.of((), ("22",))


class ConnectRulesTests(SynchronousTestCase):
    def test_special_addresses_are_refused_by_default(self) -> None:
        """Also where they are written in another form."""
        for address in ("10.0.0.5", "203.0.113.9", "2001:db8::7"):
            self.assertEqual(ANY.refusal(address, 22, False), "")
        for address, kind in (
            ("127.9.9.9", "loopback"),
            ("::1", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("169.254.169.254", "link-local"),
            ("::ffff:169.254.169.254", "link-local"),
            ("fe80::1", "link-local"),
            ("0.0.0.0", "no address"),
            ("::", "no address"),
            ("224.0.0.1", "multicast"),
        ):
            reason = ANY.refusal(address, 22, False)
            self.assertIn(kind, reason)
            self.assertIn("cloud.machine_cidrs", reason)
        self.assertIn("svcd's own host", ANY.refusal("10.0.0.5", 22, True))

    def test_networks_of_machines(self) -> None:
        """A wide network does not open special addresses: only one that names them."""
        mine, wide = ("10.0.0.0/16", "2001:db8::/64"), ("0.0.0.0/0",)
        for cidrs, address, own, told in (
            (mine, "10.0.3.4", False, ""),
            (mine, "2001:db8::7", False, ""),
            (mine, "10.1.0.4", False, "no network of cloud.machine_cidrs"),
            (mine, "10.0.3.4", True, "own host"),
            (wide, "127.0.0.1", True, "loopback"),
            (("127.1.0.0/16",), "127.1.0.1", True, ""),
            (("127.1.0.1/32",), "127.1.0.1", True, ""),
            (("10.0.0.5/32",), "10.0.0.5", True, ""),
        ):
            reason = ConnectRules.of(cidrs, ("22",)).refusal(address, 22, own)
            self.assertEqual(told in reason, True, (cidrs, address, reason))
            self.assertEqual(reason == "", told == "", (cidrs, address, reason))

    def test_ports_are_those_of_the_operator(self) -> None:
        self.assertIn("cloud.ssh_ports", ANY.refusal("10.0.0.5", 6379, False))
        self.assertEqual(ConnectRules.of((), ("22", "2222")).refusal("10.0.0.5", 2222, False), "")

    def test_names_are_no_addresses(self) -> None:
        """Nova gives addresses; a name would be resolved by svcd's own resolver."""
        self.assertIn("no IP address", ANY.refusal("localhost", 22, False))
