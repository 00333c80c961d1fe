"""The lines of `svcd why` about answers that svcd waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.cluster_story import of_cluster
from svcd.model.step_kind import kind_of

INSTANCE = {"instance_name": "c-master-001", "volumes": []}
GROUP = {"name": "master", "count": 1, "instances": [INSTANCE]}
CLUSTER = {
    "id": "id-1",
    "name": "c",
    "status": "Starting",
    "status_description": "",
    "plugin_name": "vanilla",
    "engine_version": "3.5.0",
    "node_groups": [GROUP],
}


def event(second: int, step: str, outcome: str, machine: str = "", **more: Any) -> dict[str, Any]:
    given = {
        "at": f"2026-01-01 00:00:{second:02d}",
        "generation": 1,
        "step": step,
        "kind": kind_of(step),
    }
    told = {"outcome": outcome, "machine": machine, "code": "", "text": "", "attempt": 0}
    return {**given, **told, "until": None, **more}


REQUEST = event(0, "request", "accepted", text="create with vanilla 3.5.0: master 1")
STARTED = event(1, "Starting", "started")
WORK = {
    "since": STARTED["at"],
    "until": None,
    "machines_done": 0,
    "waits": [],
    "waits_in_all": 0,
    "servers": [],
    "servers_in_all": 0,
}
STORY: dict[str, Any] = {
    "work": None,
    "failure": None,
    "changes": [
        {
            "generation": 1,
            "at": REQUEST["at"],
            "request": REQUEST["text"],
            "outcome": "going on",
            "code": "",
        }
    ],
}


class WaitTests(SynchronousTestCase):
    def told(
        self, *events: dict[str, Any], status: str = "Starting", waits: Sequence[object] = ()
    ) -> list[str]:
        cluster = {**CLUSTER, "status": status}
        story = {**STORY, "status": status}
        if status == "Starting":
            story["work"] = {**WORK, "waits": waits, "waits_in_all": len(waits)}
        return list(of_cluster(cluster, story, [REQUEST, STARTED, *events], None))

    def test_answers_that_came(self) -> None:
        """The step has only the name of the thing: the line says that svcd waited for it."""
        master = "c-master-001"
        told = self.told(
            event(2, "start oozie", "done", master),
            event(3, "the resource manager", "done", master),
            event(4, "a data node for the share library", "done", master),
            event(5, "Oozie", "done", master),
            event(5, "Active", "done"),
            status="Active",
        )
        begin = told.index("  +     1.0 s  started Starting")
        self.assertEqual(
            told[begin:],
            [
                "  +     1.0 s  started Starting",
                "  +     2.0 s  done start oozie c-master-001",
                "  +     3.0 s  done wait for the resource manager c-master-001",
                "  +     4.0 s  done wait for a data node for the share library c-master-001",
                "  +     5.0 s  done wait for Oozie c-master-001",
                "  +     5.0 s  done Active",
                "",
                "machines",
                "  c-master-001: last event: wait for Oozie done",
            ],
        )

    def test_answer_that_is_missing(self) -> None:
        waiting = event(2, "Oozie", "waiting", "c-master-001", text="refused")
        told = self.told(waiting, waits=[waiting])
        self.assertIn("    wait for Oozie on c-master-001: refused", told)
        self.assertIn("  +     2.0 s  waiting for Oozie c-master-001: refused", told)

    def test_answer_that_never_came(self) -> None:
        """A name with a capital is no status of the cluster: the line has the text."""
        failed = event(9, "Oozie", "failed", "c-master-001", code="TIMEOUT", text="it is SAFEMODE")
        told = self.told(failed, event(9, "Starting", "failed", "c-master-001", code="TIMEOUT"))
        self.assertIn(
            "  +     9.0 s  FAILED wait for Oozie c-master-001: TIMEOUT: it is SAFEMODE", told
        )
        self.assertIn("  +     9.0 s  FAILED Starting: TIMEOUT", told)
