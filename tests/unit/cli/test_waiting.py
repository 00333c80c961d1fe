"""The progress of a cluster, its news, and the events that follow others."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.waiting import news, progress
from svcd.model.step_kind import kind_of

NOW = 1_767_225_600.0


def event(step: str, outcome: str = "done", machine: str = "", **more: Any) -> dict[str, Any]:
    told = {"outcome": outcome, "machine": machine, "code": "", "text": ""}
    return {"step": step, "kind": kind_of(step), **told, **more}


CLUSTER = {
    "name": "c",
    "node_groups": [{"instances": [{"instance_name": f"c-{n}"} for n in (1, 2)]}],
}
UNTIL = "2026-01-01 00:10:00.000000"
LOG_IN = event("log in", "retry", machine="c-2", code="SSH_FAILED", text="no\nroute", attempt=2)
EVENTS = [
    event("request", "accepted", until="2026-01-01 00:30:00"),
    event("Spawning", "started"),
    event("create server", machine="c-1"),
    event("create server", machine="c-2"),
    event("Preparing", "started", until=UNTIL),
    event("log in", machine="c-1"),
    LOG_IN,
]


def work(**more: Any) -> dict[str, Any]:
    nothing = {"waits": [], "waits_in_all": 0, "servers": [], "servers_in_all": 0}
    return {"until": None, "machines_done": 0, **nothing, **more}


class ProgressTests(SynchronousTestCase):
    def test_line_of_a_cluster(self) -> None:
        """Phase, bar, machines, the newest of the steps or servers, and the deadline.

        The bar is full at the end alone: all machines are ready long before their daemons.
        """
        servers = [{"machine": f"c-{n}", "status": "BUILD"} for n in (1, 2)]
        waits = [event("Oozie", "waiting"), event("start oozie", "started", machine="c-1")]
        stage = event("start the daemons", "started")
        for status, now, line in (
            ("Preparing", work(until=UNTIL, machines_done=1, waits=[LOG_IN], waits_in_all=1),
             "Preparing  [#####.....]  1/2 machines  log in on c-2  gives up in 10 min 00 s"),
            ("Spawning", work(servers=servers, servers_in_all=2),
             "Spawning  [###.......]  0/2 machines  waiting for server c-1 and 1 more"),
            ("Starting", work(waits=waits, waits_in_all=12),
             "Starting  [########..]  0/2 machines  start oozie on c-1 and 11 more"),
            ("Starting", work(until=UNTIL, machines_done=2, waits=[stage], waits_in_all=1),
             "Starting  [#########.]  2/2 machines  start the daemons  gives up in 10 min 00 s"),
            ("Deleting", None, "Deleting"),
        ):  # fmt: skip
            self.assertEqual(progress(CLUSTER, {"status": status, "work": now}, NOW), line)

    def test_news_are_phases_and_troubles(self) -> None:
        self.assertEqual(
            news(EVENTS), ["Spawning", "Preparing", "retry: log in on c-2: SSH_FAILED no route"]
        )
