"""`svcd plugin …`: shows the distributions, their versions and their options."""

from __future__ import annotations

from typing import Any, Final

import click

from svcd.cli.client import Api, safe
from svcd.cli.command import Group
from svcd.cli.exits import NOT_FOUND, CommandError
from svcd.cli.names import Kind, find
from svcd.cli.session import Session
from svcd.cli.show import Column, Row, Table, field, plain

PLUGIN: Final = Kind(path="/plugins", one="plugin", many="plugins", noun="plugin", by="")
PLUGINS: Final = Table(
    many="plugins",
    one="plugin",
    columns=(
        field("NAME", "name", key=True),
        field("VERSIONS", "versions"),
        field("TITLE", "title"),
        field("DESCRIPTION", "description"),
    ),
)


def _processes(row: Row, _now: float) -> str:
    found = row.get("node_processes")
    return plain([process for group in (found or {}).values() for process in group])


DETAIL: Final = Table(
    many="plugins",
    one="plugin",
    columns=(
        field("NAME", "name", key=True),
        field("VERSIONS", "versions"),
        Column(title="PROCESSES", text=_processes),
        field("IMAGE TAGS", "required_image_tags"),
        Column(
            title="OPTIONS", text=lambda row, now: str(len(row.get("configs") or [])), cut=False
        ),
    ),
)
CONFIGS: Final = Table(
    many="configs",
    one="config",
    columns=(
        Column(
            title="OPTION",
            text=lambda row, now: f"{row['applicable_target']}.{row['name']}",
            key=True,
        ),
        field("DEFAULT", "default_value"),
        field("SCOPE", "scope", cut=False),
        field("TYPE", "config_type", cut=False, wide=True),
        field("DESCRIPTION", "description"),
    ),
    empty="no option matches",
)

plugin: Final = Group("plugin", help="Show the distributions and their options.")


@plugin.command("ls")
@click.pass_obj
def ls(session: Session) -> None:
    """List the distributions of which clusters are made."""
    session.show(session.api.listed("/plugins"), PLUGINS)


def detail(api: Api, name: str, version: str | None) -> tuple[str, Any]:
    """A version of a plugin, and its body; the newest version for None. Raises CommandError."""
    body = _named(api, name)
    versions = [str(version) for version in body["versions"]]
    if version is None:
        version = versions[-1]
    if version not in versions:
        text = f"plugin {body['name']} has no version {version}; it has {', '.join(versions)}"
        raise CommandError(text, NOT_FOUND)
    return version, api.get(f"/plugins/{safe(str(body['name']))}/{safe(version)}")


def _named(api: Api, name: str) -> Any:
    rows = api.listed("/plugins")["plugins"]
    exact = [row for row in rows if row["name"] == name]
    return exact[0] if exact else find(api, PLUGIN, name)


@plugin.command("show")
@click.argument("name", metavar="P")
@click.argument("version", required=False)
@click.pass_obj
def show(session: Session, name: str, version: str | None) -> None:
    """Show the processes, image tags and number of options of a version, else of the newest."""
    session.show(detail(session.api, name, version)[1], DETAIL)


@plugin.command("configs")
@click.argument("name", metavar="P")
@click.argument("filter_", metavar="FILTER", required=False)
@click.option("--version", metavar="VERSION", help="default: the newest")
@click.pass_obj
def configs(session: Session, name: str, filter_: str | None, version: str | None) -> None:
    """List the options of clusters, or those with FILTER in name, service or description.

    An option is given to a cluster as --set SERVICE.NAME=VALUE.
    """
    rows = detail(session.api, name, version)[1]["plugin"]["configs"]
    wanted = (filter_ or "").lower()
    options = [
        row
        for row in rows
        if wanted in f"{row['applicable_target']}.{row['name']} {row['description']}".lower()
    ]
    session.show({"configs": options}, CONFIGS)
