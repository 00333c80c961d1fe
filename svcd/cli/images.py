"""`svcd image …`: the software of a distribution, for the operator, and the registry of images."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from svcd.cli.client import safe
from svcd.cli.command import Group, settings_of, settings_options
from svcd.cli.exits import NOT_FOUND, CommandError
from svcd.cli.local_images import registered
from svcd.cli.names import IMAGE, find
from svcd.cli.question import confirm, yes_option
from svcd.cli.session import Session
from svcd.cli.show import Table, field, get

F = TypeVar("F", bound=Callable[..., Any])

image: Final = Group(
    "image",
    help="Software of a distribution, and images of the cloud.",
    lazy={
        "bake": (
            "svcd.cli.image_bake_command:command",
            "make an image for clusters in your cloud, and register it",
        )
    },
    order=("build", "verify", "bake"),
)


def _tree(function: F) -> F:
    """The arguments of a command about a software tree."""
    distribution = click.argument("distribution", type=click.Choice(["vanilla"]))
    prefix = click.argument("prefix", required=False, type=click.Path(path_type=Path))
    return distribution(prefix(settings_options(function)))


def _prefix(prefix: Path | None, config: Path | None, flags: Sequence[str]) -> Path:
    """The software tree of a command: its argument, else the setting."""
    from svcd.embedded.host import image_prefix

    settings = settings_of(config, flags).settings
    return prefix or image_prefix(settings, settings.server.state_dir.absolute())


@image.command("build", cls=click.Command)
@_tree
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(["spark"]),
    help="leave Spark out; saves 450 MB of download and half of the tree",
)
def build(
    distribution: str,
    prefix: Path | None,
    config: Path | None,
    flags: Sequence[str],
    without: Sequence[str],
) -> int:
    """Download and compile the software, and install it in PREFIX.

    Without PREFIX: embedded.image_prefix, in the state folder. What this user has downloaded for
    another tree of this machine is taken from there.

    Mirrors: SVCD_MAVEN_REPOSITORY names one of Maven Central (a URL), SVCD_SPARK_ARCHIVE another
    place of Spark's archive pyspark-VERSION.tar.gz (a URL or a path).
    """
    from svcd.provisioning.distributions.vanilla.image import build as building
    from svcd.provisioning.distributions.vanilla.image import layout

    tree = _prefix(prefix, config, flags)
    if _is_foreign(tree, layout.read_record(tree)):
        text = f"{tree} has files and is no software tree: name a new or empty folder"
        print(f"svcd image build: {text}", file=sys.stderr)
        return 1
    try:
        done = building.build(tree, lambda line: print(line, flush=True), without=without)
    except building.ImageError as error:
        print(f"svcd image build: {error}", file=sys.stderr)
        return 1
    if not done.made:
        print(f"{done.prefix} is up to date ({done.size_bytes // 2**20} MiB)")
    return 0


def _is_foreign(prefix: Path, record: Mapping[str, object]) -> bool:
    """Whether the prefix has files that a build must not replace. record: its image.json."""
    if prefix.is_dir() and os.access(prefix, os.R_OK):
        return not record and any(prefix.iterdir())
    return prefix.exists()


@image.command("verify", cls=click.Command)
@_tree
@click.option(
    "--sbom", is_flag=True, help="print the jars of the tree as a CycloneDX 1.5 document (JSON)"
)
def verify(
    distribution: str,
    prefix: Path | None,
    config: Path | None,
    flags: Sequence[str],
    sbom: bool,
) -> int:
    """Check a software tree: PREFIX, or embedded.image_prefix in the state folder."""
    from svcd.provisioning.distributions.vanilla.image import class_data, layout

    tree = _prefix(prefix, config, flags)
    if _is_foreign(tree, layout.read_record(tree)):
        print(f"svcd image verify: {tree} is no software tree", file=sys.stderr)
        return 1
    problems = layout.verify(tree)
    for problem in problems:
        print(f"svcd image verify: {problem}", file=sys.stderr)
    if problems:
        print(f"to build it: {layout.build_command(tree)}", file=sys.stderr)
    elif why := class_data.fault(tree):
        text = f"daemons and jobs start later: {why}; to make it: {class_data.remedy(tree)}"
        print(f"svcd image verify: warning: {text}", file=sys.stderr)
    if sbom and tree.is_dir():
        from svcd.provisioning.distributions.vanilla.image.sbom import sbom as document

        record = layout.read_record(tree)
        sys.stdout.write(document(layout.digests(tree), layout.released(), record))
    elif not problems and layout.is_of_recipe(tree):
        print(f"{tree} is complete, and its jars are those of the recipe")
    elif not problems:
        print(f"{tree} is complete, but another recipe made it: its jars agree with its own list")
    return 1 if problems else 0


# ---- the registry -------------------------------------------------------------------------------


IMAGES: Final = Table(
    many="images",
    one="image",
    columns=(
        field("NAME", "name", key=True),
        field("ID", "id", id=True),
        field("USER", "username", spare=1),
        field("TAGS", "tags"),
        field("STATUS", "status", status=True),
        field("DESCRIPTION", "description", wide=True, spare=2),
    ),
    empty="no image is registered: svcd image register IMAGE --user LOGIN --tag TAG",
)


@image.command("ls")
@click.option("--tag", "tags", multiple=True, help="only images with this tag; repeatable")
@click.pass_obj
def ls(session: Session, tags: Sequence[str]) -> None:
    """List the registered images of the cloud."""
    query = "&".join(f"tags={safe(tag)}" for tag in tags)
    body = session.api.listed("/images" + (f"?{query}" if query else ""))

    def known() -> Iterator[str]:
        for row in session.api.listed("/images")["images"] if query else ():
            yield from (get(row, "id"), get(row, "name"))

    session.show(body, IMAGES._replace(known=known))


@image.command("register")
@click.argument("what", metavar="IMAGE")
@click.option("--user", required=True, metavar="LOGIN", help="login of the image's system")
@click.option("--description", default="", metavar="TEXT")
@click.option("--tag", "tags", multiple=True, help="tag, such as vanilla or 3.5.0; repeatable")
@click.pass_obj
def register(session: Session, what: str, user: str, description: str, tags: Sequence[str]) -> None:
    """Register an image of the cloud, by its id or name, for clusters."""
    answer = registered(session, _image_id(session, what), user, description, tags)
    session.show(answer, IMAGES)


def _image_id(session: Session, what: str) -> str:
    """The id of an image of the cloud, also of one that is not registered."""
    from svcd.cli.cloud import Cloud
    from svcd.cli.names import is_id

    if is_id(what):
        return what
    rows = Cloud(session).images(what)
    if len(rows) == 1:
        return str(rows[0]["id"])
    many = "no image" if not rows else "several images"
    raise CommandError(f"the cloud has {many} of the name {what}: give the id", NOT_FOUND)


@image.command("tag")
@click.argument("what", metavar="IMAGE")
@click.argument("tags", metavar="TAG…", nargs=-1, required=True)
@click.pass_obj
def tag(session: Session, what: str, tags: Sequence[str]) -> None:
    """Add tags to a registered image."""
    _retag(session, what, "tag", tags)


@image.command("untag")
@click.argument("what", metavar="IMAGE")
@click.argument("tags", metavar="TAG…", nargs=-1, required=True)
@click.pass_obj
def untag(session: Session, what: str, tags: Sequence[str]) -> None:
    """Remove tags from a registered image."""
    _retag(session, what, "untag", tags)


def _retag(session: Session, what: str, action: str, tags: Sequence[str]) -> None:
    path = f"/images/{safe(str(find(session.api, IMAGE, what)['id']))}/{action}"
    session.show(session.api.post(path, {"tags": list(tags)}), IMAGES)


@image.command("rm")
@click.argument("what", metavar="IMAGE…", nargs=-1, required=True)
@yes_option
@click.pass_obj
def rm(session: Session, what: Sequence[str], yes: bool) -> None:
    """Remove the registration of images. The images stay in the cloud."""
    rows = [find(session.api, IMAGE, word) for word in what]
    confirm("remove the registration of", [str(row["name"]) for row in rows], yes)
    for row in rows:
        session.api.delete(f"/images/{safe(str(row['id']))}")
        session.note(f"removed the registration of {row['name']}")
