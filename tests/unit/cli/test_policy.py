"""`svcd config policy`, and the list of docs/security.md."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.policy import markdown, table
from svcd.resources.api import policy
from svcd.settings import Auth
from svcd.testing import FakeService
from tests.support.api import daemon_of

FILE = Path(__file__).parents[3] / "docs" / "security.md"


class TableTests(SynchronousTestCase):
    def test_the_docs_have_the_list(self) -> None:
        """Make it anew with: python -m svcd.cli.policy."""
        self.assertIn(f"\n{markdown()}\n", FILE.read_text(encoding="utf-8"))

    def test_the_table_has_exactly_the_routes_that_are_served(self) -> None:
        """With the need that the door checks."""
        fake = FakeService()
        self.addCleanup(fake.close)
        served = {(r.method, r.pattern, r.spec.needs) for r in daemon_of(fake).resource.routes()}
        self.assertEqual(set(policy()), served)

    def test_the_text_names_roles_and_settings(self) -> None:
        """Without authentication everybody may do everything, and the text says so."""
        lines = table(Auth(mode="keystone", write_roles=("operator",))).splitlines()
        self.assertEqual(
            lines[:3],
            [
                "open   everybody who reaches the port",
                "read   one of the roles reader, member, admin (auth.read_roles)",
                "write  one of the roles operator (auth.write_roles)",
            ],
        )
        self.assertIn("write  PUT     v1.0 v1.1  /clusters/<cluster_id>", lines)
        lines = table(Auth()).splitlines()
        self.assertEqual(lines[2], "write  everybody who reaches the port (auth.mode=none)")
