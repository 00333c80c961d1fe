"""The checks of `svcd doctor` for settings that open svcd wider than the defaults."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from svcd.cli.finding import Finding, Scene, ok, warn
from svcd.model.loopback import is_loopback_url
from svcd.runtime.audit import OFF
from svcd.runtime.listening import beyond_loopback, encrypted
from svcd.runtime.preflight import listeners, open_without_login
from svcd.settings import ANY_HOST, UNIX, Settings

LEAST_PREFIX = 8
"""A network with a shorter prefix has more than one operator's addresses."""


def examine_openings(scene: Scene) -> Iterator[Finding]:
    """One finding for each subject, with the setting that opens it. It reads settings only."""
    settings = scene.settings
    yield _login(settings)
    yield _clear_text(settings)
    yield _roles(settings)
    yield _hosts(settings)
    yield _proxies(settings)
    yield _audit(settings)


def _login(settings: Settings) -> Finding:
    what = "auth.mode"
    if settings.auth.mode != "none":
        return ok(what, f"{settings.auth.mode}: each request needs a token and a role")
    reason = open_without_login(settings)
    if reason:
        return warn(
            what, f"none, and auth.allow_none lets it pass: {reason}", "--set auth.mode=keystone"
        )
    return ok(what, "none: only users of this machine reach svcd, and may do everything")


def _clear_text(settings: Settings) -> Finding:
    what = "encryption"
    clear = [
        name
        for name, endpoint in listeners(settings).items()
        if beyond_loopback(endpoint) and not encrypted(endpoint)
    ]
    if clear:
        return warn(
            what,
            f"tokens and passwords reach {' and '.join(clear)} in clear text",
            "use an ssl: endpoint, or listen on loopback behind a reverse proxy (docs/tls.md)",
        )
    url = settings.cloud.auth_url
    if settings.cloud.kind == "openstack" and url.startswith("http:") and not is_loopback_url(url):
        return warn(
            what,
            "svcd's password and all tokens reach the identity service in clear text",
            "use the https:// URL of the identity service as cloud.auth_url",
        )
    return ok(what, "no secret leaves this machine in clear text on svcd's own ports")


def _roles(settings: Settings) -> Finding:
    what, auth = "roles", settings.auth
    deaf = [role for role in auth.write_roles if role not in auth.read_roles]
    if deaf:
        return warn(
            what,
            f"auth.write_roles has {', '.join(deaf)}, which may change but not read",
            "add them to auth.read_roles",
        )
    return ok(
        what, f"{', '.join(auth.read_roles)} may read; {', '.join(auth.write_roles)} may change"
    )


def _hosts(settings: Settings) -> Finding:
    what, hosts = "server.hosts", settings.server.hosts
    if ANY_HOST in hosts:
        return warn(
            what,
            "web pages can reach svcd through the browsers of its users (DNS rebinding)",
            f"name the hosts of svcd instead of {ANY_HOST}",
        )
    return ok(what, ", ".join(hosts) or "none but those of the listener")


def _proxies(settings: Settings) -> Finding:
    what, proxies = "server.trusted_proxies", settings.server.trusted_proxies
    wide = [x for x in proxies if x != UNIX and ip_network(x).prefixlen < LEAST_PREFIX]
    if wide:
        return warn(
            what,
            f"{', '.join(wide)}: nearly every address is a trusted proxy, so callers may invent"
            " their address",
            "name the addresses of your proxies",
        )
    by_token = settings.auth.mode == "keystone"
    if by_token and not proxies and not beyond_loopback(settings.server.listen):
        return warn(
            what,
            "none, and only this machine reaches server.listen: the callers of a reverse proxy here"
            " have one address in the audit log, and the limits of one address do not hold",
            f"name the proxy: its address on this machine, or {UNIX} for a socket file; without a"
            " proxy ignore this",
        )
    return ok(what, ", ".join(proxies) or "none")


def _audit(settings: Settings) -> Finding:
    what = "log.audit"
    if settings.log.audit == OFF:
        return warn(what, "off: changes and refusals leave no record", "--set log.audit=FILE")
    return ok(what, settings.log.audit)
