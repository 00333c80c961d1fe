"""Finds the daemon for a command, and logs in: URL, project, token.

URL: `--api`, `SVCD_API`, else `endpoints.json` of the state folder. Token: `--token` or `OS_TOKEN`,
else a login with the variables of the `openstack` command (`OS_AUTH_URL`, `OS_USERNAME`,
`OS_PASSWORD`, `OS_PROJECT_ID` or `OS_PROJECT_NAME`, domains; or an application credential), else a
login of the user that `endpoints.json` names (embedded cloud). Project: `--project`,
`OS_PROJECT_ID`, the project of the token, the tenant of `endpoints.json`. This module never writes,
and never prints a token or password.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from svcd.cli.connection import Send, send
from svcd.cli.exits import REFUSED, UNREACHABLE, USAGE, CommandError, OutOfTime


class Door(NamedTuple):
    """A daemon and its login. token: "" without one. auth_url: of the cloud, "" when unknown."""

    api: str
    tenant: str
    token: str = ""
    auth_url: str = ""

    def __repr__(self) -> str:
        return f"Door(tenant={self.tenant!r})"

    @property
    def base(self) -> str:
        """The URL of the project's resources."""
        return f"{self.api.rstrip('/')}/v1.1/{quote(self.tenant, safe='')}"


Login = tuple[str, Mapping[str, Any], Mapping[str, Any] | None]
"""URL of the identity service, identity and scope of a login."""


class Given(NamedTuple):
    """What the options of a command and the settings name; "" for what they do not."""

    state_dir: Path
    api: str = ""
    tenant: str = ""
    token: str = ""
    auth_url: str = ""

    def __repr__(self) -> str:
        return f"Given(tenant={self.tenant!r})"


class Found(NamedTuple):
    """A daemon, its login, and how a command logs in again: None when it has only a token."""

    door: Door
    again: Login | None = None

    def __repr__(self) -> str:
        return f"Found({self.door!r})"

    def renewed(self, send: Send) -> str:
        """A new token; "" when there is no login to repeat. Raises CommandError."""
        return "" if self.again is None else log_in(*self.again, send)[0]


def find(given: Given, environment: Mapping[str, str], send: Send = send) -> Door:
    """The daemon that options, settings and environment name. Raises CommandError."""
    return found(given, environment, send).door


def found(
    given: Given, environment: Mapping[str, str], send: Send = send, *, cloud_only: bool = False
) -> Found:
    """The same, with the login. Raises CommandError.

    cloud_only: for a command that needs no daemon: the door then may have no `api`.
    """
    known = endpoints(given.state_dir)
    api = given.api or known.get("api") or ""
    if not api and not cloud_only:
        folder = given.state_dir.absolute()
        if known:
            raise CommandError(
                f"no daemon found: endpoints.json in {folder} names only the embedded cloud; start"
                " the daemon, or name its URL with --api URL",
                UNREACHABLE,
            )
        raise CommandError(
            f"no daemon found: there is no endpoints.json in {folder}; start the daemon (make run,"
            " or twistd -n svcd), name its state folder with --state-dir PATH, or its URL with"
            " --api URL",
            UNREACHABLE,
        )
    auth_url = environment.get("OS_AUTH_URL") or given.auth_url
    auth_url = v3(auth_url or str(known.get("identity", "")))
    tenant = given.tenant or environment.get("OS_PROJECT_ID") or ""
    token = given.token or environment.get("OS_TOKEN") or ""
    again: Login | None = None
    if token and not tenant and auth_url:
        tenant = project_of(auth_url, token, send)
    if not token and _has_login(environment) and environment.get("OS_AUTH_URL"):
        again = (auth_url, _identity(environment), _scope(environment))
        token, project = log_in(*again, send)
        tenant = tenant or project
    if not token and not given.api and known.get("username"):
        tenant = tenant or str(known["tenant"])
        again = _embedded_login(known, tenant)
        try:
            token = log_in(*again, send)[0]
        except OutOfTime:
            raise
        except CommandError:
            token, again = "", None  # the daemon may accept requests without a token
    tenant = tenant or ("" if given.api else str(known.get("tenant", "")))
    if not tenant and (token or not cloud_only):
        if not cloud_only:  # a daemon that is away comes first
            send("GET", f"{str(api).rstrip('/')}/", None, {})
        raise CommandError("no project is given: use --project ID, or set OS_PROJECT_ID", USAGE)
    return Found(
        door=Door(api=str(api), tenant=tenant, token=token, auth_url=auth_url), again=again
    )


def endpoints(state_dir: Path) -> Mapping[str, Any]:
    """The content of a running daemon's `endpoints.json`; {} when it cannot be read."""
    try:
        found = json.loads((state_dir / "endpoints.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def running(state_dir: Path) -> Mapping[str, Any]:
    """The content of `endpoints.json` when the process that wrote it runs, else {}."""
    found = endpoints(state_dir)
    pid = found.get("pid")
    return found if isinstance(pid, int) and Path("/proc", str(pid)).exists() else {}


# ---- logging in ---------------------------------------------------------------------------------


def v3(url: str) -> str:
    """The URL of version 3 of an identity service, however a user writes it."""
    url = url.rstrip("/")
    return url if not url or url.endswith("/v3") else url + "/v3"


def _has_login(environment: Mapping[str, str]) -> bool:
    return bool(
        environment.get("OS_APPLICATION_CREDENTIAL_SECRET")
        or (
            (environment.get("OS_USERNAME") or environment.get("OS_USER_ID"))
            and environment.get("OS_PASSWORD")
        )
    )


def _domain(environment: Mapping[str, str], of: str) -> Mapping[str, str]:
    name = environment.get(f"OS_{of}_DOMAIN_NAME")
    if name:
        return {"name": name}
    return {"id": environment.get(f"OS_{of}_DOMAIN_ID") or "default"}


def _identity(environment: Mapping[str, str]) -> Mapping[str, Any]:
    secret = environment.get("OS_APPLICATION_CREDENTIAL_SECRET")
    if secret:
        credential = {"id": environment.get("OS_APPLICATION_CREDENTIAL_ID"), "secret": secret}
        return {"methods": ["application_credential"], "application_credential": credential}
    user: dict[str, Any] = {"password": environment["OS_PASSWORD"]}
    if environment.get("OS_USER_ID"):
        user["id"] = environment["OS_USER_ID"]
    else:
        user |= {"name": environment["OS_USERNAME"], "domain": _domain(environment, "USER")}
    return {"methods": ["password"], "password": {"user": user}}


def _scope(environment: Mapping[str, str]) -> Mapping[str, Any] | None:
    if environment.get("OS_APPLICATION_CREDENTIAL_SECRET"):
        return None
    if environment.get("OS_PROJECT_ID"):
        return {"project": {"id": environment["OS_PROJECT_ID"]}}
    name = environment.get("OS_PROJECT_NAME") or environment.get("OS_TENANT_NAME")
    if not name:
        raise CommandError("no project is given: set OS_PROJECT_ID or OS_PROJECT_NAME", USAGE)
    return {"project": {"name": name, "domain": _domain(environment, "PROJECT")}}


def _embedded_login(known: Mapping[str, Any], tenant: str) -> Login:
    """The login of the embedded cloud's user. Raises CommandError for a damaged file."""
    try:
        user = {"name": known["username"], "domain": {"id": "default"}}
        identity = {
            "methods": ["password"],
            "password": {"user": {**user, "password": known["password"]}},
        }
        return str(known["identity"]), identity, {"project": {"id": tenant}}
    except KeyError as missing:
        text = f"endpoints.json has no {missing}: start the daemon again, or use --api URL"
        raise CommandError(text, UNREACHABLE) from None


def log_in(
    auth_url: str, identity: Mapping[str, Any], scope: Mapping[str, Any] | None, send: Send
) -> tuple[str, str]:
    """Log in at Keystone; return token and project id. Raises CommandError."""
    auth = {"identity": identity, **({} if scope is None else {"scope": scope})}
    url = f"{auth_url}/auth/tokens"
    headers = {"Content-Type": "application/json"}
    answer = send("POST", url, json.dumps({"auth": auth}).encode(), headers)
    token = answer.headers.get("x-subject-token", "")
    if answer.status != 201 or not token:
        from svcd.model.redaction import shown_url

        if 400 <= answer.status < 500:
            text = f"the login at {shown_url(url)} was refused with the status {answer.status}"
            raise CommandError(text, REFUSED)
        text = f"the identity service at {shown_url(url)} gave no token but the status"
        raise CommandError(f"{text} {answer.status}", UNREACHABLE)
    return token, _project(answer._replace(sent=(token, *_secrets(identity))).json)


def project_of(auth_url: str, token: str, send: Send) -> str:
    """The project of a token; "" when the service refuses it. Raises CommandError."""
    url = f"{auth_url}/auth/tokens?nocatalog"
    answer = send("GET", url, None, {"X-Auth-Token": token, "X-Subject-Token": token})
    return _project(answer._replace(sent=(token,)).json) if answer.status == 200 else ""


def _secrets(identity: Mapping[str, Any]) -> Sequence[str]:
    user = identity.get("password", {}).get("user", {})
    credential = identity.get("application_credential", {})
    found = (user.get("password"), credential.get("id"), credential.get("secret"))
    return [str(each) for each in found if each]


def _project(body: Any) -> str:
    try:
        return str(body["token"]["project"]["id"])
    except (KeyError, TypeError):
        return ""
