"""The door in memory: order of the checks, tokens, failures, metrics, and what only it decides.

The requests themselves are asserted by `tests.conformance`, who may do what by its `test_policy`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.cloud.core import VANILLA_IMAGE_ID
from svcd.model.ids import TenantId
from svcd.ports.cloud import Access
from svcd.provisioning.commands import Templates
from svcd.runtime import logs
from svcd.testing import CLOUD_URL, Effect, FakeService
from tests.support.api import daemon_of

NGT = {
    "name": "w",
    "plugin_name": "vanilla",
    "engine_version": "3.5.0",
    "flavor_id": "2",
    "node_processes": ["datanode"],
}
NGTS = "/v1.0/demo/node-group-templates"
BASE = "/v1.1/demo"


class DoorCase(SynchronousTestCase):
    def service(self, **settings: object) -> FakeService:
        """settings: `section__key`."""
        given = {k.replace("__", "."): str(v) for k, v in settings.items()}
        made = FakeService({"plugins.enabled": "vanilla,fake", **given})
        self.addCleanup(made.close)
        return made


class TokenTests(DoorCase):
    """`auth.mode=keystone`."""

    def setUp(self) -> None:
        self.api = self.service(auth__mode="keystone")
        self.token = self.api.token()

    def test_401_comes_with_a_challenge(self) -> None:
        """Without a token, with a wrong one, and with one that was revoked since its check."""
        mine = {"X-Auth-Token": self.token}
        self.assertEqual(self.api.call("GET", "/v1.0/demo/images", headers=mine).status, 200)
        tokens = f"{CLOUD_URL}/identity/v3/auth/tokens"
        self.api.call("DELETE", tokens, headers={**mine, "X-Subject-Token": self.token})
        for headers in ({}, {"X-Auth-Token": "bad"}, mine):
            answer = self.api.call("GET", "/v1.0/demo/images", headers=headers)
            self.assertEqual((answer.status, answer.json["error_name"]), (401, "UNAUTHORIZED"))
            challenge = f'Keystone uri="{CLOUD_URL}/identity/v3"'
            self.assertEqual(answer.headers["www-authenticate"], challenge)
        self.assertIn("image: ", answer.json["error_message"])

    def test_the_token_comes_before_everything_else(self) -> None:
        """Route, method, media type, size, id, shape. The open paths need none."""
        for method, path in (
            ("GET", "/nope"),
            ("GET", "/v1.0/demo/nope"),
            ("PATCH", "/v1.0/demo/clusters"),
            ("POST", "/v1.0/demo/clusters"),
            ("DELETE", "/v1.0/demo/clusters/nope"),
            ("OPTIONS", "/v1.0/demo/clusters"),
        ):
            self.assertEqual(self.api.call(method, path).status, 401, (method, path))
        for path in ("/", "/healthz", "/readyz", "/metrics", "/openapi.json"):
            self.assertEqual(self.api.call("GET", path).status, 200, path)

    def test_an_unknown_path_of_another_tenant_is_403(self) -> None:
        other = {"X-Auth-Token": self.api.token("alice", project="alpha")}
        answer = self.api.call("GET", "/v1.1/demo/nope", headers=other)
        self.assertEqual((answer.status, answer.json["error_name"]), (403, "FORBIDDEN"))


class OrderTests(DoorCase):
    def test_the_order_of_the_checks(self) -> None:
        """Route, then size and media type, then the id, then the shape."""
        api = self.service(server__max_json_bytes=100)
        bad = {"content-type": "text/plain"}
        json = {"content-type": "application/json"}
        for method, path, data, headers, status in (
            ("POST", "/v1.0/demo/nope", b"x" * 200, bad, 404),
            ("PUT", "/v1.0/demo/clusters", b"x" * 200, bad, 405),
            ("PUT", "/v1.0/demo/clusters/nope", b"x" * 200, bad, 413),
            ("PUT", "/v1.0/demo/clusters/nope", b"x", bad, 415),
            ("PUT", "/v1.0/demo/clusters/nope", b"x", {**json, "accept": "text/html"}, 406),
            ("PUT", "/v1.0/demo/clusters/nope", b"x", json, 404),
            ("POST", "/v1.0/demo/clusters", b"x", json, 400),
        ):
            answer = api.call(method, path, data=data, headers=headers)
            self.assertEqual(answer.status, status, (method, path, answer.body))

    def test_a_strange_tenant_is_404(self) -> None:
        """It would become a project."""
        api = self.service()
        for tenant in ("a%20b", "a" * 65, "%0a", "a%27"):
            self.assertEqual(api.call("GET", f"/v1.0/{tenant}/clusters").status, 404)


class FailureTests(DoorCase):
    def break_handler(self, wait: Callable[[], Awaitable[object]] | None = None) -> None:
        """Simulate a bug in a handler, before or after it waits."""

        async def create(*_: object) -> None:
            if wait is not None:
                await wait()
            raise RuntimeError("secret detail")

        self.patch(Templates, "create_node_group_template", create)

    def slow(self, api: FakeService, seconds: float) -> None:
        """Each call for flavors takes so long."""
        api.faults.add(where="compute", path="/flavors", effect=Effect.DELAY, delay_s=seconds)

    def test_a_bug_is_500_with_the_incident_of_the_log(self) -> None:
        """And says nothing of what it was."""
        api = self.service()
        self.break_handler()
        answer = api.call("POST", NGTS, json=NGT)
        self.assertEqual((answer.status, answer.json["error_name"]), (500, "INTERNAL_SERVER_ERROR"))
        self.assertNotIn("secret", answer.body.decode())
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        incident = answer.json["error_message"].split("incident ")[1].split(":")[0]
        self.assertRegex(incident, r"^[0-9a-f]{12}$")

    def test_a_bug_after_a_wait_is_500_too(self) -> None:
        api = self.service()
        cloud = daemon_of(api).services.cloud.session(Access(tenant_id=TenantId("demo")))
        self.break_handler(cloud.flavors)
        self.slow(api, 1.0)
        waiting = api.treq.post(api.url + NGTS, json=NGT)
        api.advance(0.9)
        self.assertNoResult(waiting)
        api.advance(0.1)
        self.assertEqual(self.successResultOf(waiting).code, 500)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)

    def test_a_slow_handler_is_504_and_goes_on(self) -> None:
        """The answer is given once, the work is done all the same."""
        api = self.service(server__request_timeout_s=2)
        self.slow(api, 5.0)
        waiting = api.treq.post(api.url + NGTS, json=NGT)
        api.advance(1.9)
        self.assertNoResult(waiting)
        api.advance(0.1)
        self.assertEqual(self.successResultOf(waiting).code, 504)
        for seconds, names in ((0.0, []), (3.0, ["w"])):
            api.advance(seconds)
            listed = api.call("GET", NGTS).json["node_group_templates"]
            self.assertEqual([each["name"] for each in listed], names)

    def test_not_ready_is_503_with_the_parts_that_are_not(self) -> None:
        """The store, and the cloud where svcd can log in or not."""
        api = self.service()
        store = "store: the database cannot serve now (a fault rule says so)"
        cloud = f"cloud: identity: POST {CLOUD_URL}/identity/v3/auth/tokens: Connection was "
        cloud += "refused by other side: connection refused"

        def problem() -> tuple[int, str]:
            answer = api.call("GET", "/readyz")
            return answer.status, answer.json["error_message"]

        api.faults.add(where="identity", effect=Effect.REFUSED)
        self.assertEqual(problem(), (503, f"not ready: {cloud}"))
        failing = api.faults.add(where="store")
        self.assertEqual(problem(), (503, f"not ready: {store}; {cloud}"))
        api.faults.clear()
        ready = api.call("GET", "/readyz")
        self.assertEqual((ready.status, set(ready.json["parts"])), (200, {"store", "cloud"}))
        api.faults.add(failing.rule)
        self.assertEqual(problem(), (503, f"not ready: {store}"))


class MetricsTests(DoorCase):
    def test_metrics_count_by_route(self) -> None:
        """The pattern, never the path; a made-up method cannot grow the daemon's memory."""
        api = self.service()
        api.call("GET", "/v1.0/demo/clusters/nope")
        api.call("GET", "/v1.0/demo/clusters")
        api.call("GET", "/x/y")
        api.call("FROB", "/v1.0/demo/clusters")
        text = api.call("GET", "/metrics").body.decode()
        route = "/v1.0/<tenant_id>/clusters"
        for line in (
            f'svcd_requests_total{{method="GET",route="{route}",status="200"}} 1.0',
            f'svcd_requests_total{{method="GET",route="{route}/<cluster_id>",status="404"}} 1.0',
            'svcd_requests_total{method="GET",route="unknown",status="404"} 1.0',
            "svcd_requests_in_flight 1.0",
        ):
            self.assertIn(line, text)
        self.assertNotIn("FROB", text)

    def test_metrics_are_rendered_once_a_second(self) -> None:
        """They need no token and cost much."""
        api = self.service()
        first = api.call("GET", "/metrics").body
        api.call("GET", "/v1.0/demo/clusters")
        self.assertEqual(api.call("GET", "/metrics").body, first)
        api.advance(1)
        self.assertNotEqual(api.call("GET", "/metrics").body, first)

    def test_metrics_may_have_a_port_of_their_own(self) -> None:
        """Then the API does not serve them."""
        api = self.service(server__admin_listen="tcp:127.0.0.1:0")
        self.assertEqual(api.call("GET", "/metrics").status, 404)
        self.assertEqual(api.call("GET", "/healthz").status, 200)


class LogTests(DoorCase):
    def logging(self, format_: str) -> tuple[FakeService, io.StringIO]:
        stream = io.StringIO()
        observer = logs.observer(stream, format_, "info")
        globalLogPublisher.addObserver(observer)
        self.addCleanup(globalLogPublisher.removeObserver, observer)
        return self.service(log__access=True), stream

    def test_a_request_is_one_json_line_with_fields(self) -> None:
        """A program need not take the message apart. The query is left out."""
        api, stream = self.logging("json")
        answer = api.call("GET", "/v1.0/demo/clusters/nope?token=hush")
        [line] = [each for each in map(json.loads, stream.getvalue().splitlines())
                  if each["logger"] == "svcd.resources._rest"]  # fmt: skip
        self.assertTrue(0.0 <= line.pop("duration_s") < 60.0)
        del line["time"], line["message"], line["user"]
        self.assertEqual(
            line,
            {
                "level": "info",
                "logger": "svcd.resources._rest",
                "request": answer.headers["x-request-id"],
                "tenant": "demo",
                "method": "GET",
                "path": "/v1.0/demo/clusters/nope",
                "route": "/v1.0/<tenant_id>/clusters/<cluster_id>",
                "status": 404,
                "address": "127.0.0.1",
            },
        )

    def test_a_password_in_the_target_is_not_logged(self) -> None:
        """As of a client that takes the daemon for a proxy."""
        api, stream = self.logging("text")
        for url in ("http://alice:hush@odd/v1.0", quote("http://alice:hush@odd/v1.0", safe="")):
            answer = api.call("GET", f"/x/{url}/demo")
            self.assertIn("odd/v1.0", stream.getvalue())
            self.assertNotIn("hush", stream.getvalue() + answer.body.decode())
            stream.truncate(0)


class ResourceTests(DoorCase):
    """What a resource decides about HTTP, and conformance does not ask."""

    def test_data_of_a_tenant_is_inert_in_a_browser(self) -> None:
        """Its type is text/html, as the interface says: it must not run as a page of svcd."""
        api = self.service()
        made = api.call("PUT", BASE + "/job-binary-internals/x.pig", data=b"<script>")
        id_ = made.json["job_binary_internal"]["id"]
        answer = api.call("GET", f"{BASE}/job-binary-internals/{id_}/data")
        self.assertEqual(answer.headers["content-type"], "text/html; charset=utf-8")
        self.assertEqual(answer.headers["x-content-type-options"], "nosniff")
        self.assertEqual(answer.headers["content-security-policy"], "sandbox")

    def test_a_configuration_is_json_or_yaml(self) -> None:
        """A page of another site can send plain text without a preceding question."""
        api = self.service()
        for media, status in (
            ("text/plain", 415),
            ("application/x-www-form-urlencoded", 415),
            ("application/json", 400),
            ("text/yaml; charset=utf-8", 400),
        ):
            path = "/v1.0/demo/plugins/fake/0.1/convert-config"
            answer = api.call("POST", path, data=b"{}", headers={"content-type": media})
            self.assertEqual(answer.status, status, answer.body)

    def test_an_object_is_named_without_dots(self) -> None:
        """A proxy before the object store would leave the container."""
        api = self.service()
        for name in ("../other/x", "a/../../x", "./x"):
            body = {
                "name": "a",
                "url": f"objstore-internal://mine/{name}",
                "extra": {"user": "u", "password": "hush"},
            }
            answer = api.call("POST", BASE + "/job-binaries", json=body)
            self.assertEqual((answer.status, answer.json["error_name"]), (400, "BAD_JOB_BINARY"))

    def test_credentials_can_be_hidden_from_everybody(self) -> None:
        """In sources, binaries and the jobs that show them."""
        api = self.service(server__hide_credentials=True)
        secret = {"user": "u", "password": "hush"}
        source = {"name": "a", "type": "objstore", "url": "objstore://a/b", "credentials": secret}
        api.call("POST", BASE + "/data-sources", json=source)
        binary = {"name": "b", "url": "objstore-internal://a/b", "extra": secret}
        made = api.call("POST", BASE + "/job-binaries", json=binary)
        id_ = made.json["job_binary"]["id"]
        api.call("POST", BASE + "/jobs", json={"name": "j", "type": "Jar", "libs": [id_]})
        for path in ("data-sources", "job-binaries", "jobs", f"job-binaries/{id_}"):
            answer = api.call("GET", f"{BASE}/{path}")
            self.assertNotIn("hush", answer.body.decode())
            self.assertIn("***", answer.body.decode())

    def test_data_of_an_object_store_binary_is_read_with_its_credentials(self) -> None:
        """Faults are told as 400; an object store that is away is 503."""
        api = self.service()
        box = f"{CLOUD_URL}/object-store/v1/AUTH_demo/box"
        mine = {"X-Auth-Token": api.token()}
        for path, data in ((box, b""), (f"{box}/dir/a.pig", b"data")):
            self.assertEqual(api.call("PUT", path, data=data, headers=mine).status, 201)

        def binary(name: str, password: str) -> str:
            body = {
                "name": name,
                "url": "objstore-internal://box/dir/a.pig",
                "extra": {"user": "demo", "password": password},
            }
            made = api.call("POST", BASE + "/job-binaries", json=body)
            return f"{BASE}/job-binaries/{made.json['job_binary']['id']}/data"

        good, wrong = binary("b", "demo"), binary("c", "wrong")
        answer = api.call("GET", good)
        self.assertEqual((answer.status, answer.body), (200, b"data"))
        self.assertEqual(answer.headers["content-length"], "4")
        refused = api.call("GET", wrong)
        self.assertEqual((refused.status, refused.json["error_name"]), (400, "BAD_JOB_BINARY"))
        self.assertEqual(api.call("DELETE", f"{box}/dir/a.pig", headers=mine).status, 204)
        gone = api.call("GET", good)
        self.assertEqual((gone.status, gone.json["error_name"]), (400, "INVALID_REFERENCE"))
        api.faults.add(where="object-store", effect=Effect.REFUSED)
        self.assertEqual(api.call("GET", good).status, 503)

    def test_images_have_pages_in_v1_1(self) -> None:
        """By name and by marker: these rows are the image service's and not the database's."""
        api = self.service()
        ids = [VANILLA_IMAGE_ID, api.image_id]
        for id_ in ids:
            api.call("POST", f"/v1.0/demo/images/{id_}", json={"username": "u"})
        for query, expected in (
            ("?limit=1", ids[:1]),
            (f"?marker={ids[0]}", ids[1:]),
            ("?name=plain", [api.image_id]),
        ):
            listed = api.call("GET", f"{BASE}/images{query}").json["images"]
            self.assertEqual([each["id"] for each in listed], expected)
            everything = api.call("GET", f"/v1.0/demo/images{query}").json["images"]
            self.assertEqual([each["id"] for each in everything], ids)
        self.assertEqual(api.call("GET", f"{BASE}/images?marker=x").status, 404)
