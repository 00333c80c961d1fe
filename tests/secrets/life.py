"""What befalls a tenant by a seed, with a canary in every credential, and all that is said of it.

Said is: a log at debug level, error answers, metrics, /openapi.json, events, `svcd why`, warnings
of Python and the repr of every record that lives. Data sources, job binaries, options of clusters
and the `job_configs` of an execution are answered to their owner as the interface says, and are
not searched. The name of a user is no secret: a failure says whom the identity service refuses.
"""

from __future__ import annotations

import gc
import io
import json
import random
import warnings
from collections.abc import Iterator
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.logger import globalLogPublisher

from svcd.cli.cluster_story import of_cluster
from svcd.cli.job_story import Look, of_execution
from svcd.embedded.faults import FaultRule
from svcd.ports.store import Page
from svcd.runtime import logs
from svcd.store.store import SqlStore
from svcd.testing import CLOUD_URL, Answer, FakeService
from tests.secrets.evil import STATUSES, EvilCloud, EvilMachines
from tests.secrets.search import Canaries
from tests.simulation.history import EFFECTS, PLACES
from tests.support.fakes import cluster_body

NEVER = ("PRIVATE KEY", "f1:gAAAA")
SHAPES_OF_TOKENS = ("", " ", "\t", "Bearer ", "'", '"', "é", "\x7f", "x" * 9000)
_SMTP = "oozie.email.smtp.password"
_EVIL_RATE = 0.25
_KEY_HEAD = 100
"""Characters of a key file that are the same in all of them."""


_NOT_READ = (
    "svcd.embedded",
    "svcd.testing",
    "svcd.provisioning.distributions",
    "svcd.model.failures",
    "svcd.model.shapes",
)
"""Records of peers, and those that are made once and hold nothing of a tenant."""


class Bug(Exception):
    """A defect whose text quotes what it had at hand."""


class Life:
    """said: all that may be read by others, by its place.

    rounds: how long it is. crowd: requests of each round besides, most of them refused.
    """

    def __init__(self, seed: int, rounds: int, crowd: int) -> None:
        self.rng = random.Random(f"secrets {seed}")
        self.canaries = Canaries(seed)
        self.said: dict[str, str] = {}
        self._rounds = rounds
        self._crowd = crowd
        self._stream = io.StringIO()
        self._observer = logs.observer(self._stream, ("human", "json")[seed % 2], "debug")
        globalLogPublisher.addObserver(self._observer)
        self._warnings = warnings.catch_warnings(record=True)
        self._warned = self._warnings.__enter__()
        warnings.simplefilter("always")
        self._password = self.canary("user")
        self.svcd = FakeService(
            settings={
                "auth.mode": ("keystone", "none")[seed // 2 % 2],
                "log.access": "true",
                "embedded.password": self._password,
                "embedded.token_ttl_s": "600",
                "provisioning.spawn_deadline_s": "200",
                "workflow.submit_deadline_s": "200",
                "cloud.application_credential_id": "",
            },
            seed=seed,
        )
        self.evil = EvilCloud(self.svcd.cloud.resource, self.rng)
        self.svcd._memory.serve(CLOUD_URL, self.evil)
        self.machines = EvilMachines(self.rng)
        self.svcd.remote.script("^(?!.*svcd-facts)", self.machines)
        self.canaries.add("seal key", self.svcd._sealer.keys.seals.decode())
        self.token = ""

    def canary(self, what: str, around: str = "<&/é") -> str:
        return self.canaries.make(what, around)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """One request; an error is something that others may read."""
        given = {"X-Auth-Token": self.token, **headers}
        path = f"/v1.1/{self.svcd.tenant}{path}"
        answer = self.svcd.call(method, path, json=body, headers=given)
        if answer.status >= 400:
            self.note(f"{method} {path} {answer.status}", answer.body.decode("utf-8", "replace"))
        return answer

    def note(self, where: str, text: str) -> None:
        self.said[f"{len(self.said)} {where}"] = text

    # ---- the story ------------------------------------------------------------------------------

    def happen(self) -> None:
        """Good and bad requests, jobs that fail, peers in trouble or evil, bugs, restarts."""
        svcd = self.svcd
        self.token = svcd.token()
        binary = self._binary()
        clusters = [self._cluster(n) for n in range(2)]
        job = self.ask("POST", "/jobs", {"name": "j", "type": "Pig", "mains": [binary]})
        program = {"name": "s", "type": "Spark", "mains": [self._binary("s.py")]}
        spark = self.ask("POST", "/jobs", program)
        sources = [self._source(n) for n in range(2)]
        self._templates()
        for number in range(self._rounds):
            self._trouble()
            self._bad_requests()
            self._crowded()
            clusters[number % 2] = self._kept(clusters[number % 2], number)
            self._execute(job.json["job"]["id"], clusters[number % 2], sources)
            self._execute(spark.json["job"]["id"], clusters[number % 2], sources, True)
            svcd.advance(self.rng.choice([1.0, 20.0, 120.0]))
            if self.rng.random() < 0.3:
                self._behave()
                svcd.restart()
            self._fresh_token()
            if number % 4 == 3:
                self._look(clusters)
        self._fresh_token()
        svcd.advance(3600.0)
        self._fresh_token()
        self._look(clusters)
        self.note("/openapi.json", svcd.call("GET", "/openapi.json").body.decode())

    def _kept(self, cluster_id: str, number: int) -> str:
        """The cluster, or a new one in the place of one that failed."""
        shown = self.ask("GET", f"/clusters/{cluster_id}")
        status = shown.json["cluster"]["status"] if shown.status == 200 else "gone"
        if status not in ("Error", "gone"):
            return cluster_id
        if status == "Error":
            self.ask("DELETE", f"/clusters/{cluster_id}")
        return self._cluster(10 + number) or cluster_id

    def _behave(self) -> None:
        self.svcd.faults.clear()
        self.evil.rate = self.machines.rate = 0.0
        self._agent_without_bug()

    def _fresh_token(self) -> None:
        """The tokens of all are secrets, and so are trusts and the clusters' keys."""
        self._behave()
        self.token = self.svcd.token()
        state = self.svcd.cloud.core.state
        for token in state.tokens.values():
            self.canaries.add("token", token.id)
        for trust in state.trusts.values():
            self.canaries.add("trust", trust.id)
        for credential in state.credentials.values():
            self.canaries.add("job credential", credential.secret)
        store = SqlStore(self.svcd._database, self.svcd._sealer)
        tenant: Any = self.svcd.tenant
        reading = store.read(lambda tx: tx.clusters.page(tenant, Page()))
        for row in self.svcd.result_of(Deferred.fromCoroutine(_of(reading))):
            key = self.svcd._sealer.open(row.management_private_key).reveal()
            body = "".join(key.splitlines()[1:-1])
            self.canaries.add("management key", body[_KEY_HEAD:], row.management_public_key)

    def _binary(self, name: str = "b.pig") -> str:
        base = f"/v1.1/{self.svcd.tenant}/job-binary-internals/{name}"
        content = f"a = load '$INPUT'; -- {self.canary('binary')}\n" * 3
        headers = {"X-Auth-Token": self.token}
        made = self.svcd.call("PUT", base, data=content, headers=headers).json
        extra = {"user": "reader", "password": self.canary("extra")}
        self.ask("POST", "/job-binaries", {"name": "o", "url": "objstore-internal://c/o"})
        url = f"internaldb://{made['job_binary_internal']['id']}"
        body = {"name": name, "url": url, "extra": extra}
        return str(self.ask("POST", "/job-binaries", body).json["job_binary"]["id"])

    def _source(self, number: int) -> str:
        """The first one of a user who exists, the second one of another."""
        given = {"user": "reader", "password": self.canary("source")}
        if number == 0:
            given = {"user": "demo", "password": self._password}
        body: dict[str, Any] = {
            "name": f"s{number}",
            "type": "objstore",
            "url": f"objstore://c{number}.svcd/d",
            "credentials": given,
        }
        key = {"Idempotency-Key": f"source-{number}"}  # svcd keeps the answer, with the account
        return str(self.ask("POST", "/data-sources", body, **key).json["data_source"]["id"])

    def _cluster(self, number: int) -> str:
        body = cluster_body(self.svcd, f"c{number}", 1)
        body["cluster_configs"] = {"JobFlow": {_SMTP: self.canary("cluster-config")}}
        body["node_groups"][0]["node_configs"] = {"JobFlow": {_SMTP: self.canary("group-config")}}
        made = self.ask("POST", "/clusters", body)
        return str(made.json["cluster"]["id"]) if made.status == 202 else ""

    def _templates(self) -> None:
        configs = {"JobFlow": {_SMTP: self.canary("template-config")}}
        common = {"plugin_name": "fake", "engine_version": "0.1"}
        group = {"flavor_id": self.svcd.flavor_id, "node_processes": ["datanode"]}
        group |= {"name": "g", "node_configs": configs}
        self.ask("POST", "/node-group-templates", {**common, **group})
        self.ask("POST", "/node-group-templates", {**common, **group, "flavor_id": "none"})
        cluster = {**common, "name": "t", "cluster_configs": configs}
        self.ask("POST", "/cluster-templates", {**cluster, "node_groups": [{**group, "count": 1}]})
        self.ask("POST", "/cluster-templates", {**cluster, "node_groups": [group]})

    def _execute(
        self, job_id: str, cluster_id: str, sources: list[str], spark: bool = False
    ) -> None:
        configs = {
            "fs.swift.service.svcd.password": self.canary("job-config"),
            "oozie.launcher.x.password": self.canary("launcher-config"),
            "oozie.x.secret.key": self.canary("engine-config"),
            "svcd.fake.outcome": self.rng.choice(["succeed", "fail", "error", "hang"]),
        }
        args = [
            f"-Dx.password={self.canary('assigned', '')}",
            "--token",
            self.canary("flagged"),
            f"hdfs://u:{self.canary('userinfo', '')}@h/p",
        ]
        params = {
            "PASSWORD": self.canary("parameter"),
            "OPTS": f"secret={self.canary('option', '')}",
        }
        if spark:  # a program takes no params
            configs["spark.executorEnv.PASSWORD"] = params["PASSWORD"]
            configs["spark.hadoop.fs.objstore.password"] = params["OPTS"]
            params = {}
        body = {
            "cluster_id": cluster_id,
            "input_id": sources[0],
            "output_id": sources[1],
            "job_configs": {"configs": configs, "args": args, "params": params},
        }
        self.ask("POST", f"/jobs/{job_id}/execute", body)

    # ---- trouble --------------------------------------------------------------------------------

    def _trouble(self) -> None:
        if self.rng.random() < 0.5:
            self.evil.rate = self.rng.choice([_EVIL_RATE, 0.8])
            self.machines.rate = self.rng.choice([0.0, _EVIL_RATE, 1.0])
        if self.rng.random() < 0.2:
            self._agent_with_bug()
        for where, method, path in self.rng.sample(PLACES, 3):
            self.svcd.faults.add(
                FaultRule(
                    where=where,
                    method=method,
                    path=path,
                    effect=self.rng.choice(EFFECTS),
                    status=self.rng.choice(STATUSES),
                    times=self.rng.randint(1, 4),
                    after=self.rng.randint(0, 3),
                )
            )

    def _agent_with_bug(self) -> None:
        """Some requests end in an exception that quotes their headers and body."""
        memory: Any = self.svcd._memory
        rng = self.rng
        real = type(memory).request

        def request(method: bytes, uri: bytes, headers: Any = None, body: Any = None) -> Any:
            if uri.startswith(CLOUD_URL.encode()) and rng.random() < 0.2:
                content: bytes = getattr(body, "_body", b"")
                told = b"" if b"OS-TRUST" in content else content  # a bug may tell a trust's id
                raise Bug(f"{uri!r} {headers!r} {told!r}")
            return real(memory, method, uri, headers, body)

        memory.request = request

    def _agent_without_bug(self) -> None:
        vars(self.svcd._memory).pop("request", None)

    def _bad_requests(self) -> None:
        """Each has a secret where none belongs, or where one belongs but the rest is wrong."""
        given = {"user": "reader", "password": self.canary("bad")}
        url = "objstore://c.svcd/d"
        source = {"name": "s0", "type": "objstore", "url": url, "credentials": given}
        with_user = f"hdfs://u:{self.canary('url', '')}@h/d"
        for body in (
            source,
            {**source, "name": "bad name"},
            {**source, "url": "objstore://nothing"},
            {**source, "url": with_user, "type": "no"},
            {**source, "credentials": {"user": 1, "password": [self.canary("list")]}},
            {**source, "credentials": self.canary("text")},
            {**source, "credentials": {"pass": self.canary("value")}},
        ):
            self.ask("POST", "/data-sources", body)
        self.ask("POST", "/job-binaries", {"name": "n", "url": with_user, "extra": given})
        self.ask("POST", "/job-binaries", {"name": "n", "url": "internaldb://x", "extra": given})
        cluster = cluster_body(self.svcd, "bad", 1)
        for configs in (
            {"HDFS": {"dfs.replication": self.canary("config")}},
            {"HDFS": {"no": given}},
            {"JobFlow": {_SMTP: [self.canary("config list")]}},
            {"JobFlow": self.canary("options")},
        ):
            self.ask("POST", "/clusters", {**cluster, "cluster_configs": configs})
        login = {"user": "alice", "domain": "Default", "password": self.canary("login")}
        for body in (login, {**login, "password": [self.canary("login")]}, {**login, "x": 1}):
            answer = self.svcd.call("POST", "/console/login", json=body)
            self.note("POST login", answer.body.decode())
        for shape in SHAPES_OF_TOKENS:
            wrong = self.canaries.make("token", "").replace("+", "")
            value = (shape + wrong + shape).encode("latin-1").decode("latin-1")
            self.ask("GET", "/clusters", **{"X-Auth-Token": value})

    def _crowded(self) -> None:
        """Many of one kind: right and wrong tokens, secrets in queries and in bodies."""
        rng = self.rng
        wrong = self.canaries.make("token", "").replace("+", "")
        secret = self.canary("query", "")
        bad = {"name": "x y", "credentials": {"user": "u", "password": self.canary("crowd")}}
        for _ in range(self._crowd):
            match rng.randrange(5):
                case 0:
                    self.ask("GET", "/clusters", **{"X-Auth-Token": wrong})
                case 1:
                    self.ask("GET", f"/clusters?token={secret}&password={secret}")
                case 2:
                    self.ask("GET", f"/jobs/{rng.getrandbits(32)}", Authorization=f"Basic {wrong}")
                case 3:
                    self.ask("POST", "/data-sources", bad)
                case _:
                    self.ask("DELETE", "/job-binaries/nothing", Cookie=f"token={wrong}")

    # ---- what is said ---------------------------------------------------------------------------

    def _look(self, clusters: list[str]) -> None:
        """Everything that tells a story."""
        self.note("/metrics", self.svcd.call("GET", "/metrics").body.decode())
        self.note("/readyz", self.svcd.call("GET", "/readyz").body.decode())
        for cluster_id in clusters:
            shown = self.ask("GET", f"/clusters/{cluster_id}")
            events = self.ask("GET", f"/clusters/{cluster_id}/events")
            story = self.ask("GET", f"/clusters/{cluster_id}/story")
            if shown.status == events.status == story.status == 200:
                record = dict(shown.json["cluster"])
                now = self.svcd.clock.seconds()
                lines = of_cluster(record, story.json["story"], events.json["events"], now, True)
                self.note("svcd why", "\n".join(lines))
                self.note("story", story.body.decode())
                self.note("events", events.body.decode())
                record.pop("cluster_configs")
                for group in record["node_groups"]:
                    group.pop("node_configs")
                self.note("cluster", json.dumps(record, ensure_ascii=False))
        executions = self.ask("GET", "/job-executions")
        for each in executions.json.get("job_executions", ()):
            each.pop("job_configs")
            self.note("execution", json.dumps(each, ensure_ascii=False))
            story = self.ask("GET", f"/job-executions/{each['id']}/story")
            if story.status == 200:
                self.note("story of the execution", story.body.decode())
                look = Look(execution=each, story=story.json["story"])
                told = of_execution(look, None, None, None, self.svcd.clock.seconds(), "")
                self.note("svcd why of the execution", "\n".join(told))
            log = self.ask("GET", f"/job-executions/{each['id']}/log")
            self.note("log of the execution", log.body.decode("utf-8", "replace"))
        self.note("records", "\n".join(reprs()))

    def end(self) -> None:
        self._behave()
        self.svcd.close()
        globalLogPublisher.removeObserver(self._observer)
        self._warnings.__exit__(None, None, None)
        self.note("warnings", "\n".join(str(each.message) for each in self._warned))
        self.note("the log", self._stream.getvalue())

    @property
    def lines(self) -> int:
        """Without those of the records."""
        told = [text for where, text in self.said.items() if not where.endswith(" records")]
        return sum(text.count("\n") + 1 for text in told)

    @property
    def records(self) -> int:
        """Those whose repr was looked at."""
        said = [t for where, t in self.said.items() if where.endswith(" records")]
        return sum(text.count("\n") + 1 for text in said)

    def leaks(self) -> Iterator[str]:
        """Where a secret was said."""
        for where, text in self.said.items():
            for each in self.canaries.found(text):
                yield f"{where}: {each}"
            for never in NEVER:
                if never in text:
                    at = text.find(never)
                    yield f"{where}: {never}: …{text[max(0, at - 200) : at + 40]}"


async def _of(work: Any) -> Any:
    return await work


def lived(seed: int, rounds: int = 8, crowd: int = 20) -> Life:
    """A life that is over, with all that it said."""
    life = Life(seed, rounds, crowd)
    try:
        life.happen()
    finally:
        life.end()
    return life


def reprs() -> Iterator[str]:
    """The repr of every record of svcd that lives, but those of the embedded peers."""
    for each in gc.get_objects():
        kind = type(each)
        module = getattr(kind, "__module__", "")
        if (
            isinstance(module, str)
            and module.startswith("svcd.")
            and not module.startswith(_NOT_READ)
            and attrs.has(kind)
        ):
            yield repr(each)
