"""The machines that a distribution gets: who runs their daemons, and where their files are."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import MachineFacts, Volume
from svcd.provisioning.decide.machines_view import machines
from tests.unit.provisioning.support import cluster, group, instance


class UserTests(SynchronousTestCase):
    def test_daemons_run_as_their_own_user_on_servers_of_new_clusters(self) -> None:
        """In Hadoop they are the login user, who runs them in older clusters.

        A machine that is a folder has one user, whatever the cluster says.
        """
        server = instance(1, internal_ip="10.0.0.1", facts=MachineFacts(home="/h/debian"))
        folder = instance(
            1,
            internal_ip="127.1.0.10",
            facts=MachineFacts(home="/srv/m1/home", root="/srv/m1"),
            volumes=(Volume(volume_id="v1", mount_point="/srv/m1/volumes/disk1"),),
        )
        for row, daemon_user, runs_as, home, storage in (
            (server, "svcd", "svcd", "/home/svcd", "/home/svcd/data"),
            (server, "", "", "/h/debian", "/h/debian/data"),
            (folder, "svcd", "", "/srv/m1/home", "/srv/m1/volumes/disk1"),
        ):
            (made,) = machines(cluster(group(instances=[row]), daemon_user=daemon_user))
            self.assertEqual(
                (made.runs_as, made.user, made.home, made.storage),
                (runs_as, "debian", home, (storage,)),
            )
