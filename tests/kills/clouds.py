"""The cloud that is not killed: what both kinds have in common, and the embedded one.

Each kind says where it is and who its tenant is; `things` compares what it holds with the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tests.kills.things import Wrong, faults, listed
from tests.support.live import Tenant, machine_folders
from tests.support.processes import Daemon, machine_processes, own_network, until


class Cloud(Protocol):
    """told: as `endpoints.json`. group: fields of each node group. fields: of each cluster.

    login: user of the images.
    """

    told: Mapping[str, Any]
    group: Mapping[str, Any]
    fields: Mapping[str, Any]
    login: str

    async def begin(self) -> Mapping[str, str]:
        """It serves; the daemon's settings to find it."""
        ...

    async def token(self) -> str:
        """Of the tenant's user."""
        ...

    def image(self, plugin: str) -> str:
        """Its id."""
        ...

    async def check(
        self, shown: Sequence[Any], ids: Sequence[str], trusts: Sequence[str], whole: bool
    ) -> set[str]:
        """What is marked with the ids is what the clusters shown say. Raises Wrong.

        whole: and there is nothing else of svcd, but for the loose trusts that are returned.
        trusts: those that the rows know.
        """
        ...

    async def swept(self) -> None:
        """Nothing is left when all is deleted. Raises Wrong."""
        ...

    async def remove(self) -> None:
        """End it, if it is ours."""
        ...


class EmbeddedCloud:
    """A `twistd svcd-cloud` of our own, with machines of its network on this machine."""

    def __init__(self, state: Path, image: Path) -> None:
        self._state = state
        self._daemon = Daemon(
            state / "cloud",
            "svcd-cloud",
            auth__mode="keystone",
            embedded__network=own_network(),
            embedded__image_prefix=str(image),
        )
        self.told: Mapping[str, Any] = {}
        self.group: Mapping[str, Any] = {"flavor_id": "3", "volumes_per_node": 1}
        self.fields: Mapping[str, Any] = {"user_keypair_id": "demo"}
        self.login = "svcd"

    async def begin(self) -> Mapping[str, str]:
        self.told = await self._daemon.start()
        return {
            "embedded.network": self._daemon.settings["embedded.network"],
            "cloud.auth_url": self.told["identity"],
            **{f"cloud.{name}": value for name, value in self.told["service"].items()},
        }

    async def token(self) -> str:
        return await Tenant({"api": ""}, self.told).token()

    def image(self, plugin: str) -> str:
        name = "plain" if plugin == "fake" else "vanilla-3.5.0"
        return next(str(i["id"]) for i in self.told["images"] if i["name"] == name)

    async def check(
        self, shown: Sequence[Any], ids: Sequence[str], trusts: Sequence[str], whole: bool
    ) -> set[str]:
        admin = await Tenant({"api": ""}, self.told).token(*self.told["service"].values())
        things = await listed(self.told, await self.token(), admin)
        wrong, loose = faults(things, shown, ids, trusts, whole)
        if wrong:
            raise Wrong("\n".join(wrong))
        if whole:
            machines = sum(len(g["instances"]) for c in shown for g in c["node_groups"])

            async def folders() -> bool:
                return len(machine_folders(self._daemon.state)) == machines

            await until(folders, f"{machines} folders of machines", 30.0)
        return loose

    async def swept(self) -> None:
        async def look() -> bool:
            state = self._daemon.state
            return not machine_processes(self._state) and not machine_folders(state)

        await until(look, "no process and no folder", 60.0)

    async def remove(self) -> None:
        await self._daemon.remove()
