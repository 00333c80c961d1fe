"""The instance hours of a cluster are counted from one state of its row to the next."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.model import usage
from svcd.model.cluster import GONE, Cluster, Instance, NodeGroup
from svcd.model.ids import ClusterId, InstanceId, TenantId, timestamp

AT = 1_767_225_600.0
HOUR = 3600.0


def cluster(**servers: list[str | None]) -> Cluster:
    """A cluster with a group of each flavor, `f1` for flavor 1. servers: of its instances."""
    groups = tuple(
        NodeGroup(
            name=name,
            count=len(ids),
            flavor_id=name[1:],
            node_processes=("x",),
            created_at=timestamp(AT),
            instances=tuple(
                Instance(
                    instance_id=InstanceId(f"{name}-{n}"),
                    instance_name=f"{name}-{n}",
                    index=n,
                    server_id=id_,
                    status=GONE if id_ == "gone" else "ACTIVE",
                    requested_at=timestamp(AT + 9 * HOUR),
                    created_at=timestamp(AT),
                )
                for n, id_ in enumerate(ids)
            ),
        )
        for name, ids in servers.items()
    )
    return Cluster(
        id=ClusterId("c"), tenant_id=TenantId("t"), name="c", plugin_name="fake",
        engine_version="1", default_image_id="i", status_since=timestamp(AT),
        created_at=timestamp(AT), node_groups=groups,
    )  # fmt: skip


class UsageTests(SynchronousTestCase):
    def hours(self, *states: tuple[float, Cluster], at: float) -> dict[str, tuple[int, float]]:
        """Machines and hours by flavor. states: of the row, with the hour of the write."""
        self.text = ""
        for hour, state in states:
            self.text = usage.counted(self.text, state, AT + hour * HOUR)
        self.shown: Any = json.loads(usage.shown(self.text.encode(), AT + at * HOUR))
        return {f["flavor_id"]: (f["machines"], f["instance_hours"]) for f in self.shown["flavors"]}

    def test_machines_count_while_the_row_has_their_server(self) -> None:
        """Growth, a shrink, a lost and a replaced machine, and a call without a server."""
        states = (
            (0.0, cluster(f1=[None], f2=[None, None])),
            (1.0, cluster(f1=["a"], f2=["b", None])),
            (2.0, cluster(f1=["a"], f2=["b", "c"])),
            (3.5, cluster(f1=["gone"], f2=["b", "c"])),
            (4.0, cluster(f1=["d"], f2=["b", "e"])),
            (5.0, cluster(f1=["d"], f2=["e"])),
        )
        self.assertEqual(self.hours(*states, at=5.25), {"1": (1, 3.75), "2": (1, 7.25)})
        self.assertEqual(usage.machines(self.text), 2)

    def test_a_cleanup_leaves_the_hours(self) -> None:
        """Of flavors without a machine too; a cluster without machines has none."""
        gone = (2.0, cluster(f1=[None]))
        self.assertEqual(self.hours((0.5, cluster(f1=["a"])), gone, at=9.0), {"1": (0, 1.5)})
        self.assertEqual(self.hours((0.0, cluster(f1=[None])), at=1.0), {})
        self.assertEqual(self.text, "")

    def test_a_write_without_a_change_of_machines_changes_nothing(self) -> None:
        """The text of the row stays."""
        first = usage.counted("", cluster(f1=["a"], f2=[]), AT)
        self.assertEqual(usage.counted(first, cluster(f1=["b"]), AT + HOUR), first)

    def test_a_clock_that_goes_back_takes_no_hour(self) -> None:
        """Time counts again from there."""
        states = ((1.0, cluster(f1=["a"])), (2.0, cluster(f1=["a", "b"])))
        self.assertEqual(self.hours(*states, (1.5, cluster(f1=["a"])), at=0.0), {"1": (1, 1.0)})
        self.assertEqual(self.hours(*states, (1.5, cluster(f1=["a"])), at=2.0), {"1": (1, 1.5)})

    def test_the_figures_are_of_the_begin_of_the_minute(self) -> None:
        """So two answers of one minute are the same, unless the machines have changed in it."""
        state = (0.0, cluster(f1=["a"]))
        one, other = (self.hours(state, at=hour) for hour in (1.001, 1.016))
        self.assertEqual((one, other), ({"1": (1, 1.0)}, {"1": (1, 1.0)}))
        self.assertEqual(self.shown["at"], "2026-01-01 01:00:00.000000")
        self.hours(state, (1.01, cluster(f1=["a", "b"])), at=1.016)
        self.assertEqual(self.shown["at"], "2026-01-01 01:00:36.000000")
