"""`svcd cluster …`: lists, shows, changes and deletes clusters (`create` has a module)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from svcd.cli.client import safe
from svcd.cli.command import Group
from svcd.cli.exits import CommandError, OutOfTime
from svcd.cli.lifetime import LEFT, lines
from svcd.cli.names import CLUSTER, find
from svcd.cli.output import write
from svcd.cli.question import confirm, yes_option
from svcd.cli.session import Session
from svcd.cli.show import Column, Row, Table, ago, as_json, field, get, plain, since, table_lines
from svcd.cli.words import in_commands, step_title

Json = Mapping[str, Any]


def _machines(row: Row, _now: float) -> str:
    """`3`, or `2/3` while machines are missing."""
    groups = row.get("node_groups") or []
    wanted = sum(int(group.get("count") or 0) for group in groups)
    there = sum(
        instance.get("status") == "ACTIVE"
        for group in groups
        for instance in group.get("instances") or []
    )
    return str(wanted) if there == wanted else f"{there}/{wanted}"


def _plugin(row: Row, _now: float) -> str:
    return f"{plain(row.get('plugin_name'))} {plain(row.get('engine_version'))}"


def _reason(row: Row, _now: float) -> str:
    """The trouble of a cluster, else a note on a transient cluster."""
    text = in_commands(get(row, "status_description"))
    if text or row.get("is_transient") is not True or get(row, "status") == "Deleting":
        return text
    return _TRANSIENT


_TRANSIENT: Final = "transient: svcd deletes it after its last job and that job's log"
CLUSTERS: Final = Table(
    many="clusters",
    one="cluster",
    columns=(
        field("NAME", "name", key=True),
        field("STATUS", "status", status=True),
        Column(title="PLUGIN", text=_plugin, spare=2),
        Column(title="MACHINES", text=_machines, cut=False, spare=1),
        ago("CREATED", "created_at", spare=3),
        field("ID", "id", wide=True, id=True, spare=1),
        field("KEY PAIR", "user_keypair_id", wide=True, spare=4),
        field("IMAGE", "default_image_id", wide=True, spare=5),
        Column(title="REASON", text=_reason),
    ),
    empty="no clusters; svcd cluster create NAME --plugin vanilla creates one",
)


def table_of(rows: Sequence[Row]) -> Table:
    """The table of clusters, with the time left when svcd deletes one of them by itself."""
    if not any(row.get("delete_at") for row in rows):
        return CLUSTERS
    return CLUSTERS._replace(columns=(*CLUSTERS.columns[:-1], LEFT, CLUSTERS.columns[-1]))


_GROUPS: Final = (
    field("GROUP", "name", key=True),
    Column(title="MACHINES", text=lambda row, now: str(row.get("count", "")), cut=False),
    Column(title="FLAVOR", text=lambda row, _: get(row, "flavor") or get(row, "flavor_id")),
    field("PROCESSES", "node_processes"),
)
_USAGE: Final = (
    _GROUPS[2],
    field("MACHINES", "machines", cut=False),
    Column(title="INSTANCE HOURS", text=lambda row, _: f"{row['instance_hours']:.2f}", cut=False),
)
_INSTANCES: Final = (
    field("MACHINE", "instance_name", key=True),
    field("STATUS", "status", status=True),
    field("ADDRESS", "management_ip", cut=False),
    field("INTERNAL", "internal_ip", cut=False),
    field("SERVER", "server_id", spare=1),
)
_LINKS: Final = (
    field("SERVICE", "service"),
    field("LINK", "name"),
    field("ADDRESS", "url", cut=False),
)
EVENTS: Final = Table(
    many="events",
    one="event",
    columns=(
        ago("WHEN", "at"),
        Column(title="STEP", text=lambda row, _: step_title(row), key=True),
        field("MACHINE", "machine"),
        field("OUTCOME", "outcome", status=True),
        field("CODE", "code", cut=False),
        field("TEXT", "text"),
        field("ATTEMPT", "attempt", wide=True, spare=1),
        field("UNTIL", "until", wide=True, spare=2),
    ),
    name=lambda row: get(row, "step"),
)

_FLAVORS_S: Final = 3.0
"""Seconds for each request on the way to the names of flavors, which are dispensable."""

cluster: Final = Group(
    "cluster",
    help="Create, show, scale and delete clusters.",
    lazy={
        "create": ("svcd.cli.create:create", "create a cluster from a template, a file or a"
                   " plugin"),
        "keep": ("svcd.cli.lifetime:keep", "keep a cluster that svcd would delete by itself"),
        "ssh": ("svcd.cli.ssh:command", "log in on a machine of a cluster, or run a command there"),
        "tunnel": ("svcd.cli.tunnel:command", "show the web pages of a cluster on this machine"),
    },
    order=("ls", "show", "create", "scale", "add", "keep", "rm", "retry", "events", "ssh",
           "tunnel"),
)  # fmt: skip

wait_option = click.option(
    "--wait", is_flag=True, help="wait until it is done, and show the progress"
)


@cluster.command("ls")
@click.pass_obj
def ls(session: Session) -> None:
    """List the clusters of the project."""
    body = session.api.listed("/clusters")
    session.show(body, table_of(body["clusters"]))


@cluster.command("show")
@click.argument("name", metavar="CLUSTER")
@click.pass_obj
def show(session: Session, name: str) -> None:
    """Show a cluster: its groups, machines and links."""
    cluster_row = find(session.api, CLUSTER, name)
    if whole := session.api.get(f"/clusters/{safe(get(cluster_row, 'id'))}"):
        cluster_row = whole["cluster"]  # the list lacks its usage
    if session.output not in ("table", "wide"):
        session.show({"cluster": cluster_row}, CLUSTERS)
        return
    for line in _shown(session, cluster_row):
        write(f"{line}\n")


def _shown(session: Session, row: Json) -> Iterator[str]:
    """The lines of `cluster show` for people."""
    now, width, style = session.now(), session.width(), session.style
    session.show({"cluster": row}, table_of([row]))
    yield from lines(row, now)
    groups = row.get("node_groups") or []
    flavors = flavor_names(session)

    def named(rows: Sequence[Row]) -> Sequence[Row]:
        return [{**part, "flavor": flavors.get(get(part, "flavor_id"))} for part in rows]

    has_scripts = any(group.get("init_scripts") for group in groups)
    columns = (*_GROUPS, field("SCRIPTS", "init_scripts")) if has_scripts else _GROUPS
    yield ""
    yield from table_lines(columns, named(groups), width, now, style)
    instances = [instance for group in groups for instance in group.get("instances") or []]
    if instances:
        yield ""
        yield from table_lines(_INSTANCES, instances, width, now, style)
    if used := (row.get("usage") or {}).get("flavors"):
        yield ""
        yield from table_lines(_USAGE, named(used), width, now, style)
    info = row.get("info") or {}
    links = [
        {"service": service, "name": name, "url": url}
        for service, named in info.items()
        for name, url in (named or {}).items()
    ]
    if links:
        yield ""
        yield from table_lines(_LINKS, links, width, now, style)
        session.note(f"web pages on this machine: svcd cluster tunnel {get(row, 'name')}")
    if row.get("delete_at"):
        session.note(f"to keep it longer: svcd cluster keep {get(row, 'name')}")
    if get(row, "status_description"):
        session.note(f"its history and what to do: svcd why {get(row, 'name')}")


def flavor_names(session: Session) -> Json:
    """The names of the cloud's flavors by their ids; {} without a list in time."""
    from svcd.cli.cloud import Cloud

    flavors = session.endpoints.get("flavors")
    try:
        flavors = flavors or Cloud(session, _FLAVORS_S).flavors()
        return {get(flavor, "id"): get(flavor, "name") for flavor in flavors}
    except OutOfTime:
        raise
    except CommandError:
        return {}


@cluster.command("scale")
@click.argument("name", metavar="CLUSTER")
@click.argument("sizes", metavar="GROUP=N…", nargs=-1, required=True)
@yes_option
@wait_option
@click.pass_obj
def scale(session: Session, name: str, sizes: Sequence[str], yes: bool, wait: bool) -> None:
    """Change the number of machines of groups; 0 removes a group."""
    resized = [_size(text) for text in sizes]
    row = find(session.api, CLUSTER, name)
    confirm("remove", list(_removed(row, resized)), yes)
    _changed(session, row, {"resize_node_groups": resized}, wait)


def _removed(row: Json, resized: Sequence[Json]) -> Iterator[str]:
    """The machines that go when the groups of a cluster get these sizes."""
    counts = {get(group, "name"): group.get("count") for group in row.get("node_groups") or []}
    for size in resized:
        before, after = counts.get(size["name"]), size["count"]
        if isinstance(before, int) and after < before:
            yield machines(get(row, "name"), size["name"], before, after)


def machines(cluster_name: str, group: str, before: int, after: int) -> str:
    """The machines that go when a group shrinks. Pure."""
    return f"{before - after} of {before} machines of group {group} of cluster {cluster_name}"


def _size(text: str) -> Mapping[str, Any]:
    """The wire form of `GROUP=N`. Raises UsageError."""
    group, equals, number = text.partition("=")
    if not group or not equals or not (number.isascii() and number.isdigit()):
        raise click.UsageError(f"{text!r}: write GROUP=N, for example worker=3")
    return {"name": group, "count": int(number)}


@cluster.command("add")
@click.argument("name", metavar="CLUSTER")
@click.option(
    "-f",
    "--file",
    "file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="YAML or JSON: a list of node groups, or an object with add_node_groups; - is stdin",
)
@wait_option
@click.pass_obj
def add(session: Session, name: str, file: Path, wait: bool) -> None:  # fmt: skip
    """Add node groups to a cluster."""
    from svcd.cli.files import read

    content = read(file)
    groups = content
    if isinstance(content, dict):
        groups = content.get("add_node_groups", content.get("node_groups"))
    if not isinstance(groups, list) or not groups:
        text = f"{file} has no node groups: write a list of them, each with name, count and"
        raise click.UsageError(f"{text} node_group_template_id (or flavor_id, node_processes)")
    row = find(session.api, CLUSTER, name)
    _changed(session, row, {"add_node_groups": groups}, wait)


@cluster.command("retry")
@click.argument("name", metavar="CLUSTER")
@wait_option
@click.pass_obj
def retry(session: Session, name: str, wait: bool) -> None:
    """Repeat the request that failed, or let svcd replace what an Active cluster lacks."""
    _changed(session, find(session.api, CLUSTER, name), {}, wait)


def _changed(session: Session, row: Json, body: Json, wait: bool) -> None:
    """Send a change of the cluster's size, and show the cluster."""
    answer = session.api.put(f"/clusters/{safe(get(row, 'id'))}", body)
    finish(session, answer, wait)


def finish(session: Session, answer: Any, wait: bool) -> None:
    """Show the cluster of an accepted request, after the work when `wait`. Raises CommandError."""
    name = get(answer["cluster"], "name")
    if wait:
        from svcd.cli.waiting import await_change

        answer = await_change(session, answer["cluster"])
    session.show(answer, CLUSTERS)
    if not wait:
        session.note(f"follow it: svcd cluster events {name} -f")


@cluster.command("rm")
@click.argument("names", metavar="CLUSTER…", nargs=-1, required=True)
@click.option(
    "--force", is_flag=True, help="forget the cluster even if objects in the cloud cannot go"
)
@yes_option
@wait_option
@click.pass_obj
def rm(session: Session, names: Sequence[str], force: bool, yes: bool, wait: bool) -> None:
    """Delete clusters, with their machines and data."""
    rows = [find(session.api, CLUSTER, name) for name in names]
    confirm("delete cluster", [get(row, "name") for row in rows], yes)
    query = "?force=true" if force else ""
    for row in rows:
        try:
            session.api.delete(f"/clusters/{safe(get(row, 'id'))}{query}")
        except OutOfTime:
            raise
        except CommandError as error:
            text = f"cluster {get(row, 'name')} is not deleted: {error}"
            raise CommandError(text, error.code) from None
        session.note(f"cluster {get(row, 'name')} is being deleted")
    if wait:
        from svcd.cli.waiting import await_cluster

        for row in rows:
            await_cluster(session, row, gone=True)
            session.note(f"cluster {get(row, 'name')} is deleted")


@cluster.command("events")
@click.argument("name", metavar="CLUSTER")
@click.option("-f", "--follow", is_flag=True, help="go on with new events, until Ctrl-C")
@click.pass_obj
def events(session: Session, name: str, follow: bool) -> None:
    """List the events of a cluster, the oldest first."""
    row = find(session.api, CLUSTER, name)
    path = f"/clusters/{safe(get(row, 'id'))}/events"
    if not follow:
        session.show(session.api.listed(path), EVENTS)
        return
    from svcd.cli.waiting import new_events

    session.api.be_patient(60)
    for event in new_events(session.api, path):
        write(event_line(event, session))


def event_line(event: Json, session: Session) -> str:
    """One event as one line: JSON in one line with `-o json`."""
    if session.output == "json":
        return " ".join(as_json(event).split("\n")).strip() + "\n"
    cells = [get(event, key) for key in ("machine", "outcome", "code", "text")]
    text = " ".join(part for part in (step_title(event), *cells) if part)
    from svcd.model.controls import visible

    stamp = get(event, "at")[11:19] or since(get(event, "at"), session.now())
    return f"{stamp}  {visible(' '.join(text.split()))}\n"
