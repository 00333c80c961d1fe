"""New servers: the checks of a request, the choice of a host, the record. It answers no request."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from attrs import evolve

from svcd.embedded.cloud import compute_shapes as shapes
from svcd.embedded.cloud.core import FLAVORS, PRIVATE_NETWORK_ID, Core
from svcd.embedded.cloud.life import Life
from svcd.embedded.cloud.records import Flavor, KeyPair, Server, ServerGroup, Token
from svcd.embedded.services import Refusal


class NewServers:
    """Creates the records of servers, and wakes the tasks that boot them."""

    def __init__(self, core: Core, life: Life) -> None:
        self._core = core
        self._life = life

    def create(self, me: Token, body: shapes.ServerBody, version: tuple[int, int]) -> Server:
        """Create the servers of a request; the first of them. Raises Refusal."""
        new, core, project = body.server, self._core, me.project_id or ""
        count = max(new.min_count, new.max_count or new.min_count, 1)
        flavor = flavor_named(new.flavorRef.rsplit("/", 1)[-1], 400)
        self._check_image(new)
        pair = core.keypair(me.user_id, new.key_name) if new.key_name else None
        if new.key_name and pair is None:
            raise Refusal(400, "Invalid key_name provided.")
        if new.availability_zone not in (None, "", "nova"):
            raise Refusal(400, "The requested availability zone is not available")
        self._check_networks(project, new.networks, version)
        groups = self._security_groups(project, [group.name for group in new.security_groups])
        hint = (body.hints or {}).get("group")
        group = core.state.server_groups.get(str(hint)) if hint else None
        if hint and (group is None or group.project_id != project):
            raise Refusal(400, f"Instance group {hint} could not be found.")
        self._check_quota(project, flavor, count)
        names = [new.name] if count == 1 else [f"{new.name}-{i}" for i in range(1, count + 1)]
        first, *_ = [self._place(me, new, name, groups, group, pair) for name in names]
        return first

    def _place(
        self,
        me: Token,
        new: shapes.NewServer,
        name: str,
        groups: Mapping[str, str],
        group: ServerGroup | None,
        pair: KeyPair | None,
    ) -> Server:
        """Write the record of a new server, and wake the task that boots it."""
        core, now, project = self._core, self._core.now(), me.project_id or ""
        members = [] if group is None else core.state.servers.having("group", group.id)
        server = Server(
            id=core.new_id(),
            name=name,
            project_id=project,
            user_id=me.user_id,
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

    def _check_networks(
        self, project: str, networks: list[shapes.Net] | str | None, version: tuple[int, int]
    ) -> None:
        """Check the requested networks. Raises Refusal 400 or 409."""
        if isinstance(networks, str):
            if networks in ("auto", "none") and version >= (2, 37):
                return
            raise Refusal(400, f"Invalid input for field/attribute networks. Value: {networks}.")
        for network in networks or ():
            port = self._core.state.ports.get(network.port or "")
            if port is not None and port.project_id == project and port.device_id:
                raise Refusal(409, f"Port {port.id} is still in use.")
            if network.uuid != PRIVATE_NETWORK_ID:
                raise Refusal(400, f"Network {network.uuid or network.port} could not be found.")

    def _check_quota(self, project: str, flavor: Flavor, count: int) -> None:
        """Check that the quota allows `count` more servers. Raises Refusal 403."""
        used = self._core.used(project)
        for word, name, more in (
            ("instances", "instances", count),
            ("cores", "cores", count * flavor.vcpus),
            ("ram", "ram_mib", count * flavor.ram_mib),
        ):
            limit = self._core.limit(project, name)
            if 0 <= limit < used[name] + more:
                text = f"Quota exceeded for {word}: Requested {more}, "
                raise Refusal(403, text + f"but already used {used[name]} of {limit} {word}")

    def _security_groups(self, project: str, words: list[str]) -> dict[str, str]:
        """Id -> name of the groups that `words` name by id or name; without words the default."""
        table = self._core.state.security_groups
        groups = {}
        for word in words or ["default"]:
            group = table.get(word)
            if group is None or group.project_id != project:
                named = table.having("name", (project, word.lower()))
                group = next((group for group in named if group.name == word), None)
            if group is None and word == "default":
                group = self._life.default_group(project)
            if group is None:
                raise Refusal(400, f"Security group {word} not found for project {project}.")
            groups[group.id] = group.name
        return groups


def choose_host(core: Core, group: ServerGroup | None, members: Sequence[Server]) -> int:
    """The host of a new server; -1 when the group's policy leaves none."""
    if group is None or group.policy != "anti-affinity":
        return core.rng.randrange(core.hosts)
    taken = {member.host for member in members}
    free = [host for host in range(core.hosts) if host not in taken]
    return core.rng.choice(free) if free else -1


def flavor_named(flavor_id: str, status: int) -> Flavor:
    """The flavor with the id. Raises Refusal `status`."""
    flavor = FLAVORS.get(flavor_id)
    if flavor is None:
        raise Refusal(status, f"Flavor {flavor_id} could not be found.")
    return flavor
