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

    def count(self, method: str, path: str, body: object = None) -> None:
        """Note the statements of a request by their first words, and its calls."""
        faults, connection = self.svcd.faults, self.svcd._database._connection
        faults.listen(lambda where, verb, path: self.calls.append(f"{where} {verb} {path}"))
        connection.set_trace_callback(lambda text: self.ran.append(" ".join(text.split()[:3])))
        self.assertIn(self.svcd.call(method, path, json=body).status, (200, 202))

    def test_a_get_is_one_statement_without_a_transaction(self) -> None:
        """The row has the JSON of the answer."""
        body = cluster_body(self.svcd, "c1", 1)
        made = self.svcd.call("POST", "/v1.1/demo/clusters", json=body).json["cluster"]
        self.count("GET", f"/v1.1/demo/clusters/{made['id']}")
        self.assertEqual(self.ran, ["select wire ||"])
        self.assertEqual(self.calls, ["store read "])

    def test_a_post_of_a_template_is_one_call_and_one_transaction(self) -> None:
        """The row, and its change in the feed. Nothing is read back."""
        group = LEAST[NewNodeGroupTemplate]
        self.svcd.call("POST", "/v1.1/demo/node-group-templates", json=group)
        self.count("POST", "/v1.1/demo/node-group-templates", {**group, "name": "second"})
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
        flavors = "compute GET /compute/v2.1/flavors/detail?limit=1000"
        self.assertEqual(self.calls, [flavors, "store tx "])
