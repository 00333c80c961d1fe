"""Nova v2.1: flavors, key pairs, servers, groups, attachments, limits. Source: its API."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
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
    PRIVATE_NETWORK_ID,
    Core,
    new_ssh_key,
)
from svcd.embedded.cloud.life import Life
from svcd.embedded.cloud.openstack import NovaService, caller, owned, project_of, text_of
from svcd.embedded.cloud.records import Flavor, Image, KeyPair, Server, ServerGroup
from svcd.embedded.services import Call, Refusal, Reply
from svcd.web.routing import route

_FIXED_LIMITS = {
    "key_pairs": 100,
    "metadata_items": 128,
    "server_group_members": 1000,
    "server_groups": 1000,
}
_POLICIES = ("anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity")
_LETTERS = "bcdefghijklmnopqrstuvwxyz"


class Compute(NovaService):
    """Mounted at /compute."""

    app = Klein()
    where = "compute"

    def __init__(self, core: Core, life: Life) -> None:
        super().__init__(core)
        self._life = life

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
        return Reply(body={"flavor": shapes.flavor_body(self._core, _flavor(flavor_id, 404))})

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
            public, private = new_ssh_key()
            secret = {"private_key": private}
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
        call.query.pop("name", None)  # the rest are plain fields
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
        new, core = body.server, self._core
        count = max(new.min_count, new.max_count or new.min_count, 1)
        flavor = _flavor(new.flavorRef.rsplit("/", 1)[-1], 400)
        self._check_image(new)
        pair = core.keypair(caller(call).user_id, new.key_name) if new.key_name else None
        if new.key_name and pair is None:
            raise Refusal(400, "Invalid key_name provided.")
        if new.availability_zone not in (None, "", "nova"):
            raise Refusal(400, "The requested availability zone is not available")
        self._check_networks(call, new.networks)
        groups = self._security_groups(call, [group.name for group in new.security_groups])
        hint = (body.hints or {}).get("group")
        group = core.state.server_groups.get(str(hint)) if hint else None
        if hint and (group is None or group.project_id != project_of(call)):
            raise Refusal(400, f"Instance group {hint} could not be found.")
        self._check_quota(project_of(call), flavor, count)
        names = [new.name] if count == 1 else [f"{new.name}-{i}" for i in range(1, count + 1)]
        first, *_ = [self._place(call, new, name, groups, group, pair) for name in names]
        href = f"{core.public_url}/compute/v2.1/servers/{first.id}"
        shown = {
            "id": first.id,
            "links": [{"rel": "self", "href": href}],
            "OS-DCF:diskConfig": "MANUAL",
            "security_groups": [{"name": name} for name in first.security_groups],
            "adminPass": core.new_id()[:12],
        }
        return Reply(status=202, body={"server": shown}, headers={"Location": href})

    def _place(
        self,
        call: Call,
        new: shapes.NewServer,
        name: str,
        groups: Mapping[str, str],
        group: ServerGroup | None,
        pair: KeyPair | None,
    ) -> Server:
        """Write the record of a new server, and wake the task that boots it."""
        core, now, project = self._core, self._core.now(), project_of(call)
        members = [] if group is None else core.state.servers.having("group", group.id)
        server = Server(
            id=core.new_id(),
            name=name,
            project_id=project,
            user_id=caller(call).user_id,
            image_id=sys.intern(new.imageRef.rsplit("/", 1)[-1]),  # one text for many servers
            flavor_id=sys.intern(new.flavorRef.rsplit("/", 1)[-1]),
            key_name=None if pair is None else pair.name,
            public_key="" if pair is None else pair.public_key,
            user_data=sys.intern(new.user_data or ""),
            metadata={sys.intern(k): sys.intern(v) for k, v in new.metadata.items()},
            security_groups=tuple(groups.values()),
            group_id=None if group is None else group.id,
            host=choose_host(core, group, members),
            status="BUILD",
            task_state="spawning",
            desired="ACTIVE",
            fault="",
            created_at=now,
            updated_at=now,
            due_at=now + core.config.boot_s,
        )
        if server.host >= 0 and new.networks != "none":
            port = self._life.new_port(server.id, project, tuple(groups))
            if port is None:
                text = f"No valid host was found. No address of {core.config.network} is free"
                server = evolve(server, host=-1, fault=text)
        core.state.servers.put(server)
        self._life.wake_server(server.id)
        return server

    def _check_image(self, new: shapes.NewServer) -> None:
        image = self._core.image(new.imageRef.rsplit("/", 1)[-1])
        if image is None:
            raise Refusal(400, "Can not find requested image")
        if self._core.as_now(image).status != "active":
            raise Refusal(400, f"Image {image.id} is not active.")

    def _check_networks(self, call: Call, networks: list[shapes.Net] | str | None) -> None:
        """Check the requested networks. Raises Refusal 400 or 409."""
        if isinstance(networks, str):
            if networks in ("auto", "none") and self._version(call) >= (2, 37):
                return
            raise Refusal(400, f"Invalid input for field/attribute networks. Value: {networks}.")
        for network in networks or ():
            port = self._core.state.ports.get(network.port or "")
            if port is not None and port.project_id == project_of(call) and port.device_id:
                raise Refusal(409, f"Port {port.id} is still in use.")
            if network.uuid != PRIVATE_NETWORK_ID:
                raise Refusal(400, f"Network {network.uuid or network.port} could not be found.")

    def _check_quota(self, project_id: str, flavor: Flavor, count: int) -> None:
        """Check that the quota allows `count` more servers. Raises Refusal 403."""
        used = self._core.used(project_id)
        for word, name, more in (
            ("instances", "instances", count),
            ("cores", "cores", count * flavor.vcpus),
            ("ram", "ram_mib", count * flavor.ram_mib),
        ):
            limit = self._core.limit(project_id, name)
            if 0 <= limit < used[name] + more:
                text = f"Quota exceeded for {word}: Requested {more}, "
                raise Refusal(403, text + f"but already used {used[name]} of {limit} {word}")

    def _security_groups(self, call: Call, words: list[str]) -> dict[str, str]:
        """Id -> name of the groups that `words` name by id or name; without words the default."""
        project, table = project_of(call), self._core.state.security_groups
        groups = {}
        for word in words or ["default"]:
            group = table.get(word)
            if group is None or group.project_id != project:
                named = table.having("name", (project, word.lower()))
                group = next((each for each in named if each.name == word), None)
            if group is None and word == "default":
                group = self._life.default_group(project)
            if group is None:
                raise Refusal(400, f"Security group {word} not found for project {project}.")
            groups[group.id] = group.name
        return groups

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
        if "os-resetState" in asked and "admin" in caller(call).roles:
            state = (asked["os-resetState"] or {}).get("state")
            status = "ACTIVE" if state == "active" else "ERROR"
            self._core.state.servers.put(evolve(server, status=status, updated_at=now))
            return Reply(status=202)
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


def choose_host(core: Core, group: ServerGroup | None, members: Sequence[Server]) -> int:
    """The host of a new server; -1 when the group's policy leaves none."""
    if group is None or group.policy not in ("anti-affinity", "affinity"):
        return core.rng.randrange(core.hosts)
    taken = {member.host for member in members if member.host >= 0}
    if group.policy == "affinity" and taken:
        return min(taken)
    free = [host for host in range(core.hosts) if host not in taken]
    return core.rng.choice(free) if free else -1


def _flavor(flavor_id: str, status: int) -> Flavor:
    """The flavor. Raises Refusal `status`."""
    flavor = FLAVORS.get(flavor_id)
    if flavor is None:
        raise Refusal(status, f"Flavor {flavor_id} could not be found.")
    return flavor


def _conflict(action: str, server: Server) -> Refusal:
    state = shapes.VM_STATES.get(server.status, server.status.lower())
    return Refusal(409, f"Cannot '{action}' instance {server.id} while it is in vm_state {state}")


def _whole_prefix(pattern: str) -> str:
    """The beginning up to a hyphen of all names that match `pattern`, "" when none is certain."""
    if not re.fullmatch(r"\^(?:[A-Za-z0-9_-]|\\[^A-Za-z0-9])*", pattern):
        return ""
    literal = re.sub(r"\\(.)", r"\1", pattern[1:])
    return literal[: literal.rfind("-") + 1]
