"""Jobs of several types on data whose names have blanks, other letters, and marks of Hadoop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from tests.support.live import Tenant
from tests.support.processes import send

PLAIN: Final = "größe 日本☃ +&#%20;=`|<c>~!@()^-\"'$HOME"
"""Stands for itself in every URL."""
LITERAL: Final = "x*y?[1]{2,3}"
PATTERN: Final = r"x\*y\?\[1\]\{2?3\}"
"""The input that means LITERAL alone."""
TEXT: Final = "to be ü\nor not\n"
COPY: Final = b"STORE (LOAD '$INPUT' USING TextLoader() AS (line:chararray)) INTO '$OUTPUT';\n"
SHELL: Final = b'#!/bin/sh\nset -e\nhdfs dfs -cat "$1/part-m-00000"\n'
IDENTITY: Final = {
    "mapreduce.map.class": "org.apache.hadoop.mapreduce.Mapper",
    "mapred.reducer.new-api": "true",
    "mapreduce.job.reduces": "0",
    "mapred.output.key.class": "org.apache.hadoop.io.LongWritable",
    "mapred.output.value.class": "org.apache.hadoop.io.Text",
}
STREAMING: Final = {
    "edp.streaming.mapper": "/bin/cat",
    "edp.streaming.reducer": "/bin/cat",
    "mapreduce.job.reduces": "0",
}
CONTAINER: Final = "names"


class NamedData:
    """Data of one tenant on one cluster. limit_s: for one job."""

    def __init__(self, tenant: Tenant, cluster_id: str, jar: bytes, limit_s: float) -> None:
        self._tenant = tenant
        self._cluster_id = cluster_id
        self._jar = jar
        self._limit_s = limit_s
        self._sources = 0

    async def round(self) -> Mapping[str, str]:
        """The lines that each job wrote or printed, by its type and way.

        Pig and streaming read the object store and write HDFS; the others read what they wrote.
        """
        tenant = self._tenant
        for name in (PLAIN, LITERAL):
            await tenant.upload(CONTAINER, quote(f"in/{name}/text.txt"), TEXT.encode())
        pig = await tenant.new_pig_job("copy", COPY)
        jar = await tenant.new_jar_job("identity", self._jar)
        store = f"objstore://{CONTAINER}"
        # two at a time, for a launcher takes a part of a small cluster
        first = [
            await self.start(pig, f"{store}/in/{PLAIN}", f"/names/{PLAIN}"),
            await self.start(jar, f"{store}/in/{PATTERN}", f"/names/{LITERAL}", STREAMING),
        ]
        await self.ends(first)
        shell = await tenant.new_job("show", "Shell", {"show.sh": SHELL})
        java = await tenant.new_job("cp", "Java", libs={"cp.jar": self._jar})
        main = {"edp.java.main_class": "org.apache.hadoop.fs.FsShell"}
        made = f"/names/{PLAIN}/part-m-00000"
        second = [
            await self.start(jar, f"/names/{PLAIN}", f"{store}/out/{PLAIN}", IDENTITY),
            await self.start(pig, rf"hdfs:///names/{PATTERN}", f"{store}/out/{LITERAL}"),
        ]
        await self.ends(second)
        copied = f"/names/{PLAIN}/java {PLAIN}"
        third = [
            await self.start(shell, args=[f"/names/{PLAIN}"]),
            await self.start(java, configs=main, args=["-cp", made, copied]),
        ]
        await self.ends(third)
        return {
            "Pig, then Jar": await self.stored(f"out/{PLAIN}"),
            "streaming, then Pig": await self.stored(f"out/{LITERAL}"),
            "Shell": await tenant.log(third[0]),
            "Java": await tenant.log(third[1]),
        }

    async def start(
        self,
        job_id: str,
        source: str = "",
        target: str = "",
        configs: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
    ) -> str:
        """The id of a new execution with these URLs."""
        body: dict[str, Any] = {
            "cluster_id": self._cluster_id,
            "job_configs": {"configs": dict(configs or {}), "args": list(args)},
        }
        for key, url in (("input_id", source), ("output_id", target)):
            if url:
                body[key] = await self.source(url)
        made = await self._tenant.done("POST", f"/jobs/{job_id}/execute", body)
        return str(made["job_execution"]["id"])

    async def source(self, url: str) -> str:
        """The id of a new data source."""
        self._sources += 1
        body: dict[str, Any] = {"name": f"names-{self._sources}", "type": "hdfs", "url": url}
        if url.startswith("objstore://"):
            cloud = self._tenant.cloud
            account = {"user": cloud["username"], "password": cloud["password"]}
            body |= {"type": "objstore", "credentials": account}
        made = await self._tenant.done("POST", "/data-sources", body)
        return str(made["data_source"]["id"])

    async def ends(self, executions: Sequence[str]) -> None:
        """Until all have succeeded."""
        for each in executions:
            await self._tenant.until_execution(each, "SUCCEEDED", self._limit_s)

    async def stored(self, folder: str) -> str:
        """The first part of an output in the object store."""
        url = f"{self._tenant.cloud['object_store']}/{CONTAINER}/"
        headers = {"X-Auth-Token": await self._tenant.token()}
        reply = await send("GET", url + quote(f"{folder}/part-m-00000"), headers=headers)
        if reply.status != 200:
            raise AssertionError(f"{folder}: {reply.status} {reply.body.decode()}")
        return reply.body.decode()
