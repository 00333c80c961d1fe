"""`objstore://` of Hadoop in earnest, with the Keystone and the object store of the environment.

Needed: see tests/support/objstore/hadoop.py, and a platform (tests/support/real_openstack.py).
"""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Mapping
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SkipTest

from svcd.runtime.tasks import sleep
from tests.support.objstore.hadoop import PASSWORD, PREFIX, HadoopCase, Ran, site
from tests.support.processes import reactor
from tests.support.real_openstack import given, missing

OLD = {
    "mapred.mapper.class": "org.apache.hadoop.mapred.lib.TokenCountMapper",
    "mapred.reducer.class": "org.apache.hadoop.mapred.lib.LongSumReducer",
    "mapreduce.job.output.value.class": "org.apache.hadoop.io.LongWritable",
}
AT_ONCE = {
    "mapred.output.committer.class": "org.svcd.objstore.ObjStoreOldCommitter",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}
WORD_COUNT = {
    "mapred.mapper.new-api": "true",
    "mapreduce.job.map.class": "org.svcd.examples.WordCount$TokenMapper",
    "mapreduce.job.combine.class": "org.svcd.examples.WordCount$SumReducer",
    "mapreduce.job.reduce.class": "org.svcd.examples.WordCount$SumReducer",
    "mapreduce.job.output.value.class": "org.apache.hadoop.io.IntWritable",
}
FAILING = {
    "mapred.mapper.new-api": "true",
    "mapreduce.job.map.class": "org.svcd.probe.ObjStoreProbe$Failing",
    "mapreduce.job.reduces": "0",
}
PIG = """\
a = LOAD 'objstore://{name}.svc/in' USING TextLoader() AS (line:chararray);
b = FOREACH a GENERATE FLATTEN(TOKENIZE(line)) AS word;
c = FOREACH (GROUP b BY word) GENERATE group, COUNT(b);
STORE c INTO 'objstore://{name}.svc/pig out';
"""


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
        self.credentials = f"{base}/v3/users/{token['user']['id']}/application_credentials"
        self.store = next(
            str(endpoint["url"])
            for service in token["catalog"]
            if service["type"] == "object-store"
            for endpoint in service["endpoints"]
            if endpoint["interface"] == "public"
        )

    def call(self, method: str, url: str, body: object = None) -> bytes:
        """The body of an answer; 404 counts as an empty one. url: without a host, of the store."""
        headers = {"X-Auth-Token": self.token, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        whole = url if "://" in url else f"{self.store}/{url}"
        try:
            with urlopen(Request(whole, data, headers, method=method), timeout=60) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            if error.code == 404:
                return b""
            raise

    def new_credential(self, life_s: float) -> dict[str, str]:
        """An application credential of the user with the role member, as keys of a job."""
        end = datetime.datetime.fromtimestamp(reactor.seconds() + life_s, datetime.UTC)
        expires = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        roles = [{"name": "member"}]
        wanted = {"name": uuid.uuid4().hex, "roles": roles, "expires_at": expires}
        answer = self.call("POST", self.credentials, {"application_credential": wanted})
        made = json.loads(answer)["application_credential"]
        return {
            "credential.id": str(made["id"]),
            "credential.secret": str(made["secret"]),
            "credential.expires": expires,
        }

    def remove_credential(self, keys: Mapping[str, str]) -> None:
        self.call("DELETE", f"{self.credentials}/{keys['credential.id']}")

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


class ObjStoreLiveTest(HadoopCase):
    """Each test has a container of its own. Its commands run in one JVM."""

    async def container(self, start: str = "svcd test.ü ") -> str:
        """A new container, removed after the test."""
        self.platform = _Platform()
        self.name = start + uuid.uuid4().hex[:8]
        await deferToThread(self.platform.connect)
        await deferToThread(self.platform.call, "PUT", quote(self.name))
        self.addCleanup(deferToThread, self.platform.remove, self.name)
        return self.name

    async def does(self, *commands: tuple[str, ...], **keys: str) -> list[Ran]:
        """What the commands do, all of which must succeed. keys: besides the platform's."""
        ran = await self.does_or_fails(*commands, **keys)
        self.assertEqual([each.said for each in ran if each.code], [])
        return ran

    async def does_or_fails(self, *commands: tuple[str, ...], **keys: str) -> list[Ran]:
        given_keys = {**self.platform.keys(), **keys}
        return list(await self.steps(*((given_keys, command) for command in commands)))

    def put(self, text: str, name: str) -> tuple[str, ...]:
        """The command that stores a text. name: without the container."""
        local = self.local(uuid.uuid4().hex, text)
        return ("fs", "-put", local, f"objstore://{self.name}/{name}")

    def cat(self, name: str) -> tuple[str, ...]:
        return ("fs", "-cat", f"objstore://{self.name}/{name}")

    def job(
        self, values: Mapping[str, str], source: str, target: str, command: str = "job"
    ) -> tuple[str, ...]:
        """A job in one JVM. values: of its configuration. source, target: URLs or paths."""
        urls = (u if "://" in u else f"objstore://{self.name}/{u}" for u in (source, target))
        source, target = urls
        whole = {
            "mapreduce.framework.name": "local",
            "mapreduce.fileoutputcommitter.algorithm.version": "1",
            "mapreduce.input.fileinputformat.inputdir": source,
            "mapreduce.output.fileoutputformat.outputdir": target,
            "mapreduce.job.output.key.class": "org.apache.hadoop.io.Text",
            **values,
        }
        return (command, self.local(f"{uuid.uuid4().hex}.xml", site(whole)))

    async def test_behaves_as_a_file_system(self) -> None:
        """The probe's contract holds; a thousand objects are listed, moved and deleted whole."""
        # the name of a host, for Hadoop's FileContext takes nothing else in the authority of a URL
        name = await self.container("svcd.test-")
        contract, small = await self.does(
            ("contract", f"objstore://{name}/a folder"),
            ("small", f"objstore://{name}/many", "1000"),
        )
        bad = [line for line in contract.lines if not line.startswith("ok ")]
        self.assertEqual((bad, len(contract.lines)), ([], 13), contract.said)
        self.assertEqual(
            small.lines,
            [
                *("flat 1000", "folders 10", "one 100"),
                *("renamed true", "flat 1000", "deleted true", "gone true true"),
            ],
            small.said,
        )

    async def test_shell_puts_lists_moves_and_deletes(self) -> None:
        """The shell works with and without the suffix, on names in any script."""
        name = await self.container()
        here, there = f"objstore://{name}", f"objstore://{name}.svc"
        local = self.local("plain", "hello\n")
        *_, listed, read = await self.does(
            ("fs", "-put", local, f"{there}/größe 1+2#.txt"),
            ("fs", "-mkdir", f"{there}/to"),
            ("fs", "-mv", f"{here}/größe 1+2#.txt", f"{here}/to/日本 ☃"),
            ("fs", "-ls", "-C", f"{here}/to"),
            self.cat("to/日本 ☃"),
        )
        self.assertEqual((listed.lines, read.lines), ([f"{here}/to/日本 ☃"], ["hello"]))
        self.assertEqual(self.platform.names(name), ["to", "to/日本 ☃"])
        await self.does(("fs", "-rm", "-r", "-skipTrash", f"{here}/to"))
        self.assertEqual(self.platform.names(name), [])

    async def test_jobs_leave_their_parts_once_and_success(self) -> None:
        """Of the new and the old API, which has a committer of its own, too; and of Pig."""
        name = await self.container()
        *_, counted, _, _, counts = await self.does(
            self.put("a b a\nä b a\n", "in put"),
            self.put("b a\nb ö\n", "in"),
            self.job(WORD_COUNT, "in put", f"objstore://{name}.svc/out"),
            self.job(OLD, "in", "old", "oldjob"),
            self.job({**OLD, **AT_ONCE}, "in", "once", "oldjob"),
            self.cat("out/part-r-00000"),
        )
        self.assertEqual(counted.lines[-1], "records 2", counted.said)
        self.assertEqual(counts.lines, ["a\t3", "b\t2", "ä\t1"])
        await self.pig(name)
        (stored,) = await self.does(self.cat("pig out/part*"))
        self.assertEqual(stored.lines, ["a\t1", "b\t2", "ö\t1"])
        outputs = {"out": "part-r-00000", "old": "part-00000", "once": "part-00000"}
        expected = [(each, f"{each}/_SUCCESS", f"{each}/{part}") for each, part in outputs.items()]
        left = [each for each in self.platform.names(name) if not each.startswith("pig out")]
        self.assertEqual(left, sorted(["in", "in put", *(n for each in expected for n in each)]))
        self.assertIn("pig out/_SUCCESS", self.platform.names(name))

    async def pig(self, name: str) -> None:
        """A script reads and writes the store without a copy elsewhere."""
        values = {**self.keys(self.platform.keys()), "mapreduce.task.io.sort.mb": "16"}
        properties = self.local("p", "".join(f"{key}={values[key]}\n" for key in values))
        script = self.local("script.pig", PIG.format(name=name))
        pig = str(PREFIX / "bin/pig")
        done = await self.run_program(pig, "-x", "local", "-P", properties, "-f", script)
        self.assertEqual(done.returncode, 0, done.stderr)

    async def test_large_object_is_split(self) -> None:
        """75 MB are read by several maps, each line once."""
        name = await self.container()
        lines = "".join(f"w{line % 3} {'.' * 996}\n" for line in range(75_000))
        _, ran, counts = await self.does(
            self.put(lines, "large"),
            self.job(WORD_COUNT, "large", "out"),
            self.cat("out/part*"),
            **{"part.bytes": "12m", "block.bytes": "8m"},
        )
        self.assertEqual(ran.lines, ["maps 9", "records 75000"], ran.said)
        self.assertEqual(counts.lines, ["w0\t25000", "w1\t25000", "w2\t25000"])
        self.assertEqual(len(self.platform.names(f"{name}_segments")), 6)

    async def test_failed_job_leaves_no_part(self) -> None:
        """What the good maps of a failed job wrote does not stay."""
        name = await self.container()
        _, _, failed = await self.does_or_fails(
            self.put("good\n", "in1"),
            self.put("good\nfail\n", "in2"),
            self.job(FAILING, "in*", "out"),
        )
        self.assertEqual(failed.code, 1, failed.said)
        self.assertEqual(self.platform.names(name), ["in1", "in2", "out"])

    async def test_missing_object_is_told_from_a_missing_container(self) -> None:
        """A job that reads them fails with their names."""
        name = await self.container("svcd-test-")
        no_container, no_object = await self.does_or_fails(
            self.job(WORD_COUNT, "objstore://svcd-no-such/in", "objstore://svcd-no-such/out"),
            self.job(WORD_COUNT, "none", "out"),
        )
        self.assertIn(
            "objstore: NOT_FOUND: the container svcd-no-such does not exist", no_container.said
        )
        self.assertIn(f"Input path does not exist: objstore://{name}/none", no_object.said)

    async def test_application_credential_reads_and_writes_until_its_end(self) -> None:
        """Without user or password; what it says after its deletion, and after its end."""
        name = await self.container("svcd-")
        no_user = {"username": "", "password": ""}
        keys = await deferToThread(self.platform.new_credential, 3600.0)
        _, read = await self.does(self.put("content\n", "a"), self.cat("a"), **no_user, **keys)
        self.assertEqual(read.lines, ["content"])
        await deferToThread(self.platform.remove_credential, keys)
        short = await deferToThread(self.platform.new_credential, 2.0)
        await sleep(reactor, 2.5)
        base = {**self.platform.keys(), **no_user}
        look = ("fs", "-ls", f"objstore://{name}/")
        deleted, ended = await self.steps(({**base, **keys}, look), ({**base, **short}, look))
        await deferToThread(self.platform.remove_credential, short)
        self.assertIn(
            "objstore: UNAUTHORIZED: Keystone refused application credential", deleted.said
        )
        self.assertIn("objstore: EXPIRED: application credential", ended.said)
        self.assertIn(f"was valid until {short['credential.expires']}", ended.said)

    async def test_credentials_of_one_container_win(self) -> None:
        """Over the common ones; a wrong password names the user, the project and the place."""
        name = await self.container("svcd-test-")
        base = {**self.platform.keys(), "password": PASSWORD}
        own = {**base, f"container.{name}.password": self.platform.password}
        wrong, right = await self.steps(
            (base, ("fs", "-ls", f"objstore://{name}/")),
            (own, ("fs", "-ls", f"objstore://{name}.svc/")),
        )
        who = f"user {self.platform.username} of project {self.platform.project} at "
        self.assertIn(f"objstore: UNAUTHORIZED: Keystone refused {who}", wrong.said)
        self.assertEqual((wrong.code, right.code, right.lines), (1, 0, []), right.said)
