"""The description of the interface holds: for a whole life, and for whatever it allows to be sent.

Against the in-process service: no answer of 500 and above, none that the description does not know.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema_rs
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from svcd.model import requests
from svcd.testing import Answer, FakeService
from tests.fuzz.anything import few, spoiled
from tests.support.fakes import Api
from tests.unit.resources.bodies import LEAST, WHOLE

_EXAMPLES = 12


class Description:
    """`/openapi.json` of a service, and the judgement of answers by it."""

    def __init__(self, svcd: FakeService) -> None:
        self.document: dict[str, Any] = svcd.call("GET", "/openapi.json").json
        self._operations = [
            (method.upper(), re.compile(re.sub(r"\{\w+\}", "[^/]*", path) + r"(\.json)?/?"), each)
            for path, item in sorted(self.document["paths"].items(), key=lambda p: p[0].count("{"))
            for method, each in item.items()
        ]
        self._validators: dict[str, Any] = {}

    def faults(self, method: str, path: str, answer: Answer) -> list[str]:
        """What of an answer is not as described; [] when all is."""
        operation = next(
            (o for m, p, o in self._operations if m == method and p.fullmatch(path)), None
        )
        if operation is None:
            return [] if answer.status in (404, 405) else [f"undescribed: {answer.status}"]
        if answer.status >= 500:
            return [f"{answer.status}: {answer.body!r}"]
        described = operation["responses"].get(str(answer.status))
        if described is None:
            if answer.status < 400:
                return [f"undescribed status {answer.status}"]
            described = operation["responses"]["default"]
        if "$ref" in described:
            described = self.document["components"]["responses"][
                described["$ref"].rpartition("/")[2]
            ]
        names = described.get("x-error-names")
        if names is not None and answer.json["error_name"] not in names:
            return [f"{answer.status} without the name {answer.json['error_name']}"]
        content = described.get("content", {}).get("application/json")
        if content is None:
            return []
        if not answer.headers["content-type"].startswith("application/json"):
            return [f"media type {answer.headers['content-type']}"]
        return [
            f"{'/'.join(map(str, error.instance_path))}: {error.message}"
            for error in self._validator(content["schema"]).iter_errors(answer.json)
        ]

    def _validator(self, schema: Mapping[str, Any]) -> Any:
        key = json.dumps(schema, sort_keys=True)
        if key not in self._validators:
            whole = {**schema, "components": self.document["components"]}
            self._validators[key] = jsonschema_rs.Draft202012Validator(whole)
        return self._validators[key]


class Judged(FakeService):
    """A service all whose answers are held against the description."""

    def __init__(self) -> None:
        self.faults_found: list[str] = []
        self.judged = 0
        self._description: Description | None = None
        super().__init__()
        self._description = Description(self)

    def call(self, method: str, path: str, *args: Any, **more: Any) -> Answer:
        answer = super().call(method, path, *args, **more)
        bare = path.removeprefix(self.url).partition("?")[0]
        if self._description is not None and not path.startswith("http"):
            self.judged += 1
            found = self._description.faults(method, bare, answer)
            asked = f"{method} {path} {more.get('data')!r}"
            self.faults_found += [f"{asked}: {each}" for each in found]
        return answer


def _live(svcd: FakeService) -> dict[str, list[str]]:
    """Leaves something of everything; ids by the name of the path parameter."""
    api = Api(svcd)
    group = {**LEAST[requests.NewNodeGroupTemplate], "floating_ip_pool": "public"}
    template = api.post("/node-group-templates", group)["node_group_template"]["id"]
    groups = [WHOLE, {"name": "x", "count": 1, "node_group_template_id": template}]
    body = {**LEAST[requests.NewClusterTemplate], "node_groups": groups}
    big = api.post("/cluster-templates", body)["cluster_template"]["id"]
    failed = api.new_cluster("failed", 1)
    svcd.faults.add(where="ssh", path="cp processes running", times=9, status=1)
    api.until_status(failed, "Error")
    svcd.faults.clear()
    cluster = api.active_cluster("mine")
    job, sources = api.new_job(), api.new_sources()
    done = api.execute(job, cluster, sources)
    api.until_over(done)
    bad = api.execute(job, cluster, sources, {"svcd.fake.outcome": "fail"})
    api.until_over(bad)
    running = api.execute(job, cluster, sources, {"svcd.fake.outcome": "hang"})
    svcd.advance(10)
    api.get(f"/job-executions/{running}/refresh-status")
    known = {
        "tenant_id": [svcd.tenant],
        "template_id": [template, big],
        "cluster_id": [cluster, failed],
        "job_id": [job],
        "execution_id": [done, bad, running],
        "data_source_id": list(sources),
        "image_id": [svcd.image_id],
        "plugin_name": ["fake"],
        "version": ["0.1"],
        "job_type": ["Pig", "Jar"],
        "binary_id": [
            each["id"]
            for kind in ("job-binaries", "job-binary-internals")
            for each in api.get(f"/{kind}")["binaries"]
        ],
    }
    for path in _readable(svcd, known):
        svcd.call("GET", path)
    api.get(f"/job-executions/{running}/cancel")
    api.delete(f"/clusters/{failed}")
    svcd.advance(60)
    return known


def _readable(svcd: FakeService, known: Mapping[str, list[str]]) -> Iterator[str]:
    document = svcd.call("GET", "/openapi.json").json
    for path, item in document["paths"].items():
        names = re.findall(r"\{(\w+)\}", path)
        if (
            "get" in item
            and not _is_stream(item["get"])
            and all(name in known for name in names)
            and "cancel" not in path
        ):
            for index in range(max([len(known[n]) for n in names], default=1)):
                made = path
                for name in names:
                    values = known[name]
                    made = made.replace(f"{{{name}}}", values[min(index, len(values) - 1)])
                yield made


def _is_stream(operation: Mapping[str, Any]) -> bool:
    """Whether the answer has no end."""
    content = operation["responses"].get("200", {}).get("content", {})
    return "text/event-stream" in content


class DescriptionTests(SynchronousTestCase):
    def test_no_answer_breaks_the_description(self) -> None:
        """Neither of a life with every kind of thing, nor of random requests.

        Schemathesis makes what the description allows, and what it does not: each operation some
        times, with ids that exist and ids that do not.
        """
        svcd = Judged()
        self.addCleanup(svcd.close)
        known = _live(svcd)
        self.assertGreater(svcd.judged, 80)
        schema = schemathesis.openapi.from_dict(svcd.call("GET", "/openapi.json").json)
        asked: Counter[int] = Counter()
        for result in schema.get_all_operations():
            operation = result.ok()
            if _is_stream(operation.definition.raw):
                continue

            @few(_EXAMPLES)
            @given(case=operation.as_strategy(), data=st.data())
            def ask(case: Any, data: Any) -> None:
                path = case.path
                for name in re.findall(r"\{(\w+)\}", path):
                    made = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
                    value = data.draw(st.sampled_from(known.get(name, ["x"])) | made)
                    if name == "tenant_id":
                        value = svcd.tenant
                    path = path.replace(f"{{{name}}}", quote(value, safe=""))
                query = {k: str(v) for k, v in (case.query or {}).items() if v is not None}
                target = path + ("?" + urlencode(query) if query else "")
                kind = {"content-type": case.media_type} if case.media_type else {}
                body = _body(case, data)
                answer = svcd.call(case.method.upper(), target, data=body, headers=kind)
                asked[answer.status // 100] += 1

            ask()
        self.assertGreater(asked[2], 100, asked)
        self.assertGreater(asked[4], 100, asked)
        self.assertEqual("\n".join(svcd.faults_found), "")


def _body(case: Any, data: Any) -> bytes | None:
    """The case's, or one that is nearly so."""
    body = case.body
    if isinstance(body, dict) and data.draw(st.booleans()):
        body = data.draw(spoiled(body))
    if isinstance(body, bytes):
        return body
    if type(body).__name__ == "NotSet":
        return None
    return json.dumps(body).encode("utf-8", "surrogatepass")
