"""The main job in earnest: Hadoop, Pig and Oozie on loopback machines.

Needs the software tree of the vanilla distribution: SVCD_VANILLA_PREFIX, /opt/svcd/vanilla or
state/image/vanilla-3.5.0. About two minutes on two cores.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SkipTest

from svcd.runtime.tasks import gather, sleep
from tests.causes.cells import CELLS, ONE_A_CODE, WORKER_LOST
from tests.causes.run import Programs, Result
from tests.live.contract.engine import RealEngine
from tests.support.live import Tenant, machine_folders
from tests.support.processes import (
    ROOT,
    Daemon,
    DaemonCase,
    machine_processes,
    proc_text,
    reactor,
    send,
    until,
)
from tests.support.sample import SLOW

STEPS = (
    "start the daemon",
    "register the image, create templates",
    "create a cluster of 1 master and 2 workers",
    "count words with a Jar job",
    "count words with a Pig job",
    "count words with a PySpark job",
    "cancel a long job",
    "scale the workers from 2 to 3",
    "scale the workers from 3 to 1",
    "run the Jar job again",
    "delete everything",
    "stop the daemon",
)
DEMO_S = 360.0
ACTIVE_S = 180.0
JOB_S = 120.0
SLEEP = {
    "mapred.mapper.new-api": "true",
    "mapred.reducer.new-api": "true",
    "mapred.output.key.class": "org.apache.hadoop.io.LongWritable",
    "mapred.output.value.class": "org.apache.hadoop.io.Text",
    "mapreduce.map.class": "org.svcd.examples.Sleep",
    "svcd.examples.sleep.ms": "500",
}
FOREVER = b"""
import time
print("the driver has begun", flush=True)
from pyspark import SparkContext
SparkContext().parallelize([1], 1).map(lambda n: time.sleep(600)).count()
"""
PROCESSES = ("namenode", "resourcemanager", "historyserver", "oozie", "datanode", "nodemanager")
PAGES = {
    9870: ("/", "/jmx", "/webhdfs/v1/?op=LISTSTATUS", "/logs/"),
    8088: ("/cluster", "/ws/v1/cluster/info", "/jmx"),
    19888: ("/jobhistory", "/ws/v1/history/info"),
    11000: ("/oozie/", "/oozie/v1/admin/status", "/oozie/v1/jobs"),
    9864: ("/", "/jmx", "/webhdfs/v1/x?op=OPEN&namenoderpcaddress=127.0.0.1:1"),  # 403 by itself
    8042: ("/node", "/ws/v1/node/info"),
}
"""The web pages of a cluster, by port."""
NO_PAGES = ("HTTP request to a Hadoop IPC port", "Incompatible shuffle request version")
"""Answers of ports that serve no pages: RPC, and the shuffle, which asks for the key of a job."""
FOREIGN = (
    *("evil.example", "evil.example:8088", "127.0.0.1.evil.example", "127.9.9.9", "", None),
    *("localhost@evil.example", "<script>", "[::1]:80"),
)
"""Values of Host that no machine may answer; None sends none."""
FORMATS = "org.svcd.hadoop.Format"
"""A name node that formats its folder first serves in the same process."""


def vanilla_prefix() -> Path:
    """The software tree; the test is skipped when there is none."""
    places = (
        os.environ.get("SVCD_VANILLA_PREFIX", ""),
        "/opt/svcd/vanilla",
        str(ROOT / "state/image/vanilla-3.5.0"),
    )
    for place in places:
        if place and Path(place, "hadoop").is_dir():
            return Path(place)
    raise SkipTest(
        "no software tree of the vanilla distribution; build it with: make image"
        " (or: svcd image build vanilla /opt/svcd/vanilla)"
    )


def has_spark() -> bool:
    """Whether the software tree was built with Spark."""
    return (vanilla_prefix() / "spark" / "jars").is_dir()


class MainJobTests(DaemonCase):
    """`svcd demo` from its first step to its last."""

    timeout = 600

    async def test_demo(self) -> None:
        """Every step is done, all counts agree with plain Python, and nothing is left."""
        prefix = vanilla_prefix()
        state = Path(self.mktemp()).absolute()
        program = self.program("svcd", "demo", "--state-dir", str(state), "--image", str(prefix))
        ended = await program.end(DEMO_S)
        self.assertEqual((ended.code, ended.err), (0, ""), ended.out[-3000:] + ended.err)
        lines = [line.partition("] ")[2] for line in ended.out.splitlines()]
        steps = [step for step in STEPS if has_spark() or "PySpark" not in step]
        self.assertEqual([line for line in lines if line in STEPS], steps)
        counts = re.findall(r"  all (\d+) counts equal those of Python", ended.out)
        self.assertEqual(len(counts), 4 if has_spark() else 3)
        self.assertEqual(len(set(counts)), 1)
        self.assertGreater(int(counts[0]), 1000)
        self.assertIn("  job is cancelled", lines)
        self.assertIn("  the cluster is deleted, and all that the demo made", lines)
        self.assertIn("all counts were right; the daemon's log is ", ended.out.splitlines()[-1])
        for name in steps:
            self.assertRegex(ended.out, rf"(?m)^{re.escape(name)} +\d+\.\d$")
        marks = re.findall(r"(?m)^\(.*\d s$", ended.out)
        print("\n" + "\n".join(marks), end=" ")
        self.assertEqual(machine_processes(state), [])
        self.assertEqual(machine_folders(state), [])


class KillTests(DaemonCase):
    """A daemon that is killed while Hadoop starts, and while jobs are submitted and run."""

    timeout = 900
    skip = SLOW

    async def check_jobs(self, daemon: Daemon, tenant: Tenant, cluster: Any) -> Tenant:
        """Two executions, one killed while it is submitted, one while it runs: each runs once."""
        await tenant.upload("data", "in/lines.txt", b"one\ntwo\nthree\n")
        jar = (vanilla_prefix() / "examples" / "svcd-examples.jar").read_bytes()
        job_id = await tenant.new_jar_job("sleep", jar)
        source = await tenant.new_source("in", "data", "in")
        executions = []
        for number, wanted in enumerate(("Pending", "RUNNING")):
            target = await tenant.new_source(f"out-{number}", "data", f"out/{number}")
            execution = await tenant.execute(cluster["id"], job_id, source, target, SLEEP)
            executions.append(execution)

            await tenant.until_execution(execution, wanted, JOB_S)
            await sleep(reactor, 0.2)
            await daemon.kill()
            tenant = Tenant(await daemon.start())
            await tenant.until_execution(execution, "SUCCEEDED", JOB_S)
        web = urlsplit(cluster["info"]["JobFlow"]["Oozie"])
        listed = await send("GET", f"http://{web.netloc}/oozie/v1/jobs?jobtype=wf&len=100")
        self.assertEqual(listed.status, 200, listed.body)
        jobs = listed.json["workflows"]
        told = [await tenant.done("GET", f"/job-executions/{e}") for e in executions]
        self.assertEqual([(e["return_code"], e["progress"]) for e in told], [(0, 1.0)] * 2)
        self.assertEqual(
            sorted(j["id"] for j in jobs), sorted(str(e["workflow_job_id"]) for e in told)
        )
        return tenant

    async def check_hosts(self, state: Path) -> None:
        """Each web server of the machines answers to its own address, and to no foreign name."""
        listeners = _listeners(state)
        web = {port: address for _, address, port in listeners if port in PAGES}
        self.assertEqual(set(web), set(PAGES), listeners)
        for port, paths in PAGES.items():
            address = web[port]
            for path in paths:
                for host in (f"{address}:{port}", address, f"localhost:{port}"):
                    status, said = await deferToThread(_get, address, port, path, host)
                    good = 0 < status < 400 or (status == 403 and "RemoteException" in said)
                    self.assertTrue(good, f"{host} {port} {path}: {status} {said[:300]}")
                for host in FOREIGN:
                    status, said = await deferToThread(_get, address, port, path, host)
                    refused = status == 403 and f"is not {address}, which is the address" in said
                    # Jetty itself refuses a request without a name, or with an odd one
                    bad = status == 400 and host not in FOREIGN[:4]
                    self.assertNotIn("<script>", said)
                    self.assertTrue(refused or bad, f"{host} {port} {path}: {status} {said[:300]}")
        for name, address, port in listeners:  # some ports are random
            path = "/oozie/" if name == "oozie" else "/"  # its "/" is but a redirect there
            status, said = await deferToThread(_get, address, port, path, "evil.example")
            other = any(text in said for text in NO_PAGES)
            self.assertTrue(status in (0, 403) or other, f"{name} {port}: {status} {said[:300]}")

    async def check_spark(self, tenant: Tenant, cluster_id: str) -> None:
        """A jar counts words, also to a strange name; a long PySpark job is shown while it runs,
        and cancelled."""
        examples = vanilla_prefix() / "examples"
        jar = (examples / "svcd-spark-examples.jar").read_bytes()
        count = await tenant.new_job("spark", "Spark", {"spark.jar": jar})
        words = await tenant.new_source("spark-in", "data", "in")
        out = "größe 日本 +&#%20;="
        counts = await tenant.new_source("spark-out", "data", out)
        configs = {"edp.java.main_class": "org.svcd.examples.spark.WordCount"}
        execution = await tenant.execute(cluster_id, count, words, counts, configs)
        shown = await tenant.until_execution(execution, "SUCCEEDED", JOB_S)
        self.assertEqual((shown["return_code"], shown["progress"]), (0, 1.0))
        found = await tenant.download("data", quote(f"{out}/part-00000"))
        self.assertEqual(found, b"one\t1\nthree\t1\ntwo\t1\n")

        forever = await tenant.new_job("forever", "Spark", {"forever.py": FOREVER})
        unused = await tenant.new_source("spark-unused", "data", "unused")
        execution = await tenant.execute(cluster_id, forever, words, unused, {})

        async def runs() -> Any:
            shown = await tenant.done("GET", f"/job-executions/{execution}")
            self.assertFalse(shown["end_time"], shown)
            children = [
                each for a in shown["info"].get("actions", ()) for each in a.get("children", ())
            ]
            return [each for each in children if each["state"] == "RUNNING"]

        (child,) = await until(runs, "the Spark application in info", JOB_S)
        self.assertRegex(child["id"], r"^application_\d+_\d+$")

        async def printed() -> bool:
            return "the driver has begun" in await tenant.log(execution)

        await until(printed, "the driver's output", JOB_S, 1.0)
        cancelled = await tenant.done("GET", f"/job-executions/{execution}/cancel")
        self.assertEqual(cancelled["info"]["status"], "KILLED")
        self.assertNotIn("failure", cancelled["info"])

    async def check_causes(self, tenant: Tenant, cluster: Any, state: Path) -> None:
        """A program for each code of a failure; svcd finds the code and the program's line.

        The worker is lost last, when nothing else runs on it.
        """
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        programs = Programs(tenant, cluster, state, vanilla_prefix())
        await programs.begin(folder)
        cells = [
            each
            for each in CELLS
            if each.name in ONE_A_CODE and (has_spark() or each.kind != "Spark")
        ]
        results = await gather([partial(programs.result, each) for each in cells], 4)
        lost = next(each for each in CELLS if each.name == WORKER_LOST)
        results.append(await programs.result(lost))
        lines = [each.line if isinstance(each, Result) else repr(each) for each in results]
        self.assertEqual([line for line in lines if " right " not in line], [])

    async def test_daemon_killed_while_hadoop_starts(self) -> None:
        """The next one finishes the start: each daemon runs once, and all go with the cluster."""
        daemon = self.daemon(
            plugins__enabled="vanilla", embedded__image_prefix=str(vanilla_prefix())
        )
        tenant = Tenant(await daemon.start())
        # jobs are told where the object store is: the next daemon must serve it there
        daemon.settings["cloud.listen"] = "tcp:" + tenant.cloud["identity"].split("/")[2]
        cluster_id = await tenant.new_cluster("mine", 1, "vanilla", "3.5.0")

        async def running() -> bool:
            shown = await tenant.cluster(cluster_id)
            self.assertIn(
                shown["status"], {"Waiting", "Validating", "Spawning", "Preparing", "Configuring",
                                  "Starting"},
                shown["status_description"],
            )  # fmt: skip
            return shown["status"] == "Starting" and bool(_daemons(daemon.state))

        await until(running, "the first process of Hadoop", ACTIVE_S)
        await daemon.kill()
        tenant = Tenant(await daemon.start())
        shown = await tenant.until_active(cluster_id, ACTIVE_S)
        self.assertEqual(len(await tenant.servers()), 2)
        self.assertEqual(_daemons(daemon.state), Counter(PROCESSES))
        self.assertLessEqual({"HDFS", "YARN", "JobFlow"}, set(shown["info"]))
        await self.check_hosts(daemon.state)
        tenant = await self.check_jobs(daemon, tenant, shown)
        await RealEngine(shown["node_groups"][0]["instances"][0]["internal_ip"]).check()
        if has_spark():
            await self.check_spark(tenant, cluster_id)
        await self.check_causes(tenant, shown, daemon.state)
        await tenant.done("DELETE", f"/clusters/{cluster_id}")
        await tenant.until_gone(cluster_id)
        self.assertEqual((await tenant.servers(), await tenant.volumes()), ([], []))

        async def swept() -> bool:
            return not machine_processes(daemon.state) and not machine_folders(daemon.state)

        await until(swept, "no process and no folder", 30)


def _get(address: str, port: int, path: str, host: str | None) -> tuple[int, str]:
    """Status and body of a request with this Host; 0 when the port does not speak HTTP."""
    connection = HTTPConnection(address, port, timeout=10)
    try:
        connection.putrequest("GET", path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read(65536).decode(errors="replace")
    except (HTTPException, OSError) as error:
        return 0, repr(error)
    finally:
        connection.close()


def _listeners(state: Path) -> list[tuple[str, str, int]]:
    """Daemon, address and port of each TCP socket on which Hadoop and Oozie listen."""
    found = []
    for pid in machine_processes(state):
        name = re.search(r"\0-Dproc_([^\0]+)", proc_text(pid, "cmdline"))
        if name is None:
            continue
        links = (path.readlink().name for path in Path(f"/proc/{pid}/fd").iterdir())
        mine = {link[8:-1] for link in links if link.startswith("socket:[")}
        for address, port, inode in _sockets(pid):
            if inode in mine:
                found.append((name[1], address, port))
    return sorted(found)


def _sockets(pid: int) -> Iterator[tuple[str, int, str]]:
    """Address, port and inode of the listening sockets that the system of a process has."""
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, _, status, *rest = line.split()
        address, _, port = local.partition(":")
        if status == "0A":
            parts = [str(byte) for byte in reversed(bytes.fromhex(address))]
            yield ".".join(parts).replace("0.0.0.0", "127.0.0.1"), int(port, 16), rest[5]


def _daemons(state: Path) -> Counter[str]:
    """The Java processes that run below the state folder, by the name that they were given."""
    found: Counter[str] = Counter()
    for pid in machine_processes(state):
        for name in re.findall(r"(?:^|\0)-Dproc_([^\0]+)", proc_text(pid, "cmdline")):
            found["namenode" if name.startswith(FORMATS) else name] += 1
    return found
