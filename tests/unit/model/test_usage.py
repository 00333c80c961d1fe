"""The instance hours of a cluster are counted from one state of its row to the next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model import usage
from svcd.model.cluster import GONE
from tests.contract.store.rows import cluster

AT = 1_767_225_600.0
HOUR = 3600.0


class UsageTests(SynchronousTestCase):
    def hours(self, *states: tuple[float, Mapping[str, int]], at: float) -> dict[str, list[Any]]:
        """Machines and hours by flavor. states: machines by flavor, with the hour of the write."""
        self.text = "[]"
        for hour, counts in states:
            self.text, self.more = usage.counted(self.text, counts, AT + hour * HOUR)
        self.shown: Any = json.loads(usage.shown(self.text.encode(), AT + at * HOUR))
        return {flavor: rest for flavor, *rest in map(dict.values, self.shown["flavors"])}

    def test_a_machine_counts_while_the_row_has_its_server(self) -> None:
        """Not before the create call has an answer, nor when somebody has deleted the server."""
        (group,) = cluster().node_groups
        machine = evolve(group.instances[0], server_id="a", requested_at="2026-01-01 09:00:00")
        lost = evolve(machine, status=GONE)
        other = evolve(group, flavor_id="3", instances=(machine, lost))
        first = evolve(group, instances=(machine, machine, *group.instances))
        self.assertEqual(
            usage.machines(cluster(node_groups=(first, other, first))), {"2": 4, "3": 1}
        )

    def test_hours_by_flavor(self) -> None:
        """Growth, a shrink, a clean-up, and a flavor that comes later."""
        states = ((0.0, {}), (1.0, {"2": 1}), (2.0, {"1": 1, "2": 2}), (3.5, {"2": 2}))
        self.assertEqual(self.hours(*states, at=3.75), {"1": [0, 1.5], "2": [2, 4.5]})
        self.assertEqual(self.more, -1)
        self.assertEqual(self.hours(*states, (4.0, {}), at=9.0), {"1": [0, 1.5], "2": [0, 5.0]})
        self.assertEqual(self.hours((1.0, {}), at=2.0), {})

    def test_a_write_without_a_change_of_machines_changes_nothing(self) -> None:
        """The text of the row stays."""
        first, _ = usage.counted("[]", {"1": 2}, AT)
        self.assertEqual(usage.counted(first, {"1": 2}, AT + HOUR), (first, 0))

    def test_a_clock_that_goes_back_takes_no_hour(self) -> None:
        """No time counts twice: it counts again from the last time that was counted."""
        states = ((1.0, {"1": 1}), (2.0, {"1": 2}), (1.5, {"1": 1}))
        self.assertEqual(self.hours(*states, at=0.0), {"1": [1, 1.0]})
        self.assertEqual(self.hours(*states, at=2.5), {"1": [1, 1.5]})

    def test_figures_are_never_older_than_the_last_change(self) -> None:
        """The caller gives the begin of a minute."""
        state = (0.0, {"1": 1})
        self.assertEqual(self.hours(state, at=1.0), {"1": [1, 1.0]})
        self.assertEqual(self.shown["at"], "2026-01-01 01:00:00.000000")
        self.hours(state, (1.01, {"1": 2}), at=1.0)
        self.assertEqual(self.shown["at"], "2026-01-01 01:00:36.000000")
