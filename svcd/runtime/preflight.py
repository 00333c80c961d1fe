"""Settings that are well-formed one by one and cannot work together: found before anything starts.

It looks at values only, never at the machine (`svcd doctor` does that).
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from ipaddress import IPv4Network, ip_network
from pathlib import Path

from svcd.model.redaction import shown_url
from svcd.settings import (
    CloudSettings,
    Database,
    Embedded,
    Settings,
    SettingsError,
    without_passwords,
)

_LEAST_ADDRESSES = 32
_MOST_CONNECTIONS = 500
_RENEWALS = 3
_PORTS = range(1, 65_536)
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")


class StartError(Exception):
    """A daemon cannot start: one line that says why and what to do."""


class SettingsRefused(StartError):
    """It cannot start because of a setting's value."""


def check(settings: Settings) -> None:
    """Raises SettingsError."""
    if not settings.plugins.enabled:
        raise SettingsError("plugins.enabled is empty: name a distribution, for example vanilla")
    check_database(settings.database)
    if settings.cloud.kind == "embedded":
        _check_embedded(settings.embedded)
        if "vanilla" in settings.plugins.enabled:
            _check_blanks(settings)
    else:
        _check_cloud(settings.cloud)


def _check_blanks(settings: Settings) -> None:
    """Hadoop's scripts and lists of folders split at blanks, and machines live in the state folder.

    Only what is written in the settings counts, and where the daemon was started.
    """
    for name, path in (
        ("server.state_dir", settings.server.state_dir.absolute()),
        ("embedded.image_prefix", Path(settings.embedded.image_prefix)),
    ):
        if any(c.isspace() for c in str(path)):
            raise SettingsError(
                f"{name}: {str(path)!r} has a blank in it, which Hadoop's start scripts cannot bear"
                " on loopback machines; name a folder without one"
            )


def check_database(database: Database) -> None:
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
    if not 1 <= database.connections <= _MOST_CONNECTIONS:
        raise SettingsError(
            f"database.connections: expected 1 to {_MOST_CONNECTIONS}, got {database.connections}"
        )
    for name in ("connect_timeout_s", "statement_timeout_s", "wait_s"):
        if getattr(database, name) <= 0:
            raise SettingsError(f"database.{name}: expected more than 0")
    for name in ("lease_s", "renew_s", "rescan_s"):
        if getattr(database, name) <= 0:
            raise SettingsError(f"database.{name}: expected more than 0")
    if database.lease_s < _RENEWALS * database.renew_s:
        raise SettingsError(
            f"database.lease_s: expected at least {_RENEWALS} times database.renew_s"
            f" ({_RENEWALS * database.renew_s:g}), got {database.lease_s:g}: one late renewal must"
            " not cost a daemon its work"
        )
    if find_spec("txpostgres") is None or find_spec("psycopg2") is None:
        raise SettingsError("database.url: PostgreSQL needs: pip install 'svcd[postgresql]'")


def _check_userinfo(url: str) -> None:
    """libpq would take a part of such a password for host or port, and name it in its errors."""
    userinfo = url.partition("//")[2].partition("?")[0].rpartition("@")[0]
    if "@" in userinfo or "/" in userinfo or _BAD_PERCENT.search(url):
        raise SettingsError(
            "database.url: user and password hold a character that must be written as %XX there"
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
    if embedded.ssh_port not in _PORTS:
        raise SettingsError(
            f"embedded.ssh_port: expected a port from 1 to 65535, got {embedded.ssh_port}"
        )
    for name in ("username", "tenant"):
        if not getattr(embedded, name):
            raise SettingsError(f"embedded.{name} is empty")


def _check_cloud(cloud: CloudSettings) -> None:
    if cloud.application_credential_id:
        raise SettingsError(
            "cloud.application_credential_id: the identity service lets an application credential"
            " neither use a trust nor choose a project, and svcd has to: give cloud.username,"
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
