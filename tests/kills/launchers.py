"""`python -m tests.kills.launchers`: kill -9 of the launcher of a job of real Hadoop.

The launcher's JVM dies while it starts, when it has just submitted its child, while that runs, and
after it has ended. Each time at most one child may run, and the execution ends `SUCCEEDED` with its
whole result, or with `LAUNCHER_LOST` and nothing of it left in YARN or on a machine. In the case
`master` the JVM dies that runs the child, master and task in one: YARN starts it again, and the job
must end `SUCCEEDED` with its whole result. The exit code is 1 when not so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from svcd.cli.demo_files import SLEEP
from tests.kills.outage import ENDED, Outage, Wrong, drive, main
from tests.support.live import seconds
from tests.support.processes import machine_processes, send, until
from tests.support.yarn import works

ALIVE: Final = frozenset({"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"})
BOX: Final = "outage"
TASK_S: Final = 6.0
LONG_TASK_S: Final = 60.0
"""Of the only task of a child; the long one is to be killed."""
LAUNCHED_S: Final = 120.0
ENDED_S: Final = 180.0
SWEPT_S: Final = 30.0
LOOK_S: Final = 0.05

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
SLEPT: Final = "0\tone two two"
MOMENTS: Final = ("starting", "submitted", "running", "ended", "master")


@frozen(kw_only=True)
class Seen:
    """What a watch has seen of one execution's applications, by their names in YARN."""

    launchers: Mapping[str, Any]
    children: Mapping[str, Any]

    def running(self) -> Sequence[str]:
        return [id_ for id_, app in self.children.items() if app["state"] in ALIVE]


class Launchers(Outage):
    """An Active cluster, and jobs whose launchers die."""

    def __init__(self, state: Path, image: Path, quiet: bool = False) -> None:
        super().__init__(state, image, 120.0, quiet)
        self._state = state
        self._most = 0
        self._known: frozenset[str] = frozenset()

    async def begin(self) -> None:
        """As of an outage."""
        await super().begin()
        links = (await self.tenant.cluster(self.cluster_id))["info"]["YARN"]
        self._apps = f"{links['Web UI']}/ws/v1/cluster/apps"

    async def launch(self, task_s: float) -> str:
        """An execution of a new Java job whose main class submits one child."""
        self._known = frozenset(await self._ids())
        self._most = 0
        self._jobs += 1
        name = f"launcher-{self._jobs}"
        examples = (self._image / "examples" / "svcd-examples.jar").read_bytes()
        libs = {f"{name}.jar": self._compiled(), f"{name}-examples.jar": examples}
        job = await self.tenant.new_job(name, "Java", libs=libs)
        target = await self.tenant.new_source(f"out-{self._jobs}", BOX, f"out/{self._jobs}")
        configs = {
            **SLEEP,
            "svcd.examples.sleep.ms": str(int(task_s * 1000)),
            "edp.java.main_class": "org.svcd.kills.Submit",
        }
        args = [f"objstore://{BOX}/in", f"objstore://{BOX}/out/{self._jobs}"]
        body = {
            "cluster_id": self.cluster_id,
            "input_id": self._source,
            "output_id": target,
            "job_configs": {"configs": configs, "args": args, "params": {}},
        }
        made = await self.tenant.done("POST", f"/jobs/{job}/execute", body)
        return str(made["job_execution"]["id"])

    # ---- what YARN and the machines say ----------------------------------------------------------

    async def _rows(self) -> Sequence[Any]:
        reply = await send("GET", self._apps, limit_s=10.0)
        return ((reply.json or {}).get("apps") or {}).get("app", [])

    async def _ids(self) -> Sequence[str]:
        return [str(app["id"]) for app in await self._rows()]

    async def seen(self) -> Seen:
        """The applications of the newest execution."""
        mine = [app for app in await self._rows() if app["id"] not in self._known]
        launchers = {a["id"]: a for a in mine if a["name"].startswith("oozie:launcher:")}
        children = {a["id"]: a for a in mine if a["id"] not in launchers}
        found = Seen(launchers=launchers, children=children)
        self._most = max(self._most, len(found.running()))
        return found

    def pids(self, program: str = "LauncherAM") -> Sequence[int]:
        """Java processes of launchers, or of another class."""
        found = []
        for pid in machine_processes(self._daemon.state):
            words = _words(pid)
            if words and words[0].endswith("/java") and any(program in w for w in words):
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

    async def happens(self, moment: str) -> str:
        """How the execution ended: a word for it. Raises Wrong."""
        long = moment in ("submitted", "running")
        execution = await self.launch(LONG_TASK_S if long else TASK_S)

        async def jvm() -> bool:
            await self.seen()
            return bool(self.pids())

        await until(jvm, "the JVM of the launcher", LAUNCHED_S, LOOK_S)
        if moment == "submitted":
            await self.when("a child", lambda seen: bool(seen.children))
        elif moment in ("running", "master"):
            await self.when("a child's task", lambda s: any(map(works, s.children.values())))
        elif moment == "ended":
            await self.when("the child's end", lambda s: bool(s.children) and not s.running())
        at = seconds()
        died = await self.kill("MRAppMaster" if moment == "master" else "LauncherAM")
        info = await self._watched(execution)
        took = seconds() - at
        seen = await self.seen()
        failure = (info.get("failure") or {}).get("code", "")
        told = (
            f"{moment}: {'killed' if died else 'it had gone'}, {info['status']}"
            f" {failure} after {took:.1f} s; {len(seen.children)} children, {self._most} at once:"
            f" {[(a['state'], a['finalStatus']) for a in seen.children.values()]}"
        )
        self.say(told)
        if moment == "master" and (not died or info["status"] != "SUCCEEDED"):
            raise Wrong(f"the master's second attempt must succeed: {info.get('failure')}")
        await self._check(info, seen, died)
        return told

    async def _watched(self, execution: str) -> Mapping[str, Any]:
        """After its end; all children are counted until then."""

        async def over() -> Any:
            await self.seen()
            info = await self.info(execution)
            return info if info["status"] in ENDED else None

        info: Mapping[str, Any] = await until(over, "the end of the execution", ENDED_S, 0.2)
        return info

    async def _check(self, info: Mapping[str, Any], seen: Seen, died: bool) -> None:
        if seen.running():
            raise Wrong(f"{seen.running()} run after the end of the execution")
        if self._most > 1:
            raise Wrong(f"{self._most} children at the same time")
        if info["status"] == "SUCCEEDED":
            found = (await self._output()).strip()
            if found != SLEPT:
                raise Wrong(f"the result is {found!r}, expected {SLEPT!r}")
        elif not died or (info.get("failure") or {}).get("code") != "LAUNCHER_LOST":
            raise Wrong(f"{info['status']}: {info.get('failure')}")

        async def swept() -> bool:
            pids = machine_processes(self._daemon.state)
            return not any(b"CONTAINER_ID=" in _environ(p) and _mine(p, seen) for p in pids)

        await until(swept, "the end of all containers of the execution", SWEPT_S, 0.5)

    async def _output(self) -> str:
        base = f"{self.tenant.cloud['object_store']}/{BOX}"
        headers = {"X-Auth-Token": await self.tenant.token()}
        listed = await send(
            "GET", f"{base}?format=json&prefix=out/{self._jobs}/part", headers=headers
        )
        text = ""
        for entry in listed.json:
            text += (await send("GET", f"{base}/{entry['name']}", headers=headers)).body.decode()
        return text

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


def _words(pid: int) -> Sequence[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _mine(pid: int, seen: Seen) -> bool:
    """Whether it is in a container of one of the applications."""
    environ = _environ(pid)
    numbers = [id_.removeprefix("application_") for id_ in (*seen.launchers, *seen.children)]
    return any(f"_{number}_".encode() in environ for number in numbers)


async def moments(chosen: Sequence[str], state: Path, image: Path) -> None:
    """One after the other on one cluster."""
    launchers = Launchers(state, image)
    try:
        await launchers.begin()
        await drive(chosen, launchers.happens)
        await launchers.deleted()
    finally:
        await launchers.end()


if __name__ == "__main__":
    main("launchers", MOMENTS, moments)
