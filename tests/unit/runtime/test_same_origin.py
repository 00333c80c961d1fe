"""Requests of browsers on behalf of other sites are refused, and all programs are served."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from svcd.runtime.same_origin import SameOrigin


class SameOriginTests(SynchronousTestCase):
    def faults(self, check: SameOrigin, **headers: str) -> str:
        return check.fault(Headers({k.replace("_", "-"): [v] for k, v in headers.items()}))

    def test_a_loopback_listener_answers_to_loopback_hosts(self) -> None:
        """And to those of the setting; a page that rebinds its name to 127.0.0.1 gets nothing."""
        check = SameOrigin.at("tcp:127.0.0.1:8386", ("svcd.example.org",))
        for host in (
            "127.0.0.1:8386",
            "127.9.9.9",
            "localhost:1",
            "LOCALHOST",
            "[::1]:8386",
            "svcd.example.org",
            "SVCD.example.org:443",
        ):
            for _ in range(2):
                self.assertEqual(self.faults(check, host=host), "", host)
        for host in (
            "evil.example",
            "evil.example:8386",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example#127.0.0.1",
            "127.0.0.1@evil.example",
            "10.0.0.1",
            "[",
        ):
            for _ in range(2):
                self.assertIn("server.hosts", self.faults(check, host=host), host)

    def test_other_listeners_answer_to_any_host_unless_some_are_given(self) -> None:
        """Their names are unknown; `*` is any name."""
        for endpoint, hosts, good in (
            ("tcp:8386", (), True),
            ("tcp:8386", ("a.example",), False),
            ("tcp:127.0.0.1:1", ("*",), True),
            ("unix:/run/svcd.sock", (), False),
        ):
            fault = self.faults(SameOrigin.at(endpoint, hosts), host="b.example")
            self.assertEqual(fault == "", good, (endpoint, hosts))

    def test_pages_of_other_origins(self) -> None:
        """Another scheme's, port's or name's page, no origin, two origins; and other sites.

        A page at another port of this host is of the same site, and foreign all the same.
        """
        check = SameOrigin.at("tcp:127.0.0.1:8386", ("console.example",))
        host = "127.0.0.1:8386"
        for origin in (
            "http://127.0.0.1:8386",
            "https://console.example",
            "http://console.example",
        ):
            self.assertEqual(self.faults(check, host=host, origin=origin), "", origin)
        for origin in (
            "https://evil.example",
            "http://127.0.0.1:3000",
            "http://localhost:8386",
            "null",
            "",
            "file://",
            "127.0.0.1:8386",
        ):
            self.assertIn("web page", self.faults(check, host=host, origin=origin), origin)
        two = Headers({"host": [host], "origin": ["http://" + host, "https://evil.example"]})
        self.assertIn("web page", check.fault(two))
        for site, good in (
            ("cross-site", False),
            ("same-site", False),
            ("garbage", False),
            ("same-origin", True),
            ("None", True),
        ):
            fault = self.faults(check, host=host, sec_fetch_site=site)
            self.assertEqual(fault == "", good, site)
        console = {"origin": "https://console.example", "sec_fetch_site": "same-site"}
        self.assertEqual(self.faults(check, host=host, **console), "")

    def test_a_link_leads_to_a_page(self) -> None:
        """As a window of its own: in no frame, by no script, by no form, and to nothing else."""
        check = SameOrigin.at("tcp:127.0.0.1:8386", ())
        link = {
            "Host": "127.0.0.1:8386",
            "Sec-Fetch-Site": "cross-site",
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "document",
        }

        def fault(is_page: bool = True, **changed: str) -> str:
            headers = {**link, **{k.replace("_", "-"): v for k, v in changed.items()}}
            return check.fault(Headers({k: [v] for k, v in headers.items()}), is_page=is_page)

        self.assertEqual(fault(), "")
        self.assertIn("cross-site", fault(is_page=False))
        self.assertIn("cross-site", fault(Sec_Fetch_Dest="iframe"))
        self.assertIn("cross-site", fault(Sec_Fetch_Mode="no-cors"))
        self.assertIn("evil.example", fault(Origin="https://evil.example"))
        self.assertIn("evil.example", fault(Host="evil.example"))
