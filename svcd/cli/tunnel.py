"""`svcd tunnel`: shows a cluster's web pages and Spark Connect on this machine, through SSH.

It runs the system's `ssh` with the user's own key, and with the host key that svcd has pinned. The
ports of the pages are forwarded to 127.0.0.1, and a SOCKS proxy reaches the pages of the other
machines, to which links lead. It changes nothing. Exit codes: 0 ended by Ctrl-C, 1 failed, 2 wrong
usage.
"""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import tempfile
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
from attrs import frozen

from svcd.cli.client import Api, safe
from svcd.cli.command import Command, settings_options
from svcd.cli.exits import NOT_FOUND, CommandError
from svcd.cli.names import CLUSTER, find
from svcd.cli.session import Session
from svcd.model.redaction import MASK

_READY_POLLS: Final = 300
_POLL_S: Final = 0.1
"""Seconds between two looks; ssh has 30 s for the login."""
_SET_PARENT_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


_WEB: Final = "http"
_SPARK_CONNECT: Final = "sc"


@frozen(kw_only=True)
class Page:
    """A web page, or the place of Spark Connect (scheme `sc`).

    local: its port on this machine; address, port: its place in the cluster.
    """

    name: str
    local: int
    address: str
    port: int
    path: str = ""
    scheme: str = _WEB

    @property
    def url(self) -> str:
        """The page on this machine.

        Every page accepts the name localhost. With any other name, clients of Spark Connect send
        their token over TLS only, which the server does not have.
        """
        return f"{self.scheme}://localhost:{self.local}{self.path}"


def _key_file(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """The file of `-i`. ssh itself would only warn of a missing one, and fail later."""
    if path is None:
        return None
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        raise click.BadParameter(
            f"{path} cannot be read ({error.strerror}): name the private key that belongs to the"
            " key pair of the cluster (user_keypair_id), for example -i ~/.ssh/id_ed25519"
        ) from None


identity_option = click.option(
    "-i", "identity", type=click.Path(path_type=Path), callback=_key_file, metavar="FILE",
    help="private key of the cluster's key pair (default: of the embedded cloud, its own; else the"
    " choice of ssh)",
)  # fmt: skip


@click.command("tunnel", cls=Command)
@click.argument("cluster", metavar="CLUSTER")
@click.argument("target", metavar="[TARGET]", required=False)
@identity_option
@click.option("--open", "show", is_flag=True, help="open the pages in the browser")
@settings_options
@click.pass_obj
def command(
    session: Session,
    cluster: str,
    target: str | None,
    identity: Path | None,
    show: bool,
    config: Path | None,
    flags: Sequence[str],
) -> int:
    """Show web pages and Spark Connect of a cluster on this machine, through SSH.

    CLUSTER: id or name. TARGET: this part only, for example YARN or Spark.
    """
    session.configure(config, flags)
    try:
        wanted, machines = found(session.api, cluster)
        listed = pages(wanted, machines, target, free_port)
        key = identity or session.private_key(wanted.get("user_keypair_id"))
        folder = tempfile.TemporaryDirectory(prefix="svcd-tunnel-")
        with folder:
            known = Path(folder.name, "known_hosts")
            socks = free_port(0)
            words = ssh_command(listed, machines, known, socks, key)
            return _hold(words, listed, socks, show, folder.cleanup)
    except KeyboardInterrupt:
        return 0


def found(api: Api, what: str) -> tuple[Any, Sequence[Any]]:
    """The cluster that `what` names, and its machines. Raises CommandError."""
    cluster = find(api, CLUSTER, what)
    path = f"/clusters/{safe(cluster['id'])}/machines"
    return cluster, api.listed(path)["machines"]


def pages(
    cluster: Any, machines: Sequence[Any], target: str | None, port: Callable[[int], int]
) -> Sequence[Page]:
    """The web pages of the cluster, or of one target. port: a free port, if possible the given one.

    Raises CommandError when there is no page.
    """
    internal = {
        machine[name]: machine["internal_ip"]
        for machine in machines
        for name in ("address", "internal_ip")
    }
    info: Mapping[str, Mapping[str, str]] = cluster["info"]
    pages_: list[Page] = []
    for part, links in info.items():
        if target is not None and part.lower() != target.lower():
            continue
        for name, url in links.items():
            place = urlsplit(url)
            address = internal.get(place.hostname or "")
            if place.scheme in (_WEB, _SPARK_CONNECT) and address is not None:
                remote = place.port or 80
                there = [p.local for p in pages_ if (p.address, p.port) == (address, remote)]
                local = there[0] if there else port(remote)
                title = f"{part} {name}"
                pages_.append(
                    Page(
                        name=title,
                        local=local,
                        address=address,
                        port=remote,
                        path=place.path,
                        scheme=place.scheme,
                    )
                )
    if not pages_:
        parts = ", ".join(info) or "none: is it Active?"
        what = f"page of {target}" if target else "page"
        advice = ""
        if (target or "").lower() == "spark":
            advice = "; a cluster has Spark Connect when it is created with --with sparkconnect"
        text = f"cluster {cluster['name']} has no {what}; its parts are {parts}{advice}"
        raise CommandError(text, NOT_FOUND)
    return pages_


def ssh_command(
    pages: Sequence[Page],
    machines: Sequence[Any],
    known_hosts: Path,
    socks: int,
    identity: Path | None,
) -> Sequence[str]:
    """The ssh command for `pages`, by their first machine. Writes its host key to `known_hosts`.

    Raises CommandError when svcd has not pinned the host key of the machine.
    """
    master = next(machine for machine in machines if machine["internal_ip"] == pages[0].address)
    *options, end, login = login_words(master, known_hosts, identity)
    words = ["ssh", "-N", "-D", f"127.0.0.1:{socks}", "-o", "ExitOnForwardFailure=yes", *options]
    places = dict.fromkeys((page.local, page.address, page.port) for page in pages)
    for local, there, remote in places:
        words += ["-L", f"127.0.0.1:{local}:{there}:{remote}"]
    return [*words, end, login]


def login_words(machine: Any, known_hosts: Path, identity: Path | None) -> Sequence[str]:
    """The words of ssh that log in on `machine`, `--` and the login last.

    ssh offers `identity` without the other keys of its agent: a server ends the connection after a
    few wrong keys. Writes the host key of the machine to `known_hosts`. Raises CommandError when
    svcd has not pinned one.
    """
    if not machine.get("host_key"):
        raise CommandError(f"svcd has not logged in on {machine['instance_name']} yet: try later")
    address, port = machine["address"], int(machine["port"])
    name = address if port == 22 else f"[{address}]:{port}"
    known_hosts.write_text(f"{name} {machine['host_key']}\n", encoding="ascii")
    words = ["-p", str(port)]
    for option in (
        f"UserKnownHostsFile={known_hosts}",
        "GlobalKnownHostsFile=/dev/null",
        "StrictHostKeyChecking=yes",
        "ServerAliveInterval=30",
        "ConnectTimeout=20",  # also for a server that accepts and says nothing
    ):
        words += ["-o", option]
    if identity is not None:
        words += ["-o", "IdentitiesOnly=yes", "-i", str(identity)]
    return [*words, "--", f"{machine['username']}@{address}"]


def free_port(wanted: int) -> int:
    """`wanted` if it is free on 127.0.0.1, else another free port."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise CommandError("there is no free port on 127.0.0.1")


def started(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start ssh; it ends when this process ends, also by `kill -9`. Raises CommandError."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def end_with_parent() -> None:
        if prctl is not None:  # only Linux has prctl
            prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)

    try:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent)
    except OSError as error:
        text = f"ssh cannot be run ({error.strerror}): install openssh-client"
        raise CommandError(text) from None


def _hold(
    words: Sequence[str],
    pages: Sequence[Page],
    socks: int,
    show: bool,
    logged_in: Callable[[], None],
) -> int:
    """Run ssh until it ends or Ctrl-C; print the pages once they can be reached.

    logged_in: is called when ssh needs no file any more.
    """
    process = started(words)
    try:
        if not _ready(process, pages[0].local):
            raise CommandError("ssh made no tunnel")
        logged_in()
        for page in pages:
            print(f"{page.name}: {page.url}")
            if page.url.endswith(MASK):
                print("  svcd shows the token to users with a write role in the project only")
            if show and page.scheme == _WEB:
                webbrowser.open(page.url)
        print(f"SOCKS proxy for links to other machines: 127.0.0.1:{socks}")
        print("Ctrl-C ends the tunnel", flush=True)
        raise CommandError(f"ssh ended with code {process.wait()}")
    finally:
        process.terminate()
        process.wait()


def _ready(process: subprocess.Popen[bytes], port: int) -> bool:
    """Whether the tunnel is there; False when ssh ends or takes too long."""
    for _ in range(_READY_POLLS):
        try:
            process.wait(_POLL_S)
            return False
        except subprocess.TimeoutExpired:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return True
    return False
