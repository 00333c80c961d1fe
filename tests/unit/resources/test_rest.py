"""The door in memory: order of the checks, tokens, failures, metrics."""

from __future__ import annotations

import io
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from twisted.internet.defer import CancelledError
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.cloud.core import VANILLA_IMAGE_ID
from svcd.model.ids import TenantId
from svcd.ports.cloud import Access, CloudSession
from svcd.provisioning.commands import Templates
from svcd.runtime import logs
from svcd.testing import Effect, FakeService, FaultRule
from tests.support.api import daemon_of
from tests.support.fakes import Api

NGT = {
    "name": "w",
    "plugin_name": "vanilla",
    "engine_version": "3.5.0",
    "flavor_id": "2",
    "node_processes": ["datanode"],
}
NGTS = "/v1.0/demo/node-group-templates"


class _Tests(SynchronousTestCase):
    def service(self, **settings: object) -> FakeService:
        """settings: `section__key`."""
        given = {k.replace("__", "."): str(v) for k, v in settings.items()}
        made = FakeService({"plugins.enabled": "vanilla,fake", **given})
        self.addCleanup(made.close)
        return made


class TokenTests(_Tests):
    """`auth.mode=keystone`."""

    def setUp(self) -> None:
        self.api = self.service(auth__mode="keystone")
        self.token = self.api.token()
        self.other = self.api.token("alice", project="alpha")

    def status(self, path: str, token: str | None, **more: Any) -> tuple[int, str]:
        headers = {} if token is None else {"X-Auth-Token": token}
        answer = self.api.call(more.pop("method", "GET"), path, headers=headers, **more)
        name = answer.json["error_name"] if answer.status >= 400 else ""
        return answer.status, name

    def test_no_token_is_401_with_a_challenge(self) -> None:
        """`WWW-Authenticate` names the identity service."""
        answer = self.api.call("GET", "/v1.0/demo/clusters")
        self.assertEqual((answer.status, answer.json["error_name"]), (401, "UNAUTHORIZED"))
        self.assertEqual(
            answer.headers["www-authenticate"], 'Keystone uri="http://cloud.test:8387/identity/v3"'
        )

    def test_a_refused_token_is_401_with_a_challenge(self) -> None:
        """As without one."""
        answer = self.api.call("GET", "/v1.0/demo/clusters", headers={"X-Auth-Token": "bad"})
        self.assertEqual(answer.status, 401)
        self.assertIn("www-authenticate", answer.headers)

    def test_a_token_of_another_tenant_is_403(self) -> None:
        """Also where the path is no route."""
        for path in ("/v1.0/demo/clusters", "/v1.1/demo/nope"):
            self.assertEqual(self.status(path, self.other), (403, "FORBIDDEN"))

    def test_the_right_token_passes(self) -> None:
        """And reaches the cloud."""
        cloud = daemon_of(self.api).services.cloud
        session, accesses = cloud.session, list[Access]()

        def noted(access: Access) -> CloudSession:
            accesses.append(access)
            return session(access)

        self.patch(cloud, "session", noted)
        self.assertEqual(self.status("/v1.0/demo/images", self.token), (200, ""))
        (access,) = accesses
        assert access.token is not None
        self.assertEqual((access.tenant_id, access.token.reveal()), ("demo", self.token))

    def test_the_token_comes_before_everything_else(self) -> None:
        """Route, method, media type, size, id, shape."""
        for method, path in (
            ("GET", "/nope"),
            ("GET", "/v1.0/demo/nope"),
            ("PATCH", "/v1.0/demo/clusters"),
            ("POST", "/v1.0/demo/clusters"),
            ("DELETE", "/v1.0/demo/clusters/nope"),
            ("OPTIONS", "/v1.0/demo/clusters"),
        ):
            self.assertEqual(self.status(path, None, method=method), (401, "UNAUTHORIZED"))

    def test_the_root_needs_none(self) -> None:
        """Versions, health, readiness, metrics."""
        for path in ("/", "/healthz", "/readyz"):
            self.assertEqual(self.status(path, None), (200, ""))
        self.assertEqual(self.api.call("GET", "/metrics").status, 200)

    def test_a_token_that_the_cloud_refuses_is_401_with_a_challenge(self) -> None:
        """It may have been revoked since."""
        self.assertEqual(self.status("/v1.0/demo/images", self.token), (200, ""))
        revoked = self.api.call(
            "DELETE",
            "http://cloud.test:8387/identity/v3/auth/tokens",
            headers={"X-Auth-Token": self.token, "X-Subject-Token": self.token},
        )
        self.assertEqual(revoked.status, 204)
        answer = self.api.call("GET", "/v1.0/demo/images", headers={"X-Auth-Token": self.token})
        self.assertEqual((answer.status, answer.json["error_code"]), (401, 401))
        self.assertIn("image: ", answer.json["error_message"])
        self.assertIn("www-authenticate", answer.headers)

    def test_identity_down_is_503(self) -> None:
        """With Retry-After."""
        self.api.faults.add(where="identity", effect=Effect.REFUSED)
        answer = self.api.call("GET", "/v1.0/demo/images", headers={"X-Auth-Token": self.token})
        self.assertEqual((answer.status, answer.headers["retry-after"]), (503, "5"))

    def test_other_tenants_objects_are_404(self) -> None:
        """Never seen, never listed."""
        made = self.api.call(
            "POST",
            "/v1.0/demo/node-group-templates",
            json=NGT,
            headers={"X-Auth-Token": self.token},
        ).json["node_group_template"]["id"]
        path = f"/v1.0/alpha/node-group-templates/{made}"
        self.assertEqual(self.status(path, self.other), (404, "NOT_FOUND"))
        self.assertEqual(self.status(path, self.other, method="DELETE"), (404, "NOT_FOUND"))


class OrderTests(_Tests):
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


class FailureTests(_Tests):
    def break_handler(self, wait: Callable[[], Awaitable[object]] | None = None) -> None:
        """Simulate a bug in a handler, before or after it waits."""

        async def create(*_: object) -> None:
            if wait is not None:
                await wait()
            raise RuntimeError("secret detail")

        self.patch(Templates, "create_node_group_template", create)

    def test_a_bug_is_500_with_the_incident_of_the_log(self) -> None:
        """And says nothing of what it was."""
        api = self.service()
        self.break_handler()
        answer = api.call("POST", NGTS, json=NGT)
        self.assertEqual((answer.status, answer.json["error_name"]), (500, "INTERNAL_SERVER_ERROR"))
        self.assertNotIn("secret", answer.body.decode())
        logged = self.flushLoggedErrors(RuntimeError)
        self.assertEqual(len(logged), 1)
        incident = answer.json["error_message"].split("incident ")[1].split(":")[0]
        self.assertRegex(incident, r"^[0-9a-f]{12}$")

    def test_a_late_bug_is_500_too(self) -> None:
        """After a wait."""
        api = self.service()
        cloud = daemon_of(api).services.cloud.session(Access(tenant_id=TenantId("demo")))
        self.break_handler(cloud.flavors)
        api.faults.add(where="compute", path="/flavors", effect=Effect.DELAY, delay_s=1.0)
        waiting = api.treq.post(api.url + NGTS, json=NGT)
        api.advance(0.9)
        self.assertNoResult(waiting)
        api.advance(0.1)
        self.assertEqual(self.successResultOf(waiting).code, 500)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)

    def test_faults_of_the_cloud_are_told(self) -> None:
        """By the table, with the three attributes."""
        api = self.service()
        for rule, status, words in (
            (FaultRule(where="image", effect=Effect.REFUSED), 503, "refused"),
            (FaultRule(where="image", effect=Effect.TIMEOUT_BEFORE), 504, "no complete answer"),
            (FaultRule(where="image", status=500, body="out of order"), 502, "out of order"),
            (FaultRule(where="image", status=403, body="not you"), 403, "not you"),
            (FaultRule(where="image", status=401), 502, "token that the identity service accepts"),
        ):
            api.faults.clear()
            api.faults.add(rule)
            answer = api.call("GET", "/v1.0/demo/images")
            self.assertEqual((answer.status, answer.json["error_code"]), (status, status))
            self.assertEqual(set(answer.json), {"error_code", "error_name", "error_message"})
            self.assertIn(words, answer.json["error_message"])

    def slow(self, api: FakeService) -> None:
        """Each new template waits 5 s for the cloud."""
        api.faults.add(where="compute", path="/flavors", effect=Effect.DELAY, delay_s=5.0)

    def names(self, api: FakeService) -> list[str]:
        listed = api.call("GET", NGTS).json["node_group_templates"]
        return [each["name"] for each in listed]

    def test_a_slow_handler_is_504_and_goes_on(self) -> None:
        """The answer is given once, the work is done all the same."""
        api = self.service(server__request_timeout_s=2)
        self.slow(api)
        waiting = api.treq.post(api.url + NGTS, json=NGT)
        api.advance(1.9)
        self.assertNoResult(waiting)
        api.advance(0.1)
        self.assertEqual(self.successResultOf(waiting).code, 504)
        self.assertEqual(self.names(api), [])
        api.advance(3.0)
        self.assertEqual(self.names(api), ["w"])

    def test_a_caller_who_leaves_does_not_stop_the_work(self) -> None:
        """Nothing is cancelled, nothing is logged."""
        api = self.service()
        self.slow(api)
        waiting = api.treq.post(api.url + NGTS, json=NGT)
        waiting.cancel()
        self.failureResultOf(waiting, CancelledError)
        self.assertEqual(self.names(api), [])
        api.advance(5.0)
        self.assertEqual(self.names(api), ["w"])

    def test_not_ready_is_503(self) -> None:
        """With the parts that are not, and no others."""
        api = self.service()
        store = "store: the database cannot serve now (a fault rule says so)"
        cloud = "cloud: identity: POST http://cloud.test:8387/identity/v3/auth/tokens: Connection "
        cloud += "was refused by other side: connection refused"

        def problem() -> tuple[int, str]:
            answer = api.call("GET", "/readyz")
            return answer.status, answer.json["error_message"]

        api.faults.add(where="identity", effect=Effect.REFUSED)
        self.assertEqual(problem(), (503, f"not ready: {cloud}"))
        failing = api.faults.add(where="store")
        self.assertEqual(problem(), (503, f"not ready: {store}; {cloud}"))
        api.faults.clear()
        self.assertEqual(api.call("GET", "/readyz").status, 200)
        api.faults.add(failing.rule)
        self.assertEqual(problem(), (503, f"not ready: {store}"))

    def test_service_unavailable_carries_retry_after(self) -> None:
        """From whatever room."""
        api = self.service()
        api.faults.add(where="compute", status=503, headers={"Retry-After": "7"})
        answer = api.call("POST", NGTS, json=NGT)
        self.assertEqual((answer.status, answer.headers["retry-after"]), (503, "7"))


class ObservabilityTests(_Tests):
    def test_metrics_count_by_route(self) -> None:
        """The pattern, never the path."""
        api = self.service()
        api.call("GET", "/v1.0/demo/clusters/nope")
        api.call("GET", "/v1.0/demo/clusters")
        api.call("GET", "/x/y")
        text = api.call("GET", "/metrics").body.decode()
        route = "/v1.0/<tenant_id>/clusters"
        for line in (
            f'svcd_requests_total{{method="GET",route="{route}",status="200"}} 1.0',
            f'svcd_requests_total{{method="GET",route="{route}/<cluster_id>",status="404"}} 1.0',
            'svcd_requests_total{method="GET",route="unknown",status="404"} 1.0',
            "svcd_requests_in_flight 1.0",
        ):
            self.assertIn(line, text)

    def test_a_request_is_one_json_line_with_fields(self) -> None:
        """A program need not take the message apart."""
        stream = io.StringIO()
        observer = logs.observer(stream, "json", "info")
        globalLogPublisher.addObserver(observer)
        self.addCleanup(globalLogPublisher.removeObserver, observer)
        api = self.service(log__access=True)
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
        stream = io.StringIO()
        observer = logs.observer(stream, "text", "info")
        globalLogPublisher.addObserver(observer)
        self.addCleanup(globalLogPublisher.removeObserver, observer)
        api = self.service(log__access=True)
        for url in ("http://alice:hush@odd/v1.0", quote("http://alice:hush@odd/v1.0", safe="")):
            answer = api.call("GET", f"/x/{url}/demo")
            self.assertIn("odd/v1.0", stream.getvalue())
            self.assertNotIn("hush", stream.getvalue() + answer.body.decode())
            stream.truncate(0)

    def test_metrics_are_rendered_once_a_second(self) -> None:
        """They need no token and cost much."""
        api = self.service()
        first = api.call("GET", "/metrics").body
        api.call("GET", "/v1.0/demo/clusters")
        self.assertEqual(api.call("GET", "/metrics").body, first)
        api.advance(1)
        self.assertNotEqual(api.call("GET", "/metrics").body, first)

    def test_made_up_methods_do_not_make_metrics(self) -> None:
        """A peer cannot grow our memory."""
        api = self.service()
        for n in range(5):
            api.call(f"FROB{n}", "/v1.0/demo/clusters")
        self.assertNotIn("FROB", api.call("GET", "/metrics").body.decode())


class ResourceTests(_Tests):
    def test_data_of_a_tenant_is_inert_in_a_browser(self) -> None:
        """Its type is text/html, as the interface says: it must not run as a page of svcd."""
        api = self.service()
        made = api.call("PUT", "/v1.1/demo/job-binary-internals/x.pig", data=b"<script>")
        id_ = made.json["job_binary_internal"]["id"]
        answer = api.call("GET", f"/v1.1/demo/job-binary-internals/{id_}/data")
        self.assertEqual(answer.headers["content-type"], "text/html; charset=utf-8")
        self.assertEqual(answer.headers["x-content-type-options"], "nosniff")
        self.assertEqual(answer.headers["content-security-policy"], "sandbox")

    def test_a_configuration_is_json_or_yaml(self) -> None:
        """A page of another site can send plain text without a preceding question."""
        api = self.service()
        path = "/v1.0/demo/plugins/fake/0.1/convert-config"
        for media, status in (
            ("text/plain", 415),
            ("application/x-www-form-urlencoded", 415),
            ("application/json", 400),
            ("text/yaml; charset=utf-8", 400),
        ):
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
            answer = api.call("POST", "/v1.1/demo/job-binaries", json=body)
            self.assertEqual((answer.status, answer.json["error_name"]), (400, "BAD_JOB_BINARY"))

    def test_metrics_may_have_a_port_of_their_own(self) -> None:
        """Then the API does not serve them."""
        api = self.service(server__admin_listen="tcp:127.0.0.1:0")
        self.assertEqual(api.call("GET", "/metrics").status, 404)
        self.assertEqual(api.call("GET", "/healthz").status, 200)

    def test_credentials_can_be_hidden(self) -> None:
        """In sources, binaries and the jobs that show them."""
        api = self.service(server__hide_credentials=True)
        secret = {"user": "u", "password": "hush"}
        source = {"name": "a", "type": "objstore", "url": "objstore://a/b", "credentials": secret}
        api.call("POST", "/v1.1/demo/data-sources", json=source)
        binary = {"name": "b", "url": "objstore-internal://a/b", "extra": secret}
        made = api.call("POST", "/v1.1/demo/job-binaries", json=binary)
        id_ = made.json["job_binary"]["id"]
        api.call("POST", "/v1.1/demo/jobs", json={"name": "j", "type": "Jar", "libs": [id_]})
        for path in ("data-sources", "job-binaries", "jobs", f"job-binaries/{id_}"):
            answer = api.call("GET", f"/v1.1/demo/{path}")
            self.assertNotIn("hush", answer.body.decode())
            self.assertIn("***", answer.body.decode())

    def test_data_of_an_object_store_binary(self) -> None:
        """Read with the credentials of the binary; faults are told as 400."""
        api = self.service()
        box = "http://cloud.test:8387/object-store/v1/AUTH_demo/box"
        mine = {"X-Auth-Token": api.token()}
        for path, data in ((box, b""), (f"{box}/dir/a.pig", b"data")):
            self.assertEqual(api.call("PUT", path, data=data, headers=mine).status, 201)
        binary = {
            "name": "b",
            "url": "objstore-internal://box/dir/a.pig",
            "extra": {"user": "demo", "password": "demo"},
        }
        id_ = api.call("POST", "/v1.1/demo/job-binaries", json=binary).json["job_binary"]["id"]
        path = f"/v1.1/demo/job-binaries/{id_}/data"
        answer = api.call("GET", path)
        self.assertEqual((answer.status, answer.body), (200, b"data"))
        self.assertEqual(answer.headers["content-length"], "4")
        wrong = {**binary, "name": "c", "extra": {"user": "demo", "password": "wrong"}}
        made = api.call("POST", "/v1.1/demo/job-binaries", json=wrong).json["job_binary"]["id"]
        refused = api.call("GET", f"/v1.1/demo/job-binaries/{made}/data")
        self.assertEqual((refused.status, refused.json["error_name"]), (400, "BAD_JOB_BINARY"))
        self.assertEqual(api.call("DELETE", f"{box}/dir/a.pig", headers=mine).status, 204)
        gone = api.call("GET", path)
        self.assertEqual((gone.status, gone.json["error_name"]), (400, "INVALID_REFERENCE"))
        api.faults.add(where="object-store", effect=Effect.REFUSED)
        self.assertEqual(api.call("GET", path).status, 503)

    def test_an_image_in_use_cannot_be_unregistered(self) -> None:
        """The message names the cluster."""
        api = self.service()
        Api(api).new_cluster("c")
        answer = api.call("DELETE", f"/v1.0/demo/images/{api.image_id}")
        self.assertEqual((answer.status, answer.json["error_name"]), (400, "INVALID_REFERENCE"))
        self.assertIn("'c'", answer.json["error_message"])

    def test_events_are_listed(self) -> None:
        """Oldest first."""
        api = self.service()
        id_ = Api(api).active_cluster()
        listed = api.call("GET", f"/v1.1/demo/clusters/{id_}/events").json["events"]
        found = [(each["step"], each["outcome"]) for each in listed]
        self.assertEqual(found[0], ("request", "accepted"))
        self.assertEqual(found[-1], ("Active", "done"))
        stamps = [each["at"] for each in listed]
        self.assertEqual(stamps, sorted(stamps))

    def test_the_log_of_an_execution_is_text(self) -> None:
        """Additive."""
        api = self.service()
        answer = api.call("GET", "/v1.1/demo/job-executions/nope/log")
        self.assertEqual(answer.status, 404)

    def test_a_failed_upload_leaves_nothing(self) -> None:
        """Neither record nor pieces."""
        api = self.service()
        put = ("PUT", "/v1.1/demo/job-binary-internals/a")
        self.assertEqual(api.call(*put, data=b"1").status, 202)
        self.assertEqual(api.call(*put, data=b"2" * 600_000).status, 400)
        listed = api.call("GET", "/v1.1/demo/job-binary-internals").json["binaries"]
        self.assertEqual([each["datasize"] for each in listed], [1])

    def test_paging_of_images(self) -> None:
        """By name and by marker, under v1.1 only."""
        api = self.service()
        ids = [VANILLA_IMAGE_ID, api.image_id]
        for id_ in ids:
            api.call("POST", f"/v1.0/demo/images/{id_}", json={"username": "u"})
        for query, expected in (
            ("?limit=1", ids[:1]),
            (f"?marker={ids[0]}", ids[1:]),
            ("?name=plain", [api.image_id]),
        ):
            listed = api.call("GET", f"/v1.1/demo/images{query}").json["images"]
            self.assertEqual([each["id"] for each in listed], expected)
            everything = api.call("GET", f"/v1.0/demo/images{query}").json["images"]
            self.assertEqual([each["id"] for each in everything], ids)
        self.assertEqual(api.call("GET", "/v1.1/demo/images?marker=x").status, 404)
