"""Checks with a user's token that the cloud offers all that the user's clusters need."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from svcd.cli.finding import Finding, fail, ok, warn
from svcd.clients.application_credentials import UserCredentials
from svcd.clients.cloud import TenantCloud
from svcd.clients.identity import Keystone
from svcd.clients.tokens import Token
from svcd.clients.trusts import Trusts
from svcd.model import ownership_tags, wire
from svcd.model.choices import listed
from svcd.model.cloud import Caller
from svcd.model.ids import TenantId
from svcd.model.trust import delegated
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.settings import CloudSettings

_Probe: TypeAlias = Callable[[str], Awaitable[Finding]]
"""A check: gets its subject. Raises CloudError, which is a failure in the words of the service."""


class Tenant:
    """The checks for the user of `token`, by the sessions of `cloud` and `credentials`."""

    def __init__(
        self,
        keystone: Keystone,
        cloud: TenantCloud,
        token: Token,
        credentials: UserCredentials,
        settings: CloudSettings,
    ) -> None:
        self._keystone = keystone
        self._cloud = cloud
        self._token = token
        self._credentials = credentials
        self._settings = settings

    async def examine(self, tags: Mapping[str, Iterable[str]]) -> list[Finding]:
        """The findings of all checks; a fault of one does not stop the others."""
        checks: dict[str, _Probe] = {"trust": self._trust}
        if self._settings.job_credentials == "application":
            checks["job credential"] = self._job_credential
        checks |= {
            "flavors": self._flavors,
            "network of clusters": self._network,
            "floating IPs": self._pools,
            "key pairs": self._keypairs,
            "quota": self._quota,
            "security groups": self._security_groups,
        }
        for name, wanted in tags.items():
            checks[f"images for {name}"] = partial(self._images, wanted)
        findings = []
        for what, check in checks.items():
            try:
                findings.append(await check(what))
            except CloudError as error:
                findings.append(fail(what, said(error)))
        return findings

    async def _trust(self, what: str) -> Finding:
        token, roles = self._token, self._settings.trust_roles
        if not delegated(token.roles, roles):
            return warn(
                what,
                f"the user may make no cluster: has none of {', '.join(roles)} (cloud.trust_roles)",
                f"openstack role add --user {token.user_name} --project {token.project_id}"
                f" {roles[0]}",
            )
        caller = Caller(
            tenant_id=TenantId(token.project_id),
            user_id=token.user_id,
            user_name=token.user_name,
            roles=token.roles,
            token=token.text,
            expires_at=token.expires_at,
            is_trust=token.is_trust,
        )
        trusts = Trusts(self._keystone, roles)
        end = ownership_tags.trust_end(uuid.uuid4().hex)
        trust_id = await trusts.create(caller, token.text, end)
        removed = _removed(what, trusts.delete(trust_id), f"openstack trust delete {trust_id}")
        return await removed or ok(what, "can be created for svcd's user and deleted again")

    async def _job_credential(self, what: str) -> Finding:
        name = f"svcd-doctor-{uuid.uuid4().hex}"
        roles, end = self._settings.job_roles, self._token.expires_at
        try:
            credential = await self._credentials.create(name, roles, end)
        except CloudError as error:
            none = "the cloud has no application credentials: --set cloud.job_credentials=password"
            return warn(what, said(error), none if error.kind is Fault.NOT_FOUND else "")
        deletion = self._credentials.delete(name, credential.id)
        removed = _removed(what, deletion, f"openstack application credential delete {name}")
        good = "an application credential can be created and deleted again"
        return await removed or ok(what, good)

    async def _flavors(self, what: str) -> Finding:
        names = [flavor.name for flavor in await self._cloud.flavors()]
        if not names:
            return fail(what, "the project sees none", "openstack flavor create …")
        return ok(what, _some(names))

    async def _images(self, wanted: Iterable[str], what: str) -> Finding:
        """The registered images that have the tags that a distribution requires."""
        images = await self._cloud.images()
        fit = [
            image.name
            for image in images
            if image.properties.get(wire.IMAGE_USERNAME)
            and set(wanted) <= set(wire.image_tags(image))
        ]
        if fit:
            return ok(what, _some(fit))
        needed = f" with the tags {', '.join(wanted)}" if wanted else ""
        flags = "".join(f" --tag {tag}" for tag in wanted)
        return warn(
            what,
            f"none of {len(images)} images is registered{needed}",
            f"svcd image register IMAGE --user LOGIN{flags} (docs/openstack.md, An image)",
        )

    async def _network(self, what: str) -> Finding:
        names = [net.name or net.id for net in await self._cloud.networks() if not net.external]
        if not names:
            return fail(what, "the project has none", "openstack network create …")
        if len(names) > 1:
            remedy = "each cluster must name one as neutron_management_network"
            return warn(what, f"several: {_some(names)}", remedy)
        return ok(what, names[0])

    async def _pools(self, what: str) -> Finding:
        names = [net.name or net.id for net in await self._cloud.networks() if net.external]
        if names:
            return ok(what, f"pools: {_some(names)}")
        remedy = "route svcd to the servers' fixed addresses, and give no floating_ip_pool"
        return warn(what, "there is no external network", remedy)

    async def _keypairs(self, what: str) -> Finding:
        names = await self._cloud.keypairs()
        if names:
            return ok(what, _some(names))
        remedy = "to log in to servers yourself: openstack keypair create NAME > NAME.pem"
        return warn(what, f"{self._token.user_name} has none", remedy)

    async def _security_groups(self, what: str) -> Finding:
        """Groups of clusters that open more ports than SSH to networks outside cloud.web_cidrs."""
        web, wide = self._settings.web_cidrs, []
        groups = await self._cloud.openings(ownership_tags.group_name(""))
        for name, openings in groups.items():
            ports = sorted({opening.port for opening in openings if opening.cidr not in web})
            if len(ports) > 1:
                wide.append(f"{name} (ports {', '.join(map(str, ports))})")
        if not wide:
            return ok(what, f"{len(groups)} of clusters, none opens more than it must")
        return warn(
            what,
            f"open more ports than SSH, so others may run programs: {_some(wide)}",
            "after a change of cloud.web_cidrs, resize each cluster, for example to its present"
            " size, and svcd closes the ports; remove rules of your own with the openstack command",
        )

    async def _quota(self, what: str) -> Finding:
        quota = await self._cloud.quota()
        left = {
            "servers": quota.instances,
            "cores": quota.cores,
            "MiB of memory": quota.ram_mib,
            "volumes": quota.volumes,
            "GiB of volumes": quota.volume_gib,
            "floating IPs": quota.floating_ips,
        }
        used_up = [name for name, count in left.items() if count == 0]
        if not used_up:
            texts = (f"{n} {'no limit' if left[n] is None else left[n]}" for n in left)
            return ok(what, f"left: {', '.join(texts)}")
        bad = fail if {"servers", "cores", "MiB of memory"} & set(used_up) else warn
        remedy = f"delete something, or: openstack quota set … {self._token.project_id}"
        return bad(what, f"no {', no '.join(used_up)} left", remedy)


async def _removed(what: str, removal: Awaitable[Any], command: str) -> Finding | None:
    """The failure of the removal of what a check has made; None when it succeeds."""
    try:
        await removal
    except CloudError as error:
        return fail(what, f"created, but not removed: {said(error)}", command)
    return None


def _some(names: Iterable[str]) -> str:
    return listed(sorted(names), most=8)


def said(error: CloudError) -> str:
    """The text of the error without the name of the service at its begin."""
    return error.text.partition(": ")[2] or error.text
