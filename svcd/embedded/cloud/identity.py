"""Keystone v3: tokens, the catalog, projects, users, trusts, credentials. Source: its API."""

from __future__ import annotations

import hmac
import secrets

from attrs import frozen
from klein import Klein

from svcd.embedded.cloud import identity_shapes as shapes
from svcd.embedded.cloud.core import Core, fixed_id
from svcd.embedded.cloud.openstack import (
    TITLES,
    UNAUTHORIZED,
    OpenStackService,
    caller,
    project_of,
)
from svcd.embedded.cloud.records import ApplicationCredential, Project, Token, Trust, User
from svcd.embedded.services import Call, Refusal, Reply
from svcd.web.routing import route

_PURGED_FIRST = 256
"""Number of tokens at which the service removes ended tokens; then at twice the rest."""
_NOT_ALLOWED = "You are not authorized to perform the requested action"
_NO_EXCHANGE = (
    f"{_NOT_ALLOWED}: Using the token of an application"
    " credential to create another token. Use the application credential instead."
)


@frozen
class _Login:
    """A login: user and methods. trust: the token gets its roles."""

    user: User
    methods: tuple[str, ...]
    credential: ApplicationCredential | None = None
    trust: Trust | None = None


class Identity(OpenStackService):
    """Mounted at /identity."""

    app = Klein()
    where = "identity"

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._purge_at = _PURGED_FIRST

    def authorize(self, call: Call, segments: list[str]) -> None:
        """Version documents and authentication are open."""
        if len(segments) <= 1 or (call.method == "POST" and segments[1:] == ["auth", "tokens"]):
            return
        self.authenticate(call)

    def envelope(self, refusal: Refusal) -> Reply:
        """{"error": {code, message, title}}."""
        title = TITLES.get(refusal.status, "Internal Server Error")
        error = {"code": refusal.status, "message": refusal.message, "title": title}
        return Reply(status=refusal.status, body={"error": error}, headers=self.headers(refusal))

    @route(app, ["GET"], "/")
    def versions(self, call: Call) -> Reply:
        values = [shapes.version_body(self._core)]
        return Reply(status=300, body={"versions": {"values": values}})

    @route(app, ["GET"], "/v3")
    def version(self, call: Call) -> Reply:
        return Reply(body={"version": shapes.version_body(self._core)})

    # ---- tokens ----

    @route(app, ["POST"], "/v3/auth/tokens")
    def issue(self, call: Call) -> Reply:
        auth = call.read_in("auth", shapes.AskedAuth)
        login, scope, core = self._login(auth.identity), auth.scope, self._core
        project: Project | None = None
        roles: tuple[str, ...] = ()
        if login.credential is not None:
            if scope is not None:
                text = "Application credentials cannot request a scope."
                raise Refusal(401, f"Error authenticating with application credential: {text}")
            project, roles = core.projects[login.credential.project_id], login.credential.roles
        elif isinstance(scope, shapes.AskedScope) and scope.trust is not None:
            login = self._by_trust(login, scope.trust.id or "")
            if login.trust is not None:
                project, roles = core.projects.get(login.trust.project_id), login.trust.roles
        elif isinstance(scope, shapes.AskedScope) and scope.project is not None:
            project = self._scoped(login.user, scope.project)
            roles = core.roles(login.user, project.id)
        return self._shown(call, self._remember(login, project, roles), 201)

    @route(app, ["GET"], "/v3/auth/tokens")
    def validate(self, call: Call) -> Reply:
        return self._shown(call, self._subject(call))

    @route(app, ["DELETE"], "/v3/auth/tokens")
    def revoke(self, call: Call) -> Reply:
        self._core.state.tokens.remove(self._subject(call).id)
        return Reply(status=204)

    @route(app, ["GET"], "/v3/auth/catalog")
    def catalog(self, call: Call) -> Reply:
        if not project_of(call):
            raise Refusal(403, "A project-scoped token is required to produce a service catalog.")
        links = {"self": shapes.link(self._core, "/auth/catalog")}
        catalog = shapes.catalog(self._core, project_of(call))
        return Reply(body={"catalog": catalog, "links": links})

    def _shown(self, call: Call, token: Token, status: int = 200) -> Reply:
        body = {"token": shapes.token_body(self._core, token, "nocatalog" not in call.query)}
        headers = {"X-Subject-Token": token.id, "Vary": "X-Auth-Token"}
        return Reply(status=status, body=body, headers=headers)

    def _subject(self, call: Call) -> Token:
        token, mine = self._core.living_token(call.header("X-Subject-Token")), caller(call)
        if token is None:
            raise Refusal(404, "Could not recognize Fernet token")
        if token.id != mine.id and not {"service", "admin"} & set(mine.roles):
            raise Refusal(403, f"{_NOT_ALLOWED}: identity:validate.")
        return token

    def _login(self, identity: shapes.Methods) -> _Login:
        """The login of an authentication. Raises Refusal."""
        if identity.application_credential is not None:
            return self._by_credential(identity.application_credential)
        if identity.token is not None:
            return self._by_token(identity.token.id or "")
        if identity.password is None:
            raise Refusal(400, "Expecting to find password in identity.")
        core, who = self._core, identity.password.user
        user = core.users.get(who.id or "") or core.users_by_name.get(who.name or "")
        domain = who.domain or shapes.Named(id=shapes.DOMAIN["id"])
        known = who.id or domain.id == shapes.DOMAIN["id"] or domain.name == shapes.DOMAIN["name"]
        if user is None or not known or not _equal(user.password, who.password):
            raise Refusal(401, UNAUTHORIZED)
        return _Login(user, ("password",))

    def _by_credential(self, given: shapes.AppCredential) -> _Login:
        core = self._core
        credential = core.state.credentials.get(given.id or "")
        if credential is None:
            text = f"Could not find Application Credential: {given.id or given.name}."
            raise Refusal(404, text)
        ended = (credential.expires_at or float("inf")) <= core.now()
        if ended or not _equal(credential.secret, given.secret):
            raise Refusal(401, UNAUTHORIZED)
        return _Login(core.users[credential.user_id], ("application_credential",), credential)

    def _by_token(self, text: str) -> _Login:
        token = self._core.living_token(text)
        if token is None or token.trust_id is not None:
            raise Refusal(401, UNAUTHORIZED)
        if "application_credential" in token.methods:  # the new token would get more roles and time
            raise Refusal(403, _NO_EXCHANGE)
        return _Login(self._core.users[token.user_id], ("token", *token.methods))

    def _by_trust(self, login: _Login, trust_id: str) -> _Login:
        """The login with the trust. An unknown trust is a 401, not a 404."""
        trust = self._core.state.trusts.get(trust_id)
        late = trust is not None and (trust.expires_at or float("inf")) <= self._core.now()
        if trust is None or late or trust.trustee_id != login.user.id:
            raise Refusal(401, UNAUTHORIZED)
        user = self._core.users[trust.trustor_id] if trust.impersonation else login.user
        return _Login(user, login.methods, None, trust)

    def _scoped(self, user: User, wanted: shapes.Named) -> Project:
        word = wanted.id or wanted.name or ""
        project = self._core.projects.get(word)
        if project is None and user.open and word:
            project = self._core.open_project(word)
        if project is None or not self._core.roles(user, project.id):
            raise Refusal(401, UNAUTHORIZED)
        return project

    def _remember(self, login: _Login, project: Project | None, roles: tuple[str, ...]) -> Token:
        core, credential = self._core, login.credential
        now, tokens = core.now(), core.state.tokens
        if len(tokens) >= self._purge_at:
            for old in [token for token in tokens.values() if token.expires_at <= now]:
                tokens.remove(old.id)
            self._purge_at = max(_PURGED_FIRST, 2 * len(tokens))
        ends = now + core.config.token_ttl_s
        if credential is not None and credential.expires_at:  # no token outlives its credential
            ends = min(ends, credential.expires_at)
        token = Token(
            id="gAAAAA" + "".join(core.new_id().replace("-", "") for _ in range(6)),
            user_id=login.user.id,
            project_id=None if project is None else project.id,
            roles=roles,
            methods=login.methods,
            issued_at=now,
            expires_at=ends,
            audit_id=core.new_id().replace("-", "")[:22],
            trust_id=None if login.trust is None else login.trust.id,
            credential_id=None if credential is None else credential.id,
        )
        tokens.put(token)
        return token

    # ---- projects and users ----

    @route(app, ["GET"], "/v3/auth/projects")
    @route(app, ["GET"], "/v3/projects")
    def projects(self, call: Call) -> Reply:
        core, wanted = self._core, call.one("name")
        user = core.users[caller(call).user_id]
        mine = [
            shapes.project_body(core, project)
            for project in core.projects.values()
            if core.roles(user, project.id) and wanted in ("", project.name)
        ]
        return Reply(body={"projects": mine, "links": {"next": None, "previous": None}})

    @route(app, ["GET"], "/v3/projects/<project_id>")
    def project(self, call: Call, project_id: str) -> Reply:
        core, me = self._core, caller(call)
        project = core.projects.get(project_id)
        if project is None or not (
            core.roles(core.users[me.user_id], project.id) or "admin" in me.roles
        ):
            raise Refusal(404, f"Could not find project: {project_id}.")
        return Reply(body={"project": shapes.project_body(core, project)})

    @route(app, ["GET"], "/v3/users/<user_id>")
    def user(self, call: Call, user_id: str) -> Reply:
        user, me = self._core.users.get(user_id), caller(call)
        if user is None or (user_id != me.user_id and "admin" not in me.roles):
            raise Refusal(404, f"Could not find user: {user_id}.")
        body = {"id": user.id, "name": user.name, "domain_id": "default", "enabled": True}
        return Reply(body={"user": body})

    # ---- trusts ----

    @route(app, ["POST"], "/v3/OS-TRUST/trusts")
    def create_trust(self, call: Call) -> Reply:
        """A trust gives roles that the trustor has in the trust's project, and no others."""
        new, me, core = call.read_in("trust", shapes.NewTrust), caller(call), self._core
        if me.trust_id is not None or me.credential_id is not None:
            raise Refusal(403, f"{_NOT_ALLOWED}.")
        if new.trustor_user_id != me.user_id:
            raise Refusal(403, f"{_NOT_ALLOWED}.")
        if new.trustee_user_id not in core.users:
            raise Refusal(404, f"Could not find user: {new.trustee_user_id}.")
        project_id = new.project_id or project_of(call)
        held = core.roles(core.users[me.user_id], project_id)
        roles = _role_names(new.roles, held)
        if not roles:
            raise Refusal(403, "At least one role should be specified.")
        for role in roles:
            if role not in held:
                raise Refusal(404, f"Could not find role: {fixed_id('role', role)}.")
        ends_at = shapes.end_of(new.expires_at, core.now())
        same = (new.trustor_user_id, new.trustee_user_id, project_id, ends_at)
        if core.state.trusts.count("same", same):
            raise Refusal(409, "Conflict occurred attempting to store trust - Duplicate entry.")
        trust = Trust(
            id=core.new_id().replace("-", ""),
            trustor_id=new.trustor_user_id,
            trustee_id=new.trustee_user_id,
            project_id=project_id,
            roles=roles,
            impersonation=new.impersonation,
            created_at=core.now(),
            expires_at=ends_at,
        )
        core.state.trusts.put(trust)
        return Reply(status=201, body={"trust": shapes.trust_body(core, trust)})

    @route(app, ["GET"], "/v3/OS-TRUST/trusts")
    def trusts(self, call: Call) -> Reply:
        """The trusts that a user gave or got. Only an admin may list those of other users."""
        me, trusts = caller(call), self._core.state.trusts
        trustor, trustee = call.one("trustor_user_id"), call.one("trustee_user_id")
        if (trustor or trustee) != me.user_id and "admin" not in me.roles:
            raise Refusal(403, f"{_NOT_ALLOWED}.")
        if trustor:
            rows = trusts.having("trustor", trustor)
        else:
            rows = trusts.having("trustee", trustee) if trustee else list(trusts.values())
        links = {"self": shapes.link(self._core, "/OS-TRUST/trusts"), "next": None}
        shown = [shapes.listed_trust(self._core, trust) for trust in rows]
        return Reply(body={"trusts": shown, "links": {**links, "previous": None}})

    def _known_trust(self, trust_id: str) -> Trust:
        trust = self._core.state.trusts.get(trust_id)
        if trust is None:
            raise Refusal(404, f"Could not find trust: {trust_id}.")
        return trust

    @route(app, ["GET"], "/v3/OS-TRUST/trusts/<trust_id>")
    def trust(self, call: Call, trust_id: str) -> Reply:
        trust = self._known_trust(trust_id)
        if caller(call).user_id not in (trust.trustor_id, trust.trustee_id):
            raise Refusal(403, f"{_NOT_ALLOWED}.")
        return Reply(body={"trust": shapes.trust_body(self._core, trust)})

    @route(app, ["DELETE"], "/v3/OS-TRUST/trusts/<trust_id>")
    def delete_trust(self, call: Call, trust_id: str) -> Reply:
        if caller(call).user_id != self._known_trust(trust_id).trustor_id:
            raise Refusal(403, f"{_NOT_ALLOWED}.")
        self._core.state.trusts.remove(trust_id)
        return Reply(status=204)

    # ---- application credentials ----

    def _check_owner(self, call: Call, user_id: str, action: str) -> None:
        """Check that the user asks, with a token from a password. Raises Refusal 403."""
        me = caller(call)
        if user_id != me.user_id:
            raise Refusal(403, f"{_NOT_ALLOWED}: identity:{action}.")
        method = "application_credential" if me.credential_id else "trust"
        if call.method != "GET" and (me.credential_id or me.trust_id):
            raise Refusal(
                403,
                f"{_NOT_ALLOWED}: Using method '{method}' is not allowed for managing additional"
                " application credentials..",
            )

    @route(app, ["POST"], "/v3/users/<user_id>/application_credentials")
    def create_credential(self, call: Call, user_id: str) -> Reply:
        new = call.read_in("application_credential", shapes.NewCredential)
        core, me = self._core, caller(call)
        self._check_owner(call, user_id, "create_application_credential")
        roles = _role_names(new.roles, me.roles) if new.roles else me.roles
        if not set(roles) <= set(me.roles):
            text = "Cannot create an application credential with unassigned role"
            raise Refusal(400, f"Invalid application credential: {text}")
        if core.state.credentials.count("name", (user_id, new.name)):
            raise Refusal(
                409,
                "Conflict occurred attempting to store application_credential -"
                f" Duplicate entry found with name {new.name}.",
            )
        credential = ApplicationCredential(
            id=core.new_id().replace("-", ""),
            name=new.name,
            secret=new.secret or secrets.token_urlsafe(64),
            user_id=user_id,
            project_id=project_of(call),
            roles=roles,
            expires_at=shapes.end_of(new.expires_at, core.now()),
            description=new.description,
        )
        core.state.credentials.put(credential)
        body = {**shapes.credential_body(core, credential), "secret": credential.secret}
        return Reply(status=201, body={"application_credential": body})

    @route(app, ["GET"], "/v3/users/<user_id>/application_credentials")
    def credentials(self, call: Call, user_id: str) -> Reply:
        self._check_owner(call, user_id, "list_application_credentials")
        name, table = call.one("name"), self._core.state.credentials
        rows = table.having("name", (user_id, name)) if name else table.having("user", user_id)
        path = f"/users/{user_id}/application_credentials"
        links = {"self": shapes.link(self._core, path), "next": None}
        shown = [shapes.credential_body(self._core, row) for row in rows]
        return Reply(body={"application_credentials": shown, "links": links})

    @route(app, ["DELETE"], "/v3/users/<user_id>/application_credentials/<credential_id>")
    def delete_credential(self, call: Call, user_id: str, credential_id: str) -> Reply:
        self._check_owner(call, user_id, "delete_application_credential")
        credential = self._core.state.credentials.get(credential_id)
        if credential is None or credential.user_id != user_id:
            raise Refusal(404, f"Could not find Application Credential: {credential_id}.")
        self._core.state.credentials.remove(credential_id)
        return Reply(status=204)


def _role_names(asked: list[shapes.Named], held: tuple[str, ...]) -> tuple[str, ...]:
    """The names of roles that a request names by id or name."""
    by_id = {fixed_id("role", role): role for role in held}
    return tuple(by_id.get(role.id or "", role.name or "") for role in asked)


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
