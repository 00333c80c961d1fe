"""The token of a cluster in its links. `tests.system.test_cluster_tokens` has its life."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster_token import ClusterTokens
from svcd.model.ids import ClusterId, TenantId
from svcd.model.secret import Secret

TENANT = TenantId("demo")
HIDDEN = b'{"id":"c1","info":{"Spark":{"Connect":"sc://10.0.0.5:15002/;token=***"}},"count":1}'


class TokenTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.asked: list[bytes] = []
        self.tokens = ClusterTokens(self.digest)

    def digest(self, data: bytes) -> str:
        self.asked.append(data)
        return f"{data.rpartition(bytes(1))[2].decode():0>64}"[::-1]

    def test_a_token_is_a_digest_of_project_and_cluster(self) -> None:
        """No text of a caller has the same digest, for these bytes are no UTF-8."""
        self.assertEqual(self.tokens.of(TENANT, ClusterId("c1")), Secret("1c" + "0" * 38))
        self.assertEqual(self.asked, [b"\xffcluster token\0demo\0c1"])

    def test_each_cluster_of_a_list_is_shown_with_its_own(self) -> None:
        """Other links, and other texts of the cluster, stay."""
        other = (
            b'{"id":"c2","description":"sc://x/;token=***",'
            b'"info":{"HDFS":{"Web UI":"http://10.0.0.5:9870"},'
            b'"Spark":{"Connect":"sc://10.0.0.6:15002/;token=***"}}}'
        )
        first, second = json.loads(b"[%b]" % self.tokens.shown(TENANT, HIDDEN + b"," + other))
        link = f"sc://10.0.0.5:15002/;token=1c{'0' * 38}"
        self.assertEqual(first, {"id": "c1", "info": {"Spark": {"Connect": link}}, "count": 1})
        link = f"sc://10.0.0.6:15002/;token=2c{'0' * 38}"
        web = {"Web UI": "http://10.0.0.5:9870"}
        self.assertEqual(second["info"], {"HDFS": web, "Spark": {"Connect": link}})
        self.assertEqual(second["description"], "sc://x/;token=***")

    def test_clusters_without_such_a_link_are_not_decoded(self) -> None:
        """Whatever they hold."""
        for text in (b"", b"no JSON", HIDDEN.replace(b";token=***", b"")):
            self.assertIs(self.tokens.shown(TENANT, text), text)
        self.assertEqual(self.asked, [])
