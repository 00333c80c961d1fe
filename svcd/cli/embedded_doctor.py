"""`svcd doctor` for the embedded cloud: logins that svcd does not use, and a user's login.

It asks only the running embedded cloud of the state folder, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from svcd.cli.cloud_doctor import CloudUser
from svcd.cli.door import v3
from svcd.cli.exits import CommandError
from svcd.cli.finding import Finding, fail, ok, warn
from svcd.cli.http import Http
from svcd.embedded.installations import Installation, leftovers
from svcd.model.redaction import shown_url
from svcd.settings import Settings

_UNUSED: Final = (
    "auth_url",
    "username",
    "password",
    "application_credential_id",
    "application_credential_secret",
    "project",
)
"""Settings of the cloud that only `cloud.kind=openstack` uses."""
_REMEDY: Final = (
    "take username, password and tenant from endpoints.json in the state folder, or unset the"
    " OS_… variables"
)


def examine_embedded(
    settings: Settings, user: CloudUser | None, known: Mapping[str, Any], http: Http | None = None
) -> list[Finding]:
    """The findings about svcd's own login, and about `user`.

    known: the content of `endpoints.json`; {} when the embedded cloud does not run.
    """
    found = [_own(settings, known)]
    if user is not None:
        found.append(_user(user, str(known.get("identity", "")), http or Http()))
    return found


def examine_machines(running: Sequence[Installation]) -> Iterator[Finding]:
    """The findings about machines on this system whose daemon or folder is gone. Pure."""
    what = "machines"
    left = leftovers(running)
    for owner in left:
        remedy = f"start its daemon, or: {owner.remedy}" if owner.exists else owner.remedy
        yield warn(what, f"{owner.state_dir}: {owner.told}", remedy)
    if not left:
        yield ok(what, "none of this user runs without its daemon")


def _own(settings: Settings, known: Mapping[str, Any]) -> Finding:
    what = "svcd's user"
    given = [f"cloud.{name}" for name in _UNUSED if getattr(settings.cloud, name)]
    if given:
        return warn(
            what,
            f"{', '.join(given)}: without effect, because cloud.kind is embedded",
            "remove them, or set cloud.kind=openstack; the login of the embedded cloud is"
            " embedded.username and embedded.password",
        )
    ours = settings.embedded
    wrong = [
        f"embedded.{name}"
        for name, value in (("username", ours.username), ("password", ours.password))
        if value and known.get(name, value) != value
    ]
    if wrong:
        return warn(
            what,
            f"{' and '.join(wrong)}: not the value of the running daemon",
            "restart the daemon, or give the command the settings of the daemon (--config)",
        )
    return ok(what, f"{ours.username}, see endpoints.json in the state folder")


def _user(user: CloudUser, identity: str, http: Http) -> Finding:
    from svcd.cli import login

    what = "user"
    if user.auth_url and v3(user.auth_url) != v3(identity):
        return warn(
            what,
            f"not checked: OS_AUTH_URL is {shown_url(user.auth_url)}, which is not the embedded"
            " cloud of this state folder",
            "unset the OS_… variables, or set cloud.kind=openstack",
        )
    if not identity:
        return warn(
            what,
            "not checked: the embedded cloud of this state folder does not run",
            "start the daemon, then run svcd doctor again",
        )
    try:
        if not user.token:
            project = login.Login(identity, _variables(user), http).project
            name = user.username or "the application credential"
            return ok(what, f"{name} can log in, project {project or 'none'}")
        project = login.project_of(identity, user.token, http)
    except CommandError as error:
        return fail(what, str(error), _REMEDY)
    if not project:
        return fail(what, "the embedded cloud refuses the token", _REMEDY)
    return ok(what, f"the token is valid for project {project}")


def _variables(user: CloudUser) -> Mapping[str, str]:
    """The variables of the `openstack` command for a login."""
    project = "OS_PROJECT_ID" if user.by_id else "OS_PROJECT_NAME"
    return {
        "OS_USERNAME": user.username,
        "OS_PASSWORD": user.password,
        "OS_USER_DOMAIN_ID": user.user_domain,
        project: user.project,
        "OS_PROJECT_DOMAIN_ID": user.project_domain,
        "OS_APPLICATION_CREDENTIAL_ID": user.application_credential_id,
        "OS_APPLICATION_CREDENTIAL_SECRET": user.application_credential_secret,
    }
