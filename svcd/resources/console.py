"""The console: the files of the web page, and what the page must know before it can send a request.

The files are read once, when the daemon starts, and made ready for browsers at the first request
of each. They hold nothing of any tenant, so they need no token: the page sends the user's token to
the API, in a header, and keeps it in its tab.
"""

from __future__ import annotations

from klein import Klein

from svcd.errors import NotFound
from svcd.model import wire_service
from svcd.resources._answers import Answer, shown
from svcd.resources._call import Call
from svcd.resources._console_files import PAGE, files
from svcd.resources._policy import Needs
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices


class Console:
    """The handlers of `/console` (additive)."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._files = files()
        settings = services.settings
        mode = settings.auth.mode
        has_tokens = mode == "keystone"
        self._setup = wire_service.ConsoleSetup(
            auth=mode,
            project="" if has_tokens else settings.embedded.tenant,
            password_login=has_tokens and settings.console.password_login,
            max_binary_bytes=settings.server.max_binary_bytes,
        )

    @route(
        app,
        "GET",
        "/console",
        needs=Needs.OPEN,
        plain=True,
        suffix=False,
        operation="getConsole",
        media="text/html",
    )
    async def page(self, call: Call) -> Answer:
        """Return the page of the console (additive)."""
        return self._files[PAGE]

    @route(
        app,
        "GET",
        "/console/<file_name>",
        needs=Needs.OPEN,
        plain=True,
        suffix=False,
        operation="getConsoleFile",
        media="*/*",
    )
    async def file(self, call: Call, file_name: str) -> Answer:
        """Return a file of the console (additive)."""
        answer = self._files.get(file_name)
        if answer is None:
            raise NotFound(f"the console has no file {shown(file_name)}")
        return answer

    @route(app, "GET", "/console/setup", needs=Needs.OPEN, operation="getConsoleSetup")
    async def setup(self, call: Call) -> wire_service.ConsoleSetup:
        """Return how a user of the console logs in, and its first project (additive)."""
        return self._setup
