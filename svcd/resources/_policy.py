"""Who may send which request: each route needs READ, WRITE or nothing, and roles satisfy the need.

It decides on the roles of a validated caller and never asks the cloud. The tenant is checked before
it. It authorises the caller of a request; the work that the request begins runs on the trust of the
cluster's creator.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Self

from attrs import frozen

from svcd.errors import Forbidden
from svcd.settings import Settings


class Needs(Enum):
    """The rights that a route needs. The value is the word in the printed table.

    OPEN: no token and no tenant. READ: a role of `auth.read_roles`. WRITE: a role of
    `auth.write_roles`; that is every change, also of the state that svcd has read from an engine.
    """

    OPEN = "open"
    READ = "read"
    WRITE = "write"

    @property
    def setting(self) -> str:
        """The setting with the roles that satisfy the need."""
        return f"auth.{self.value}_roles"


@frozen(kw_only=True)
class Policy:
    """The roles of the settings, in lower case, as Keystone compares them.

    anonymous: callers have no roles (`auth.mode=none`), and each may send every request. hide:
    `server.hide_credentials`.
    """

    read: frozenset[str]
    write: frozenset[str]
    anonymous: bool = False
    hide: bool = False

    @classmethod
    def of(cls, settings: Settings, anonymous: bool) -> Self:
        """The policy of `settings`."""
        auth = settings.auth
        return cls(
            read=frozenset(role.lower() for role in auth.read_roles),
            write=frozenset(role.lower() for role in auth.write_roles),
            anonymous=anonymous,
            hide=settings.server.hide_credentials,
        )

    def allows(self, needs: Needs, roles: Collection[str]) -> bool:
        """Whether a caller with `roles` may send a request that `needs` this."""
        if self.anonymous or needs is Needs.OPEN:
            return True
        wanted = self.write if needs is Needs.WRITE else self.read
        return not wanted.isdisjoint(roles) or any(role.lower() in wanted for role in roles)

    def refusal(self, needs: Needs, roles: Collection[str], request: str) -> Forbidden:
        """The error for a request that is not allowed. request: its method and path."""
        wanted = self.write if needs is Needs.WRITE else self.read
        return Forbidden(
            f"{request} needs one of the roles {', '.join(sorted(wanted))} (setting"
            f" {needs.setting}), and the token has {', '.join(sorted(roles)) or 'none'}:"
            " get one of them in the project, then a new token"
        )

    def hides_credentials(self, roles: Collection[str]) -> bool:
        """Whether answers to a caller with `roles` mask users and passwords."""
        return self.hide or not self.allows(Needs.WRITE, roles)
