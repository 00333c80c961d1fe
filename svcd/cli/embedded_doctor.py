"""`svcd doctor` for the embedded cloud: its logins, and this machine as the host of clusters.

It asks only the running embedded cloud of the state folder, and changes nothing.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final

from svcd.cli.cloud_doctor import CloudUser
from svcd.cli.door import v3
from svcd.cli.exits import CommandError
from svcd.cli.finding import Finding, Scene, fail, ok, warn
from svcd.cli.http import Http
from svcd.embedded import installations
from svcd.embedded.host import image_prefix
from svcd.embedded.installations import Installation, leftovers
from svcd.model.redaction import shown_url
from svcd.provisioning.distributions.vanilla.image import class_data
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from svcd.provisioning.distributions.vanilla.image.jdk import find_jre
from svcd.provisioning.distributions.vanilla.image.layout import (
    build_command,
    has_spark,
    read_record,
    verify,
)
from svcd.runtime.listeners import WILDCARDS, listeners
from svcd.settings import Settings

_UNUSED: Final = (
    "auth_url",
    "username",
    "password",
    "application_credential_id",
    "application_credential_secret",
    "project",
)
"""Settings of the cloud that only `cloud.kind=openstack` uses."""
_MEMORY_MIB: Final = 3000
"""Free memory that a small cluster of the embedded cloud needs."""
_REMEDY: Final = (
    "take username, password and tenant from endpoints.json in the state folder, or unset the"
    " OS_… variables"
)


def examine_embedded(scene: Scene, http: Http | None = None) -> Iterator[Finding]:
    """The findings about the logins, and about this machine as the host of clusters."""
    settings = scene.settings
    if settings.cloud.kind != "embedded":
        return
    yield _own(settings, scene.known)
    if scene.user is not None:
        yield _user(scene.user, str(scene.known.get("identity", "")), http or Http())
    yield from machines(installations.running())
    yield _loopback(settings)
    if "vanilla" in settings.plugins.enabled:
        yield _jre()
        yield _tree(image_prefix(settings, settings.server.state_dir.absolute()))
        yield _memory()


def machines(running: Sequence[Installation]) -> Iterator[Finding]:
    """The findings about machines on this system whose daemon or folder is gone. Pure."""
    what = "machines"
    left = leftovers(running)
    for owner in left:
        remedy = f"start its daemon, or: {owner.remedy}" if owner.exists else owner.remedy
        yield warn(what, f"{owner.state_dir}: {owner.told}", remedy)
    if not left:
        yield ok(what, "none of this user runs without its daemon")


def _own(settings: Settings, known: Mapping[str, Any]) -> Finding:
    what = "svcd's user"
    given = [f"cloud.{name}" for name in _UNUSED if getattr(settings.cloud, name)]
    if given:
        return warn(
            what,
            f"{', '.join(given)}: without effect, because cloud.kind is embedded",
            "remove them, or set cloud.kind=openstack; the login of the embedded cloud is"
            " embedded.username and embedded.password",
        )
    ours = settings.embedded
    wrong = [
        f"embedded.{name}"
        for name, value in (("username", ours.username), ("password", ours.password))
        if value and known.get(name, value) != value
    ]
    if wrong:
        return warn(
            what,
            f"{' and '.join(wrong)}: not the value of the running daemon",
            "restart the daemon, or give the command the settings of the daemon (--config)",
        )
    return ok(what, f"{ours.username}, see endpoints.json in the state folder")


def _user(user: CloudUser, identity: str, http: Http) -> Finding:
    from svcd.cli import login

    what, auth_url = "user", user.variables.get("OS_AUTH_URL", "")
    if auth_url and v3(auth_url) != v3(identity):
        return warn(
            what,
            f"not checked: OS_AUTH_URL is {shown_url(auth_url)}, which is not the embedded cloud of"
            " this state folder",
            "unset the OS_… variables, or set cloud.kind=openstack",
        )
    if not identity:
        return warn(
            what,
            "not checked: the embedded cloud of this state folder does not run",
            "start the daemon, then run svcd doctor again",
        )
    try:
        if not user.token:
            project = login.Login(identity, user.variables, http).project
            name = user.variables.get("OS_USERNAME") or "the application credential"
            return ok(what, f"{name} can log in, project {project or 'none'}")
        project = login.project_of(identity, user.token, http)
    except CommandError as error:
        return fail(what, str(error), _REMEDY)
    if not project:
        return fail(what, "the embedded cloud refuses the token", _REMEDY)
    return ok(what, f"the token is valid for project {project}")


# ---- this machine -------------------------------------------------------------------------------


def _loopback(settings: Settings) -> Finding:
    network = ip_network(settings.embedded.network)
    address = str(network[10])
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            remedy = "use a part of 127.0.0.0/8: --set embedded.network=127.1.0.0/16"
            if error.errno == errno.EADDRNOTAVAIL and not address.startswith("127."):
                remedy = f"ip addr add {address} dev lo, or " + remedy
            return fail("loopback addresses", f"{address}: {error.strerror}", remedy)
    used = {listener.address for listener in listeners()} - WILDCARDS
    busy = sum(ip_address(address) in network for address in used)
    more = f"; programs listen on {busy} of its addresses, a new machine gets another"
    return ok(
        "loopback addresses", f"{settings.embedded.network} can be used{more if busy else ''}"
    )


def _jre() -> Finding:
    try:
        java = find_jre()
    except ImageError as error:
        return fail("java", str(error), "apt-get install openjdk-17-jre-headless")
    return ok("java", f"{java.version} in {java.home}")


def _tree(prefix: Path) -> Finding:
    problems = verify(prefix, run=False)
    if problems:
        return fail("vanilla software", problems[0], build_command(prefix))
    spark = "" if has_spark(read_record(prefix)) else ", without Spark"
    if why := class_data.fault(prefix):
        text = f"complete, but daemons and jobs start later: {why}"
        return warn("vanilla software", text, class_data.remedy(prefix))
    return ok("vanilla software", f"complete in {prefix}{spark}")


def _memory() -> Finding:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return ok("memory", "not checked")
    lines = dict(line.split(":", 1) for line in text.splitlines())
    mib = int(lines["MemAvailable"].split()[0]) // 1024
    if mib < _MEMORY_MIB:
        text = f"{mib} MiB available, but a small cluster needs {_MEMORY_MIB}"
        return fail("memory", text, "stop other programs, or use a larger machine")
    return ok("memory", f"{mib} MiB available")
