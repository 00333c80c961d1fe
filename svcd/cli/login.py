"""Logs in to OpenStack by keystoneauth1, with the variables of the `openstack` command.

Only a command that needs a login imports this module. No text of a refusal has a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keystoneauth1 import exceptions
from keystoneauth1.access import AccessInfoV3
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from svcd.cli.door import Found
from svcd.cli.exits import NOT_FOUND, REFUSED, UNREACHABLE, USAGE, CommandError
from svcd.cli.http import READ_S, Http, check_url, lost, shown


class Login:
    """A login at the identity service `auth_url` by the OS_ variables. Raises CommandError."""

    def __init__(self, auth_url: str, environment: Mapping[str, str], http: Http) -> None:
        check_url(auth_url)
        self._auth_url = auth_url
        self._plugin = _plugin(auth_url, environment)
        self._session = Session(session=http.session, timeout=READ_S, redirect=False)
        self.access = self._log_in()

    @property
    def token(self) -> str:
        """The token of the last login."""
        return str(self.access.auth_token)

    @property
    def project(self) -> str:
        """The id of the token's project; "" without one."""
        return str(self.access.project_id or "")

    def renewed(self) -> str:
        """The token of a new login. Raises CommandError."""
        self._plugin.invalidate()
        self.access = self._log_in()
        return self.token

    def _log_in(self) -> AccessInfoV3:
        said = ""
        try:
            access = self._plugin.get_access(self._session)
            if access.auth_token and isinstance(access, AccessInfoV3):
                access.project_id  # noqa: B018 - it reads the answer, which may be no token
                return access
        except exceptions.ConnectionError as error:
            cause = error.__context__ if isinstance(error.__context__, OSError) else error
            raise lost(self._auth_url, cause) from None
        except exceptions.HttpError as error:
            said = f" but the status {error.http_status}"
            if 400 <= error.http_status < 500:
                where = shown(f"{self._auth_url}/auth/tokens")
                text = f"the login at {where} was refused with the status {error.http_status}"
                raise CommandError(text, REFUSED) from None
        except (exceptions.ClientException, LookupError, TypeError, AttributeError, RecursionError):
            said = ": does its URL name something else?"
        text = f"the identity service at {shown(self._auth_url)} gave no token{said}"
        raise CommandError(text, UNREACHABLE)


def _plugin(auth_url: str, environment: Mapping[str, str]) -> v3.Auth:
    secret = environment.get("OS_APPLICATION_CREDENTIAL_SECRET")
    if secret:
        id_ = environment.get("OS_APPLICATION_CREDENTIAL_ID")
        return v3.ApplicationCredential(auth_url, secret, application_credential_id=id_)
    project_id = environment.get("OS_PROJECT_ID")
    project = environment.get("OS_PROJECT_NAME") or environment.get("OS_TENANT_NAME")
    if not (project_id or project):
        raise CommandError("no project is given: set OS_PROJECT_ID or OS_PROJECT_NAME", USAGE)
    options: dict[str, Any] = {"project_id": project_id}
    if not project_id:
        options = {"project_name": project, **_domain("project", environment)}
    if environment.get("OS_USER_ID"):
        options["user_id"] = environment["OS_USER_ID"]
    else:
        options |= {"username": environment.get("OS_USERNAME"), **_domain("user", environment)}
    return v3.Password(auth_url, password=environment["OS_PASSWORD"], **options)


def _domain(of: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    name = environment.get(f"OS_{of.upper()}_DOMAIN_NAME")
    if name:
        return {f"{of}_domain_name": name}
    return {f"{of}_domain_id": environment.get(f"OS_{of.upper()}_DOMAIN_ID") or "default"}


def endpoint(found: Found, http: Http, kind: str, region: str, interface: str) -> str:
    """The URL of the service of type `kind` in the catalog of a login. Raises CommandError."""
    door = found.door
    access = found.login.access if found.login else _access_of(door.auth_url, door.token, http)
    if access is None:
        raise CommandError(f"the identity service at {door.auth_url} refuses the token", REFUSED)
    try:
        catalog = access.service_catalog
        url = catalog.url_for(kind, interface=interface, region_name=region or None)
    except (exceptions.CatalogException, LookupError, TypeError, AttributeError, ValueError):
        text = f"the catalog of {door.auth_url} has no {kind} service"
        raise CommandError(text, NOT_FOUND) from None
    return str(url).rstrip("/")


def project_of(auth_url: str, token: str, http: Http) -> str:
    """The project of a token; "" when it has none, or is refused. Raises CommandError."""
    access = _access_of(auth_url, token, http)
    try:
        return "" if access is None else str(access.project_id or "")
    except (LookupError, TypeError, AttributeError):
        return ""


def _access_of(auth_url: str, token: str, http: Http) -> AccessInfoV3 | None:
    """The project and catalog of a given token; None when it is refused. Raises CommandError."""
    headers = {"X-Auth-Token": token, "X-Subject-Token": token}
    answer = http.send("GET", f"{auth_url}/auth/tokens", None, headers)
    if answer.status != 200:
        return None
    return AccessInfoV3(answer._replace(sent=(token,)).json, token)
