"""Keystone v3: the application credentials that svcd creates for jobs, as the user of an account.

A user has one application credential of a name. So after a lost answer svcd finds the application
credential by its name. Only the answer has the secret, so svcd deletes the application credential
and creates another one.
"""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from svcd.clients.http import HttpClient
from svcd.clients.identity import Keystone
from svcd.clients.rest import Rest, RestError, Session, shaped
from svcd.clients.tokens import SERVICE, Token
from svcd.model.job_credential import ApplicationCredential
from svcd.model.secret import Secret
from svcd.model.trust import delegated
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault


class UserCredentials:
    """The application credentials of one user in one project. All methods raise CloudError.

    session: of the user. current: its token now.
    """

    def __init__(
        self,
        http: HttpClient,
        keystone: Keystone,
        session: Session,
        current: Callable[[], Awaitable[Token]],
        tenant: str = "",
    ) -> None:
        self._current = current
        self._rest = Rest(http, session, SERVICE, (), tenant=tenant, url=keystone.base)

    async def create(
        self, name: str, roles: Sequence[str], expires_at: float
    ) -> ApplicationCredential:
        """See ports.ApplicationCredentials. roles: the user needs one of them at least."""
        token = await self._current()
        given = delegated(token.roles, roles)
        if not given:
            text = (
                f"user {token.user_name!r} has none of the roles {', '.join(roles)} in project"
                f" {token.project_id} (setting cloud.job_roles)"
            )
            raise CloudError(SERVICE, Fault.FORBIDDEN, text)
        end = datetime.datetime.fromtimestamp(expires_at, datetime.UTC)
        wanted = {
            "name": name,
            "description": "of svcd, for one job; svcd deletes it when the job has ended",
            "roles": [{"name": role} for role in given],
            "expires_at": end.strftime("%Y-%m-%dT%H:%M:%S.000000Z"),
        }
        path = await self._path()
        body = {"application_credential": wanted}
        try:
            answer = await self._rest.call("POST", path, body)
        except RestError as error:
            if error.status != 409:
                raise
            await self.delete(name, "")
            answer = await self._rest.call("POST", path, body)

        def convert(answer: Mapping[str, Any]) -> ApplicationCredential:
            made = answer["application_credential"]
            return ApplicationCredential(id=str(made["id"]), secret=Secret(str(made["secret"])))

        return shaped(SERVICE, "an application credential", convert, answer)

    async def delete(self, name: str, id_: str) -> bool:
        """See ports.ApplicationCredentials. After "not found" svcd also looks into the list."""
        path = await self._path()
        ids = [id_] if id_ else await self._named(path, name)
        for credential in ids:
            try:
                await self._rest.call("DELETE", f"{path}/{quote(credential, safe='')}")
            except RestError as error:
                if error.status != 404 or credential in await self._named(path, name):
                    raise
        return bool(ids)

    async def _named(self, path: str, name: str) -> Sequence[str]:
        def convert(row: Mapping[str, Any]) -> tuple[str, str]:
            return str(row["name"]), str(row["id"])

        query = f"{path}?name={quote(name, safe='')}"
        rows = await self._rest.pages(query, "application_credentials", convert)
        return [id_ for found, id_ in rows if found == name]

    async def _path(self) -> str:
        user_id = (await self._current()).user_id
        return f"/users/{quote(user_id, safe='')}/application_credentials"
