"""No secret in what the service says: distinct canaries in every credential field, and trouble.

A log at debug level in both forms, metrics, events, stories and error answers of random lives are
searched for each canary, plain and encoded. Data sources, job binaries and the `job_configs` of an
execution are answered to their owner as the interface says, and are not searched. The name of a
user is no secret: a failure says whom the identity service refuses.
"""

from __future__ import annotations

import base64
import io
import json
import random
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from svcd import logs
from svcd.cli.story import of_cluster
from svcd.embedded.faults import FaultRule
from svcd.testing import Answer, FakeService
from tests.fakes import cluster_body
from tests.simulation.history import EFFECTS, PLACES, STATUSES

SEEDS = 12
_NEVER = ("PRIVATE KEY", "f1:gAAAA")


def shapes(secret: str) -> set[str]:
    """`secret` as it may stand in a text: plain, in a URL, in JSON, in XML, in base64 anywhere."""
    found = {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], escape(secret)}
    for before in range(3):  # base64 looks different by what stands before
        coded = base64.b64encode(b"x" * before + secret.encode()).decode()
        found.add(coded[(0, 2, 3)[before] : -4])
    return found


class Life:
    """What befalls a tenant by a seed. said: all that may be read by others, by its place."""

    def __init__(self, seed: int, form: str) -> None:
        self.rng = random.Random(f"secrets {seed}")
        self.secrets: list[str] = []
        self.said: dict[str, str] = {}
        self._stream = io.StringIO()
        self._observer = logs.observer(self._stream, form, "debug")
        globalLogPublisher.addObserver(self._observer)
        password = self.canary("user")
        self.svcd = FakeService(
            settings={
                "auth.mode": "keystone",
                "log.access": "true",
                "embedded.password": password,
                "embedded.token_ttl_s": "600",
                "provisioning.spawn_deadline_s": "200",
                "workflow.submit_deadline_s": "200",
            },
            seed=seed,
        )
        self.token = ""

    def canary(self, what: str) -> str:
        """A secret that is nowhere else; some of its characters look different when encoded."""
        made = f"{what}+{self.rng.getrandbits(64):016x}<&/é"
        self.secrets.append(made)
        return made

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """One request; an error is something that others may read."""
        given = {"X-Auth-Token": self.token, **headers}
        path = f"/v1.1/{self.svcd.tenant}{path}"
        answer = self.svcd.call(method, path, json=body, headers=given)
        if answer.status >= 400:
            self.note(f"{method} {path} {answer.status}", answer.body.decode())
        return answer

    def note(self, where: str, text: str) -> None:
        self.said[f"{len(self.said)} {where}"] = text

    def happen(self) -> None:
        """Good and bad requests, jobs that fail, a cloud in trouble, a restart."""
        self.token = self.svcd.token()
        binary = self._binary()
        clusters = [self._cluster(n) for n in range(2)]
        job = self.ask("POST", "/jobs", {"name": "j", "type": "Pig", "mains": [binary]})
        sources = [self._source(n) for n in range(2)]
        for _ in range(8):
            self._trouble()
            self._bad_requests()
            if job.status == 202:
                self._execute(job.json["job"]["id"], self.rng.choice(clusters), sources)
            self.svcd.advance(self.rng.choice([1.0, 20.0, 120.0]))
            if self.rng.random() < 0.3:
                self.svcd.faults.clear()
                self.svcd.restart()
            self.token = self._fresh_token()
        self._look(clusters)
        self.svcd.faults.clear()
        self.svcd.advance(3600.0)
        self.token = self._fresh_token()
        self._look(clusters)

    def _fresh_token(self) -> str:
        """The tokens of all are secrets."""
        self.svcd.faults.clear()
        token = self.svcd.token()
        self.secrets += [t.id for t in self.svcd.cloud.core.state.tokens.values()]
        return token

    def _binary(self) -> str:
        extra = {"user": "reader", "password": self.canary("extra")}
        body = {"name": "b.pig", "url": "objstore-internal://c/o.pig", "extra": extra}
        return str(self.ask("POST", "/job-binaries", body).json["job_binary"]["id"])

    def _source(self, number: int) -> str:
        given = {"user": "reader", "password": self.canary("source")}
        body = {
            "name": f"s{number}",
            "type": "objstore",
            "url": f"objstore://c{number}.svcd/d",
            "credentials": given,
        }
        return str(self.ask("POST", "/data-sources", body).json["data_source"]["id"])

    def _cluster(self, number: int) -> str:
        body = cluster_body(self.svcd, f"c{number}", 1)
        return str(self.ask("POST", "/clusters", body).json["cluster"]["id"])

    def _execute(self, job_id: str, cluster_id: str, sources: list[str]) -> None:
        configs = {
            "fs.swift.service.svcd.password": self.canary("job-config"),
            "svcd.fake.outcome": self.rng.choice(["succeed", "fail", "error", "hang"]),
        }
        body = {
            "cluster_id": cluster_id,
            "input_id": sources[0],
            "output_id": sources[1],
            "job_configs": {
                "configs": configs,
                "args": [self.canary("argument")],
                "params": {"PASSWORD": self.canary("parameter")},
            },
        }
        self.ask("POST", f"/jobs/{job_id}/execute", body)

    def _trouble(self) -> None:
        for where, method, path in self.rng.sample(PLACES, 4):
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

    def _bad_requests(self) -> None:
        """Each has a secret where none belongs, or where one belongs but the rest is wrong."""
        given = {"user": "reader", "password": self.canary("bad")}
        url = "objstore://c.svcd/d"
        source = {"name": "s0", "type": "objstore", "url": url, "credentials": given}
        for body in (
            source,
            {**source, "name": "bad name"},
            {**source, "url": "objstore://nothing"},
            {**source, "credentials": {"user": 1, "password": [self.canary("list")]}},
            {**source, "credentials": self.canary("text")},
        ):
            self.ask("POST", "/data-sources", body)
        cluster = cluster_body(self.svcd, "bad", 1)
        configs = {"HDFS": {"dfs.replication": self.canary("config")}}
        self.ask("POST", "/clusters", {**cluster, "cluster_configs": configs})
        self.ask("POST", "/clusters", {**cluster, "cluster_configs": {"HDFS": {"no": given}}})
        wrong = self.canary("token").encode("ascii", "ignore").decode()
        self.secrets.append(wrong)
        self.ask("GET", "/clusters", **{"X-Auth-Token": wrong})

    def _look(self, clusters: list[str]) -> None:
        """Everything that tells a story."""
        self.note("/metrics", self.svcd.call("GET", "/metrics").body.decode())
        self.note("/readyz", self.svcd.call("GET", "/readyz").body.decode())
        for cluster_id in clusters:
            shown = self.ask("GET", f"/clusters/{cluster_id}")
            events = self.ask("GET", f"/clusters/{cluster_id}/events")
            if shown.status == events.status == 200:
                self.note("cluster", shown.body.decode())
                self.note("events", events.body.decode())
                clock = self.svcd.clock.seconds
                lines = of_cluster(shown.json["cluster"], events.json["events"], clock, True)
                self.note("svcd why", "\n".join(lines))
        executions = self.ask("GET", "/job-executions")
        for each in executions.json.get("job_executions", ()):
            each.pop("job_configs")
            self.note("execution", json.dumps(each, ensure_ascii=False))
            log = self.ask("GET", f"/job-executions/{each['id']}/log")
            self.note("log of the execution", log.body.decode("utf-8", "replace"))

    def end(self) -> None:
        self.svcd.close()
        globalLogPublisher.removeObserver(self._observer)
        self.note("the log", self._stream.getvalue())


def leaks(life: Life) -> Iterator[str]:
    """Where a secret was said."""
    named = {shape: secret for secret in life.secrets for shape in shapes(secret) if shape}
    named |= {text: text for text in _NEVER}
    pattern = re.compile("|".join(map(re.escape, named)))
    for where, text in life.said.items():
        for found in pattern.finditer(text):
            around = text[max(0, found.start() - 200) : found.end() + 20]
            yield f"{named[found.group()]} in {where}: …{around}"


class CanaryTests(SynchronousTestCase):
    def life(self, seed: int, form: str) -> Life:
        life = Life(seed, form)
        try:
            life.happen()
        finally:
            life.end()
        self.flushLoggedErrors()
        return life

    def test_the_search_finds_what_it_looks_for(self) -> None:
        """In each of the shapes, wherever in a longer text it begins."""
        life = self.life(0, "human")
        secret = life.secrets[1]
        self.assertEqual(list(leaks(life))[:1], [])
        texts = [secret, quote(secret, safe=""), json.dumps({"k": secret}), escape(secret)]
        texts += [base64.b64encode(b"y" * n + secret.encode() + b"zz").decode() for n in range(4)]
        for text in texts:
            life.said = {"here": text}
            self.assertEqual(len(list(leaks(life))[:1]), 1, text)

    def test_no_secret_is_said(self) -> None:
        """In the lives of a dozen seeds, with a log in either form."""
        lines = 0
        for seed in range(1, SEEDS + 1):
            life = self.life(seed, ("human", "json")[seed % 2])
            found: list[Any] = list(leaks(life))
            self.assertEqual(found[:3], [], f"seed {seed}")
            self.assertGreater(len(life.secrets), 50)
            lines += sum(text.count("\n") + 1 for text in life.said.values())
        self.assertGreater(lines, 1000)
