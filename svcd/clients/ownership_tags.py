"""Lists and removes resources with svcd's ownership tags in one tenant's cloud.

It uses the token of a user. It does not read svcd's rows: the caller decides whether a resource
belongs to an existing cluster. It never lists, and so never removes, a resource without a tag.
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from attrs import frozen
from twisted.internet.interfaces import IReactorTime
from twisted.web.iweb import IAgent

from svcd.clients.cloud import cloud_error
from svcd.clients.compute import server_groups
from svcd.clients.http import HttpClient
from svcd.clients.identity import Keystone
from svcd.clients.rest import Rest, shaped
from svcd.clients.sessions import CallerSession
from svcd.model import ownership_tags
from svcd.model.ownership_tags import Tag
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.settings import CloudSettings

_PAGE = 1000
"""Entries of one page of a list."""


class Kind(enum.StrEnum):
    """The kinds of resources, in the order in which they can be removed."""

    SERVER = "server"
    FLOATING_IP = "floating IP"
    VOLUME = "volume"
    PORT = "port"
    SECURITY_GROUP = "security group"
    SERVER_GROUP = "server group"
    TRUST = "trust"
    APPLICATION_CREDENTIAL = "application credential"


@frozen(kw_only=True)
class Thing:
    """One resource with our ownership tag. tag: its tag, None for a trust, which has no tag.

    status: as the service gives it, "" without one. made_at: epoch seconds, None when the service
    does not give the time.
    """

    kind: Kind
    id: str
    name: str
    tag: Tag | None
    status: str = ""
    made_at: float | None = None


class _TokenSession(CallerSession):
    """A session that does not ask Keystone again about a refused token."""

    async def refused(self, token: Secret, service: str) -> None:
        """See Session."""
        raise CloudError(service, Fault.UNAUTHORIZED, "the token is not valid or has expired")


class TaggedCloud:
    """The tagged resources of one tenant. It uses auth_url, region and interface of `settings`.

    unlisted: the kinds that the last list lacks, because the cloud forbids this user to list them,
    with the reason of the cloud.
    """

    def __init__(
        self,
        agent: IAgent,
        clock: IReactorTime,
        settings: CloudSettings,
        token: Secret,
        tenant_id: str,
    ) -> None:
        http = HttpClient(agent, clock, cloud_error, timeout_s=settings.timeout_s)
        keystone = Keystone(http, settings, clock)
        session = _TokenSession(keystone, token, tenant_id)
        self.unlisted: Mapping[Kind, str] = {}
        self._token = token
        self._tenant = quote(tenant_id, safe="")
        self._tenant_id = tenant_id
        self._identity = Rest(http, session, "identity", (), url=settings.auth_url)
        self._compute = Rest(http, session, "compute", ("compute",))
        self._network = Rest(http, session, "network", ("network",), "/v2.0")
        types = ("volumev3", "block-storage", "volume")
        self._volume = Rest(http, session, "volume", types)

    async def check(self) -> None:
        """Check the project of the token. Raises CloudError FORBIDDEN for another project."""
        _, project = await self._whose()
        if project != self._tenant_id:
            text = f"the token is for project {project or '(none)'}, not for {self._tenant_id}"
            raise CloudError("identity", Fault.FORBIDDEN, text)

    async def _whose(self) -> tuple[str, str]:
        """The ids of the user and of the project of the token."""
        headers = {"X-Subject-Token": self._token.reveal()}
        body = await self._identity.call("GET", "/auth/tokens?nocatalog", headers=headers)

        def convert(body: Mapping[str, Any]) -> tuple[str, str]:
            token = body["token"]
            return str(token["user"]["id"]), str((token.get("project") or {}).get("id", ""))

        return shaped("identity", "a token", convert, body)

    async def things(self) -> Sequence[Thing]:
        """All resources with our ownership tags, in the order of `Kind`. Raises CloudError.

        Services for volumes and networks may be absent from the catalog.
        """
        listed = await self._compute.pages(
            "/servers/detail", "servers", lambda row: (str(row["id"]), _server(row)), limit=_PAGE
        )
        there, servers = {id_ for id_, _ in listed}, [server for _, server in listed]
        volumes = await self._optional(
            self._volume, "/volumes/detail", "volumes", _volume, limit=_PAGE
        )
        of_tenant = f"?tenant_id={self._tenant}"
        addresses = await self._optional(
            self._network, f"/floatingips{of_tenant}", "floatingips", _address
        )
        groups = await self._optional(
            self._network, f"/security-groups{of_tenant}", "security_groups", _security_group
        )
        rows = [*servers, *addresses, *volumes, *groups]
        ours = {g.id: g.tag for g in groups if g is not None}
        rows += await self._optional(
            self._network, f"/ports{of_tenant}", "ports", partial(_port, ours, there)
        )
        things = [thing for thing in rows if thing is not None]
        things += await self._server_groups()
        unlisted: dict[Kind, str] = {}
        for kind, path, convert in (
            (Kind.TRUST, "OS-TRUST/trusts?trustor_user_id={user}", self._trust),
            (
                Kind.APPLICATION_CREDENTIAL,
                "users/{user}/application_credentials",
                self._application_credential,
            ),
        ):
            try:
                things += await self._of_user(path, convert)
            except CloudError as error:
                if error.kind is not Fault.FORBIDDEN:
                    raise
                unlisted[kind] = error.text
        self.unlisted = unlisted
        order = list(Kind)
        return sorted(things, key=lambda t: (order.index(t.kind), t.name, t.id))

    async def _optional(
        self,
        rest: Rest,
        path: str,
        name: str,
        convert: Callable[[dict[str, Any]], Thing | None],
        limit: int | None = None,
    ) -> list[Thing | None]:
        try:
            await rest.base()
        except CloudError as error:
            if error.kind is Fault.NOT_FOUND:  # the service is not in the catalog
                return []
            raise
        return await rest.pages(path, name, convert, limit=limit)

    async def _server_groups(self) -> list[Thing]:
        groups = await server_groups(partial(self._compute.call, "GET"))
        tagged = [(id_, name, ownership_tags.of_server_group(name)) for id_, name in groups]
        return [
            Thing(kind=Kind.SERVER_GROUP, id=id_, name=name, tag=tag)
            for id_, name, tag in tagged
            if tag is not None
        ]

    async def _of_user(
        self, path: str, convert: Callable[[dict[str, Any]], Thing | None]
    ) -> list[Thing]:
        """The user's things at the identity service; none when it has no such list.

        path: of the list, whose last part is the list's key.
        """
        user, _ = await self._whose()
        key = path.partition("?")[0].rpartition("/")[2]
        try:
            own = "/" + path.format(user=quote(user, safe=""))
            rows = await self._identity.pages(own, key, convert)
        except CloudError as error:
            if error.kind is Fault.NOT_FOUND:
                return []
            raise
        return [row for row in rows if row is not None]

    def _trust(self, row: Mapping[str, Any]) -> Thing | None:
        mine = row.get("project_id") == self._tenant_id and row.get("impersonation") is True
        if not mine or not ownership_tags.is_trust_end(str(row.get("expires_at") or "")):
            return None
        name = f"for user {row.get('trustee_user_id')}"
        return Thing(kind=Kind.TRUST, id=str(row["id"]), name=name, tag=None)

    def _application_credential(self, row: Mapping[str, Any]) -> Thing | None:
        if row.get("project_id") != self._tenant_id:
            return None
        tag = ownership_tags.of_credential(str(row.get("name")))
        return _thing(Kind.APPLICATION_CREDENTIAL, row, tag, "created_at")

    async def remove(self, thing: Thing) -> None:
        """Remove `thing`. A missing one is no fault. Raises CloudError, BUSY: try again later."""
        id_ = quote(thing.id, safe="")
        if thing.kind is Kind.APPLICATION_CREDENTIAL:
            user, _ = await self._whose()
            own = f"/users/{quote(user, safe='')}/application_credentials/{id_}"
            await self._identity.call("DELETE", own, absent_ok=True)
            return
        rest, path = {
            Kind.SERVER: (self._compute, f"/servers/{id_}"),
            Kind.FLOATING_IP: (self._network, f"/floatingips/{id_}"),
            Kind.VOLUME: (self._volume, f"/volumes/{id_}"),
            Kind.PORT: (self._network, f"/ports/{id_}"),
            Kind.SECURITY_GROUP: (self._network, f"/security-groups/{id_}"),
            Kind.SERVER_GROUP: (self._compute, f"/os-server-groups/{id_}"),
            Kind.TRUST: (self._identity, f"/OS-TRUST/trusts/{id_}"),
        }[thing.kind]
        await rest.call("DELETE", path, absent_ok=True)


def _server(row: Mapping[str, Any]) -> Thing | None:
    return _thing(
        Kind.SERVER, row, ownership_tags.of_metadata(row.get("metadata") or {}), "created"
    )


def _volume(row: Mapping[str, Any]) -> Thing | None:
    return _thing(
        Kind.VOLUME, row, ownership_tags.of_metadata(row.get("metadata") or {}), "created_at"
    )


def _address(row: Mapping[str, Any]) -> Thing | None:
    tag = ownership_tags.of_address(str(row.get("description") or ""))
    named = {**row, "name": row.get("floating_ip_address")}
    return _thing(Kind.FLOATING_IP, named, tag, "created_at")


def _security_group(row: Mapping[str, Any]) -> Thing | None:
    tag = ownership_tags.of_security_group(str(row.get("name")), str(row.get("description") or ""))
    return _thing(Kind.SECURITY_GROUP, row, tag, "created_at")


def _port(
    groups: Mapping[str, Tag | None], servers: set[str], row: Mapping[str, Any]
) -> Thing | None:
    """A port of a server that does not exist any more, in one of our security groups.

    servers: all servers of the tenant. A user may have put another server into one of our groups.
    """
    mine = [groups[g] for g in row.get("security_groups") or () if g in groups]
    owned = str(row.get("device_owner") or "").startswith("compute:")
    if not mine or not owned or str(row.get("device_id")) in servers:
        return None
    named = {**row, "name": row.get("name") or row.get("mac_address")}
    return _thing(Kind.PORT, named, mine[0], "created_at")


def _thing(kind: Kind, row: Mapping[str, Any], tag: Tag | None, made: str) -> Thing | None:
    if tag is None:
        return None
    return Thing(
        kind=kind,
        id=str(row["id"]),
        name=str(row.get("name") or ""),
        tag=tag,
        status=str(row.get("status") or ""),
        made_at=_seconds(row.get(made)),
    )


def _seconds(text: object) -> float | None:
    """Epoch seconds of an ISO 8601 time, UTC without a zone; None for other values."""
    try:
        moment = datetime.datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()
