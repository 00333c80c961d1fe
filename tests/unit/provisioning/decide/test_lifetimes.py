"""The fields that say when svcd deletes a cluster by itself, against the operator's maxima."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import Cluster, ClusterStatus, Desired
from svcd.model.ids import timestamp
from svcd.model.requests import ResizeGroup, ScaleRequest
from svcd.model.template import ClusterTemplate
from svcd.provisioning.decide import rules
from svcd.provisioning.decide.facts import Bounds
from svcd.provisioning.distributions.fake import Fake
from tests.unit.provisioning.decide.test_rules import FACTS, made, new
from tests.unit.provisioning.support import NOW, Scripted, cluster


class Watched(Fake):
    """Its clusters show their use."""

    versions = ("1",)

    def check_topology(self, cluster: Cluster) -> list[Any]:
        return []

    def check_scaling(self, before: Cluster, after: Cluster) -> list[Any]:
        return []


WATCHED = evolve(FACTS, distribution=Watched())
TEMPLATE = ClusterTemplate(
    **{name: getattr(cluster(), name) for name in ("id", "tenant_id", "plugin_name")},
    name="t",
    engine_version="1",
    idle_delete_s=900,
    max_age_s=0,
    created_at=timestamp(NOW),
)
LIMITED = Bounds(most_idle_s=3600, most_age_s=7200)


class CreateTests(SynchronousTestCase):
    def kept(self, bounds: Bounds = LIMITED, facts: Any = WATCHED, **fields: Any) -> Any:
        """idle_delete_s, max_age_s and the recorded maxima; or the faults."""
        result = rules.check_cluster(new(**fields), facts, bounds, made())
        if not isinstance(result, Cluster):
            return [error.message for error in result]
        return result.idle_delete_s, result.max_age_s, result.most_idle_s, result.most_age_s

    def test_request_then_template_then_maximum(self) -> None:
        of_template = evolve(WATCHED, cluster_template=TEMPLATE)
        named = {"cluster_template_id": TEMPLATE.id}
        self.assertEqual(self.kept(Bounds()), (0, 0, 0, 0))
        self.assertEqual(self.kept(), (3600, 7200, 3600, 7200))
        self.assertEqual(self.kept(idle_delete_s=60, max_age_s=100), (60, 100, 3600, 7200))
        self.assertEqual(self.kept(Bounds(), of_template, **named), (900, 0, 0, 0))
        self.assertEqual(
            self.kept(Bounds(), of_template, idle_delete_s=0, max_age_s=60, **named), (0, 60, 0, 0)
        )

    def test_faults_say_where_and_what_is_allowed(self) -> None:
        self.assertEqual(
            self.kept(idle_delete_s=0, max_age_s=7201),
            [
                "$.idle_delete_s: the operator allows at most 3600 seconds, got 0 (never)",
                "$.max_age_s: the operator allows at most 7200 seconds, got 7201",
            ],
        )
        self.assertEqual(
            self.kept(Bounds(), idle_delete_s=1, max_age_s=59),
            [
                "$.idle_delete_s: expected at least 60 seconds, or 0 for never, got 1",
                "$.max_age_s: expected at least 60 seconds, or 0 for never, got 59",
            ],
        )
        self.assertEqual(
            self.kept(
                facts=evolve(WATCHED, cluster_template=TEMPLATE), cluster_template_id=TEMPLATE.id
            ),
            [
                "$.cluster_template_id.max_age_s: the operator allows at most 7200 seconds,"
                " got 0 (never)"
            ],
        )

    def test_plugin_that_does_not_show_use_has_no_idle_time(self) -> None:
        facts = evolve(FACTS, distribution=Scripted())
        self.assertEqual(self.kept(facts=facts), (0, 7200, 0, 7200))
        self.assertEqual(self.kept(facts=facts, idle_delete_s=0), (0, 7200, 0, 7200))
        (fault,) = self.kept(facts=facts, idle_delete_s=600)
        self.assertIn("$.idle_delete_s: the plugin does not show whether", fault)


class ChangeTests(SynchronousTestCase):
    def put(
        self, before: Cluster, now: float = NOW + 100, bounds: Bounds | None = None, **life: Any
    ) -> Any:
        values = evolve(made(), now=now)
        change = ScaleRequest(**life)
        result = rules.check_scale(before, change, WATCHED, bounds or Bounds(), values)
        return result if isinstance(result, Cluster) else [error.message for error in result]

    def test_a_lifetime_alone_changes_nothing_else_in_any_status(self) -> None:
        stamp = timestamp(NOW)
        for status in set(ClusterStatus) - {ClusterStatus.DELETING}:
            before = cluster(status=status, warned_at=stamp, idle_since=stamp)
            after = self.put(before, max_age_s=60, keep_until="2026-01-01T09:30Z")
            keep = "2026-01-01 09:30:00.000000"
            changed = {"max_age_s": 60, "keep_until": keep, "updated_at": timestamp(NOW + 100)}
            self.assertEqual(after, evolve(before, warned_at=None, idle_since=None, **changed))

    def test_warning_holds_for_a_deletion_that_is_not_earlier(self) -> None:
        """So nobody puts off a deletion by repeated requests."""
        stamp = timestamp(NOW + 3300)
        old = cluster(status=ClusterStatus.ACTIVE, max_age_s=3600, warned_at=stamp)
        kept = {
            (3500, 3600): stamp,
            (3400, 3600): stamp,
            (3560, 60): stamp,
            (3400, 60): None,
            (3560, 36000): None,
            (3560, 0): None,
        }
        for (now, age), warned in kept.items():
            self.assertEqual(self.put(old, NOW + now, max_age_s=age).warned_at, warned, (now, age))

    def test_sizes_and_lifetime_come_together_or_not_at_all(self) -> None:
        before = cluster(status=ClusterStatus.ACTIVE)
        sizes = {"resize_node_groups": (ResizeGroup(name="worker", count=3),)}
        after = self.put(before, idle_delete_s=600, **sizes)
        self.assertEqual(
            (after.status, after.generation, after.size, after.idle_delete_s),
            (ClusterStatus.VALIDATING, before.generation + 1, 3, 600),
        )
        (fault,) = self.put(before, idle_delete_s=59, **sizes)
        self.assertIn("$.idle_delete_s: expected at least 60", fault)

    def test_own_maximum_holds_until_the_present_one_is_looser(self) -> None:
        old = cluster(status=ClusterStatus.ACTIVE, most_age_s=600)
        tight, loose = Bounds(most_age_s=300), Bounds(most_age_s=900)
        self.assertEqual(self.put(old, bounds=tight, max_age_s=600).max_age_s, 600)
        self.assertIn("at most 600", self.put(old, bounds=tight, max_age_s=601)[0])
        self.assertEqual(self.put(old, bounds=loose, max_age_s=900).max_age_s, 900)
        self.assertEqual(self.put(old, max_age_s=0).max_age_s, 0)
        free = cluster(status=ClusterStatus.ACTIVE)
        self.assertEqual(self.put(free, bounds=tight, max_age_s=0).max_age_s, 0)

    def test_keep_until_is_bounded(self) -> None:
        old = cluster(status=ClusterStatus.ACTIVE, most_age_s=3600, most_idle_s=600)
        tight = Bounds(most_idle_s=1, most_age_s=1)
        for text, fault in {
            "2026-02-30 00:00": "there is no such time",
            "2026-01-01T00:01:39Z": "expected a time that is not over; it is 2026-01-01T00:01:40Z",
            "2026-01-01T00:11:41Z": "the operator allows at most 2026-01-01T00:11:40Z",
        }.items():
            self.assertIn(f"$.keep_until: {fault}", self.put(old, bounds=tight, keep_until=text)[0])
        kept = self.put(old, bounds=tight, keep_until="2026-01-01T00:11:40Z")
        self.assertEqual(kept.keep_until, "2026-01-01 00:11:40.000000")
        (late,) = self.put(old, NOW + 3500, tight, keep_until="2026-01-01T01:00:01Z")
        self.assertIn("at most 2026-01-01T01:00:00Z", late)

    def test_cluster_that_is_being_deleted_is_refused(self) -> None:
        for status in (ClusterStatus.DELETING, ClusterStatus.ERROR):
            (fault,) = self.put(cluster(status=status, desired=Desired.DELETED), max_age_s=60)
            self.assertIn("is being deleted", fault)
