"""Finds a resource by its id, its name, or the unique beginning of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from svcd.cli.client import Api, safe
from svcd.cli.exits import NOT_FOUND, USAGE, CommandError
from svcd.cli.show import get

_ID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")


class Kind(NamedTuple):
    """A kind of resources. path: of the list. one, many: its keys in answers; noun: for people.

    by: the field with the name, by which the list can be filtered; "" when the kind has no names.
    """

    path: str
    one: str
    many: str
    noun: str
    by: str = "name"


CLUSTER: Final = Kind(path="/clusters", one="cluster", many="clusters", noun="cluster")
IMAGE: Final = Kind(path="/images", one="image", many="images", noun="image", by="")
CLUSTER_TEMPLATE: Final = Kind(
    path="/cluster-templates",
    one="cluster_template",
    many="cluster_templates",
    noun="cluster template",
)
NODE_GROUP_TEMPLATE: Final = Kind(
    path="/node-group-templates",
    one="node_group_template",
    many="node_group_templates",
    noun="node group template",
)


def is_id(text: str) -> bool:
    """Whether `text` has the form of an id."""
    return _ID.match(text) is not None


def find(api: Api, kind: Kind, what: str) -> Any:
    """The resource that `what` names. Raises CommandError: unknown, or several match."""
    row = exactly(api, kind, what)
    if row is not None:
        return row
    return chosen(api.listed(kind.path)[kind.many], kind, what, api.door.tenant)


def exactly(api: Api, kind: Kind, what: str) -> Any:
    """The one resource with this id or name; None without one. Raises CommandError."""
    if is_id(what) and (body := api.get(f"{kind.path}/{safe(what)}")) is not None:
        return body[kind.one]
    if not kind.by:
        return None
    named = api.listed(f"{kind.path}?{kind.by}={safe(what)}")[kind.many]
    exact = [row for row in named if row.get(kind.by) == what]
    return exact[0] if len(exact) == 1 else None


def chosen(rows: Sequence[Any], kind: Kind, what: str, tenant: str) -> Any:
    """The one of `rows` that `what` names: exactly, else by its beginning. Pure."""
    exact = [row for row in rows if what in (get(row, "id"), get(row, "name"))]
    if len(exact) == 1:
        return exact[0]
    begins = exact or [
        row
        for row in rows
        if what and (get(row, "name").startswith(what) or get(row, "id").startswith(what))
    ]
    if len(begins) == 1:
        return begins[0]
    from svcd.model.choices import listed, nearest

    if begins:
        shown = [f"{get(row, 'name', '(no name)')} ({get(row, 'id')})" for row in begins]
        text = f"{what!r} is the beginning of several {kind.noun}s: {listed(shown)}"
        if exact:
            text = f"several {kind.noun}s have the name {what!r}: {listed(shown)}"
        raise CommandError(f"{text}; write more of it, or the id", USAGE)
    names = [get(row, "name") or get(row, "id") for row in rows]
    near = nearest(what, names)
    if near:
        advice = f"did you mean {near}?"
    elif names:
        advice = f"there are {listed(names)}"
    else:
        advice = "there are none"
    raise CommandError(f"project {tenant} has no {kind.noun} {what!r}; {advice}", NOT_FOUND)
