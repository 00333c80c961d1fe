"""Sessions with a token that svcd can renew, or of a caller; and the check of callers."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

from twisted.internet.interfaces import IReactorTime

from svcd.clients.identity import Keystone, Scope
from svcd.clients.logins import Logins
from svcd.clients.newest import Newest
from svcd.clients.token_checks import TokenChecks, no_answer_of_identity
from svcd.clients.tokens import Token
from svcd.errors import Unauthorized
from svcd.model.cloud import Caller
from svcd.model.ids import TenantId
from svcd.model.job import Credentials
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.runtime.coalesce import Coalescer
from svcd.settings import Auth


class KeptSession:
    """A Session with a token that svcd can renew. current: the token now; raises CloudError."""

    def __init__(self, keystone: Keystone, current: Callable[[], Awaitable[Token]]) -> None:
        self.current = current
        self._keystone = keystone

    async def token(self) -> Secret:
        """See Session."""
        return (await self.current()).text

    async def endpoint(self, *types: str) -> str:
        """See Session."""
        return self._keystone.pick((await self.current()).catalog, types)

    async def refused(self, token: Secret, service: str) -> None:
        """Request a new token. Raises CloudError when Keystone gives none."""
        self._keystone.forget(token)
        await self.current()


def own_session(keystone: Keystone, scope: Scope) -> KeptSession:
    """A session of svcd's own user, for a project or a trust."""
    return KeptSession(keystone, lambda: keystone.own(scope))


def user_session(keystone: Keystone, account: Credentials, tenant_id: str) -> KeptSession:
    """A session of the user of an account (of a data source, for example), with its password."""
    return KeptSession(
        keystone, lambda: keystone.of_user(account.user, account.password, tenant_id)
    )


class CallerSession:
    """A Session with a caller's token, which cannot be renewed."""

    def __init__(self, keystone: Keystone, token: Secret, tenant_id: str) -> None:
        self._keystone = keystone
        self._token = token
        self._tenant_id = tenant_id

    async def token(self) -> Secret:
        """See Session."""
        return self._token

    async def endpoint(self, *types: str) -> str:
        """See Session."""
        return self._keystone.pick(
            await self._keystone.catalog(self._token, self._tenant_id), types
        )

    async def refused(self, token: Secret, service: str) -> None:
        """Raises CloudError UNAUTHORIZED when Keystone refuses the token, too."""
        if await self._keystone.validate(token) is None:
            raise CloudError(service, Fault.UNAUTHORIZED, "the token is not valid any more")


class KeystoneIdentity:
    """Implements ports.Identity: validates callers' tokens and caches the results for a while."""

    def __init__(self, keystone: Keystone, settings: Auth, clock: IReactorTime) -> None:
        self._keystone = keystone
        self._settings = settings
        self._clock = clock
        self._known: Newest[str, tuple[float, Caller]] = Newest(settings.cache_size)
        # refused tokens have a cache of their own, so that they evict no valid token
        self._refused: Newest[str, float] = Newest(settings.cache_size)
        self._asking = Coalescer()
        self._checks = TokenChecks(clock, settings.checks_at_once, settings.refusals_per_minute)
        self._logins = Logins(keystone, self._checks, clock)
        self.log_in = self._logins.log_in

    def challenge(self) -> str:
        """See ports.Identity."""
        return f'Keystone uri="{self._keystone.base}"'

    async def authenticate(self, token: Secret, address: Callable[[], str] = lambda: "") -> Caller:
        """See ports.Identity."""
        key = _digest(token)
        known = self._known.get(key)
        now = self._clock.seconds()
        if known is not None and known[0] > now:
            self._known.move_to_end(key)
            return known[1]
        caller: Caller | None = None
        if self._refused.get(key, now) <= now:
            caller = await self._asking.get(key, lambda: self._check(key, token, address()))
        if caller is None:
            raise Unauthorized("the token is not valid: log in again at the identity service")
        return caller

    async def log_out(self, token: Secret) -> None:
        """See ports.Identity."""
        try:
            await self._keystone.revoke(token)
        except CloudError as error:
            raise no_answer_of_identity("end the token", error) from None
        key = _digest(token)
        self._known.pop(key, None)
        self._refused[key] = self._clock.seconds() + self._settings.negative_cache_s

    async def _check(self, key: str, token: Secret, address: str) -> Caller | None:
        async with self._checks.place(address):
            try:
                valid = await self._keystone.validate(token)
            except CloudError as error:
                raise no_answer_of_identity("check the token", error) from None
        now = self._clock.seconds()
        if valid is None or valid.expires_at <= now:
            self._checks.refused(address)
            self._refused[key] = now + self._settings.negative_cache_s
            self._known.pop(key, None)
            return None
        caller = Caller(
            tenant_id=TenantId(valid.project_id),
            user_id=valid.user_id,
            user_name=valid.user_name,
            roles=valid.roles,
            token=token,
            expires_at=valid.expires_at,
            is_trust=valid.is_trust,
            is_job=valid.is_job,
        )
        until = min(now + self._settings.cache_s, valid.expires_at)
        self._known[key] = (until, caller)
        return caller


def _digest(token: Secret) -> str:
    return hashlib.sha256(token.reveal().encode("utf-8")).hexdigest()
