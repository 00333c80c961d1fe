"""Keystone v3: the trusts that callers give to svcd's user."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from svcd.clients.identity import Keystone, Scope
from svcd.clients.rest import RestError, shaped
from svcd.clients.tokens import SERVICE, object_of, seconds_of
from svcd.model.cloud import Caller
from svcd.model.ids import TenantId
from svcd.model.secret import Secret
from svcd.model.trust import GivenTrust, delegated
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault

_PATH: Final = "/OS-TRUST/trusts"
_NO_TRUST = (
    "svcd needs a trust from you, and a token of an application credential cannot create one: log "
    "in with a password; you also need every role that the token has"
)
_TRUSTS_BYTES = 128 << 20
"""Limits a list of all trusts; one trust takes half a kilobyte (measured)."""


class Trusts:
    """The trusts to svcd's user. roles: those that a trust may carry (`cloud.trust_roles`)."""

    def __init__(self, keystone: Keystone, roles: Sequence[str]) -> None:
        self._keystone = keystone
        self._roles = roles

    async def create(self, caller: Caller, token: Secret, expires_at: str) -> str:
        """Create a trust in the caller's project for svcd's user, with `cloud.trust_roles`.

        Raises CloudError; FORBIDDEN for a token that may not create trusts (from a trust, or from a
        restricted application credential), for a role that cannot be delegated, and for a caller
        without any of the roles.

        expires_at: of the trust (`ownership_tags.trust_end`), which identifies the trust when the
        answer is lost.
        """
        roles = delegated(caller.roles, self._roles)
        if not roles:
            raise CloudError(
                SERVICE,
                Fault.FORBIDDEN,
                "the trust for the cluster needs one of the roles"
                f" {', '.join(self._roles)} (setting cloud.trust_roles), and the"
                f" token has {', '.join(sorted(caller.roles)) or 'none'}; get the role in the"
                " project, then a new token",
            )
        own = await self._keystone.own(Scope())
        trust = {
            "trustor_user_id": caller.user_id,
            "trustee_user_id": own.user_id,
            "project_id": caller.tenant_id,
            "impersonation": True,
            "roles": [{"name": role} for role in roles],
            "expires_at": expires_at,
        }
        try:
            answer = await self._keystone.send(
                "POST", _PATH, token=token, body={"trust": trust}, tenant=caller.tenant_id
            )
            return shaped(
                SERVICE, "a trust", lambda body: str(body["trust"]["id"]), object_of(answer)
            )
        except CloudError as error:
            status = error.status if isinstance(error, RestError) else 0
            if status == 404:  # the role or svcd's user is missing
                error.kind = Fault.FORBIDDEN
            if status == 403:
                error.text += f"; {_NO_TRUST}"
            if error.kind not in (Fault.TIMEOUT, Fault.SERVER_ERROR):
                raise
            found = await self._own_ending(expires_at, caller, token)
            if found is None:
                raise
            return found

    async def _own_ending(self, expires_at: str, caller: Caller, token: Secret) -> str | None:
        """The caller's trust with that expiry time; None also when the list fails."""
        query = f"trustor_user_id={quote(caller.user_id, safe='')}"
        try:
            trusts = await self._listed(query, token, {expires_at})
        except CloudError:
            return None
        return trusts[0].id if trusts else None

    async def given(self, wanted: Collection[str]) -> Sequence[GivenTrust]:
        """See ports.Cloud. The service has no other filter for trusts, and no pages."""
        own = await self._keystone.own(Scope())
        return await self._listed(
            f"trustee_user_id={quote(own.user_id, safe='')}", own.text, wanted
        )

    async def _listed(
        self, query: str, token: Secret, wanted: Collection[str]
    ) -> Sequence[GivenTrust]:
        """The listed trusts whose expiry time is in `wanted`. Raises CloudError."""
        path = f"{_PATH}?{query}"
        answer = await self._keystone.send("GET", path, token=token, max_body_bytes=_TRUSTS_BYTES)
        ends = {seconds_of(end): end for end in wanted}

        def convert(body: Mapping[str, Any]) -> Sequence[GivenTrust]:
            if body.get("truncated"):
                raise ValueError("the list was cut off")
            return [
                GivenTrust(
                    id=str(row["id"]),
                    tenant_id=TenantId(str(row["project_id"])),
                    trustor_id=str(row["trustor_user_id"]),
                    expires_at=ends[seconds_of(row["expires_at"])],
                )
                for row in body["trusts"]
                if row.get("expires_at") and seconds_of(row["expires_at"]) in ends
            ]

        return shaped(SERVICE, "trusts", convert, object_of(answer))

    async def delete(self, trust_id: str) -> None:
        """Delete a trust with a token of the trust. A missing trust is no fault. Raises CloudError.

        A refused token does not prove that the trust is gone. So this method requests a new token,
        which fails when the trust is gone. It accepts that a trust is gone only when a read of the
        trust does not find it either.
        """
        path = f"{_PATH}/{quote(trust_id, safe='')}"
        for last in (False, True):
            try:
                token = await self._keystone.own(Scope(trust_id=trust_id))
            except CloudError as error:
                unknown = error.kind in (Fault.UNAUTHORIZED, Fault.NOT_FOUND)
                if not unknown or await self._is_there(path):
                    raise
                return
            also = (404,) if last else (401, 404)
            try:
                answer = await self._keystone.send("DELETE", path, token=token.text, also=also)
            finally:
                self._keystone.forget(token.text)
            if answer.status == 404 and await self._is_there(path):
                text = "a trust that exists could not be deleted: the service did not find it"
                raise CloudError(SERVICE, Fault.NOT_FOUND, text)
            if answer.status != 401:
                return

    async def _is_there(self, path: str) -> bool:
        """Whether the trust exists. Raises CloudError, also when svcd's own login is refused."""
        own = await self._keystone.own(Scope())
        try:
            answer = await self._keystone.send("GET", path, token=own.text, also=(404,))
        except RestError as error:
            if error.status == 401:
                self._keystone.forget(own.text)
            raise
        return answer.status != 404
