"""The light distribution: endpoints of its scripted engine, and its plans on a real folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.fake import Fake
from svcd.provisioning.distributions.kit import cluster, group, identities, machines
from svcd.provisioning.distributions.spi import Command, Endpoints, Plan, WriteFile

WITH_ENGINE = Fake("http://127.0.0.1:8387/engine")
MADE = cluster(
    Fake(),
    group("master", 1, "namenode", "resourcemanager", "historyserver", "oozie"),
    group("worker", 1, "datanode", "nodemanager"),
)


class TestDescription(SynchronousTestCase):
    def test_each_cluster_has_an_engine_of_its_own(self) -> None:
        """Below the URL that the service gives."""
        self.assertEqual(
            Fake("http://127.0.0.1:8387/engine/").endpoints(MADE, machines(MADE)),
            Endpoints(
                engine="http://127.0.0.1:8387/engine/6d9bbbb8-8bd5-4f5c-b3dc-3b2c5a4b5d31/oozie",
                webhdfs="http://127.0.0.1:8387/engine/6d9bbbb8-8bd5-4f5c-b3dc-3b2c5a4b5d31",
                name_node="hdfs://10.0.0.2:8020",
                resource_manager="10.0.0.2:8032",
                history="",
                user="user",
                identities=tuple(identities(WITH_ENGINE.check(MADE, machines(MADE)))),
            ),
        )

    def test_without_an_engine_there_are_no_endpoints(self) -> None:
        """Clusters can be made all the same."""
        self.assertIsNone(Fake().endpoints(MADE, machines(MADE)))


class TestPlans(SynchronousTestCase):
    def setUp(self) -> None:
        home = Path(self.mktemp()).resolve()
        self.machine = evolve(machines(MADE)[0], home=f"{home} one")
        self.ids = [self.machine.instance_id]

    def perform(self, plan: Plan) -> list[int]:
        """Exit codes of the commands."""
        codes = []
        for action in (a for stage in plan for chain in stage.chains for a in chain):
            if isinstance(action, WriteFile):
                Path(action.path).parent.mkdir(parents=True, exist_ok=True)
                Path(action.path).write_bytes(action.content)
            elif isinstance(action, Command):
                done = subprocess.run(
                    ["sh", "-c", action.script], env={"PATH": os.environ["PATH"]}, timeout=20,
                    capture_output=True, check=False,
                )  # fmt: skip
                codes.append(done.returncode)
        return codes

    def test_a_life_from_configure_to_decommission(self) -> None:
        """Each step succeeds, also when repeated; the check tells running from stopped."""
        fake, given = Fake(), (self.machine,)
        self.perform(fake.configure(MADE, given, self.ids))
        for _ in range(2):
            self.assertEqual(self.perform(fake.start(MADE, given, self.ids)), [0])
        self.assertEqual(self.perform(fake.check(MADE, given)), [0])
        for _ in range(2):
            self.assertEqual(self.perform(fake.decommission(MADE, given, self.ids)), [0])
        self.assertEqual(self.perform(fake.check(MADE, given)), [1])
