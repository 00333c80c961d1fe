"""A daemon process under load and abuse: crowds, slow readers, few files, full disks, no log."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import statistics
import sys
from pathlib import Path
from typing import Any

from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.error import ConnectError, ConnectionLost
from twisted.trial.unittest import SkipTest
from twisted.web.client import ResponseFailed

from svcd.runtime.tasks import sleep
from tests.live.test_door import Peer, get
from tests.support.disks import fill, small_disk
from tests.support.live import Tenant
from tests.support.processes import Daemon, DaemonCase, Program, reactor, send, until
from tests.support.sample import SLOW

skip = SLOW

CROWD = 10_000
PATIENCE_S = 120.0
_FULL_ACTIVE_S = 180.0
"""A create that a kill interrupted waits for lists to show what may have been asked for."""


def host_and_port(url: str) -> tuple[str, int]:
    """Of `http://HOST:PORT`, with or without a path."""
    found = re.match(r"http://([^:/]+):(\d+)", url)
    assert found is not None, url
    return found[1], int(found[2])


def rss_kib(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


def cpu_s(pid: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class LoadCase(DaemonCase):
    timeout = 400

    def daemon(self, kind: str = "svcd", **settings: str) -> Daemon:
        """A daemon that answers to the Host of the requests of `get` too."""
        return super().daemon(kind, server__hosts="a", **settings)

    async def asking(self, daemon: Daemon) -> Peer:
        """A connection to the API that stays open."""
        endpoint = TCP4ClientEndpoint(reactor, *host_and_port(daemon.endpoints["api"]))
        peer: Peer = await connectProtocol(endpoint, Peer(PATIENCE_S))
        self.addCleanup(peer.transport.abortConnection)
        return peer

    async def status(self, peer: Peer, path: str) -> int:
        peer.send(get(path))
        return (await peer.answer())[0]

    async def milliseconds(self, daemon: Daemon) -> float:
        """The usual time of an answer."""
        peer = await self.asking(daemon)
        took = []
        for _ in range(100):
            before = reactor.seconds()
            self.assertEqual(await self.status(peer, "/v1.1/demo/clusters"), 200)
            took.append((reactor.seconds() - before) * 1000)
        return statistics.median(took)

    async def crowd(self, url: str, count: int, *more: str) -> Program:
        """So many connections, when all of them have been tried."""
        host, port = host_and_port(url)
        command = [sys.executable, "-m", "tests.support.crowd", host, str(port), str(count), *more]
        program = self.program(*command)

        async def there() -> bool:
            self.assertIsNone(program.code, program.err)
            return "connected" in program.out

        await until(there, f"{count} connections", PATIENCE_S)
        return program

    def check_log(self, daemon: Daemon, but: str = "no such text") -> None:
        """Nothing of it is a bug. but: part of the errors that are no bug."""
        wrong = [
            line
            for line in daemon.said.splitlines()
            if "Traceback" in line or re.match(r"\S+Z (error|critical)", line)
            if but not in line
        ]
        self.assertEqual(wrong, [])


class CrowdTests(LoadCase):
    async def test_ten_thousand_idle_connections(self) -> None:
        """Others are answered meanwhile; they cost little, fill no log, and are closed in time."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        count = min(CROWD, hard - 1000)
        if count < 100:
            raise SkipTest(f"ulimit -Hn is {hard}: too low for a crowd, raise it to 11000")
        daemon = self.daemon(server__idle_timeout_s="15", log__access="false")
        told = await daemon.start()
        pid = daemon.program.pid
        alone_ms = await self.milliseconds(daemon)
        before_kib = rss_kib(pid)
        crowd = await self.crowd(told["api"], count)

        async def all_open() -> bool:
            metrics = await send("GET", told["api"] + "/metrics")
            found = re.search(rb"svcd_connections (\d+)", metrics.body)
            assert found is not None
            return int(found[1]) >= count

        await until(all_open, f"{count} open connections", 20)
        each_kib = (rss_kib(pid) - before_kib) / count
        crowded_ms = await self.milliseconds(daemon)
        print(
            f"\n{count} idle connections ({CROWD} where ulimit -Hn allows): {each_kib:.1f} KiB "
            f"each, an answer takes {crowded_ms:.2f} ms with them, {alone_ms:.2f} ms without",
            end=" ",
        )
        self.assertLess(each_kib, 16)
        ended = await crowd.end(PATIENCE_S)
        self.assertEqual((ended.code, ended.err), (0, ""))
        self.assertEqual(await self.status(await self.asking(daemon), "/healthz"), 200)
        self.assertLess(len(daemon.said.splitlines()), 20)
        self.check_log(daemon)
        self.assertEqual((await daemon.stop()).code, 0)

    async def test_peers_knock_while_it_is_busy(self) -> None:
        """Hundreds wait to be accepted; none is sent away to come again a second later."""
        most = int(Path("/proc/sys/net/core/somaxconn").read_text())
        daemon = self.daemon()
        told = await daemon.start()
        daemon.program.signal(signal.SIGSTOP)
        crowd = await self.crowd(told["api"], min(500, most - 1), get("/healthz").decode())
        daemon.program.signal(signal.SIGCONT)

        async def all_answered() -> bool:
            metrics = await send("GET", told["api"] + "/metrics")
            found = re.search(rb'requests_total.*"/healthz",status="200"} (\d+)', metrics.body)
            return found is not None and int(found[1]) >= min(500, most - 1)

        await until(all_answered, "all answers", 30)
        crowd.signal(signal.SIGKILL)

    async def test_few_files(self) -> None:
        """A crowd at the door and one at the cloud's: work goes on, and it spins at nothing."""
        prlimit = shutil.which("prlimit")
        if prlimit is None:
            raise SkipTest("no `prlimit` command (package util-linux)")
        daemon = self.daemon(log__access="false")
        daemon.before = [prlimit, "--nofile=300:300", "--"]
        told = await daemon.start()
        tenant = Tenant(told)
        known = await self.asking(daemon)
        self.assertEqual(await self.status(known, "/healthz"), 200)
        crowd = await self.crowd(told["api"], 400)
        refused = await (await self.asking(daemon)).answer()
        self.assertEqual(refused[0], 503)
        self.assertEqual(await self.status(known, "/v1.1/demo/clusters"), 200)
        crowd.signal(signal.SIGKILL)
        await crowd.end()

        async def room() -> bool:
            try:
                return (await send("GET", told["api"] + "/readyz")).status == 200
            except (ConnectError, ConnectionLost, ResponseFailed):
                return False  # the crowd is not gone yet

        await until(room, "room at the door", 30)
        cluster_id = await tenant.new_cluster("mine", 2)
        await tenant.until_active(cluster_id)
        outside = await self.crowd(told["identity"], 400)
        before_s = cpu_s(daemon.program.pid)
        await sleep(reactor, 2.0)
        self.assertLess(cpu_s(daemon.program.pid) - before_s, 1.0)
        self.assertEqual(await self.status(known, "/v1.1/demo/clusters"), 200)
        outside.signal(signal.SIGKILL)
        await outside.end()
        await until(room, "room at the cloud", 30)
        await tenant.scale(cluster_id, 3)
        await tenant.until_active(cluster_id)
        warnings = [
            line
            for line in daemon.said.splitlines()
            if "and the hard limit of the process is 300" in line
        ]
        self.assertEqual(len(warnings), 1, daemon.said)
        self.check_log(daemon)


class ReaderTests(LoadCase):
    async def test_hundreds_that_read_nothing(self) -> None:
        """Of a large download and of a large list: memory is bounded, others are answered."""
        daemon = self.daemon(server__idle_timeout_s="3", log__access="false")
        told = await daemon.start()
        pid = daemon.program.pid
        base = f"{told['api']}/v1.1/demo"
        stored = await send("PUT", f"{base}/job-binary-internals/big", data=bytes(16 * 2**20))
        binary_id = stored.json["job_binary_internal"]["id"]
        large = {"general": {"Daemon JVM Options": "d" * 1_000_000}}
        group = {"plugin_name": "fake", "engine_version": "0.1", "flavor_id": "2"}
        group |= {"node_processes": ["datanode"], "node_configs": large}
        for number in range(4):
            url = f"{base}/node-group-templates"
            made = await send("POST", url, json={**group, "name": f"s{number}"})
            self.assertEqual(made.status, 202)
        before_kib = rss_kib(pid)
        peak_kib = before_kib
        crowds = []
        for path in (f"job-binary-internals/{binary_id}/data", "node-group-templates"):
            request = get(f"/v1.1/demo/{path}").decode()
            crowds.append(await self.crowd(told["api"], 100, request, "--deaf"))
            for _ in range(10):
                self.assertEqual((await send("GET", f"{base}/jobs")).status, 200)
                peak_kib = max(peak_kib, rss_kib(pid))
        print(f"\n200 that read nothing cost {(peak_kib - before_kib) // 1024} MiB", end=" ")
        self.assertLess(peak_kib - before_kib, 400 * 1024)
        for crowd in crowds:
            crowd_ended = await crowd.end(PATIENCE_S)
            self.assertEqual((crowd_ended.code, crowd_ended.err), (0, ""))
        again = await send("GET", f"{base}/node-group-templates")
        self.assertEqual((again.status, len(again.json["node_group_templates"])), (200, 4))
        self.check_log(daemon)


class FullDiskTests(LoadCase):
    """What was acknowledged is there; the rest is told 503; it goes on when there is room."""

    async def new_source(self, daemon: Daemon, name: str) -> int:
        body = {"name": name, "type": "hdfs", "url": f"/data/{name}"}
        reply = await send("POST", f"{daemon.endpoints['api']}/v1.1/demo/data-sources", json=body)
        if reply.status != 202:
            self.assertEqual((reply.status, reply.json["error_code"]), (503, 503), reply)
            self.assertIn("full", reply.json["error_message"])
            self.assertIn("retry-after", reply.headers)
        return reply.status

    async def names(self, daemon: Daemon) -> list[str]:
        reply = await send("GET", f"{daemon.endpoints['api']}/v1.1/demo/data-sources")
        self.assertEqual(reply.status, 200)
        return [each["name"] for each in reply.json["data_sources"]]

    async def test_disk_of_the_state_folder(self) -> None:
        """In the middle of a cluster's creation, with a kill while it is full.

        The servers boot when there is room again: on a full disk their first boot would fail, and
        it is run once, as anywhere.
        """
        place = small_disk(self, self.mktemp(), 16)
        daemon = self.daemon(server__state_dir=str(place / "state"), embedded__boot_s="10.0")
        daemon.state = place / "state"
        tenant = Tenant(await daemon.start())
        kept = ["first"]
        self.assertEqual(await self.new_source(daemon, "first"), 202)
        cluster_id = await tenant.new_cluster("mine", 2)
        filler = fill(place)
        refused = 0
        for number in range(40):
            name = f"s{number}"
            if await self.new_source(daemon, name) == 202:
                kept.append(name)
            else:
                refused += 1
        self.assertGreater(refused, 0)
        self.assertEqual(await self.names(daemon), kept)
        large = await send(
            "PUT", f"{tenant.api}/v1.1/demo/job-binary-internals/a", data=bytes(100_000)
        )
        self.assertEqual(large.status, 503)
        await daemon.kill()
        filler.unlink()
        tenant = Tenant(await daemon.start())
        self.assertEqual(await self.names(daemon), kept)
        self.assertEqual(await self.new_source(daemon, "last"), 202)
        await tenant.until_active(cluster_id, _FULL_ACTIVE_S)
        filler = fill(place)
        await tenant.ask("PUT", f"/clusters/{cluster_id}", {})
        await sleep(reactor, 1.0)
        filler.unlink()
        await tenant.scale(cluster_id, 1)
        shown = await tenant.until_active(cluster_id, _FULL_ACTIVE_S)
        self.assertEqual([g["count"] for g in shown["node_groups"]], [1, 1])
        self.check_log(daemon, "An audit record could not be written: [Errno 28]")
        self.assertEqual((await daemon.stop()).code, 0)


class LostLogTests(LoadCase):
    """It serves without a log as with one, and ends with 0."""

    async def served(self, *shell: str, folder: str) -> tuple[Program, dict[str, Any]]:
        """A daemon started by a shell line in which `"$@"` stands for its command."""
        state = Path(folder).absolute()
        flags = [f"--set={k}={v}" for k, v in Daemon(state).settings.items()]
        twistd = str(Path(sys.executable).parent / "twistd")
        program = self.program(
            "/bin/sh", "-c", *shell, "sh", twistd, "-n", "--pidfile=", "svcd", *flags
        )

        async def ready() -> bool:
            self.assertIsNone(program.code, program.err)
            return (state / "endpoints.json").exists()

        await until(ready, "endpoints.json", PATIENCE_S)
        return program, json.loads((state / "endpoints.json").read_text())

    async def test_nobody_reads_it(self) -> None:
        """A pipe whose reader has gone, a full device, and none at all."""
        for line in (
            '{ "$@"; echo "code $?" >&2; } | true',
            '"$@" >/dev/full; echo "code $?" >&2',
            '"$@" >&-; echo "code $?" >&2',
        ):
            program, told = await self.served(line, folder=self.mktemp())
            for path in ("/healthz", "/v1.1/demo/clusters", "/v1.1/demo/nope", "/readyz"):
                reply = await send("GET", told["api"] + path)
                self.assertEqual(reply.status, 404 if path.endswith("nope") else 200)
            os.kill(told["pid"], signal.SIGTERM)
            ended = await program.end(60)
            self.assertEqual(ended.err, "code 0\n", line)
