"""Nova v2.1: flavors, key pairs, servers, groups, attachments, limits. Source: its API."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from attrs import evolve
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from klein import Klein

from svcd.embedded.cloud import compute_shapes as shapes
from svcd.embedded.cloud.core import (
    DEMO_KEYPAIR,
    FLAVORS,
    Core,
)
from svcd.embedded.cloud.life import Life
from svcd.embedded.cloud.new_servers import NewServers, flavor_named
from svcd.embedded.cloud.openstack import NovaService, caller, owned, project_of, text_of
from svcd.embedded.cloud.records import Image, KeyPair, Server, ServerGroup
from svcd.embedded.services import Call, Refusal, Reply
from svcd.runtime.keys import new_key_pair
from svcd.web.routing import route

_FIXED_LIMITS = {
    "key_pairs": 100,
    "metadata_items": 128,
    "server_group_members": 1000,
    "server_groups": 1000,
}
_POLICIES = ("anti-affinity", "soft-anti-affinity")
"""Policies that svcd and its users ask for."""
_LETTERS = "bcdefghijklmnopqrstuvwxyz"


class Compute(NovaService):
    """Mounted at /compute."""

    app = Klein()
    where = "compute"

    def __init__(self, core: Core, life: Life) -> None:
        super().__init__(core)
        self._life = life
        self._new = NewServers(core, life)

    def authorize(self, call: Call, segments: list[str]) -> None:
        """Version documents are open. Every answer names its microversion."""
        super().authorize(call, segments)
        spoken = shapes.asked_version(call)
        try:
            spoken = "{}.{}".format(*self._version(call))
        finally:
            call.set_answer_header("OpenStack-API-Version", f"compute {spoken}")
            call.set_answer_header("X-OpenStack-Nova-API-Version", spoken)
            call.set_answer_header("Vary", "X-OpenStack-Nova-API-Version")

    def _version(self, call: Call) -> tuple[int, int]:
        """The microversion of the answer. Raises Refusal 400 or 406."""
        return shapes.microversion(call, self._core.newest_compute)

    @route(app, ["GET"], "/")
    def versions(self, call: Call) -> Reply:
        return Reply(body={"versions": [shapes.version_body(self._core)]})

    @route(app, ["GET"], "/v2.1")
    def version(self, call: Call) -> Reply:
        return Reply(body={"version": shapes.version_body(self._core)})

    # ---- flavors ----

    @route(app, ["GET"], "/v2.1/flavors")
    @route(app, ["GET"], "/v2.1/flavors/detail")
    def flavors(self, call: Call) -> Reply:
        rows = [shapes.flavor_body(self._core, flavor) for flavor in FLAVORS.values()]
        return self.listing(call, "flavors", rows)

    @route(app, ["GET"], "/v2.1/flavors/<flavor_id>")
    def flavor(self, call: Call, flavor_id: str) -> Reply:
        return Reply(body={"flavor": shapes.flavor_body(self._core, flavor_named(flavor_id, 404))})

    @route(app, ["GET"], "/v2.1/flavors/<flavor_id>/os-extra_specs")
    def extra_specs(self, call: Call, flavor_id: str) -> Reply:
        return Reply(body={"extra_specs": {}})

    # ---- key pairs ----

    @route(app, ["GET"], "/v2.1/os-keypairs")
    def keypairs(self, call: Call) -> Reply:
        me = caller(call).user_id
        mine = self._core.state.keypairs.having("user", me)
        demo = self._core.keypair(me, DEMO_KEYPAIR)
        if demo is not None and demo not in mine:
            mine.insert(0, demo)
        return Reply(body={"keypairs": [{"keypair": shapes.keypair_body(k)} for k in mine]})

    @route(app, ["POST"], "/v2.1/os-keypairs")
    def create_keypair(self, call: Call) -> Reply:
        new = call.read_in("keypair", shapes.NewKeyPair)
        me = caller(call).user_id
        if self._core.keypair(me, new.name) is not None:
            raise Refusal(409, f"Key pair '{new.name}' already exists.")
        public, secret = new.public_key, {}
        if public is None:
            public, private = new_key_pair("")
            secret = {"private_key": private.reveal()}
        try:
            load_ssh_public_key(public.encode("utf-8"))
        except (ValueError, UnsupportedAlgorithm):
            raise Refusal(400, "Keypair data is invalid: failed to generate key") from None
        pair = KeyPair(
            id=f"{me}/{new.name}",
            user_id=me,
            name=new.name,
            public_key=public.strip(),
            created_at=self._core.now(),
        )
        self._core.state.keypairs.put(pair)
        return Reply(status=201, body={"keypair": shapes.keypair_body(pair) | secret})

    @route(app, ["GET"], "/v2.1/os-keypairs/<name>")
    def keypair(self, call: Call, name: str) -> Reply:
        pair = self._core.keypair(caller(call).user_id, name)
        if pair is None:
            raise Refusal(404, f"Keypair {name} not found for user {caller(call).user_id}")
        created = text_of(pair.created_at, "bare")
        changed = {"created_at": created, "updated_at": None, "deleted_at": None}
        more = {"id": 1, "deleted": False, **changed}
        return Reply(body={"keypair": shapes.keypair_body(pair) | more})

    @route(app, ["DELETE"], "/v2.1/os-keypairs/<name>")
    def delete_keypair(self, call: Call, name: str) -> Reply:
        id_ = f"{caller(call).user_id}/{name}"
        if self._core.state.keypairs.get(id_) is None:
            raise Refusal(404, f"Keypair {name} not found for user {caller(call).user_id}")
        self._core.state.keypairs.remove(id_)
        return Reply(status=204)

    # ---- servers ----

    def _own(self, call: Call, server_id: str) -> Server:
        text = f"Instance {server_id} could not be found."
        return owned(call, self._core.state.servers, server_id, text)

    def _named(self, call: Call) -> list[Server]:
        """The project's servers whose names match the query, newest first."""
        project, servers = project_of(call), self._core.state.servers
        name = call.one("name")
        prefix = _whole_prefix(name)
        key = ("prefix", (project, prefix)) if prefix else ("project", project)
        try:
            pattern = re.compile(name)
        except re.error:
            raise Refusal(400, f"Invalid input for query parameters name: {name}") from None
        rows = self._core.listed(servers.having(*key), Server)
        mine = [server for server in reversed(rows) if server.project_id == project]
        call.query.pop("name", None)  # the other parameters are plain fields
        return [server for server in mine if pattern.search(server.name)]

    @route(app, ["GET"], "/v2.1/servers")
    def servers(self, call: Call) -> Reply:
        rows = [{"id": s.id, "name": s.name, "links": []} for s in self._named(call)]
        return self.listing(call, "servers", rows)

    @route(app, ["GET"], "/v2.1/servers/detail")
    def servers_in_detail(self, call: Call) -> Reply:
        rows = []
        for server in self._named(call):
            rows.append(shapes.server_body(self._core, self._life, server))
            if server.host < 0:  # as Nova: only a request for the single server shows the reason
                rows[-1].pop("fault", None)
        return self.listing(call, "servers", rows)

    @route(app, ["GET"], "/v2.1/servers/<server_id>")
    def server(self, call: Call, server_id: str) -> Reply:
        server = self._own(call, server_id)
        return Reply(body={"server": shapes.server_body(self._core, self._life, server)})

    @route(app, ["POST"], "/v2.1/servers")
    def create_server(self, call: Call) -> Reply:
        body = call.read(shapes.ServerBody)
        server = self._new.create(caller(call), body, self._version(call))
        href = f"{self._core.public_url}/compute/v2.1/servers/{server.id}"
        shown = {
            "id": server.id,
            "links": [{"rel": "self", "href": href}],
            "OS-DCF:diskConfig": "MANUAL",
            "security_groups": [{"name": name} for name in server.security_groups],
            "adminPass": self._core.new_id()[:12],
        }
        return Reply(status=202, body={"server": shown}, headers={"Location": href})

    @route(app, ["DELETE"], "/v2.1/servers/<server_id>")
    def delete_server(self, call: Call, server_id: str) -> Reply:
        server, core = self._own(call, server_id), self._core
        now = core.now()
        if server.desired != "DELETED":
            server = evolve(server, desired="DELETED", task_state="deleting", updated_at=now)
            core.state.servers.put(evolve(server, due_at=now + core.config.delete_s))
            for image in core.images():
                if image.source_id == server_id and now < image.saved_at:
                    core.state.images.remove(image.id)  # as Nova: its snapshot ends with it
        self._life.wake_server(server_id)
        return Reply(status=204)

    @route(app, ["POST"], "/v2.1/servers/<server_id>/action")
    def action(self, call: Call, server_id: str) -> Reply:
        server = self._own(call, server_id)
        asked, now = call.read(dict[str, Any]), self._core.now()
        if "createImage" in asked:
            return self._create_image(server, asked["createImage"])
        if "os-getConsoleOutput" in asked:  # the machines have no console
            return Reply(body={"output": ""})
        verb = next((v for v in ("os-start", "os-stop") if v in asked), None)
        if verb is None:
            raise Refusal(400, "There is no such action: " + ", ".join(asked))
        needed, desired, task = ("SHUTOFF", "ACTIVE", "powering-on")
        if verb == "os-stop":
            needed, desired, task = ("ACTIVE", "SHUTOFF", "powering-off")
        if server.status != needed or server.desired == "DELETED":
            raise _conflict(verb[3:], server)
        self._core.state.servers.put(
            evolve(server, desired=desired, task_state=task, updated_at=now, due_at=now)
        )
        self._life.wake_server(server_id)
        return Reply(status=202)

    def _create_image(self, server: Server, body: Any) -> Reply:
        """Begin a snapshot, a record with the properties of the server's own image, as Nova's.

        A machine of it begins as empty as one of any other image.
        """
        try:
            new = msgspec.convert(body, shapes.NewSnapshot)
        except msgspec.ValidationError as error:
            raise Refusal(400, f"Invalid input for field/attribute createImage. {error}") from None
        if server.status not in ("ACTIVE", "SHUTOFF") or server.desired == "DELETED":
            raise _conflict("createImage", server)
        core, base, source = self._core, self._core.image(server.image_id), server.image_id
        own = {"instance_uuid": server.id, "base_image_ref": source, "image_type": "snapshot"}
        now = core.now()
        image = Image(
            id=core.new_id(),
            name=new.name,
            owner=server.project_id,
            visibility="private",
            status="active",
            min_disk_gib=FLAVORS[server.flavor_id].disk_gib,
            properties={**({} if base is None else base.properties), **own, **new.metadata},
            created_at=now,
            updated_at=now,
            saved_at=now + core.config.boot_s,
            source_id=server.id,
        )
        core.state.images.put(image)
        headers = {"Location": f"{core.public_url}/image/{image.id}"}
        return Reply(status=202, body={"image_id": image.id}, headers=headers)

    @route(app, ["POST"], "/v2.1/servers/<server_id>/metadata")
    def add_metadata(self, call: Call, server_id: str) -> Reply:
        server = self._own(call, server_id)
        metadata = server.metadata | call.read_in("metadata", dict[str, str])
        self._core.state.servers.put(evolve(server, metadata=metadata))
        return Reply(body={"metadata": metadata})

    # ---- attachments ----

    @route(app, ["GET"], "/v2.1/servers/<server_id>/os-volume_attachments")
    def attachments(self, call: Call, server_id: str) -> Reply:
        self._own(call, server_id)
        volumes = self._core.state.volumes.having("server", server_id)
        return Reply(body={"volumeAttachments": [shapes.attachment_body(v) for v in volumes]})

    @route(app, ["POST"], "/v2.1/servers/<server_id>/os-volume_attachments")
    def attach(self, call: Call, server_id: str) -> Reply:
        server = self._own(call, server_id)
        wanted = call.read_in("volumeAttachment", shapes.NewAttachment)
        volumes = self._core.state.volumes
        text = f"Volume {wanted.volumeId} could not be found."
        volume = owned(call, volumes, wanted.volumeId, text)
        if server.status not in ("ACTIVE", "SHUTOFF") or server.desired == "DELETED":
            raise _conflict("attach_volume", server)
        if volume.server_id is not None:
            text = f"Invalid volume: volume {volume.id} is already attached to instances: "
            raise Refusal(400, text + volume.server_id)
        if volume.status != "available":
            text = f"Invalid volume: volume '{volume.id}' status must be 'available'. "
            raise Refusal(400, text + f"Currently in '{volume.status}'")
        used = {v.device for v in volumes.having("server", server_id)}
        device = next(d for d in map("/dev/vd{}".format, _LETTERS) if d not in used)
        volume = evolve(volume, server_id=server_id, device=device)
        volume = self._life.change_volume(volume, "attaching")
        return Reply(body={"volumeAttachment": shapes.attachment_body(volume)})

    @route(app, ["DELETE"], "/v2.1/servers/<server_id>/os-volume_attachments/<volume_id>")
    def detach(self, call: Call, server_id: str, volume_id: str) -> Reply:
        self._own(call, server_id)
        volume = self._core.state.volumes.get(volume_id)
        if volume is None or volume.server_id != server_id:
            raise Refusal(404, f"volume_id not found: {volume_id}")
        if volume.status != "in-use":
            text = f"Invalid volume: Invalid input received: Volume status is {volume.status}"
            raise Refusal(400, text)
        self._life.change_volume(volume, "detaching")
        return Reply(status=202)

    # ---- server groups ----

    @route(app, ["GET"], "/v2.1/os-server-groups")
    def groups(self, call: Call) -> Reply:
        offset, limit = call.one("offset", "0"), call.one("limit", "1000")
        if not (offset.isdigit() and limit.isdigit()):
            raise Refusal(400, "Invalid input for query parameters limit, offset")
        mine = self._core.state.server_groups.having("project", project_of(call))
        shown = mine[int(offset) :][: int(limit)]
        return Reply(body={"server_groups": [shapes.group_body(self._core, g) for g in shown]})

    @route(app, ["POST"], "/v2.1/os-server-groups")
    def create_group(self, call: Call) -> Reply:
        new = call.read_in("server_group", shapes.NewGroup)
        policy = new.policy if self._version(call) >= (2, 64) else next(iter(new.policies), None)
        if policy not in _POLICIES:
            raise Refusal(400, f"Invalid input for field/attribute policy. Value: {policy}.")
        group = ServerGroup(
            id=self._core.new_id(),
            name=new.name,
            project_id=project_of(call),
            user_id=caller(call).user_id,
            policy=policy,
        )
        self._core.state.server_groups.put(group)
        return Reply(body={"server_group": shapes.group_body(self._core, group)})

    def _own_group(self, call: Call, group_id: str) -> ServerGroup:
        text = f"Instance group {group_id} could not be found."
        return owned(call, self._core.state.server_groups, group_id, text)

    @route(app, ["GET"], "/v2.1/os-server-groups/<group_id>")
    def group(self, call: Call, group_id: str) -> Reply:
        group = self._own_group(call, group_id)
        return Reply(body={"server_group": shapes.group_body(self._core, group)})

    @route(app, ["DELETE"], "/v2.1/os-server-groups/<group_id>")
    def delete_group(self, call: Call, group_id: str) -> Reply:
        self._core.state.server_groups.remove(self._own_group(call, group_id).id)
        return Reply(status=204)

    # ---- limits and quotas ----

    def _used(self, project_id: str) -> dict[str, int]:
        """The resources that a project uses, by Nova's names."""
        used = dict(self._core.used(project_id))
        groups = self._core.state.server_groups.count("project", project_id)
        return {**used, "ram": used.pop("ram_mib"), "server_groups": groups}

    def _limits(self, project_id: str) -> dict[str, int]:
        names = {"instances": "instances", "cores": "cores", "ram": "ram_mib"}
        limits = {name: self._core.limit(project_id, key) for name, key in names.items()}
        return limits | _FIXED_LIMITS

    @route(app, ["GET"], "/v2.1/limits")
    def limits(self, call: Call) -> Reply:
        most, used = self._limits(project_of(call)), self._used(project_of(call))
        absolute = {
            "maxTotalInstances": most["instances"],
            "maxTotalCores": most["cores"],
            "maxTotalRAMSize": most["ram"],
            "maxServerMeta": most["metadata_items"],
            "maxTotalKeypairs": most["key_pairs"],
            "maxServerGroups": most["server_groups"],
            "maxServerGroupMembers": most["server_group_members"],
            "totalInstancesUsed": used["instances"],
            "totalCoresUsed": used["cores"],
            "totalRAMUsed": used["ram"],
            "totalServerGroupsUsed": used["server_groups"],
        }
        return Reply(body={"limits": {"rate": [], "absolute": absolute}})

    @route(app, ["GET"], "/v2.1/os-quota-sets/<project_id>")
    def quota(self, call: Call, project_id: str) -> Reply:
        return self.quota_set(call, project_id, self._limits(project_id), None)

    @route(app, ["GET"], "/v2.1/os-quota-sets/<project_id>/detail")
    def quota_detail(self, call: Call, project_id: str) -> Reply:
        limits, used = self._limits(project_id), self._used(project_id)
        return self.quota_set(call, project_id, limits, used)


def _conflict(action: str, server: Server) -> Refusal:
    state = shapes.VM_STATES.get(server.status, server.status.lower())
    return Refusal(409, f"Cannot '{action}' instance {server.id} while it is in vm_state {state}")


def _whole_prefix(pattern: str) -> str:
    """The beginning up to a hyphen of all names that match `pattern`, "" when none is certain."""
    if not re.fullmatch(r"\^(?:[A-Za-z0-9_-]|\\[^A-Za-z0-9])*", pattern):
        return ""
    literal = re.sub(r"\\(.)", r"\1", pattern[1:])
    return literal[: literal.rfind("-") + 1]
