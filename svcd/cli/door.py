"""Finds the daemon for a command, and logs in: URL, tenant, token.

URL: `--api`, else `endpoints.json` of the state folder. Token: `--token` or `OS_TOKEN`, else a
login with the variables of the `openstack` command (`OS_AUTH_URL`, `OS_USERNAME`, `OS_PASSWORD`,
`OS_PROJECT_ID` or `OS_PROJECT_NAME`, domains; or an application credential), else a login of the
user that `endpoints.json` names (embedded cloud). Tenant: `--tenant`, `OS_PROJECT_ID`, the project
of the token, the tenant of `endpoints.json`. It never writes, and never prints a token or password.
"""

from __future__ import annotations

import argparse
import email.utils
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attrs import evolve, field, frozen

from svcd.model.loopback import is_loopback_url
from svcd.model.redaction import hidden, of_url, shown_url, url_repr
from svcd.settings import Settings

_TIMEOUT_S = 30.0
"""Time for connecting, and for each read of an answer."""
_MOST_BYTES = 64 * 2**20
"""Bytes of an answer that are read."""
_MOST_QUOTED = 4096
"""Bytes or characters of an answer that a message may quote."""
_PROXIED = urllib.request.build_opener()
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class DoorError(Exception):
    """A request to the daemon or the cloud failed: one line with the reason and the remedy."""


@frozen(kw_only=True)
class Answer:
    """An HTTP answer. headers: names in lower case. sent: secrets that must not be printed."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    sent: Sequence[str] = field(default=(), repr=False)

    @property
    def json(self) -> Any:
        """The body as JSON. Raises DoorError when it is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise DoorError(f"the answer is not JSON but {self.excerpt(80)!r}") from None

    def excerpt(self, most: int) -> str:
        """The first characters of the body, without secrets."""
        text = self.body[:_MOST_QUOTED].decode("utf-8", "replace")
        return hidden(text, self.sent)[:most]


Send = Callable[[str, str, bytes | None, Mapping[str, str]], Answer]
"""Sends method, URL, body, headers; returns an answer of any status. Raises DoorError."""


def send(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
    """Send a request over a socket; requests to this machine bypass the proxy."""
    request = urllib.request.Request(url, data=body, method=method, headers=dict(headers))
    opener = _DIRECT if is_loopback_url(url) else _PROXIED
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as got:
            return _answer(got.status, got.headers, got.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error.headers, error.read(_MOST_BYTES))
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        where = shown_url(url.partition("?")[0])
        raise DoorError(f"{where} cannot be reached: {hidden(str(reason), of_url(url))}") from None


def _answer(status: int, headers: Any, body: bytes) -> Answer:
    named = {name.lower(): value for name, value in headers.items()}
    return Answer(status=status, headers=named, body=body)


@frozen(kw_only=True)
class Door:
    """A daemon and its login. token: "" without one. auth_url: of the cloud, "" when unknown."""

    api: str
    tenant: str
    token: str = field(default="", repr=False)
    auth_url: str = field(default="", repr=url_repr)

    @property
    def base(self) -> str:
        """The URL of the tenant's resources."""
        return f"{self.api.rstrip('/')}/v1.1/{quote(self.tenant, safe='')}"


class Api:
    """Reads the v1.1 interface of one tenant."""

    def __init__(self, door: Door, send: Send = send) -> None:
        self.door = door
        self._send = send
        self.seconds: float | None = None
        """The daemon's time in its last answer, epoch seconds; None without a Date header."""

    def get(self, path: str) -> Any:
        """The JSON of a success; None for status 404. Raises DoorError."""
        headers = {"Accept": "application/json"}
        if self.door.token:
            headers["X-Auth-Token"] = self.door.token
        url = self.door.base + path
        answer = evolve(self._send("GET", url, None, headers), sent=(self.door.token,))
        self._note(answer)
        if answer.status == 404:
            return None
        if answer.status == 200:
            return answer.json
        raise DoorError(_refusal(url, answer))

    def _note(self, answer: Answer) -> None:
        date = email.utils.parsedate_tz(answer.headers.get("date", ""))
        if date is not None:
            self.seconds = float(email.utils.mktime_tz(date))


def _refusal(url: str, answer: Answer) -> str:
    try:
        said = hidden(str(json.loads(answer.body)["error_message"])[:_MOST_QUOTED], answer.sent)
    except (ValueError, KeyError, TypeError):
        said = answer.excerpt(200)
    text = f"{shown_url(url)} was answered {answer.status}: {said}"
    if answer.status == 401:
        text += "; set OS_TOKEN, or OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME"
    return text


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `find` reads, beside the settings."""
    parser.add_argument(
        "--api", metavar="URL", help="URL of the daemon (default: from endpoints.json)"
    )
    parser.add_argument(
        "--tenant", metavar="ID", help="project id (default: OS_PROJECT_ID, or the token's)"
    )
    parser.add_argument(
        "--token", metavar="TOKEN", help="use this token (default: OS_TOKEN, or a login)"
    )


def find(
    options: argparse.Namespace,
    settings: Settings,
    environment: Mapping[str, str],
    send: Send = send,
) -> Door:
    """The daemon that options, settings and environment name. Raises DoorError."""
    known = endpoints(settings.server.state_dir)
    api = options.api or known.get("api")
    if not api:
        folder = settings.server.state_dir.absolute()
        if known:
            raise DoorError(
                f"no daemon found: endpoints.json in {folder} names only the embedded cloud; start"
                " the daemon, or name its URL with --api URL"
            )
        raise DoorError(
            f"no daemon found: there is no endpoints.json in {folder}; start the daemon, name its "
            "state folder with --set server.state_dir=PATH, or its URL with --api URL"
        )
    auth_url = environment.get("OS_AUTH_URL") or settings.cloud.auth_url
    auth_url = v3(auth_url or str(known.get("identity", "")))
    tenant = options.tenant or environment.get("OS_PROJECT_ID") or ""
    token = options.token or environment.get("OS_TOKEN") or ""
    if token and not tenant and auth_url:
        tenant = project_of(auth_url, token, send)
    if not token and _has_login(environment) and environment.get("OS_AUTH_URL"):
        token, project = log_in(auth_url, _identity(environment), _scope(environment), send)
        tenant = tenant or project
    if not token and not options.api and known.get("username"):
        tenant = tenant or str(known["tenant"])
        token = _embedded_login(known, tenant, send)
    tenant = tenant or ("" if options.api else str(known.get("tenant", "")))
    if not tenant:
        raise DoorError("no tenant is given: use --tenant ID, or set OS_PROJECT_ID")
    return Door(api=str(api), tenant=tenant, token=token, auth_url=auth_url)


def endpoints(state_dir: Path) -> Mapping[str, Any]:
    """The content of a running daemon's `endpoints.json`; {} when it cannot be read."""
    try:
        found = json.loads((state_dir / "endpoints.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


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
        raise DoorError("no project is given: set OS_PROJECT_ID or OS_PROJECT_NAME")
    return {"project": {"name": name, "domain": _domain(environment, "PROJECT")}}


def _embedded_login(known: Mapping[str, Any], tenant: str, send: Send) -> str:
    """A token of the embedded cloud's user; "" when the user has no role in the tenant."""
    user = {"name": known["username"], "domain": {"id": "default"}, "password": known["password"]}
    identity = {"methods": ["password"], "password": {"user": user}}
    try:
        return log_in(str(known["identity"]), identity, {"project": {"id": tenant}}, send)[0]
    except DoorError:
        return ""  # the daemon may accept requests without a token


def log_in(
    auth_url: str, identity: Mapping[str, Any], scope: Mapping[str, Any] | None, send: Send
) -> tuple[str, str]:
    """Log in at Keystone; return token and project id. Raises DoorError."""
    auth = {"identity": identity, **({} if scope is None else {"scope": scope})}
    url = f"{auth_url}/auth/tokens"
    headers = {"Content-Type": "application/json"}
    answer = send("POST", url, json.dumps({"auth": auth}).encode(), headers)
    token = answer.headers.get("x-subject-token", "")
    if answer.status != 201 or not token:
        raise DoorError(
            f"login failed at {shown_url(url)}: answered {answer.status}; check OS_USERNAME,"
            " OS_PASSWORD and OS_PROJECT_NAME"
        )
    return token, _project(evolve(answer, sent=(token, *_secrets(identity))).json)


def project_of(auth_url: str, token: str, send: Send) -> str:
    """The project of a token; "" when the service refuses it. Raises DoorError."""
    url = f"{auth_url}/auth/tokens?nocatalog"
    answer = send("GET", url, None, {"X-Auth-Token": token, "X-Subject-Token": token})
    return _project(evolve(answer, sent=(token,)).json) if answer.status == 200 else ""


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
