"""What svcd relies on of a workflow engine and its file system: for the scripted and a real one.

A subclass gives `base` (…/oozie), `webhdfs`, `properties` (what every submit needs), `user`, the
two clients and `pause(seconds)`. Real engines answer the same, later.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

from svcd.ports.engine import Engine, EngineError, FileSystem
from svcd.ports.faults import Fault
from svcd.ports.machines import Location

FS_WORKFLOW = (
    '<workflow-app xmlns="uri:oozie:workflow:0.5" name="{name}"><start to="job-node"/>'
    '<action name="job-node"><fs><mkdir path="${{nameNode}}{made}"/></fs>'
    '<ok to="end"/><error to="fail"/></action>'
    '<kill name="fail"><message>no</message></kill><end name="end"/></workflow-app>'
)
HANGING_WORKFLOW = (
    '<workflow-app xmlns="uri:oozie:workflow:0.5" name="hanging"><start to="job-node"/>'
    '<action name="job-node"><shell xmlns="uri:oozie:shell-action:0.3">'
    "<job-tracker>${jobTracker}</job-tracker><name-node>${nameNode}</name-node>"
    "<configuration><property><name>svcd.fake.outcome</name><value>hang</value></property>"
    "</configuration><exec>sleep</exec><argument>120</argument></shell>"
    '<ok to="end"/><error to="fail"/></action>'
    '<kill name="fail"><message>no</message></kill><end name="end"/></workflow-app>'
)
RECORD_KEYS = {
    *("id", "appName", "appPath", "externalId", "parentId", "conf", "status", "lastModTime"),
    *("createdTime", "startTime", "endTime", "user", "group", "acl", "run", "consoleUrl"),
    *("actions", "toString"),
}


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


class Case(Protocol):
    """What the suite needs of its subclass."""

    engine: Engine
    files: FileSystem
    base: Location
    webhdfs: Location
    user: str
    properties: Mapping[str, str]
    folder: str

    async def pause(self, seconds: float) -> None: ...
    def assertEqual(self, first: Any, second: Any, msg: Any = None) -> Any: ...
    def assertIn(self, member: Any, container: Any, msg: Any = None) -> Any: ...
    def fail(self, msg: str = "") -> Any: ...


class EngineContract:
    """The suite. Test methods are coroutines; the subclass runs them."""

    async def submit(self: Any, text: str, external_id: str) -> str:
        path = f"{self.folder}/{external_id}"
        await self.files.make_folders(self.webhdfs, path, self.user)
        content = text.encode()
        await self.files.write(
            self.webhdfs, f"{path}/workflow.xml", self.user, once(content), len(content)
        )
        job_id: str = await self.engine.submit(
            self.base,
            {
                **self.properties,
                "oozie.wf.application.path": f"{self.properties['nameNode']}{path}/workflow.xml",
                "oozie.wf.external.id": external_id,
            },
        )
        return job_id

    async def until(self: Any, job_id: str, *statuses: str) -> Mapping[str, object]:
        for _ in range(240):
            record: Mapping[str, object] = await self.engine.record(self.base, job_id)
            if record["status"] in statuses:
                return record
            await self.pause(0.5)
        raise AssertionError(f"{job_id} is still {record['status']}")

    async def refused(self: Any, work: Any) -> EngineError:
        try:
            await work
        except EngineError as error:
            return error
        raise AssertionError("was not refused")

    async def check_status(self: Any) -> None:
        """A healthy engine says NORMAL."""
        self.assertEqual(await self.engine.status(self.base), "NORMAL")

    async def check_life(self: Any) -> None:
        """Submit, find by external id, batch line, record: all tell of the same job."""
        external = self.external("life")
        self.assertEqual(await self.engine.find(self.base, external), None)
        text = FS_WORKFLOW.format(name="life", made=f"{self.folder}/made")
        job_id = await self.submit(text, external)
        self.assertEqual(await self.engine.find(self.base, external), job_id)
        record = await self.until(job_id, "SUCCEEDED", "KILLED", "FAILED")
        self.assertEqual(record["status"], "SUCCEEDED")
        self.assertEqual(RECORD_KEYS - set(record), set())
        self.assertEqual(record["externalId"], external)
        names = [action["name"] for action in record["actions"]]
        self.assertEqual(names, [":start:", "job-node", "end"])
        lines = await self.engine.lines(self.base, [job_id, "0000000-000000000000000-no-W"])
        self.assertEqual(
            [(x.id, x.status, x.last_modified) for x in lines],
            [(job_id, "SUCCEEDED", record["lastModTime"])],
        )
        await self.engine.kill(self.base, job_id)  # after the end: no effect, no fault
        self.assertEqual((await self.engine.record(self.base, job_id))["status"], "SUCCEEDED")
        await self.engine.log(self.base, job_id)

    async def check_kill(self: Any) -> None:
        """A running job is KILLED when the kill has been answered; its action too."""
        job_id = await self.submit(HANGING_WORKFLOW, self.external("kill"))
        await self.until(job_id, "RUNNING")
        await self.engine.kill(self.base, job_id)
        record = await self.engine.record(self.base, job_id)
        self.assertEqual(record["status"], "KILLED")
        self.assertEqual(record["actions"][1]["status"], "KILLED")
        self.assertEqual(record["actions"][1]["errorCode"], None)

    async def check_unknown(self: Any) -> None:
        """An unknown id is NOT_FOUND in every call that names one, and missing in a batch."""
        job_id = "0000000-000000000000000-no-W"
        for work in (
            self.engine.record(self.base, job_id),
            self.engine.kill(self.base, job_id),
            self.engine.log(self.base, job_id),
        ):
            self.assertEqual((await self.refused(work)).kind, Fault.NOT_FOUND)
        self.assertEqual(list(await self.engine.lines(self.base, [job_id])), [])

    async def check_refusals(self: Any) -> None:
        """Missing application, broken definition, wrong order, wrong target: each has its code."""
        path = f"{self.properties['nameNode']}{self.folder}/nothing/workflow.xml"
        missing = {**self.properties, "oozie.wf.application.path": path}
        error = await self.refused(self.engine.submit(self.base, missing))
        self.assertEqual((error.kind, error.code), (Fault.REFUSED, "E0307"))
        good = FS_WORKFLOW.format(name="x", made="/x")
        for name, text, code in (
            ("not-xml", good[:-5], "E0701"),
            ("order", good.replace("<fs>", "<fs><dance/>"), "E0701"),
            ("target", good.replace('ok to="end"', 'ok to="nowhere"'), "E0708"),
        ):
            error = await self.refused(self.submit(text, self.external(name)))
            self.assertEqual((error.kind, error.code), (Fault.REFUSED, code), name)

    async def check_files(self: Any) -> None:
        """Folders, streamed writes of known and unknown size, lists, reads, deletes."""
        top = f"{self.folder}/files é"
        files, base, user = self.files, self.webhdfs, self.user
        self.assertEqual(await files.list(base, top, user), None)
        await files.make_folders(base, f"{top}/a/b", user, "700")
        await files.make_folders(base, f"{top}/a/b", user)
        self.assertEqual(list(await files.list(base, f"{top}/a", user)), ["b"])

        async def pieces() -> AsyncIterator[bytes]:
            for index in range(20):
                yield b"%04d" % index * 5000

        await files.write(base, f"{top}/known", user, pieces(), 400_000)
        self.assertEqual(await files.read(base, f"{top}/known", user, 12), b"0000" * 3)
        await files.write(base, f"{top}/known", user, once(b"again"), None)
        self.assertEqual(await files.read(base, f"{top}/known", user, 100), b"again")
        self.assertEqual(sorted(await files.list(base, top, user)), ["a", "known"])
        await files.delete(base, top, user)
        await files.delete(base, top, user)
        self.assertEqual(await files.list(base, top, user), None)
        error = await self.refused(files.read(base, f"{top}/known", user, 1))
        self.assertEqual(error.kind, Fault.NOT_FOUND)
