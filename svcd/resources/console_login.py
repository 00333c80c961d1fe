"""The login of the console: exchanges a password for a token, keeps neither, and ends the token."""

from __future__ import annotations

from klein import Klein

from svcd.errors import Forbidden, NotFound, TooManyRequests, Unauthorized
from svcd.model import wire_service
from svcd.model.cloud import Caller
from svcd.model.ids import TenantId, iso_seconds, timestamp
from svcd.model.requests import PasswordLogin
from svcd.resources._call import Call
from svcd.resources._policy import Needs
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices


class ConsoleLogin:
    """The handlers of `/console/login` and `/console/logout` (additive)."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._identity = services.identity
        self._is_on = services.settings.console.password_login

    @route(
        app,
        "POST",
        "/console/login",
        needs=Needs.OPEN,
        body=PasswordLogin,
        limit="login",
        success=200,
        suffix=False,
        login=True,
        operation="logInToConsole",
        raises=(Unauthorized, NotFound, TooManyRequests),
        headers={"Cache-Control": "`no-store`"},
    )
    async def log_in(self, call: Call, body: PasswordLogin) -> wire_service.ConsoleLogin:
        """Exchange a user's password for a token (additive).

        Without a project the token is good for nothing but to choose one of the projects of the
        answer: send the request again with its id. The service keeps neither password nor token.
        Five wrong passwords for a user from one address in a minute end in a 429.
        """
        if self._identity is None:
            raise NotFound(
                "login not found: with auth.mode=none requests need no token; open the console"
                " without a login"
            )
        if not self._is_on:
            raise NotFound(
                "login not found: passwords are switched off here (setting"
                " console.password_login); log in with a token"
            )
        call.caller = Caller(tenant_id=TenantId(""), user_id="", user_name=body.user)
        origin = call.origin()
        if not origin.is_secure:
            raise Forbidden(
                "a password must not travel without encryption: open the console with https, or"
                " log in with a token"
            )
        login = await self._identity.log_in(body, origin.address)
        project = login.project
        tenant = TenantId("") if project is None else project.id
        call.caller = Caller(tenant_id=tenant, user_id=login.user_id, user_name=login.user_name)
        call.headers["Cache-Control"] = "no-store"
        return wire_service.ConsoleLogin.filled(
            login,
            token=login.token.reveal(),
            expires_at=iso_seconds(timestamp(login.expires_at)) + "Z",
            project=None if project is None else wire_service.ConsoleProject.filled(project),
            projects=[wire_service.ConsoleProject.filled(project) for project in login.projects],
        )

    @route(
        app,
        "POST",
        "/console/logout",
        needs=Needs.OPEN,
        success=204,
        suffix=False,
        login=True,
        operation="logOutOfConsole",
        raises=(Unauthorized, NotFound, TooManyRequests),
    )
    async def log_out(self, call: Call) -> None:
        """End the token in `X-Auth-Token` at the identity service (additive).

        The token may be of any project, or of none.
        """
        if self._identity is None:
            raise NotFound("log-out not found: with auth.mode=none there are no tokens")
        caller = await call.bearer()
        assert caller.token is not None
        await self._identity.log_out(caller.token)
