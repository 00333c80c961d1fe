"""Binaries on their way from the object store into HDFS, while the store has its troubles."""

from __future__ import annotations

from attrs import evolve

from svcd.errors import InvalidData
from svcd.model.ids import JobBinaryId, JobBinaryInternalId, JobId
from svcd.model.job import (
    Execution,
    ExecutionStatus,
    JobBinary,
    JobType,
)
from svcd.model.requests import ExecuteRequest
from svcd.ports.store import Tx
from tests.unit.workflow.support import CALLER, CLUSTER, PIG, TENANT, RunningCase

S = ExecutionStatus


class Staging(RunningCase):
    def told(self, row: Execution) -> tuple[str, str]:
        failure = self.execution(row.id).failure
        assert failure is not None
        return failure.code, failure.text

    def test_a_store_that_breaks_off_is_read_again_from_the_start(self) -> None:
        """Nothing is submitted with half a library."""
        self.objects.cuts = 2
        row = self.execute()
        self.clock.advance(0.5)
        waiting = self.info(row.id)["waiting"]
        self.assertEqual((waiting["code"], waiting["step"]), ("BINARY_UNREADABLE", "staging"))
        self.assertIn("no piece for 30 s", waiting["text"])
        self.assertEqual(self.scripted.submissions, 0)
        self.clock.advance(4)
        path = f"/user/hadoop/svcd/{row.id}/lib/udf.jar"
        self.assertEqual(self.scripted.files.read(path), b"PK\x03\x04 udf")
        self.assertEqual(self.execution(row.id).status, S.RUNNING)

    def test_a_jar_without_an_ending_keeps_its_name(self) -> None:
        """A second file is for the class path, unless another file of the job has its name."""
        row = self.named_like_jars("tool", "both", "both.jar")
        folder = f"/user/hadoop/svcd/{row.id}/lib"
        for name, content in (("tool", "0"), ("tool.jar", "0"), ("both", "1"), ("both.jar", "2")):
            found = self.scripted.files.read(f"{folder}/{name}")
            self.assertEqual(found, b"PK\x03\x04" + content.encode())

    def named_like_jars(self, *names: str) -> Execution:
        """A running Pig job with these libraries; each has its number as content."""
        for number, name in enumerate(names):
            udf = self.tx(lambda tx: tx.job_binaries.get(TENANT, JobBinaryId("b3")))
            url = f"objstore-internal://box/{name}"
            self.add(evolve(udf, id=JobBinaryId(name), name=name, url=url))
            self.objects.objects[(TENANT, "box", name)] = b"PK\x03\x04%d" % number
        job = self.tx(lambda tx: tx.jobs.get(TENANT, PIG))
        self.tx(lambda tx: tx.jobs.remove(TENANT, PIG))
        self.tx(lambda tx: tx.jobs.add(evolve(job, libs=tuple(map(JobBinaryId, names)))))
        row = self.execute()
        self.clock.advance(1)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)
        return row

    def add(self, made: JobBinary) -> None:
        self.tx(lambda tx: tx.job_binaries.add(made))

    def shell(self, *, main: str, lib: str) -> JobId:
        """A Shell job of these binaries."""
        job = self.tx(lambda tx: tx.jobs.get(TENANT, PIG))
        made = evolve(
            job,
            id=JobId("shell"),
            name="shell",
            type=JobType.SHELL,
            mains=(JobBinaryId(main),),
            libs=(JobBinaryId(lib),),
        )
        self.tx(lambda tx: tx.jobs.add(made))
        return made.id

    def test_a_script_that_no_machine_starts_is_refused(self) -> None:
        """Before anything is written; one of the object store when it is staged."""
        job = self.shell(main="b1", lib="b3")
        self.objects.objects[(TENANT, "box", "udf.jar")] = b"#!/bin/sh\r\n"
        row = self.execute(job)
        self.clock.advance(1)
        code, text = self.told(row)
        self.assertEqual(code, "SYNTAX_ERROR")
        self.assertIn("job binary 'udf.jar': its #! line ends with a carriage return", text)
        self.assertEqual(self.scripted.submissions, 0)

        async def replace(tx: Tx) -> None:
            await tx.internals.begin("crlf", TENANT, 0)
            await tx.internals.append("crlf", 0, b"#!/bin/sh\r\n")
            kept = await tx.internals.get(TENANT, JobBinaryInternalId("i1"))
            crlf = evolve(kept, id=JobBinaryInternalId("crlf"), name="crlf", datasize=11)
            await tx.internals.finish("crlf", crlf)
            binary = await tx.job_binaries.get(TENANT, JobBinaryId("b1"))
            bad = evolve(binary, id=JobBinaryId("bad"), name="bad", url="internaldb://crlf")
            await tx.job_binaries.add(bad)
            shell = await tx.jobs.get(TENANT, job)
            await tx.jobs.add(evolve(shell, id=JobId("two"), name="two", mains=(bad.id,)))

        self.tx(replace)
        request = ExecuteRequest(cluster_id=CLUSTER)
        error = self.fail_to_end(self.jobs.execute(CALLER, JobId("two"), request), InvalidData)
        self.assertEqual(
            error.message,
            '$.mains[0] of the job, "bad": its #! line ends with a carriage return, so no machine'
            " finds its program: save it with line feeds only (dos2unix)",
        )
