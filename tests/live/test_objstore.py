"""`objstore://` of Hadoop: under faults of a small peer, and in earnest with an object store.

Needed: the vanilla image (SVCD_VANILLA_PREFIX, default /opt/svcd/vanilla) and javac; for the second
half a platform with Keystone v3 and an object store (tests/support/real_openstack.py).
"""

from __future__ import annotations

import datetime
import json
import os
import random
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen
from xml.sax.saxutils import escape

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SkipTest, TestCase

from tests.support.objstore.peer import Fault, Peer
from tests.support.real_openstack import given, missing
from tests.support.sample import SLOW

skip = SLOW

PREFIX = Path(os.environ.get("SVCD_VANILLA_PREFIX", "/opt/svcd/vanilla"))
PROBE = Path(__file__).parents[1] / "support/objstore/org/svcd/probe/ObjStoreProbe.java"
PASSWORD = "never-to-be-seen"
RUN_TIMEOUT_S = 420
FAST = {"retries": "2", "read.timeout.ms": "1500", "connect.timeout.ms": "1000"}
LOG4J = """log4j.rootLogger=WARN,e
log4j.appender.e=org.apache.log4j.ConsoleAppender
log4j.appender.e.target=System.err
log4j.appender.e.layout=org.apache.log4j.SimpleLayout
"""
COMMITTERS = "org.svcd.objstore.ObjStoreCommitterFactory"
DATA = random.Random(1).randbytes(1_000_000)
READ_WHOLE = f"read {len(DATA)} {sum(DATA)}"


class Ran:
    """How a program ended; `said` is all that it wrote, log lines included."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.lines = done.stdout.splitlines()
        self.said = done.stdout + done.stderr


def _site(values: Mapping[str, str]) -> str:
    properties = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in values.items()
    )
    return f"<configuration>{properties}</configuration>"


class _HadoopCase(TestCase):
    """Runs programs of the image with a configuration of their own."""

    timeout = 600

    def setUp(self) -> None:
        if not (PREFIX / "bin/hadoop").is_file():
            raise SkipTest(
                f"no image at {PREFIX}: svcd image build vanilla, or SVCD_VANILLA_PREFIX"
            )
        if shutil.which("javac") is None:
            raise SkipTest("no javac on the PATH to compile the probe")
        self.folder = Path(tempfile.mkdtemp(prefix="svcd-objstore-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.java = ""
        # in trial's own folder, which is new in each run: compiled once for all tests
        self.classes = Path("objstore-probe").absolute()

    async def configure(self, keys: Mapping[str, str]) -> None:
        """Writes core-site.xml with these `fs.objstore.` keys, and compiles the probe."""
        self.keys = {
            "fs.objstore.impl": "org.svcd.objstore.ObjStoreFileSystem",
            "fs.AbstractFileSystem.objstore.impl": "org.svcd.objstore.ObjStoreFs",
            "hadoop.tmp.dir": str(self.folder / "tmp"),
            **{f"fs.objstore.{key}": value for key, value in keys.items() if value},
        }
        conf = self.folder / "conf"
        conf.mkdir()
        (conf / "core-site.xml").write_text(_site(self.keys), encoding="utf-8")
        (conf / "log4j.properties").write_text(LOG4J, encoding="utf-8")
        if not (self.classes / "org").is_dir():
            await self._compile()

    async def _compile(self) -> None:
        made = self.classes.with_suffix(".new")
        jars = f"{PREFIX}/hadoop/lib/*"
        done = await self.run_program(
            "javac", "-proc:none", "-cp", jars, "-d", str(made), str(PROBE)
        )
        self.assertEqual(done.code, 0, done.said)
        made.rename(self.classes)

    async def run_program(self, *command: str) -> Ran:
        """One program in its own thread; it is killed at its time-out."""
        environ = {
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "HADOOP_CONF_DIR": str(self.folder / "conf"),
            "HADOOP_CLASSPATH": f"{self.classes}:{PREFIX}/examples/*",
            "HADOOP_ROOT_LOGGER": "WARN,e",
            "HADOOP_CLIENT_OPTS": self.java,
            "TMPDIR": str(self.folder),
        }
        done = await deferToThread(
            subprocess.run,
            command,
            env=environ,
            cwd=self.folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=RUN_TIMEOUT_S,
        )
        ran = Ran(done)
        self.assertNotIn(PASSWORD, ran.said)
        return ran

    async def probe(self, *arguments: str) -> Ran:
        """The probe, see ObjStoreProbe.java."""
        return await self.run_program(
            str(PREFIX / "bin/hadoop"), "org.svcd.probe.ObjStoreProbe", *arguments
        )


class ObjStoreFaultTest(_HadoopCase):
    """A store that misbehaves."""

    async def peer(self, *faults: Fault, **keys: str) -> Peer:
        """A store with the object `a`, and the configuration for it."""
        peer = Peer(objects={"a": DATA}, faults=list(faults))
        self.addCleanup(peer.close)
        identity = {"username": "u", "password": PASSWORD, "project": "p"}
        await self.configure({"auth.url": peer.url, **identity, **FAST, **keys})
        return peer

    async def fails(self, *arguments: str) -> str:
        """The message of a probe that has to fail."""
        ran = await self.probe(*arguments)
        self.assertEqual(ran.code, 1, ran.said)
        return ran.lines[-1].removeprefix("error ")

    async def test_body_cut_twice_is_read_on(self) -> None:
        """A read goes on at its position after the connection broke."""
        await self.peer(Fault("GET", "/c/a", "cut"), Fault("GET", "/c/a", "cut"))
        ran = await self.probe("read", "objstore://c/a")
        self.assertEqual(ran.lines[-1], READ_WHOLE, ran.said)

    async def test_silence_and_503_are_tried_again(self) -> None:
        """A request that got no answer or a 503 is sent once more."""
        await self.peer(Fault("HEAD", "/c/a", "status"), Fault("GET", "/c/a", "silent"))
        ran = await self.probe("read", "objstore://c/a")
        self.assertEqual(ran.lines[-1], READ_WHOLE, ran.said)

    async def test_503_for_ever_is_a_server_error(self) -> None:
        """After the last try the code word is SERVER_ERROR."""
        peer = await self.peer(*(Fault("HEAD", "/c/a", "status") for _ in range(9)))
        said = await self.fails("read", "objstore://c/a")
        self.assertTrue(said.startswith("objstore: SERVER_ERROR: HEAD http://127.0.0.1:"), said)
        self.assertTrue(said.endswith("answered 503 in 3 tries"), said)
        self.assertEqual(peer.count("HEAD"), 3)

    async def test_silence_for_ever_is_unreachable(self) -> None:
        """After the last try the code word is UNREACHABLE, with the limits."""
        await self.peer(*(Fault("HEAD", "/c/a", "silent") for _ in range(9)), retries="0")
        said = await self.fails("read", "objstore://c/a")
        self.assertTrue(said.startswith("objstore: UNREACHABLE: HEAD "), said)
        self.assertIn("silence 1500 ms", said)

    async def test_silence_ends_with_the_patience(self) -> None:
        """However many tries are left: Hadoop would kill a task that is silent, without a word."""
        keys = {"retries": "12", "read.timeout.ms": "700", "patience.ms": "1000"}
        peer = await self.peer(*(Fault("HEAD", "/c/a", "silent") for _ in range(9)), **keys)
        said = await self.fails("read", "objstore://c/a")
        self.assertIn("got no answer in 2 tries", said)
        self.assertEqual(peer.count("HEAD"), 2)

    async def test_store_that_is_gone_for_seconds_is_waited_for(self) -> None:
        """With the tries that a job gets by default."""
        peer = await self.peer(*(Fault("HEAD", "/c/a", "status") for _ in range(6)), retries="")
        ran = await self.probe("read", "objstore://c/a")
        self.assertEqual(ran.lines[-1], READ_WHOLE, ran.said)
        self.assertEqual(peer.count("HEAD"), 7)

    async def test_refused_token_is_renewed_once(self) -> None:
        """One 401 costs one new token."""
        peer = await self.peer(Fault("GET", "/c/a", "status", 401))
        ran = await self.probe("read", "objstore://c/a")
        self.assertEqual(ran.lines[-1], READ_WHOLE, ran.said)
        self.assertEqual(peer.tokens, 2)

    async def test_refused_new_token_is_unauthorized(self) -> None:
        """A second 401 names the user, the project and the place."""
        peer = await self.peer(*(Fault("HEAD", "/c/a", "status", 401) for _ in range(9)))
        said = await self.fails("read", "objstore://c/a")
        self.assertTrue(
            said.startswith("objstore: UNAUTHORIZED: the object store refused user u of project p"),
            said,
        )
        self.assertEqual(peer.tokens, 2)

    async def test_401_while_keystone_is_out_of_order_shows_keystone(self) -> None:
        """When the token cannot be renewed, the failure of Keystone is the one that is shown."""
        peer = await self.peer(Fault("GET", "/c/a", "status", 401))
        peer.fail_tokens_after = 1
        said = await self.fails("read", "objstore://c/a")
        self.assertTrue(said.startswith("objstore: SERVER_ERROR: POST "), said)

    async def test_refused_user_is_unauthorized(self) -> None:
        """Keystone's 401 is not tried again."""
        peer = await self.peer()
        peer.refuse_user = True
        said = await self.fails("read", "objstore://c/a")
        self.assertTrue(
            said.startswith("objstore: UNAUTHORIZED: Keystone refused user u of project p at "),
            said,
        )
        self.assertEqual(peer.count("POST"), 1)

    async def with_credential(self, *refusals: int, **keys: str) -> Peer:
        """A store whose Keystone gets an application credential, and answers so."""
        peer = await self.peer(
            **{"credential.id": "c1", "credential.secret": PASSWORD, **keys},
        )
        peer.refuse_user = bool(refusals)
        peer.refusal = next(iter(refusals), 401)
        return peer

    async def test_application_credential_logs_in_without_a_scope(self) -> None:
        """It goes before the user of all containers."""
        peer = await self.with_credential()
        ran = await self.probe("read", "objstore://c/a")
        self.assertEqual(ran.lines[-1], READ_WHOLE, ran.said)
        login = {"id": "c1", "secret": PASSWORD}
        identity = {"methods": ["application_credential"], "application_credential": login}
        self.assertEqual(json.loads(peer.logins[0]), {"auth": {"identity": identity}})

    async def test_user_of_a_container_goes_before_the_common_application_credential(self) -> None:
        """A job may name a user of its own for a container."""
        own = {"container.c.username": "o", "container.c.password": PASSWORD}
        peer = await self.with_credential(**own)
        ran = await self.probe("read", "objstore://c/a")
        self.assertEqual(ran.lines[-1], READ_WHOLE, ran.said)
        self.assertIn('"name":"o"', peer.logins[0])

    async def test_deleted_application_credential_is_unauthorized(self) -> None:
        """Keystone's 404 is about the credential."""
        await self.with_credential(404)
        said = await self.fails("read", "objstore://c/a")
        start = "objstore: UNAUTHORIZED: Keystone refused application credential c1 of project p"
        self.assertTrue(said.startswith(start), said)

    async def test_ended_application_credential_is_expired(self) -> None:
        """The job then knows when it ended."""
        end = {"credential.expires": "2026-01-01T00:00:00Z"}
        await self.with_credential(401, **end)
        said = await self.fails("read", "objstore://c/a")
        self.assertTrue(said.startswith("objstore: EXPIRED: application credential c1 "), said)
        self.assertTrue(said.endswith("was valid until 2026-01-01T00:00:00Z"), said)

    async def test_refused_account_is_unauthorized_where_it_is_used(self) -> None:
        """With the words of svcd, and without a request to Keystone."""
        peer = await self.peer(**{"container.d.refused": "user ann is refused"})
        said = (await self.probe("read", "objstore://d/a")).said
        self.assertIn("objstore: UNAUTHORIZED: user ann is refused", said)
        self.assertEqual(peer.count("POST"), 0)
        ran = await self.probe("read", "objstore://c/a")
        self.assertEqual(ran.lines[-1], READ_WHOLE, ran.said)

    async def test_refused_application_credential_before_its_end_is_unauthorized(self) -> None:
        """Its end is not the reason."""
        await self.with_credential(401, **{"credential.expires": "2199-01-01T00:00:00Z"})
        said = await self.fails("read", "objstore://c/a")
        self.assertTrue(said.startswith("objstore: UNAUTHORIZED: Keystone refused app"), said)

    async def test_403_is_forbidden(self) -> None:
        """The code word is FORBIDDEN."""
        await self.peer(Fault("HEAD", "/c/a", "status", 403))
        said = await self.fails("read", "objstore://c/a")
        self.assertTrue(said.startswith("objstore: FORBIDDEN: user u of project p"), said)

    async def test_refused_connection_is_unreachable(self) -> None:
        """The address is named."""
        await self.peer(**{"auth.url": "http://127.0.0.1:1/v3", "retries": "1"})
        said = await self.fails("read", "objstore://c/a")
        self.assertTrue(
            said.startswith("objstore: UNREACHABLE: POST http://127.0.0.1:1/v3/auth/tokens"), said
        )
        self.assertIn("in 2 tries: Connection refused", said)

    async def test_missing_key_is_misconfigured(self) -> None:
        """The key is named."""
        await self.peer(project="")
        said = (await self.probe("read", "objstore://c/a")).said
        self.assertIn("objstore: MISCONFIGURED: neither fs.objstore.project nor ", said)

    async def test_missing_object_and_container_are_named(self) -> None:
        """Both are NOT_FOUND."""
        await self.peer()
        said = await self.fails("read", "objstore://c/b")
        self.assertEqual(said, "objstore: NOT_FOUND: objstore://c/b does not exist")
        said = await self.fails("read", "objstore://d/b")
        self.assertTrue(
            said.startswith("objstore: NOT_FOUND: the container d does not exist"), said
        )

    async def test_stalled_upload_is_sent_again(self) -> None:
        """A peer that takes no data is left after the read time-out."""
        peer = await self.peer(Fault("PUT", "/c/b", "stall"))
        ran = await self.probe("write", "objstore://c/b", "40000000")
        self.assertEqual(ran.lines[-1], "written 40000000", ran.said)
        self.assertEqual((len(peer.objects["b"]), peer.count("PUT")), (40_000_000, 2))

    async def test_upload_cut_off_by_an_answer_is_sent_again(self) -> None:
        """A 401 that comes while the body is being sent ends in a second try."""
        peer = await self.peer(Fault("PUT", "/c/b", "early", 401))
        ran = await self.probe("write", "objstore://c/b", "40000000")
        self.assertEqual(ran.lines[-1], "written 40000000", ran.said)
        self.assertEqual(len(peer.objects["b"]), 40_000_000)

    async def test_twelve_thousand_objects_as_input(self) -> None:
        """A job's client lists them in pages, without a request for each, in a small heap."""
        peer = await self.peer()
        peer.page = 5000
        peer.objects = {f"in/n{number:05d}": b"one line\n" for number in range(12_000)}
        self.java = "-Xmx80m"
        ran = await self.probe("many", "objstore://c/in")
        self.assertEqual(
            ran.lines, ["listed 12000", "matched 100", "splits 12000", "combined 1"], ran.said
        )
        self.assertLess(len(peer.requests), 30)

    async def test_commit_takes_three_requests_for_a_file(self) -> None:
        """With either algorithm; Hadoop's own committer takes eight, one after the other."""
        peer = await self.peer()
        for algorithm in ("1", "2"):
            del peer.requests[:]
            out = f"objstore://c/out{algorithm}"
            ran = await self.probe("commit", out, "300", algorithm, COMMITTERS)
            self.assertEqual(ran.code, 0, ran.said)
            moves = [each for each in peer.requests if "/part-" in each]
            writes, renames = 2 * 300, {"1": 2 * 300, "2": 0}[algorithm]
            self.assertEqual(len(moves), writes + renames + 3 * 300)
        names = [f"day={number % 3}/part-{number:05d}" for number in range(300)]
        left = {name: body for name, body in peer.objects.items() if name != "a" and body}
        expected = {
            f"out{a}/{name}": name.rpartition("/")[2].encode() for a in "12" for name in names
        }
        self.assertEqual(left, expected)

    async def test_upload_with_lost_answer_succeeds(self) -> None:
        """An upload whose answer was lost is sent again and counts once."""
        peer = await self.peer(Fault("PUT", "/c/b", "lost"), Fault("PUT", "/c/b", "status", 401))
        ran = await self.probe("write", "objstore://c/b", "100000")
        self.assertEqual(ran.lines[-1], "written 100000", ran.said)
        self.assertEqual(sorted(peer.objects), ["a", "b"])

    async def test_refused_upload_leaves_nothing(self) -> None:
        """Without room no object appears."""
        peer = await self.peer(Fault("PUT", "/c/b", "status", 413))
        said = await self.fails("write", "objstore://c/b", "100000")
        self.assertEqual(said, "objstore: REFUSED: PUT objstore://c/b was answered 413: Not now")
        self.assertEqual(sorted(peer.objects), ["a"])


class _Platform:
    """The platform of the environment; makes and removes the containers of a test. Blocking."""

    def __init__(self) -> None:
        names = ("AUTH_URL", "USERNAME", "PASSWORD", "PROJECT")
        lacking = missing(*names)
        if lacking:
            raise SkipTest(lacking)
        self.auth_url, self.username, self.password, self.project = map(given, names)

    def keys(self) -> dict[str, str]:
        """For the configuration."""
        return {
            "auth.url": self.auth_url,
            "username": self.username,
            "password": self.password,
            "project": self.project,
        }

    def connect(self) -> None:
        """Gets a token and the address of the store."""
        domain = {"id": "default"}
        user = {"name": self.username, "password": self.password, "domain": domain}
        identity = {"methods": ["password"], "password": {"user": user}}
        scope = {"project": {"name": self.project, "domain": domain}}
        base = self.auth_url.rstrip("/").removesuffix("/v3")
        body = json.dumps({"auth": {"identity": identity, "scope": scope}}).encode()
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(f"{base}/v3/auth/tokens", body, headers), timeout=30) as answer:
            self.token = str(answer.headers["X-Subject-Token"])
            token = json.load(answer)["token"]
        catalog = token["catalog"]
        user = token["user"]["id"]
        self.credentials = f"{base}/v3/users/{user}/application_credentials"
        self.store = next(
            str(endpoint["url"])
            for service in catalog
            if service["type"] == "object-store"
            for endpoint in service["endpoints"]
            if endpoint["interface"] == "public"
        )

    def call(self, method: str, path: str) -> bytes:
        """One request to the account; 404 counts as an empty answer."""
        headers = {"X-Auth-Token": self.token}
        request = Request(f"{self.store}/{path}", None, headers, method=method)
        try:
            with urlopen(request, timeout=60) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            if error.code == 404:
                return b""
            raise

    def new_credential(self, life_s: float) -> dict[str, str]:
        """An application credential of the user with the role member, as keys of a job."""
        from twisted.internet import reactor  # noqa: TID251

        clock: Any = reactor
        end = datetime.datetime.fromtimestamp(clock.seconds() + life_s, datetime.UTC)
        expires = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        roles = [{"name": "member"}]
        wanted = {"name": uuid.uuid4().hex, "roles": roles, "expires_at": expires}
        body = json.dumps({"application_credential": wanted}).encode()
        headers = {"X-Auth-Token": self.token, "Content-Type": "application/json"}
        with urlopen(Request(self.credentials, body, headers), timeout=30) as answer:
            made = json.load(answer)["application_credential"]
        return {
            "credential.id": str(made["id"]),
            "credential.secret": str(made["secret"]),
            "credential.expires": expires,
        }

    def remove_credential(self, id_: str) -> None:
        """Delete it."""
        headers = {"X-Auth-Token": self.token}
        url = f"{self.credentials}/{id_}"
        with urlopen(Request(url, None, headers, method="DELETE"), timeout=30):
            pass

    def names(self, container: str) -> list[str]:
        """All objects of the container (of one page)."""
        listed = self.call("GET", f"{quote(container)}?format=json") or b"[]"
        return [str(entry["name"]) for entry in json.loads(listed)]

    def remove(self, container: str) -> None:
        """The container with all that is in it."""
        for each in (container, f"{container}_segments"):
            for name in self.names(each):
                self.call("DELETE", f"{quote(each)}/{quote(name)}")
            self.call("DELETE", quote(each))


class ObjStoreLiveTest(_HadoopCase):
    """A real object store."""

    def setUp(self) -> None:
        super().setUp()
        self.platform = _Platform()

    async def container(self, start: str = "svcd test.ü ", **keys: str) -> str:
        """A new container, removed after the test, and the configuration for it."""
        name = start + uuid.uuid4().hex[:8]
        await deferToThread(self.platform.connect)
        await deferToThread(self.platform.call, "PUT", quote(name))
        self.addCleanup(deferToThread, self.platform.remove, name)
        await self.configure({**self.platform.keys(), **keys})
        return name

    async def test_application_credential_reads_and_writes_until_its_end(self) -> None:
        """Without user or password; what it says after its deletion, and after its end."""
        await deferToThread(self.platform.connect)
        keys = await deferToThread(self.platform.new_credential, 3600.0)
        no_user = {"username": "", "password": ""}
        name = await self.container("svcd-", **no_user, **keys)
        await self.good_shell("-put", self.local("in", "content"), f"objstore://{name}/a")
        self.assertIn("content", (await self.good_shell("-cat", f"objstore://{name}/a")).said)
        await deferToThread(self.platform.remove_credential, keys["credential.id"])
        said = (await self.shell("-ls", f"objstore://{name}/")).said
        self.assertIn("objstore: UNAUTHORIZED: Keystone refused application credential", said)
        short = await deferToThread(self.platform.new_credential, 2.0)
        given = [f"-Dfs.objstore.{key}={value}" for key, value in short.items()]
        await deferToThread(time.sleep, 2.5)
        said = (await self.shell(*given, "-ls", f"objstore://{name}/")).said
        self.assertIn("objstore: EXPIRED: application credential", said)
        self.assertIn(f"was valid until {short['credential.expires']}", said)
        await deferToThread(self.platform.remove_credential, short["credential.id"])

    async def shell(self, *arguments: str) -> Ran:
        """Hadoop's `fs` command."""
        return await self.run_program(str(PREFIX / "bin/hadoop"), "fs", *arguments)

    async def good_shell(self, *arguments: str) -> Ran:
        """The same, and it has to succeed."""
        ran = await self.shell(*arguments)
        self.assertEqual(ran.code, 0, ran.said)
        return ran

    def local(self, name: str, text: str) -> str:
        """A file on this machine."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    async def job(self, command: str, source: str, target: str, **more: str) -> Ran:
        """A job in one JVM; `more` are keys with `__` for dots."""
        values = {
            "mapreduce.framework.name": "local",
            "mapreduce.fileoutputcommitter.algorithm.version": "1",
            "mapreduce.input.fileinputformat.inputdir": source,
            "mapreduce.output.fileoutputformat.outputdir": target,
            "mapreduce.job.output.key.class": "org.apache.hadoop.io.Text",
            **{
                key.replace("__", ".").replace("new_api", "new-api"): value
                for key, value in more.items()
            },
        }
        return await self.probe(command, self.local("job.xml", _site(values)))

    async def word_count(self, source: str, target: str) -> Ran:
        """The word count of the image's examples."""
        reducer = "org.svcd.examples.WordCount$SumReducer"
        return await self.job(
            "job",
            source,
            target,
            mapred__mapper__new_api="true",
            mapreduce__job__map__class="org.svcd.examples.WordCount$TokenMapper",
            mapreduce__job__combine__class=reducer,
            mapreduce__job__reduce__class=reducer,
            mapreduce__job__output__value__class="org.apache.hadoop.io.IntWritable",
        )

    async def test_behaves_as_a_file_system(self) -> None:
        """All checks of the probe's contract hold."""
        # the name of a host, for Hadoop's FileContext takes nothing else in the authority of a URL
        name = await self.container("svcd.test-")
        ran = await self.probe("contract", f"objstore://{name}/a folder")
        self.assertEqual([line for line in ran.lines if not line.startswith("ok ")], [], ran.said)
        self.assertEqual((ran.code, len(ran.lines)), (0, 13), ran.said)

    async def test_a_thousand_objects(self) -> None:
        """Many small objects are listed, moved and deleted whole."""
        name = await self.container()
        ran = await self.probe("small", f"objstore://{name}/many", "1000")
        self.assertEqual(
            ran.lines,
            [
                *("flat 1000", "folders 10", "one 100"),
                *("renamed true", "flat 1000", "deleted true", "gone true true"),
            ],
            ran.said,
        )

    async def test_shell_puts_lists_moves_and_deletes(self) -> None:
        """The shell works with and without the suffix, on names in any script."""
        name = await self.container()
        here, there = f"objstore://{name}", f"objstore://{name}.svc"
        await self.good_shell("-put", self.local("plain", "hello\n"), f"{there}/größe 1+2#.txt")
        await self.good_shell("-mkdir", f"{there}/to")
        await self.good_shell("-mv", f"{here}/größe 1+2#.txt", f"{here}/to/日本 ☃")
        listed = await self.good_shell("-ls", "-C", f"{here}/to")
        self.assertEqual(listed.lines, [f"{here}/to/日本 ☃"])
        read = await self.good_shell("-cat", f"{here}/to/日本 ☃")
        self.assertEqual(read.lines, ["hello"])
        self.assertEqual(self.platform.names(name), ["to", "to/日本 ☃"])
        await self.good_shell("-rm", "-r", "-skipTrash", f"{here}/to")
        self.assertEqual(self.platform.names(name), [])

    async def test_word_count_leaves_parts_and_success(self) -> None:
        """A job leaves its parts, once each, and _SUCCESS, and nothing else."""
        name = await self.container()
        await self.good_shell(
            "-put", self.local("words", "a b a\nä b a\n"), f"objstore://{name}/in put"
        )
        ran = await self.word_count(f"objstore://{name}/in put", f"objstore://{name}.svc/out")
        self.assertEqual((ran.code, ran.lines[-1]), (0, "records 2"), ran.said)
        self.assertEqual(
            self.platform.names(name), ["in put", "out", "out/_SUCCESS", "out/part-r-00000"]
        )
        counts = await self.good_shell("-cat", f"objstore://{name}/out/part-r-00000")
        self.assertEqual(counts.lines, ["a\t3", "b\t2", "ä\t1"])

    async def test_large_object_is_split(self) -> None:
        """300 MB are read by several maps, each line once."""
        name = await self.container(**{"part.bytes": "48m"})
        path = self.folder / "large"
        with path.open("w") as out:
            for line in range(300_000):
                out.write(f"w{line % 3} {'.' * 996}\n")
        await self.good_shell("-put", str(path), f"objstore://{name}/large")
        path.unlink()
        ran = await self.word_count(f"objstore://{name}/large", f"objstore://{name}/out")
        self.assertEqual(ran.lines, ["maps 9", "records 300000"], ran.said)
        counts = await self.good_shell("-cat", f"objstore://{name}/out/part*")
        self.assertEqual(counts.lines, ["w0\t100000", "w1\t100000", "w2\t100000"])
        self.assertEqual(len(self.platform.names(f"{name}_segments")), 6)

    async def test_job_of_the_old_api(self) -> None:
        """Jobs of the old API use the same committer."""
        name = await self.container()
        await self.good_shell("-put", self.local("words", "b a b\n"), f"objstore://{name}/in")
        ran = await self.job(
            "oldjob",
            f"objstore://{name}/in",
            f"objstore://{name}/out",
            mapred__mapper__class="org.apache.hadoop.mapred.lib.TokenCountMapper",
            mapred__reducer__class="org.apache.hadoop.mapred.lib.LongSumReducer",
            mapreduce__job__output__value__class="org.apache.hadoop.io.LongWritable",
        )
        self.assertEqual(ran.code, 0, ran.said)
        self.assertEqual(self.platform.names(name), ["in", "out", "out/_SUCCESS", "out/part-00000"])

    async def test_job_of_the_old_api_commits_at_once(self) -> None:
        """With the committer for it."""
        name = await self.container()
        await self.good_shell("-put", self.local("words", "b a b\n"), f"objstore://{name}/in")
        ran = await self.job(
            "oldjob",
            f"objstore://{name}/in",
            f"objstore://{name}/out",
            mapred__mapper__class="org.apache.hadoop.mapred.lib.TokenCountMapper",
            mapred__reducer__class="org.apache.hadoop.mapred.lib.LongSumReducer",
            mapreduce__job__output__value__class="org.apache.hadoop.io.LongWritable",
            mapred__output__committer__class="org.svcd.objstore.ObjStoreOldCommitter",
            mapreduce__fileoutputcommitter__algorithm__version="2",
        )
        self.assertEqual(ran.code, 0, ran.said)
        self.assertEqual(self.platform.names(name), ["in", "out", "out/_SUCCESS", "out/part-00000"])

    async def test_failed_job_leaves_no_part(self) -> None:
        """What the good maps of a failed job wrote does not stay."""
        name = await self.container()
        for key, text in (("1", "good\n"), ("2", "good\nfail\n")):
            await self.good_shell("-put", self.local(key, text), f"objstore://{name}/in{key}")
        ran = await self.job(
            "job",
            f"objstore://{name}/in*",
            f"objstore://{name}/out",
            mapred__mapper__new_api="true",
            mapreduce__job__map__class="org.svcd.probe.ObjStoreProbe$Failing",
            mapreduce__job__reduces="0",
        )
        self.assertEqual(ran.code, 1, ran.said)
        self.assertEqual(self.platform.names(name), ["in1", "in2", "out"])

    async def test_pig_loads_and_stores(self) -> None:
        """A script reads and writes the store without a copy elsewhere."""
        name = await self.container()
        await self.good_shell("-put", self.local("words", "b a\nb ö\n"), f"objstore://{name}/in")
        script = self.local(
            "script.pig",
            f"a = LOAD 'objstore://{name}.svc/in' USING TextLoader() AS (line:chararray);\n"
            "b = FOREACH a GENERATE FLATTEN(TOKENIZE(line)) AS word;\n"
            "c = FOREACH (GROUP b BY word) GENERATE group, COUNT(b);\n"
            f"STORE c INTO 'objstore://{name}.svc/pig out';\n",
        )
        values = {**self.keys, "mapreduce.task.io.sort.mb": "16"}
        properties = self.local("p", "".join(f"{key}={values[key]}\n" for key in values))
        ran = await self.run_program(
            str(PREFIX / "bin/pig"), "-x", "local", "-P", properties, "-f", script
        )
        self.assertEqual(ran.code, 0, ran.said)
        stored = await self.good_shell("-cat", f"objstore://{name}/pig out/part*")
        self.assertEqual(stored.lines, ["a\t1", "b\t2", "ö\t1"])
        self.assertIn("pig out/_SUCCESS", self.platform.names(name))

    async def test_wrong_password_names_user_and_project(self) -> None:
        """The message says who was refused and where."""
        name = await self.container(password=PASSWORD)
        ran = await self.shell("-ls", f"objstore://{name}/")
        self.assertEqual(ran.code, 1, ran.said)
        who = f"user {self.platform.username} of project {self.platform.project} at "
        self.assertIn(f"objstore: UNAUTHORIZED: Keystone refused {who}", ran.said)

    async def test_credentials_of_one_container(self) -> None:
        """A container's own credentials win over the common ones."""
        name = await self.container(password=PASSWORD)
        own = f"-Dfs.objstore.container.{name}.password={self.platform.password}"
        ran = await self.good_shell(own, "-ls", f"objstore://{name}.svc/")
        self.assertEqual(ran.lines, [], ran.said)

    async def test_missing_container_is_named(self) -> None:
        """A job that reads a container that does not exist fails with its name."""
        await self.container()
        ran = await self.word_count("objstore://svcd-no-such/in", "objstore://svcd-no-such/out")
        self.assertEqual(ran.code, 1, ran.said)
        self.assertIn("objstore: NOT_FOUND: the container svcd-no-such does not exist", ran.said)

    async def test_missing_object_is_told_from_a_missing_container(self) -> None:
        """The same job with a container that is there."""
        name = await self.container("svcd-test-")
        ran = await self.word_count(f"objstore://{name}/none", f"objstore://{name}/out")
        self.assertEqual(ran.code, 1, ran.said)
        self.assertIn(f"Input path does not exist: objstore://{name}/none", ran.said)
