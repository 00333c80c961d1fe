"""A client that openapi-python-client makes of `/openapi.json` runs the first steps of the README.

Against the in-process service behind a socket. The made client blocks, so it runs in a thread.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

from twisted.internet import reactor as global_reactor  # noqa: TID251 - sockets
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SkipTest, TestCase

from svcd.runtime.tasks import sleep, with_deadline
from svcd.testing import FakeService
from tests.support.api import served
from tests.support.fakes import cluster_body

try:
    import openapi_python_client  # noqa: F401 - runs as a program
except ImportError as error:
    raise SkipTest("openapi-python-client is not installed: pip install 'svcd[dev]'") from error

reactor: Any = global_reactor
MADE = "svcd_made_client"
BYTES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "*/*")
CONFIG = {
    "content_type_overrides": dict.fromkeys(BYTES, "application/octet-stream"),
    "post_hooks": [],
}
"""The generator knows neither YAML nor files of any type; its own hooks would format the client."""
OVER = {"SUCCEEDED", "KILLED", "FAILED"}


class MadeClientTests(TestCase):
    timeout = 120

    async def setUp(self) -> None:
        self.fake = FakeService()
        self.addCleanup(self.fake.close)
        self.api = await served(reactor, self.fake)
        self.addCleanup(self.api.stop)
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir()
        self.addCleanup(self._forget)

    def _forget(self) -> None:
        sys.path[:] = [each for each in sys.path if each != str(self.folder)]
        for name in [n for n in sys.modules if n.partition(".")[0] == MADE]:
            del sys.modules[name]

    async def blocking(self, work: Any, *args: Any, **more: Any) -> Any:
        """The result of a call that blocks."""
        return await with_deadline(reactor, 60.0, "a call", deferToThread(work, *args, **more))

    async def made(self) -> None:
        """Make the client; `ask` imports it."""
        description = self.folder / "openapi.json"
        description.write_bytes(self.fake.call("GET", "/openapi.json").body)
        config = self.folder / "config.json"
        config.write_text(json.dumps(CONFIG))
        command = [
            sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none",
            "--path", str(description), "--config", str(config),
            "--output-path", str(self.folder / MADE), "--fail-on-warning",
        ]  # fmt: skip
        done = await self.blocking(subprocess.run, command, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertNotIn("arning", done.stdout)
        sys.path.insert(0, str(self.folder))
        importlib.invalidate_caches()
        self.models = importlib.import_module(f"{MADE}.models")
        self.types = importlib.import_module(f"{MADE}.types")
        self.client = importlib.import_module(f"{MADE}.client").Client(base_url=self.api.url)

    async def ask(self, tag: str, operation: str, *ids: str, **more: Any) -> Any:
        """The parsed answer of an operation of the tenant."""
        module = importlib.import_module(f"{MADE}.api.{tag}.{operation}")
        answer = await self.blocking(
            module.sync_detailed, self.fake.tenant, *ids, client=self.client, **more
        )
        self.assertLess(answer.status_code, 300, answer.content)
        return answer.parsed

    async def test_first_steps(self) -> None:
        """An image, a cluster, a job, its execution; lists, a page, a download, a refusal."""
        await self.made()
        models = self.models
        await self.ask(
            "images", "register_image", self.fake.image_id,
            body=models.RegisterImage(username="cloud"),
        )  # fmt: skip
        body = models.NewCluster.from_dict(cluster_body(self.fake, "first", 2))
        made = await self.ask("clusters", "create_cluster", body=body, idempotency_key="once")
        self.assertEqual(made.cluster.status, models.ClusterStatus.WAITING)
        again = await self.ask("clusters", "create_cluster", body=body, idempotency_key="once")
        self.assertEqual(again.cluster.id, made.cluster.id)
        cluster = await self._until_active(made.cluster.id)
        self.assertEqual([each.count for each in cluster.node_groups], [1, 2])
        script = self.types.File(payload=BytesIO(b"-- does nothing\n"))
        stored = await self.ask(
            "job_binary_internals", "upload_job_binary_internal", "count.pig", body=script
        )
        url = f"internaldb://{stored.job_binary_internal.id}"
        new = models.NewJobBinary(name="count.pig", url=url)
        binary = (await self.ask("job_binaries", "create_job_binary", body=new)).job_binary
        new = models.NewJob(name="count", type_=models.JobType.PIG, mains=[binary.id])
        job = (await self.ask("jobs", "create_job", body=new)).job
        sources = []
        for end in ("in", "out"):
            new = models.NewDataSource(
                name=end, type_=models.NewDataSourceType.HDFS, url=f"/data/{end}"
            )
            source = await self.ask("data_sources", "create_data_source", body=new)
            sources.append(source.data_source.id)
        run = models.ExecuteRequest(
            cluster_id=cluster.id, input_id=sources[0], output_id=sources[1]
        )
        began = (await self.ask("jobs", "execute_job", job.id, body=run)).job_execution
        self.assertEqual(began.info.status, models.ExecutionStatus.PENDING)
        ended = await self._until_over(began.id)
        self.assertEqual(ended.info.status, models.ExecutionStatus.SUCCEEDED)
        listed = await self.ask("job_executions", "list_job_executions", limit=1)
        self.assertEqual([each.id for each in listed.job_executions], [ended.id])
        text = await self.ask("job_binaries", "download_job_binary", binary.id)
        self.assertEqual(text, "-- does nothing\n")
        await self.ask("clusters", "delete_cluster", cluster.id, force=True)
        refused = await self.blocking(
            importlib.import_module(f"{MADE}.api.clusters.get_cluster").sync,
            self.fake.tenant, "unknown", client=self.client,
        )  # fmt: skip
        self.assertEqual((refused.error_code, refused.error_name), (404, "NOT_FOUND"))

    async def _until_active(self, cluster_id: str) -> Any:
        while True:
            found = (await self.ask("clusters", "get_cluster", cluster_id)).cluster
            if found.status == self.models.ClusterStatus.ACTIVE:
                return found
            self.assertNotEqual(found.status, self.models.ClusterStatus.ERROR)
            self.fake.advance(1.0)
            await sleep(reactor, 0.0)

    async def _until_over(self, execution_id: str) -> Any:
        while True:
            found = await self.ask("job_executions", "get_job_execution", execution_id)
            if found.info.status.value in OVER:
                return found
            self.fake.advance(1.0)
            await sleep(reactor, 0.0)
