"""What one tenant may have: the settings `limits.*`."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.faults import Effect, FaultRule
from svcd.testing import FakeService
from tests.support.fakes import Api, cluster_body

SOURCE = {"name": "a", "type": "hdfs", "url": "/in"}


class LimitTests(SynchronousTestCase):
    def service(self, **settings: Any) -> FakeService:
        given = {name.replace("__", "."): str(value) for name, value in settings.items()}
        made = FakeService(settings=given)
        self.addCleanup(made.close)
        return made

    def refused(self, answer: Any, setting: str) -> None:
        self.assertEqual((answer.status, answer.json["error_name"]), (400, "QUOTA_ERROR"))
        self.assertIn(setting, answer.json["error_message"])

    def test_records_of_a_kind(self) -> None:
        """Of each tenant and each kind; deleting one makes room."""
        svcd = self.service(limits__rows=2)
        path = f"/v1.1/{svcd.tenant}/data-sources"
        made = [svcd.call("POST", path, json={**SOURCE, "name": name}) for name in "abc"]
        self.assertEqual([each.status for each in made], [202, 202, 400])
        self.refused(made[2], "limits.rows")
        other = svcd.call("POST", "/v1.1/other/data-sources", json=SOURCE)
        self.assertEqual(other.status, 202)
        svcd.call("DELETE", f"{path}/{made[0].json['data_source']['id']}")
        self.assertEqual(svcd.call("POST", path, json={**SOURCE, "name": "c"}).status, 202)
        path = f"/v1.1/{svcd.tenant}/job-binary-internals"  # which are written in another way
        made = [svcd.call("PUT", f"{path}/{name}", data=b"x") for name in "abc"]
        self.assertEqual([each.status for each in made[:2]], [202, 202])
        self.refused(made[2], "limits.rows")

    def test_ended_executions_go_after_their_days(self) -> None:
        """With the default they stay for ever."""
        for days, left in ((1, 0), (0, 1)):
            svcd = self.service(workflow__keep_days=days, workflow__poll_s=600)
            api = Api(svcd)
            cluster, job, sources = api.active_cluster("mine"), api.new_job(), api.new_sources()
            api.until_over(api.execute(job, cluster, sources))
            svcd.advance(80_000.0)
            self.assertEqual(len(api.get("/job-executions")["job_executions"]), 1)
            svcd.advance(10_000.0)
            self.assertEqual(len(api.get("/job-executions")["job_executions"]), left)

    def test_bytes_of_internal_binaries(self) -> None:
        """A refused upload and a deleted binary hold none."""
        svcd = self.service(limits__binary_bytes=10)
        path = f"/v1.1/{svcd.tenant}/job-binary-internals"
        first = svcd.call("PUT", f"{path}/a", data=b"12345678")
        self.assertEqual(first.status, 202)
        self.assertEqual(svcd.call("PUT", f"{path}/a", data=b"12").status, 400)
        self.assertEqual(svcd.call("PUT", f"{path}/b", data=b"12").status, 202)
        self.refused(svcd.call("PUT", f"{path}/c", data=b"1"), "limits.binary_bytes")
        svcd.call("DELETE", f"{path}/{first.json['job_binary_internal']['id']}")
        self.assertEqual(svcd.call("PUT", f"{path}/c", data=b"12345678").status, 202)

    def test_an_upload_that_never_fits_is_not_advised_to_delete(self) -> None:
        """As each one without Content-Length, when the limit is below server.max_binary_bytes."""
        svcd = self.service(limits__binary_bytes=10, server__max_binary_bytes=100)
        path = f"/v1.1/{svcd.tenant}/job-binary-internals"
        answer = svcd.call("PUT", f"{path}/a", data=b"12345678901")
        self.refused(answer, "limits.binary_bytes")
        message = answer.json["error_message"]
        self.assertIn("needs 11 bytes, and all job binary internals of a tenant may have", message)
        self.assertIn("Content-Length", message)
        self.assertNotIn("delete", message)

    def test_bytes_of_an_upload_that_failed_with_the_database(self) -> None:
        """They are free again with the next upload."""
        svcd = self.service(limits__binary_bytes=10)
        path = f"/v1.1/{svcd.tenant}/job-binary-internals"
        rule = svcd.faults.add(
            FaultRule(where="store", method="tx", after=1, times=2, effect=Effect.TIMEOUT_BEFORE)
        )
        self.assertEqual(svcd.call("PUT", f"{path}/a", data=b"12345678").status, 503)
        rule.remove()
        self.assertEqual(svcd.call("PUT", f"{path}/a", data=b"12345678").status, 202)

    def test_clusters_and_their_instances(self) -> None:
        """At creation and when a cluster grows."""
        svcd = self.service(limits__clusters=2, limits__instances=6)
        api = Api(svcd)
        first = api.active_cluster("first", 1)
        api.active_cluster("second", 1)
        grown = [{"name": "worker", "count": 9}]
        path = f"/v1.1/{svcd.tenant}/clusters"
        answer = svcd.call("PUT", f"{path}/{first}", json={"resize_node_groups": grown})
        self.refused(answer, "limits.instances")
        third = cluster_body(svcd, "third", 1)
        self.refused(svcd.call("POST", path, json=third), "limits.clusters")

    def test_open_executions(self) -> None:
        """Ended ones do not count."""
        svcd = self.service(limits__executions=1)
        api = Api(svcd)
        cluster, job, sources = api.active_cluster("mine"), api.new_job(), api.new_sources()
        first = api.execute(job, cluster, sources)
        body = {"cluster_id": cluster, "input_id": sources[0], "output_id": sources[1]}
        path = f"/v1.1/{svcd.tenant}/jobs/{job}/execute"
        self.refused(svcd.call("POST", path, json=body), "limits.executions")
        api.until_over(first)
        self.assertEqual(svcd.call("POST", path, json=body).status, 202)
