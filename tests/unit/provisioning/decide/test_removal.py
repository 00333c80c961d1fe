"""Removing what no list shows yet, and the last steps of a deletion. Literal values."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cloud import VolumeState
from svcd.model.cluster import Cluster
from svcd.model.ids import timestamp
from svcd.provisioning.decide import lifecycle
from svcd.provisioning.decide.observed import CALL_S, VISIBLE_S, Observed
from svcd.provisioning.decide.removal import (
    FORCE_S,
    access_being_given_up,
    forced_without_sight,
    tear_down,
)
from svcd.provisioning.decide.steps import DropRow, Memory, Tried
from tests.unit.provisioning.support import NOW, cluster, group, instance

KILLED = {"kill-executions": Tried(done=True)}
STUCK = VolumeState(
    id="v1",
    name="volume_demo-worker-001_1",
    status="detaching",
    size_gib=10,
    metadata={"svcd_instance_id": "worker1", "svcd_volume_index": "1"},
)


def deleting(force: bool = False, since: float = NOW, **fields: Any) -> Cluster:
    """Its one worker has just become ACTIVE and is to have a volume."""
    requested = timestamp(NOW - 2)
    worker = evolve(instance(1), server_id="s1", status="ACTIVE", requested_at=requested)
    workers = group(count=1, instances=[worker], volumes_per_node=1)
    row = cluster(**{"node_groups": (workers,), **fields})
    return lifecycle.delete(row, force, since)


class RemovalTests(SynchronousTestCase):
    def keys(self, row: Cluster, seen: Observed, tried: dict[str, Tried], now: float = NOW) -> Any:
        torn = tear_down(row, seen, Memory(tried={**KILLED, **tried}), now)
        return [s.key for s in torn.steps], list(torn.waiting)

    def test_volume_that_may_still_appear_is_waited_for(self) -> None:
        """As long as lists may lag; the groups do not wait for it."""
        gone = {"delete-server:s1": Tried(done=True)}
        self.assertEqual(
            self.keys(deleting(), Observed(), gone),
            (["delete-groups"], ["volumes of demo-worker-001 may still appear"]),
        )
        self.assertEqual(
            self.keys(deleting(), Observed(), gone, NOW + VISIBLE_S), (["delete-groups"], [])
        )

    def test_groups_go_while_a_volume_is_stuck(self) -> None:
        """Only servers are in them."""
        late = NOW + VISIBLE_S
        keys, _ = self.keys(deleting(), Observed(volumes=(STUCK,)), {}, late)
        self.assertEqual(keys, ["delete-volume:v1", "delete-groups"])

    def test_group_of_a_former_process_may_still_appear(self) -> None:
        """Its call may take effect after the end of the process, and no row says that it was made.

        A deletion waits for that, also a forced one, and asks for the end of the groups then.
        """
        appears = ["a group named svcd-c1 may still appear"]
        worker = evolve(instance(1), requested_at=timestamp(NOW - 3600))
        asked = group(count=1, instances=[worker])
        for force, fields, now, expected in (
            (False, {}, NOW + CALL_S, ([], appears)),
            (True, {}, NOW + CALL_S + VISIBLE_S - 1, ([], appears)),
            (True, {}, NOW + CALL_S + VISIBLE_S, (["delete-groups"], [])),
            (False, {"security_group_id": "sg"}, NOW, (["delete-groups"], [])),
            (False, {"security_group_id": "sg", "anti_affinity": ("d",)}, NOW, ([], appears)),
            (False, {}, NOW - 3600, (["delete-groups"], [])),  # the clock was set back
            (False, {"node_groups": (asked,)}, NOW, (["delete-groups"], [])),  # they were there
        ):
            row = lifecycle.delete(cluster(**fields), force, NOW - 3600)
            memory = Memory(tried=KILLED, taken_at=NOW)
            torn = tear_down(row, Observed(), memory, now)
            self.assertEqual(([s.key for s in torn.steps], list(torn.waiting)), expected)

    def test_trust_that_cannot_be_deleted_keeps_the_row(self) -> None:
        """However often it failed; a forced deletion names it and drops the row."""
        tried = {"delete-groups": Tried(done=True), "delete-trust": Tried(failures=50)}
        late = NOW + max(VISIBLE_S, FORCE_S)
        keys, _ = self.keys(deleting(trust_id="t1"), Observed(), tried, late)
        self.assertEqual(keys, ["delete-trust"])
        memory = Memory(tried={**KILLED, **tried})
        (drop,) = tear_down(deleting(True, trust_id="t1"), Observed(), memory, late).steps
        assert isinstance(drop, DropRow)
        self.assertEqual(drop.leftovers, ("the trust",))

    def test_forced_deletion_waits_for_what_may_still_appear(self) -> None:
        """That ends by itself; without a row nobody would remove it."""
        over = NOW + FORCE_S
        asked = evolve(instance(1), requested_at=timestamp(over - 1))
        row = deleting(True, node_groups=(group(count=1, instances=[asked]),))
        self.assertEqual(
            self.keys(row, Observed(), {}, over),
            ([], ["a server for demo-worker-001 may still appear"]),
        )
        gone = {"delete-server:s1": Tried(done=True)}
        since = NOW - FORCE_S
        self.assertEqual(
            self.keys(deleting(True, since), Observed(), gone),
            (["delete-groups"], ["volumes of demo-worker-001 may still appear"]),
        )

    def test_forced_deletion_asks_for_the_end_of_all_that_is_seen(self) -> None:
        """However late it is; then what is still there is named."""
        late = NOW + max(VISIBLE_S, FORCE_S)
        seen = Observed(volumes=(STUCK,))
        keys, _ = self.keys(deleting(True), seen, {}, late)
        self.assertEqual(keys, ["delete-volume:v1", "delete-groups"])
        asked = {"delete-volume:v1": Tried(failures=1), "delete-groups": Tried(done=True)}
        (drop,) = tear_down(deleting(True), seen, Memory(tried={**KILLED, **asked}), late).steps
        assert isinstance(drop, DropRow)
        self.assertEqual(drop.leftovers, ("volume volume_demo-worker-001_1 (v1, detaching)",))

    def test_time_of_a_forced_deletion_counts_from_the_daemons_start(self) -> None:
        """While there was none, nothing could be removed; the cloud may be read in a moment."""
        late = NOW + 2 * FORCE_S
        tried = {**KILLED, "delete-volume:v1": Tried(done=True), "delete-groups": Tried(done=True)}
        memory = Memory(tried=tried, since=late - FORCE_S + 1)
        torn = tear_down(deleting(True), Observed(volumes=(STUCK,)), memory, late)
        self.assertEqual([s.key for s in torn.steps], ["delete-volume:v1"])
        self.assertIsNone(forced_without_sight(deleting(True), memory, late))
        torn = tear_down(deleting(True), Observed(volumes=(STUCK,)), memory, late + 1)
        self.assertEqual([s.key for s in torn.steps], ["drop-row"])
        self.assertIsNotNone(forced_without_sight(deleting(True), memory, late + 1))

    def test_forced_deletion_asks_once_for_the_end_of_the_groups(self) -> None:
        """When all else has gone; then it names them."""
        late = NOW + max(VISIBLE_S, FORCE_S)
        self.assertEqual(self.keys(deleting(True), Observed(), {}, late), (["delete-groups"], []))
        tried = {"delete-groups": Tried(failures=1)}
        memory = Memory(tried={**KILLED, **tried})
        (drop,) = tear_down(deleting(True), Observed(), memory, late).steps
        assert isinstance(drop, DropRow)
        self.assertEqual(drop.leftovers, ("groups named svcd-c1",))

    def test_trust_whose_deletion_was_not_answered_is_asked_for_again(self) -> None:
        """Blindly, for it may be what we looked with; not before it was tried."""
        row = deleting(trust_id="t1")
        self.assertIsNone(access_being_given_up(row, Memory()))
        torn = access_being_given_up(row, Memory(tried={"delete-trust": Tried(failures=1)}))
        assert torn is not None
        self.assertEqual([s.key for s in torn.steps], ["delete-trust"])
