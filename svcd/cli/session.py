"""The session of a command of the API: its connection, output, terminal and time limit.

`session.api` finds the daemon and logs in at its first use. `session.show` prints a body of the API
in the chosen form. `session.note` writes for people on stderr, and nothing with `--quiet`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, Self

from svcd.cli import door
from svcd.cli.client import Api
from svcd.cli.door import Found, Given
from svcd.cli.exits import TIMED_OUT, USAGE, CommandError, OutOfTime
from svcd.cli.http import Http
from svcd.cli.output import Terminal, write
from svcd.cli.show import Table, printed

_STATE_DIR: Final = "state"


class Session(Terminal):
    """One command's connection and terminal. The arguments are the shared options."""

    def __init__(
        self,
        *,
        api: str | None = None,
        state_dir: str | None = None,
        os_cloud: str | None = None,
        token: str | None = None,
        tenant: str | None = None,
        cacert: str | None = None,
        output: str | None = None,
        quiet: bool | None = None,
        timeout: float | None = None,
        name: str = "svcd",
    ) -> None:
        environment = os.environ
        self._chosen_dir = state_dir
        self._given = Given(
            api=api or environment.get("SVCD_API") or "",
            state_dir=Path(state_dir or environment.get("SVCD_SERVER_STATE_DIR") or _STATE_DIR),
            tenant=tenant or "",
            token=token or "",
            auth_url=environment.get("SVCD_CLOUD_AUTH_URL") or "",
        )
        self._os_cloud = os_cloud or environment.get("OS_CLOUD") or ""
        self._cacert = cacert or ""
        self._timeout = timeout
        self.name = name
        self.output = output or "table"
        super().__init__(bool(quiet))

    def __enter__(self) -> Self:
        if self._timeout is not None:
            if threading.current_thread() is not threading.main_thread():
                raise CommandError("--timeout works only in the main thread of a program")
            self._former = signal.signal(signal.SIGALRM, self._late)
            try:
                signal.setitimer(signal.ITIMER_REAL, self._timeout)
            except (ValueError, OverflowError):  # nan, inf, or beyond the system's time
                signal.signal(signal.SIGALRM, self._former)
                text = f"--timeout {self._timeout:g} is no usable time; leave it out for no limit"
                raise CommandError(text, USAGE) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._timeout is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._former)
        self.clear()
        if "http" in self.__dict__:
            self.http.close()

    def _late(self, _number: int, _frame: FrameType | None) -> None:
        raise OutOfTime(f"--timeout of {self._timeout:g} s ran out", TIMED_OUT)

    def configure(self, config: Path | None, flags: Sequence[str]) -> None:
        """Take state folder and cloud from a daemon's settings. Raises SettingsError."""
        if config is None and not flags:
            return
        from svcd.cli.command import settings_of

        settings = settings_of(config, flags, self._chosen_dir).settings
        folder, auth_url = settings.server.state_dir, settings.cloud.auth_url
        self._given = self._given._replace(state_dir=folder, auth_url=auth_url)

    # ---- the API --------------------------------------------------------------------------------

    @property
    def state_dir(self) -> Path:
        """The state folder of a daemon on this machine; it need not exist."""
        return self._given.state_dir

    @cached_property
    def environment(self) -> dict[str, str]:
        """The variables of the login: those of the process, or of the chosen cloud."""
        if not self._os_cloud:
            return dict(os.environ)
        from svcd.cli import clouds

        return dict(clouds.chosen(self._os_cloud, os.environ, Path.cwd(), Path.home()))

    @property
    def cacert(self) -> str:
        """The file of further certificate authorities; "" for none."""
        return self._cacert or self.environment.get("OS_CACERT") or ""

    @cached_property
    def http(self) -> Http:
        """The HTTP connections of this command."""
        return Http(self.cacert)

    @cached_property
    def found(self) -> Found:
        """The daemon and the login. Raises CommandError."""
        return door.find(self._given, self.environment, self.http)

    @cached_property
    def api(self) -> Api:
        """The daemon's API, logged in. Raises CommandError."""
        return Api(self.found.door, self.http, self.found.renewed, note=self.note)

    @cached_property
    def cloud_login(self) -> Found:
        """The login at the cloud, for a command that needs no daemon. Raises CommandError."""
        found = door.find(self._given, self.environment, self.http, cloud_only=True)
        if not (found.door.token and found.door.auth_url):
            text = "no login at a cloud: set OS_AUTH_URL and the other OS_ variables"
            raise CommandError(f"{text}, or use --os-cloud", USAGE)
        return found

    @cached_property
    def endpoints(self) -> Any:
        """The content of `endpoints.json` when the daemon is found by it; else {}."""
        return {} if self._given.api else door.endpoints(self.state_dir)

    def private_key(self, keypair: object) -> Path | None:
        """The private key that the embedded cloud keeps of its own key pair, if there is one."""
        if not isinstance(keypair, str) or not keypair or not self.endpoints:
            return None
        path = self.state_dir / "cloud" / "keys" / keypair
        return path if path.parent.name == "keys" and path.is_file() else None

    def now(self) -> float:
        """The daemon's time, epoch seconds: the clock of this machine may differ.

        A command that has not asked a daemon has the time of this machine.
        """
        given = self.api.seconds if "api" in self.__dict__ else None
        return time.time() if given is None else given  # noqa: TID251 - no clock but the system's

    # ---- the terminal ---------------------------------------------------------------------------

    def show(self, body: Any, table: Table) -> None:
        """Print a body of the API in the chosen form."""
        text = printed(body, table, self.output, self.width(), self.now(), self.style)
        write(text)
