"""Decides for `svcd image bake`: its next step, and the cloud's objects for its arguments. Pure.

| Object in the cloud | How a bake finds its own |
|---|---|
| server | name from `object_name`, metadata `svcd_bake` = name of the image |
| key pair, security group | name from `object_name` |
| floating IP | description from `object_name` |
| image | its name, property `svcd_bake`: `unfinished`, then `finished` |

Note: two bakes at once. A working bake counts up the metadata `svcd_bake_beat` of its server. A
bake that finds objects looks twice, with a pause of several beats between. A new beat, or an object
that only the second look finds, is another bake's work. Objects that vanish prove nothing: a cloud
continues the work of a killed bake. So a bake looks again until no object vanishes. A server that
builds has no beats yet, so it also waits for the end of the building. Clocks of different machines
are never compared. Two bakes that find no object at the same moment both request the key pair,
whose name the cloud gives only to one of them. So before its key pair such a bake removes nothing.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from attrs import frozen

from svcd.cli.exits import NOT_FOUND, USAGE, CommandError
from svcd.model import wire
from svcd.model.choices import listed, nearest
from svcd.model.cloud import Flavor, Image, Network, Server
from svcd.provisioning.decide.checks import ssh_port
from svcd.provisioning.decide.facts import PROBLEM, SSH_PORT
from svcd.provisioning.distributions.vanilla.server_image import CLASS_DATA_MIB, PACKAGES_MIB

T = TypeVar("T", Image, Flavor, Network)

MARK: Final = "svcd_bake"
BEAT: Final = "svcd_bake_beat"
LOGIN: Final = "svcd_bake_user"
"""Metadata of the server: the login user of the image."""
UNFINISHED: Final = "unfinished"
FINISHED: Final = "finished"

_LOGINS: Final = (wire.IMAGE_USERNAME, "os_admin_user")
"""Properties of an image that name its login user, the first one first."""
_LEAST_RAM_MIB: Final = 512
_SYSTEM_MIB: Final = 1024
"""Least MiB of a disk for the system of a plain cloud image."""
_MOST_NAME: Final = 40
"""Characters of the image's name in the names of other objects."""


def object_name(image: str) -> str:
    """The name of the server, key pair and security group of a bake.

    Older Nova allows no dots in the names of key pairs. The digest keeps `a.b` and `a-b` apart.
    """
    plain = re.sub(r"[^A-Za-z0-9]+", "-", image).strip("-")[:_MOST_NAME]
    return f"svcd-bake-{plain}-{hashlib.sha256(image.encode()).hexdigest()[:8]}"


@frozen(kw_only=True)
class Found:
    """The objects of the bakes of one image, and all images of its name.

    groups: ids; keypair: its name, "" when there is none; addresses: id of each floating IP.
    """

    images: Sequence[Image] = ()
    servers: Sequence[Server] = ()
    keypair: str = ""
    groups: Sequence[str] = ()
    addresses: Sequence[str] = ()

    @property
    def unfinished(self) -> Sequence[Image]:
        """The images that a bake has begun and not registered."""
        return [image for image in self.images if image.properties.get(MARK) == UNFINISHED]

    @property
    def leftovers(self) -> Sequence[tuple[str, str]]:
        """Kind and id of every object of a bake, in the order of their removal."""
        return [
            *(("server", server.id) for server in self.servers),
            *(("floating IP", address) for address in self.addresses),
            *(("security group", group) for group in self.groups),
            *(("key pair", keypair) for keypair in (self.keypair,) if keypair),
            *(("image", image.id) for image in self.unfinished),
        ]

    @property
    def traces(self) -> frozenset[tuple[str, str]]:
        """The traces of a working bake: its objects, and the beats of its server."""
        beats = ((server.id, server.metadata.get(BEAT, "")) for server in self.servers)
        return frozenset([*self.leftovers, *beats])

    def rests(self, before: Found) -> bool:
        """Whether a step can be chosen: another bake works, or nothing builds or vanishes."""
        if not self.traces <= before.traces:
            return True
        return self.traces == before.traces and all(s.status != "BUILD" for s in self.servers)


@frozen
class Refuse:
    """End with this text. tidy: after the removal of the leftovers."""

    text: str
    tidy: bool = False


@frozen
class Begin:
    """Begin with a new server. tidy: after the removal of the leftovers."""

    tidy: bool = False


@frozen
class Continue:
    """Wait until the image is saved, and register it."""

    image_id: str


@frozen
class Tidy:
    """The image is finished: remove the leftovers."""

    image_id: str


Step: TypeAlias = Refuse | Begin | Continue | Tidy


def next_step(name: str, before: Found, now: Found) -> Step:
    """The step of a bake that has found these objects. before: the look before that."""
    if not now.traces <= before.traces:
        server = f" on server {now.servers[0].id}" if now.servers else ""
        return Refuse(
            f"another svcd image bake of {name} is at work{server}: wait for its end, or choose"
            " another --name"
        )
    for image in now.images:
        mark = image.properties.get(MARK)
        if mark == FINISHED and now.leftovers:
            return Tidy(image.id)
        if mark != UNFINISHED:
            return Refuse(
                f"the cloud has an image {name} already ({image.id}): choose another --name, or"
                f" delete that one: {removal('image', image.id)}",
                tidy=bool(now.leftovers),
            )
    if len(now.unfinished) == 1:
        (image,) = now.unfinished
        is_saved = image.status == "ACTIVE"
        if is_saved or (image.status in ("QUEUED", "SAVING") and now.servers):
            return Continue(image.id)
    return Begin(tidy=bool(now.leftovers))


def removal(kind: str, id_: str) -> str:
    """The command that removes an object of a bake."""
    words = {"floating IP": "floating ip", "key pair": "keypair"}
    return f"openstack {words.get(kind, kind)} delete {id_}"


def left_over(reasons: Mapping[tuple[str, str], str]) -> str:
    """The text about objects that could not be removed: kind and id -> reason."""
    return "; ".join(
        f"NOT removed: {kind} {id_} ({why}); remove it: {removal(kind, id_)}"
        for (kind, id_), why in reasons.items()
    )


@frozen(kw_only=True)
class Wanted:
    """The image to make. tree: the software tree on this machine. user: "" as the base image says.

    base, flavor, network, pool: ids or names; network "": the only one; pool "": no floating IP.
    cidrs: networks that may reach the server's SSH port.
    """

    name: str
    base: str
    flavor: str
    tree: Path
    network: str = ""
    pool: str = ""
    user: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    cidrs: tuple[str, ...] = ("0.0.0.0/0",)


@frozen(kw_only=True)
class Choice:
    """The cloud's objects for the arguments. port: of the servers' SSH."""

    base: Image
    flavor_id: str
    network_id: str | None
    user: str
    port: int


# ---- the objects of the arguments ---------------------------------------------------------------


def choice(
    wanted: Wanted,
    images: Sequence[Image],
    flavors: Sequence[Flavor],
    networks: Sequence[Network],
    tree_mib: int,
) -> Choice:
    """The objects of the arguments. tree_mib: size of the software tree. Raises CommandError."""
    base = _chosen("base image", wanted.base, images, "--base")
    if base.status != "ACTIVE":
        text = f"the base image {wanted.base} is {base.status.lower()}, not active"
        raise CommandError(f"{text}: wait, or choose another --base")
    flavor = _chosen("flavor", wanted.flavor, flavors, "--flavor")
    if reason := _too_small(flavor, base, tree_mib):
        fitting = [flavor.name for flavor in flavors if not _too_small(flavor, base, tree_mib)]
        text = f"the flavor {wanted.flavor} {reason}; large enough: {listed(fitting)}"
        raise CommandError(text)
    if wanted.pool:
        outer = [network for network in networks if network.external]
        _chosen("external network", wanted.pool, outer, "--floating-network")
    return Choice(
        base=base,
        flavor_id=flavor.id,
        network_id=_network_id(wanted.network, [net for net in networks if not net.external]),
        user=login_user(wanted.user, base),
        port=ssh_port(base.properties.get(SSH_PORT, "")),
    )


def _too_small(flavor: Flavor, base: Image, tree_mib: int) -> str:
    """The reason why the flavor is too small, or "", also for an unknown disk (0)."""
    ram_mib = max(base.min_ram_mib, _LEAST_RAM_MIB)
    if flavor.ram_mib < ram_mib:
        return f"has {flavor.ram_mib} MiB of memory, and {ram_mib} MiB are needed"
    system_mib = max(_SYSTEM_MIB, (base.size_bytes or 0) >> 20)
    software_mib = tree_mib + PACKAGES_MIB + CLASS_DATA_MIB
    disk_gib = max(base.min_disk_gib, math.ceil((system_mib + software_mib) / 1024))
    if 0 < flavor.disk_gib < disk_gib:
        return (
            f"has a disk of {flavor.disk_gib} GiB, and the base image with the software needs"
            f" {disk_gib} GiB"
        )
    return ""


def _network_id(word: str, inner: Sequence[Network]) -> str | None:
    """The id of the inner network with this id or name, of the only one for ""; None without one.

    Raises CommandError.
    """
    if word:
        return _chosen("network", word, inner, "--network").id
    if len(inner) > 1:
        names = listed([network.name or network.id for network in inner])
        raise CommandError(f"the project has several networks: choose one with --network: {names}")
    return inner[0].id if inner else None


def _chosen(kind: str, word: str, rows: Sequence[T], option: str) -> T:
    """The only row with this id, else with this name. Raises CommandError."""
    fits = [row for row in rows if row.id == word] or [row for row in rows if row.name == word]
    if len(fits) == 1:
        return fits[0]
    if fits:
        text = f"the cloud has several {kind}s of the name {word}: give the id"
        raise CommandError(f"{text} with {option}: {listed([row.id for row in fits])}", USAGE)
    names = [row.name or row.id for row in rows]
    near = nearest(word, names)
    advice = f"did you mean {near}?" if near else f"the cloud has {listed(names)}"
    raise CommandError(f"the cloud has no {kind} {word} ({option}); {advice}", NOT_FOUND)


def login_user(given: str, base: Image) -> str:
    """The login user of the servers: the given one, that of the base image, else debian."""
    known = (base.properties.get(login, "") for login in _LOGINS)
    return given or next((login for login in known if login), "debian")


def registration(
    image: Image, user: str, description: str, tags: Iterable[str]
) -> tuple[Mapping[str, str], Sequence[str]]:
    """The properties that register the image and end its bake; those to remove.

    A snapshot has the properties of the server's own image, also another registration.
    """
    given = {wire.IMAGE_USERNAME: user, wire.IMAGE_DESCRIPTION: description, MARK: FINISHED}
    given |= {wire.IMAGE_TAG + tag: wire.IMAGE_TAG_VALUE for tag in tags}
    foreign = (property_ for property_ in image.properties if property_.startswith(wire.IMAGE_TAG))
    return given, [PROBLEM, *(name for name in foreign if name not in given)]
