"""`svcd demo` (`make demo`): all main functions of svcd, through the public HTTP interface only.

The demo registers the image, creates templates, and creates a cluster of real Hadoop, Pig and Oozie
on loopback machines. It counts the words of a text with a Jar, a Pig and a PySpark job, the last
one if the image has Spark, and compares the counts with Python's. It cancels a long job, scales up
and down, runs a job again, and deletes everything.
However it ends, it leaves no process, and no file outside its state folder.
"""

from __future__ import annotations

import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from pydoc_data.topics import topics
from types import FrameType
from typing import Any

import click

from svcd.cli import door
from svcd.cli.client import Api
from svcd.cli.demo_daemon import DaemonFailed, DemoDaemon
from svcd.cli.demo_steps import Steps, rounds
from svcd.cli.exits import CommandError
from svcd.cli.http import Http
from svcd.cli.swift import ObjectStore
from svcd.cli.words import step_title
from svcd.provisioning.distributions.vanilla.image import build
from svcd.provisioning.distributions.vanilla.image.layout import read_record
from svcd.runtime.state_dir import StateFolder, StateFolderError

CONTAINER = "demo"
PIG_SCRIPT = r"""
lines = LOAD '$INPUT' USING TextLoader() AS (line:chararray);
words = FOREACH lines GENERATE FLATTEN(TOKENIZE(
          REPLACE(LOWER(line), '[^\\p{L}\\p{Nd}\']', ' '), ' ')) AS word;
same = GROUP words BY word;
counts = FOREACH same GENERATE group, COUNT(words);
STORE counts INTO '$OUTPUT';
"""
_NEW_API = {"mapred.mapper.new-api": "true", "mapred.reducer.new-api": "true"}
WORD_COUNT = {
    **_NEW_API,
    "mapred.output.key.class": "org.apache.hadoop.io.Text",
    "mapred.output.value.class": "org.apache.hadoop.io.IntWritable",
    "mapreduce.map.class": "org.svcd.examples.WordCount$TokenMapper",
    "mapreduce.reduce.class": "org.svcd.examples.WordCount$SumReducer",
}
SLEEP = {
    **_NEW_API,
    "mapred.output.key.class": "org.apache.hadoop.io.LongWritable",
    "mapred.output.value.class": "org.apache.hadoop.io.Text",
    "mapreduce.map.class": "org.svcd.examples.Sleep",
    "svcd.examples.sleep.ms": "1000",
}
FINISHED = {"SUCCEEDED", "KILLED", "FAILED"}
_JOB_S = 300.0
"""Time for one job."""
_CLUSTER_S = 300.0
"""Time for one change of the cluster, or for one deletion."""
_LOOK_S = 0.2
"""Time between two requests for a status."""


class DemoFailed(Exception):
    """A result of the demo is wrong: the result and the expected one."""


class Demo:
    """One run of the demo."""

    def __init__(self, state: Path, image: Path | None) -> None:
        self._state = state.absolute()
        self._image = image
        self._steps = Steps()
        self._times: list[tuple[str, float]] = []

    def run(self) -> int:
        """Run the demo. Returns the exit code: 0 when every result was right."""
        prefix = self._image or self._state / "image" / "vanilla-3.5.0"
        if reason := build.problem(prefix.absolute()):
            print(
                f"svcd demo: {prefix} cannot be used: {reason}; or name another software tree with"
                " --image PREFIX",
                file=sys.stderr,
            )
            return 1
        try:
            folder = StateFolder(self._state, "demo.lock")
        except StateFolderError as error:
            print(f"svcd demo: {error}", file=sys.stderr)
            return 1
        try:
            return self._run()
        finally:
            folder.release()

    def _run(self) -> int:
        daemon = DemoDaemon(self._state, self._image)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt)
        code = 1
        try:
            self._steps.begin("start the daemon")
            endpoints = daemon.start()
            self._drive(endpoints)
            code = 0
        except KeyboardInterrupt:
            print("\ninterrupted: stopping every process that the demo started", flush=True)
        except (DemoFailed, DaemonFailed, CommandError, OSError) as error:
            print(f"svcd demo: {error}", file=sys.stderr)
            print(f"the daemon's log: {daemon.log}", file=sys.stderr)
        finally:
            _ignore_signals()
            self._steps.begin("stop the daemon")
            ended = daemon.stop()
            self._steps.end()
        if not ended:
            print("svcd demo: a process still runs; svcd machines ls lists it", file=sys.stderr)
            return 1
        if code == 0:
            self._summary()
        return code

    # ---- the steps ------------------------------------------------------------------------------

    def _drive(self, endpoints: dict[str, Any]) -> None:
        self._credentials = {"user": endpoints["username"], "password": endpoints["password"]}
        http = Http()
        found = door.find(door.Given(self._state), {}, http)
        self._api = Api(found.door, http, found.renewed)
        self._store = ObjectStore(http, endpoints["object_store"], lambda: self._api.door.token)
        self._steps.say(f"API at {endpoints['api']}, project {endpoints['tenant']}")
        self._remove_leftovers()

        self._steps.begin("register the image, create templates")
        image = self._register(endpoints)
        template = self._templates(endpoints)

        self._steps.begin("create a cluster of 1 master and 2 workers")
        asked = time.monotonic()
        cluster = self._api.post(
            "/clusters",
            {
                "name": "demo",
                "plugin_name": "vanilla",
                "engine_version": "3.5.0",
                "cluster_template_id": template,
                "default_image_id": image["id"],
                "user_keypair_id": endpoints["keypairs"][0],
            },
        )["cluster"]
        self._cluster = cluster["id"]
        text = self._prepare_data()
        self._await_active()
        self._times.append(("from the request to the Active cluster", time.monotonic() - asked))

        expected = self._count(text)
        self._steps.begin("count words with a Jar job")
        self._word_count("Jar", "jar", self._jar_job, expected)
        self._times.append(("from the start to the first result", self._steps.elapsed_s()))
        self._steps.begin("count words with a Pig job")
        self._word_count("Pig", "pig", self._pig_job, expected)
        if self._spark_job:
            self._steps.begin("count words with a PySpark job")
            self._word_count("Spark", "spark", self._spark_job, expected)

        self._steps.begin("cancel a long job")
        self._cancel()
        self._steps.begin("scale the workers from 2 to 3")
        self._scale(3)
        self._steps.begin("scale the workers from 3 to 1")
        self._scale(1)
        self._steps.begin("run the Jar job again")
        self._word_count("Jar", "again", self._jar_job, expected)
        self._steps.begin("delete everything")
        self._delete()
        self._steps.end()

    def _register(self, endpoints: dict[str, Any]) -> dict[str, Any]:
        image: dict[str, Any] = next(i for i in endpoints["images"] if "vanilla" in i["name"])
        path = f"/images/{image['id']}"
        self._api.post(path, {"username": image["username"], "description": "Hadoop, Pig, Oozie"})
        self._api.post(path + "/tag", {"tags": ["vanilla", "3.5.0"]})
        return image

    def _templates(self, endpoints: dict[str, Any]) -> str:
        flavors = {f["name"]: f["id"] for f in endpoints["flavors"]}
        common = {
            "plugin_name": "vanilla",
            "engine_version": "3.5.0",
            "flavor_id": flavors["m1.medium"],
        }
        master = self._api.post(
            "/node-group-templates",
            {
                "name": "demo-master",
                "node_processes": ["namenode", "resourcemanager", "historyserver", "oozie"],
                **common,
            },
        )["node_group_template"]["id"]
        worker = self._api.post(
            "/node-group-templates",
            {"name": "demo-worker", "node_processes": ["datanode", "nodemanager"], **common},
        )["node_group_template"]["id"]
        made = self._api.post(
            "/cluster-templates",
            {
                "name": "demo",
                "plugin_name": "vanilla",
                "engine_version": "3.5.0",
                "cluster_configs": {"HDFS": {"dfs.replication": 1}},
                "node_groups": [
                    {"name": "master", "count": 1, "node_group_template_id": master},
                    {"name": "worker", "count": 2, "node_group_template_id": worker},
                ],
            },
        )
        template: str = made["cluster_template"]["id"]
        return template

    def _prepare_data(self) -> str:
        """Upload text and binaries while svcd creates the cluster."""
        text = "\n".join(topics[name] for name in sorted(topics))
        self._store.make(CONTAINER)
        self._store.write(CONTAINER, "in/python-reference.txt", text.encode())
        self._steps.say(
            f"uploaded the reference of the Python language ({len(text) >> 10} KiB) to"
            f" objstore://{CONTAINER}/in"
        )
        lines = "".join(f"line {n}\n" for n in range(600))
        self._store.write(CONTAINER, "long/lines.txt", lines.encode())
        image = self._image or self._state / "image" / "vanilla-3.5.0"
        jar = (image / "examples" / "svcd-examples.jar").read_bytes()
        jar_binary = self._binary("demo-examples.jar", jar)
        pig_binary = self._binary("demo-count.pig", PIG_SCRIPT.encode())
        self._jar_job = self._job("demo-jar", "Jar", [], [jar_binary])
        self._pig_job = self._job("demo-pig", "Pig", [pig_binary], [])
        program = image / "examples" / "wordcount.py"
        self._spark_job = ""
        if "spark" in read_record(image).get("versions", {}):
            main = self._binary("demo-count.py", program.read_bytes())
            self._spark_job = self._job("demo-spark", "Spark", [main], [])
        self._input = self._source("demo-in", "in")
        return text

    def _binary(self, name: str, data: bytes) -> str:
        internal = self._api.put(f"/job-binary-internals/{name}", data)
        url = f"internaldb://{internal['job_binary_internal']['id']}"
        body = {"name": name, "url": url, "description": "", "extra": {}}
        binary: str = self._api.post("/job-binaries", body)["job_binary"]["id"]
        return binary

    def _job(self, name: str, kind: str, mains: list[str], libs: list[str]) -> str:
        body = {"name": name, "description": "", "type": kind, "mains": mains, "libs": libs}
        job: str = self._api.post("/jobs", body)["job"]["id"]
        return job

    def _source(self, name: str, path: str) -> str:
        body = {
            "name": name,
            "description": "",
            "type": "objstore",
            "url": f"objstore://{CONTAINER}/{path}",
            "credentials": self._credentials,
        }
        source: str = self._api.post("/data-sources", body)["data_source"]["id"]
        return source

    # ---- cluster --------------------------------------------------------------------------------

    def _await_active(self) -> None:
        seen = 0
        status = ""
        for _ in rounds(_CLUSTER_S, _LOOK_S):
            cluster = self._api.get(f"/clusters/{self._cluster}")["cluster"]
            events = self._api.get(f"/clusters/{self._cluster}/events")["events"]
            for event in events[max(seen, self._seen_events) :]:
                machine = f" {event['machine']}" if event["machine"] else ""
                tail = f": {event['text']}" if event["text"] else ""
                self._steps.say(f"    {step_title(event)}{machine} {event['outcome']}{tail}")
            seen = self._seen_events = max(len(events), self._seen_events)
            if cluster["status"] != status:
                status = cluster["status"]
                self._steps.say(f"  cluster is {status}")
            if status == "Active":
                for target, links in cluster["info"].items():
                    for name, url in links.items():
                        self._steps.say(f"    {target} {name}: {url}")
                if cluster.get("status_description"):
                    raise DemoFailed(f"cluster: {cluster['status_description']}")
                return
            if status == "Error":
                raise DemoFailed(f"cluster ended in Error: {cluster['status_description']}")
        raise DemoFailed(f"the cluster is still {status} after {_CLUSTER_S:.0f} s")

    _seen_events = 0

    def _scale(self, workers: int) -> None:
        body = {"resize_node_groups": [{"name": "worker", "count": workers}]}
        self._api.put(f"/clusters/{self._cluster}", body)
        self._await_active()
        groups = self._api.get(f"/clusters/{self._cluster}")["cluster"]["node_groups"]
        found = {g["name"]: len(g["instances"]) for g in groups}
        if found != {"master": 1, "worker": workers}:
            raise DemoFailed(f"expected {workers} workers, got {found}")

    # ---- jobs -----------------------------------------------------------------------------------

    def _execute(self, job: str, source: str, output: str, configs: dict[str, str]) -> str:
        body = {
            "cluster_id": self._cluster,
            "input_id": source,
            "output_id": output,
            "job_configs": {"configs": configs, "args": {}, "params": {}},
        }
        made = self._api.post(f"/jobs/{job}/execute", body)["job_execution"]
        execution: str = made["id"]
        return execution

    def _await_execution(self, execution: str, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
        """Wait until `wanted` holds for the execution's info. Raises DemoFailed."""
        status = ""
        for _ in rounds(_JOB_S, _LOOK_S):
            found = self._api.get(f"/job-executions/{execution}")
            if found["info"]["status"] != status:
                status = found["info"]["status"]
                self._steps.say(f"  job is {status}")
            if wanted(found["info"]):
                return
            if status in FINISHED:
                raise DemoFailed(f"job ended {status}: {found['info'].get('failure')}")
        raise DemoFailed(f"the job is still {status} after {_JOB_S:.0f} s")

    def _word_count(self, kind: str, out: str, job: str, expected: Counter[str]) -> None:
        output = self._source(f"demo-out-{out}", f"out/{out}")
        configs = WORD_COUNT if kind == "Jar" else {}
        execution = self._execute(job, self._input, output, configs)
        self._await_execution(execution, lambda info: info["status"] == "SUCCEEDED")
        counts: Counter[str] = Counter()
        for part in self._store.list(CONTAINER, f"out/{out}/part"):
            content = b"".join(self._store.read(CONTAINER, str(part["name"])))
            for line in content.decode().splitlines():
                word, count = line.split("\t")
                counts[word] += int(count)
        top = ", ".join(f"{word} {count}" for word, count in counts.most_common(10))
        self._steps.say(f"  top ten: {top}")
        if counts != expected:
            odd = next(w for w in counts | expected if counts[w] != expected[w])
            raise DemoFailed(f"{odd!r}: {kind} {counts[odd]}, Python {expected[odd]}")
        self._steps.say(f"  all {len(counts)} counts equal those of Python")

    @staticmethod
    def _count(text: str) -> Counter[str]:
        return Counter(re.findall(r"(?:[^\W_]|')+", text.lower()))

    def _cancel(self) -> None:
        source = self._source("demo-long", "long")
        output = self._source("demo-out-long", "out/long")
        execution = self._execute(self._jar_job, source, output, SLEEP)
        self._await_execution(execution, runs_on_yarn)
        status = self._api.get(f"/job-executions/{execution}/cancel")["info"]["status"]
        self._steps.say(f"  cancelled: {status}")
        if status != "KILLED":
            raise DemoFailed(f"a cancelled job must be KILLED, got {status}")

    # ---- the end --------------------------------------------------------------------------------

    def _delete(self) -> None:
        self._remove(f"/clusters/{self._cluster}")
        self._remove_leftovers()

    def _remove(self, path: str) -> None:
        """Delete the object and wait until it does not exist any more."""
        self._api.delete(path)
        for _ in rounds(_CLUSTER_S, _LOOK_S):
            if self._api.get(path) is None:
                return
        raise DemoFailed(f"{path} still exists {_CLUSTER_S:.0f} s after its DELETE")

    def _remove_leftovers(self) -> None:
        """Delete every object of the demo, also those of an interrupted run."""
        for family, key in (
            ("job-executions", "job_executions"),
            ("clusters", "clusters"),
            ("jobs", "jobs"),
            ("job-binaries", "binaries"),
            ("job-binary-internals", "binaries"),
            ("data-sources", "data_sources"),
            ("cluster-templates", "cluster_templates"),
            ("node-group-templates", "node_group_templates"),
        ):
            for found in self._api.get(f"/{family}")[key]:
                self._remove(f"/{family}/{found['id']}")
        self._store.remove(CONTAINER)

    def _summary(self) -> None:
        print("\nstep                                           seconds")
        for name, seconds in self._steps.done:
            print(f"{name:45} {seconds:8.1f}")
        print(f"{'all':45} {self._steps.elapsed_s():8.1f}\n")
        for name, seconds in self._times:
            print(f"{name:45} {seconds:8.1f}")


@click.command("demo")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=Path("state/demo"),
    metavar="DIR",
    help="state folder of the demo's own daemon (default: state/demo)",
)
@click.option(
    "--image",
    type=click.Path(path_type=Path),
    metavar="PREFIX",
    help="software tree (default: in the state folder)",
)
def command(state_dir: Path, image: Path | None) -> int:  # fmt: skip
    """Create a cluster on this machine, run jobs on it, delete it."""
    return Demo(state_dir, image).run()


def runs_on_yarn(info: Mapping[str, Any]) -> bool:
    """Whether the job's program runs on YARN: the engine says RUNNING before that."""
    return info["status"] == "RUNNING" and any(
        str(action.get("externalId") or "").startswith(("application_", "job_"))
        for action in info.get("actions", [])
    )


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    _ignore_signals()  # a second signal must not stop the clean-up
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
