"""Whatever a peer answers becomes a value or a fault of its port, and never another exception."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource
from twisted.web.server import Request

from svcd.clients.cloud import OpenStack
from svcd.clients.http import HttpClient
from svcd.clients.oozie import OozieClient, engine_error
from svcd.clients.ownership_tags import TaggedCloud
from svcd.clients.webhdfs import WebHdfsClient
from svcd.embedded.memory_agent import MemoryAgent
from svcd.model.cloud import Caller, NewServer, Opening
from svcd.model.ids import ClusterId, ExecutionId, TenantId
from svcd.model.secret import Secret
from svcd.ports.cloud import Access
from svcd.ports.faults import PortError
from svcd.ports.machines import Location
from svcd.provisioning.distributions.vanilla import probes
from svcd.runtime.clock import VirtualClock
from svcd.settings import CloudSettings
from svcd.workflow.decide import causes, failures
from svcd.workflow.decide.evidence import LAUNCHER, Evidence, LogFile
from svcd.workflow.decide.lifecycle import status_of
from svcd.workflow.decide.masking import reading
from tests.fuzz.anything import TREES, few, spoiled
from tests.support.steps import ended
from tests.unit.workflow.recorded import record

ORIGIN = "http://peer.test"
CATALOG = [
    {
        "type": kind,
        "endpoints": [{"interface": "public", "region": "r", "url": f"{ORIGIN}/{kind}"}],
    }
    for kind in ("compute", "image", "network", "volumev3", "object-store")
]
TOKEN = {
    "token": {
        "user": {"id": "u", "name": "u"},
        "project": {"id": "p"},
        "roles": [{"name": "member"}],
        "issued_at": "2026-01-01T00:00:00.000000Z",
        "expires_at": "2036-01-01T00:00:00.000000Z",
        "catalog": CATALOG,
    }
}
SERVER = {
    "id": "s",
    "name": "n",
    "status": "ERROR",
    "metadata": {"svcd_cluster_id": "c", "svcd_instance_id": "i"},
    "addresses": {"net": [{"addr": "10.0.0.1", "version": 4, "OS-EXT-IPS:type": "fixed"}]},
    "fault": {"message": "m"},
    "created": "2026-01-01T00:00:00Z",
}
ROWS: Mapping[str, Any] = {
    "servers": [SERVER],
    "server": SERVER,
    "flavors": [{"id": "1", "name": "f", "ram": 1, "vcpus": 1, "disk": 1}],
    "keypair": {"name": "k", "public_key": "ssh"},
    "limits": {"absolute": {"maxTotalInstances": 1, "totalInstancesUsed": 0}},
    "server_groups": [{"id": "g", "name": "n"}],
    "server_group": {"id": "g"},
    "volumeAttachment": {"device": "/dev/vdb"},
    "volumeAttachments": [{"volumeId": "v", "device": "/dev/vdb"}],
    "volumes": [{"id": "v", "status": "available", "attachments": [{"server_id": "s"}]}],
    "volume": {"id": "v"},
    "networks": [{"id": "n", "name": "n", "router:external": True}],
    "security_groups": [{"id": "g", "name": "n", "security_group_rules": [{"direction": "x"}]}],
    "security_group": {"id": "g", "security_group_rules": []},
    "ports": [{"id": "p", "fixed_ips": [{"ip_address": "10.0.0.1"}], "security_groups": ["g"]}],
    "floatingips": [{"id": "f", "floating_ip_address": "1.2.3.4", "description": "d"}],
    "floatingip": {"id": "f"},
    "quota": {"floatingip": {"limit": 1, "used": 0, "reserved": 0}},
    "images": [{"id": "i", "name": "n", "status": "active", "min_disk": 1}],
    "id": "i",
    "status": "active",
    "version": {"version": "2.90", "min_version": "2.1", "id": "v2.1"},
    "trusts": [{"id": "t", "project_id": "p", "impersonation": True, "expires_at": "2100"}],
    "trust": {"id": "t"},
    "catalog": CATALOG,
}

SSH = Opening(22, "0.0.0.0/0")


class Peer(Resource):
    """Answers every call with one and the same body, but issues a token that is in order."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.body = b""
        self.status = 200
        self.token = json.dumps(TOKEN).encode()

    def render(self, request: Request) -> bytes:
        if request.path.endswith(b"/auth/tokens"):
            request.setResponseCode(201 if request.method == b"POST" else 200)
            request.setHeader(b"x-subject-token", b"tok")
            return self.token
        request.setResponseCode(self.status)
        return self.body


class AnswerCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.agent = MemoryAgent(self.clock)
        self.peer = Peer()
        self.agent.serve(ORIGIN, self.peer)

    def ask(self, call: Callable[[], Awaitable[Any]]) -> None:
        """The call ends by itself, with a value or a PortError."""
        ended: list[Any] = []

        async def run() -> None:
            try:
                await call()
            except PortError as error:
                self.assertLess(len(error.text), 3000)

        Deferred.fromCoroutine(run()).addBoth(ended.append)
        for _ in range(200):
            if ended:
                break
            self.clock.advance(self.clock.next_call_in() or 0.0)
        self.assertEqual(ended, [None])


class OpenStackTests(AnswerCase):
    """Every call of ports.CloudSession and of the identity service."""

    def calls(self) -> list[Callable[[], Awaitable[Any]]]:
        settings = CloudSettings(auth_url=f"{ORIGIN}/v3", username="u", password="p", project="p")
        cloud = OpenStack(self.agent, self.clock, settings)
        tenant = TenantId("p")
        caller = Caller(tenant_id=tenant, user_id="u", roles=("r",), token=Secret("t"))
        s = cloud.session(Access(tenant_id=tenant))
        marked = TaggedCloud(self.agent, self.clock, settings, Secret("t"), "p")
        new = NewServer(name="n", image_id="i", flavor_id="1")
        cluster = ClusterId("c")
        return [
            s.images,
            lambda: s.image("i"),
            lambda: s.set_image_properties("i", {"_svc_username": "x"}, ["y"]),
            s.flavors,
            lambda: s.keypair("k"),
            s.quota,
            s.networks,
            lambda: s.create_security_group("n", "d", [SSH]),
            lambda: s.delete_security_group("g"),
            lambda: s.find_security_groups("n"),
            s.floating_ips,
            lambda: s.create_floating_ip("n", "d"),
            lambda: s.associate_floating_ip("f", "s"),
            lambda: s.servers(cluster, "n"),
            lambda: s.server("s"),
            lambda: s.create_server(new),
            lambda: s.create_server_group("n"),
            lambda: s.find_server_groups("n"),
            lambda: s.volumes(cluster),
            lambda: s.create_volume("n", 1, {}),
            lambda: s.attach_volume("s", "v"),
            lambda: cloud.create_trust(caller, "2134-05-06T07:08:09.000000Z"),
            lambda: cloud.delete_trust("t"),
            marked.things,
        ]

    @few(120)
    @given(
        body=(spoiled(ROWS) | TREES).map(lambda tree: json.dumps(tree).encode())
        | st.binary(max_size=40),
        status=st.sampled_from([200, 200, 201, 300, 400, 403, 404, 409, 500, 503]),
    )
    def test_nearly_good_answers(self, body: bytes, status: int) -> None:
        """Values of another kind, missing ones, lists for objects; any JSON, and any bytes."""
        self.peer.body, self.peer.status = body, status
        for call in self.calls():
            self.ask(call)

    @few(60)
    @given(tree=spoiled(TOKEN))
    def test_nearly_good_tokens(self, tree: Any) -> None:
        """A catalog that leads nowhere, a moment that is none."""
        self.peer.token = json.dumps(tree).encode()
        self.peer.body, self.peer.status = b"{}", 200
        for call in (self.calls()[0], self.calls()[3], self.calls()[-3], self.calls()[-1]):
            self.ask(call)


ENGINE = {
    **record("job-killed-exception"),
    "workflows": [{"id": "j", "status": "RUNNING", "lastModTime": "x", "externalId": "e"}],
    "systemMode": "NORMAL",
    "FileStatuses": {"FileStatus": [{"pathSuffix": "a"}]},
    "Location": f"{ORIGIN}/webhdfs",
    "boolean": True,
    "RemoteException": {"exception": "E", "message": "m"},
}


class EngineTests(AnswerCase):
    """Oozie and WebHDFS, and what is made of the engine's record."""

    def calls(self) -> list[Callable[[], Awaitable[Any]]]:
        http = HttpClient(self.agent, self.clock, engine_error)
        oozie, files = OozieClient(http), WebHdfsClient(http)
        id_, at = str(ENGINE["id"]), Location(ORIGIN)

        async def once() -> Any:
            yield b"x"

        return [
            lambda: oozie.status(at),
            lambda: oozie.submit(at, {"a": "b"}),
            lambda: oozie.find(at, ExecutionId("e")),
            lambda: oozie.record(at, id_),
            lambda: oozie.lines(at, ["j"]),
            lambda: oozie.kill(at, id_),
            lambda: oozie.log(at, id_),
            lambda: files.make_folders(at, "/a", "u"),
            lambda: files.write(at, "/a", "u", once(), 1),
            lambda: files.delete(at, "/a", "u"),
        ]

    @few(120)
    @given(tree=spoiled(ENGINE) | TREES, status=st.sampled_from([200, 201, 400, 404, 500]))
    def test_nearly_good_answers(self, tree: Any, status: int) -> None:
        self.peer.body, self.peer.status = json.dumps(tree).encode(), status
        for call in self.calls():
            self.ask(call)

    @few(200)
    @given(tree=spoiled(record("job-killed-exception")), diagnosis=st.text(max_size=30))
    def test_records_are_read_whatever_they_hold(self, tree: Any, diagnosis: str) -> None:
        """A failure with a code and a text, a status or none, a stamp or none."""
        kept = ended(reading(tree, [Secret("secret")]))
        file = LogFile(place=LAUNCHER, name="stdout", text=diagnosis)
        told = ended(causes.judging(kept, Evidence(attempts=[diagnosis], files=[file])))
        self.assertIn(told.code, failures.Code.__members__)
        self.assertLess(len(told.text), 3000)
        for found in (kept.gave_up, kept.held, kept.unlaunched):
            if found is not None:
                causes.of_giving_up(found)
        status_of(tree.get("status"))
        self.assertIsNot(kept.tree, tree)
        for moment in (kept.started, kept.ended, kept.created):
            self.assertIsInstance(moment, str | None)


class ProbeTests(SynchronousTestCase):
    """What daemons on machines answer."""

    @few(150)
    @given(
        body=st.binary(max_size=30) | TREES.map(lambda t: json.dumps(t).encode()),
        status=st.sampled_from([200, 404, 500]),
    )
    def test_nonsense_is_waited_for(self, body: bytes, status: int) -> None:
        """A text that says what is missing."""
        for each in (
            probes.Shows("x"),
            probes.AnyDataNode(("10.0.0.1",)),
            probes.SafeModeOff(),
            probes.Decommissioned(("10.0.0.1",)),
            probes.NodeManagerServes("10.0.0.1", "n", "c"),
            probes.OwnNodes("c"),
            probes.NodesGone({"10.0.0.1": "n"}),
            probes.OozieNormal(),
            probes.ShareLibraryKnown(),
        ):
            self.assertIsInstance(each(status, body), str)
