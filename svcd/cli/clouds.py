"""`clouds.yaml`: turns a named cloud of the `openstack` command into the `OS_*` variables.

File: `OS_CLIENT_CONFIG_FILE`, else the first `clouds.yaml` in the working folder,
`~/.config/openstack` and `/etc/openstack`. `OS_CLIENT_SECURE_FILE` or a `secure.yaml` in the same
folders overrides its values. As with the `openstack` command, a named cloud replaces the `OS_*`
variables and is not mixed with them. This module never writes and never quotes a value.

Source: openstacksdk, "Configuring OpenStack SDK Applications".
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final

import yaml

from svcd.cli.exits import CommandError

_ENDINGS: Final = (".yaml", ".yml", ".json")
_MOST_BYTES: Final = 2**20
"""Largest file that is read."""
_PASSWORD: Final = frozenset({"", "password", "v3password"})
_CREDENTIAL: Final = frozenset({"v3applicationcredential"})
_TOKEN: Final = frozenset({"token", "v3token"})
_AUTH: Final[Mapping[str, str]] = {
    "auth_url": "OS_AUTH_URL",
    "username": "OS_USERNAME",
    "user_id": "OS_USER_ID",
    "password": "OS_PASSWORD",
    "token": "OS_TOKEN",
    "project_id": "OS_PROJECT_ID",
    "project_name": "OS_PROJECT_NAME",
    "tenant_id": "OS_PROJECT_ID",
    "tenant_name": "OS_PROJECT_NAME",
    "domain_id": "OS_DOMAIN_ID",
    "domain_name": "OS_DOMAIN_NAME",
    "user_domain_id": "OS_USER_DOMAIN_ID",
    "user_domain_name": "OS_USER_DOMAIN_NAME",
    "project_domain_id": "OS_PROJECT_DOMAIN_ID",
    "project_domain_name": "OS_PROJECT_DOMAIN_NAME",
    "application_credential_id": "OS_APPLICATION_CREDENTIAL_ID",
    "application_credential_secret": "OS_APPLICATION_CREDENTIAL_SECRET",
}
"""Key below `auth` -> variable."""
_AROUND: Final = {"region_name": "OS_REGION_NAME", "interface": "OS_INTERFACE"}
_AUTHORITIES: Final = "SSL_CERT_FILE"


def chosen(name: str, environment: Mapping[str, str], here: Path, home: Path) -> Mapping[str, str]:
    """`environment` with the variables of the cloud `name`. Raises CommandError.

    name: "" for OS_CLOUD; without it, `environment` is returned as it is.

    `cacert` of the cloud becomes SSL_CERT_FILE, see `trust`.
    """
    name = name or environment.get("OS_CLOUD") or ""
    if not name:
        return environment
    folders = (here, home / ".config" / "openstack", Path("/etc/openstack"))
    files = [_first(environment.get("OS_CLIENT_CONFIG_FILE"), "clouds", folders)]
    files.append(_first(environment.get("OS_CLIENT_SECURE_FILE"), "secure", folders))
    if files[0] is None:
        searched = ", ".join(str(folder) for folder in folders)
        raise CommandError(
            f"cloud {name!r} is given, but there is no clouds.yaml in {searched}; "
            "name the file with OS_CLIENT_CONFIG_FILE"
        )
    found: Mapping[str, Any] = {}
    known: set[str] = set()
    for file in files:
        if file is not None:
            clouds = _clouds(file)
            known |= set(clouds)
            found = _merged(found, _mapping(clouds.get(name, {}), f"clouds.{name}", file))
    if name not in known:
        there = ", ".join(sorted(known)) or "none"
        raise CommandError(f"{files[0]} has no cloud {name!r}; it has {there}")
    where = f"cloud {name!r} in {files[0]}"
    kept = {k: v for k, v in environment.items() if not k.startswith("OS_")}
    return {**kept, **_variables(found, where, kept, home)}


def trust(environment: Mapping[str, str], process: MutableMapping[str, str] = os.environ) -> None:
    """Let this process trust the certificate authorities that `chosen` found in a cloud."""
    given = environment.get(_AUTHORITIES)
    if given:
        process[_AUTHORITIES] = given


def interface(environment: Mapping[str, str]) -> str:
    """The interface as the catalog names it; the variable may hold the older `publicURL`."""
    given = environment.get("OS_INTERFACE") or environment.get("OS_ENDPOINT_TYPE") or ""
    return given.removesuffix("URL")


def _first(named: str | None, stem: str, folders: tuple[Path, ...]) -> Path | None:
    if named:
        if not Path(named).is_file():
            raise CommandError(f"there is no file {named}; a variable names it as {stem}.yaml")
        return Path(named)
    tried = (folder / f"{stem}{ending}" for folder in folders for ending in _ENDINGS)
    return next((path for path in tried if path.is_file()), None)


def _clouds(file: Path) -> Mapping[str, Any]:
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise CommandError(f"{file} is larger than {_MOST_BYTES} bytes")
        tree = yaml.safe_load(content)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f" in line {mark.line + 1}"
        raise CommandError(
            f"{file} is not valid YAML{line}"
        ) from None  # the error would quote the line
    return _mapping(_mapping(tree, "the file", file).get("clouds"), "clouds", file)


def _mapping(value: Any, what: str, file: Path) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CommandError(f"{file}: {what} is not a mapping")
    return {str(key): each for key, each in value.items()}


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    made = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(made.get(key), dict)
        made[key] = _merged(made[key], value) if both else value
    return made


def _variables(
    cloud: Mapping[str, Any], where: str, environment: Mapping[str, str], home: Path
) -> Mapping[str, str]:
    auth = cloud.get("auth") or {}
    if not isinstance(auth, dict):
        raise CommandError(f"{where}: auth is not a mapping")
    made: dict[str, str] = {}
    for keys, values in ((_AUTH, auth), (_AROUND, cloud)):
        for key, variable in keys.items():
            value = values.get(key)
            if isinstance(value, (dict, list)):
                raise CommandError(f"{where}: {key} is not text")
            if value is not None and value != "":
                made.setdefault(variable, str(value))
    if "OS_AUTH_URL" not in made:
        aside = "; svcd does not read vendor profiles" if cloud.get("profile") else ""
        raise CommandError(f"{where}: auth.auth_url is missing{aside}")
    _complete(made, str(cloud.get("auth_type") or ""), where)
    for of in ("USER", "PROJECT"):
        for kind in ("ID", "NAME"):
            if f"OS_{of}_DOMAIN_NAME" not in made and f"OS_DOMAIN_{kind}" in made:
                made.setdefault(f"OS_{of}_DOMAIN_{kind}", made[f"OS_DOMAIN_{kind}"])
    if cloud.get("verify") is False:
        raise CommandError(
            f"{where}: verify is false, but svcd always verifies certificates; set cacert instead"
        )
    authorities = cloud.get("cacert")
    if authorities and _AUTHORITIES not in environment:
        file = str(authorities)
        path = home / file[2:] if file.startswith("~/") else Path(file)
        if not path.is_file():
            raise CommandError(f"{where}: cacert names {path}, which does not exist")
        made[_AUTHORITIES] = str(path)
    return made


def _complete(made: dict[str, str], kind: str, where: str) -> None:
    """Remove variables that this kind of login does not use. Raises CommandError if one lacks."""
    secret = "OS_APPLICATION_CREDENTIAL_SECRET"
    if kind in _CREDENTIAL or (not kind and secret in made):
        wanted = {"OS_APPLICATION_CREDENTIAL_ID": "application_credential_id"}
        wanted[secret] = "application_credential_secret"
    elif kind in _TOKEN or (not kind and "OS_TOKEN" in made and "OS_PASSWORD" not in made):
        wanted = {"OS_TOKEN": "token"}
    elif kind in _PASSWORD:
        made.pop(secret, None)
        made.pop("OS_TOKEN", None)
        name = "OS_USER_ID" if "OS_USER_ID" in made else "OS_USERNAME"
        wanted = {name: "username", "OS_PASSWORD": "password"}
        if "OS_PROJECT_ID" not in made:
            wanted["OS_PROJECT_NAME"] = "project_name"
    else:
        raise CommandError(
            f"{where}: svcd does not know auth_type {kind!r}; use password, "
            "v3applicationcredential or token"
        )
    missing = [key for variable, key in wanted.items() if not made.get(variable)]
    if missing:
        raise CommandError(
            f"{where}: missing: auth.{', auth.'.join(missing)} (svcd read secure.yaml too)"
        )
