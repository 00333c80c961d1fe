"""`svcd demo` (`make demo`): all main functions of svcd, by the commands that a user would type.

The demo registers the image, creates templates, and creates a cluster of real Hadoop, Pig and Oozie
on loopback machines. It counts the words of a text with a Jar, a Pig and a PySpark job, the last
one if the image has Spark, and compares the counts with Python's. It cancels a long job, scales up
and down, runs a job again, and deletes everything. It shows each command, and runs it in this
process. However it ends, it leaves no process, and no file outside its state folder.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from pydoc_data.topics import topics
from types import FrameType
from typing import Any

import click

from svcd.cli import door, local_input
from svcd.cli.client import Api
from svcd.cli.demo_daemon import DaemonFailed, DemoDaemon
from svcd.cli.demo_files import CONTAINER, PIG_SCRIPT, SLEEP, TEMPLATES, WORD_COUNT
from svcd.cli.demo_steps import Steps, rounds
from svcd.cli.exits import INTERRUPTED, CommandError
from svcd.cli.http import Http
from svcd.cli.main import main
from svcd.cli.swift import ObjectStore
from svcd.cli.words import status_of, step_title
from svcd.provisioning.distributions.vanilla.image import build
from svcd.provisioning.distributions.vanilla.image.layout import read_record
from svcd.runtime.state_dir import StateFolder, StateFolderError

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
        self._prefix = image or self._state / "image" / "vanilla-3.5.0"
        self._steps = Steps()
        self._times: list[tuple[str, float]] = []
        self._files = self._state / "files"
        self._seen_events = 0

    def run(self) -> int:
        """Run the demo. Returns the exit code: 0 when every result was right."""
        if reason := build.problem(self._prefix.absolute()):
            text = f"{self._prefix} cannot be used: {reason}; or name another software tree with"
            print(f"svcd demo: {text} --image PREFIX", file=sys.stderr)
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
            self._summary(daemon.log)
        return code

    # ---- the steps ------------------------------------------------------------------------------

    def _drive(self, endpoints: Mapping[str, Any]) -> None:
        self._connect(endpoints)
        self._remove_leftovers()
        expected = self._count(self._write_files(endpoints))
        self._make_cluster(endpoints)
        first = self._run_jobs(expected)
        self._steps.begin("scale the workers from 2 to 3")
        self._scale(3)
        self._steps.begin("scale the workers from 3 to 1")
        self._scale(1)
        self._steps.begin("run the Jar job again")
        output = f"objstore://{CONTAINER}/out/again"
        again = self._svcd("job", "rerun", first, "--output", output, "--detach")["id"]
        self._compare("Jar", "again", again, expected)
        self._steps.begin("delete everything")
        self._svcd("cluster", "rm", "demo", "--yes")
        self._remove_leftovers()
        self._steps.say("  the cluster is deleted, and all that the demo made")
        self._steps.end()

    def _make_cluster(self, endpoints: Mapping[str, Any]) -> None:
        self._steps.begin("register the image, create templates")
        image = next(image for image in endpoints["images"] if "vanilla" in image["name"])
        login = ("--user", image["username"], "--tag", "vanilla", "--tag", "3.5.0")
        self._svcd("image", "register", image["id"], *login)
        self._svcd("apply", "-f", str(self._files / "demo.yaml"))
        self._steps.begin("create a cluster of 1 master and 2 workers")
        asked = time.monotonic()
        self._svcd("cluster", "create", "demo", "--template", "demo")
        place = f"objstore://{CONTAINER}/out"  # while the cluster starts
        self._svcd("source", "add", "demo-out", place, "--create-container")
        self._svcd("binary", "add", self._example("svcd-examples.jar"))
        self._await_active()
        self._times.append(("from the request to the Active cluster", time.monotonic() - asked))

    def _example(self, name: str) -> str:
        """A program of the software tree."""
        return str(self._prefix / "examples" / name)

    def _run_jobs(self, expected: Counter[str]) -> str:
        """Run the jobs of each type, and cancel one; the id of the first execution."""
        jar = self._example("svcd-examples.jar")
        self._steps.begin("count words with a Jar job")
        first = self._execute(jar, "text", "jar", "--type", "Jar", *_options(WORD_COUNT))
        self._compare("Jar", "jar", first, expected)
        self._times.append(("from the start to the first result", self._steps.elapsed_s()))
        self._steps.begin("count words with a Pig job")
        pig = self._execute(str(self._files / "count.pig"), "text", "pig")
        self._compare("Pig", "pig", pig, expected)
        if "spark" in read_record(self._prefix).get("versions", {}):
            self._steps.begin("count words with a PySpark job")
            spark = self._execute(self._example("wordcount.py"), "text", "spark")
            self._compare("Spark", "spark", spark, expected)
        self._steps.begin("cancel a long job")
        self._cancel(self._execute(jar, "long", "long", "--type", "Jar", *_options(SLEEP)))
        return first

    def _connect(self, endpoints: Mapping[str, Any]) -> None:
        """Let the commands find the demo's daemon, whatever the variables of the user name."""
        for name in list(os.environ):
            if name.startswith("OS_") or name == "SVCD_API":
                del os.environ[name]
        os.environ["SVCD_SERVER_STATE_DIR"] = str(self._state)
        http = Http()
        found = door.find(door.Given(self._state), {}, http)
        self._api = Api(found.door, http, found.renewed)
        self._store = ObjectStore(http, endpoints["object_store"], lambda: self._api.door.token)
        self._steps.say(f"API at {endpoints['api']}, project {endpoints['tenant']}")
        self._steps.say(f"$ export SVCD_SERVER_STATE_DIR={self._state}")

    def _svcd(self, *words: str) -> Any:
        """Type a command of svcd; the JSON that it prints, None without any. Raises DemoFailed."""
        self._steps.say(f"$ svcd {shlex.join(words)}")
        out, notes = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(notes):
            code = main(["-o", "json", *words])
        for line in notes.getvalue().splitlines():
            self._steps.say(f"    {line}")
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        if code:
            raise DemoFailed(f"svcd {words[0]} ended with {code}")
        text = out.getvalue()
        return json.loads(text) if text.startswith("{") else None

    def _write_files(self, endpoints: Mapping[str, Any]) -> str:
        """Write the bundle, the Pig script and the inputs of the jobs; the text to count."""
        flavors = {flavor["name"]: flavor["id"] for flavor in endpoints["flavors"]}
        text = "\n".join(topics[name] for name in sorted(topics))
        for name, content in {
            "demo.yaml": TEMPLATES.format(flavor=json.dumps(flavors["m1.medium"])),
            "count.pig": PIG_SCRIPT,
            "text/python-reference.txt": text,
            "long/lines.txt": "".join(f"line {n}\n" for n in range(600)),
        }.items():
            file = self._files / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        return text

    # ---- cluster --------------------------------------------------------------------------------

    def _await_active(self) -> Any:
        """The cluster once it is Active. Raises DemoFailed."""
        for _ in rounds(_CLUSTER_S, _LOOK_S):
            cluster = self._cluster()
            events = self._api.get(f"/clusters/{cluster['id']}/events")["events"]
            for event in events[self._seen_events :]:
                self._steps.say(f"  {event_words(event)}")
            self._seen_events = max(len(events), self._seen_events)
            status = cluster["status"]
            if status == "Active":
                for target, links in cluster["info"].items():
                    for name, url in links.items():
                        self._steps.say(f"    {target} {name}: {url}")
                if cluster.get("status_description"):
                    raise DemoFailed(f"cluster: {cluster['status_description']}")
                return cluster
            if status == "Error":
                raise DemoFailed(f"cluster ended in Error: {cluster['status_description']}")
        raise DemoFailed(f"the cluster is still {status} after {_CLUSTER_S:.0f} s")

    def _cluster(self) -> Any:
        """The cluster of the demo, whatever others the state folder has. Raises DemoFailed."""
        for cluster in self._api.get("/clusters")["clusters"]:
            if cluster["name"] == "demo":
                return cluster
        raise DemoFailed("the cluster demo is gone: another program has deleted it")

    def _scale(self, workers: int) -> None:
        self._svcd("cluster", "scale", "demo", f"worker={workers}", "--yes")
        groups = self._await_active()["node_groups"]
        sizes = {group["name"]: len(group["instances"]) for group in groups}
        if sizes != {"master": 1, "worker": workers}:
            raise DemoFailed(f"expected {workers} workers, got {sizes}")

    # ---- jobs -----------------------------------------------------------------------------------

    def _execute(self, file: str, input_: str, output: str, *more: str) -> str:
        """Run a file of this machine on a folder of this machine; the id of the execution."""
        data = ("--input", str(self._files / input_), "--output")
        place = f"objstore://{CONTAINER}/out/{output}"
        execution = self._svcd("run", file, "--on", "demo", *data, place, *more, "--detach")
        return str(execution["id"])

    def _await_execution(self, execution: str, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
        """Wait until `wanted` holds for the execution's info. Raises DemoFailed."""
        status = ""
        for _ in rounds(_JOB_S, _LOOK_S):
            info = self._api.get(f"/job-executions/{execution}")["info"]
            if info["status"] != status:
                status = info["status"]
                self._steps.say(f"  job is {status}")
            if wanted(info):
                return
            if status in FINISHED:
                raise DemoFailed(f"job ended {status}: {info.get('failure')}")
        raise DemoFailed(f"the job is still {status} after {_JOB_S:.0f} s")

    def _compare(self, kind: str, output: str, execution: str, expected: Counter[str]) -> None:
        """Compare the counts of a job with Python's. Raises DemoFailed."""
        self._await_execution(execution, lambda info: info["status"] == "SUCCEEDED")
        counts: Counter[str] = Counter()
        for part in self._store.list(CONTAINER, f"out/{output}/part"):
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

    def _cancel(self, execution: str) -> None:
        self._await_execution(execution, runs_on_yarn)
        cancelled = self._svcd("job", "cancel", execution)
        self._steps.say(f"  job is {status_of(cancelled)}")

    # ---- the end --------------------------------------------------------------------------------

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
            for row in self._api.get(f"/{family}")[key]:
                self._remove(f"/{family}/{row['id']}")
        self._store.remove(CONTAINER)
        self._store.remove(local_input.CONTAINER)

    def _remove(self, path: str) -> None:
        """Delete the object and wait until it does not exist any more."""
        self._api.delete(path)
        for _ in rounds(_CLUSTER_S, _LOOK_S):
            if self._api.get(path) is None:
                return
        raise DemoFailed(f"{path} still exists {_CLUSTER_S:.0f} s after its DELETE")

    def _summary(self, log: Path) -> None:
        """Print the times and the verdict of a run in which no comparison failed."""
        print("\nstep                                           seconds")
        for name, seconds in self._steps.done:
            print(f"{name:45} {seconds:8.1f}")
        print(f"{'all':45} {self._steps.elapsed_s():8.1f}\n")
        for name, seconds in self._times:
            print(f"{name:45} {seconds:8.1f}")
        print(f"\nall counts were right; the daemon's log is {log}")


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


def _options(configs: Mapping[str, str]) -> list[str]:
    """Configurations as options of `svcd run`."""
    return [word for name, value in configs.items() for word in ("-c", f"{name}={value}")]


def event_words(event: Mapping[str, Any]) -> str:
    """An event of a cluster in one line; a status that begins is what the cluster is."""
    if event["kind"] == "status" and event["outcome"] in ("started", "done"):
        return f"cluster is {event['step']}"
    machine = f" {event['machine']}" if event["machine"] else ""
    tail = f": {event['text']}" if event["text"] else ""
    return f"  {step_title(event)}{machine} {event['outcome']}{tail}"


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
