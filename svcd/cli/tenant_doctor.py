"""Checks with a user's token that the cloud has the things that the user's clusters need."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping

from svcd.cli.finding import Finding, fail, ok, warn
from svcd.clients.application_credentials import UserCredentials
from svcd.clients.cloud import TenantCloud
from svcd.clients.compute import Compute
from svcd.clients.identity import Keystone, Token
from svcd.clients.trusts import Trusts
from svcd.model import ownership_tags, wire
from svcd.model.choices import listed
from svcd.model.cloud import Caller
from svcd.model.ids import TenantId
from svcd.model.trust import delegated
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.settings import CloudSettings


class Tenant:
    """The checks for the user of `token`, by the sessions of `cloud` and `compute`."""

    def __init__(
        self,
        keystone: Keystone,
        cloud: TenantCloud,
        compute: Compute,
        token: Token,
        credentials: UserCredentials,
        settings: CloudSettings,
    ) -> None:
        self._keystone = keystone
        self._cloud = cloud
        self._compute = compute
        self._token = token
        self._credentials = credentials
        self._settings = settings
        self._trust_roles = settings.trust_roles
        self._findings: list[Finding] = []

    async def examine(self, tags: Mapping[str, Iterable[str]]) -> list[Finding]:
        """The findings of all checks; a fault of one does not stop the others."""
        await self._trust()
        if self._settings.job_credentials == "application":
            await self._job_credential()
        for what, probe in (
            ("flavors", self._flavors),
            ("network of clusters", self._networks),
            ("key pairs", self._keypairs),
            ("quota", self._quota),
            ("security groups", self._security_groups),
        ):
            try:
                await probe()
            except CloudError as error:
                self._fail(what, error)
        try:
            await self._images(tags)
        except CloudError as error:
            self._fail("images", error)
        return self._findings

    def _add(self, finding: Finding) -> None:
        self._findings.append(finding)

    def _fail(self, what: str, error: CloudError) -> None:
        """A finding in the words of the service."""
        self._findings.append(fail(what, _said(error)))

    async def _trust(self) -> None:
        token = self._token
        if not delegated(token.roles, self._trust_roles):
            self._add(
                warn(
                    "trust",
                    f"the user may make no cluster: has none of {', '.join(self._trust_roles)}"
                    " (cloud.trust_roles)",
                    f"openstack role add --user {token.user_name} --project {token.project_id}"
                    f" {self._trust_roles[0]}",
                )
            )
            return
        caller = Caller(
            tenant_id=TenantId(token.project_id),
            user_id=token.user_id,
            user_name=token.user_name,
            roles=token.roles,
            token=token.text,
            expires_at=token.expires_at,
            is_trust=token.is_trust,
        )
        trusts = Trusts(self._keystone, self._settings.trust_roles)
        try:
            end = ownership_tags.trust_end(uuid.uuid4().hex)
            trust_id = await trusts.create(caller, token.text, end)
        except CloudError as error:
            self._fail("trust", error)
            return
        try:
            await trusts.delete(trust_id)
        except CloudError as error:
            self._add(
                fail(
                    "trust",
                    f"created, but not removed: {_said(error)}",
                    f"openstack trust delete {trust_id}",
                )
            )
            return
        self._add(ok("trust", "can be created for svcd's user and deleted again"))

    async def _job_credential(self) -> None:
        what, name = "job credential", f"svcd-doctor-{uuid.uuid4().hex}"
        try:
            made = await self._credentials.create(
                name, self._settings.job_roles, self._token.expires_at
            )
        except CloudError as error:
            none = "the cloud has no application credentials: --set cloud.job_credentials=password"
            remedy = none if error.kind is Fault.NOT_FOUND else ""
            self._findings.append(warn(what, _said(error), remedy))
            return
        try:
            await self._credentials.delete(name, made.id)
        except CloudError as error:
            self._add(
                fail(
                    what,
                    f"created, but not removed: {_said(error)}",
                    f"openstack application credential delete {name}",
                )
            )
            return
        self._add(ok(what, "an application credential can be created and deleted again"))

    async def _flavors(self) -> None:
        names = [flavor.name for flavor in await self._cloud.flavors()]
        if not names:
            self._add(fail("flavors", "the project sees none", "openstack flavor create …"))
            return
        self._add(ok("flavors", _some(names)))

    async def _images(self, tags: Mapping[str, Iterable[str]]) -> None:
        """For each distribution: the registered images that have its required tags."""
        images = await self._cloud.images()
        for name, wanted in tags.items():
            fit = [
                image.name
                for image in images
                if image.properties.get(wire.IMAGE_USERNAME)
                and set(wanted) <= set(wire.image_tags(image))
            ]
            what = f"images for {name}"
            needed = f" with the tags {', '.join(wanted)}" if wanted else ""
            flags = "".join(f" --tag {each}" for each in wanted)
            if fit:
                self._add(ok(what, _some(fit)))
            else:
                self._add(
                    warn(
                        what,
                        f"none of {len(images)} images is registered{needed}",
                        f"svcd image register IMAGE --user LOGIN{flags} (docs/openstack.md, An"
                        " image)",
                    )
                )

    async def _networks(self) -> None:
        networks = await self._cloud.networks()
        inner = [n.name or n.id for n in networks if not n.external]
        outer = [n.name or n.id for n in networks if n.external]
        if not inner:
            self._add(
                fail("network of clusters", "the project has none", "openstack network create …")
            )
        elif len(inner) > 1:
            self._add(
                warn(
                    "network of clusters",
                    f"several: {_some(inner)}",
                    "each cluster must name one as neutron_management_network",
                )
            )
        else:
            self._add(ok("network of clusters", inner[0]))
        if outer:
            self._add(ok("floating IPs", f"pools: {_some(outer)}"))
        else:
            self._add(
                warn(
                    "floating IPs",
                    "there is no external network",
                    "route svcd to the servers' fixed addresses, and give no floating_ip_pool",
                )
            )

    async def _keypairs(self) -> None:
        names = await self._compute.keypairs()
        if names:
            self._add(ok("key pairs", _some(names)))
        else:
            self._add(
                warn(
                    "key pairs",
                    f"{self._token.user_name} has none",
                    "to log in to servers yourself: openstack keypair create NAME > NAME.pem",
                )
            )

    async def _security_groups(self) -> None:
        """Groups of clusters that open more ports than SSH to networks outside cloud.web_cidrs."""
        web, found = self._settings.web_cidrs, []
        groups = await self._cloud.openings(ownership_tags.group_name(""))
        for name, openings in groups.items():
            ports = sorted({each.port for each in openings if each.cidr not in web})
            if len(ports) > 1:
                found.append(f"{name} (ports {', '.join(map(str, ports))})")
        if not found:
            self._add(
                ok("security groups", f"{len(groups)} of clusters, none opens more than it must")
            )
            return
        self._add(
            warn(
                "security groups",
                f"open more ports than SSH, so others may run programs: {_some(found)}",
                "after a change of cloud.web_cidrs, resize each cluster, for example to its present"
                " size, and svcd closes the ports; remove rules of your own with the openstack"
                " command",
            )
        )

    async def _quota(self) -> None:
        quota = await self._cloud.quota()
        left = {
            "servers": quota.instances,
            "cores": quota.cores,
            "MiB of memory": quota.ram_mib,
            "volumes": quota.volumes,
            "GiB of volumes": quota.volume_gib,
            "floating IPs": quota.floating_ips,
        }
        text = "left: " + ", ".join(
            f"{name} {'no limit' if n is None else n}" for name, n in left.items()
        )
        used_up = [name for name, n in left.items() if n == 0]
        if not used_up:
            self._add(ok("quota", text))
            return
        hard = any(left[name] == 0 for name in ("servers", "cores", "MiB of memory"))
        self._add(
            (fail if hard else warn)(
                "quota",
                f"no {', no '.join(used_up)} left",
                f"delete something, or: openstack quota set … {self._token.project_id}",
            )
        )


def _some(names: Iterable[str]) -> str:
    return listed(sorted(names), most=8)


def _said(error: CloudError) -> str:
    return error.text.partition(": ")[2] or error.text
