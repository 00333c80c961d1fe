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
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from svcd.cli.exits import UNREACHABLE, USAGE, CommandError, OutOfTime

if TYPE_CHECKING:
    from svcd.cli.http import Http
    from svcd.cli.login import Login


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


class Given(NamedTuple):
    """The values that the options of a command and the settings name; "" for none."""

    state_dir: Path
    api: str = ""
    tenant: str = ""
    token: str = ""
    auth_url: str = ""

    def __repr__(self) -> str:
        return f"Given(tenant={self.tenant!r})"


class Found(NamedTuple):
    """A daemon, and the login at its cloud: None when the command has only a token, or nothing."""

    door: Door
    login: Login | None = None

    def __repr__(self) -> str:
        return f"Found({self.door!r})"

    def renewed(self) -> str:
        """A new token; "" when there is no login to repeat. Raises CommandError."""
        return "" if self.login is None else self.login.renewed()


def find(
    given: Given, environment: Mapping[str, str], http: Http, *, cloud_only: bool = False
) -> Found:
    """The daemon that options, settings and environment name, with the login.

    Raises CommandError. cloud_only: for a command that needs no daemon: the door then may have no
    `api`.
    """
    known = endpoints(given.state_dir)
    api = str(given.api or known.get("api") or "")
    if not api and not cloud_only:
        raise _no_daemon(given.state_dir.absolute(), bool(known))
    auth_url = environment.get("OS_AUTH_URL") or given.auth_url or str(known.get("identity", ""))
    auth_url = v3(auth_url)
    tenant = given.tenant or environment.get("OS_PROJECT_ID") or ""
    token = given.token or environment.get("OS_TOKEN") or ""
    login: Login | None = None
    if token and not tenant and auth_url:
        from svcd.cli.login import project_of

        tenant = project_of(auth_url, token, http)
    if not token and environment.get("OS_AUTH_URL") and has_login(environment):
        from svcd.cli.login import Login

        login = Login(auth_url, environment, http)
        token, tenant = login.token, tenant or login.project
    if not token and not given.api and known.get("username"):
        tenant = tenant or str(known["tenant"])
        login = _embedded_login(known, tenant, http)
        token = "" if login is None else login.token
    tenant = tenant or ("" if given.api else str(known.get("tenant", "")))
    if not tenant and (token or not cloud_only):
        if not cloud_only:  # the refusal for an absent daemon comes first
            http.send("GET", f"{api.rstrip('/')}/")
        raise CommandError(_what_is_missing(environment, bool(token)), USAGE)
    return Found(Door(api=api, tenant=tenant, token=token, auth_url=auth_url), login)


def _no_daemon(folder: Path, has_cloud: bool) -> CommandError:
    text = (
        f"no daemon found: there is no endpoints.json in {folder}; start the daemon (make run, or"
        " twistd -n svcd), name its state folder with --state-dir PATH, or its URL with --api URL"
    )
    if has_cloud:
        text = (
            f"no daemon found: endpoints.json in {folder} names only the embedded cloud; start the"
            " daemon, or name its URL with --api URL"
        )
    return CommandError(text, UNREACHABLE)


def has_login(environment: Mapping[str, str]) -> bool:
    """Whether the variables of the `openstack` command are enough for a login."""
    user = environment.get("OS_USERNAME") or environment.get("OS_USER_ID")
    secret = environment.get("OS_APPLICATION_CREDENTIAL_SECRET")
    return bool(secret or (user and environment.get("OS_PASSWORD")))


def _what_is_missing(environment: Mapping[str, str], has_token: bool) -> str:
    """The reason why no project is known, with the remedy."""
    if environment.get("OS_AUTH_URL") and environment.get("OS_PASSWORD") and not has_token:
        return "no user is given for the login at OS_AUTH_URL: set OS_USERNAME or OS_USER_ID"
    return "no project is given: use --project ID, or set OS_PROJECT_ID"


def _embedded_login(known: Mapping[str, Any], tenant: str, http: Http) -> Login | None:
    """The login of the embedded cloud's user; None when it is refused.

    The daemon may accept requests without a token. Raises CommandError for a damaged file.
    """
    from svcd.cli.login import Login

    names = {"OS_USERNAME": "username", "OS_PASSWORD": "password"}
    try:
        environment = {name: str(known[key]) for name, key in names.items()}
        identity = str(known["identity"])
    except KeyError as missing:
        text = f"endpoints.json has no {missing}: start the daemon again, or use --api URL"
        raise CommandError(text, UNREACHABLE) from None
    try:
        return Login(identity, {**environment, "OS_PROJECT_ID": tenant}, http)
    except OutOfTime:
        raise
    except CommandError:
        return None


def endpoints(state_dir: Path) -> Mapping[str, Any]:
    """The content of a running daemon's `endpoints.json`; {} when it cannot be read."""
    try:
        content = json.loads((state_dir / "endpoints.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def running(state_dir: Path) -> Mapping[str, Any]:
    """The content of `endpoints.json` when the process that wrote it runs, else {}."""
    content = endpoints(state_dir)
    pid = content.get("pid")
    return content if isinstance(pid, int) and Path("/proc", str(pid)).exists() else {}


def v3(url: str) -> str:
    """The URL of version 3 of an identity service, however a user writes it."""
    url = url.rstrip("/")
    return url if not url or url.endswith("/v3") else url + "/v3"
