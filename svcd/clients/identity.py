"""Keystone v3: svcd's own tokens, the catalog, logins, and the check of callers' tokens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen
from twisted.internet.interfaces import IReactorTime

from svcd.clients.http import Answer, HttpClient
from svcd.clients.newest import Newest
from svcd.clients.rest import RestError, refusal, shaped
from svcd.clients.tokens import SERVICE, Endpoint, Token, endpoints_of, object_of, token_of
from svcd.model.cloud import Project
from svcd.model.ids import TenantId, iso_seconds, timestamp
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.runtime.coalesce import Coalescer
from svcd.settings import CloudSettings

_RENEW_BEFORE_S = 120.0
"""Seconds before its end at which svcd renews a kept token."""
_CATALOG_S = 300.0
"""Seconds that svcd keeps the catalog of a tenant."""
_SESSIONS = 4096
"""Most tokens, and most catalogs, that svcd keeps."""
_PAUSE_S: Final = 300.0
"""Time for which svcd does not repeat a login with a password of a user that Keystone refused. It
doubles with each refusal, because many clouds lock an account after a few wrong passwords."""
_MOST_PAUSE_S: Final = 6 * 3600.0


@frozen(kw_only=True)
class Scope:
    """The scope of a token of svcd's own user: a project, a trust, or neither (its own project)."""

    project: str | None = None
    trust_id: str | None = field(default=None, repr=False)


@frozen
class _Pause:
    """No login with a refused password between `begin` and begin + length_s, in epoch seconds."""

    begin: float
    length_s: float


class Keystone:
    """The identity service at `settings.auth_url`, with the login of svcd's own user.

    Tokens are kept by scope and renewed before they expire. Checks of callers' tokens, and svcd's
    own token that they need, take no place among the calls (`tenant=None`): they must not wait for
    other calls to the cloud, nor delay them.
    """

    def __init__(
        self,
        http: HttpClient,
        settings: CloudSettings,
        clock: IReactorTime,
    ) -> None:
        self._http = http
        self._settings = settings
        self._clock = clock
        self._base = settings.auth_url.rstrip("/")
        own = (settings.password, settings.application_credential_secret)
        # known secrets are masked in the log: model.secret
        self._known = [Secret(secret) for secret in own if secret]
        self._kept: Newest[str, Token] = Newest(_SESSIONS)
        self._pauses: Newest[str, _Pause] = Newest(_SESSIONS)
        self._asking = Coalescer()
        self._catalogs: Newest[str, tuple[float, tuple[Endpoint, ...]]] = Newest(_SESSIONS)

    # ---- own tokens ----

    async def own(self, scope: Scope) -> Token:
        """A token of svcd's user for `scope`. It stays valid for some minutes at least.

        Raises CloudError; UNAUTHORIZED also for a trust that does not exist.
        """
        key = f"{scope.project or ''}|{scope.trust_id or ''}"
        return await self._cached(key, lambda: self._issue(self._own_identity(), scope))

    async def of_user(self, user: str, password: str, tenant_id: str) -> Token:
        """A token of another user in the tenant's project, from the password given to svcd.

        Raises CloudError; UNAUTHORIZED also when Keystone refused the same login a while ago.
        """
        digest = hashlib.sha256(f"{user}\0{password}".encode()).hexdigest()
        identity = _password({"name": user, "domain": {"id": self._settings.user_domain}}, password)
        key, scope = f"{tenant_id}|{digest}", Scope(project=tenant_id)

        async def issue() -> Token:
            pause, now = self._pauses.get(key), self._clock.seconds()
            if pause is not None and 0 <= now - pause.begin < pause.length_s:
                raise self._refused_user(user, tenant_id, pause)
            try:
                token = await self._issue(identity, scope)
            except CloudError as error:
                if error.kind is not Fault.UNAUTHORIZED:
                    raise
                length_s = _PAUSE_S if pause is None else min(_MOST_PAUSE_S, 2 * pause.length_s)
                pause = self._pauses[key] = _Pause(self._clock.seconds(), length_s)
                raise self._refused_user(user, tenant_id, pause) from None
            self._pauses.pop(key, None)
            return token

        return await self._cached(key, issue)

    def _refused_user(self, user: str, tenant_id: str, pause: _Pause) -> CloudError:
        until = iso_seconds(timestamp(pause.begin + pause.length_s))
        text = (
            f"{self._base} refuses user {user!r} in project {tenant_id!r}: unknown user, wrong"
            f" password, or no role there; svcd does not try this password again before {until} UTC"
        )
        return CloudError(SERVICE, Fault.UNAUTHORIZED, text)

    def forget(self, token: Secret) -> None:
        """Drop a token that a service refused: the next caller gets a new one."""
        for key, kept in list(self._kept.items()):
            if kept.text == token:
                del self._kept[key]

    async def _cached(self, key: str, issue: Callable[[], Awaitable[Token]]) -> Token:
        kept = self._kept.get(key)
        now = self._clock.seconds()
        if kept is not None and kept.expires_at - now > _renew_before_s(kept):
            self._kept.move_to_end(key)
            return kept

        async def renew() -> Token:
            token = self._kept[key] = await issue()
            return token

        try:
            return await self._asking.get(key, renew)
        except CloudError as error:
            if kept is not None and error.passing and kept.expires_at > now:
                return kept
            raise

    def _own_identity(self) -> dict[str, Any]:
        s = self._settings
        if s.application_credential_id:
            return {
                "methods": ["application_credential"],
                "application_credential": {
                    "id": s.application_credential_id,
                    "secret": s.application_credential_secret,
                },
            }
        return _password({"name": s.username, "domain": {"id": s.user_domain}}, s.password)

    async def _issue(self, identity: Mapping[str, Any], scope: Scope) -> Token:
        auth: dict[str, Any] = {"identity": identity}
        if scope.trust_id is not None:
            auth["scope"] = {"OS-TRUST:trust": {"id": scope.trust_id}}
        elif scope.project is not None:
            auth["scope"] = {"project": {"id": scope.project}}
        elif "application_credential" not in identity:
            domain = {"id": self._settings.project_domain}
            auth["scope"] = {"project": {"name": self._settings.project, "domain": domain}}
        # a check of a token waits for svcd's own token
        return await self._issued(auth, None if scope == Scope() else "")

    async def _issued(self, auth: Mapping[str, Any], tenant: str | None) -> Token:
        try:
            answer = await self.send(
                "POST",
                "/auth/tokens",
                body={"auth": auth},
                repeatable=True,
                secrets=_secrets(auth),
                tenant=tenant,
            )
        except RestError as error:
            if error.status == 404 and "application_credential" in auth["identity"]:
                error.kind = Fault.UNAUTHORIZED  # Keystone answers 404 for a deleted credential
            raise
        text = answer.header("x-subject-token")
        if not text:
            text = "the answer has no X-Subject-Token header"
            raise CloudError(SERVICE, Fault.SERVER_ERROR, text)
        return token_of(Secret(text), answer, self._clock.seconds())

    # ---- logins of users ----

    async def of_password(self, user: str, domain: str, password: str) -> Token:
        """A token without a scope for a user's password. It is not kept. Raises CloudError.

        domain: a name, or the id of svcd's own domain (`cloud.user_domain`).
        """
        given = {"id" if domain == self._settings.user_domain else "name": domain}
        identity = _password({"name": user, "domain": given}, password)
        return await self._issued({"identity": identity, "scope": "unscoped"}, None)

    async def of_project(self, token: Secret, project_id: str) -> Token:
        """A token for a project, from a user's token without a scope. Raises CloudError."""
        identity = {"methods": ["token"], "token": {"id": token.reveal()}}
        scope = {"project": {"id": project_id}}
        return await self._issued({"identity": identity, "scope": scope}, None)

    async def revoke(self, token: Secret) -> None:
        """End a user's token, by its own right, and no token made from it. Raises CloudError.

        A token that has ended already is no fault.
        """
        headers = {"X-Subject-Token": token.reveal()}
        await self.send(
            "DELETE", "/auth/tokens", token=token, headers=headers, also=(401, 404), tenant=None
        )

    async def projects(self, token: Secret) -> Sequence[Project]:
        """The projects in which the user of a token has a role, by name. Raises CloudError."""
        answer = await self.send("GET", "/auth/projects", token=token, tenant=None)

        def convert(body: Mapping[str, Any]) -> Sequence[Project]:
            projects = [
                Project(id=TenantId(str(project["id"])), name=str(project["name"]))
                for project in body["projects"]
                if project.get("enabled", True)
            ]
            return sorted(projects, key=lambda project: (project.name, project.id))

        return shaped(SERVICE, "projects", convert, object_of(answer))

    # ---- callers' tokens ----

    async def validate(self, subject: Secret) -> Token | None:
        """A caller's token as Keystone describes it, without its catalog; None: not valid.

        Raises CloudError when Keystone cannot check the token.
        """
        for last in (False, True):
            own = await self.own(Scope())
            answer = await self.send(
                "GET",
                "/auth/tokens?nocatalog",
                token=own.text,
                headers={"X-Subject-Token": subject.reveal()},
                also=(404,) if last else (401, 404),
                tenant=None,
            )
            if answer.status != 401:
                break
            self.forget(own.text)
        return None if answer.status == 404 else token_of(subject, answer, self._clock.seconds())

    async def catalog(self, token: Secret, tenant_id: str) -> tuple[Endpoint, ...]:
        """The catalog for a caller's token. It is kept for some minutes per tenant."""
        now = self._clock.seconds()
        kept = self._catalogs.get(tenant_id)
        if kept is not None and kept[0] > now:
            return kept[1]
        answer = await self.send("GET", "/auth/catalog", token=token, tenant=tenant_id)
        endpoints = shaped(
            SERVICE, "a catalog", lambda body: endpoints_of(body["catalog"]), object_of(answer)
        )
        self._catalogs[tenant_id] = (now + _CATALOG_S, endpoints)
        return endpoints

    def pick(self, catalog: Sequence[Endpoint], types: Sequence[str]) -> str:
        """The URL of the first type that the catalog has. Raises CloudError NOT_FOUND."""
        region, interface = self._settings.region, self._settings.interface
        for type_ in types:
            for endpoint in catalog:
                fits = endpoint.type == type_ and endpoint.interface == interface
                if fits and region in ("", endpoint.region):
                    return endpoint.url.rstrip("/")
        where = f" in region {region}" if region else ""
        text = f"the catalog has no {interface} endpoint of {' or '.join(types)}{where}"
        raise CloudError(types[0], Fault.NOT_FOUND, text)

    @property
    def base(self) -> str:
        """The URL of the identity service."""
        return self._base

    async def send(
        self,
        method: str,
        path: str,
        *,
        token: Secret | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        also: Collection[int] = (),
        repeatable: bool | None = None,
        secrets: Sequence[Secret] = (),
        max_body_bytes: int | None = None,
        tenant: str | None = "",
    ) -> Answer:
        """The answer, of a status below 400 or in `also`. Raises CloudError.

        tenant: see `HttpClient.request`.
        """
        sent = {"Accept": "application/json", **(headers or {})}
        if token is not None:
            sent["X-Auth-Token"] = token.reveal()
        data = None
        if body is not None:
            sent["Content-Type"] = "application/json"
            data = json.dumps(body).encode("utf-8")
        answer = await self._http.request(
            method,
            self._base + path,
            headers=sent,
            body=data,
            service=SERVICE,
            repeatable=repeatable,
            secrets=secrets,
            max_body_bytes=max_body_bytes,
            tenant=tenant,
        )
        if answer.status >= 400 and answer.status not in also:
            raise refusal(SERVICE, method, self._base + path, answer)
        return answer


def _secrets(auth: Mapping[str, Any]) -> Sequence[Secret]:
    """The secrets of a login."""
    identity = auth["identity"]
    secrets = [
        identity.get("password", {}).get("user", {}).get("password"),
        identity.get("application_credential", {}).get("secret"),
        identity.get("application_credential", {}).get("id"),
        identity.get("token", {}).get("id"),
    ]
    scope = auth.get("scope")
    if isinstance(scope, dict):
        secrets.append(scope.get("OS-TRUST:trust", {}).get("id"))
    return [Secret(secret) for secret in secrets if secret]


def _password(user: Mapping[str, Any], password: str) -> dict[str, Any]:
    return {"methods": ["password"], "password": {"user": {**user, "password": password}}}


def _renew_before_s(token: Token) -> float:
    """The rest of its life at which a token is renewed: at most half of its life."""
    return min(_RENEW_BEFORE_S, (token.expires_at - token.issued_at) / 2)
