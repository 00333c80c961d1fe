"""`svcd cluster …`: lists, shows, creates, changes and deletes clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from svcd.cli.command import Group
from svcd.cli.session import Session
from svcd.cli.show import Column, Table, ago, field, plain


def _machines(row: Mapping[str, Any], _now: float) -> str:
    """`3`, or `2/3` while machines are missing."""
    groups = row.get("node_groups") or []
    wanted = sum(int(group.get("count") or 0) for group in groups)
    there = sum(
        each.get("status") == "ACTIVE" for group in groups for each in group.get("instances") or []
    )
    return str(wanted) if there == wanted else f"{there}/{wanted}"


def _plugin(row: Mapping[str, Any], _now: float) -> str:
    return f"{plain(row.get('plugin_name'))} {plain(row.get('engine_version'))}"


CLUSTERS: Final = Table(
    many="clusters",
    one="cluster",
    columns=(
        field("NAME", "name"),
        field("STATUS", "status", cut=False, status=True),
        Column(title="PLUGIN", text=_plugin),
        Column(title="MACHINES", text=_machines, cut=False),
        ago("CREATED", "created_at"),
        field("ID", "id", wide=True),
        field("KEY PAIR", "user_keypair_id", wide=True),
        field("IMAGE", "default_image_id", wide=True),
        field("REASON", "status_description"),
    ),
)

cluster = Group("cluster", help="Create, show, scale and delete clusters.")


@cluster.command("ls")
@click.pass_obj
def ls(session: Session) -> None:
    """List the clusters of the project."""
    session.show(session.api.listed("/clusters", "clusters"), CLUSTERS)
