"""Identifies callers and checks their rights: the stages `authenticate` and `authorize`."""

from __future__ import annotations

import re
from typing import Final

from svcd.errors import Forbidden, NotFound, Unauthorized
from svcd.model.cloud import Caller
from svcd.model.ids import TenantId
from svcd.model.secret import Secret
from svcd.ports.cloud import Identity
from svcd.resources._addresses import Addresses
from svcd.resources._answers import shown
from svcd.resources._call import Call
from svcd.resources._policy import Policy
from svcd.resources._route import Route
from svcd.runtime import logs

_TENANT: Final = re.compile(r"[A-Za-z0-9._:@-]{1,64}\Z")


class Callers:
    """Checks tokens and roles. identity: None with `auth.mode=none`."""

    def __init__(self, identity: Identity | None, policy: Policy, addresses: Addresses) -> None:
        self.policy = policy
        self.addresses = addresses
        self._identity = identity

    async def authenticate(self, call: Call, tenant: str | None) -> None:
        """Set the caller of `call`. tenant: of the path; None for a path without one.

        Raises Unauthorized, Forbidden, ServiceUnavailable, and NotFound for a tenant that cannot be
        with `auth.mode=none`.
        """
        caller = (
            self._of_path(call, tenant) if self._identity is None else await self._of_token(call)
        )
        call.caller = caller
        if caller.is_job:
            raise Forbidden(
                "the token is of the application credential of a job, which is for the object"
                " store only: log in as a user"
            )
        if tenant is not None and caller.tenant_id != tenant:
            raise Forbidden(
                f"the token is not for tenant {shown(tenant)}: get a token for that project"
            )
        call.tenant = caller.tenant_id
        logs.tenant.set(caller.tenant_id)

    def _of_path(self, call: Call, tenant: str | None) -> Caller:
        if tenant is None or not _TENANT.match(tenant):
            raise NotFound(f"path {shown(call.request.path)} not found")
        return Caller(tenant_id=TenantId(tenant), user_id="anonymous", user_name="anonymous")

    async def _of_token(self, call: Call) -> Caller:
        assert self._identity is not None
        given = call.request.requestHeaders.getRawHeaders(b"X-Auth-Token")
        token = given[0].decode("latin-1").strip() if given else ""
        if not token:
            raise Unauthorized(
                "the header X-Auth-Token is missing: get a token from the identity service"
            )
        return await self._identity.authenticate(
            Secret(token), lambda: self.addresses.of(call.request)
        )

    def authorize(self, call: Call, route: Route) -> None:
        """Raises Forbidden when the roles of the caller do not satisfy the need of `route`."""
        needs, roles = route.spec.needs, call.caller.roles
        if not self.policy.allows(needs, roles):
            request = f"{shown(call.request.method)} {route.pattern}"
            raise self.policy.refusal(needs, roles, request)

    def challenge(self) -> dict[str, str]:
        """The headers of a 401."""
        if self._identity is None:
            return {}
        return {"WWW-Authenticate": self._identity.challenge()}
