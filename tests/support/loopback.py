"""Loopback machines for tests with sockets: a free port, keys, and one machine ready to use."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from twisted.internet import reactor as _reactor  # noqa: TID251 - tests with sockets need one
from twisted.logger import globalLogPublisher

from svcd.embedded.cloud.guests import GuestSpec
from svcd.embedded.machines import LoopbackMachines
from svcd.model.secret import Secret
from svcd.ports.machines import Host
from svcd.runtime.keys import new_key_pair
from svcd.runtime.tasks import sleep
from tests.support.processes import watchdog

reactor: Any = _reactor
PUBLIC_KEY, PRIVATE_KEY = new_key_pair("test")
USER = "sam"


def free_port(address: str) -> int:
    """A port that nobody held a moment ago."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port


def machines(root: str, port: int) -> LoopbackMachines:
    """Loopback machines below `root`."""
    watchdog().machines(Path(root))
    return LoopbackMachines(reactor, reactor, Path(root), port, Path("/opt/none"), os.environ)


def spec(server_id: str, address: str, **more: Any) -> GuestSpec:
    """A machine for the user `sam` with the test key."""
    fields: dict[str, Any] = {
        "server_id": server_id,
        "name": f"host-{server_id}",
        "addresses": (address,),
        "user_name": USER,
        "authorized_keys": (PUBLIC_KEY,),
    }
    return GuestSpec(**{**fields, **more})


def host(address: str, port: int) -> Host:
    """How to log in there."""
    return Host(address=address, port=port, user=USER, private_key=PRIVATE_KEY)


def rsa_key_pair() -> tuple[str, Secret]:
    """A fresh RSA pair: public line and OpenSSH private text."""
    key = rsa.generate_private_key(65537, 2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    return public.decode(), Secret(private.decode())


def running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def until(condition: Callable[[], bool], what: str, limit_s: float = 10.0) -> None:
    """Look every 20 ms until `condition` holds; fails after `limit_s`."""
    end = reactor.seconds() + limit_s
    while not condition():
        if reactor.seconds() > end:
            raise AssertionError(f"waited {limit_s:g} s for: {what}")
        await sleep(reactor, 0.02)


class ConchLog:
    """Counts what Conch itself writes to the log while the block runs."""

    def __enter__(self) -> ConchLog:
        self.events: list[str] = []
        globalLogPublisher.addObserver(self)
        return self

    def __exit__(self, *_: object) -> None:
        globalLogPublisher.removeObserver(self)

    def __call__(self, event: Any) -> None:
        if str(event.get("log_namespace", "")).startswith("twisted.conch"):
            self.events.append(str(event.get("log_format")))
