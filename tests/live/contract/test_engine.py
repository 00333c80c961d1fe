"""The engine's contract, and whole jobs, on a real Oozie, HDFS and YARN.

Skipped unless SVCD_TEST_OOZIE_URL (…/oozie) and SVCD_TEST_WEBHDFS_URL are set. Further variables:
SVCD_TEST_NAME_NODE (hdfs://…), SVCD_TEST_RESOURCE_MANAGER (host:port), SVCD_TEST_HISTORY_URL,
SVCD_TEST_HDFS_USER, SVCD_TEST_JAR (a jar with the classes named in JAR_CLASSES).
"""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from twisted.internet import reactor as _reactor  # noqa: TID251
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorCore, IReactorTime
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool

from svcd.clients.http import HttpClient
from svcd.clients.oozie import OozieClient, engine_error
from svcd.clients.probe import HttpProbe
from svcd.model.cluster import Cluster
from svcd.model.ids import (
    DataSourceId,
    ExecutionId,
    JobBinaryId,
    JobBinaryInternalId,
    JobId,
    timestamp,
)
from svcd.model.job import (
    DataSource,
    Execution,
    ExecutionStatus,
    Job,
    JobBinary,
    JobBinaryInternal,
    JobConfigs,
    JobType,
)
from svcd.model.requests import ExecuteRequest
from svcd.model.secret import Secret
from svcd.ports.engine import Endpoints
from svcd.ports.machines import Location
from svcd.ports.store import Tx
from svcd.runtime.tasks import sleep
from svcd.settings import Workflow
from svcd.store.sealer import MemorySealer
from svcd.store.sqlite import SqliteDatabase
from svcd.store.store import SqlStore
from svcd.workflow.act.controller import Controller
from svcd.workflow.commands import Jobs
from svcd.workflow.decide.lifecycle import is_over
from tests.contract.engine import EngineContract, once
from tests.support.hdfs import ReadingClient
from tests.unit.workflow.support import CALLER, CLUSTER, TENANT, FakeEngines, WorkflowCase

OOZIE = os.environ.get("SVCD_TEST_OOZIE_URL", "")
WEBHDFS = os.environ.get("SVCD_TEST_WEBHDFS_URL", "")
USER = os.environ.get("SVCD_TEST_HDFS_USER", "root")
NAME_NODE = os.environ.get("SVCD_TEST_NAME_NODE", "")
RESOURCE_MANAGER = os.environ.get("SVCD_TEST_RESOURCE_MANAGER", "")
HISTORY = os.environ.get("SVCD_TEST_HISTORY_URL", "")
JAR = os.environ.get("SVCD_TEST_JAR", "")
JAR_CLASSES = {
    "mapreduce.map.class": "svcd.examples.WordCount$Map",
    "mapreduce.reduce.class": "svcd.examples.WordCount$Reduce",
    "mapred.mapoutput.key.class": "org.apache.hadoop.io.Text",
    "mapred.mapoutput.value.class": "org.apache.hadoop.io.IntWritable",
    "mapred.output.key.class": "org.apache.hadoop.io.Text",
    "mapred.output.value.class": "org.apache.hadoop.io.IntWritable",
}
PIG = b"""lines = LOAD '$INPUT' USING TextLoader() AS (line:chararray);
words = FOREACH lines GENERATE FLATTEN(TOKENIZE(line)) AS word;
same = GROUP words BY word;
counts = FOREACH same GENERATE group, COUNT(words);
STORE counts INTO '$OUTPUT';
"""
TEXT = b"the cat sat on the mat\nthe dog sat on the cat\n"
COUNTS = {"the": "4", "cat": "2", "sat": "2", "on": "2", "mat": "1", "dog": "1"}
LOCAL = {"mapreduce.framework.name": "local", "mapreduce.task.io.sort.mb": "16"}
"""Pig in its launcher: real Oozie, YARN and Pig, without further containers."""


class RealEngines(FakeEngines):
    def endpoints(self, cluster: Cluster) -> Any:
        return Endpoints(
            engine=OOZIE,
            webhdfs=WEBHDFS,
            name_node=NAME_NODE,
            resource_manager=RESOURCE_MANAGER,
            history=HISTORY,
            user=USER,
        )


class Live(TestCase):
    if not (OOZIE and WEBHDFS):
        skip = "SVCD_TEST_OOZIE_URL and SVCD_TEST_WEBHDFS_URL are not set"
    timeout = 300

    def setUp(self) -> None:
        self.clock: IReactorTime = _reactor  # type: ignore[assignment]
        core: IReactorCore = _reactor  # type: ignore[assignment]
        self.pool = HTTPConnectionPool(core)
        self.agent = Agent(core, pool=self.pool)
        http = HttpClient(self.agent, self.clock, engine_error)
        self.engine = OozieClient(http)
        self.files = ReadingClient(http)
        self.base, self.webhdfs, self.user = Location(OOZIE), Location(WEBHDFS), USER
        self.mark = uuid.uuid4().hex[:8]
        self.folder = f"/user/{USER}/contract-{self.mark}"

    async def pause(self, seconds: float) -> None:
        await sleep(self.clock, seconds)

    def run_live(self, work: Coroutine[Any, Any, None]) -> Deferred[None]:
        async def bounded() -> None:
            try:
                await work
            finally:
                await self.files.delete(self.webhdfs, self.folder, USER)
                await self.pool.closeCachedConnections()

        return Deferred.fromCoroutine(bounded())


class LiveEngineContract(EngineContract, Live):
    """The suite on the real server."""

    def setUp(self) -> None:
        super().setUp()
        self.properties: Mapping[str, str] = {
            "nameNode": NAME_NODE,
            "jobTracker": RESOURCE_MANAGER,
            "user.name": USER,
            "oozie.use.system.libpath": "true",
        }

    def external(self, name: str) -> str:
        return f"{name}-{self.mark}"

    def test_status(self) -> Deferred[None]:
        return self.run_live(self.check_status())

    def test_life(self) -> Deferred[None]:
        return self.run_live(self.check_life())

    def test_kill(self) -> Deferred[None]:
        return self.run_live(self.check_kill())

    def test_unknown(self) -> Deferred[None]:
        return self.run_live(self.check_unknown())

    def test_refusals(self) -> Deferred[None]:
        return self.run_live(self.check_refusals())

    def test_files(self) -> Deferred[None]:
        return self.run_live(self.check_files())


class LiveJobs(Live):
    """Whole executions through controller and commands."""

    async def world(self) -> None:
        sealer = MemorySealer()
        self.sealed_key = sealer.seal(Secret("key"))
        self.store = SqlStore(SqliteDatabase(None), sealer)
        now = timestamp(self.clock.seconds())
        await self.store.open(now)
        engines = RealEngines()
        settings = Workflow(poll_s=0.5)
        self.controller = Controller(
            store=self.store,
            engine=self.engine,
            files=self.files,
            object_store=None,  # type: ignore[arg-type]
            credentials=None,
            engines=engines,
            probe=HttpProbe(self.agent, self.clock),
            sealer=sealer,
            clock=self.clock,
            settings=settings,
            access=None,
            rng=random.Random(1),
        )
        self.jobs = Jobs(
            store=self.store,
            engines=engines,
            controller=self.controller,
            create_cluster=None,  # type: ignore[arg-type]
            plan_cluster=None,  # type: ignore[arg-type]
            clock=self.clock,
            new_id=lambda: str(uuid.uuid4()),
            settings=settings,
        )
        await self.files.make_folders(self.webhdfs, f"{self.folder}/in", USER)
        await self.files.write(self.webhdfs, f"{self.folder}/in/a", USER, once(TEXT), len(TEXT))

        async def rows(tx: Tx) -> None:
            await tx.clusters.add(WorkflowCase.cluster(self, CLUSTER, "c1"))  # type: ignore[arg-type]
            contents = {
                "count.pig": PIG,
                "broken.pig": b"a = LOAD '$INPUT' USING NoSuch();\n",
                "go.sh": b'#!/bin/sh\necho "$1 $GREETING $(cat data.txt)"\nexit 7\n',
                "data.txt": b"from a file",
            }
            if JAR:
                contents["words"] = Path(JAR).read_bytes()
            for name, content in contents.items():
                await tx.internals.begin(name, TENANT, 0)
                for index in range(0, len(content), 65536):
                    await tx.internals.append(name, index // 65536, content[index : index + 65536])
                internal = JobBinaryInternal(
                    id=JobBinaryInternalId(name.replace(".", "-")),
                    tenant_id=TENANT,
                    name=name,
                    datasize=len(content),
                    digest="",
                    created_at=now,
                )
                await tx.internals.finish(name, internal)
                binary = JobBinary(
                    id=JobBinaryId(name),
                    tenant_id=TENANT,
                    name=name,
                    url=f"internaldb://{internal.id}",
                    created_at=now,
                )
                await tx.job_binaries.add(binary)
            for name, type_, mains, libs in (
                ("count", JobType.PIG, ("count.pig",), ()),
                ("broken", JobType.PIG, ("broken.pig",), ()),
                ("shell", JobType.SHELL, ("go.sh",), ("data.txt",)),
                ("words", JobType.JAR, (), ("words",)),
                ("main", JobType.JAVA, (), ("words",)),
            ):
                if "words" in libs and not JAR:
                    continue
                job = Job(
                    id=JobId(name),
                    tenant_id=TENANT,
                    name=name,
                    type=type_,
                    mains=tuple(JobBinaryId(each) for each in mains),
                    libs=tuple(JobBinaryId(each) for each in libs),
                    created_at=now,
                )
                await tx.jobs.add(job)
            for name in ("in", "out", "odd${y}"):
                source = DataSource(
                    id=DataSourceId(name),
                    tenant_id=TENANT,
                    name=name,
                    type="hdfs",
                    url=f"{self.folder}/{name}",
                    created_at=now,
                )
                await tx.data_sources.add(source)

        await self.store.tx(rows)
        self.controller.start()

    async def execute(
        self, job: str, configs: Mapping[str, Any], args: Any = (), input_id: str = "in"
    ) -> Execution:
        request = ExecuteRequest(
            cluster_id=CLUSTER,
            input_id=input_id,
            output_id="out",
            job_configs=JobConfigs(configs=configs, args=args),
        )
        return await self.jobs.execute(CALLER, JobId(job), request)

    async def ended(self, id_: ExecutionId) -> Execution:
        for _ in range(480):
            row = await self.store.read(lambda tx: tx.executions.find(id_))
            assert row is not None
            if is_over(row):
                return row
            await self.pause(0.25)
        raise AssertionError(f"still {row.status}: {row.record}")

    async def counts(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in await self.files.list(self.webhdfs, f"{self.folder}/out", USER) or []:
            if name.startswith("part-"):
                path = f"{self.folder}/out/{name}"
                text = (await self.files.read(self.webhdfs, path, USER, 100_000)).decode()
                found.update(line.split("\t") for line in text.splitlines())  # type: ignore[misc]
        return found

    def run_jobs(self, work: Coroutine[Any, Any, None]) -> Deferred[None]:
        async def whole() -> None:
            await self.world()
            try:
                await work
            finally:
                await self.controller.stop()
                await self.store.close()

        return self.run_live(whole())

    def test_pig(self) -> Deferred[None]:
        """Right counts, and a log with the program's output."""

        async def work() -> None:
            row = await self.execute("count", LOCAL)
            after = await self.ended(row.id)
            self.assertEqual(after.status, ExecutionStatus.SUCCEEDED, after)
            self.assertEqual(await self.counts(), COUNTS)
            log = (await self.jobs.log(CALLER, row.id)).decode()
            self.assertIn("==> engine <==", log)
            self.assertIn("stdout <==", log, log[:2000])

        return self.run_jobs(work())

    def test_jar(self) -> Deferred[None]:
        """A library without suffix, classes of the new API, no switch given."""
        if not JAR:
            self.skipTest("SVCD_TEST_JAR not set")

        async def work() -> None:
            row = await self.execute("words", JAR_CLASSES)
            after = await self.ended(row.id)
            self.assertEqual(after.status, ExecutionStatus.SUCCEEDED, after)
            self.assertEqual(await self.counts(), COUNTS)
            again = await self.execute("words", JAR_CLASSES)
            after = await self.ended(again.id)
            assert after.failure is not None
            self.assertEqual(after.failure.code, "OUTPUT_EXISTS", after.failure)
            await self.files.delete(self.webhdfs, f"{self.folder}/out", USER)
            bad = await self.execute("words", {**JAR_CLASSES, "svcd.fail": "true"})
            after = await self.ended(bad.id)
            assert after.failure is not None
            self.assertIn("Exception", after.failure.text)
            self.assertEqual(after.failure.code, "EXCEPTION", after.failure)

        return self.run_jobs(work())

    def test_shell(self) -> Deferred[None]:
        """Arguments, environment and files reach the script; its exit code is told."""

        async def work() -> None:
            request = ExecuteRequest(
                cluster_id=CLUSTER,
                job_configs=JobConfigs(args=("hello",), params={"GREETING": "<world>"}),
            )
            row = await self.jobs.execute(CALLER, JobId("shell"), request)
            after = await self.ended(row.id)
            assert after.failure is not None
            self.assertEqual(after.failure.code, "EXIT_CODE", after.failure)
            log = (await self.jobs.log(CALLER, row.id)).decode()
            self.assertIn("hello <world> from a file", log)

        return self.run_jobs(work())

    def test_quoting(self) -> Deferred[None]:
        """What looks like an expression in a data source's url reaches the script as it is."""

        async def work() -> None:
            row = await self.execute("count", LOCAL, input_id="odd${y}")
            after = await self.ended(row.id)
            assert after.failure is not None
            self.assertEqual(after.failure.code, "INPUT_MISSING", after.failure)
            self.assertIn("/odd${y}", after.failure.text)

        return self.run_jobs(work())

    def test_broken_script(self) -> Deferred[None]:
        """The reason comes from the container's log: the engine knows an exit code only."""

        async def work() -> None:
            after = await self.ended((await self.execute("broken", LOCAL)).id)
            self.assertEqual(after.status, ExecutionStatus.KILLED)
            assert after.failure is not None
            self.assertIn("NoSuch", after.failure.text)

        return self.run_jobs(work())

    def test_cancel(self) -> Deferred[None]:
        """Answered KILLED while it ran."""
        if not JAR:
            self.skipTest("SVCD_TEST_JAR not set")

        async def work() -> None:
            configs = {"edp.java.main_class": "svcd.examples.Main"}
            row = await self.execute("main", configs, ("sleep", "120"))
            for _ in range(100):
                now = await self.jobs.refresh(CALLER, row.id)
                if now.status is ExecutionStatus.RUNNING:
                    break
                await self.pause(0.2)
            began = self.clock.seconds()
            after = await self.jobs.cancel(CALLER, row.id)
            self.assertLess(self.clock.seconds() - began, 5.0)
            self.assertEqual((after.status, after.failure), (ExecutionStatus.KILLED, None))

        return self.run_jobs(work())
