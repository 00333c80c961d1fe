"""Logins of users with a password, for the console: the limit of tries, and the error of a refusal.

Of a login svcd keeps only the times of wrong passwords. A login waits in the same places as the
check of a token, see `token_checks`.

Note: what counts. A password that Keystone has refused counts for a minute. A login under way takes
a place beside those, so that logins side by side are no way around the limit; it leaves nothing
when Keystone takes the password, and when Keystone gives no answer. A wrong password also counts as
a refused token of its address.

Note: the full table. The entry whose last try is the oldest makes room. To push an entry out within
its minute takes so many wrong tries that `auth.refusals_per_minute` and `auth.checks_at_once`
are the limits that count.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.clients.identity import Keystone
from svcd.clients.newest import Newest
from svcd.clients.token_checks import TokenChecks, no_answer_of_identity, peer_of
from svcd.clients.tokens import Token
from svcd.errors import Forbidden, TooManyRequests, Unauthorized
from svcd.model.cloud import LoggedIn, Project
from svcd.model.requests import PasswordLogin
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.runtime.tasks import DeadlineExceeded, with_deadline

log = Logger()

MOST_TRIES: Final = 5
"""Wrong passwords for a user from one address in a minute, and logins under way beside them."""
_MINUTE_S: Final = 60.0
_REVOKE_S: Final = 5.0
"""Seconds that a login waits for the revocation of its first token."""
_CHECKING_S: Final = 5
"""Retry-After, in seconds, while other logins of the user are under way."""
_ENTRIES: Final = 10_000
"""Most pairs of address and user whose tries are counted."""
_Key: TypeAlias = tuple[str, str, str]


class Tries:
    """The wrong passwords of each address and user in the last minute, and the logins under way."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._wrong: Newest[_Key, list[float]] = Newest(_ENTRIES)
        self._under_way: Counter[_Key] = Counter()

    @contextmanager
    def one(self, address: str, domain: str, user: str) -> Iterator[None]:
        """Counts a wrong password if the block ends with Unauthorized. Raises TooManyRequests."""
        key = peer_of(address), _folded(domain), _folded(user)
        wrong, under_way = self._wrong_of(key), self._under_way[key]
        if len(wrong) >= MOST_TRIES:
            wait_s = max(1, math.ceil(wrong[0] + _MINUTE_S - self._clock.seconds()))
            raise TooManyRequests(
                f"too many wrong passwords for user {user!r} came from {address}: try again in"
                f" {wait_s} s",
                wait_s,
            )
        if len(wrong) + under_way >= MOST_TRIES:
            logins = "1 login" if under_way == 1 else f"{under_way} logins"
            verb = "is" if under_way == 1 else "are"
            raise TooManyRequests(
                f"{logins} of user {user!r} from {address} {verb} still being checked: try again"
                f" in {_CHECKING_S} s",
                _CHECKING_S,
            )
        self._under_way[key] += 1
        try:
            yield
        except Unauthorized:
            self._wrong[key] = [*self._wrong_of(key), self._clock.seconds()]
            raise
        finally:
            self._under_way[key] -= 1
            if not self._under_way[key]:
                del self._under_way[key]

    def _wrong_of(self, key: _Key) -> list[float]:
        now = self._clock.seconds()
        return [moment for moment in self._wrong.get(key, ()) if 0 <= now - moment < _MINUTE_S]


def _folded(name: str) -> str:
    """The same text for all spellings of a name that the databases of Keystone may take as equal.

    Most of them compare without regard to case, accents, invisible signs and spaces at the ends.
    """
    apart = unicodedata.normalize("NFKD", name).casefold()
    seen = (character for character in apart if unicodedata.category(character)[0] not in "CM")
    return "".join(seen).strip()


class Logins:
    """Logs users in at Keystone."""

    def __init__(self, keystone: Keystone, checks: TokenChecks, clock: IReactorTime) -> None:
        self._keystone = keystone
        self._checks = checks
        self._clock = clock
        self._tries = Tries(clock)

    async def log_in(self, login: PasswordLogin, address: str) -> LoggedIn:
        """See ports.Identity."""
        with self._tries.one(address, login.domain, login.user):
            async with self._checks.place(address):
                try:
                    return await self._logged_in(login, address)
                except CloudError as error:
                    raise no_answer_of_identity("log anybody in", error) from None

    async def _logged_in(self, login: PasswordLogin, address: str) -> LoggedIn:
        """The login, with one token: the first one ends when the user does not get it.

        Raises CloudError when Keystone does not say that something is wrong with the login.
        """
        first = await self._token(login, address)
        try:
            found = await self._opened(login, first)
        except Forbidden:
            await self._end(first)
            raise
        if found.token != first.text:
            await self._end(first)
        return found

    async def _end(self, token: Token) -> None:
        """Revoke `token`; when that fails, it ends by itself."""
        work = self._keystone.revoke(token.text)
        try:
            await with_deadline(self._clock, _REVOKE_S, "the end of a token", work)
        except (CloudError, DeadlineExceeded) as error:
            log.warn("The first token of a login could not be revoked: {error}", error=str(error))

    async def _opened(self, login: PasswordLogin, token: Token) -> LoggedIn:
        projects = await self._keystone.projects(token.text)
        if not projects:
            raise Forbidden(
                f"user {login.user!r} has a role in no project: ask an administrator of the cloud"
                " for one"
            )
        project = None
        if login.project is not None:
            project = _chosen(login.project, projects)
            try:
                token = await self._keystone.of_project(token.text, project.id)
            except CloudError as error:
                if error.kind not in (Fault.UNAUTHORIZED, Fault.FORBIDDEN):
                    raise
                raise Forbidden(
                    f"the identity service gives user {login.user!r} no token for project"
                    f" {project.name!r}: choose another project, or log in with a token"
                ) from None
        return LoggedIn(
            token=token.text,
            user_id=token.user_id,
            user_name=token.user_name or login.user,
            expires_at=token.expires_at,
            projects=projects,
            project=project,
        )

    async def _token(self, login: PasswordLogin, address: str) -> Token:
        try:
            return await self._keystone.of_password(login.user, login.domain, login.password)
        except CloudError as error:
            if error.kind is not Fault.UNAUTHORIZED:
                raise
            self._checks.refused(address)
            if "expired" in error.text:
                raise Unauthorized(
                    f"the password of user {login.user!r} has expired: set a new one first, at the"
                    " identity service"
                ) from None
            raise Unauthorized(
                f"the identity service refuses user {login.user!r} of domain {login.domain!r}: the"
                " password is wrong, or there is no such user or domain, or the account is locked"
            ) from None


def _chosen(word: str, projects: Sequence[Project]) -> Project:
    """The project with this id or name. Raises Forbidden, also for a name that several have."""
    for project in projects:
        if project.id == word:
            return project
    named = [project for project in projects if project.name == word]
    if len(named) == 1:
        return named[0]
    if named:
        ids = ", ".join(project.id for project in named[:5])
        raise Forbidden(f"several projects have the name {word!r}: give one of the ids {ids}")
    names = ", ".join(project.name for project in projects[:5])
    more = f" and {len(projects) - 5} more" if len(projects) > 5 else ""
    raise Forbidden(f"you have no role in project {word!r}; you have one in {names}{more}")
