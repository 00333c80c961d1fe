"""The daemon as a process: exit codes, what it says where, files that come and go, signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
from functools import partial
from pathlib import Path
from typing import Any

import treq
import treq.client
from cryptography.fernet import Fernet
from twisted.internet.defer import Deferred
from twisted.web.client import Agent
from twisted.web.iweb import IBodyProducer
from zope.interface import implementer

from svcd.cli.doctor import examine
from svcd.runtime.tasks import gather, with_deadline
from svcd.settings import load
from tests.support.disks import fill, small_disk
from tests.support.live import Tenant
from tests.support.processes import (
    READY_S,
    Daemon,
    DaemonCase,
    Program,
    reactor,
    run,
    send,
    until,
)

LISTEN = ["--set", "server.listen=tcp:127.0.0.1:0", "--set", "cloud.listen=tcp:127.0.0.1:0"]


class RefusalTests(DaemonCase):
    """It does not start, and says in one line on stderr why and what to do."""

    async def refused(self, code: int, *flags: str, state: str = "") -> str:
        """The line that the daemon leaves behind."""
        folder = state or self.mktemp()
        command = ["twistd", "-n", "--pidfile=", "svcd", "--set", f"server.state_dir={folder}"]
        ended = await run(*command, *LISTEN, *flags)
        self.assertEqual(ended.code, code, ended)
        lines = ended.err.splitlines()
        self.assertEqual(len(lines), 1, ended.err)
        self.assertTrue(lines[0].startswith("svcd: "), lines)
        return lines[0]

    async def test_wrong_flags_and_settings_are_2(self) -> None:
        """With the nearest name, what was expected, or all that is missing."""
        listen, named = "server.listen", "tcp:8386:nonsense=1"
        told = await gather(
            [
                partial(self.refused, 2, *flags)
                for flags in (
                    ("--bogus",),
                    ("--config", "/none.toml"),
                    ("--set", "server.lisen=x"),
                    ("--set", "auth.mode=maybe"),
                    ("--set", "plugins.enabled=nope"),
                    ("--set", f"{listen}=8386"),
                    ("--set", f"{listen}=myhost:8386"),
                    ("--set", f"{listen}={named}", "--set", "auth.allow_none=true"),
                    ("--set", "cloud.kind=openstack"),
                )
            ],
            2,
        )
        for line, words in zip(
            told,
            (
                "--bogus",
                "/none.toml",
                "unknown setting server.lisen (--set); did you mean server.listen?",
                "expected one of none, keystone, got 'maybe'",
                "'nope', but no distribution has this name; there are vanilla, fake",
                "server.listen: 8386 does not say how to listen: write tcp:127",
                "server.listen: 'myhost:8386' begins with no kind of endpoint: write",
                "write server.listen as tcp:HOST:PORT",
                "cloud.auth_url, cloud.username, cloud.password, cloud.project",
            ),
            strict=True,
        ):
            self.assertIn(words, line)

    async def test_full_disk_of_the_database_is_1(self) -> None:
        """At the first start; the next one, with room, makes the tables."""
        place = small_disk(self, self.mktemp(), 2)
        database = place / "svcd.sqlite"
        state = Path(self.mktemp())
        state.mkdir(0o700)
        filler = fill(place)
        flags = ("--set", f"database.url=sqlite:///{database}")
        os.truncate(filler, filler.stat().st_size - 80 * 1024)  # for a beginning
        line = await self.refused(1, *flags, state=str(state))
        self.assertIn(f"the schema of {database} cannot be changed: database or disk is full", line)
        filler.unlink()
        upgraded = self.daemon(database__url=f"sqlite:///{database}")
        upgraded.state = state
        upgraded.settings["server.state_dir"] = str(state)
        await upgraded.start()
        self.assertEqual((await upgraded.stop()).code, 0)

    async def test_taken_port_is_1(self) -> None:
        """Of the API and of the cloud."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            text = f"tcp:127.0.0.1:{taken.getsockname()[1]}"
            for name in ("server.listen", "cloud.listen"):
                line = await self.refused(1, "--set", f"{name}={text}")
                self.assertIn(f"cannot listen on {text}", line)
                self.assertIn(f"or choose another {name}", line)

    async def test_file_in_place_of_the_state_folder_is_1(self) -> None:
        """The same words as for a folder that cannot be written."""
        file = Path(self.mktemp())
        file.write_text("mine")
        line = await self.refused(1, state=str(file))
        self.assertIn("choose another server.state_dir", line)
        self.assertEqual(file.read_text(), "mine")

    async def test_key_of_another_database_is_1(self) -> None:
        """Better than clusters and jobs that fail one by one."""
        first = self.daemon()
        told = await first.start()
        source = {"name": "s", "type": "objstore", "url": "objstore://c.svcd/in"}
        body = {**source, "credentials": {"user": "u", "password": "p"}}
        reply = await send("POST", f"{told['api']}/v1.1/demo/data-sources", json=body)
        self.assertEqual(reply.status, 202)
        await first.stop()
        key = first.state / "seal.key"
        lost = key.read_text()
        key.unlink()
        line = await self.refused(1, state=str(first.state))
        self.assertIn(f"{key} is missing, but the database has data that was sealed", line)
        self.assertFalse(key.exists())
        self.assertIn(f"{key} is missing", self.doubts(first))
        key.write_bytes(Fernet.generate_key())
        key.chmod(0o600)
        line = await self.refused(1, state=str(first.state))
        self.assertIn(f"cannot be opened with {key}: it was sealed with another key", line)
        self.assertIn(f"cannot be opened with {key}", self.doubts(first))
        key.write_text(lost)
        self.assertEqual(self.doubts(first), "")
        await first.start()

    def doubts(self, daemon: Daemon) -> str:
        """What `svcd doctor` says of the seal key of a daemon that it does not approve."""
        flags = [f"{name}={value}" for name, value in daemon.settings.items()]
        findings = examine(load(None, {}, flags).settings)
        return "".join(f.text for f in findings if f.what == "seal key" and not f.good)

    async def test_second_daemon_is_1_and_the_first_goes_on(self) -> None:
        """In the state folder, and on the database file, here by a link from another folder."""
        first = self.daemon()
        endpoints = await first.start()
        line = await self.refused(1, state=str(first.state))
        self.assertIn(f"is in use by process {first.program.pid}", line)
        link = Path(self.mktemp()).absolute()
        link.symlink_to(first.state.absolute() / "svcd.sqlite")
        line = await self.refused(1, "--set", f"database.url=sqlite:///{link}")
        self.assertIn(f"the database {link} is in use by process {first.program.pid};", line)
        self.assertEqual(json.loads((first.state / "endpoints.json").read_text()), endpoints)
        self.assertEqual((await send("GET", endpoints["api"] + "/healthz")).status, 200)


class LifeTests(DaemonCase):
    """It runs and ends well."""

    async def ended_by(self, daemon: Daemon, *numbers: signal.Signals) -> None:
        """It ends with 0, an empty stderr, and without endpoints."""
        for number in numbers:
            daemon.program.signal(number)
        ended = await daemon.program.end(20)
        self.assertEqual((ended.code, ended.err), (0, ""), ended)
        self.assertFalse((daemon.state / "endpoints.json").exists())

    async def test_signals_end_it_with_0(self) -> None:
        """Impatience does no harm."""
        for numbers in ([signal.SIGTERM], [signal.SIGINT, signal.SIGINT, signal.SIGTERM]):
            daemon = self.daemon()
            endpoints = await daemon.start()
            self.assertEqual(endpoints["pid"], daemon.program.pid)
            await self.ended_by(daemon, *numbers)

    async def test_endpoints_say_everything_in_private_files(self) -> None:
        """Also in a folder that was there before and that everybody may look into."""
        daemon = self.daemon()
        daemon.state.mkdir(mode=0o755)
        endpoints = await daemon.start()
        self.assertEqual(
            set(endpoints),
            {
                "api", "identity", "compute", "image", "network", "volume", "object_store",
                "tenant", "username", "password", "images", "flavors", "keypairs", "pid",
            },
        )  # fmt: skip
        self.assertEqual(endpoints["password"], daemon.password("demo"))
        self.assertEqual(endpoints["keypairs"], ["demo"])
        self.assertEqual(set(endpoints["flavors"][0]), {"id", "name"})
        self.assertEqual(set(endpoints["images"][0]), {"id", "name", "username", "tags"})
        database = ("svcd.sqlite", "svcd.sqlite-wal", "svcd.sqlite.lock")
        for name in (*database, "endpoints.json", "seal.key", "lock", "cloud"):
            mode = stat.S_IMODE((daemon.state / name).stat().st_mode)
            self.assertEqual(mode & 0o077, 0, name)
        for path in ("/healthz", "/readyz", "/metrics"):
            reply = await send("GET", endpoints["api"] + path)
            self.assertEqual(reply.status, 200, path)
        await send("GET", endpoints["identity"])

    async def test_banner_can_be_pasted(self) -> None:
        """The command in the log line makes the first cluster."""
        daemon = self.daemon()
        tenant = Tenant(await daemon.start())
        image = tenant.image("plain")  # svcd registers that of vanilla by itself
        await tenant.done("POST", f"/images/{image}", {"username": "svcd"})
        await tenant.done("POST", f"/images/{image}/tag", {"tags": ["fake", "0.1"]})

        async def banner() -> str:
            lines = [
                line for line in daemon.said.splitlines() if "; try in another shell: " in line
            ]
            return lines[0] if lines else ""

        line = await until(banner, "the banner", 10)
        shell = Program(["/bin/sh", "-c", line.partition("; try in another shell: ")[2]])
        ended = await shell.end()
        self.assertIn("\nfirst  Active  fake 0.1 ", ended.out, ended.err)

    async def test_human_log(self) -> None:
        """One line for each thing of ours, and none of Twisted's chatter."""
        daemon = self.daemon()
        endpoints = await daemon.start()
        await send("GET", endpoints["api"] + "/v1.1/demo/jobs")
        await daemon.stop()
        lines = daemon.said.splitlines()
        self.assertEqual([line for line in lines if " svcd." not in line], [])
        self.assertEqual([line for line in lines if "factory" in line], [])
        self.assertTrue(any("GET /v1.1/demo/jobs answered 200" in line for line in lines), lines)

    async def test_settings_come_from_flag_environment_and_file(self) -> None:
        """In this order of precedence."""
        folder = Path(self.mktemp())
        folder.mkdir()
        names = ("tenant", "username", "password")
        lines = [f'{name} = "from-file"' for name in names]
        (folder / "svcd.toml").write_text("\n".join(["[embedded]", *lines]))
        program = self.program(
            *("twistd", "-n", "--pidfile=", "svcd", "--config", "svcd.toml", *LISTEN),
            *("--set", "server.state_dir=state", "--set", "embedded.tenant=from-flag"),
            environment={f"SVCD_EMBEDDED_{name.upper()}": "from-variable" for name in names[:2]},
            folder=str(folder),
        )

        async def ready() -> bool:
            self.assertIsNone(program.code, program.err)
            return (folder / "state/endpoints.json").exists()

        await until(ready, "endpoints.json", READY_S)
        told = json.loads((folder / "state/endpoints.json").read_text())
        given = [told[name] for name in names]
        self.assertEqual(given, ["from-flag", "from-variable", "from-file"])

    async def test_request_in_flight_is_finished(self) -> None:
        """An upload that is half way when the daemon is told to stop is stored."""
        daemon = self.daemon()
        told = await daemon.start()
        body = _SlowBody(b"a" * 50_000, b"b" * 50_000)
        url = f"{told['api']}/v1.1/{told['tenant']}/job-binary-internals/slow"
        client = treq.client.HTTPClient(Agent(reactor))
        answer = client.put(url, data=body)
        await with_deadline(reactor, 10, "the first half", body.begun)

        async def taken_up() -> bool:
            metrics = await send("GET", f"{told['api']}/metrics")
            return b"svcd_requests_in_flight 2.0" in metrics.body  # this one is the other

        await until(taken_up, "the daemon to have the first half", 10)
        daemon.program.signal(signal.SIGTERM)

        async def stopping() -> bool:
            return "Stopping" in daemon.said

        await until(stopping, "the stop to begin", 10)
        body.finish()
        response = await with_deadline(reactor, 10, "the answer", answer)
        stored = (await response.json())["job_binary_internal"]
        self.assertEqual((response.code, stored["datasize"]), (202, 100_000))
        ended = await daemon.program.end(20)
        self.assertEqual((ended.code, ended.err), (0, ""), ended)
        url = f"{(await daemon.start())['api']}/v1.1/{told['tenant']}/job-binary-internals"
        read = await send("GET", f"{url}/{stored['id']}/data")
        self.assertEqual(read.body, b"a" * 50_000 + b"b" * 50_000)

    async def test_embedded_cloud_keeps_the_port_that_it_was_given(self) -> None:
        """Jobs that run on know its URL; a port that another program has taken is no fault."""
        daemon = self.daemon()
        first = (await daemon.start())["identity"]
        await daemon.kill()
        self.assertEqual((await daemon.start())["identity"], first)
        await daemon.stop()
        taken = socket.create_server(("127.0.0.1", int(first.split(":")[2].split("/")[0])))
        self.addCleanup(taken.close)
        self.assertNotEqual((await daemon.start())["identity"], first)

    async def test_a_cloud_and_a_daemon_in_one_folder(self) -> None:
        """Each keeps to its own part of the file, and the machines have one master."""
        cloud = self.daemon("svcd-cloud")
        told = await cloud.start()
        second = Daemon(cloud.state, "svcd")
        refused = second.spawn(fresh=False)
        self.assertIn("is in use by process", (await refused.end()).err)
        second.settings.update(
            {
                "cloud.kind": "openstack",
                "cloud.auth_url": told["identity"],
                "cloud.username": told["username"],
                "cloud.password": told["password"],
                "cloud.project": told["tenant"],
            }
        )
        program = second.spawn(fresh=False)
        self.addCleanup(program.signal, signal.SIGKILL)

        async def both() -> bool:
            self.assertIsNone(program.code, program.err)
            return "api" in (cloud.state / "endpoints.json").read_text()

        await until(both, "the daemon's part", 60)
        shown = json.loads((cloud.state / "endpoints.json").read_text())
        self.assertEqual({**told, "api": shown["api"], "pid": program.pid}, shown)
        self.assertEqual((await second.stop()).code, 0)
        self.assertEqual(json.loads((cloud.state / "endpoints.json").read_text()), told)

    async def test_terminated_while_starting(self) -> None:
        """No endpoints are left by a start that goes on behind the stop."""
        daemon = self.daemon()
        program = daemon.spawn()

        async def running() -> bool:
            return "Starting, process" in program.out

        await until(running, "the first log line", 30, 0.001)
        await self.ended_by(daemon, signal.SIGTERM)


class SecretTests(DaemonCase):
    """Passwords, tokens, keys and bodies, while a cluster and records live."""

    async def test_no_secret_is_logged_or_kept_in_the_clear(self) -> None:
        """Nor the token of the user, in no file, not even at debug level.

        The database has what must be kept sealed; the audit log has none of it.
        """
        daemon = self.daemon(
            auth__mode="keystone",
            log__level="debug",
            embedded__password="pass-of-the-user",
            log__format="json",
        )
        told = await daemon.start()
        token = await Tenant(told).token()
        tenant = Tenant(told, headers={"X-Auth-Token": token})
        account = {"user": "u", "password": "pass-one"}
        source = {"name": "s", "type": "objstore", "url": "objstore://c.svcd/in"}
        await tenant.done("POST", "/data-sources", {**source, "credentials": account})
        binary = {"name": "b", "url": "objstore-internal://c/o"}
        account = {"user": "u", "password": "pass-two"}
        await tenant.done("POST", "/job-binaries", {**binary, "extra": account})
        await tenant.until_active(await tenant.new_cluster("c", 1))
        refused = Tenant(told, headers={"X-Auth-Token": "token-of-nobody"})
        self.assertEqual((await refused.ask("GET", "/clusters")).status, 401)
        await daemon.stop()
        secrets = ["pass-one", "pass-two", "token-of-nobody", token]
        key = (daemon.state / "seal.key").read_text().strip()
        for secret in [*secrets, "pass-of-the-user", key, "PRIVATE KEY", "gAAAA"]:
            self.assertNotIn(secret, daemon.said)
        cloud = daemon.state / "cloud"  # it has tokens of its own, as any Keystone
        for path in daemon.state.rglob("*"):
            if path.is_file() and cloud not in path.parents:
                for secret in secrets:
                    self.assertNotIn(secret.encode(), path.read_bytes(), path)


@implementer(IBodyProducer)
class _SlowBody:
    """A request body that comes in two halves."""

    def __init__(self, first: bytes, second: bytes) -> None:
        self._first, self._second = first, second
        self.length = len(first) + len(second)
        self.begun: Deferred[None] = Deferred()
        self._done: Deferred[None] = Deferred()
        self._consumer: Any = None

    def startProducing(self, consumer: Any) -> Deferred[None]:
        self._consumer = consumer
        consumer.write(self._first)
        self.begun.callback(None)
        return self._done

    def finish(self) -> None:
        """Send the second half."""
        self._consumer.write(self._second)
        self._done.callback(None)

    def pauseProducing(self) -> None:
        """It is small."""

    def resumeProducing(self) -> None:
        """It is small."""

    def stopProducing(self) -> None:
        """The server has gone."""
