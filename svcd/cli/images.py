"""`svcd image …`: the software tree of a distribution, for the operator."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from svcd.cli.command import Group, settings_of, settings_options

F = TypeVar("F", bound=Callable[..., Any])

image: Final = Group("image", help="Software of a distribution, and images of the cloud.")


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
def build(distribution: str, prefix: Path | None, config: Path | None, flags: Sequence[str]) -> int:
    """Download and compile the software, and install it in PREFIX.

    Without PREFIX: embedded.image_prefix, in the state folder.
    """
    from svcd.provisioning.distributions.vanilla.image import build as building
    from svcd.provisioning.distributions.vanilla.image import layout

    tree = _prefix(prefix, config, flags)
    if _is_foreign(tree, layout.read_record(tree)):
        text = f"{tree} has files and is no software tree: name a new or empty folder"
        print(f"svcd image build: {text}", file=sys.stderr)
        return 1
    try:
        building.build(tree, lambda line: print(line, flush=True))
    except building.ImageError as error:
        print(f"svcd image build: {error}", file=sys.stderr)
        return 1
    return 0


def _is_foreign(prefix: Path, record: Mapping[str, object]) -> bool:
    """Whether there is something that a build must not replace. record: its image.json."""
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
    from svcd.provisioning.distributions.vanilla.image import layout

    tree = _prefix(prefix, config, flags)
    if _is_foreign(tree, layout.read_record(tree)):
        print(f"svcd image verify: {tree} is no software tree", file=sys.stderr)
        return 1
    problems = layout.verify(tree)
    for problem in problems:
        print(f"svcd image verify: {problem}", file=sys.stderr)
    if problems:
        print(f"to build it: svcd image build vanilla {tree}", file=sys.stderr)
    if sbom and tree.is_dir():
        from svcd.provisioning.distributions.vanilla.image.artifacts import read_list
        from svcd.provisioning.distributions.vanilla.image.sbom import sbom as document

        record = layout.read_record(tree)
        sys.stdout.write(document(layout.digests(tree), read_list(layout.RECIPE), record))
    elif not problems and layout.is_of_recipe(tree):
        print(f"{tree} is complete, and its jars are those of the recipe")
    elif not problems:
        print(f"{tree} is complete, but another recipe made it: its jars agree with its own list")
    return 1 if problems else 0
