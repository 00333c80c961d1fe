"""Keystone v3: versions, tokens and the catalog. Source: its API."""

from __future__ import annotations

import hmac
from typing import Any

import msgspec

from svcd.embedded.cloud.accounts import Accounts, Named
from svcd.embedded.cloud.core import REGION, Core, fixed_id
from svcd.embedded.cloud.openstack import UNAUTHORIZED, Call, text_of
from svcd.embedded.cloud.records import ApplicationCredential, Project, Token, Trust, User
from svcd.embedded.services import Refusal, Reply
from svcd.web.routing import route

_DOMAIN = {"id": "default", "name": "Default"}
_PURGED_FIRST = 256
"""Tokens at which the service first removes those that have ended; then at twice those left."""
_NO_EXCHANGE = (
    "You are not authorized to perform the requested action: Using the token of an application"
    " credential to create another token. Use the application credential instead."
)


class _UserPassword(msgspec.Struct):
    password: str
    id: str | None = None
    name: str | None = None
    domain: Named | None = None


class _Password(msgspec.Struct):
    user: _UserPassword


class _AppCredential(msgspec.Struct):
    secret: str
    id: str | None = None
    name: str | None = None
    user: Named | None = None


class _Methods(msgspec.Struct):
    methods: list[str]
    password: _Password | None = None
    token: Named | None = None
    application_credential: _AppCredential | None = None


class _Scope(msgspec.Struct, rename={"trust": "OS-TRUST:trust"}):
    project: Named | None = None
    trust: Named | None = None


class _Auth(msgspec.Struct):
    identity: _Methods
    scope: _Scope | str | None = None


def _end_of(credential: ApplicationCredential | None) -> float:
    """No token outlives the application credential that made it."""
    return float("inf") if credential is None else credential.expires_at or float("inf")


def _version(core: Core) -> dict[str, Any]:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": f"{core.public_url}/identity/v3/"}],
        "media-types": [
            {"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}
        ],
    }


class Identity(Accounts):
    """Mounted at /identity."""

    app = Accounts.app  # the same routes, and more

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._purge_at = _PURGED_FIRST

    def authorize(self, call: Call, segments: list[str]) -> None:
        """Version documents and authentication are open."""
        if len(segments) <= 1 or (call.method == "POST" and segments[1:] == ["auth", "tokens"]):
            return
        self.authenticate(call)

    # ---- versions ----

    @route(app, ["GET"], "/")
    def versions(self, call: Call) -> Reply:
        return Reply(status=300, body={"versions": {"values": [_version(self._core)]}})

    @route(app, ["GET"], "/v3")
    def version(self, call: Call) -> Reply:
        return Reply(body={"version": _version(self._core)})

    # ---- tokens ----

    @route(app, ["POST"], "/v3/auth/tokens")
    def issue(self, call: Call) -> Reply:
        auth = call.read_in("auth", _Auth)
        user, methods, bound, credential = self._authenticated(auth.identity)
        scope = auth.scope
        project: Project | None = None
        trust: Trust | None = None
        owner = user
        roles: tuple[str, ...] = ()
        if bound is not None:
            if scope is not None:
                text = "Application credentials cannot request a scope."
                raise Refusal(401, f"Error authenticating with application credential: {text}")
            project, roles = bound
        elif isinstance(scope, _Scope) and scope.trust is not None:
            trust, owner = self._trust_for(user, scope.trust.id or "")
            project = self._core.projects.get(trust.project_id)
            roles = trust.roles
        elif isinstance(scope, _Scope) and scope.project is not None:
            project = self._scoped(user, scope.project)
            roles = self._core.roles(user, project.id)
        token = self._remember(owner, project, roles, methods, trust, credential)
        return self._shown(call, token, 201)

    @route(app, ["GET"], "/v3/auth/tokens")
    def validate(self, call: Call) -> Reply:
        return self._shown(call, self._subject(call))

    @route(app, ["DELETE"], "/v3/auth/tokens")
    def revoke(self, call: Call) -> Reply:
        self._core.state.tokens.remove(self._subject(call).id)
        return Reply(status=204)

    @route(app, ["GET"], "/v3/auth/catalog")
    def catalog(self, call: Call) -> Reply:
        if call.me.project_id is None:
            raise Refusal(403, "A project-scoped token is required to produce a service catalog.")
        links = {"self": self._link("/auth/catalog")}
        return Reply(body={"catalog": self._catalog(call.project), "links": links})

    def _shown(self, call: Call, token: Token, status: int = 200) -> Reply:
        body = {"token": self._body(token, "nocatalog" not in call.query)}
        headers = {"X-Subject-Token": token.id, "Vary": "X-Auth-Token"}
        return Reply(status=status, body=body, headers=headers)

    def _subject(self, call: Call) -> Token:
        token = self._core.living_token(call.header("X-Subject-Token"))
        mine = call.me
        if token is None:
            raise Refusal(404, "Could not recognize Fernet token")
        if token.id != mine.id and not {"service", "admin"} & set(mine.roles):
            raise Refusal(
                403, "You are not authorized to perform the requested action: identity:validate."
            )
        return token

    def _authenticated(
        self, identity: _Methods
    ) -> tuple[
        User, tuple[str, ...], tuple[Project, tuple[str, ...]] | None, ApplicationCredential | None
    ]:
        """The user, the methods, and the project and roles to which the method binds the token."""
        core = self._core
        if identity.application_credential is not None:
            given = identity.application_credential
            found = core.state.credentials.get(given.id or "")
            if found is None:
                text = f"Could not find Application Credential: {given.id or given.name}."
                raise Refusal(404, text)
            if (found.expires_at or float("inf")) <= core.now():
                raise Refusal(401, UNAUTHORIZED)
            if not hmac.compare_digest(found.secret.encode(), given.secret.encode()):
                raise Refusal(401, UNAUTHORIZED)
            bound = (core.projects[found.project_id], found.roles)
            return core.users[found.user_id], ("application_credential",), bound, found
        if identity.token is not None:
            token = core.living_token(identity.token.id or "")
            if token is None or token.trust_id is not None:
                raise Refusal(401, UNAUTHORIZED)
            if "application_credential" in token.methods:  # it would get more roles and time
                raise Refusal(403, _NO_EXCHANGE)
            return core.users[token.user_id], ("token", *token.methods), None, None
        if identity.password is None:
            raise Refusal(400, "Expecting to find password in identity.")
        who = identity.password.user
        user = core.users.get(who.id or "") or core.users_by_name.get(who.name or "")
        domain = who.domain or Named(id=_DOMAIN["id"])
        known = domain.id == _DOMAIN["id"] or domain.name == _DOMAIN["name"]
        good = user is not None and hmac.compare_digest(
            user.password.encode(), who.password.encode()
        )
        if user is None or not good or not (known or who.id):
            raise Refusal(401, UNAUTHORIZED)
        return user, ("password",), None, None

    def _scoped(self, user: User, wanted: Named) -> Project:
        word = wanted.id or wanted.name or ""
        project = self._core.project_named(word)
        if project is None and user.open and word:
            project = self._core.open_project(word)
        if project is None or not self._core.roles(user, project.id):
            raise Refusal(401, UNAUTHORIZED)
        return project

    def _trust_for(self, user: User, trust_id: str) -> tuple[Trust, User]:
        """The trust and the user whose token it gives. An unknown trust is a 401, not a 404."""
        trust = self._core.state.trusts.get(trust_id)
        late = trust is not None and (trust.expires_at or float("inf")) <= self._core.now()
        if trust is None or late or trust.trustee_id != user.id:
            raise Refusal(401, UNAUTHORIZED)
        return trust, self._core.users[trust.trustor_id] if trust.impersonation else user

    def _remember(
        self,
        user: User,
        project: Project | None,
        roles: tuple[str, ...],
        methods: tuple[str, ...],
        trust: Trust | None,
        credential: ApplicationCredential | None,
    ) -> Token:
        core = self._core
        now = core.now()
        tokens = core.state.tokens
        if len(tokens) >= self._purge_at:
            for each in [t for t in tokens.values() if t.expires_at <= now]:
                tokens.remove(each.id)
            self._purge_at = max(_PURGED_FIRST, 2 * len(tokens))
        token = Token(
            id="gAAAAA" + "".join(core.new_id().replace("-", "") for _ in range(6)),
            user_id=user.id,
            project_id=None if project is None else project.id,
            roles=roles,
            methods=methods,
            issued_at=now,
            expires_at=min(now + core.config.token_ttl_s, _end_of(credential)),
            audit_id=core.new_id().replace("-", "")[:22],
            trust_id=None if trust is None else trust.id,
            credential_id=None if credential is None else credential.id,
        )
        tokens.put(token)
        return token

    def _body(self, token: Token, with_catalog: bool) -> dict[str, Any]:
        core = self._core
        user = core.users[token.user_id]
        body: dict[str, Any] = {
            "methods": token.methods,
            "user": {
                "domain": _DOMAIN,
                "id": user.id,
                "name": user.name,
                "password_expires_at": None,
            },
            "audit_ids": [token.audit_id],
            "expires_at": text_of(token.expires_at, "keystone"),
            "issued_at": text_of(token.issued_at, "keystone"),
        }
        if token.project_id is not None:
            project = core.projects[token.project_id]
            body["project"] = {"domain": _DOMAIN, "id": project.id, "name": project.name}
            body["is_domain"] = False
            body["roles"] = [{"id": fixed_id("role", r), "name": r} for r in token.roles]
            if token.trust_id is not None:
                body["roles"] = [self._role(role) for role in token.roles]
            if with_catalog:
                body["catalog"] = self._catalog(token.project_id)
        if token.trust_id is not None and (trust := core.state.trusts.get(token.trust_id)):
            body["OS-TRUST:trust"] = {
                "id": trust.id,
                "impersonation": trust.impersonation,
                "trustee_user": {"id": trust.trustee_id},
                "trustor_user": {"id": trust.trustor_id},
            }
        if token.credential_id is not None:
            made = core.state.credentials.get(token.credential_id)
            body["application_credential"] = {
                "id": token.credential_id,
                "name": "" if made is None else made.name,
                "restricted": True,
            }
        return body

    def _catalog(self, project_id: str) -> list[dict[str, Any]]:
        base = self._core.public_url
        entries = [
            ("identity", "keystone", "/identity/v3"),
            ("compute", "nova", "/compute/v2.1"),
            ("image", "glance", "/image"),
            ("network", "neutron", "/network"),
            ("volumev3", "cinderv3", f"/volume/v3/{project_id}"),
            ("block-storage", "cinder", f"/volume/v3/{project_id}"),
            ("object-store", "swift", f"/object-store/v1/AUTH_{project_id}"),
        ]
        return [
            {
                "id": fixed_id("service", type_),
                "type": type_,
                "name": name,
                "endpoints": [
                    {
                        "id": fixed_id("endpoint", f"{type_}:{interface}"),
                        "interface": interface,
                        "region_id": REGION,
                        "region": REGION,
                        "url": base + path,
                    }
                    for interface in ("public", "internal", "admin")
                ],
            }
            for type_, name, path in entries
        ]
