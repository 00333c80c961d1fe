"""`svcd cluster create`: makes a cluster from a template, a file, or a plugin with defaults.

What a person leaves out is chosen where there is one sensible choice, and the choice is shown:
the newest version of a plugin, the only registered image with its tags, the only key pair, the
smallest flavor that is large enough. On the embedded cloud the image is registered, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from svcd.cli import lifetime
from svcd.cli.client import safe
from svcd.cli.cloud import Cloud, fitting_flavor
from svcd.cli.cluster_plan import lines
from svcd.cli.clusters import finish, flavor_names, wait_option
from svcd.cli.command import Command
from svcd.cli.exits import NOT_FOUND, USAGE, CommandError, OutOfTime
from svcd.cli.local_images import register, unregistered
from svcd.cli.names import CLUSTER_TEMPLATE, IMAGE, chosen, find
from svcd.cli.output import write
from svcd.cli.plugins import detail
from svcd.cli.session import Session
from svcd.cli.show import as_text, get
from svcd.model.controls import visible

_WORKERS: Final = ("datanode", "nodemanager")
"""Processes of a worker; all others but the following run on the master."""
_LEFT_OUT: Final = frozenset({"secondarynamenode", "sparkhistory", "sparkconnect"})
"""Processes that few clusters need, or that not every image has."""
_DEFAULT_WORKERS: Final = 2


@click.command("create", cls=Command)
@click.argument("name", required=False)
@click.option("--template", metavar="T", help="cluster template, by its id or name")
@click.option(
    "-f",
    "--file",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="YAML or JSON: the body of the request; - is stdin",
)
@click.option("--plugin", metavar="P", help="plugin, for a master and workers with all its parts")
@click.option("--plugin-version", metavar="V", help="version of the plugin (default: its newest)")
@click.option(
    "--workers",
    type=click.IntRange(0),
    metavar="N",
    help=f"workers of --plugin (default: {_DEFAULT_WORKERS})",
)
@click.option(
    "--with",
    "extra",
    multiple=True,
    metavar="PROCESS",
    help="a further process of --plugin for the master, for example sparkhistory; repeatable",
)
@click.option("--flavor", metavar="F", help="flavor of the machines of --plugin, by id or name")
@click.option("--network", metavar="N", help="id of the network of the machines")
@click.option("--image", metavar="I", help="registered image, by its id or name")
@click.option("--keypair", metavar="K", help="key pair of the cloud, to log in on the machines")
@click.option("--description", metavar="TEXT", help="a description")
@click.option(
    "--set",
    "configs",
    multiple=True,
    metavar="TARGET.NAME=VALUE",
    help="one option of the plugin, for example HDFS.dfs.replication=1; repeatable",
)
@click.option(
    "--init", multiple=True, type=click.Path(), metavar="[GROUP=]FILE",
    help="first-boot script of all groups, or of one: runs once on each new machine; repeatable",
)  # fmt: skip
@lifetime.idle_option
@lifetime.age_option
@click.option("--dry-run", is_flag=True, help="show what would be made, and make nothing")
@wait_option
@click.pass_obj
def create(
    session: Session,
    name: str | None,
    template: str | None,
    file: Path | None,
    plugin: str | None,
    plugin_version: str | None,
    workers: int | None,
    extra: Sequence[str],
    flavor: str | None,
    network: str | None,
    image: str | None,
    keypair: str | None,
    description: str | None,
    configs: Sequence[str],
    init: Sequence[str],
    idle_delete_s: int | None,
    max_age_s: int | None,
    dry_run: bool,
    wait: bool,
) -> None:
    """Create a cluster: from a template, a file, or a plugin."""
    sources = [source for source in (template, file, plugin) if source is not None]
    if len(sources) != 1:
        raise click.UsageError("give one of --template T, -f FILE and --plugin P")
    for option, value in (("--workers", workers), ("--with", extra or None), ("--flavor", flavor)):
        if value is not None and plugin is None:
            raise click.UsageError(f"{option} needs --plugin")
    given = {
        "name": name,
        "description": description,
        "neutron_management_network": network,
        "user_keypair_id": keypair,
        "idle_delete_s": idle_delete_s,
        "max_age_s": max_age_s,
    }
    body: dict[str, Any] = {}
    found: Mapping[str, Any] = {}
    if file is not None:
        body = _of_file(file)
    elif template is not None:
        found = find(session.api, CLUSTER_TEMPLATE, template)
        inherited = ("plugin_name", "engine_version", "idle_delete_s", "max_age_s")
        body = {key: found[key] for key in inherited if key in found}
        body["cluster_template_id"] = found["id"]
    else:
        body = _of_plugin(session, plugin or "", plugin_version, workers, extra, flavor)
    body |= {key: value for key, value in given.items() if value is not None}
    if not body.get("name"):
        raise click.UsageError("the cluster has no name: svcd cluster create NAME …")
    body = with_configs(body, [parsed(text) for text in configs])
    local: Mapping[str, Any] = {}
    if image is not None:
        body["default_image_id"] = get(find(session.api, IMAGE, image), "id")
    elif file is None and not found.get("default_image_id"):
        body["default_image_id"], local = default_image(session, body)
    if file is None and not (keypair or found.get("user_keypair_id")):
        body["user_keypair_id"] = _default_keypair(session)
    if init:
        from svcd.cli.init_scripts import with_scripts

        body = dict(with_scripts(session, body, init, dry_run))
    if dry_run:
        _plan(session, body, local)
        return
    if local:
        register(session, local)
    finish(session, session.api.post("/clusters", body), wait)


def _of_file(file: Path) -> dict[str, Any]:
    from svcd.cli.files import read

    content = read(file)
    if isinstance(content, dict) and isinstance(content.get("cluster"), dict):
        content = content["cluster"]
    if not isinstance(content, dict):
        text = f"{file} holds no object: write the body of POST clusters (name, plugin_name …)"
        raise CommandError(text, USAGE)
    return content


# ---- a plugin -----------------------------------------------------------------------------------


def _of_plugin(
    session: Session,
    plugin: str,
    version: str | None,
    workers: int | None,
    extra: Sequence[str],
    flavor: str | None,
) -> dict[str, Any]:
    version, body = detail(session.api, plugin, version)
    groups = layout(body["plugin"], _DEFAULT_WORKERS if workers is None else workers, extra)
    flavor_id = _flavor(session, flavor)
    return {
        "plugin_name": get(body["plugin"], "name"),
        "engine_version": version,
        "node_groups": [{**group, "flavor_id": flavor_id} for group in groups],
    }


def layout(
    plugin: Mapping[str, Any], workers: int, extra: Sequence[str] = ()
) -> Sequence[Mapping[str, Any]]:
    """The node groups of a small cluster: a master, and workers. Pure. Raises CommandError.

    extra: further processes for the master.
    """
    services: Mapping[str, Sequence[str]] = plugin.get("node_processes") or {}
    processes = [process for named in services.values() for process in named]
    if unknown := [process for process in extra if process not in processes]:
        others = ", ".join(process for process in processes if process in _LEFT_OUT) or "none"
        text = f"plugin {get(plugin, 'name')} has no process {unknown[0]!r}; processes for --with"
        raise CommandError(f"{text}: {others}", USAGE)
    left_out = _LEFT_OUT - set(extra)
    on_workers = [process for process in processes if process in _WORKERS]
    on_master = [process for process in processes if process not in (*_WORKERS, *left_out)]
    if not on_workers or not on_master:
        text = f"plugin {get(plugin, 'name')} has no processes that svcd can lay out by itself: "
        raise CommandError(f"{text}use --template T or -f FILE", USAGE)
    master = {"name": "master", "count": 1, "node_processes": on_master}
    if workers == 0:
        return [{**master, "node_processes": [*on_master, *on_workers]}]
    return [master, {"name": "worker", "count": workers, "node_processes": on_workers}]


def _flavor(session: Session, given: str | None) -> str:
    """The id of the flavor: the named one, else the smallest one that is large enough."""
    cloud = Cloud(session)
    if given is None:
        flavor = fitting_flavor(cloud.flavors())
        session.note(f"flavor {get(flavor, 'name')}; --flavor names another")
        return get(flavor, "id")
    try:
        flavors = cloud.flavors()
    except OutOfTime:
        raise
    except CommandError:
        return given  # the API checks the id
    kind = IMAGE._replace(noun="flavor")
    return get(chosen(flavors, kind, given, session.api.door.tenant), "id")


# ---- image, key pair, options -------------------------------------------------------------------


def default_image(session: Session, body: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The id of the only registered image with the tags of the plugin. Raises CommandError.

    Without one it is that of an image of the embedded cloud, which must be registered: the second
    value, else {}.
    """
    api = session.api
    plugin, version = str(body["plugin_name"]), str(body["engine_version"])
    known = api.get(f"/plugins/{safe(plugin)}/{safe(version)}")
    tags = [] if known is None else list(known["plugin"].get("required_image_tags") or [])
    query = "&".join(f"tags={safe(tag)}" for tag in tags)
    images = api.listed(f"/images?{query}" if query else "/images")["images"]
    if len(images) == 1:
        session.note(f"image {get(images[0], 'name')}; --image names another")
        return get(images[0], "id"), {}
    for image in unregistered(session, ()) if tags and not images else ():
        if set(tags) <= set(image.get("tags") or []):
            session.note(f"image {get(image, 'name')}; --image names another")
            return get(image, "id"), {**image, "tags": tags}
    names = ", ".join(get(image, "name") for image in images)
    tagged = f" with the tags {' and '.join(tags)}" if tags else ""
    if images:
        text = f"there are several registered images{tagged}: choose one with --image: {names}"
        raise CommandError(text, USAGE)
    raise CommandError(
        f"there is no registered image{tagged}: register one with svcd image register IMAGE"
        f" --user LOGIN{''.join(f' --tag {tag}' for tag in tags)}, or name one with --image",
        NOT_FOUND,
    )


def _default_keypair(session: Session) -> str:
    """The user's only key pair. Raises CommandError when there is not one."""
    names = [str(keypair) for keypair in session.endpoints.get("keypairs") or []]
    names = names or list(Cloud(session).keypairs())
    if len(names) == 1:
        session.note(f"key pair {names[0]}; --keypair names another")
        return names[0]
    if not names:
        text = "the cloud has no key pair of yours: create one (openstack keypair create NAME)"
        raise CommandError(f"{text}, or name one with --keypair", NOT_FOUND)
    raise CommandError(f"choose a key pair with --keypair: {', '.join(sorted(names))}", USAGE)


def parsed(text: str) -> tuple[str, str, Any]:
    """Target, name and value of `TARGET.NAME=VALUE`. Pure. Raises UsageError.

    true, false and whole numbers are values of these types, as the API wants them.
    """
    path, equals, raw = text.partition("=")
    target, dot, name = path.partition(".")
    if not (equals and dot and target and name):
        text = f"--set {path!r}: write TARGET.NAME=VALUE, for example HDFS.dfs.replication=1"
        raise click.UsageError(text)
    try:
        value = json.loads(raw)
    except ValueError:
        value = raw
    return target, name, value if isinstance(value, (bool, int)) else raw


def with_configs(
    body: Mapping[str, Any], configs: Sequence[tuple[str, str, Any]]
) -> dict[str, Any]:
    """`body` with options added to its cluster_configs. Pure."""
    configs_ = {
        target: dict(named) for target, named in (body.get("cluster_configs") or {}).items()
    }
    for target, name, value in configs:
        configs_.setdefault(target, {})[name] = value
    return {**body, "cluster_configs": configs_} if configs_ else dict(body)


# ---- the plan -----------------------------------------------------------------------------------


def _plan(session: Session, body: Mapping[str, Any], local: Mapping[str, Any]) -> None:
    """Show what the daemon would make.

    local: an image that is not registered yet.
    """
    api = session.api
    query = "?dry_run=true"
    if local:
        query += f"&image_user={safe(str(local['username']))}"
        session.note(f"image {local['name']} is not registered yet: svcd cluster create does it")
    answer = api.post(f"/clusters{query}", body)
    if session.output in ("json", "yaml"):
        write(as_text(answer, session.output))
        return
    plan = answer["plan"]
    if session.output == "name":
        write("".join(f"{visible(get(machine, 'name'))}\n" for machine in plan["machines"]))
        return
    for line in lines(plan, flavor_names(session), session.width(), session.style):
        write(f"{line}\n")
    for line in lifetime.lines(body, session.now()):
        write(f"{line}\n")
    session.note("files with their contents, commands and checks: -o yaml")
