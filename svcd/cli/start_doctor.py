"""The checks of `svcd doctor` that a start of the daemon makes too: what it approves starts.

It loads plug-ins, parses endpoints and reads the key by the daemon's own code. It opens no port for
longer than a moment, and writes nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from svcd.cli.database_target import of_settings
from svcd.cli.finding import Finding, fail, ok, warn
from svcd.cli.shared_doctor import SEAL, key_finding
from svcd.provisioning.distributions.registry import DistributionError, Distributions
from svcd.runtime.audit import OFF, STDOUT
from svcd.runtime.listeners import described, owners
from svcd.runtime.listening import ListenError, address_of, endpoint_of, file_of
from svcd.settings import Settings
from svcd.store import migrations
from svcd.store.offline.session import OfflineError
from svcd.store.sealer import key_file

_SERVED: Final = {
    "server.listen": "api",
    "server.admin_listen": "admin",
    "cloud.listen": "identity",
}
"""Setting of a port -> key of its URL in `endpoints.json`."""

_OF_TCP: Final = ("tcp:", "tcp6:", "ssl:")
_SOCKET_PATH: Final = 107
"""Longest path of a socket file on Linux, in bytes."""


def examine_start(settings: Settings, known: Mapping[str, Any]) -> Iterator[Finding]:
    """The findings. known: the content of `endpoints.json` of the running daemon, else {}."""
    yield _plugins(settings)
    served: dict[object, str] = {}
    for key, text in _listeners(settings).items():
        yield _repeated(key, text, served) or examine_port(key, text, known)
    if not settings.database.url.startswith("postgres"):  # `shared_doctor` has the key of others
        yield from _database(settings)
    if settings.log.audit not in (OFF, STDOUT):
        yield _audit(settings)


def _listeners(settings: Settings) -> Mapping[str, str]:
    found = {"server.listen": settings.server.listen}
    if settings.server.admin_listen:
        found["server.admin_listen"] = settings.server.admin_listen
    if settings.cloud.kind == "embedded":
        found["cloud.listen"] = settings.cloud.listen
    return found


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
    return ok(what, ", ".join(each.name for each in offered))


def _key(settings: Settings, sealed: Sequence[str]) -> Finding:
    what, path = "seal key", key_file(settings)
    if not _there(path):
        there = next(each for each in path.parents if _there(each))  # the daemon makes the rest
        if not _writable(there):
            return fail(
                what,
                f"{path} cannot be made: {there} is not a folder that can be written",
                "set another server.seal_key",
            )
    return key_finding(settings, sealed)


def _database(settings: Settings) -> Iterator[Finding]:
    """Key and schema of a database in a file."""
    what, place = "database", of_settings(settings)
    path = place.path
    if path is None or not _there(path):
        yield _key(settings, ())
        yield _new(settings, path)
        return
    sealed: Sequence[str] = ()
    try:
        with contextlib.closing(place.reading("svcd doctor")) as session:
            session.snapshot()
            tables = session.tables()
            row = session.one(migrations.CURRENT) if "schema_version" in tables else None
            if "seals" in tables:
                sealed = [str(each[0]) for each in session.rows(SEAL)]
    except OfflineError as error:
        yield _key(settings, ())
        yield fail(what, str(error), "svcd db check")
        return
    yield _key(settings, sealed)
    refusal = migrations.refusal(migrations.version_of(row), f"{path}")
    if refusal:
        yield fail(what, refusal, "svcd db current")
    else:
        yield ok(what, f"{path} can be used")


def _new(settings: Settings, path: Path | None) -> Finding:
    """The database does not exist yet."""
    what = "database"
    if path is not None and settings.database.url and not _writable(path.parent):
        return fail(
            what,
            f"cannot make {path}: its folder does not exist or is not writable",
            "set another database.url",
        )
    return ok(what, "the daemon will create it at its start")


def _audit(settings: Settings) -> Finding:
    what = "log.audit"
    folder = settings.server.state_dir.absolute()
    path = folder / settings.log.audit
    if _there(path):
        good = path.is_file() and os.access(path, os.W_OK)
    else:
        good = _writable(path.parent) or (path.parent == folder and not _there(folder))
    if good:
        return ok(what, f"{path} can be written")
    return fail(
        what, f"cannot write {path}", f"--set log.audit=FILE, or {STDOUT} for standard output"
    )


def _there(path: Path) -> bool:
    """Whether this user can see the path."""
    try:
        return path.exists()
    except OSError:
        return False


def _writable(folder: Path) -> bool:
    return _there(folder) and folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


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
    if not _writable(file.parent):
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
