"""Keystone v3 without tokens: projects, users, trusts, application credentials. Source: its API."""

from __future__ import annotations

import datetime
import secrets
from typing import Any

import msgspec
from klein import Klein

from svcd.embedded.cloud.core import fixed_id
from svcd.embedded.cloud.openstack import TITLES, Call, Service, text_of
from svcd.embedded.cloud.records import ApplicationCredential, Project, Trust
from svcd.embedded.services import Refusal, Reply
from svcd.web.routing import route


class Named(msgspec.Struct):
    id: str | None = None
    name: str | None = None


class _NewTrust(msgspec.Struct):
    trustor_user_id: str
    trustee_user_id: str
    impersonation: bool
    project_id: str | None = None
    roles: list[Named] = []
    expires_at: str | None = None


def _end(text: str | None, now: float) -> float | None:
    """The time of an end in whole epoch seconds. Raises Refusal 400."""
    if text is None:
        return None
    try:
        end = datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        end = 0.0
    if end <= now:
        raise Refusal(400, "The 'expires_at' must not be before now.")
    return float(int(end))


class _NewCredential(msgspec.Struct):
    name: str
    secret: str | None = None
    description: str | None = None
    roles: list[Named] | None = None
    expires_at: str | None = None


class Accounts(Service):
    """The operations that need a token and issue none."""

    app = Klein()
    where = "identity"

    def envelope(self, refusal: Refusal) -> Reply:
        """{"error": {code, message, title}}."""
        title = TITLES.get(refusal.status, "Internal Server Error")
        error = {"code": refusal.status, "message": refusal.message, "title": title}
        return Reply(status=refusal.status, body={"error": error}, headers=self.headers(refusal))

    # ---- projects and users ----

    def _project(self, project: Project) -> dict[str, Any]:
        return {
            "id": project.id,
            "name": project.name,
            "domain_id": "default",
            "enabled": True,
            "is_domain": False,
            "parent_id": "default",
            "description": "",
            "tags": [],
            "options": {},
            "links": {"self": self._link(f"/projects/{project.id}")},
        }

    @route(app, ["GET"], "/v3/auth/projects")
    @route(app, ["GET"], "/v3/projects")
    def projects(self, call: Call) -> Reply:
        user = self._core.users[call.me.user_id]
        wanted = call.one("name")
        mine = [
            self._project(project)
            for project in self._core.projects.values()
            if self._core.roles(user, project.id) and wanted in ("", project.name)
        ]
        return Reply(body={"projects": mine, "links": {"next": None, "previous": None}})

    @route(app, ["GET"], "/v3/projects/<project_id>")
    def project(self, call: Call, project_id: str) -> Reply:
        found = self._core.projects.get(project_id)
        if found is None or not (
            self._core.roles(self._core.users[call.me.user_id], found.id)
            or "admin" in call.me.roles
        ):
            raise Refusal(404, f"Could not find project: {project_id}.")
        return Reply(body={"project": self._project(found)})

    @route(app, ["GET"], "/v3/users/<user_id>")
    def user(self, call: Call, user_id: str) -> Reply:
        found = self._core.users.get(user_id)
        if found is None or (user_id != call.me.user_id and "admin" not in call.me.roles):
            raise Refusal(404, f"Could not find user: {user_id}.")
        user = {"id": found.id, "name": found.name, "domain_id": "default", "enabled": True}
        return Reply(body={"user": user})

    # ---- trusts ----

    def _link(self, path: str) -> str:
        return f"{self._core.public_url}/identity/v3{path}"

    def _role(self, name: str) -> dict[str, Any]:
        """All fields of a role. Trusts, their tokens and application credentials show roles so."""
        id_ = fixed_id("role", name)
        links = {"self": self._link(f"/roles/{id_}")}
        more: dict[str, Any] = {"domain_id": None, "description": None, "options": {}}
        return {"id": id_, "name": name, "links": links, **more}

    def _trust(self, trust: Trust) -> dict[str, Any]:
        """The JSON object of one trust; a list shows fewer fields."""
        of_roles = self._link(f"/OS-TRUST/trusts/{trust.id}/roles")
        return self._listed_trust(trust) | {
            "roles": [self._role(role) for role in trust.roles],
            "roles_links": {"self": of_roles, "next": None, "previous": None},
        }

    def _listed_trust(self, trust: Trust) -> dict[str, Any]:
        ends = trust.expires_at
        return {
            "id": trust.id,
            "trustor_user_id": trust.trustor_id,
            "trustee_user_id": trust.trustee_id,
            "project_id": trust.project_id,
            "impersonation": trust.impersonation,
            "links": {"self": self._link(f"/OS-TRUST/trusts/{trust.id}")},
            "redelegated_trust_id": None,
            "expires_at": None if ends is None else text_of(ends, "keystone"),
            "deleted_at": None,
            "remaining_uses": None,
            "redelegation_count": 0,
        }

    @route(app, ["POST"], "/v3/OS-TRUST/trusts")
    def create_trust(self, call: Call) -> Reply:
        """A trust gives roles that the trustor has in the trust's project, and no others."""
        new = call.read_in("trust", _NewTrust)
        me = call.me
        core = self._core
        if me.trust_id is not None or me.credential_id is not None:
            raise Refusal(403, "You are not authorized to perform the requested action.")
        if new.trustor_user_id != me.user_id:
            raise Refusal(403, "You are not authorized to perform the requested action.")
        if new.trustee_user_id not in core.users:
            raise Refusal(404, f"Could not find user: {new.trustee_user_id}.")
        project_id = new.project_id or call.project
        held = core.roles(core.users[me.user_id], project_id)
        by_id = {fixed_id("role", role): role for role in held}
        roles = tuple(by_id.get(r.id or "", r.name or "") for r in new.roles)
        if not roles:
            raise Refusal(403, "At least one role should be specified.")
        for role in roles:
            if role not in held:
                raise Refusal(404, f"Could not find role: {fixed_id('role', role)}.")
        ends_at = _end(new.expires_at, core.now())
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
        return Reply(status=201, body={"trust": self._trust(trust)})

    @route(app, ["GET"], "/v3/OS-TRUST/trusts")
    def trusts(self, call: Call) -> Reply:
        """The trusts that a user gave or got. Only an admin may list those of other users."""
        me, trustor, trustee = call.me, call.one("trustor_user_id"), call.one("trustee_user_id")
        if (trustor or trustee) != me.user_id and "admin" not in me.roles:
            raise Refusal(403, "You are not authorized to perform the requested action.")
        trusts = self._core.state.trusts
        if trustor or trustee:
            side = ("trustor", trustor) if trustor else ("trustee", trustee)
            rows = trusts.having(*side)
        else:
            rows = list(trusts.values())
        found = [self._listed_trust(trust) for trust in rows]
        links = {"self": self._link("/OS-TRUST/trusts"), "next": None, "previous": None}
        return Reply(body={"trusts": found, "links": links})

    def _own_trust(self, call: Call, trust_id: str) -> Trust:
        trust = self._core.state.trusts.get(trust_id)
        if trust is None:
            raise Refusal(404, f"Could not find trust: {trust_id}.")
        return trust

    @route(app, ["GET"], "/v3/OS-TRUST/trusts/<trust_id>")
    def trust(self, call: Call, trust_id: str) -> Reply:
        trust = self._own_trust(call, trust_id)
        if call.me.user_id not in (trust.trustor_id, trust.trustee_id):
            raise Refusal(403, "You are not authorized to perform the requested action.")
        return Reply(body={"trust": self._trust(trust)})

    @route(app, ["DELETE"], "/v3/OS-TRUST/trusts/<trust_id>")
    def delete_trust(self, call: Call, trust_id: str) -> Reply:
        trust = self._own_trust(call, trust_id)
        if call.me.user_id != trust.trustor_id:
            raise Refusal(403, "You are not authorized to perform the requested action.")
        self._core.state.trusts.remove(trust_id)
        return Reply(status=204)

    # ---- application credentials ----

    def _credential(self, made: ApplicationCredential) -> dict[str, Any]:
        """The JSON object without the secret, which only its creator gets. Its end has no zone."""
        end = made.expires_at
        return {
            "id": made.id,
            "name": made.name,
            "description": made.description,
            "project_id": made.project_id,
            "roles": [self._role(role) for role in made.roles],
            "user_id": made.user_id,
            "system": None,
            "links": {"self": self._link(f"/application_credentials/{made.id}")},
            "unrestricted": None,
            "expires_at": None if end is None else text_of(end, "keystone").removesuffix("Z"),
        }

    def _check_owner(self, call: Call, user_id: str, action: str) -> None:
        """Check that the user asks, with a token from a password. Raises Refusal 403."""
        start = "You are not authorized to perform the requested action: "
        if user_id != call.me.user_id:
            raise Refusal(403, f"{start}identity:{action}.")
        method = "application_credential" if call.me.credential_id else "trust"
        if call.method != "GET" and (call.me.credential_id or call.me.trust_id):
            raise Refusal(
                403,
                f"{start}Using method '{method}' is not allowed for managing additional"
                " application credentials..",
            )

    @route(app, ["POST"], "/v3/users/<user_id>/application_credentials")
    def create_credential(self, call: Call, user_id: str) -> Reply:
        new = call.read_in("application_credential", _NewCredential)
        core = self._core
        self._check_owner(call, user_id, "create_application_credential")
        by_id = {fixed_id("role", role): role for role in call.me.roles}
        asked = new.roles or [Named(name=role) for role in call.me.roles]
        roles = tuple(by_id.get(r.id or "", r.name or "") for r in asked)
        if not set(roles) <= set(call.me.roles):
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
            project_id=call.project,
            roles=roles,
            expires_at=_end(new.expires_at, core.now()),
            description=new.description,
        )
        core.state.credentials.put(credential)
        body = {**self._credential(credential), "secret": credential.secret}
        return Reply(status=201, body={"application_credential": body})

    @route(app, ["GET"], "/v3/users/<user_id>/application_credentials")
    def credentials(self, call: Call, user_id: str) -> Reply:
        self._check_owner(call, user_id, "list_application_credentials")
        name = call.one("name")
        key = ("name", (user_id, name)) if name else ("user", user_id)
        found = [self._credential(each) for each in self._core.state.credentials.having(*key)]
        links = {"self": self._link(f"/users/{user_id}/application_credentials"), "next": None}
        return Reply(body={"application_credentials": found, "links": links})

    @route(app, ["DELETE"], "/v3/users/<user_id>/application_credentials/<credential_id>")
    def delete_credential(self, call: Call, user_id: str, credential_id: str) -> Reply:
        self._check_owner(call, user_id, "delete_application_credential")
        found = self._core.state.credentials.get(credential_id)
        if found is None or found.user_id != user_id:
            raise Refusal(404, f"Could not find Application Credential: {credential_id}.")
        self._core.state.credentials.remove(credential_id)
        return Reply(status=204)
