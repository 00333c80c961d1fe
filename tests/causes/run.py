"""The cluster of `tests.causes`: runs the cells, reads what svcd reads, compares."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from attrs import asdict, frozen
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.web.client import Agent

from svcd.clients.probe import HttpProbe
from svcd.embedded.process_marks import root_of
from svcd.model import engine_record
from svcd.model.engine_record import Record
from svcd.ports.engine import Endpoints
from svcd.ports.machines import Way
from svcd.runtime.tasks import gather
from svcd.workflow.act.containers import Containers
from svcd.workflow.act.rows import Place
from svcd.workflow.act.yarn import ResourceManager
from svcd.workflow.decide.evidence import Ended, Evidence, LogFile
from svcd.workflow.decide.stalls import tag_of
from tests.causes.cells import FOLDER, JAR, LITERAL, PLAIN, ROOMY, SOFT, Cell
from tests.causes.expected import EXPECTED
from tests.support.live import MASTER, WORKER, Tenant, seconds
from tests.support.processes import Daemon, machine_processes, reactor, send, until
from tests.support.yarn import applications, works

FIXTURES: Final = Path(__file__).parents[1] / "fixtures" / "causes"
PROGRAMS: Final = FIXTURES / "programs"
ACTIVE_S: Final = 300.0
IN_YARN_S: Final = 180.0
JOB_S: Final = 300.0
ENDED: Final = ("SUCCEEDED", "KILLED", "FAILED")
ENDINGS: Final = {"Pig": ".pig", "Shell": ".sh", "MapReduce": ".py"}
USER: Final = "svcd"
TEXT: Final = b"one two two\nthree\n"


@frozen(kw_only=True)
class Result:
    """What svcd said of a cell."""

    cell: Cell
    status: str
    code: str = ""
    text: str = ""
    took_s: float = 0.0
    fault: str = ""

    @property
    def is_right(self) -> bool:
        code, begins = EXPECTED.get(self.cell.name, ("?", ""))
        told = self.code == code and self.text.startswith(begins)
        return told and not self.fault and (bool(code) or self.status == "SUCCEEDED")

    @property
    def line(self) -> str:
        """One row of the table."""
        mark, code = "right" if self.is_right else "WRONG", self.code or self.status
        said = f"{self.text[:160]} {self.fault}"
        return f"{self.cell.name:32} {mark} {code:18} {self.took_s:4.0f} s  {said}"


class Run:
    """One cluster of its own; the cells run on it."""

    def __init__(self, state: Path, image: Path, records: Path | None, within_s: float) -> None:
        self._state = state
        self._image = image
        self._records = records
        self._until = seconds() + within_s
        self._daemon = Daemon(
            state / "daemon",
            embedded__image_prefix=str(image),
            plugins__enabled="vanilla",
            workflow__unreachable_deadline_s="60",
        )

    async def to_end(self, cells: Sequence[Cell], at_once: int) -> int:
        """Run all cells, print the table, return the exit code."""
        try:
            on = await self._begin()
            calm = [c for c in cells if not c.impossible and c.deed != "lose"]
            rough = [c for c in cells if c.deed == "lose"]
            results = await gather([partial(self._result, on, c) for c in calm], at_once)
            results += [await self._result(on, c) for c in rough]
        finally:
            await self._daemon.remove()
        told = [each for each in results if isinstance(each, Result)]
        for cell in cells:
            if cell.impossible:
                print(f"{cell.name:32} -     {cell.impossible}")
        for each in sorted(told, key=lambda r: r.cell.name):
            print(each.line)
        for error in results:
            if isinstance(error, BaseException):
                print(f"a defect of this program: {error!r}")
        wrong = [each for each in told if not each.is_right]
        print(f"{len(told) - len(wrong)} of {len(results)} cells are right")
        return 1 if wrong or len(told) < len(results) else 0

    async def _result(self, on: Programs, cell: Cell) -> Result:
        if seconds() > self._until:
            return Result(cell=cell, status="?", fault="no time was left for it")
        result = await on.result(cell)
        print(result.line, flush=True)
        return result

    async def _begin(self) -> Programs:
        tenant = Tenant(await self._daemon.start())
        image = tenant.image("vanilla-3.5.0")
        await tenant.done("POST", f"/images/{image}", {"username": USER})
        await tenant.done("POST", f"/images/{image}/tag", {"tags": ["vanilla", "3.5.0"]})
        group = {"flavor_id": "3", "volumes_per_node": 1}
        body = {
            "name": "causes",
            "plugin_name": "vanilla",
            "engine_version": "3.5.0",
            "default_image_id": image,
            "user_keypair_id": "demo",
            "cluster_configs": {
                "HDFS": {"dfs.replication": 1},
                "YARN": {"yarn.nodemanager.pmem-check-enabled": True},
            },
            "node_groups": [
                {"name": "master", "count": 1, "node_processes": MASTER, **group},
                {"name": "worker", "count": 2, "node_processes": WORKER, **group},
            ],
        }
        made = (await tenant.done("POST", "/clusters", body))["cluster"]
        shown = await tenant.until_active(made["id"], ACTIVE_S)
        on = Programs(tenant, shown, self._daemon.state, self._image, self._records)
        await on.begin(self._state)
        return on


class Programs:
    """Runs cells on an Active cluster.

    cluster: as the API shows it. state: of the daemon whose cloud has the machines. records: the
    folder for what svcd read of each cell, or None.
    """

    def __init__(
        self,
        tenant: Tenant,
        cluster: Mapping[str, Any],
        state: Path,
        image: Path,
        records: Path | None = None,
    ) -> None:
        self._tenant = tenant
        self._state = state
        self._image = image
        self._records = records
        self._jar = b""
        self._restart: Deferred[None] | None = None
        self._cluster = cluster["id"]
        info = cluster["info"]
        self._manager = info["YARN"]["Web UI"].rstrip("/")
        self._hdfs = f"{info['HDFS']['Web UI'].rstrip('/')}/webhdfs/v1"
        self._place = self._place_of(cluster, info["MapReduce"]["Web UI"])
        probe = HttpProbe(Agent(reactor), reactor)
        self._containers = Containers(probe, reactor)
        self._yarn = ResourceManager(probe, reactor)

    async def begin(self, folder: Path) -> None:
        """Compile the programs in a new folder below `folder`, and make the data."""
        self._jar = self._compiled(folder)
        texts = ("in", "there", "private", PLAIN, SOFT, LITERAL)
        for name in (*texts, "full"):
            await self._in_hdfs("PUT", f"{FOLDER}/{name}", "MKDIRS")
        for name in texts:
            await self._write(f"{FOLDER}/{name}/words.txt", TEXT)
        await self._in_hdfs("PUT", f"{FOLDER}/full", "SETQUOTA&storagespacequota=1000")
        await self._in_hdfs("PUT", f"{FOLDER}/private", "SETOWNER&owner=boss")
        await self._in_hdfs("PUT", f"{FOLDER}/private", "SETPERMISSION&permission=700")

    def _place_of(self, cluster: Any, history: str) -> Place:
        hosts = [i["internal_ip"] for g in cluster["node_groups"] for i in g["instances"]]
        manager = urlsplit(self._manager).hostname or ""
        served = Endpoints(
            engine="",
            webhdfs="",
            name_node="",
            resource_manager=f"{manager}:8032",
            history=history,
            user=USER,
        )
        ways = {host: Way(host) for host in (*hosts, manager)}
        return Place(cluster, served, ways)  # type: ignore[arg-type]

    async def _in_hdfs(self, method: str, path: str, op: str) -> Any:
        url = f"{self._hdfs}{quote(path)}?user.name={USER}&op={op}"
        reply = await send(method, url)
        if reply.status >= 300:
            raise AssertionError(f"{op} {path}: {reply.status} {reply.body.decode()}")
        return reply.json

    async def _lines(self, folder: str) -> list[str]:
        """The lines of all files of an output, sorted, without the keys before them."""
        found: list[str] = []
        statuses = (await self._in_hdfs("GET", folder, "LISTSTATUS"))["FileStatuses"]
        for each in statuses["FileStatus"]:
            if not each["pathSuffix"].startswith(("_", ".")):
                url = f"{self._hdfs}{quote(folder + '/' + each['pathSuffix'])}?user.name={USER}"
                place = (await send("GET", f"{url}&op=OPEN&noredirect=true")).json["Location"]
                found += (await send("GET", place)).body.decode().splitlines()
        return sorted(line.strip("\t").rpartition("\t")[2] for line in found)

    async def _write(self, path: str, content: bytes) -> None:
        url = f"{self._hdfs}{quote(path)}?user.name={USER}&op=CREATE&noredirect=true"
        place = (await send("PUT", url)).json["Location"]
        reply = await send("PUT", place, data=content)
        if reply.status != 201:
            raise AssertionError(f"CREATE {path}: {reply.status} {reply.body.decode()}")

    # ---- a cell ----------------------------------------------------------------------------------

    async def result(self, cell: Cell) -> Result:
        """What svcd says after the end of the cell's program. A lost worker is back then."""
        at = seconds()
        try:
            execution = await self._execute(cell)
            if cell.deed:
                await self._do(cell, execution)
            shown = await self._ended(execution)
            info = shown["info"]
            failure = info.get("failure") or {}
            failed = info["status"] != "SUCCEEDED"
            if self._records is not None and failed and not cell.copies:
                await self._record(self._records, cell, info)
            fault = ""
            if cell.copies and info["status"] == "SUCCEEDED":
                lines = await self._lines(_url(cell.copies, _named(cell)))
                if lines != sorted(TEXT.decode().splitlines()):
                    fault = f"the output has {lines}"
            result = Result(
                cell=cell,
                fault=fault,
                status=info["status"],
                code=failure.get("code", ""),
                text=failure.get("text", ""),
                took_s=seconds() - at,
            )
        except AssertionError as error:
            return Result(cell=cell, status="?", fault=str(error)[:300])
        finally:
            if self._restart is not None:
                await self._restart
                self._restart = None
        return result

    async def _execute(self, cell: Cell) -> str:
        name = _named(cell)
        ending = {"PySpark": ".py", "SparkSQL": ".sql"}.get(cell.type, "")
        script = f"{name}{ENDINGS.get(cell.kind, ending)}"
        libs = {f"{name}-{JAR}": self._jar} if cell.jar else {}
        content = cell.script.replace("JAR", f"{name}-{JAR}")
        streams = cell.type in ("Streaming", "SmallStreaming")
        mains = {script: content.encode()} if content and not streams else {}
        if streams:
            libs = {script: content.encode()}
        elif cell.type == "SparkJar":
            mains, libs = libs, {}
        job = await self._tenant.new_job(name, cell.kind, mains, libs)
        body: dict[str, Any] = {
            "cluster_id": self._cluster,
            "job_configs": {
                "configs": {
                    **ROOMY,
                    **{k: v.replace("SCRIPT", script) for k, v in cell.configs.items()},
                },
                "args": [a if a not in _PLACES else _url(a, name) for a in cell.args],
            },
        }
        for field, place in (("input_id", cell.input), ("output_id", cell.output)):
            if place:
                url = _url(place, name)
                body[field] = await self._tenant.new_hdfs_source(f"{name}-{field[:-3]}", url)
        made = await self._tenant.done("POST", f"/jobs/{job}/execute", body)
        return str(made["job_execution"]["id"])

    async def _ended(self, execution: str) -> Any:
        async def over() -> Any:
            shown = await self._tenant.done("GET", f"/job-executions/{execution}")
            return shown if shown["info"]["status"] in ENDED else None

        return await until(over, f"the end of {execution}", JOB_S, 0.5)

    async def _do(self, cell: Cell, execution: str) -> None:
        """Kill the application, or its worker."""
        wanted = cell.of == "launcher"

        async def found() -> Any:
            shown = await self._tenant.done("GET", f"/job-executions/{execution}")
            engine = shown["workflow_job_id"]
            if shown["info"]["status"] in ENDED:
                raise AssertionError(f"it has ended: {shown['info'].get('failure')}")
            if not engine:
                return None
            for app in await applications(self._manager, "?states=RUNNING"):
                is_launcher = app["name"].startswith("oozie:launcher:")
                mine = f"ID={engine}" in app["name"] or tag_of(f"{engine}@job-node") in str(
                    app.get("applicationTags")
                )
                fits = mine and is_launcher == wanted and app["runningContainers"] > 0
                if fits and (is_launcher or works(app)):
                    return app
            return None

        app = await until(found, f"the {cell.of} of {cell.name}", IN_YARN_S, 0.5)
        if cell.deed == "kill":
            url = f"{self._manager}/ws/v1/cluster/apps/{app['id']}/state?user.name={USER}"
            reply = await send("PUT", url, json={"state": "KILLED"})
            if reply.status not in (200, 202):
                raise AssertionError(f"kill {app['id']}: {reply.status} {reply.body.decode()}")
            return
        self._lose(str(app["amHostHttpAddress"]).partition(":")[0])

    def _lose(self, address: str) -> None:
        """End all processes of YARN on a worker at once; start its node manager again later."""
        processes = {}
        for pid in machine_processes(self._state):
            try:
                environ = Path(f"/proc/{pid}/environ").read_bytes()
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                folder = Path(f"/proc/{pid}/cwd").readlink()
            except OSError:
                continue
            processes[pid] = (environ, words, folder)
        (manager,) = (
            pid
            for pid, (environ, words, _) in processes.items()
            if b"-Dproc_nodemanager" in words and address.encode() in b"\0".join([*words, environ])
        )
        environ, words, folder = processes[manager]
        machine = root_of(environ)
        for pid, (other, _, _) in processes.items():
            if root_of(other) == machine and (pid == manager or b"CONTAINER_ID=" in other):
                os.kill(pid, signal.SIGKILL)
        variables = dict(
            each.decode().split("=", 1) for each in environ.split(b"\0") if b"=" in each
        )
        command = [each.decode() for each in words[:-1]]

        def again() -> None:
            subprocess.Popen(
                command,
                cwd=folder,
                env=variables,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

        self._restart = deferLater(reactor, 30, again)

    # ---- what svcd reads -------------------------------------------------------------------------

    async def _record(self, folder: Path, cell: Cell, info: Mapping[str, Any]) -> None:
        """Write the engine's record, and the texts that svcd reads besides, to a file."""
        record: Record = engine_record.parsed(info)
        evidence = Evidence()
        if record.failed is not None:
            family = await self._yarn.family(self._place, record.failed)
            evidence = await self._containers.evidence(self._place, record, family, 30.0)
        actions = [
            {key: value for key, value in action.items() if key != "conf"}
            for action in info["actions"]
        ]
        tree = {"status": info["status"], "actions": actions}
        kept = {"record": tree, "evidence": asdict(evidence)}
        path = folder / f"{_named(cell)}.json"
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def _compiled(self, folder: Path) -> bytes:
        """The jar of the programs, without the class that one of them misses.

        Programs of Spark are in it when the image has Spark.
        """
        made = folder / "classes"
        libraries = ("hadoop/lib/*", "pig/lib/*", "spark/jars/*")
        path = ":".join(f"{self._image}/{each}" for each in libraries)
        has_spark = (self._image / "spark" / "jars").is_dir()
        sources = [
            each
            for each in sorted(PROGRAMS.rglob("*.java"))
            if has_spark or not each.name.startswith("Spark")
        ]
        subprocess.run(["javac", "--release", "17", "-cp", path, "-d", made, *sources], check=True)
        jar = folder / JAR
        with zipfile.ZipFile(jar, "w") as archive:
            for each in sorted(made.rglob("*.class")):
                if each.stem != "Missing":
                    archive.write(each, str(each.relative_to(made)))
        return jar.read_bytes()


_PLACES: Final = frozenset(
    {"in", "out", "there", "missing", "private/in", "full/out", PLAIN, f"{PLAIN} out"}
)


def _named(cell: Cell) -> str:
    return cell.name.lower().replace("/", "-")


def _url(place: str, name: str) -> str:
    if "://" in place:
        return place
    return f"{FOLDER}/{place}-{name}" if place.endswith("out") else f"{FOLDER}/{place}"


def evidence_of(tree: Mapping[str, Any]) -> Evidence:
    """The evidence of a recorded cell."""
    return Evidence(
        attempts=tree["attempts"],
        jobs=tree["jobs"],
        files=[LogFile(**each) for each in tree["files"]],
        applications=[Ended(**each) for each in tree["applications"]],
        silent=tree["silent"],
    )
