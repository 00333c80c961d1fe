"""Short ways to ask a `FakeService`, for tests of whole lives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svcd.testing import FakeService

MASTER = ["namenode", "resourcemanager", "oozie", "historyserver"]
WORKER = ["datanode", "nodemanager"]
RUNNING = {"Pending", "PREP", "RUNNING", "SUSPENDED"}


class Api:
    """The API of one tenant; every answer must have the expected status."""

    def __init__(self, svcd: FakeService, tenant: str = "") -> None:
        self.svcd = svcd
        self._base = f"/v1.1/{tenant or svcd.tenant}"

    def get(self, path: str, status: int = 200) -> Any:
        return self.ask("GET", path, status)

    def post(self, path: str, body: object, status: int = 202) -> Any:
        return self.ask("POST", path, status, json=body)

    def put(self, path: str, body: object, status: int = 202) -> Any:
        return self.ask("PUT", path, status, json=body)

    def delete(self, path: str, status: int = 204) -> Any:
        return self.ask("DELETE", path, status)

    def ask(self, method: str, path: str, status: int, **more: Any) -> Any:
        answer = self.svcd.call(method, self._base + path, **more)
        if answer.status != status:
            raise AssertionError(f"{method} {path}: {answer.status} {answer.body.decode()}")
        return answer.json

    # ---- clusters ----

    def new_cluster(self, name: str = "mine", workers: int = 2, **more: Any) -> str:
        """The id of a new cluster that can run jobs."""
        made = self.post("/clusters", cluster_body(self.svcd, name, workers, **more))
        return str(made["cluster"]["id"])

    def active_cluster(self, name: str = "mine", workers: int = 2) -> str:
        """The id of one that is Active."""
        cluster_id = self.new_cluster(name, workers)
        self.until_status(cluster_id, "Active")
        return cluster_id

    def cluster(self, cluster_id: str) -> Any:
        return self.get(f"/clusters/{cluster_id}")["cluster"]

    def until_status(self, cluster_id: str, status: str, limit_s: float = 3600.0) -> Any:
        """The cluster when it has the status."""
        end = self.svcd.clock.seconds() + limit_s
        while self.svcd.clock.seconds() < end:
            shown = self.cluster(cluster_id)
            if shown["status"] == status:
                return shown
            self.svcd.advance(1.0)
        raise AssertionError(f"not {status} but {shown['status']}: {shown['status_description']}")

    # ---- jobs ----

    def new_job(self, name: str = "count", kind: str = "Pig") -> str:
        """A job whose one binary is kept inside the service."""
        suffix = "pig" if kind == "Pig" else "jar"
        stored = self.ask(
            "PUT", f"/job-binary-internals/{name}.{suffix}", 202, data=b"-- does nothing\n"
        )
        url = f"internaldb://{stored['job_binary_internal']['id']}"
        binary = self.post("/job-binaries", {"name": f"{name}.{suffix}", "url": url})
        binary_id = binary["job_binary"]["id"]
        lists = {"mains": [binary_id]} if kind == "Pig" else {"mains": [], "libs": [binary_id]}
        return str(self.post("/jobs", {"name": name, "type": kind, **lists})["job"]["id"])

    def new_sources(
        self, name: str = "data", password: str = "demo-password-of-a-source"
    ) -> tuple[str, str]:
        """Input and output in the object store, of an account that is refused by default."""
        ids = []
        for end in ("in", "out"):
            body = {
                "name": f"{name}-{end}",
                "type": "objstore",
                "url": f"objstore://demo.svcd/{name}/{end}",
                "credentials": {"user": "demo", "password": password},
            }
            ids.append(self.post("/data-sources", body)["data_source"]["id"])
        return ids[0], ids[1]

    def execute(
        self,
        job_id: str,
        cluster_id: str,
        sources: tuple[str, str],
        configs: Mapping[str, str] | None = None,
    ) -> str:
        body = {
            "cluster_id": cluster_id,
            "input_id": sources[0],
            "output_id": sources[1],
            "job_configs": {"configs": dict(configs or {}), "args": {}, "params": {}},
        }
        return str(self.post(f"/jobs/{job_id}/execute", body)["job_execution"]["id"])

    def until_over(self, execution_id: str, limit_s: float = 3600.0) -> Any:
        """The execution when it has ended."""
        end = self.svcd.clock.seconds() + limit_s
        while self.svcd.clock.seconds() < end:
            shown = self.get(f"/job-executions/{execution_id}")
            if shown["info"]["status"] not in RUNNING:
                return shown
            self.svcd.advance(1.0)
        raise AssertionError(f"still {shown['info']}")


def cluster_body(
    svcd: FakeService | type[FakeService], name: str, workers: int, **more: Any
) -> dict[str, Any]:
    """A master and workers of the fake distribution."""
    worker = {"name": "worker", "count": workers}
    return {
        "name": name,
        "plugin_name": "fake",
        "engine_version": "0.1",
        "default_image_id": svcd.image_id,
        "user_keypair_id": svcd.keypair,
        "cluster_configs": {"HDFS": {"dfs.replication": 1}},
        "node_groups": [
            {"name": "master", "count": 1, "flavor_id": svcd.flavor_id, "node_processes": MASTER},
            {**worker, "flavor_id": svcd.flavor_id, "node_processes": WORKER},
        ],
        **more,
    }
