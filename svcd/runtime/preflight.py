"""Finds settings that cannot work, alone or together, before anything starts.

It checks values only, never the machine (`svcd doctor` does that).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from ipaddress import IPv4Network, ip_network
from pathlib import Path

from svcd.declaration import SettingsError
from svcd.model.loopback import is_loopback_url
from svcd.model.redaction import shown_url, without_passwords
from svcd.model.trust import ADMIN
from svcd.runtime.listening import beyond_loopback, malformed, socket_of_all
from svcd.settings import ANY_HOST, UNIX, CloudSettings, Database, Embedded, Settings

_LEAST_ADDRESSES = 32
"""Fewest addresses of `embedded.network`."""
_PORTS = range(1, 65_536)
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*")
"""A name or an address of a host; an address of IPv6 has two colons at least."""
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")


class StartError(Exception):
    """A daemon cannot start: one line that says why and what to do."""


class SettingsRefused(StartError):
    """A daemon cannot start because of a setting's value."""


def check(settings: Settings) -> None:
    """Check all settings. Raises SettingsError."""
    check_database(settings.database)
    _check_roles(settings.cloud)
    _check_hosts(settings.server.hosts)
    _check_proxies(settings.server.trusted_proxies)
    _check_cidrs(settings.cloud)
    _check_ssh_ports(settings.cloud.ssh_ports)
    if settings.cloud.kind == "embedded":
        _check_embedded(settings.embedded)
        if "vanilla" in settings.plugins.enabled:
            _check_blanks(settings)
    else:
        _check_cloud(settings.cloud)
    admin = {"server.admin_listen": settings.server.admin_listen}
    for name, endpoint in (listeners(settings) | admin).items():
        if reason := malformed(endpoint):
            raise SettingsError(f"{name}: {reason}")
    if settings.auth.mode == "none" and socket_of_all(settings.server.listen):
        raise SettingsError(
            "server.listen: every user of this machine may use a socket file without a mode, and"
            " auth.mode=none asks for no token: add a mode, for example"
            f" {settings.server.listen}:mode=600"
        )
    reason = open_without_login(settings)
    if reason and not settings.auth.allow_none:
        raise SettingsError(
            f"auth.mode=none: {reason}; set auth.mode=keystone, or auth.allow_none=true if that"
            " is your intention"
        )


def open_without_login(settings: Settings) -> str:
    """The callers that `auth.mode=none` admits besides the users of this machine, or "".

    An identity service on a loopback address counts as a development cloud.
    """
    auth, cloud = settings.auth, settings.cloud
    if auth.mode != "none":
        return ""
    if cloud.kind == "openstack" and not is_loopback_url(cloud.auth_url):
        return "everybody who reaches server.listen may do everything in every project of the cloud"
    for name, endpoint in listeners(settings).items():
        if beyond_loopback(endpoint):
            return f"other machines can reach {name} ({endpoint}), and run programs on this machine"
    if cloud.kind == "embedded" and not _is_loopback_network(settings.embedded.network):
        return (
            f"embedded.network ({settings.embedded.network}) is not within 127.0.0.0/8, so other"
            " machines can reach the daemons of the embedded cloud's machines"
        )
    return ""


def listeners(settings: Settings) -> dict[str, str]:
    """The endpoints that serve clouds and clusters, by their settings."""
    listeners = {"server.listen": settings.server.listen}
    if settings.cloud.kind == "embedded":
        listeners["cloud.listen"] = settings.cloud.listen
    return listeners


def _is_loopback_network(network: str) -> bool:
    return ip_network(network).is_loopback


def _check_roles(cloud: CloudSettings) -> None:
    for name, roles, needed in (
        ("cloud.trust_roles", cloud.trust_roles, "a cluster's trust"),
        ("cloud.job_roles", cloud.job_roles, "a job's login"),
    ):
        if ADMIN in {role.lower() for role in roles}:
            raise SettingsError(
                f"{name}: admin must not be in the list, because {needed} would rule the whole"
                " cloud: name the roles that are enough, usually member"
            )


def _check_hosts(hosts: Sequence[str]) -> None:
    for host in hosts:
        if host != ANY_HOST and not _HOST.fullmatch(host):
            raise SettingsError(
                f"server.hosts: {host!r} is no name or address of a host; write it like"
                " svcd.example.org, without a scheme or a port"
            )


def _check_cidrs(cloud: CloudSettings) -> None:
    for name, cidrs in (
        ("ssh", cloud.ssh_cidrs),
        ("web", cloud.web_cidrs),
        ("machine", cloud.machine_cidrs),
    ):
        for cidr in cidrs:
            try:
                good = str(ip_network(cidr)) == cidr
            except ValueError:
                good = False
            if not good:
                raise SettingsError(
                    f"cloud.{name}_cidrs: {cidr!r} is no network; write it like 10.0.0.0/24"
                )


def _check_ssh_ports(ports: Sequence[str]) -> None:
    for port in ports:
        if not port.isdecimal() or int(port) not in _PORTS:
            raise SettingsError(f"cloud.ssh_ports: {port!r} is no port; write a number like 22")


def _check_proxies(proxies: Sequence[str]) -> None:
    for proxy in proxies:
        try:
            if proxy != UNIX:
                ip_network(proxy)
        except ValueError:
            raise SettingsError(
                f"server.trusted_proxies: {proxy!r} is no address or network; write it like"
                f" 10.0.0.5, 10.0.0.0/24 or {UNIX}"
            ) from None


def _check_blanks(settings: Settings) -> None:
    """Refuse blanks in the paths of machines: Hadoop's scripts split paths and lists at blanks.

    The check uses the settings and the working folder of the daemon, and reads no file.
    """
    for name, path in (
        ("server.state_dir", settings.server.state_dir.absolute()),
        ("embedded.image_prefix", Path(settings.embedded.image_prefix)),
    ):
        if any(c.isspace() for c in str(path)):
            raise SettingsError(
                f"{name}: {str(path)!r} has a blank in it; Hadoop's start scripts on loopback"
                " machines do not work with blanks: name a folder without one"
            )


def check_database(database: Database) -> None:
    """Check `database.*` alone. Raises SettingsError."""
    url = database.url
    scheme, _, rest = url.partition(":")
    if not url or (scheme == "sqlite" and len(rest) > len("///") and rest.startswith("///")):
        return
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        _check_postgres(database)
        return
    raise SettingsError(
        "database.url: expected sqlite:///PATH or postgresql://USER@HOST/NAME,"
        f" got {without_passwords(url)!r}"
    )


def _check_postgres(database: Database) -> None:
    _check_userinfo(database.url)
    if find_spec("txpostgres") is None or find_spec("psycopg2") is None:
        raise SettingsError("database.url: PostgreSQL needs: pip install 'svcd[postgresql]'")


def _check_userinfo(url: str) -> None:
    """Refuse unescaped characters in user and password.

    libpq would read a part of such a password as host or port, and show it in its errors.
    """
    userinfo = url.partition("//")[2].partition("?")[0].rpartition("@")[0]
    if "@" in userinfo or "/" in userinfo or _BAD_PERCENT.search(url):
        raise SettingsError(
            "database.url: user or password contains a character that must be written as %XX"
            " (% as %25, @ as %40, / as %2F)"
        )


def _check_embedded(embedded: Embedded) -> None:
    try:
        network = ip_network(embedded.network)
    except ValueError as error:
        raise SettingsError(f"embedded.network: {error}; write it like 127.1.0.0/16") from None
    if not isinstance(network, IPv4Network) or network.num_addresses < _LEAST_ADDRESSES:
        raise SettingsError(
            f"embedded.network: {network} cannot be used; give an IPv4 network of at least"
            f" {_LEAST_ADDRESSES} addresses, like 127.1.0.0/16"
        )


def _check_cloud(cloud: CloudSettings) -> None:
    if cloud.application_credential_id:
        raise SettingsError(
            "cloud.application_credential_id: svcd must use trusts and choose projects, and the"
            " identity service forbids both to an application credential: set cloud.username,"
            " cloud.password and cloud.project"
        )
    missing = [n for n in ("auth_url", "username", "password", "project") if not getattr(cloud, n)]
    if missing:
        raise SettingsError(
            "cloud.kind=openstack needs "
            + ", ".join(f"cloud.{name}" for name in missing)
            + " (a user with password and project)"
        )
    if not cloud.auth_url.startswith(("http://", "https://")):
        raise SettingsError(
            f"cloud.auth_url: expected a URL that begins with http:// or https://,"
            f" got {shown_url(cloud.auth_url)!r}"
        )
