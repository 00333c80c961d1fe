"""The answers about the daemon itself, and those of the console; see `wire`."""

from __future__ import annotations

from typing import Annotated

from svcd.model import fields
from svcd.model.fields import means
from svcd.model.wire import View


class Version(View, frozen=True, kw_only=True):
    """A version of the interface."""

    id: Annotated[str, means("first segment of the paths")]
    status: Annotated[str, means("SUPPORTED, or CURRENT for the newest one")]


class Health(View, frozen=True, kw_only=True):
    """The process answers."""

    status: Annotated[str, means("always `ok`")]


class Readiness(View, frozen=True, kw_only=True):
    """Everything that requests need is there."""

    status: Annotated[str, means("always `ready`")]
    parts: Annotated[dict[str, str], means("state of each part")]


class ConsoleSetup(View, frozen=True, kw_only=True):
    """What the console must know before its first request."""

    auth: Annotated[str, means("`none`, or `keystone` when requests need a token")]
    project: Annotated[str, means("project that the console shows first; empty: the user names it")]
    password_login: Annotated[bool, means("whether `POST /console/login` takes passwords")]
    max_binary_bytes: Annotated[int, means("largest file that svcd stores as a binary")]


class ConsoleProject(View, frozen=True, kw_only=True):
    """A project that the user may choose."""

    id: Annotated[str, means("id of the project, the tenant in the paths")]
    name: Annotated[str, means("name of the project")]


class ConsoleLogin(View, frozen=True, kw_only=True):
    """The token of a user of the console."""

    token: Annotated[str, means("token of the user, for `X-Auth-Token`")]
    expires_at: Annotated[str, means("end of the token, UTC, as `YYYY-MM-DDTHH:MM:SSZ`")]
    user_id: Annotated[str, means("id of the user at the identity service")]
    user_name: fields.UserName
    project: Annotated[ConsoleProject | None, means("project of the token; null: none was given")]
    projects: Annotated[
        list[ConsoleProject], means("projects in which the user has a role, by name")
    ]


class OwnershipTags(View, frozen=True, kw_only=True):
    """The ids that this daemon's objects in the tenant's cloud can carry (additive)."""

    installation: Annotated[str, means("name of this installation in ownership tags")]
    clusters: Annotated[list[str], means("ids of the tenant's clusters")]
    trusts: Annotated[list[str], means("ids of the trusts of the caller that clusters use")]
    job_credentials: Annotated[
        list[str], means("names of the application credentials of jobs that svcd still deletes")
    ]
