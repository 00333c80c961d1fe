"""Real Hadoop, Pig, Spark and Oozie on servers of a real OpenStack, with its Swift for the data.

Needed beside openstack_case: servers that have the software tree at /opt/svcd/vanilla and a Java
17; SVCD_TEST_OS_VANILLA names the tree as this machine sees it. About two minutes on two cores.
"""

from __future__ import annotations

import os
import re
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from twisted.internet.defer import Deferred

from svcd.cli.demo_files import PIG_SCRIPT, WORD_COUNT
from svcd.provisioning.distributions.vanilla.image.build import verify
from svcd.runtime.tasks import sleep
from tests.support.live import Tenant
from tests.support.openstack_case import MASTER, WORKER, OpenStackCase, User, no_platform
from tests.support.processes import reactor, send, until
from tests.support.real_openstack import platform
from tests.support.security_groups import LIFT, enforced, open_ports

BUILD_S = 300.0
JOB_S = 400.0
SCALE_S = 300.0
LOOK_S = 5.0
"""Time in which svcd sees a changed row, and asks the cluster."""
WHO = b"""#!/bin/sh
echo system user $(id -un), groups $(id -Gn)
command -v sudo
sudo -n true || echo no root by sudo
: | su root -c true || echo no root by su
cat /home/debian/.ssh/authorized_keys || echo no keys
hdfs dfs -touchz who && echo Hadoop user $(hdfs dfs -stat %u /user/debian/who)
"""
# Who runs Java; whose the folder is, and whether others read it; whether the login user has sudo.
SEEN = """
ps -eo user:20=,comm= | sed -n 's/ *java$//p' | sort -u
stat -c '%U %a' /home/svcd
cat /home/svcd/svcd/conf/core-site.xml 2>/dev/null || echo cannot read
sudo -n id -u
"""
BOOT = b"""#!/bin/sh
sudo -n sh -c "echo $SVCD_GROUP $SVCD_INDEX $(id -un) >>/etc/svcd-booted"
"""
# A program of a person, past svcd, for ten minutes.
FOREIGN = r"""
sudo -n -u svcd sh -c 'cd && . svcd/env.sh
printf "import time\nfrom pyspark.sql import SparkSession\n" >sleep.py
printf "SparkSession.builder.getOrCreate()\ntime.sleep(600)\n" >>sleep.py
spark-submit --conf spark.yarn.submit.waitAppCompletion=false sleep.py 2>&1 |
  sed -n "s/.*Submitted application //p"'
"""
KILL = "sudo -n -u svcd sh -c 'cd && . svcd/env.sh && yarn application -kill {}'"
IDLE_S = 60
SPARK_COUNT = {"edp.java.main_class": "org.svcd.examples.spark.WordCount"}
TREE = os.environ.get("SVCD_TEST_OS_VANILLA", "")


def _no_tree() -> str:
    """Why there is no Hadoop on the servers; "" when there is."""
    if not TREE:
        return "SVCD_TEST_OS_VANILLA is not set: no server has the software tree of vanilla"
    faults = verify(Path(TREE))
    return f"{TREE}: {faults[0]}; svcd image build vanilla {TREE}" if faults else ""


class Container:
    """A container of the real Swift, as the user."""

    def __init__(self, user: User, name: str) -> None:
        base = platform()["tenants"][user.project]["object_store"]
        self.name = name
        self._url = f"{base}/{name}"
        self._headers = {"X-Auth-Token": user.token}

    async def _done(self, method: str, path: str, data: bytes | None = None) -> bytes:
        reply = await send(method, self._url + path, data=data, headers=self._headers)
        if reply.status >= 300:
            raise AssertionError(f"{method} {self._url}{path}: {reply.status}")
        return reply.body

    async def make(self) -> None:
        await self._done("PUT", "", b"")

    async def write(self, name: str, data: bytes) -> None:
        await self._done("PUT", f"/{name}", data)

    async def names(self, prefix: str = "") -> list[str]:
        return (await self._done("GET", f"?prefix={prefix}")).decode().split()

    async def read(self, name: str) -> str:
        return (await self._done("GET", f"/{name}")).decode()

    async def remove(self) -> None:
        for name in await self.names():
            await self._done("DELETE", f"/{name}")
        await self._done("DELETE", "")


class VanillaTests(OpenStackCase):
    """One long test: a cluster is what costs."""

    timeout = 1500
    skip = no_platform() or _no_tree() or None
    spark = pyspark = ""

    async def begin_words(self) -> None:
        """A daemon, a user, and a text in Swift."""
        await self.begin(plugins__enabled="vanilla", provisioning__endings_poll_s="1")
        self.alpha = await self.user()
        known = platform()["users"]["alpha-user"]
        cloud = {"tenant": self.alpha.tenant, "username": "alpha-user", **known}
        self.tenant = Tenant(
            {"api": self.api}, cloud, headers={"X-Auth-Token": self.alpha.token}
        )  # one token lives longer than the test
        self.box = Container(self.alpha, f"words-{uuid.uuid4().hex[:8]}")
        text = "\n".join(topics[name] for name in sorted(topics))
        self.expected = Counter(re.findall(r"(?:[^\W_]|')+", text.lower()))
        await self.box.make()
        self.addCleanup(lambda: Deferred.fromCoroutine(self.box.remove()))
        await self.box.write("in/python-reference.txt", text.encode())
        self.source = await self.tenant.new_source("in", self.box.name, "in")
        jar = Path(TREE, "examples", "svcd-examples.jar").read_bytes()
        self.jar = await self.tenant.new_jar_job("count", jar)
        self.pig = await self.tenant.new_pig_job("count-pig", PIG_SCRIPT.encode())
        if (program := Path(TREE, "examples", "wordcount.py")).exists():  # a tree with Spark
            mains = {"count.py": program.read_bytes()}
            self.pyspark = await self.tenant.new_job("count-pyspark", "Spark", mains)
            jar = Path(TREE, "examples", "svcd-spark-examples.jar").read_bytes()
            self.spark = await self.tenant.new_job("count-spark", "Spark", {"count-spark.jar": jar})
        self._since = float(reactor.seconds())

    def mark(self, what: str) -> None:
        """How long a step took, for those who read the output of the tests."""
        now = float(reactor.seconds())
        print(f"\n      {what}: {now - self._since:.1f} s", end=" ", flush=True)
        self._since = now

    async def cluster_of(self, workers: int) -> str:
        """A cluster with that many workers, Active."""
        await self.registered(self.alpha, ["vanilla", "3.5.0"])
        headers = {"X-Auth-Token": self.alpha.token}
        await send(
            "PUT", self.alpha.base + "/job-binary-internals/boot.sh", data=BOOT, headers=headers
        )
        body = self.body(
            self.alpha,
            ("master", 1, MASTER),
            ("worker", workers, WORKER),
            plugin_name="vanilla",
            engine_version="3.5.0",
            group={
                "flavor_id": platform()["flavors"]["m1.medium"],
                "init_scripts": ["boot.sh"],
            },
        )
        cluster_id = await self.accepted(self.alpha, body)
        await self.alpha.until(cluster_id, "Active", BUILD_S)
        self.mark(f"1 + {workers} Active")
        return cluster_id

    async def count(self, cluster_id: str, job_id: str, configs: dict[str, str], out: str) -> None:
        """Run the job; its output in Swift is what plain Python counts."""
        target = await self.tenant.new_source(out, self.box.name, f"out/{out}")
        execution = await self.tenant.execute(cluster_id, job_id, self.source, target, configs)
        await self.tenant.until_execution(execution, "SUCCEEDED", JOB_S)
        self.mark(out)
        found: Counter[str] = Counter()
        for name in await self.box.names(f"out/{out}/part"):
            for line in (await self.box.read(name)).splitlines():
                word, number = line.split("\t")
                found[word] += int(number)
        self.assertEqual(found, self.expected)

    async def check_users(self, cluster_id: str) -> None:
        """Jobs and daemons have a user without sudo; the login user is theirs in Hadoop."""
        job = await self.tenant.new_job("who", "Shell", {"who.sh": WHO})
        target = await self.tenant.new_source("none", self.box.name, "out/none")
        execution = await self.tenant.execute(cluster_id, job, self.source, target, {})
        shown = await self.tenant.until_execution(execution, "SUCCEEDED", JOB_S)
        self.assertEqual(shown["info"]["user"], "debian")
        log = await self.tenant.log(execution)
        said = [s.partition("Stdoutput ")[2] for s in log.splitlines() if "Stdoutput " in s]
        self.assertEqual(
            said,
            ["system user svcd, groups svcd", "/usr/bin/sudo", "no root by sudo", "no root by su",
             "no keys", "Hadoop user debian"],
        )  # fmt: skip
        for group in (await self.alpha.cluster(cluster_id))["node_groups"]:
            said = (await self.on(group["instances"][0]["management_ip"], SEEN)).split("\n")
            self.assertEqual(said, ["svcd", "svcd 700", "cannot read", "0", ""])
        self.mark("users")

    async def each_machine(self, cluster_id: str, command: str) -> Sequence[Mapping[str, Any]]:
        """Run a command on all machines of the cluster; returns their instances."""
        cluster = (await self.alpha.get("GET", f"/clusters/{cluster_id}"))["cluster"]
        found = [each for group in cluster["node_groups"] for each in group["instances"]]
        for each in found:
            await self.on(each["management_ip"], command)
        return found

    async def enforce_group(self, cluster_id: str) -> None:
        """From now on the servers keep to the rules of their group: only SSH is open."""
        cluster = await self.each_machine(cluster_id, "true")
        rules = await self.ingress(cluster_id)
        command = enforced(rules, [each["internal_ip"] for each in cluster])
        await self.each_machine(cluster_id, command)
        for each in cluster:
            listens, connected = await open_ports(each["management_ip"], self.on)
            self.assertIn(9864 if each is cluster[-1] else 11000, listens)
            self.assertEqual(connected, [22], each["instance_name"])

    async def check_scripts(self, cluster_id: str) -> None:
        """Each worker has run its first-boot script once, with sudo; also one added later."""
        cluster = await self.alpha.cluster(cluster_id)
        workers = cluster["node_groups"][1]["instances"]
        for number, worker in enumerate(workers, 1):
            said = await self.on(worker["management_ip"], "cat /etc/svcd-booted")
            self.assertEqual(said, f"worker {number} debian\n")

    async def use(self, cluster_id: str) -> Any:
        """When svcd deletes the cluster, after a new look at its use; None while it is used."""
        age = 86_400 + int(reactor.seconds()) % 86_400
        path = f"/clusters/{cluster_id}"
        await self.alpha.get("PUT", path, {"idle_delete_s": IDLE_S, "max_age_s": age})
        await sleep(reactor, LOOK_S)
        return (await self.alpha.cluster(cluster_id)).get("idle_since")

    async def end(self, cluster_id: str) -> None:
        """A program that svcd does not know keeps the cluster; without it the cluster ends."""
        master = (await self.alpha.cluster(cluster_id))["node_groups"][0]["instances"][0]
        if self.spark:
            job = (await self.on(master["management_ip"], FOREIGN)).split()[-1]
            self.assertIsNone(await self.use(cluster_id))
            await self.on(master["management_ip"], KILL.format(job))
        await until(lambda: self.use(cluster_id), "an unused cluster", 30.0)
        await self.alpha.gone(cluster_id, IDLE_S + 120.0)
        self.mark("ended by itself")

    async def scale(self, cluster_id: str, workers: int) -> Any:
        resize = [{"name": "worker", "count": workers}]
        await self.alpha.get("PUT", f"/clusters/{cluster_id}", {"resize_node_groups": resize})
        cluster = await self.alpha.until(cluster_id, "Active", SCALE_S)
        self.mark(f"scaled to {workers}")
        self.assertEqual(cluster["status_description"], "")
        self.assertEqual(len(cluster["node_groups"][1]["instances"]), workers)

    async def test_words_are_counted_on_real_servers(self) -> None:
        """Jar, Pig, PySpark and Spark agree with plain Python, around scaling; nothing is left."""
        await self.begin_words()
        before = set(await self.everything())
        self.mark("prepared")
        cluster_id = await self.cluster_of(1)
        await self.enforce_group(cluster_id)
        await self.count(cluster_id, self.jar, WORD_COUNT, "jar")
        await self.each_machine(cluster_id, LIFT)
        await self.check_users(cluster_id)
        await self.scale(cluster_id, 2)
        await self.check_scripts(cluster_id)
        await self.count(cluster_id, self.pig, {}, "pig")
        if self.spark:
            await self.count(cluster_id, self.pyspark, {}, "pyspark")
            await self.count(cluster_id, self.spark, SPARK_COUNT, "spark")
        await self.scale(cluster_id, 1)
        await self.end(cluster_id)
        self.assertEqual(set(await self.everything()) - before, set())
