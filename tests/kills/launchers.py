"""`python -m tests.kills.launchers`: kill -9 of the launcher of a job of real Hadoop.

Jobs of each type on one cluster, one after the other; the launcher's JVM dies while it starts, when
it has just submitted its first child, while that runs, and after the last one has ended. Each time
at most one child may run, and the execution ends `SUCCEEDED` with its whole result, or with
`LAUNCHER_LOST` and nothing of it left in YARN or on a machine. The exit code is 1 when not so.

The steps of a `SmallPig` job run within the launcher, without a child.

In the cases `master` the JVM dies that runs a small job of MapReduce, master and tasks in one. YARN
starts it again, and the job must end `SUCCEEDED` with its whole result.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.task import react

from svcd.cli.demo_files import SLEEP
from svcd.runtime.tasks import sleep
from tests.kills.outage import Outage
from tests.kills.things import Wrong
from tests.support.live import seconds
from tests.support.processes import machine_processes, proc_text, reactor, until
from tests.support.yarn import applications, works

ALIVE: Final = frozenset({"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"})
BOX: Final = "outage"
TASK_S: Final = 6.0
LONG_TASK_S: Final = 60.0
"""Of the only task of a child; the long one is to be killed."""
LAUNCHED_S: Final = 120.0
ENDED_S: Final = 180.0
SWEPT_S: Final = 30.0
LOOK_S: Final = 0.05

PIG = """\
set default_parallel 1;
lines = LOAD '$INPUT' USING TextLoader() AS (line:chararray);
words = FOREACH lines GENERATE FLATTEN(TOKENIZE(line)) AS word;
same = GROUP words BY word;
counts = FOREACH same GENERATE group AS word, COUNT(words) AS number;
sorted = ORDER counts BY number;
STORE sorted INTO '$OUTPUT';
"""
SHELL = """\
#!/bin/sh
echo began >> "$MARKS"
sleep 12
echo ended >> "$MARKS"
"""
JAVA = """\
package org.svcd.kills;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.svcd.examples.Sleep;

public final class Submit {
  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    conf.addResource(new Path("file://" + System.getProperty("oozie.action.conf.xml")));
    Job job = Job.getInstance(conf);
    job.setJarByClass(Sleep.class);
    job.setMapperClass(Sleep.class);
    job.setOutputKeyClass(LongWritable.class);
    job.setOutputValueClass(Text.class);
    FileInputFormat.addInputPath(job, new Path(args[0]));
    FileOutputFormat.setOutputPath(job, new Path(args[1]));
    boolean right = job.waitForCompletion(false);
    Thread.sleep(3000);
    if (!right) {
      throw new IllegalStateException("the job has failed");
    }
  }
}
"""
SPARK = """\
import sys
import time
from pyspark import SparkContext

def slow(line):
    time.sleep(float(sys.argv[3]))
    return line.split()

context = SparkContext()
counts = context.textFile(sys.argv[1], 1).flatMap(slow).map(lambda word: (word, 1))
counts = counts.reduceByKey(lambda left, right: left + right, 1).sortByKey(numPartitions=1)
counts.map(lambda pair: "%s\\t%d" % pair).saveAsTextFile(sys.argv[2])
"""
LINES = b"one two two\n"
SLEPT = "0\tone two two"
COUNTED = "one\t1\ntwo\t2"
EXPECTED: Final = {
    "Jar": SLEPT, "Java": SLEPT, "Pig": COUNTED, "SmallPig": COUNTED, "Spark": COUNTED
}  # fmt: skip


@frozen(kw_only=True)
class Seen:
    """What a watch has seen of one execution's applications, by their names in YARN."""

    launchers: Mapping[str, Any]
    children: Mapping[str, Any]

    def running(self) -> Sequence[str]:
        return [id_ for id_, app in self.children.items() if app["state"] in ALIVE]


class Launchers(Outage):
    """An Active cluster, and a job of each type."""

    def __init__(self, state: Path, image: Path, quiet: bool = False) -> None:
        super().__init__(state, image, 120.0, quiet)
        self._state = state
        self._most = 0
        self._known: frozenset[str] = frozenset()

    async def begin(self) -> None:
        """As of an outage, and jobs of the other types."""
        await super().begin()
        links = (await self.tenant.cluster(self.cluster_id))["info"]["YARN"]
        self._manager = links["Web UI"]

    async def job(self, kind: str) -> str:
        """A new job's id."""
        name = f"launcher-{kind.lower()}-{self._jobs}"
        match kind:
            case "Jar":
                return self._job
            case "Pig" | "SmallPig":
                return await self.tenant.new_pig_job(name, PIG.encode())
            case "Spark":
                return await self.tenant.new_job(name, kind, {f"{name}.py": SPARK.encode()})
            case "Java":
                examples = (self._image / "examples" / "svcd-examples.jar").read_bytes()
                libs = {f"{name}.jar": self._compiled(), f"{name}-examples.jar": examples}
                return await self.tenant.new_job(name, "Java", libs=libs)
            case _:
                return await self.tenant.new_job(
                    name, "Shell", mains={f"{name}.sh": SHELL.encode()}
                )

    async def launch(self, kind: str, task_s: float) -> str:
        """An execution of a new job."""
        self._known = frozenset([a["id"] for a in await applications(self._manager)])
        self._most = 0
        job = await self.job(kind)
        self._jobs += 1
        out = f"objstore://{BOX}/out/{self._jobs}"
        target = await self.tenant.new_source(f"out-{self._jobs}", BOX, f"out/{self._jobs}")
        configs: dict[str, str] = {}
        args: list[str] = []
        params: dict[str, str] = {}
        if kind in ("Jar", "Java"):
            configs = {**SLEEP, "svcd.examples.sleep.ms": str(int(task_s * 1000))}
        if kind == "Pig":
            configs["pig.auto.local.enabled"] = "false"
        if kind == "Java":
            configs["edp.java.main_class"] = "org.svcd.kills.Submit"
            args = [f"objstore://{BOX}/in", out]
        if kind == "Spark":
            args = [str(task_s)]
        if kind == "Shell":
            params = {"MARKS": str(self.marks())}
        return await self.tenant.execute(
            self.cluster_id, job, self._source, target, configs, args, params
        )

    def marks(self) -> Path:
        """What the newest Shell job writes down."""
        return self._state / f"marks-{self._jobs}"

    # ---- what YARN and the machines say ----------------------------------------------------------

    async def seen(self) -> Seen:
        """The applications of the newest execution."""
        every = await applications(self._manager)
        mine = [app for app in every if app["id"] not in self._known]
        launchers = {a["id"]: a for a in mine if a["name"].startswith("oozie:launcher:")}
        children = {a["id"]: a for a in mine if a["id"] not in launchers}
        found = Seen(launchers=launchers, children=children)
        self._most = max(self._most, len(found.running()))
        return found

    def pids(self, program: str = "LauncherAM") -> Sequence[int]:
        """Java processes of launchers, or of another class."""
        found = []
        for pid in machine_processes(self._daemon.state):
            java, _, words = proc_text(pid, "cmdline").partition("\0")
            if java.endswith("/java") and program in words:
                found.append(pid)
        return found

    async def kill(self, program: str) -> bool:
        """False: it has ended already."""
        pids = self.pids(program)
        for pid in pids:
            self.say(f"  kill -9 {pid}")
            os.kill(pid, signal.SIGKILL)
        return bool(pids)

    async def when(self, what: str, true: Callable[[Seen], bool]) -> None:
        async def look() -> bool:
            return true(await self.seen())

        await until(look, what, LAUNCHED_S, LOOK_S)

    # ---- one case --------------------------------------------------------------------------------

    async def happens(self, kind: str, moment: str) -> str:
        """How the execution ended: a word for it. Raises Wrong."""
        long = kind in ("Java", "Spark") and moment in ("submitted", "running")
        execution = await self.launch(kind, LONG_TASK_S if long else TASK_S)

        async def jvm() -> bool:
            await self.seen()
            return bool(self.pids())

        await until(jvm, "the JVM of the launcher", LAUNCHED_S, LOOK_S)
        if kind == "SmallPig" and moment == "running":
            await until(self._steps, "a step within the launcher", LAUNCHED_S, 0.01)
        elif kind == "SmallPig" and moment == "ended":
            await until(self._listed, "a file of the result", LAUNCHED_S, 0.01)
        elif moment == "submitted":
            await self.when("a child", lambda seen: bool(seen.children))
        elif moment == "master" or (moment == "running" and kind != "Shell"):
            await self.when("a child's task", lambda s: any(map(works, s.children.values())))
        elif moment == "running":
            await until(_says(self.marks(), "began"), "the script", LAUNCHED_S, LOOK_S)
        elif moment == "ended" and kind == "Shell":
            await until(_says(self.marks(), "ended"), "the script's end", LAUNCHED_S, 0.01)
        elif moment == "ended":
            least = 3 if kind == "Pig" else 1  # ORDER takes a sample first
            await self.when(
                "the last child's end", lambda s: len(s.children) >= least and not s.running()
            )
        at = seconds()
        died = await self.kill("MRAppMaster" if moment == "master" else "LauncherAM")
        info = await self._watched(execution)
        took = seconds() - at
        seen = await self.seen()
        failure = (info.get("failure") or {}).get("code", "")
        told = (
            f"{kind} {moment}: {'killed' if died else 'it had gone'}, {info['status']}"
            f" {failure} after {took:.1f} s; {len(seen.children)} children, {self._most} at once:"
            f" {[(a['state'], a['finalStatus']) for a in seen.children.values()]}"
        )
        self.say(told)
        if moment == "master" and (not died or info["status"] != "SUCCEEDED"):
            raise Wrong(f"the master's second attempt must succeed: {info.get('failure')}")
        await self._check(kind, info, seen, died)
        return told

    async def _steps(self) -> bool:
        """Whether a launcher has files of a step of Pig in its container."""
        return any(Path(f"/proc/{pid}/cwd/steps").exists() for pid in self.pids())

    async def _listed(self) -> bool:
        """Whether a step has written a file of the result."""
        return bool((await self._output()).strip())

    async def _watched(self, execution: str) -> Mapping[str, Any]:
        """After its end; all children are counted until then."""

        async def over() -> Any:
            await self.seen()
            info = await self.info(execution)
            return info if info["status"] in ("SUCCEEDED", "KILLED", "FAILED") else None

        info: Mapping[str, Any] = await until(over, "the end of the execution", ENDED_S, 0.2)
        return info

    async def _check(self, kind: str, info: Mapping[str, Any], seen: Seen, died: bool) -> None:
        if seen.running():
            raise Wrong(f"{seen.running()} run after the end of the execution")
        if kind == "SmallPig" and seen.children:
            raise Wrong(f"small steps have run outside the launcher: {sorted(seen.children)}")
        if self._most > 1:
            raise Wrong(f"{self._most} children at the same time")
        if info["status"] == "SUCCEEDED":
            await self._whole(kind)
        elif not died or (info.get("failure") or {}).get("code") != "LAUNCHER_LOST":
            raise Wrong(f"{info['status']}: {info.get('failure')}")
        if kind == "Shell" and self.marks().exists():
            lines = self.marks().read_text().split()
            if lines.count("began") > 1:
                raise Wrong(f"the script has run more than once: {lines}")

        numbers = [id_.removeprefix("application_") for id_ in (*seen.launchers, *seen.children)]

        async def swept() -> bool:
            texts = [proc_text(p, "environ") for p in machine_processes(self._daemon.state)]
            containers = [text for text in texts if "CONTAINER_ID=" in text]
            return not any(f"_{number}_" in text for text in containers for number in numbers)

        await until(swept, "the end of all containers of the execution", SWEPT_S, 0.5)

    async def _whole(self, kind: str) -> None:
        """The result is whole, each line once."""
        if kind == "Shell":
            wanted, found = "began\nended", self.marks().read_text().strip()
        else:
            wanted, found = EXPECTED[kind], (await self._output()).strip()
        if found != wanted:
            raise Wrong(f"the result is {found!r}, expected {wanted!r}")

    async def _output(self) -> str:
        return await self.tenant.parts(BOX, f"out/{self._jobs}")

    def _compiled(self) -> bytes:
        """A jar with the class of JAVA."""
        folder = self._state / "java"
        folder.mkdir(exist_ok=True)
        source = folder / "Submit.java"
        source.write_text(JAVA)
        path = f"{self._image}/hadoop/lib/*:{self._image}/examples/svcd-examples.jar"
        subprocess.run(["javac", "-cp", path, "-d", folder, source], check=True)
        jar = folder / "submit.jar"
        with zipfile.ZipFile(jar, "w") as made:
            made.write(folder / "org/svcd/kills/Submit.class", "org/svcd/kills/Submit.class")
        return jar.read_bytes()


def _says(path: Path, word: str) -> Callable[[], Any]:
    async def look() -> bool:
        return path.exists() and word in path.read_text()

    return look


MOMENTS: Final = {
    "Jar": ("starting", "submitted", "running", "ended", "master"),
    "Pig": ("starting", "submitted", "running", "ended", "master"),
    "SmallPig": ("starting", "running", "ended"),
    "Java": ("starting", "submitted", "running", "ended", "master"),
    "Shell": ("starting", "running", "ended"),
    "Spark": ("starting", "submitted", "running", "ended"),
}


async def drive(cases: Sequence[tuple[str, str]], state: Path, image: Path) -> None:
    """One after the other on one cluster; SystemExit tells those that were wrong."""
    wrong: list[str] = []
    launchers = Launchers(state, image)
    try:
        await launchers.begin()
        for kind, moment in cases:
            print(f"==== {kind} {moment}", flush=True)
            try:
                await launchers.happens(kind, moment)
            except AssertionError as error:
                wrong.append(f"{kind} {moment}")
                print(f"==== {kind} {moment}: WRONG: {error}", flush=True)
                await sleep(reactor, 20.0)
        if not wrong:
            await launchers.deleted()
    finally:
        await launchers.end()
    if wrong:
        raise SystemExit(f"wrong: {', '.join(wrong)}")


def main(arguments: Sequence[str]) -> None:
    known = [f"{kind}-{moment}" for kind, moments in MOMENTS.items() for moment in moments]
    parser = argparse.ArgumentParser(prog="python -m tests.kills.launchers", description=__doc__)
    parser.add_argument("cases", nargs="*", default=known, metavar="CASE", help=", ".join(known))
    parser.add_argument("--image", type=Path, default=Path("/opt/svcd/vanilla"))
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.cases) - set(known))
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    cases = [(kind, moment) for kind, _, moment in (case.partition("-") for case in given.cases)]
    with tempfile.TemporaryDirectory(prefix="svcd-launchers-") as state:
        work = drive
        react(
            lambda _reactor: Deferred.fromCoroutine(
                work(cases, Path(state), given.image.absolute())
            )
        )


if __name__ == "__main__":
    main(sys.argv[1:])
