"""Nova v2.1: flavors, key pairs, servers, groups, attachments, limits. Source: its API."""

from __future__ import annotations

import re
import sys
from typing import Any

import msgspec
from attrs import evolve

from svcd.embedded.cloud.compute_basics import ComputeBasics
from svcd.embedded.cloud.core import FLAVORS, Core
from svcd.embedded.cloud.life import Life
from svcd.embedded.cloud.openstack import Call, of_project, page
from svcd.embedded.cloud.records import KeyPair, SecurityGroup, Server, ServerGroup, Volume
from svcd.embedded.cloud.servers import (
    NewServer,
    NewSnapshot,
    ServerBody,
    check_networks,
    check_quota,
    choose_host,
    server_body,
    snapshot,
)
from svcd.embedded.services import Refusal, Reply
from svcd.web.routing import route


class _NewGroup(msgspec.Struct):
    name: str
    policy: str | None = None
    policies: list[str] = []


class _NewAttachment(msgspec.Struct):
    volumeId: str
    device: str | None = None


class Compute(ComputeBasics):
    """Mounted at /compute."""

    app = ComputeBasics.app  # the same routes, and more

    def __init__(self, core: Core, life: Life) -> None:
        super().__init__(core)
        self._life = life

    # ---- servers ----

    def _own(self, call: Call, server_id: str) -> Server:
        text = f"Instance {server_id} could not be found."
        return call.own(self._core.state.servers, server_id, text)

    def _listed(self, call: Call) -> tuple[list[Server], dict[str, Any]]:
        """The requested page, newest servers first, and the body's field for the next page."""
        project, servers = call.project, self._core.state.servers
        name, status = call.one("name"), call.one("status").upper()
        prefix = _whole_prefix(name)
        found = servers.having("prefix", (project, prefix)) if prefix else None
        rows = self._core.listed(
            servers.having("project", project) if found is None else found, Server
        )
        mine = [server for server in reversed(rows) if server.project_id == project]
        if name:
            try:
                pattern = re.compile(name)
            except re.error:
                raise Refusal(400, f"Invalid input for query parameters name: {name}") from None
            mine = [server for server in mine if pattern.search(server.name)]
        if status:
            mine = [server for server in mine if server.status == status]
        shown, following = page(call, mine, lambda server: server.id)
        return shown, self.next_link(call, "servers", following)

    @route(app, ["GET"], "/v2.1/servers")
    def servers(self, call: Call) -> Reply:
        rows, link = self._listed(call)
        shown = [{"id": s.id, "name": s.name, "links": []} for s in rows]
        return Reply(body={"servers": shown, **link})

    @route(app, ["GET"], "/v2.1/servers/detail")
    def servers_in_detail(self, call: Call) -> Reply:
        version = self.version_of(call)
        rows, link = self._listed(call)
        shown = [server_body(self._core, self._life, s, version) for s in rows]
        for server, each in zip(rows, shown, strict=True):
            if server.host < 0:  # as Nova: only a request for the single server shows the reason
                each.pop("fault", None)
        return Reply(body={"servers": shown, **link})

    @route(app, ["GET"], "/v2.1/servers/<server_id>")
    def server(self, call: Call, server_id: str) -> Reply:
        server, version = self._own(call, server_id), self.version_of(call)
        return Reply(body={"server": server_body(self._core, self._life, server, version)})

    @route(app, ["POST"], "/v2.1/servers")
    def create_server(self, call: Call) -> Reply:
        body = call.read(ServerBody)
        new, core = body.server, self._core
        count = max(new.min_count, new.max_count or new.min_count, 1)
        flavor = FLAVORS.get(new.flavorRef.rsplit("/", 1)[-1])
        if flavor is None:
            raise Refusal(400, f"Flavor {new.flavorRef} could not be found.")
        self._check_image(new)
        pair = core.keypair(call.me.user_id, new.key_name) if new.key_name else None
        if new.key_name and pair is None:
            raise Refusal(400, "Invalid key_name provided.")
        if new.availability_zone not in (None, "", "nova"):
            raise Refusal(400, "The requested availability zone is not available")
        version = self.version_of(call)
        check_networks(core, call.project, new.networks, version)
        groups = self._security_groups(call, [group.name for group in new.security_groups])
        hint = (body.hints or {}).get("group")
        group = core.state.server_groups.get(str(hint)) if hint else None
        if hint and (group is None or group.project_id != call.project):
            raise Refusal(400, f"Instance group {hint} could not be found.")
        check_quota(core, call.project, flavor, count)
        names = [new.name] if count == 1 else [f"{new.name}-{i}" for i in range(1, count + 1)]
        made = [self._place(call, new, name, groups, group, pair) for name in names]
        href = f"{core.public_url}/compute/v2.1/servers/{made[0].id}"
        return Reply(
            status=202,
            body={
                "server": {
                    "id": made[0].id,
                    "links": [{"rel": "self", "href": href}],
                    "OS-DCF:diskConfig": "MANUAL",
                    "security_groups": [{"name": name} for name in made[0].security_groups],
                    "adminPass": core.new_id()[:12],
                }
            },
            headers={"Location": href},
        )

    def _place(
        self,
        call: Call,
        new: NewServer,
        name: str,
        groups: dict[str, str],
        group: ServerGroup | None,
        pair: KeyPair | None,
    ) -> Server:
        """Write the record of a new server, and wake the task that boots it."""
        core, now = self._core, self._core.now()
        members: list[Server] = []
        if group is not None:
            members = core.state.servers.having("group", group.id)
        server = Server(
            id=core.new_id(),
            name=name,
            project_id=call.project,
            user_id=call.me.user_id,
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
            port = self._life.new_port(server.id, call.project, tuple(groups))
            if port is None:
                text = f"No valid host was found. No address of {core.config.network} is free"
                server = evolve(server, host=-1, fault=text)
        core.state.servers.put(server)
        self._life.wake_server(server.id)
        return server

    def _check_image(self, new: NewServer) -> None:
        image = self._core.image(new.imageRef.rsplit("/", 1)[-1])
        if image is None:
            raise Refusal(400, "Can not find requested image")
        if self._core.as_now(image).status != "active":
            raise Refusal(400, f"Image {image.id} is not active.")

    def _security_groups(self, call: Call, words: list[str]) -> dict[str, str]:
        """Id -> name of the groups that `words` name by id or name; without words the default."""
        if not words:
            group = self._life.default_group(call.project)
            return {group.id: group.name}
        found = {}
        for word in words:
            group_ = self._security_group(call.project, word)
            if group_ is None and word == "default":
                group_ = self._life.default_group(call.project)
            if group_ is None:
                raise Refusal(400, f"Security group {word} not found for project {call.project}.")
            found[group_.id] = group_.name
        return found

    def _security_group(self, project: str, word: str) -> SecurityGroup | None:
        """The group with this id, else the group with this name."""
        table = self._core.state.security_groups
        found = table.get(word)
        if found is not None and found.project_id == project:
            return found
        named = table.having("name", (project, word.lower()))
        return next((group for group in named if group.name == word), None)

    @route(app, ["DELETE"], "/v2.1/servers/<server_id>")
    def delete_server(self, call: Call, server_id: str) -> Reply:
        server = self._own(call, server_id)
        core = self._core
        if server.desired != "DELETED":
            core.state.servers.put(
                evolve(
                    server,
                    desired="DELETED",
                    task_state="deleting",
                    updated_at=core.now(),
                    due_at=core.now() + core.config.delete_s,
                )
            )
            for image in list(core.state.images.values()):
                if image.source_id == server_id and core.now() < image.saved_at:
                    core.state.images.remove(image.id)  # as Nova: its snapshot ends with it
        self._life.wake_server(server_id)
        return Reply(status=204)

    @route(app, ["POST"], "/v2.1/servers/<server_id>/action")
    def action(self, call: Call, server_id: str) -> Reply:
        server = self._own(call, server_id)
        what = call.read(dict[str, Any])
        now = self._core.now()
        if "os-resetState" in what and "admin" in call.me.roles:
            state = (what["os-resetState"] or {}).get("state")
            status = "ACTIVE" if state == "active" else "ERROR"
            self._core.state.servers.put(evolve(server, status=status, updated_at=now))
            return Reply(status=202)
        if "createImage" in what:
            return self._create_image(call, server, what["createImage"])
        if "os-getConsoleOutput" in what:  # the machines have no console
            return Reply(body={"output": ""})
        verb = next((v for v in ("os-start", "os-stop") if v in what), None)
        if verb is None:
            raise Refusal(400, "There is no such action: " + ", ".join(what))
        needed, desired = ("SHUTOFF", "ACTIVE") if verb == "os-start" else ("ACTIVE", "SHUTOFF")
        if server.status != needed or server.desired == "DELETED":
            text = f"Cannot '{verb[3:]}' instance {server_id} while it is in vm_state "
            raise Refusal(409, text + server.status.lower())
        task = "powering-on" if desired == "ACTIVE" else "powering-off"
        self._core.state.servers.put(
            evolve(server, desired=desired, task_state=task, updated_at=now, due_at=now)
        )
        self._life.wake_server(server_id)
        return Reply(status=202)

    def _create_image(self, call: Call, server: Server, body: Any) -> Reply:
        core = self._core
        try:
            new = msgspec.convert(body, NewSnapshot)
        except msgspec.ValidationError as error:
            raise Refusal(400, f"Invalid input for field/attribute createImage. {error}") from None
        image = snapshot(core, server, new)
        core.state.images.put(image)
        if self.version_of(call) >= (2, 45):
            return Reply(status=202, body={"image_id": image.id})
        return Reply(status=202, headers={"Location": f"{core.public_url}/image/{image.id}"})

    @route(app, ["GET"], "/v2.1/servers/<server_id>/metadata")
    def metadata(self, call: Call, server_id: str) -> Reply:
        return Reply(body={"metadata": self._own(call, server_id).metadata})

    @route(app, ["POST"], "/v2.1/servers/<server_id>/metadata")
    def add_metadata(self, call: Call, server_id: str) -> Reply:
        server = self._own(call, server_id)
        metadata = server.metadata | call.read_in("metadata", dict[str, str])
        self._core.state.servers.put(evolve(server, metadata=metadata))
        return Reply(body={"metadata": metadata})

    # ---- attachments ----

    def _attachment(self, volume: Volume) -> dict[str, Any]:
        return {
            "id": volume.id,
            "volumeId": volume.id,
            "serverId": volume.server_id,
            "device": volume.device,
            "tag": None,
            "delete_on_termination": False,
        }

    @route(app, ["GET"], "/v2.1/servers/<server_id>/os-volume_attachments")
    def attachments(self, call: Call, server_id: str) -> Reply:
        self._own(call, server_id)
        mine = [self._attachment(v) for v in self._core.state.volumes.having("server", server_id)]
        return Reply(body={"volumeAttachments": mine})

    @route(app, ["POST"], "/v2.1/servers/<server_id>/os-volume_attachments")
    def attach(self, call: Call, server_id: str) -> Reply:
        server = self._own(call, server_id)
        wanted = call.read_in("volumeAttachment", _NewAttachment)
        volumes = self._core.state.volumes
        text = f"Volume {wanted.volumeId} could not be found."
        volume = call.own(volumes, wanted.volumeId, text)
        if server.status not in ("ACTIVE", "SHUTOFF") or server.desired == "DELETED":
            state = {"BUILD": "building"}.get(server.status, server.status.lower())
            text = f"Cannot 'attach_volume' instance {server_id} while it is in vm_state {state}"
            raise Refusal(409, text)
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
        return Reply(body={"volumeAttachment": self._attachment(volume)})

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

    def _group(self, group: ServerGroup, version: tuple[int, int]) -> dict[str, Any]:
        members = [server.id for server in self._core.state.servers.having("group", group.id)]
        body: dict[str, Any] = {"id": group.id, "name": group.name, "members": members}
        if version >= (2, 64):
            body |= {"policy": group.policy, "rules": {}}
        else:
            body |= {"policies": [group.policy], "metadata": {}}
        if version >= (2, 13):
            body |= {"project_id": group.project_id, "user_id": group.user_id}
        return body

    @route(app, ["GET"], "/v2.1/os-server-groups")
    def groups(self, call: Call) -> Reply:
        version = self.version_of(call)
        mine = of_project(self._core.state.server_groups, call.project)
        offset, limit = call.one("offset", "0"), call.one("limit", "1000")
        if not (offset.isdigit() and limit.isdigit()):
            raise Refusal(400, "Invalid input for query parameters limit, offset")
        mine = mine[int(offset) :][: int(limit)]
        return Reply(body={"server_groups": [self._group(g, version) for g in mine]})

    @route(app, ["POST"], "/v2.1/os-server-groups")
    def create_group(self, call: Call) -> Reply:
        new = call.read_in("server_group", _NewGroup)
        version = self.version_of(call)
        policy = new.policy if version >= (2, 64) else next(iter(new.policies), None)
        known = ("anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity")
        if policy not in known:
            raise Refusal(400, f"Invalid input for field/attribute policy. Value: {policy}.")
        group = ServerGroup(
            id=self._core.new_id(),
            name=new.name,
            project_id=call.project,
            user_id=call.me.user_id,
            policy=policy,
        )
        self._core.state.server_groups.put(group)
        return Reply(body={"server_group": self._group(group, version)})

    def _own_group(self, call: Call, group_id: str) -> ServerGroup:
        text = f"Instance group {group_id} could not be found."
        return call.own(self._core.state.server_groups, group_id, text)

    @route(app, ["GET"], "/v2.1/os-server-groups/<group_id>")
    def group(self, call: Call, group_id: str) -> Reply:
        group = self._own_group(call, group_id)
        return Reply(body={"server_group": self._group(group, self.version_of(call))})

    @route(app, ["DELETE"], "/v2.1/os-server-groups/<group_id>")
    def delete_group(self, call: Call, group_id: str) -> Reply:
        self._own_group(call, group_id)
        self._core.state.server_groups.remove(group_id)
        return Reply(status=204)


def _whole_prefix(pattern: str) -> str:
    """The beginning up to a hyphen of all names that match `pattern`, "" when none is certain."""
    if not re.fullmatch(r"\^(?:[A-Za-z0-9_-]|\\[^A-Za-z0-9])*", pattern):
        return ""
    literal = re.sub(r"\\(.)", r"\1", pattern[1:])
    return literal[: literal.rfind("-") + 1]


_LETTERS = "bcdefghijklmnopqrstuvwxyz"
