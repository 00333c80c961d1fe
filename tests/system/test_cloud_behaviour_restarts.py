"""A daemon that dies, or waits long, while a cloud whose lists lag is asked: nothing is doubled.

Each test ends by comparing what is in the cloud with what the API shows
(`tests.support.cloud_watch`).
"""

from __future__ import annotations

from svcd.embedded.faults import FaultRule
from tests.support.cloud_watch import WatchedCloudTestCase

SERVERS = "compute POST /v2.1/servers"
VOLUMES = "volume POST /v3/<project>/volumes"
ADDRESSES = "network POST /v2.0/floatingips"


class SlowCloudTests(WatchedCloudTestCase):
    """Lists show what was made after 15 s."""

    settings = {"embedded.list_lag_s": "15"}

    def test_server_that_took_long_to_be_asked_for_is_waited_for(self) -> None:
        """The time in which lists may not show it begins when the call has ended."""
        self.fault("compute", method="POST", path="/servers$", effect="delay", delay_s=25)
        self.active(self.create(workers=2))
        self.assertEqual(self.made(SERVERS), 3)

    def test_server_whose_call_was_not_answered_in_time_is_adopted(self) -> None:
        """It was made after 25 s, and the answer was lost."""
        rule = {"method": "POST", "path": "/servers$", "effect": "timeout_after", "delay_s": 25}
        self.fault("compute", times=1, **rule)
        self.active(self.create(workers=1))
        self.assertEqual(self.made(SERVERS), 2)

    def test_server_that_is_made_after_its_call_has_timed_out_is_adopted(self) -> None:
        """The cloud goes on with what nobody waits for any more."""
        self.fault("compute", method="POST", path="/servers$", effect="late", delay_s=40, times=1)
        self.active(self.create(workers=1))
        self.assertEqual(self.made(SERVERS), 2)

    def test_list_that_is_older_than_it_seems_is_not_believed(self) -> None:
        """That of volumes comes 28 s after that of servers, which showed none of them yet."""
        self.fault(
            "volume", method="GET", path="/detail", effect="delay", delay_s=28, after=10, times=1
        )
        self.active(self.create(workers=1, volumes=1))
        self.assertEqual((self.made(SERVERS), self.made(VOLUMES)), (2, 1))


class DyingDaemonCase(WatchedCloudTestCase):
    def die_at(self, where: str, path: str, method: str = "POST") -> list[str]:
        """The daemon dies as it makes a call there, which is carried out all the same.

        What is returned is empty until then.
        """
        died: list[str] = []

        def hear(found: str, how: str, called: str) -> FaultRule | None:
            if not died and (found, how) == (where, method) and path in called:
                died.append(called)
                self.svcd.kill()
                self.svcd.clock.callLater(1.0, self.svcd.restart)
            return None

        self.svcd.faults.listen(hear)
        return died


class DyingDaemonTests(DyingDaemonCase):
    settings = {"embedded.list_lag_s": "15"}

    def test_servers_asked_for_by_the_former_daemon_are_adopted(self) -> None:
        """Their calls were under way for 20 s when they took effect."""
        self.fault("compute", method="POST", path="/servers$", effect="late", delay_s=20)
        cluster_id = self.create(workers=2)
        self.until(lambda: len(self.svcd.faults.rules()) and self.made(SERVERS) == 0, by=0.01)
        self.svcd.advance(5)
        self.svcd.restart()
        self.active(cluster_id)
        self.assertEqual(self.made(SERVERS), 3)

    def test_volume_or_address_asked_for_by_the_former_daemon_is_adopted(self) -> None:
        """No list shows it yet when the next one begins."""
        for where, path, call, wanted in (
            ("volume", "/volumes", VOLUMES, {"volumes": 1}),
            ("network", "/floatingips", ADDRESSES, {"pool": "public"}),
        ):
            self.begin(embedded__boot_s="5")
            self.die_at(where, path)
            cluster_id = self.create(workers=1, **wanted)
            self.until(lambda call=call: self.made(call) > 0)
            self.svcd.advance(5)
            self.active(cluster_id)
            self.assertEqual(self.made(call), 1)


class LostCommitTests(WatchedCloudTestCase):
    settings = {"auth.mode": "keystone"}

    def test_cluster_whose_commit_was_not_answered_keeps_its_trust(self) -> None:
        """The row is there: it is accepted, and becomes Active. The note is written before."""
        self.fault("store", method="tx", effect="timeout_after", after=1, times=1)
        self.active(self.create(workers=1))

    def test_cluster_that_was_not_written_leaves_no_trust(self) -> None:
        """The caller hears of it."""
        self.fault("store", method="tx", effect="refused", after=1, times=1)
        self.api.post("/clusters", self.body(), status=503)
        self.check()

    def test_trust_whose_note_is_not_surely_written_is_not_made(self) -> None:
        """The caller hears of it."""
        self.fault("store", method="tx", effect="timeout_after", times=1)
        self.api.post("/clusters", self.body(), status=503)
        self.check()


class TrustTests(DyingDaemonCase):
    """The trust is the last thing that a deletion gives up, and what it looks with."""

    settings = {"auth.mode": "keystone"}

    def test_deletion_goes_on_when_the_trust_went_with_the_daemon(self) -> None:
        """It was deleted, and the daemon died before it could write that down."""
        cluster_id = self.create(workers=1)
        self.active(cluster_id)
        died = self.die_at("identity", "OS-TRUST", "DELETE")
        self.api.delete(f"/clusters/{cluster_id}")
        self.until(lambda: died)
        self.svcd.advance(60)
        self.gone(cluster_id, 60)

    def test_trust_whose_deletion_is_refused_once_is_deleted_all_the_same(self) -> None:
        """A 401 tells that the token is refused, not that the trust is gone."""
        cluster_id = self.create(workers=1)
        self.active(cluster_id)
        self.fault("identity", method="DELETE", path="OS-TRUST", status=401, times=1)
        self.delete(cluster_id)
