"""The tables of a dry run: what a person reads before a cluster is made."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.cluster_plan import lines
from svcd.cli.show import Style

MASTER = {
    "name": "c-master-001",
    "change": "create",
    "node_group": "master",
    "flavor_id": "3",
    "node_processes": ["namenode", "oozie"],
}
QUOTA = [
    {"resource": "instances", "needed": 1, "left": 10, "left_after": 9},
    {"resource": "cores", "needed": 2, "left": None, "left_after": None},
    {"resource": "volumes", "needed": 0, "left": 7, "left_after": 7},
]
STAGE = {
    "phase": "configure",
    "name": "write the configuration",
    "deadline_s": 300.0,
    "files": [
        {"path": "/a", "mode": "0644", "node_group": "m", "machines": ["x", "y"], "content": "one"},
        {"path": "/b", "mode": "0644", "node_group": "m", "machines": ["x"], "content": None},
    ],
    "commands": [{"what": "start", "node_group": "m", "machines": ["x"]}],
    "awaited": [],
}
PLAN = {
    "name": "c",
    "machines": [MASTER],
    "volumes": [],
    "addresses": [],
    "quota": QUOTA,
    "stages": [STAGE],
}


class PlanTests(SynchronousTestCase):
    def shown(self, flavors: Mapping[str, str], **changed: object) -> list[str]:
        return list(lines({**PLAN, **changed}, flavors, None, Style()))

    def test_machines_quota_and_stages(self) -> None:
        """Files are counted on each machine; a quota of which nothing is needed is left out."""
        self.assertEqual(
            self.shown({"3": "m1.medium"}),
            [
                "MACHINE       CHANGE  GROUP   FLAVOR     PROCESSES",
                "c-master-001  create  master  m1.medium  namenode,oozie",
                "",
                "QUOTA      NEEDED  LEFT       AFTER",
                "instances  1       10         9",
                "cores      2       unlimited  unlimited",
                "",
                "STAGE                    FILES  COMMANDS  CHECKS  AT MOST",
                "write the configuration  3      1         0       5 min 00 s",
            ],
        )

    def test_volumes_and_floating_addresses(self) -> None:
        """A flavor without a known name is its id."""
        volume = {"machine": "m", "change": "create", "size_gib": 5, "mount_point": "/volumes/1"}
        address = {"machine": "m", "change": "create", "floating_ip_pool": "public"}
        made = self.shown({}, volumes=[volume], addresses=[address], quota=[], stages=[])
        self.assertEqual(made[1].split()[3], "3")
        self.assertEqual(
            made[3:],
            [
                "VOLUME OF  CHANGE  SIZE   FOLDER",
                "m          create  5 GiB  /volumes/1",
                "",
                "FLOATING IP OF  CHANGE  POOL",
                "m               create  public",
            ],
        )
