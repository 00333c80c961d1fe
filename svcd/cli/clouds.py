"""`clouds.yaml`: turns a named cloud of the `openstack` command into the `OS_*` variables.

File: `OS_CLIENT_CONFIG_FILE`, else the first `clouds.yaml` in the working folder,
`~/.config/openstack` and `/etc/openstack`; a `secure.yaml` lies over it. A named cloud replaces the
`OS_*` variables. Forms beyond plain keys are refused by name. No value is ever quoted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from svcd.cli.exits import CommandError
from svcd.cli.files import read

if TYPE_CHECKING:
    from svcd.settings import CloudSettings

_KINDS: Final[Mapping[str, Sequence[str]]] = {
    "password": ("password",),
    "token": ("token",),
    "applicationcredential": ("application_credential_id", "application_credential_secret"),
}
"""Kind of login, without its `v3` -> the keys that it alone has, and needs."""
_USER: Final = ("username", "user_id", "user_domain_id", "user_domain_name")
_PROJECT: Final = ("project_id", "project_name", "project_domain_id", "project_domain_name")
_BOTH: Final = ("domain_id", "domain_name")
_COMMON: Final = frozenset({"auth_url", *_USER, *_PROJECT})
_OTHER: Final = ("profile", "cloud", "cert", "key")
"""Keys beside `auth` that svcd does not read and that change a login."""


def chosen(name: str, environment: Mapping[str, str], here: Path, home: Path) -> Mapping[str, str]:
    """`environment` with the variables of the cloud `name`, else OS_CLOUD. Raises CommandError."""
    name = name or environment.get("OS_CLOUD") or ""
    if not name:
        return environment
    folders = (here, home / ".config" / "openstack", Path("/etc/openstack"))
    file = _file(environment.get("OS_CLIENT_CONFIG_FILE"), "clouds", folders)
    if file is None:
        text = f"cloud {name!r} is given, but there is no clouds.yaml in "
        places = ", ".join(map(str, folders))
        raise CommandError(f"{text}{places}; name the file with OS_CLIENT_CONFIG_FILE")
    secure = _file(environment.get("OS_CLIENT_SECURE_FILE"), "secure", folders)
    clouds, secrets = _clouds(file), {} if secure is None else _clouds(secure)
    if name not in {*clouds, *secrets}:
        there = ", ".join(sorted({*clouds, *secrets})) or "none"
        raise CommandError(f"{file} has no cloud {name!r}; it has {there}")
    where = f"cloud {name!r} in {file}"
    below, above = (_mapping(tree.get(name), where) for tree in (clouds, secrets))
    auth = {**_mapping(below.get("auth"), where), **_mapping(above.get("auth"), where)}
    kept = {key: value for key, value in environment.items() if not key.startswith("OS_")}
    return {**kept, **_variables({**below, **above}, auth, where)}


def _variables(cloud: Mapping[str, Any], auth: Mapping[str, Any], where: str) -> Mapping[str, str]:
    """The variables of one cloud. where: its name and file, for refusals."""
    given = {key.replace("tenant_", "project_"): value for key, value in auth.items() if value}
    kind = _kind(cloud, given)
    unread = [*_unread_keys(cloud, given), *([] if kind in _KINDS else [f"auth_type {kind}"])]
    if unread:
        text = f"{where}: svcd does not read {', '.join(unread)}: use the OS_ variables"
        raise CommandError(text)
    needed = ["auth_url", *_KINDS[kind]]
    if kind == "password" and "user_id" not in given:
        needed.append("username")
    missing = [f"auth.{key}" for key in needed if key not in given]
    if missing:
        raise CommandError(f"{where}: missing: {', '.join(missing)}")
    for key in set(given) & set(_BOTH):
        given = {f"user_{key}": given[key], f"project_{key}": given[key], **given}
    names = {key: value for key, value in given.items() if key in {*_COMMON, *_KINDS[kind]}}
    names |= {key: cloud[key] for key in ("region_name", "interface") if cloud.get(key)}
    if cloud.get("cacert"):
        names["cacert"] = Path(str(cloud["cacert"])).expanduser()
    return {f"OS_{key.upper()}": str(value) for key, value in names.items()}


def _kind(cloud: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """The kind of login that a cloud names, else the one whose keys it has."""
    named = str(cloud.get("auth_type") or "").removeprefix("v3")
    fits = (kind for kind, keys in _KINDS.items() if keys[-1] in given)
    return named or next(fits, "password")


def _unread_keys(cloud: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a cloud and of its `auth` that change a login in a way that svcd does not."""
    known = {*_COMMON, *_BOTH, *(key for keys in _KINDS.values() for key in keys)}
    for key, value in given.items():
        if key not in known or isinstance(value, (dict, list)):
            yield f"auth.{key}"
    yield from (key for key in _OTHER if cloud.get(key))
    if cloud.get("verify") is False:
        yield "verify"
    if cloud.get("insecure"):  # an older name of `verify: false`
        yield "insecure"


def trust(cacert: str) -> None:
    """Let the daemon's own clients in this process trust the authorities in a file, if any."""
    if cacert:
        os.environ["SSL_CERT_FILE"] = cacert


def settings_of(
    settings: CloudSettings, auth_url: str, environment: Mapping[str, str]
) -> CloudSettings:
    """`settings` of the cloud at `auth_url`, with region and interface of a login's variables."""
    from attrs import evolve

    given = environment.get("OS_INTERFACE") or environment.get("OS_ENDPOINT_TYPE") or ""
    return evolve(
        settings,
        kind="openstack",
        auth_url=auth_url,
        region=environment.get("OS_REGION_NAME") or settings.region,
        interface=given.removesuffix("URL") or settings.interface,  # the older form is publicURL
    )


def _file(named: str | None, stem: str, folders: Sequence[Path]) -> Path | None:
    if named and not Path(named).is_file():
        raise CommandError(f"there is no file {named}; a variable names it as {stem}.yaml")
    endings = (".yaml", ".yml", ".json")
    tried = (folder / f"{stem}{ending}" for folder in folders for ending in endings)
    return Path(named) if named else next((path for path in tried if path.is_file()), None)


def _clouds(file: Path) -> Mapping[str, Any]:
    return _mapping(_mapping(read(file), f"{file}: the file").get("clouds"), f"{file}: clouds")


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise CommandError(f"{what} is not a mapping")
    return {str(key): inner for key, inner in (value or {}).items()}
