"""An embedded cloud in memory with a virtual clock, the clients for it, and raw requests."""

from __future__ import annotations

import json
import random
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from svcd.clients.cloud import OpenStack, cloud_error
from svcd.clients.http import Answer, HttpClient
from svcd.clients.sessions import KeystoneIdentity
from svcd.embedded.cloud.cloud import EmbeddedCloud
from svcd.embedded.cloud.core import PLAIN_IMAGE_ID, VANILLA_IMAGE_ID
from svcd.embedded.cloud.guests import Guests
from svcd.embedded.faults import Faults
from svcd.embedded.memory_agent import MemoryAgent
from svcd.model.secret import Secret
from svcd.runtime.clock import VirtualClock
from svcd.settings import Auth, CloudSettings, Embedded

__all__ = ["ORIGIN", "PLAIN_IMAGE_ID", "VANILLA_IMAGE_ID", "Rig"]

ORIGIN = "http://cloud.memory"
T = TypeVar("T")


def _with_plain_passwords(folder: Path) -> None:
    """Give the users of the cloud in `folder` their names as passwords, as in memory."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ("svcd", "alice", "bob", "carol", "dave", "demo")
    (folder / "passwords.json").write_text(json.dumps({name: name for name in names}))


class Rig:
    """One cloud. `problem` is what is wrong with the vanilla image's software.

    adopt: adopt machines before the start, as the embedded cloud on a socket does.
    """

    def __init__(
        self,
        embedded: Embedded | None = None,
        guests: Guests | None = None,
        state: Path | None = None,
        hosts: int = 8,
        clock: VirtualClock | None = None,
        most_servers: int | None = None,
        adopt: bool = False,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.faults = Faults()
        self.problem = ""
        self._count = int(self.clock.seconds())
        if state is not None:
            _with_plain_passwords(state / "cloud")
        self.cloud = EmbeddedCloud(
            self.clock,
            embedded or Embedded(),
            guests or Guests(),
            self.faults,
            state,
            ORIGIN,
            self._new_id,
            random.Random(1),
            lambda: self.problem,
            admin=True,
            hosts=hosts,
            most_servers=most_servers,
        )
        self.agent = MemoryAgent(self.clock)
        self.agent.serve(ORIGIN, self.cloud.resource)
        self.http = HttpClient(self.agent, self.clock, cloud_error)
        if adopt:
            self.run(self.cloud.adopt())
        self.cloud.start()

    def _new_id(self) -> str:
        self._count += 1
        return f"10000000-0000-4000-8000-{self._count:012d}"

    def client(self, username: str, password: str, project: str, **more: Any) -> OpenStack:
        """svcd's clients, as that user."""
        settings = CloudSettings(
            auth_url=ORIGIN + "/identity/v3",
            username=username,
            password=password,
            project=project,
            **more,
        )
        return OpenStack(self.agent, self.clock, settings)

    def identity(self, cloud: OpenStack, **auth: Any) -> KeystoneIdentity:
        """What validates callers."""
        return cloud.identity(Auth(mode="keystone", **auth))

    def token(self, user: str, password: str, project: str) -> Secret:
        """A user's own token."""
        body = {
            "auth": {
                "identity": {
                    "methods": ["password"],
                    "password": {
                        "user": {
                            "name": user,
                            "password": password,
                            "domain": {"id": "default"},
                        }
                    },
                },
                "scope": {"project": {"id": project}},
            }
        }
        answer = self.raw("POST", "/identity/v3/auth/tokens", body)
        return Secret(answer.header("x-subject-token"))

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str = "",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """One request; a body that is not bytes is sent as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"X-Auth-Token": token, **(headers or {})}
        url = ORIGIN + quote(path, safe="/?&=%")
        return self.run(self.http.request(method, url, headers=sent, body=data))

    def run(self, work: Coroutine[Any, Any, T], within_s: float = 600.0) -> T:
        """The result of `work`; time passes as it needs."""
        out: list[object] = []
        Deferred.fromCoroutine(work).addBoth(out.append)
        end = self.clock.seconds() + within_s
        self.clock.run_due()
        while not out and (step := self.clock.next_call_in()) is not None:
            if self.clock.seconds() + step > end:
                break
            self.clock.advance(step)
        if not out:
            raise AssertionError("it waits for ever")
        if isinstance(out[0], Failure):
            out[0].raiseException()
        return cast("T", out[0])
