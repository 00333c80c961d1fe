"""First-boot scripts of `svcd cluster create --init`: their files, and the groups that run them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from svcd.cli.exits import USAGE, CommandError
from svcd.cli.job_files import Unusable, with_digest
from svcd.cli.names import CLUSTER_TEMPLATE, NODE_GROUP_TEMPLATE, find
from svcd.cli.session import Session
from svcd.cli.show import get
from svcd.cli.uploads import Program, kept, read, stored

Json = Mapping[str, Any]

_MOST_BYTES: Final = 2**20


def with_scripts(session: Session, body: Json, given: Sequence[str], dry_run: bool) -> Json:
    """The request with the scripts `FILE` and `GROUP=FILE` after those that its groups have.

    It uploads each script that svcd does not have, unless `dry_run`. Raises CommandError.
    """
    groups = _groups(session, body)
    names = [get(group, "name") for group in groups]
    for only, script in [_read(text, names) for text in given]:  # reads all before an upload
        if not dry_run:
            stored(session, script)
        elif not kept(session, script).id:
            session.note(f"{script.name} is not uploaded yet, and so not part of the plan")
            continue
        for group in groups:
            if only in ("", group.get("name")):
                name = with_digest(script.name, script.digest)
                group["init_scripts"] = [*dict.fromkeys([*(group.get("init_scripts") or ()), name])]
    if not dry_run:
        session.note("svcd keeps first-boot scripts, also when it refuses the cluster")
    return {**body, "node_groups": groups}


def _groups(session: Session, body: Json) -> list[dict[str, Any]]:
    """The node groups with their scripts: groups of a request replace those of its template."""
    groups, id_ = body.get("node_groups"), get(body, "cluster_template_id")
    if groups is None and id_:
        groups = [  # each has the values of its node group template
            {key: value for key, value in group.items() if key != "node_group_template_id"}
            for group in find(session.api, CLUSTER_TEMPLATE, id_)["node_groups"]
        ]
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        raise click.UsageError("--init: the request has no list of node_groups")
    groups = [dict(group) for group in groups]
    for group in groups:
        id_ = get(group, "node_group_template_id")
        if id_ and group.get("init_scripts") is None:
            own = find(session.api, NODE_GROUP_TEMPLATE, id_)
            group["init_scripts"] = own.get("init_scripts") or []
    return groups


def _read(text: str, names: Sequence[str]) -> tuple[str, Program]:
    """The group of a script, "" for all of `names`, and its file. Raises CommandError."""
    group, equals, path = text.partition("=")
    if not equals or group not in names:
        group, path = "", text
    try:
        script = read(Path(path))
    except Unusable as error:
        known = f"; for GROUP=FILE the groups are {', '.join(names)}" if path == text else ""
        raise Unusable(f"--init {error}{known}") from None
    if len(script.data) > _MOST_BYTES:
        text = f"--init {path}: {len(script.data):,} bytes, a first-boot script has at most"
        advice = "let a small script download the rest, or put it into the image"
        raise CommandError(f"{text} {_MOST_BYTES:,}: {advice}", USAGE)
    line = script.data.partition(b"\n")[0]
    if line.startswith(b"#!") and line.endswith(b"\r"):
        text = f"--init {path}: line 1 ends with CR (Windows), and no machine has such a program"
        raise Unusable(f"{text}: save the file with Unix line ends (LF)")
    return group, script
