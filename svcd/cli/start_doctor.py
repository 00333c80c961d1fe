"""The checks of `svcd doctor` that a start of the daemon also makes: without a fault it starts.

It loads plug-ins and parses endpoints by the daemon's own code. It opens no port for
longer than a moment, and writes nothing.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from svcd.cli.finding import Finding, Scene, fail, ok, warn
from svcd.provisioning.distributions.registry import DistributionError, Distributions
from svcd.runtime.audit import OFF, STDOUT
from svcd.runtime.listeners import described, owners
from svcd.runtime.listening import ListenError, address_of, endpoint_of, file_of
from svcd.runtime.preflight import listeners
from svcd.settings import Settings

_SERVED: Final = {
    "server.listen": "api",
    "server.admin_listen": "admin",
    "cloud.listen": "identity",
}
"""Setting of a port -> key of its URL in `endpoints.json`."""

_OF_TCP: Final = ("tcp:", "tcp6:", "ssl:")
_ROOM_BYTES: Final = 2 * 2**30
"""Free space that the state folder needs at least."""
_SOCKET_PATH: Final = 107
"""Longest path of a socket file on Linux, in bytes."""


def examine_state(scene: Scene) -> Iterator[Finding]:
    """The state folder."""
    folder = scene.settings.server.state_dir
    what = f"state folder {folder}"
    near = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=near, prefix=".doctor-"):
            pass
        free = shutil.disk_usage(near).free
    except OSError as error:
        user = os.environ.get("USER") or str(os.getuid())
        remedy = f"set another server.state_dir, or: chown {user} {folder}"
        yield fail(what, f"cannot be written: {error.strerror}", remedy)
        return
    if free < _ROOM_BYTES:
        yield fail(what, f"only {free >> 20} MiB free", "free at least 2 GiB on that disk")
    else:
        yield ok(what, f"writable, {free >> 30} GiB free")


def examine_start(scene: Scene) -> Iterator[Finding]:
    """The plug-ins, the ports and the audit file."""
    settings = scene.settings
    yield _plugins(settings)
    served: dict[object, str] = {}
    for key, text in _listeners(settings).items():
        yield _repeated(key, text, served) or examine_port(key, text, scene.known)
    if settings.log.audit not in (OFF, STDOUT):
        yield _audit(settings)


def _listeners(settings: Settings) -> Mapping[str, str]:
    """The endpoints of the daemon by their settings, also that of administration."""
    admin = settings.server.admin_listen
    return listeners(settings) | ({"server.admin_listen": admin} if admin else {})


def _repeated(key: str, text: str, served: dict[object, str]) -> Finding | None:
    """The finding about a port that another setting has, too. served: setting by its address."""
    address = address_of(text)
    if address is None or address[2] == 0 or served.setdefault(address, key) == key:
        return None
    other = served[address]
    return fail(key, f"{text} is the port of {other}", f"--set {key}=tcp:127.0.0.1:0")


def _plugins(settings: Settings) -> Finding:
    what = "plugins"
    try:
        offered = Distributions(settings.plugins.enabled).all()
    except DistributionError as error:
        return fail(what, str(error), "correct plugins.enabled")
    return ok(what, ", ".join(distribution.name for distribution in offered))


def _audit(settings: Settings) -> Finding:
    what = "log.audit"
    folder = settings.server.state_dir.absolute()
    path = folder / settings.log.audit
    if there(path):
        good = path.is_file() and os.access(path, os.W_OK)
    else:
        good = writable(path.parent) or (path.parent == folder and not there(folder))
    if good:
        return ok(what, f"{path} can be written")
    return fail(
        what, f"cannot write {path}", f"--set log.audit=FILE, or {STDOUT} for standard output"
    )


def there(path: Path) -> bool:
    """Whether this user can see the path."""
    try:
        return path.exists()
    except OSError:
        return False


def writable(folder: Path) -> bool:
    """Whether this user may make files in the folder."""
    return there(folder) and folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


# ---- ports --------------------------------------------------------------------------------------


def examine_port(key: str, text: str, known: Mapping[str, Any]) -> Finding:
    """The finding about a setting with an endpoint. known: of the running daemon, else {}."""
    if text.startswith("systemd:"):
        return ok(key, f"{text}: systemd hands the socket over (not checked)")
    try:
        endpoint_of(object(), key, text)
    except ListenError as error:
        return fail(key, str(error), f"--set {key}=tcp:127.0.0.1:0")
    url, daemon = str(known.get(_SERVED[key], "")), known.get("pid")
    if url and text == _listeners(Settings()).get(key):
        return ok(key, f"process {daemon} serves {url}")  # this command got no setting
    file = file_of(text)
    if file is not None:
        return _socket_file(key, text, file, url)
    address = address_of(text)
    if address is None and text.startswith(_OF_TCP):
        return fail(
            key, f"{text}: a port is a number from 0 to 65535", f"--set {key}=tcp:127.0.0.1:0"
        )
    if address is None:
        return ok(key, f"{text} (not checked)")
    family, host, port = address
    if url and port == 0:
        return ok(key, f"{text} is any free port; process {daemon} serves {url}")
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OverflowError:
            return fail(
                key, f"{text}: a port is a number from 0 to 65535", f"--set {key}=tcp:127.0.0.1:0"
            )
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                at = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0][4][0]
                return _taken(key, text, owners(str(at), port), port, known)
            return fail(key, f"{text}: {error.strerror}", f"--set {key}=tcp:127.0.0.1:0")
    if url:
        return warn(
            key,
            f"{text} is free, but the running daemon, process {daemon}, serves"
            f" {url}: it has other settings than this command",
            "give the settings of the daemon: --config FILE, --set or the SVCD_ variables",
        )
    return ok(key, f"{text} is free")


def _socket_file(key: str, text: str, file: Path, url: str) -> Finding:
    if file.exists() and not file.is_socket():
        return fail(key, f"{file} is no socket", f"set another {key}, or: rm {file}")
    if not writable(file.parent):
        return fail(
            key,
            f"{text}: the folder {file.parent} does not exist or is not writable",
            f"mkdir -p {file.parent}, or set another {key}",
        )
    if len(os.fsencode(file)) > _SOCKET_PATH:
        return fail(
            key,
            f"{text}: the path of a socket file has at most {_SOCKET_PATH} bytes",
            f"set another {key} with a shorter path",
        )
    return ok(key, f"{text} can be made" if not url else f"{text} is served already")


def _taken(
    key: str, endpoint: str, pids: Sequence[int], port: int, known: Mapping[str, Any]
) -> Finding:
    """A port in use. pids: the processes that listen there, as far as this user may see them.

    It is in order when the daemon of this state folder listens there.
    """
    served = [urlsplit(str(known.get(name, ""))).port for name in _SERVED.values()]
    daemon = known.get("pid")
    if daemon in pids or (port in served and not pids):
        return ok(key, f"{endpoint} is served by process {daemon} already")
    who = ", ".join(map(described, pids))
    look = f"ps -p {pids[0]} shows it" if pids else "as root: ss -ltnp"
    return fail(
        key,
        f"{endpoint} is in use by {who or 'a process of another user'}",
        f"stop that program ({look}), or: --set {key}=tcp:127.0.0.1:0",
    )
