"""The requests and the JSON objects of the identity service. Pure."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec

from svcd.embedded.cloud.core import REGION, Core, fixed_id
from svcd.embedded.cloud.openstack import text_of
from svcd.embedded.cloud.records import ApplicationCredential, Project, Token, Trust
from svcd.embedded.services import Refusal

DOMAIN = {"id": "default", "name": "Default"}
_SERVICES = (
    ("identity", "keystone", "/identity/v3"),
    ("compute", "nova", "/compute/v2.1"),
    ("image", "glance", "/image"),
    ("network", "neutron", "/network"),
    ("volumev3", "cinderv3", "/volume/v3/{project}"),
    ("block-storage", "cinder", "/volume/v3/{project}"),
    ("object-store", "swift", "/object-store/v1/AUTH_{project}"),
)
"""Type, name and path of each service in the catalog."""


class Named(msgspec.Struct):
    id: str | None = None
    name: str | None = None


class UserPassword(msgspec.Struct):
    password: str
    id: str | None = None
    name: str | None = None
    domain: Named | None = None


class Password(msgspec.Struct):
    user: UserPassword


class AppCredential(msgspec.Struct):
    secret: str
    id: str | None = None
    name: str | None = None
    user: Named | None = None


class Methods(msgspec.Struct):
    methods: list[str]
    password: Password | None = None
    token: Named | None = None
    application_credential: AppCredential | None = None


class AskedScope(msgspec.Struct, rename={"trust": "OS-TRUST:trust"}):
    project: Named | None = None
    trust: Named | None = None


class AskedAuth(msgspec.Struct):
    identity: Methods
    scope: AskedScope | str | None = None


class NewTrust(msgspec.Struct):
    trustor_user_id: str
    trustee_user_id: str
    impersonation: bool
    project_id: str | None = None
    roles: list[Named] = []
    expires_at: str | None = None


class NewCredential(msgspec.Struct):
    name: str
    secret: str | None = None
    description: str | None = None
    roles: list[Named] | None = None
    expires_at: str | None = None


def end_of(text: str | None, now: float) -> float | None:
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


def link(core: Core, path: str) -> str:
    """The URL of a path of the service."""
    return f"{core.public_url}/identity/v3{path}"


def version_body(core: Core) -> dict[str, Any]:
    """The version document."""
    media = {"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": link(core, "/")}],
        "media-types": [media],
    }


def role_body(core: Core, name: str) -> dict[str, Any]:
    """All fields of a role. Trusts, their tokens and application credentials show roles so."""
    id_ = fixed_id("role", name)
    return {
        "id": id_,
        "name": name,
        "links": {"self": link(core, f"/roles/{id_}")},
        "domain_id": None,
        "description": None,
        "options": {},
    }


def project_body(core: Core, project: Project) -> dict[str, Any]:
    """The JSON object of a project."""
    return {
        "id": project.id,
        "name": project.name,
        "domain_id": DOMAIN["id"],
        "enabled": True,
        "is_domain": False,
        "parent_id": DOMAIN["id"],
        "description": "",
        "tags": [],
        "options": {},
        "links": {"self": link(core, f"/projects/{project.id}")},
    }


def trust_body(core: Core, trust: Trust) -> dict[str, Any]:
    """The JSON object of one trust; a list shows fewer fields."""
    of_roles = link(core, f"/OS-TRUST/trusts/{trust.id}/roles")
    return listed_trust(core, trust) | {
        "roles": [role_body(core, role) for role in trust.roles],
        "roles_links": {"self": of_roles, "next": None, "previous": None},
    }


def listed_trust(core: Core, trust: Trust) -> dict[str, Any]:
    """The JSON object of a trust in a list."""
    ends = trust.expires_at
    return {
        "id": trust.id,
        "trustor_user_id": trust.trustor_id,
        "trustee_user_id": trust.trustee_id,
        "project_id": trust.project_id,
        "impersonation": trust.impersonation,
        "links": {"self": link(core, f"/OS-TRUST/trusts/{trust.id}")},
        "redelegated_trust_id": None,
        "expires_at": None if ends is None else text_of(ends, "keystone"),
        "deleted_at": None,
        "remaining_uses": None,
        "redelegation_count": 0,
    }


def credential_body(core: Core, credential: ApplicationCredential) -> dict[str, Any]:
    """The JSON object without the secret, which only its creator gets. Its end has no zone."""
    end = credential.expires_at
    return {
        "id": credential.id,
        "name": credential.name,
        "description": credential.description,
        "project_id": credential.project_id,
        "roles": [role_body(core, role) for role in credential.roles],
        "user_id": credential.user_id,
        "system": None,
        "links": {"self": link(core, f"/application_credentials/{credential.id}")},
        "unrestricted": None,
        "expires_at": None if end is None else text_of(end, "keystone").removesuffix("Z"),
    }


def token_body(core: Core, token: Token, with_catalog: bool) -> dict[str, Any]:
    """The JSON object of a token."""
    user = core.users[token.user_id]
    who = {"domain": DOMAIN, "id": user.id, "name": user.name, "password_expires_at": None}
    body: dict[str, Any] = {
        "methods": token.methods,
        "user": who,
        "audit_ids": [token.audit_id],
        "expires_at": text_of(token.expires_at, "keystone"),
        "issued_at": text_of(token.issued_at, "keystone"),
    }
    if token.project_id is not None:
        project = core.projects[token.project_id]
        body["project"] = {"domain": DOMAIN, "id": project.id, "name": project.name}
        body["is_domain"] = False
        body["roles"] = [role_body(core, role) for role in token.roles]
        if with_catalog:
            body["catalog"] = catalog(core, token.project_id)
    if token.trust_id is not None and (trust := core.state.trusts.get(token.trust_id)):
        body["OS-TRUST:trust"] = {
            "id": trust.id,
            "impersonation": trust.impersonation,
            "trustee_user": {"id": trust.trustee_id},
            "trustor_user": {"id": trust.trustor_id},
        }
    if token.credential_id is not None:
        credential = core.state.credentials.get(token.credential_id)
        name = "" if credential is None else credential.name
        given = {"id": token.credential_id, "name": name, "restricted": True}
        body["application_credential"] = given
    return body


def catalog(core: Core, project_id: str) -> list[dict[str, Any]]:
    """The services with their endpoints."""
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
                    "url": core.public_url + path.format(project=project_id),
                }
                for interface in ("public", "internal", "admin")
            ],
        }
        for type_, name, path in _SERVICES
    ]
