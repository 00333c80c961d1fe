"""The machines that a distribution gets: who runs their daemons, and where their files are."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import Instance, MachineFacts, Volume
from svcd.provisioning.decide.machines_view import machines
from svcd.provisioning.distributions.spi import Machine
from tests.unit.provisioning.support import cluster, group, instance


def seen(daemon_user: str, each: Instance) -> Machine:
    """The machine of a cluster with the login user debian."""
    (found,) = machines(cluster(group(instances=[each]), daemon_user=daemon_user))
    return found


class UserTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.server = instance(1, internal_ip="10.0.0.1", facts=MachineFacts(home="/h/debian"))

    def test_server_of_a_new_cluster(self) -> None:
        """Its daemons have a user and a home of their own; in Hadoop they are the login user."""
        made = seen("svcd", self.server)
        self.assertEqual(
            (made.runs_as, made.user, made.home, made.storage),
            ("svcd", "debian", "/home/svcd", ("/home/svcd/data",)),
        )

    def test_server_of_an_older_cluster(self) -> None:
        """The login user runs them."""
        made = seen("", self.server)
        self.assertEqual(
            (made.runs_as, made.user, made.home, made.storage),
            ("", "debian", "/h/debian", ("/h/debian/data",)),
        )

    def test_machine_that_is_a_folder(self) -> None:
        """It has one user, whatever the cluster says."""
        facts = MachineFacts(home="/srv/m1/home", root="/srv/m1")
        volume = Volume(volume_id="v1", mount_point="/srv/m1/volumes/disk1")
        folder = instance(1, internal_ip="127.1.0.10", facts=facts, volumes=(volume,))
        made = seen("svcd", folder)
        self.assertEqual(
            (made.runs_as, made.user, made.home, made.storage),
            ("", "debian", "/srv/m1/home", ("/srv/m1/volumes/disk1",)),
        )
