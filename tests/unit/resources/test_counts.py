"""How much work a request makes: statements, transactions, calls of the cloud. Not how long."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.requests import NewNodeGroupTemplate
from svcd.testing import FakeService
from tests.support.fakes import cluster_body
from tests.unit.resources.bodies import LEAST


class CountTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.svcd = FakeService()
        self.addCleanup(self.svcd.close)
        self.ran: list[str] = []
        self.calls: list[str] = []
        self.svcd.faults.listen(
            lambda where, method, path: self.calls.append(f"{where} {method} {path}")
        )

    def watch(self) -> None:
        """Note the statements from now on by their first words, and the calls."""
        self.calls.clear()
        connection = self.svcd._database._connection
        connection.set_trace_callback(lambda text: self.ran.append(" ".join(text.split()[:3])))

    def test_a_get_is_one_statement_without_a_transaction(self) -> None:
        """The row has the JSON of the answer."""
        made = self.svcd.call(
            "POST", "/v1.1/demo/clusters", json=cluster_body(self.svcd, "c1", 1)
        ).json["cluster"]
        self.watch()
        got = self.svcd.call("GET", f"/v1.1/demo/clusters/{made['id']}")
        self.assertEqual(got.status, 200)
        self.assertEqual(self.ran, ["select wire from"])
        self.assertEqual(self.calls, ["store read "])

    def test_a_post_of_a_template_is_one_call_and_one_transaction(self) -> None:
        """The row, and its change in the feed. Nothing is read back."""
        group = LEAST[NewNodeGroupTemplate]
        self.svcd.call("POST", "/v1.1/demo/node-group-templates", json=group)
        self.watch()
        for name in ("second", "third"):
            self.ran.clear()
            self.calls.clear()
            made = self.svcd.call(
                "POST", "/v1.1/demo/node-group-templates", json={**group, "name": name}
            )
            self.assertEqual(made.status, 202)
            self.assertEqual(
                self.ran,
                [
                    "begin immediate",
                    "insert into node_group_templates",
                    "update feed set",
                    "insert into changes",
                    "commit",
                ],
            )
            self.assertEqual(
                self.calls, ["compute GET /compute/v2.1/flavors/detail?limit=1000", "store tx "]
            )
