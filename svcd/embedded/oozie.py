# mypy: allow-untyped-calls
"""A scripted workflow engine: the Oozie services, and WebHDFS and YARN beside it, in memory.

Klein routes behind the ordinary clients; the contract suite (tests/contract/engine.py) runs
against it and against the real server. No program runs: a job's life is a function of the clock.
One `ScriptedEngine` is one cluster's engine; `ScriptedEngines` makes one for each cluster id.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode
from xml.etree import ElementTree

from attrs import evolve
from klein import Klein
from twisted.internet.interfaces import IReactorTime
from twisted.web.resource import IResource

from svcd.embedded.cloud.state import CloudJournal
from svcd.embedded.faults import Faults
from svcd.embedded.hdfs import HdfsFault, MemoryFiles
from svcd.embedded.oozie_jobs import OUTCOMES, Job, Refused, define_job, http_date, properties_of
from svcd.embedded.services import Call, Refusal, Reply, Service, ServiceResource
from svcd.embedded.yarn import ScriptedYarn
from svcd.web.routing import route

_JSON: Final = 'application/json; charset="UTF-8"'
_WHERE: Final = {b"webhdfs": "hdfs", b"yarn": "yarn"}


class ScriptedEngine:
    """The state of one engine, with hooks for tests.

    jobs: id -> job, in order of submission. submissions: accepted submits. calls: number of calls
    by kind, for example "GET jobs". files: its HDFS. yarn: its resource manager. untidy: it cannot
    remove a killed job's folder. cluster: the id of the cluster that it belongs to; "": it belongs
    to any cluster that uses it.
    """

    def __init__(self, clock: IReactorTime, run_s: float = 5.0) -> None:
        self._clock = clock
        self._run_s = run_s
        self._epoch = clock.seconds()
        self.jobs: dict[str, Job] = {}
        self.submissions = 0
        self.calls: dict[str, int] = {}
        self.untidy = False
        self.cluster = ""
        self.files = MemoryFiles()
        self.yarn = ScriptedYarn()

    def now(self) -> float:
        """The clock's seconds."""
        return float(self._clock.seconds())

    def submit(self, properties: Mapping[str, str], base: str) -> str:
        """Accept and start a job; its id. Raises Refused."""
        if not properties.get("user.name"):
            raise Refused("E1603", "user cannot be null")
        path = properties.get("oozie.wf.application.path")
        if path is None:
            raise Refused("E0307", "E0307: Runtime error [missing application path]")
        definition = define_job(self._definition(path))
        script = {**definition.configs, **properties}
        outcome = script.get("svcd.fake.outcome", "succeed")
        now = self.now()
        job = Job(
            id=f"{len(self.jobs):07d}-{_stamp(self._epoch)}-oozie-svcd-W",
            app_path=path,
            properties=dict(properties),
            definition=definition,
            console=base,
            created_at=now,
            started_at=now,
            run_s=_number(script.get("svcd.fake.run_s"), self._run_s),
            outcome=outcome if outcome in OUTCOMES else "succeed",
            message=script.get("svcd.fake.error", "asked to fail"),
            holding=script.get("svcd.fake.holding", ""),
            queued=script.get("svcd.fake.queued", ""),
            missing=self._missing(path, definition.needs),
        )
        job.log.append(f"{http_date(now)} INFO submitted {job.id}")
        self.jobs[job.id] = job
        self.submissions += 1
        return job.id

    def find(self, external_id: str) -> str:
        """The last job with the external id, "" when there is none."""
        found = [job.id for job in self.jobs.values() if job.external_id == external_id]
        return found[-1] if found else ""

    def get(self, job_id: str) -> Job:
        """Raises Refused."""
        job = self.jobs.get(job_id)
        if job is None:
            raise Refused("E0604", f"E0604: Job does not exist [{job_id}]")
        return job

    def kill(self, job_id: str) -> None:
        """Kill a job; nothing happens after its end. Raises Refused."""
        job, now = self.jobs.get(job_id), self.now()
        if job is None:
            text = "E0605: Action does not exist [select w.id from WorkflowJobBean w]"
            raise Refused("E0605", text)
        ended = job.ended_at(now) is not None
        job.kill(now)
        if self.untidy and not ended:
            text = f"E0819: Unable to delete the temp dir of job WF Job [{job_id}]."
            raise Refused("E0819", text)
        job.log.append(f"{http_date(now)} INFO kill {job_id}")

    def select(self, text: str) -> list[Job]:
        """The jobs that a filter names by their ids, or all, newest first. Raises Refused."""
        ids = []
        for element in filter(None, text.split(";")):
            name, _, value = element.partition("=")
            if name != "id":
                raise Refused("E0420", f"E0420: Invalid jobs filter [{text}]")
            ids.append(value)
        jobs = [self.jobs[id_] for id_ in ids if id_ in self.jobs] if ids else self.jobs.values()
        return sorted(jobs, key=lambda job: job.id, reverse=True)

    def _definition(self, url: str) -> bytes:
        path = _path_of(url)
        for place in (path, f"{path}/workflow.xml"):
            node = self.files.nodes.get(place)
            if node is not None and node.content is not None:
                return node.content
        raise Refused(
            "E0307",
            f"E0307: Runtime error [XML file [{url}] does not exist and app definition cannot be "
            "created because of missing config value [oozie.jobs.api.generated.xml]]",
        )

    def _missing(self, url: str, names: tuple[str, ...]) -> str | None:
        folder = _path_of(url).removesuffix("/workflow.xml")
        for name in names:
            if "${" not in name and not self.files.exists(f"{folder}/{name}"):
                return f"{url.removesuffix('/workflow.xml')}/{name}#{name}"
        return None


class ScriptedEngines(Service):
    """One engine per key: below `/<key>/oozie`, `/<key>/webhdfs/v1` and `/<key>/yarn`."""

    app = Klein()
    where = "engine"

    def __init__(
        self,
        clock: IReactorTime,
        faults: Faults | None = None,
        run_s: float = 5.0,
        most: int = 1000,
    ) -> None:
        self._clock = clock
        self._faults = faults or Faults()
        self._run_s = run_s
        self._most = most
        self._engines: dict[str, ScriptedEngine] = {}

    def engine(self, key: str) -> ScriptedEngine:
        """The engine of a cluster id, made at the first use; the oldest goes beyond the limit."""
        engine = self._engines.get(key)
        if engine is None:
            while len(self._engines) >= self._most:
                del self._engines[next(iter(self._engines))]
            engine = self._engines[key] = ScriptedEngine(self._clock, self._run_s)
        return engine

    def known(self) -> Sequence[str]:
        """Keys of the engines that were used, the oldest first."""
        return list(self._engines)

    def resource(self) -> IResource:
        """The resource that serves all engines."""
        resource: IResource = ServiceResource(
            self, self._clock, self._faults, Counter(), CloudJournal(None)
        )
        return resource

    def where_of(self, segments: Sequence[bytes]) -> str:
        """The place of a path for fault rules: each of an engine's three services has its own."""
        return _WHERE.get(segments[1] if len(segments) > 1 else b"", self.where)

    def counted(self, method: str, pattern: str) -> str:
        """The name of a call without ids, for example `engine POST oozie/v1/jobs`."""
        words = pattern.split("/")[2:]
        most = 3 if words[0] == "oozie" else 1
        return f"{self.where} {method} {'/'.join(words[:most])}"

    def authorize(self, call: Call, segments: list[str]) -> None:
        """Accept every caller, and count requests to Oozie about jobs."""
        if segments[1:2] == ["oozie"] and segments[3:4] != ["admin"]:
            calls = self.engine(segments[0]).calls
            kind = f"{call.method} {'/'.join(segments[3:4])}"
            calls[kind] = calls.get(kind, 0) + 1

    def envelope(self, refusal: Refusal) -> Reply:
        """The error body of Oozie and YARN."""
        return _error(refusal.status, refusal.message)

    def refused(self, call: Call, error: Exception) -> Reply | None:
        """Oozie's errors have headers, and a body beside GET and POST only; see Service."""
        match error:
            case Refused():
                headers = {
                    "oozie-error-code": error.code,
                    "oozie-error-message": error.message.encode("ascii", "replace").decode(),
                }
                if call.method in ("PUT", "DELETE"):
                    return Reply(status=error.status, headers=headers)
                return evolve(_error(error.status, error.message), headers=headers)
            case Refusal(status=405) if b"/oozie/" in call.request.path:
                name = call.request.path.rpartition(b"/")[2].decode("latin-1")
                return self.refused(call, Refused("E0301", f"E0301: Invalid resource [{name}]"))
            case HdfsFault():
                return Reply(status=error.status, body=error.body)
        return super().refused(call, error)

    # ---- Oozie ----

    @route(app, ["GET"], "/<key>/oozie/versions")
    def versions(self, call: Call, key: str) -> Reply:
        return _json([0, 1, 2])

    @route(app, ["GET"], "/<key>/oozie/v1/jobs")
    def jobs(self, call: Call, key: str) -> Reply:
        engine = self.engine(key)
        external = _query(call, "external-id")
        if external is not None:
            return _json({"id": engine.find(external)})
        length = int(_query(call, "len") or 50)
        jobs, now = engine.select(_query(call, "filter") or ""), engine.now()
        lines = [job.line(now) for job in jobs[:length]]
        return _json({"total": len(jobs), "offset": 1, "len": length, "workflows": lines})

    @route(app, ["POST"], "/<key>/oozie/v1/jobs")
    def submit(self, call: Call, key: str) -> Reply:
        kind = call.header("content-type")
        if kind.partition(";")[0].strip().lower() != "application/xml":
            raise Refused("E0300", f"E0300: Invalid content-type [{kind}]")
        _expect(call, "action", "start")
        try:
            properties = properties_of(call.content.read())
        except (ElementTree.ParseError, ValueError) as error:
            return _error(500, f"java.io.IOException: {error}")
        job_id = self.engine(key).submit(properties, _origin(call, key))
        return _json({"id": job_id}, status=201)

    @route(app, ["PUT"], "/<key>/oozie/v1/job/<job_id>")
    def change(self, call: Call, key: str, job_id: str) -> Reply:
        _expect(call, "action", "kill")
        self.engine(key).kill(job_id)
        return Reply()

    @route(app, ["GET"], "/<key>/oozie/v1/job/<job_id>")
    def show(self, call: Call, key: str, job_id: str) -> Reply:
        engine = self.engine(key)
        if _query(call, "show") != "log":
            _expect(call, "show", "info")
            return _json(engine.get(job_id).record(engine.now()))
        try:
            lines = engine.get(job_id).log
        except Refused as refusal:
            raise Refused("E0307", f"E0307: Runtime error [{refusal.message}]") from None
        text = "".join(f"{line}\n" for line in lines).encode()
        return Reply(body=text, content_type='text/plain; charset="UTF-8"')

    @route(app, ["GET"], "/<key>/oozie/v1/admin/status")
    def status(self, call: Call, key: str) -> Reply:
        return _json({"systemMode": "NORMAL"})

    @route(app, ["GET"], "/<key>/oozie/v1/admin/os-env")
    def os_env(self, call: Call, key: str) -> Reply:
        # health checks also ask engines without jobs, and a new engine would take memory
        engine = self._engines.get(key)
        return _json({"SVCD_CLUSTER": engine.cluster if engine and engine.cluster else key})

    # ---- YARN ----

    @route(app, ["GET"], "/<key>/yarn/ws/v1/cluster/<path:path>")
    def yarn(self, call: Call, key: str, path: str) -> Reply:
        engine = self.engine(key)
        tag = (call.query.get("applicationTags") or [""])[0]
        tree = engine.yarn.answer(path, engine.jobs.values(), engine.now(), tag)
        return _error(404, "Not Found") if tree is None else _json(tree)

    @route(app, ["PUT"], "/<key>/yarn/ws/v1/cluster/<path:path>")
    def kill(self, call: Call, key: str, path: str) -> Reply:
        engine = self.engine(key)
        killed = engine.yarn.kill(path, engine.jobs.values(), engine.now())
        return _json({"state": "KILLED"}) if killed else _error(404, "Not Found")

    # ---- WebHDFS ----

    @route(
        app,
        ["GET", "PUT", "DELETE"],
        "/<key>/webhdfs/v1",
        "/<key>/webhdfs/v1/<path:path>",
    )
    def webhdfs(self, call: Call, key: str, path: str = "") -> Reply:
        """The operation that the query names, at the name node or (`datanode`) a data node."""
        engine = self.engine(key)
        files, now, path = engine.files, engine.now(), "/" + path
        user = _query(call, "user.name") or "dr.who"
        operation = (call.method, (_query(call, "op") or "").upper())
        there = _query(call, "datanode") is not None
        match operation:
            case ("PUT", "MKDIRS"):
                files.make_folders(path, user, now, _query(call, "permission") or "755")
                return _json({"boolean": True})
            case ("PUT", "CREATE") | ("GET", "OPEN") if not there:
                if operation[1] == "OPEN":
                    files.read(path)
                return _place(call)
            case ("PUT", "CREATE"):
                files.write(path, user, call.content.read(), now)
                return Reply(status=201)
            case ("GET", "OPEN"):
                length = _query(call, "length")
                content = files.read(path)[: int(length) if length else None]
                return Reply(body=content, content_type="application/octet-stream")
            case ("DELETE", "DELETE"):
                return _json({"boolean": files.delete(path)})
            case ("GET", "LISTSTATUS"):
                return _json({"FileStatuses": {"FileStatus": files.statuses(path)}})
        raise HdfsFault(
            400,
            "IllegalArgumentException",
            f'Invalid value for webhdfs parameter "op": {operation[1]}',
        )


def _place(call: Call) -> Reply:
    """The first step of a transfer: where the content goes, as `noredirect=true` asks for."""
    asked = {name: values[0] for name, values in call.query.items()}
    host, path = call.header("host") or "localhost", call.request.path.decode("ascii")
    return _json({"Location": f"http://{host}{path}?{urlencode({**asked, 'datanode': 'true'})}"})


def _query(call: Call, name: str) -> str | None:
    values = call.query.get(name)
    return values[0] if values else None


def _expect(call: Call, name: str, value: str) -> None:
    """Check a query parameter. Raises Refused: svcd makes no other call."""
    given = _query(call, name)
    if given != value:
        raise Refused("E0303", f"E0303: Invalid parameter value, [{name}] = [{given}]")


def _json(tree: object, status: int = 200) -> Reply:
    return Reply(status=status, body=json.dumps(tree).encode(), content_type=_JSON)


def _error(status: int, message: str) -> Reply:
    return _json({"errorMessage": message, "httpStatusCode": status}, status)


def _origin(call: Call, key: str) -> str:
    before = call.request.path.decode("ascii").partition(f"/{key}/oozie")[0]
    return f"http://{call.header('host') or 'localhost'}{before}/{key}/oozie"


def _path_of(url: str) -> str:
    rest = url.partition("://")[2]
    return "/" + rest.partition("/")[2] if rest else url


def _number(text: str | None, default: float) -> float:
    try:
        return default if text is None else max(0.0, float(text))
    except ValueError:
        return default


def _stamp(epoch: float) -> str:
    text = http_date(epoch) or ""
    months = "JanFebMarAprMayJunJulAugSepOctNovDec"
    month = months.index(text[8:11]) // 3 + 1
    return f"{text[14:16]}{month:02d}{text[5:7]}{text[17:25].replace(':', '')}000"
