"""Volumes, addresses and quotas of a real cloud: busy, broken, used up, taken by others meanwhile.

Each test ends by comparing what is in the cloud with what the API shows
(`tests.support.cloud_watch`).
"""

from __future__ import annotations

from typing import Any

from tests.support.cloud_watch import NEVER, WatchedCloudTestCase

BUSY = (
    '{"badRequest": {"code": 400, "message": "Invalid volume: Volume status must be available or '
    'error or error_restoring or error_extending, but is attaching."}}'
)
BUILDING = (
    '{"conflictingRequest": {"code": 409, "message": "Cannot \'attach_volume\' instance 7 while it '
    'is in vm_state building"}}'
)
NOVA_QUOTA = (
    '{"forbidden": {"code": 403, "message": "Quota exceeded for instances: Requested 1, but '
    'already used 2 of 2 instances"}}'
)
CINDER_QUOTA = (
    '{"overLimit": {"code": 413, "message": "VolumeLimitExceeded: Maximum number of volumes '
    'allowed (2) exceeded for quota \'volumes\'.", "retryAfter": "0"}}'
)
NEUTRON_QUOTA = (
    '{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: '
    '[\'floatingip\'].", "detail": ""}}'
)
NO_MORE_ADDRESSES = (
    '{"NeutronError": {"type": "IpAddressGenerationFailure", "message": "No more IP addresses '
    'available on network 00000000-0000-4000-8000-000000000012.", "detail": ""}}'
)
POSTS = {
    "compute": r"/servers$",
    "volume": r"/volumes$",
    "network": r"/floatingips$",
}


class VolumeTests(WatchedCloudTestCase):
    """Volumes change their state in their own time."""

    settings = {"embedded.volume_s": "4", "embedded.delete_s": "2"}

    def test_volume_that_is_busy(self) -> None:
        """400 and 409 are tried again, when it is attached and when it is deleted."""
        for status, body in ((400, BUSY), (409, BUILDING)):
            self.begin()
            self.fault("compute", path="os-volume_att", times=3, status=status, body=body)
            self.fault("volume", method="DELETE", times=3, status=400, body=BUSY)
            cluster_id = self.create(workers=1, volumes=2)
            self.active(cluster_id)
            self.delete(cluster_id)

    def test_volume_in_error_is_replaced(self) -> None:
        """And removed."""
        cluster_id = self.create(workers=1, volumes=1)
        self.until(lambda: self.volumes() != [])
        self.change_volume(self.volumes()[0], status="error")
        self.active(cluster_id)
        self.assertEqual(self.made("volume POST /v3/<project>/volumes"), 2)
        self.delete(cluster_id)

    def test_volume_that_is_never_attached(self) -> None:
        """The deadline ends it; the reason names volume and status."""
        cluster_id = self.create(workers=1, volumes=1)
        self.until(lambda: any(v.status == "attaching" for v in self.volumes()))
        (volume,) = self.volumes()
        self.change_volume(volume, due_at=NEVER)
        reason = self.failed(cluster_id)
        self.assertIn(volume.id, reason)
        self.assertIn("attaching", reason)
        self.check(cluster_id)

    def stick(self) -> Any:
        """The only volume hangs in `detaching`, with its server gone."""
        self.until(lambda: not self.servers(), by=0.05)
        (volume,) = self.volumes()
        self.change_volume(volume, status="detaching", due_at=NEVER)
        return volume

    def test_volume_that_is_stuck_in_detaching(self) -> None:
        """The deletion ends in Error that names it; mended, the next one succeeds."""
        cluster_id = self.create(workers=1, volumes=1)
        self.active(cluster_id)
        before = self.svcd.clock.seconds()
        self.api.delete(f"/clusters/{cluster_id}")
        volume = self.stick()
        self.api.until_status(cluster_id, "Error")
        self.assertLess(self.svcd.clock.seconds() - before, 1900)
        reason = self.api.cluster(cluster_id)["status_description"]
        self.assertTrue(reason.startswith("LEFTOVERS: "), reason)
        self.assertIn(f"({volume.id}, detaching)", reason)
        self.assertEqual(self.servers(), [])
        self.change_volume(self.volumes()[0], status="available")
        self.delete(cluster_id)

    def test_forced_deletion_leaves_the_stuck_volume(self) -> None:
        """The row goes within a minute, also while an earlier deletion tries; the volume stays."""
        for force_first in (True, False):
            self.begin()
            cluster_id = self.create(workers=1, volumes=1)
            self.active(cluster_id)
            self.api.delete(f"/clusters/{cluster_id}{'?force=true' if force_first else ''}")
            volume = self.stick()
            if not force_first:
                self.svcd.advance(300)
                self.api.delete(f"/clusters/{cluster_id}?force=true")
            self.svcd.advance(60)
            self.api.get(f"/clusters/{cluster_id}", 404)
            self.assertEqual([v.id for v in self.volumes()], [volume.id])
            self.state.volumes.remove(volume.id)
            self.check()


class QuotaTests(WatchedCloudTestCase):
    """The check passes, then somebody else is faster."""

    cases = (
        ("compute", 403, NOVA_QUOTA, "Requested 1, but already used 2 of 2 instances"),
        ("volume", 413, CINDER_QUOTA, "Maximum number of volumes allowed (2) exceeded"),
        ("network", 409, NEUTRON_QUOTA, "Quota exceeded for resources: ['floatingip']"),
    )

    def test_used_up_meanwhile_by_a_create(self) -> None:
        """QUOTA with what the cloud says, and nothing left behind."""
        for where, status, body, text in self.cases:
            for after in (0, 1):
                self.begin()
                rule = {"method": "POST", "path": POSTS[where], "status": status, "body": body}
                handle = self.fault(where, after=after, **rule)
                cluster_id = self.create(workers=2, volumes=1, pool="public")
                reason = self.failed(cluster_id)
                self.assertTrue(reason.startswith("QUOTA: "), reason)
                self.assertIn(text, reason)
                self.check(cluster_id)
                self.delete(cluster_id)
                self.assertLessEqual(handle.hits(), 3)

    def test_used_up_meanwhile_by_a_scale(self) -> None:
        """Back to Active with the reason and what it had; a later one succeeds."""
        for where, status, body, text in self.cases:
            self.begin()
            cluster_id = self.create(workers=1, volumes=1, pool="public")
            self.active(cluster_id)
            rule = {"method": "POST", "path": POSTS[where], "status": status, "body": body}
            handle = self.fault(where, after=1, **rule)
            self.scale(cluster_id, 3)
            self.svcd.advance(60)
            shown = self.active(cluster_id)
            self.assertTrue(shown["status_description"].startswith("QUOTA: "), shown)
            self.assertIn(text, shown["status_description"])
            self.assertEqual(len(self.names(cluster_id)), 2)
            handle.remove()
            self.scale(cluster_id, 3)
            shown = self.active(cluster_id)
            self.assertEqual((len(self.names(cluster_id)), shown["status_description"]), (4, ""))
            self.delete(cluster_id)

    def test_two_clusters_for_one_place(self) -> None:
        """Both pass the check; the one that loses leaves nothing to the other."""
        self.begin(embedded__quota_instances="5", embedded__boot_s="2")
        first = self.create(workers=2)
        second = self.create(workers=2, name="other")
        self.svcd.advance(120)
        statuses = sorted(self.api.cluster(c)["status"] for c in (first, second))
        self.assertEqual(statuses, ["Active", "Error"])
        self.check(first, second)

    def test_empty_pool_of_floating_ips(self) -> None:
        """The quota would allow them, the network has none: said at once."""
        handle = self.fault(
            "network", method="POST", path=r"/floatingips$", status=409, body=NO_MORE_ADDRESSES
        )
        cluster_id = self.create(workers=1, pool="public")
        reason = self.failed(cluster_id, 60)
        self.assertTrue(reason.startswith("QUOTA: "), reason)
        self.assertIn("No more IP addresses available", reason)
        self.check(cluster_id)
        handle.remove()
        self.delete(cluster_id)


class LimitedRateTests(WatchedCloudTestCase):
    """413 and 429 with Retry-After: not again before that time."""

    told = '{"overLimit": {"code": 413, "message": "This request was rate-limited."}}'

    def check_waits(self, where: str, method: str, path: str, **fault: Any) -> None:
        self.begin()
        handle = self.fault(where, method=method, path=path, times=1, **fault)
        cluster_id = self.create(workers=1, volumes=1, pool="public")
        self.until(lambda: handle.hits() == 1, by=0.05)
        limited_at = self.svcd.clock.seconds()
        seen = self.fault(where, method=method, path=path, effect="delay", delay_s=0.0)
        self.until(lambda: seen.hits() > 0, by=0.25)
        waited_s = self.svcd.clock.seconds() - limited_at
        self.assertGreaterEqual(waited_s, 39.9)
        self.assertLess(waited_s, 50)
        self.active(cluster_id)
        self.delete(cluster_id)

    def test_creates_and_lists(self) -> None:
        """Each kind of call."""
        for where, method, path in (
            ("compute", "GET", "/servers/detail"),
            ("volume", "POST", r"/volumes$"),
            ("network", "POST", r"/floatingips$"),
            ("network", "POST", r"/security-groups$"),
            ("compute", "POST", "/os-volume_attachments$"),
        ):
            for status in (413, 429):
                later = {"Retry-After": "40"}
                self.check_waits(where, method, path, status=status, body=self.told, headers=later)

    def test_mended_service_and_a_date(self) -> None:
        """503 may say when, too, and HTTP allows a moment in the place of seconds."""
        dates = {
            "Date": "Fri, 20 Nov 2026 12:00:00 GMT",
            "Retry-After": "Fri, 20 Nov 2026 12:00:40 GMT",
        }
        for status, headers in ((503, {"Retry-After": "40"}), (429, dates)):
            self.check_waits("volume", "POST", r"/volumes$", status=status, headers=headers)

    def test_one_server_is_limited(self) -> None:
        """The other one is made meanwhile."""
        later = {"Retry-After": "40"}
        self.fault("compute", method="POST", path="/servers$", times=1, status=429, headers=later)
        cluster_id = self.create(workers=1)
        self.svcd.advance(39)
        self.assertEqual(len(self.servers()), 1)
        self.svcd.advance(5)
        self.assertEqual(len(self.servers()), 2)
        self.active(cluster_id)
        self.delete(cluster_id)
