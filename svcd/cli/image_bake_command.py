"""`svcd image bake`: makes an image for clusters on the user's own OpenStack.

It needs a login at the cloud and no daemon. A signal stops the bake, which removes what it has made
before the command ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from twisted.web.iweb import IAgent

from svcd.cli import clouds, door, own_reactor
from svcd.cli.command import Command, settings_of, settings_options
from svcd.cli.exits import USAGE, CommandError
from svcd.cli.image_bake import Bake, Screen
from svcd.cli.image_bake_objects import Services
from svcd.cli.image_bake_plan import Wanted
from svcd.cli.images import IMAGES
from svcd.cli.session import Session
from svcd.clients.cloud import cloud_error
from svcd.clients.compute import Compute
from svcd.clients.http import HttpClient
from svcd.clients.identity import Keystone
from svcd.clients.image import Images
from svcd.clients.network import Networks
from svcd.clients.rest import Rest
from svcd.clients.sessions import CallerSession
from svcd.clients.ssh import SshRemote
from svcd.model import wire
from svcd.model.cloud import Image
from svcd.model.names import MAX_TAG, TAG, USERNAME
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.settings import Settings

_MOST_NAME: Final = 255
"""Characters of the name of an image in Glance."""


@click.command("bake", cls=Command)
@click.argument("distribution", type=click.Choice(["vanilla"]))
@click.option(
    "--base", required=True, metavar="IMAGE", help="plain image of Debian or Ubuntu, id or name"
)
@click.option("--flavor", required=True, metavar="FLAVOR", help="flavor of the server, id or name")
@click.option(
    "--name", metavar="NAME", help="name of the new image (default: vanilla-RELEASE of Hadoop)"
)
@click.option(
    "--network", default="", metavar="NET", help="network of the server (default: the only one)"
)
@click.option(
    "--floating-network",
    "pool",
    default="",
    metavar="EXT",
    help="give the server a floating IP of this external network",
)
@click.option(
    "--user",
    default="",
    metavar="LOGIN",
    help="login of the base image (default: as its properties say, else debian)",
)
@click.option(
    "--tree",
    type=click.Path(path_type=Path),
    metavar="PREFIX",
    help="take this software tree (default: build embedded.image_prefix)",
)
@click.option("--description", metavar="TEXT", help="description in the registry of images")
@click.option(
    "--tag", "tags", multiple=True, help="further tag beside those of the distribution; repeatable"
)
@settings_options
@click.pass_obj
def command(
    session: Session,
    distribution: str,
    base: str,
    flavor: str,
    name: str | None,
    network: str,
    pool: str,
    user: str,
    tree: Path | None,
    description: str | None,
    tags: Sequence[str],
    config: Path | None,
    flags: Sequence[str],
) -> None:
    """Make an image for clusters in your cloud, and register it.

    Boots one server from a plain image, installs packages and software over SSH, cleans it, saves
    it as an image, and removes the server. A failure or Ctrl-C removes all that was made. Started
    again, it continues with an image that is being saved.
    """
    session.configure(config, flags)
    settings: Settings = settings_of(config, flags).settings
    _check(user, tags)
    session.cloud_login  # noqa: B018 - a refused login comes before a long build
    prefix = _tree(session, settings, tree)
    release, default_tags, parts = _facts(prefix)
    wanted = Wanted(
        name=_name(name or f"vanilla-{release}"),
        base=base,
        flavor=flavor,
        tree=prefix,
        network=network,
        pool=pool,
        user=user,
        description=description or parts,
        tags=(*default_tags, *tags),
        cidrs=settings.cloud.ssh_cidrs,
    )
    image = bake(session, settings, wanted)
    session.show({"image": _row(image)}, IMAGES)


def _name(name: str) -> str:
    """The name of the image. Raises CommandError."""
    if len(name) > _MOST_NAME or name != name.strip() or not name.isprintable():
        text = f"--name {name[:60]!r}: at most {_MOST_NAME} characters, without blanks around it"
        raise CommandError(text, USAGE)
    return name


def _check(user: str, tags: Sequence[str]) -> None:
    """Raises CommandError for a login or tag that the registry would refuse."""
    if user and not re.fullmatch(USERNAME, user):
        raise CommandError(f"--user {user!r} is no login name", USAGE)
    for tag in tags:
        if len(tag) > MAX_TAG or not re.fullmatch(TAG, tag):
            raise CommandError(f"--tag {tag!r} is no tag, such as vanilla or 3.5.0", USAGE)


def _tree(session: Session, settings: Settings, given: Path | None) -> Path:
    """The complete software tree: the given one, else the built one. Raises CommandError."""
    from svcd.embedded.host import image_prefix
    from svcd.provisioning.distributions.vanilla.image import build, layout

    if given is None:
        prefix = image_prefix(settings, session.state_dir.absolute())
        try:
            build.build(prefix, session.note)
        except build.ImageError as error:
            raise CommandError(str(error)) from None
    else:
        prefix = given.absolute()
    session.note(f"checking the software in {prefix}")
    if problems := layout.verify(prefix, run=False):
        raise CommandError(f"{problems[0]}; build it: {layout.build_command(prefix)}")
    return prefix


def _facts(prefix: Path) -> tuple[str, Sequence[str], str]:
    """Of a tree: the release of Hadoop, the tags that clusters need, a description."""
    from svcd.provisioning.distributions.vanilla import Vanilla
    from svcd.provisioning.distributions.vanilla.image import layout

    record = layout.read_record(prefix)
    release = str(record["versions"]["hadoop"])
    tags = tuple(Vanilla().required_image_tags(release))
    parts = ("Hadoop", "Pig", "Oozie", *(("Spark",) if layout.has_spark(record) else ()))
    return release, tags, ", ".join(parts)


def _row(image: Image) -> dict[str, Any]:
    """The image as the registry shows it."""
    return {
        "id": image.id,
        "name": image.name,
        "username": image.properties.get(wire.IMAGE_USERNAME, ""),
        "tags": wire.image_tags(image),
        "status": image.status,
        "description": image.properties.get(wire.IMAGE_DESCRIPTION, ""),
    }


# ---- the bake on a reactor ----------------------------------------------------------------------


class _Login(CallerSession):
    """The session of the command's login. It logs in again when its token has ended."""

    def __init__(self, keystone: Keystone, found: door.Found) -> None:
        super().__init__(keystone, Secret(found.door.token), found.door.tenant)
        self._found = found

    async def refused(self, token: Secret, service: str) -> None:
        """Log in again; the request waits for it. Raises CloudError."""
        if token != self._token:
            return
        try:
            fresh = self._found.renewed()
        except CommandError as error:
            raise CloudError("identity", Fault.UNAUTHORIZED, str(error)) from None
        if not fresh:
            text = "the token is not valid any more: log in with a password instead of a token"
            raise CloudError(service, Fault.UNAUTHORIZED, text)
        self._token = Secret(fresh)


def bake(session: Session, settings: Settings, wanted: Wanted) -> Image:
    """The finished image. Raises CommandError."""
    from svcd.service import connect_rules

    found, screen = session.cloud_login, Screen(session)
    cloud = clouds.settings_of(settings.cloud, found.door.auth_url, session.environment)
    clouds.trust(session.cacert)
    bakes: list[Bake] = []

    async def work(reactor: Any, agent: IAgent) -> Image:
        http = HttpClient(agent, reactor, cloud_error, timeout_s=cloud.timeout_s)
        login = _Login(Keystone(http, cloud, reactor), found)
        services = Services(
            Compute(Rest(http, login, "compute", ("compute",), ""), {}),
            Images(Rest(http, login, "image", ("image",), "/v2")),
            Networks(Rest(http, login, "network", ("network",), "/v2.0"), found.door.tenant),
        )
        remote = SshRemote(reactor, reactor, settings.ssh, connect_rules(cloud))
        bakes.append(Bake(services, remote, reactor, wanted, screen))
        try:
            return await bakes[0].run()
        finally:
            await remote.close()

    def stop(error: CommandError) -> None:
        screen.note("stopping; removing what this bake has made (once more: at once)")
        bakes[0].stop(error)

    return own_reactor.run(work, stop)
