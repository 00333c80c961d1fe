"""Each way by which a secret once got into a text of ours, as a literal case."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger, LogPublisher
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http import Request
from twisted.web.resource import Resource

from svcd.clients.cloud import cloud_error
from svcd.clients.http import Answer, HttpClient
from svcd.clients.identity import Keystone, Scope
from svcd.clients.oozie import OozieClient, engine_error
from svcd.clients.rest import refusal
from svcd.clients.webhdfs import fault_of
from svcd.declaration import SettingsError
from svcd.embedded.memory_agent import MemoryAgent
from svcd.embedded.scripted import Said, ScriptedRemote
from svcd.model.job import Credentials, JobConfigs
from svcd.model.secret import Secret
from svcd.ports.faults import PortError
from svcd.ports.machines import Location
from svcd.provisioning.act.shells import Shells
from svcd.runtime import logs
from svcd.runtime.clock import VirtualClock
from svcd.runtime.preflight import check
from svcd.settings import CloudSettings, load
from svcd.workflow.decide import document
from svcd.workflow.decide.masking import masked_text
from tests.unit.provisioning.support import cluster, group, instance

TOKEN = "gAAAAABmcanary0123456789abcdefghijklmn"


class Repeats(Resource):
    """Refuses with all that it was sent. status: its answer's."""

    isLeaf = True
    status = 400

    def render(self, request: Request) -> bytes:
        request.setResponseCode(self.status)
        fields = request.requestHeaders.getAllRawHeaders()
        headers = {n.decode(): v[0].decode("utf-8") for n, v in fields}
        said = f"{headers} {request.content.read().decode()}"
        if b"/webhdfs/" in request.path:
            told: Mapping[str, object] = {"exception": "IOException", "message": said}
            return json.dumps({"RemoteException": told}).encode()
        if b"/oozie/" in request.path:
            return json.dumps({"errorMessage": said}).encode()
        return json.dumps({"error": {"message": said}}).encode()


class PeerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.peer = Repeats()
        self.agent = MemoryAgent(self.clock)
        self.agent.serve("http://peer", self.peer)

    def http(self, error: Any = cloud_error) -> HttpClient:
        return HttpClient(self.agent, self.clock, error)

    def refused(self, work: Any) -> str:
        failure = self.failureResultOf(Deferred.fromCoroutine(work), PortError)
        return str(failure.value.text)

    def keystone(self, **given: str) -> Keystone:
        settings = CloudSettings(auth_url="http://peer/v3", username="svcd", **given)
        return Keystone(self.http(), settings, self.clock)

    def test_own_password(self) -> None:
        """It stood in the refusal of a login, JSON in JSON."""
        text = self.refused(self.keystone(password="pass-\"wörd'").own(Scope()))
        self.assertIn('"name": "svcd"', text)
        self.assertIn('"password": "***"', text)

    def test_application_credential(self) -> None:
        """Id and secret."""
        given = {"application_credential_id": "a" * 32, "application_credential_secret": "b" * 86}
        text = self.refused(self.keystone(**given).own(Scope()))
        self.assertNotRegex(text, "a{12}|b{12}")

    def test_trust_of_a_login_and_of_a_path(self) -> None:
        """The id of one stood in the refusal and in the address."""
        keystone = self.keystone(password="pass-word")
        text = self.refused(keystone.own(Scope(trust_id="0123456789abcdef0123")))
        self.assertIn('"OS-TRUST:trust": {"id": "***"}', text)
        url = "http://peer/v3/OS-TRUST/trusts/0123456789abcdef"
        answer = Answer(status=409, headers={}, body=b"")
        text = refusal("identity", "DELETE", url, answer).text
        self.assertEqual(
            text,
            "identity: DELETE http://peer/v3/OS-TRUST/trusts/*** was answered 409: no reason given",
        )

    def test_account_of_a_data_source(self) -> None:
        """Its password goes to the identity service."""
        keystone = self.keystone(password="pass-word")
        text = self.refused(keystone.of_user("reader", "of-the-reader", "t"))
        self.assertNotIn("of-the-reader", text)

    def test_tokens_of_headers(self) -> None:
        """In a refusal, and in the body of a success."""
        for name in ("X-Auth-Token", "x-subject-token"):
            for self.peer.status in (400, 200):
                work = self.http().request("GET", "http://peer/x", headers={name: TOKEN})
                answer = self.successResultOf(Deferred.fromCoroutine(work))
                self.assertNotIn(TOKEN.encode(), answer.body)
                self.assertNotIn(TOKEN, refusal("x", "GET", "http://peer/x", answer).text)

    def test_a_token_that_the_peer_has_cut(self) -> None:
        """Before our own cut: what is left of one at the end of a text is found too."""
        body = b"x" * 280 + TOKEN.encode()
        answer = Answer(status=400, headers={}, body=body, sent=[Secret(TOKEN)])
        self.assertNotIn(TOKEN[:12], refusal("x", "GET", "http://peer/x", answer).text)
        short = Answer(status=400, headers={}, body=TOKEN[:20].encode(), sent=[Secret(TOKEN)])
        self.assertTrue(refusal("x", "GET", "http://h", short).text.endswith("400: ***"))

    def test_properties_that_are_submitted(self) -> None:
        """Those of the engine and of its launcher come from the caller."""
        client = OozieClient(self.http(engine_error))
        given = {"oozie.launcher.x.password": "of-the-<caller>", "oozie.y": "shown"}
        text = self.refused(client.submit(Location("http://peer/oozie"), given))
        self.assertIn("<value>***</value>", text)
        self.assertIn("<value>shown</value>", text)

    def test_content_that_is_uploaded(self) -> None:
        """A binary, or a definition with the passwords of its sources."""
        body = json.dumps({"RemoteException": {"exception": "X", "message": "bad: -- my secret"}})
        answer = Answer(status=400, headers={}, body=body.encode())
        for begin in ("", "yes, "):  # too few characters of the content to be one of its secrets
            error = fault_of("CREATE /a", answer, f"load 'x'; {begin}bad: -- my secret\n".encode())
            self.assertEqual(error.text, "HDFS CREATE /a: HTTP 400 X bad: -- my secret")
        body = body.replace("bad: -- my secret", "load 'x'; -- my secret key")
        answer = Answer(status=400, headers={}, body=body.encode())
        error = fault_of("CREATE /a", answer, b"load 'x'; -- my secret key\n")
        self.assertEqual(error.text, "HDFS CREATE /a: HTTP 400 X ***")


class MachineTests(SynchronousTestCase):
    def test_options_of_a_cluster(self) -> None:
        """A command that fails shows the file it was to write, or a part of it."""
        clock = VirtualClock()
        remote = ScriptedRemote(clock)
        remote.script("", Said(exit_code=1, stdout="is of-cluster<>", stderr="is of-group&gt;"))
        row = cluster(
            group(
                instances=[instance(1, internal_ip="10.0.0.1", management_ip="10.0.0.1")],
                node_configs={"JobFlow": {"oozie.email.smtp.password": "of-group>"}},
            ),
            cluster_configs={"JobFlow": {"oozie.email.smtp.password": "of-cluster<>"}},
        )
        shells = Shells(remote, row, Secret("key"), Secret("of-the-cluster"), 1)
        work = shells.run(row.node_groups[0].instances[0].instance_id, "true", timeout_s=1.0)
        result = self.successResultOf(Deferred.fromCoroutine(work))
        self.assertEqual((result.stdout, result.stderr), ("is ***", "is ***"))


class JobTests(SynchronousTestCase):
    def test_what_the_configurations_call_a_secret(self) -> None:
        """Was masked in the engine's record where a name stood beside it, and nowhere else."""
        configs = JobConfigs(
            configs={"fs.swift.service.x.password": "of-configs"},
            args=("--token", "of-a-flag", "-Da.secret=of-an-option"),
            params={"PASSWORD": "of-params", "URL": "hdfs://u:of-a-url@h/"},
        )
        secrets = document.secrets_of([], configs)
        for word in ("of-configs", "of-a-flag", "of-an-option", "of-params", "of-a-url"):
            self.assertEqual(masked_text(f"failed with {word}", secrets), "failed with ***")


class LogTests(SynchronousTestCase):
    def said(self, error: Exception, form: str) -> str:
        stream = io.StringIO()
        publisher = LogPublisher(logs.observer(stream, form, "debug"))
        try:
            raise error
        except Exception:
            Logger("x", observer=publisher).failure("It failed: {why}", why=error)
        return stream.getvalue()

    def test_text_of_an_unexpected_exception(self) -> None:
        """It quotes what was at hand; secrets that live are known, in any coding."""
        token, account = Secret(TOKEN), Credentials(user="u", password='of-"a-source"')
        for form in ("human", "json"):
            for text in (token.reveal(), account.reveal(), json.dumps(account.reveal())):
                said = self.said(KeyError(f"no {text} here"), form)
                self.assertIn("KeyError", said)
                self.assertNotIn(TOKEN, said)
                self.assertNotIn("a-source", said)


class SettingsTests(SynchronousTestCase):
    def error(self, *flags: str) -> str:
        with self.assertRaises(SettingsError) as raised:
            check(load(None, {}, flags).settings)
        return str(raised.exception)

    def test_a_password_that_libpq_would_take_for_a_host(self) -> None:
        """It named a part of it when it could not find the host, or did not like the port."""
        for password in ("pass@word", "pass/word", "pass%zzword", "pass%00"):
            self.assertEqual(
                self.error(f"database.url=postgresql://u:{password}@h/db"),
                "database.url: user or password contains a character that must be written as %XX"
                " (% as %25, @ as %40, / as %2F)",
            )
        check(load(None, {}, ["database.url=postgresql://u:p%40ss@h/db"]).settings)
