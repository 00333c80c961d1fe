"""`svcd doctor` on stored clusters whose SSH port the settings refuse."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.database_doctor import examine_database, refused_ports
from svcd.cli.finding import Finding, Scene
from svcd.settings import load
from tests.unit.cli.databases import lived_in

REAL = ("cloud.kind=openstack", "cloud.auth_url=https://cloud.test/v3")


class RefusedPortsTests(SynchronousTestCase):
    def test_clusters_with_allowed_ports_are_fine(self) -> None:
        """Also when there are none."""
        self.assertTrue(refused_ports(["22", "2022"], [("a", "p", 22), ("b", "p", 2022)]).good)
        self.assertTrue(refused_ports(["22"], []).good)

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


class ExamineTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.state = lived_in(self.mktemp())

    def findings(self, *flags: str, state: Path | None = None) -> list[Finding]:
        given = [f"server.state_dir={state or self.state}", *flags]
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
        self.assertEqual(self.findings(), [])
        loopback = ("cloud.kind=openstack", "cloud.auth_url=http://127.0.0.1:5000/v3")
        self.assertEqual(self.findings(*loopback), [])
        self.assertEqual(self.findings(*REAL, state=Path(self.mktemp())), [])
