"""The real OpenStack that SVCD_TEST_OS_PLATFORM names: its tenant alpha, beside whatever is there.

Its servers answer on SSH, and are asked what they run.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import evolve

from svcd.runtime.tasks import gather
from tests.kills.things import Things, Wrong, faults, listed
from tests.support.openstack_case import everything, instances, no_platform, ssh, token
from tests.support.processes import until
from tests.support.real_openstack import TENANT, given, platform

_MOUNTS = "/mnt/volume"
_LEFT_S = 30.0
_SSH_S = 60.0


class RealCloud:
    """One that was there before and stays; see clouds.Cloud."""

    def __init__(self) -> None:
        self.told: Mapping[str, Any] = {}
        self.group: Mapping[str, Any] = {}
        self.fields: Mapping[str, Any] = {}
        self.login = "debian"
        self._before: Mapping[str, str] = {}
        self._trusts: set[str] = set()

    async def begin(self) -> Mapping[str, str]:
        reason = no_platform()
        if reason:
            raise Wrong(reason)
        ends, project = platform()["endpoints"], platform()["projects"][TENANT]
        tenant = platform()["tenants"][TENANT]
        self.told = {
            "identity": given("AUTH_URL"),
            "compute": ends["nova"],
            "network": ends["neutron"].removesuffix("/v2.0"),
            "volume": f"{ends['cinder']}/{project}",
            "object_store": tenant["object_store"],
            "tenant": project,
            "username": given("USERNAME"),
            "password": given("PASSWORD"),
        }
        self.fields = {"user_keypair_id": given("KEYPAIR")}
        self.group = {
            "flavor_id": platform()["flavors"]["m1.medium"],
            "volumes_per_node": 1,
            "volumes_size": 1,
            "volume_mount_prefix": _MOUNTS,
            "floating_ip_pool": given("POOL"),
        }
        self._before = await everything()
        self._trusts = {t["id"] for t in (await self._things()).trusts}
        return {
            "cloud.auth_url": given("AUTH_URL"),
            "cloud.username": given("SERVICE_USERNAME"),
            "cloud.password": given("SERVICE_PASSWORD"),
            "cloud.project": given("SERVICE_PROJECT"),
        }

    async def token(self) -> str:
        return await token(given("USERNAME"), TENANT)

    def image(self, plugin: str) -> str:
        return given("IMAGE")

    async def _things(self) -> Things:
        return await listed(self.told, await self.token(), await token("admin", "admin"))

    async def check(
        self, shown: Sequence[Any], ids: Sequence[str], trusts: Sequence[str], whole: bool
    ) -> set[str]:
        """Of single clusters the machines are asked too."""
        things = await self._things()
        ours = [t for t in things.trusts if t["id"] not in self._trusts]
        wrong, loose = faults(evolve(things, trusts=ours), shown, ids, trusts, whole)
        if wrong:
            raise Wrong("\n".join(wrong))
        if not whole:
            machines = [i for c in shown if c["plugin_name"] == "fake" for i in instances(c)]
            for each in await gather([partial(self._machine, each) for each in machines], 3):
                if isinstance(each, BaseException):
                    raise each
        return loose

    async def _machine(self, each: Mapping[str, Any]) -> None:
        """It has its name and its volume, and what the plugin has started."""
        running = "sudo -n cat /home/svcd/svcd-fake/running"
        script = f"hostname; grep -c {shlex.quote(_MOUNTS)} /proc/mounts; {running}"
        said: list[str] = []

        async def answers() -> bool:
            """The platform's bridge changes its address with each new server: some seconds."""
            try:
                said[:] = (await ssh(each["management_ip"], script)).splitlines()
            except AssertionError as error:
                said[:] = [str(error)]
                return False
            return True

        await until(answers, f"{each['instance_name']} to answer", _SSH_S, 1.0)
        if said[:2] != [each["instance_name"], "1"] or len(said) < 4:
            raise Wrong(f"{each['instance_name']} says {said}")

    async def swept(self) -> None:
        left: list[str] = []

        async def look() -> bool:
            after = await everything()
            left[:] = sorted(text for id_, text in after.items() if id_ not in self._before)
            return not left

        try:
            await until(look, "the cloud as it was", _LEFT_S, 1.0)
        except AssertionError as error:
            raise Wrong(f"{error}: {left}") from None

    async def remove(self) -> None:
        """It stays."""
