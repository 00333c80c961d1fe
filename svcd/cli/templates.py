"""`svcd template …`: cluster templates and node group templates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from svcd.cli import lifetime
from svcd.cli.client import Api
from svcd.cli.command import Group
from svcd.cli.exits import NOT_FOUND, CommandError
from svcd.cli.names import CLUSTER_TEMPLATE, NODE_GROUP_TEMPLATE, Kind, find
from svcd.cli.question import delete, yes_option
from svcd.cli.session import Session
from svcd.cli.show import Column, Row, Table, field, get, plain


def _plugin(row: Row, _now: float) -> str:
    return f"{plain(row.get('plugin_name'))} {plain(row.get('engine_version'))}"


def _groups(row: Row, _now: float) -> str:
    return ", ".join(f"{group.get('name')} {group.get('count')}" for group in row["node_groups"])


TEMPLATES: Final = Table(
    many="cluster_templates",
    one="cluster_template",
    columns=(
        field("NAME", "name", key=True),
        Column(title="PLUGIN", text=_plugin, spare=1),
        Column(title="GROUPS", text=_groups),
        field("DESCRIPTION", "description", spare=3),
        field("ID", "id", wide=True, id=True, spare=2),
    ),
    empty="no templates; svcd apply -f FILE makes some",
)
GROUPS: Final = Table(
    many="node_group_templates",
    one="node_group_template",
    columns=(
        field("NAME", "name", key=True),
        Column(title="PLUGIN", text=_plugin, spare=1),
        field("PROCESSES", "node_processes"),
        field("FLAVOR", "flavor_id"),
        field("DESCRIPTION", "description", spare=3),
        field("ID", "id", wide=True, id=True, spare=2),
    ),
    empty="no node group templates; svcd apply -f FILE makes some",
)

template: Final = Group("template", help="Cluster templates and node group templates.")


@template.command("ls")
@click.option("--groups", is_flag=True, help="list the node group templates")
@click.pass_obj
def ls(session: Session, groups: bool) -> None:
    """List the cluster templates, or the node group templates."""
    kind, table = (NODE_GROUP_TEMPLATE, GROUPS) if groups else (CLUSTER_TEMPLATE, TEMPLATES)
    other = CLUSTER_TEMPLATE if groups else NODE_GROUP_TEMPLATE

    def known() -> Iterator[str]:
        for row in session.api.listed(other.path)[other.many]:
            yield from (get(row, "id"), get(row, "name"))

    session.show(session.api.listed(kind.path), table._replace(known=known))


def _found(api: Api, what: str) -> tuple[Kind, Table, Any]:
    """The cluster template that `what` names, else the node group template."""
    try:
        return CLUSTER_TEMPLATE, TEMPLATES, find(api, CLUSTER_TEMPLATE, what)
    except CommandError as error:
        if error.code != NOT_FOUND:
            raise
        try:
            return NODE_GROUP_TEMPLATE, GROUPS, find(api, NODE_GROUP_TEMPLATE, what)
        except CommandError as second:
            raise error if second.code == NOT_FOUND else second from None


@template.command("show")
@click.argument("what", metavar="T")
@click.pass_obj
def show(session: Session, what: str) -> None:
    """Show a cluster template or a node group template."""
    kind, table, found = _found(session.api, what)
    session.show({kind.one: found}, table)
    for line in lifetime.lines(found, session.now()):
        session.note(line)


@template.command("rm")
@click.argument("what", metavar="T…", nargs=-1, required=True)
@yes_option
@click.pass_obj
def rm(session: Session, what: Sequence[str], yes: bool) -> None:
    """Delete templates."""
    found = [_found(session.api, word) for word in what]
    delete(session, "template", [(kind, row) for kind, _, row in found], yes)
