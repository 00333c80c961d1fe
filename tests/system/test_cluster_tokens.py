"""The token of a cluster with Spark Connect: who sees it, and where it is written."""

from __future__ import annotations

import json
import re
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import FakeService
from tests.support.fakes import MASTER, cluster_body

HIDDEN = r"\Asc://[0-9.]+:15002/;token=\*\*\*\Z"
SHOWN = r"\Asc://[0-9.]+:15002/;token=([0-9a-f]{40})\Z"


class TokenCase(SynchronousTestCase):
    """A cluster of the project alpha, where alice is a member and carol a reader."""

    def setUp(self) -> None:
        self.svcd = FakeService({"auth.mode": "keystone"})
        self.addCleanup(self.svcd.close)
        self.writer = self.svcd.token("alice", project="alpha")
        self.reader = self.svcd.token("carol", project="alpha")

    def ask(self, token: str, method: str, path: str, **more: Any) -> Any:
        answer = self.svcd.call(
            method, f"/v1.1/alpha{path}", headers={"X-Auth-Token": token}, **more
        )
        self.assertLess(answer.status, 300, answer.body)
        return answer.json

    def body(self) -> dict[str, Any]:
        body = cluster_body(self.svcd, "mine", 1)
        body["node_groups"][0]["node_processes"] = [*MASTER, "sparkconnect"]
        return body

    def active(self) -> str:
        """The id of a new cluster that is Active."""
        id_ = str(self.ask(self.writer, "POST", "/clusters", json=self.body())["cluster"]["id"])
        self.svcd.advance(300)
        return id_

    def link(self, token: str, id_: str) -> str:
        cluster = self.ask(token, "GET", f"/clusters/{id_}")["cluster"]
        self.assertEqual(cluster["status"], "Active")
        return str(cluster["info"]["Spark"]["Connect"])

    def test_writers_see_it_and_readers_see_stars(self) -> None:
        """In the cluster and in the list; with `server.hide_credentials` everybody sees stars."""
        id_ = self.active()
        self.assertRegex(self.link(self.writer, id_), SHOWN)
        self.assertRegex(self.link(self.reader, id_), HIDDEN)
        self.svcd.restart({"server.hide_credentials": "true"})
        self.assertRegex(self.link(self.writer, id_), HIDDEN)
        self.svcd.restart({"server.hide_credentials": "false"})
        for token in (self.writer, self.reader):
            (listed,) = self.ask(token, "GET", "/clusters")["clusters"]
            self.assertEqual(listed["info"]["Spark"]["Connect"], self.link(token, id_))

    def test_it_is_written_to_a_file_of_the_owner_and_nowhere_else(self) -> None:
        """Neither database nor events, audit or dry run have it."""
        id_ = self.active()
        found = re.search(SHOWN, self.link(self.writer, id_))
        assert found is not None
        token = found[1]
        written = [r for r in self.svcd.remote.ran if token.encode() in r.stdin]
        self.assertEqual(len(written), 1)
        self.assertRegex(written[0].command, r"0600 \S+/svcd-fake/token\n")
        self.assertEqual([r for r in self.svcd.remote.ran if token in r.command], [])
        self.assertNotIn(token, "\n".join(self.svcd._database._connection.iterdump()))
        events = self.ask(self.writer, "GET", f"/clusters/{id_}/events")
        self.assertNotIn(token, json.dumps(events))

    def test_a_dry_run_shows_stars(self) -> None:
        """As a reader sees them."""
        body = {**self.body(), "name": "other"}
        plan = self.ask(self.writer, "POST", "/clusters?dry_run=true", json=body)["plan"]
        files = {f["path"]: f for stage in plan["stages"] for f in stage["files"]}
        file = files["/home/svcd/svcd-fake/token"]
        self.assertEqual((file["content"], file["mode"]), ("***\n", "0600"))

    def test_each_cluster_has_its_own_and_keeps_it(self) -> None:
        """A user of one cannot use another one; notebooks go on when the cluster is scaled."""
        first = self.active()
        before = self.link(self.writer, first)
        body = {**self.body(), "name": "other"}
        second = self.ask(self.writer, "POST", "/clusters", json=body)["cluster"]["id"]
        groups = {"resize_node_groups": [{"name": "worker", "count": 2}]}
        self.ask(self.writer, "PUT", f"/clusters/{first}", json=groups)
        self.svcd.advance(300)
        self.assertEqual(self.link(self.writer, first), before)
        other = self.link(self.writer, second)
        self.assertNotEqual(other.partition("=")[2], before.partition("=")[2])
