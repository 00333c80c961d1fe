"""Reads the output of a job's programs from YARN and from the job history, over HTTP.

All reads are best effort and bounded: the result lacks a part that cannot be read, and says so. A
node manager answers the beginning or the end of a file. So svcd reads the end, and the beginning of
a file that has more.

Note: proof of the end. A node manager says below each file whether the container still runs; it
looks at the container before it reads the file. So a file is whole when nothing is said. A page
without this line, a job that the job history does not know yet, and an application without a
container prove nothing. The tasks of a small job run in its master's container, which runs 5 s
longer than the job: there the end of the task in the job history is the proof. The master itself
may write a few lines more.

Source: Hadoop 3.5, ResourceManager, NodeManager and MapReduce History Server REST APIs;
NMWebServices.getContainerLogFile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime

from svcd.model import foreign
from svcd.model.engine_record import Action, Record
from svcd.model.execution_log import ReadFile
from svcd.model.redaction import last_lines
from svcd.model.secret import Secret
from svcd.ports.machines import Probe, ProbeError
from svcd.workflow.act.rows import Place
from svcd.workflow.act.yarn import manager_of, rows_of
from svcd.workflow.decide.container_page import own_words, read_page
from svcd.workflow.decide.evidence import LAUNCHER, Ended, Evidence, LogFile
from svcd.workflow.decide.launchers import Family, is_application
from svcd.workflow.decide.stalls import SPARK, Application

_CALL_S: Final = 5.0
"""Time-out of one request."""
_FILES: Final = ("stdout", "stderr", "syslog")
_JOB: Final = re.compile(r"job_\d+_\d+\Z")
_CONTAINER: Final = re.compile(r"container_\w+")
_MASTERS: Final = re.compile(r"container_(?:e\d+_)?\d+_\d+_\d+_0*1\Z")
"""The first container of an application, in which its master runs."""
_ENDED: Final = frozenset({"SUCCEEDED", "FAILED", "KILLED"})
"""The last states of a task's attempt in the job history."""
_MOST_TASKS: Final = 5
"""Tasks of one job whose logs svcd reads."""
_MOST_APPLICATIONS: Final = 5
"""Children of one failed job whose texts svcd reads."""
_MOST_LIMITS: Final = 4
"""svcd reads this many times the limit of one file in all; it leaves out further files."""
_MOST_LEFT_OUT: Final = 5
"""Texts on files that are left out."""
_MOST_FILE: Final = 65_536
"""Bytes of one file that svcd searches for the cause of a failure."""
_MOST_DIAGNOSTICS: Final = 8192
"""Characters of one text of YARN or of the job history."""


@frozen(kw_only=True)
class Output:
    """The files of the programs' output, as far as svcd could read them.

    missed: why some of it could not be read now, or "". may_grow: not all of it is proven to be
    whole, because a program may still write. left_out: files that svcd does not read, or "".
    secrets: the files hold them unmasked.
    """

    files: Sequence[ReadFile] = ()
    secrets: Sequence[Secret] = ()
    missed: str = ""
    may_grow: bool = False
    left_out: str = ""


class Containers:
    """Reads logs and diagnostics of a cluster's containers."""

    def __init__(self, probe: Probe, clock: IReactorTime) -> None:
        self._probe = probe
        self._clock = clock

    async def logs(
        self,
        place: Place,
        record: Record,
        limit: int,
        budget_s: float,
    ) -> Output:
        """The output of all actions' programs: the last `limit` bytes of a file, and its beginning.

        The beginning of a longer file is a quarter of them.
        """
        reading = self._reading(place, budget_s)
        files: list[ReadFile] = []
        for action in record.actions:
            step = action.name
            for id_ in _ids(action):
                if sum(len(file.ends.tail) for file in files) >= _MOST_LIMITS * limit:
                    reading.leave_out(f"the files of {id_}")
                elif is_application(id_):
                    logs = await reading.logs_of(action, id_)
                    files += await reading.first_container(logs, f"{step} {id_}", limit, limit // 4)
                else:
                    files += await reading.tasks(step, id_, limit)
        return reading.output(files)

    async def evidence(
        self, place: Place, record: Record, family: Family, budget_s: float
    ) -> Evidence:
        """The texts about a failed job: its launcher, its children, and their failed tasks.

        family: of the action that failed.
        """
        action, launcher = record.failed, family.launcher
        if action is None:
            return Evidence()
        reading = self._reading(place, budget_s)
        children = family.children[:_MOST_APPLICATIONS]
        files = list[LogFile]()
        if launcher is not None:
            files += await reading.files(launcher, LAUNCHER)
        for child in children:
            if child.kind == SPARK:  # its first container is the driver: the program itself
                files += await reading.files(child, child.id)
        jobs = [id_ for id_ in _ids(action) if _JOB.match(id_)]
        others = [child for child in children if child.kind != SPARK]
        jobs += [f"job_{child.id.partition('_')[2]}" for child in others]
        attempts, said = list[str](), list[str]()
        for job in list(dict.fromkeys(jobs))[:_MOST_APPLICATIONS]:
            failed = await reading.failed_attempts(job)
            attempts += [attempt.text for attempt in failed]
            for attempt in failed[:1]:
                files += await reading.files_of(attempt)
            diagnostics = await reading.job_diagnostics(job)
            said += [diagnostics] if diagnostics else []
        for child in () if attempts or said else others:
            if child.state == "FAILED":  # its master died, and left no history
                files += await reading.files(child, child.id)
        return Evidence(
            attempts=attempts,
            jobs=said,
            files=files,
            applications=[
                *([] if launcher is None else [_ended(launcher, True)]),
                *(_ended(child, False) for child in children),
            ],
            silent=family.silent,
        )

    def _reading(self, place: Place, budget_s: float) -> _Reading:
        until = self._clock.seconds() + budget_s
        return _Reading(self._probe, self._clock, place, until)


@frozen(kw_only=True)
class _Attempt:
    """A failed attempt of a task. node, container: where its log is, or ""."""

    id: str
    text: str
    node: str
    container: str


class _Reading:
    """One series of reads: it sends no request after `until`."""

    def __init__(
        self,
        probe: Probe,
        clock: IReactorTime,
        place: Place,
        until: float,
    ) -> None:
        self._probe = probe
        self._clock = clock
        self._place = place
        self._history = place.endpoints.history.rstrip("/")
        self._manager_host = place.endpoints.resource_manager.rpartition(":")[0]
        self._until = until
        self._missed = ""
        self._may_grow = False
        self._left_out: list[str] = []

    def output(self, files: Sequence[ReadFile]) -> Output:
        """The output with `files`, and the faults and gaps of this series of reads."""
        left_out = self._left_out[:_MOST_LEFT_OUT]
        left_out += ["and others"] if len(self._left_out) > _MOST_LEFT_OUT else []
        return Output(
            files=files,
            missed=self._missed,
            may_grow=self._may_grow,
            left_out=", ".join(left_out),
        )

    def leave_out(self, what: str) -> None:
        """Note files that svcd does not read."""
        self._left_out.append(what)

    async def failed_attempts(self, job_id: str) -> Sequence[_Attempt]:
        """The attempts of a map-reduce job's failed tasks, with the words of the job history."""
        attempts = []
        for task in _failed(await self._task_list(job_id)):
            for attempt in await self._attempts(job_id, task):
                text = str(attempt.get("diagnostics") or "").strip()
                if attempt.get("state") == "KILLED":  # because another task failed
                    continue
                node, container = attempt.get("nodeHttpAddress"), attempt.get("assignedContainerId")
                attempts.append(
                    _Attempt(
                        id=str(attempt.get("id") or ""),
                        text=text[:_MOST_DIAGNOSTICS],
                        node=node if isinstance(node, str) else "",
                        container=container if isinstance(container, str) else "",
                    )
                )
        return attempts

    async def job_diagnostics(self, job_id: str) -> str:
        """The words of the job history about a whole job."""
        inner = (await self._of_history(f"jobs/{job_id}")).get("job")
        text = str(inner.get("diagnostics") or "").strip() if isinstance(inner, dict) else ""
        return text[:_MOST_DIAGNOSTICS]

    async def files(self, application: Application, place: str) -> Sequence[LogFile]:
        """The files of an application's first container, without a launcher's first lines."""
        files = await self.first_container(application.logs, application.id, _MOST_FILE)
        return [_log_file(file, place) for file in files]

    async def files_of(self, attempt: _Attempt) -> Sequence[LogFile]:
        """The files of a task's attempt."""
        if not attempt.node or not attempt.container:
            return []
        node = f"http://{attempt.node}"
        files = await self._container(node, attempt.container, "", _MOST_FILE)
        return [_log_file(file, attempt.id) for file in files]

    async def tasks(self, step: str, job_id: str, limit: int) -> Sequence[ReadFile]:
        """Logs of a map-reduce job's tasks: the failed ones, else the first few.

        All tasks of a small job run in one container, the master's, whose files come once.
        """
        tasks = await self._task_list(job_id)
        self._may_grow = self._may_grow or not tasks
        chosen = _failed(tasks) or [str(task.get("id")) for task in tasks[:_MOST_TASKS]]
        if len(tasks) > len(chosen):
            self.leave_out(f"the files of {len(tasks) - len(chosen)} more tasks of {job_id}")
        files, read = list[ReadFile](), set[str]()
        for task in chosen:
            for attempt in await self._attempts(job_id, task):
                node, container = attempt.get("nodeHttpAddress"), attempt.get("assignedContainerId")
                if isinstance(node, str) and isinstance(container, str) and container not in read:
                    read.add(container)
                    title = f"{step} {attempt.get('id')}"
                    over = attempt.get("state") in _ENDED and bool(_MASTERS.match(container))
                    at = f"http://{node}"
                    files += await self._container(at, container, title, limit, limit // 4, over)
        return files

    async def logs_of(self, action: Action, id_: str) -> str:
        """The page of the first container of an application, or ""."""
        base = manager_of(action.console_url, self._manager_host)
        app = (await self._json(f"{base}/ws/v1/cluster/apps/{id_}")).get("app")
        return str(app.get("amContainerLogs") or "") if isinstance(app, dict) else ""

    async def first_container(
        self, logs: str, title: str, limit: int, head: int = 0
    ) -> Sequence[ReadFile]:
        """Logs of an application's first container: the launcher, or the job's master.

        logs: the page of the container, or "".
        """
        container = _CONTAINER.search(logs)
        if container is None:
            self._may_grow = True
            return []
        try:
            node = urlsplit(logs)
        except ValueError:  # no URL at all
            self._may_grow = True
            return []
        origin = f"{node.scheme}://{node.netloc}"
        return await self._container(origin, container.group(), title, limit, head)

    async def _container(
        self, node: str, container: str, title: str, limit: int, head: int = 0, over: bool = False
    ) -> Sequence[ReadFile]:
        """The files of a container. over: its program has ended, whatever the container does.

        head: bytes of the beginning of a file that has more than `limit`.
        """
        files, is_there = list[ReadFile](), False
        for name in _FILES:
            url = f"{node}/ws/v1/node/containerlogs/{container}/{name}"
            page = await self._get(f"{url}?size=-{limit}")
            if page is None:
                continue
            is_there = True
            ends, ended = read_page(page, limit)
            self._may_grow = self._may_grow or not (ended or over)
            if head and ends.size > len(ends.tail):
                page = await self._get(f"{url}?size={head}")
                if page is None:
                    self._miss(f"the beginning of {name} of {container} could not be read")
                    continue
                ends = evolve(ends, head=read_page(page, head)[0].tail)
            if ends.head or ends.tail.strip():
                files.append(ReadFile(title=f"{title} {name}".strip(), id=container, ends=ends))
        self._may_grow = self._may_grow or not is_there
        return files

    async def _task_list(self, job_id: str) -> Sequence[Mapping[str, object]]:
        return rows_of(await self._of_history(f"jobs/{job_id}/tasks"), "tasks", "task")

    async def _attempts(self, job_id: str, task: str) -> Sequence[Mapping[str, object]]:
        path = f"jobs/{job_id}/tasks/{task}/attempts"
        return rows_of(await self._of_history(path), "taskAttempts", "taskAttempt")

    async def _of_history(self, path: str) -> Mapping[str, object]:
        if not self._history:
            return {}
        return await self._json(f"{self._history}/ws/v1/history/mapreduce/{path}")

    async def _json(self, url: str) -> Mapping[str, object]:
        return foreign.mapping(await self._get(url) or b"{}")

    async def _get(self, url: str) -> bytes | None:
        """The body of an answer 200. None: the peer has no such page, or it cannot be read now."""
        left = self._until - self._clock.seconds()
        there = self._place.at(url)
        if there is None:
            self._miss("a part of it is on no machine of the cluster")
            return None
        host = urlsplit(there.url).netloc
        if left <= 0:
            self._miss(f"the cluster answers too slowly: no time was left to ask {host}")
            return None
        try:
            status, body = await self._probe.get(there, min(_CALL_S, left))
        except ProbeError as error:
            self._miss(error.text)
            return None
        if status not in (200, 404):
            self._miss(f"{host} answers HTTP {status}")
        return body if status == 200 else None

    def _miss(self, why: str) -> None:
        self._missed = self._missed or why


def _failed(tasks: Sequence[Mapping[str, object]]) -> Sequence[str]:
    failed = [str(task.get("id")) for task in tasks if task.get("state") == "FAILED"]
    return failed[:_MOST_TASKS]


def _log_file(file: ReadFile, place: str) -> LogFile:
    content = last_lines(file.ends.tail, _MOST_FILE)
    content = own_words(content) if place == LAUNCHER else content
    name = file.title.rpartition(" ")[2]
    return LogFile(place=place, name=name, text=content.decode("utf-8", "replace"))


def _ended(application: Application, is_launcher: bool) -> Ended:
    return Ended(
        id=application.id,
        state=application.state,
        text=application.diagnostics[:_MOST_DIAGNOSTICS],
        is_launcher=is_launcher,
        is_spark=application.kind == SPARK,
    )


def _ids(action: Action) -> Sequence[str]:
    """Ids of the YARN applications and map-reduce jobs of an action."""
    found = (action.external_id, *action.child_ids)
    known = [id_ for id_ in found if is_application(id_) or _JOB.match(id_)]
    return list(dict.fromkeys(known))
