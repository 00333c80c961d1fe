"""A scripted workflow engine: the Oozie services, and WebHDFS and YARN beside it, in memory.

A Klein app behind the ordinary clients; the contract suite (tests/contracts/engine.py) runs against
it and against the real server. Nothing runs: a job's life is a function of the clock.
One `ScriptedEngine` is one cluster's engine; `ScriptedEngines` makes one for each cluster id.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode
from xml.etree import ElementTree

from klein import Klein
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource

from svcd.embedded.faults import GARBAGE, Effect, Faults
from svcd.embedded.hdfs import HdfsFault, MemoryFiles
from svcd.embedded.oozie_jobs import OUTCOMES, Job, Refused, define_job, http_date, properties_of
from svcd.embedded.yarn import ScriptedYarn
from svcd.tasks import shielded, sleep

_JSON: Final = b'application/json; charset="UTF-8"'
_STATUSES: Final = frozenset({"PREP", "RUNNING", "SUSPENDED", "SUCCEEDED", "KILLED", "FAILED"})
_FILTERS: Final = frozenset({"id", "name", "user", "group", "status", "text", "sortby"})
_MOST_JOBS: Final = 100_000


class ScriptedEngine:
    """The state of one engine, with hooks for tests.

    jobs: id -> job, in order of submission. submissions: accepted submits. calls: how often each
    kind was made, for example "GET jobs". safe_mode: refuses what would change something.
    files: its HDFS. yarn: its resource manager. untidy: it cannot remove a killed job's folder.
    """

    def __init__(self, clock: IReactorTime, run_s: float = 5.0) -> None:
        self._clock = clock
        self._run_s = run_s
        self._epoch = clock.seconds()
        self.jobs: dict[str, Job] = {}
        self.submissions = 0
        self.calls: dict[str, int] = {}
        self.safe_mode = False
        self.untidy = False
        self.files = MemoryFiles()
        self.yarn = ScriptedYarn()

    def now(self) -> float:
        """The clock's seconds."""
        return float(self._clock.seconds())

    def submit(self, properties: Mapping[str, str], action: str | None, base: str) -> str:
        """Accept a job; its id ("OK" for a dry run). Raises Refused."""
        if action not in (None, "start", "dryrun"):
            raise Refused("E0303", f"E0303: Invalid parameter value, [action] = [{action}]")
        if self.safe_mode:
            raise Refused("E0002", "System is in safe mode", 503)
        if not properties.get("user.name"):
            raise Refused("E1603", "user cannot be null")
        path = properties.get("oozie.wf.application.path")
        if path is None:
            raise Refused("E0307", "E0307: Runtime error [missing application path]")
        text = self._definition(path)
        definition = define_job(text)
        if action == "dryrun":
            return "OK"
        if len(self.jobs) >= _MOST_JOBS:
            raise Refused("E0600", "E0600: Could not get connection, the store is full", 500)
        told = {**definition.configs, **properties}
        outcome = told.get("svcd.fake.outcome", "succeed")
        now = self.now()
        job = Job(
            id=f"{len(self.jobs):07d}-{_stamp(self._epoch)}-oozie-svcd-W",
            app_path=path,
            properties=dict(properties),
            definition=definition,
            definition_text=text,
            console=base,
            created_at=now,
            run_s=_number(told.get("svcd.fake.run_s"), self._run_s),
            outcome=outcome if outcome in OUTCOMES else "succeed",
            message=told.get("svcd.fake.error", "asked to fail"),
            holding=told.get("svcd.fake.holding", ""),
            queued=told.get("svcd.fake.queued", ""),
            missing=self._missing(path, definition.needs),
        )
        job.log.append(f"{http_date(now)} INFO submitted {job.id}")
        self.jobs[job.id] = job
        self.submissions += 1
        if action == "start":
            job.start(now)
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

    def change(self, job_id: str, action: str | None, body: bytes) -> None:
        """PUT job. Raises Refused."""
        if action is None:
            raise Refused("E0305", "E0305: Missing parameter [action]")
        now = self.now()
        job = self.jobs.get(job_id)
        changes: Mapping[str, Callable[[Job], None]] = {
            "start": lambda j: j.start(now),
            "kill": lambda j: j.kill(now),
            "suspend": lambda j: j.suspend(now),
            "resume": lambda j: j.resume(now),
            "rerun": lambda j: j.rerun(now),
        }
        if action not in changes:
            raise Refused("E0303", f"E0303: Invalid parameter value, [action] = [{action}]")
        if self.safe_mode:
            raise Refused("E0002", "System is in safe mode", 503)
        if job is None:
            if action == "kill":
                raise Refused(
                    "E0605", "E0605: Action does not exist [select w.id from WorkflowJobBean w]"
                )
            raise Refused("E0604", f"E0604: Job does not exist [{job_id}]")
        ended = job.ended_at(now) is not None
        changes[action](job)
        if action == "kill" and self.untidy and not ended:
            text = f"E0819: Unable to delete the temp dir of job WF Job [{job_id}]."
            raise Refused("E0819", text)
        job.log.append(f"{http_date(now)} INFO {action} {job_id}")

    def select(self, text: str) -> list[Job]:
        """The jobs a filter names, newest first. Raises Refused."""
        wanted: dict[str, set[str]] = {}
        for element in filter(None, text.split(";")):
            name, equals, value = element.partition("=")
            if not equals or name.lower() not in _FILTERS:
                raise Refused(
                    "E0420",
                    f"E0420: Invalid jobs filter [{text}], elements must be name=value pairs",
                )
            if name == "status" and value not in _STATUSES:
                raise Refused(
                    "E0420", f"E0420: Invalid jobs filter [{text}], invalid status [{value}]"
                )
            wanted.setdefault(name.lower(), set()).add(value)
        now = self.now()
        ids = wanted.get("id")
        pool = self.jobs.values() if ids is None else (self.jobs[i] for i in ids if i in self.jobs)
        found = [
            job
            for job in pool
            if ("status" not in wanted or job.status(now) in wanted["status"])
            and ("name" not in wanted or job.definition.app_name in wanted["name"])
            and ("user" not in wanted or job.properties.get("user.name") in wanted["user"])
        ]
        return sorted(found, key=lambda job: job.id, reverse=True)

    def _definition(self, url: str) -> bytes:
        path = _path_of(url)
        for each in (path, f"{path}/workflow.xml"):
            node = self.files.nodes.get(each)
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


class ScriptedEngines:
    """One engine per key: below `/<key>/oozie`, `/<key>/webhdfs/v1` and `/<key>/yarn`.

    Klein re-binds its app on every access, so this class has no slots.
    """

    app = Klein()

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

    def drop(self, key: str) -> None:
        """Forget an engine and its files."""
        self._engines.pop(key, None)

    def resource(self) -> IResource:
        """To be mounted."""
        resource: IResource = self.app.resource()
        return resource

    @app.route("/<key>/oozie/<path:path>", methods=["GET", "PUT", "POST", "DELETE", "HEAD"])
    async def oozie(self, request: IRequest, key: str, path: str) -> bytes:
        """The workflow engine."""
        work = partial(self._oozie, request, key, path)
        return _sized(request, await self._guarded(request, "engine", work))

    @app.route("/<key>/webhdfs/v1", methods=["GET", "PUT", "DELETE"], defaults={"path": ""})
    @app.route("/<key>/webhdfs/v1/<path:path>", methods=["GET", "PUT", "DELETE"])
    async def webhdfs(self, request: IRequest, key: str, path: str) -> bytes:
        """The file system."""
        work = partial(self._webhdfs, request, key, "/" + path)
        return _sized(request, await self._guarded(request, "hdfs", work))

    @app.route("/<key>/yarn/ws/v1/cluster/<path:path>", methods=["GET", "PUT"])
    async def yarn(self, request: IRequest, key: str, path: str) -> bytes:
        """The resource manager."""
        work = partial(self._yarn, request, key, path)
        return _sized(request, await self._guarded(request, "yarn", work))

    async def _guarded(self, request: Any, where: str, work: Callable[[], bytes]) -> bytes:
        """`work` as the fault rules let it happen."""
        method = request.method.decode("ascii")
        rule = self._faults.match(where, method, request.uri.decode("ascii", "replace"))
        if rule is None:
            return work()
        if rule.effect is Effect.LATE:
            return await shielded(self._late(request, rule.delay_s, work))
        if rule.delay_s:
            await sleep(self._clock, rule.delay_s)
        match rule.effect:
            case Effect.ANSWER:
                request.setResponseCode(rule.status)
                for name, value in rule.headers.items():
                    request.setHeader(name.encode(), value.encode())
                return rule.body.encode()
            case Effect.DELAY:
                return work()
            case Effect.GARBAGE:
                work()
                request.setResponseCode(200)
                return GARBAGE
            case Effect.TIMEOUT_BEFORE | Effect.RESET_BEFORE | Effect.REFUSED:
                pass
            case Effect.TIMEOUT_AFTER | Effect.RESET_AFTER:
                work()
        if rule.effect in (Effect.RESET_BEFORE, Effect.RESET_AFTER, Effect.REFUSED):
            request.channel.forceAbortClient()
        never: Deferred[bytes] = Deferred()
        return await never

    async def _late(self, request: Any, delay_s: float, work: Callable[[], bytes]) -> bytes:
        sent = request.content.read()
        await sleep(self._clock, delay_s)
        request.content = io.BytesIO(sent)  # the one before is closed with the connection
        return work()

    # ---- Oozie ----

    def _oozie(self, request: Any, key: str, path: str) -> bytes:
        engine = self.engine(key)
        method = request.method.decode("ascii")
        kind = f"{method} {'/'.join(path.split('/')[1:2])}"
        engine.calls[kind] = engine.calls.get(kind, 0) + 1
        try:
            return self._service(request, engine, method, path, key)
        except Refused as refusal:
            request.setResponseCode(refusal.status)
            request.setHeader(b"oozie-error-code", refusal.code.encode())
            request.setHeader(b"oozie-error-message", refusal.message.encode("ascii", "replace"))
            if method in ("PUT", "DELETE"):
                return b""
            return _error(request, refusal.status, refusal.message)

    def _service(
        self, request: Any, engine: ScriptedEngine, method: str, path: str, key: str
    ) -> bytes:
        version, _, rest = path.rstrip("/").partition("/")
        if path.rstrip("/") == "versions":
            return _json(request, [0, 1, 2])
        if version not in ("v1", "v2"):
            return _error(request, 404, "Not Found")
        if rest == "jobs" and method in ("GET", "HEAD"):
            return self._list(request, engine)
        if rest == "jobs" and method == "POST":
            return self._submit(request, engine, key)
        if rest.startswith("job/"):
            job_id = rest.partition("/")[2]
            if method in ("GET", "HEAD"):
                return self._show(request, engine, version, job_id)
            if method == "PUT":
                engine.change(job_id, _query(request, "action"), request.content.read())
                return b""
            raise Refused("E0301", f"E0301: Invalid resource [{job_id}]")
        if rest.startswith("admin/"):
            return self._admin(request, engine, method, rest.partition("/")[2])
        if rest == "jobs":
            raise Refused("E0301", "E0301: Invalid resource [jobs]")
        return _error(request, 404, "Not Found")

    def _list(self, request: Any, engine: ScriptedEngine) -> bytes:
        external = _query(request, "external-id")
        if external is not None:
            return _json(request, {"id": engine.find(external)})
        try:
            length = int(_query(request, "len") or 50)
            offset = max(1, int(_query(request, "offset") or 1))
        except ValueError as error:
            raise Refused("E1603", str(error)) from None
        found = engine.select(_query(request, "filter") or "")
        now = engine.now()
        page = found[offset - 1 : offset - 1 + length]
        lines = [job.line(now) for job in page]
        tree = {"total": len(found), "offset": offset, "len": length, "workflows": lines}
        return _json(request, tree)

    def _submit(self, request: Any, engine: ScriptedEngine, key: str) -> bytes:
        kind = (request.getHeader(b"content-type") or b"").decode("latin-1")
        if kind.partition(";")[0].strip().lower() != "application/xml":
            raise Refused("E0300", f"E0300: Invalid content-type [{kind}]")
        try:
            properties = properties_of(request.content.read())
        except (ElementTree.ParseError, ValueError) as error:
            return _error(request, 500, f"java.io.IOException: {error}")
        job_id = engine.submit(properties, _query(request, "action"), _origin(request, key))
        request.setResponseCode(201)
        return _json(request, {"id": job_id})

    def _show(self, request: Any, engine: ScriptedEngine, version: str, job_id: str) -> bytes:
        show = _query(request, "show") or "info"
        if show in ("log", "errorlog", "auditlog"):
            try:
                lines = engine.get(job_id).log
            except Refused as refusal:
                raise Refused("E0307", f"E0307: Runtime error [{refusal.message}]") from None
            request.setHeader(b"content-type", b'text/plain; charset="UTF-8"')
            return "".join(f"{line}\n" for line in lines).encode()
        job = engine.get(job_id)
        now = engine.now()
        if show == "info":
            return _json(request, job.record(now))
        if show == "definition":
            request.setHeader(b"content-type", b'application/xml; charset="UTF-8"')
            return job.definition_text
        if show == "status":
            if version == "v1":
                raise Refused("E0302", "E0302: Invalid parameter [Not supported in v1]")
            return _json(request, {"status": job.status(now)})
        raise Refused("E0303", f"E0303: Invalid parameter value, [show] = [{show}]")

    def _admin(self, request: Any, engine: ScriptedEngine, method: str, what: str) -> bytes:
        if what == "status":
            if method == "PUT":
                engine.safe_mode = _query(request, "systemmode") == "SAFEMODE"
                return b""
            return _json(request, {"systemMode": "SAFEMODE" if engine.safe_mode else "NORMAL"})
        if what == "build-version":
            return _json(
                request, {"buildVersion": "5.2.1", "buildInfo": {"build.version": "5.2.1"}}
            )
        if what == "update_sharelib":
            return _json(request, {"sharelibUpdate": [{"status": "Successful"}]})
        return _error(request, 404, "Not Found")

    # ---- YARN ----

    def _yarn(self, request: Any, key: str, path: str) -> bytes:
        engine = self.engine(key)
        jobs, now = engine.jobs.values(), engine.now()
        if request.method == b"PUT":
            if not engine.yarn.kill(path, jobs, now):
                return _error(request, 404, "Not Found")
            return _json(request, {"state": "KILLED"})
        tree = engine.yarn.answer(path, jobs, now)
        return _error(request, 404, "Not Found") if tree is None else _json(request, tree)

    # ---- WebHDFS ----

    def _webhdfs(self, request: Any, key: str, path: str) -> bytes:
        engine = self.engine(key)
        try:
            return self._operation(request, engine, path)
        except HdfsFault as fault:
            request.setResponseCode(fault.status)
            request.setHeader(b"content-type", b"application/json")
            return fault.body

    def _operation(self, request: Any, engine: ScriptedEngine, path: str) -> bytes:
        files, now = engine.files, engine.now()
        user = _query(request, "user.name") or "dr.who"
        operation = (request.method.decode("ascii"), (_query(request, "op") or "").upper())
        there = _query(request, "datanode") is not None
        match operation:
            case ("PUT", "MKDIRS"):
                files.make_folders(path, user, now, _query(request, "permission") or "755")
                return _json(request, {"boolean": True})
            case ("PUT", "CREATE") | ("GET", "OPEN") if not there:
                if operation[1] == "OPEN":
                    files.read(path)
                return _place(request)
            case ("PUT", "CREATE"):
                files.write(path, user, request.content.read(), now)
                request.setResponseCode(201)
                return b""
            case ("GET", "OPEN"):
                length = _query(request, "length")
                request.setHeader(b"content-type", b"application/octet-stream")
                return files.read(path)[: int(length) if length else None]
            case ("DELETE", "DELETE"):
                return _json(request, {"boolean": files.delete(path)})
            case ("GET", "LISTSTATUS"):
                return _json(request, {"FileStatuses": {"FileStatus": files.statuses(path)}})
            case ("GET", "GETFILESTATUS"):
                return _json(request, {"FileStatus": files.status(path)})
            case ("PUT", "SETOWNER"):
                owner, group = _query(request, "owner") or "", _query(request, "group") or ""
                files.change(path, owner=owner, group=group)
                return b""
            case ("PUT", "SETPERMISSION"):
                files.change(path, permission=_query(request, "permission") or "755")
                return b""
        raise HdfsFault(
            400,
            "IllegalArgumentException",
            f'Invalid value for webhdfs parameter "op": {operation[1]}',
        )


def _sized(request: Any, body: bytes) -> bytes:
    request.setHeader(b"content-length", b"%d" % len(body))
    return body


def _place(request: Any) -> bytes:
    """The first step of a transfer: where the content goes."""
    asked = {n.decode(): v[0].decode() for n, v in request.args.items()}
    redirect = asked.pop("noredirect", "false") != "true"
    host = (request.getHeader(b"host") or b"localhost").decode("latin-1")
    scheme = "https" if request.isSecure() else "http"
    path = request.path.decode("ascii")
    location = f"{scheme}://{host}{path}?{urlencode({**asked, 'datanode': 'true'})}"
    if redirect:
        request.setResponseCode(307)
        request.setHeader(b"location", location.encode())
        return b""
    return _json(request, {"Location": location})


def _query(request: Any, name: str) -> str | None:
    values = request.args.get(name.encode())
    return values[0].decode("utf-8", "replace") if values else None


def _json(request: Any, tree: object) -> bytes:
    request.setHeader(b"content-type", _JSON)
    return json.dumps(tree).encode()


def _error(request: Any, status: int, message: str) -> bytes:
    request.setResponseCode(status)
    return _json(request, {"errorMessage": message, "httpStatusCode": status})


def _origin(request: Any, key: str) -> str:
    host = (request.getHeader(b"host") or b"localhost").decode("latin-1")
    before = request.path.decode("ascii").partition(f"/{key}/oozie")[0]
    return f"http://{host}{before}/{key}/oozie"


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
