"""The work that brings a project to a bundle: its steps. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from svcd.cli.bundle import BY_NAME, KINDS, LIFETIME, Item, There, exported, references
from svcd.cli.job_files import Unusable
from svcd.model.redaction import MASK, is_secret

Json = Mapping[str, Any]


class Change(enum.StrEnum):
    """The work for an object of a bundle."""

    CREATE = "create"
    SCALE = "scale"
    NONE = "unchanged"
    REFUSED = "cannot be done"
    FAILED = "in Error"


@frozen(kw_only=True)
class Step:
    """The work for one object. texts: its differences, or the reason of a refusal with the remedy.

    sizes, groups: of a cluster: new sizes of its groups by name, and new groups. shrunk: former
    and new sizes of the groups that lose machines. life: its new `idle_delete_s` and `max_age_s`.
    """

    item: Item
    change: Change
    texts: Sequence[str] = ()
    id: str = ""
    sizes: Mapping[str, int] = field(factory=dict)
    groups: Sequence[Json] = ()
    shrunk: Mapping[str, tuple[int, int]] = field(factory=dict)
    life: dict[str, int] = field(factory=dict)


def plan(items: Sequence[Item], there: There, digests: Mapping[str, str]) -> Sequence[Step]:
    """The steps for a bundle, in the order of the work. Raises Unusable.

    digests: of the data of job binaries in the bundle, by name.
    """
    twice = _twice(items)
    if twice is not None:
        raise Unusable(f"{twice.where}: {twice.title} is in the bundle twice")
    missing = [fault for item in items for fault in _missing(item, items, there)]
    if missing:
        raise Unusable("; ".join(missing[:5]))
    ordered = sorted(items, key=lambda item: KINDS.index(item.kind))
    return [_step(item, there, digests) for item in ordered]


def _twice(items: Sequence[Item]) -> Item | None:
    seen = set()
    for item in items:
        name = item.name.lower() if item.kind.name == "clusters" else item.name
        if (item.kind.name, name) in seen:
            return item
        seen.add((item.kind.name, name))
    return None


def _missing(item: Item, items: Sequence[Item], there: There) -> Iterator[str]:
    known = {(item.kind.name, item.name) for item in items}
    for kind, name in references(item):
        if kind == "images":
            if there.image(name) is None:
                yield (
                    f"{item.where}: there is no registered image {name}, or several:"
                    " svcd image ls shows them"
                )
        elif (kind, name) not in known and there.find(kind, name) is None:
            word = BY_NAME[kind].word
            yield f"{item.where}: there is no {word} {name} in the bundle or in the project"


def _step(item: Item, there: There, digests: Mapping[str, str]) -> Step:
    rows = there.rows.get(item.kind.name, ())
    row = next((row for row in rows if row["name"] == item.name), None)
    if row is None:
        return Step(item=item, change=Change.CREATE)
    id_ = str(row["id"])
    actual = exported(item.kind, row, there, masked=False)
    wanted = {key: value for key, value in item.body.items() if key not in ("file", "content")}
    if item.kind.name == "clusters" and row["status"] == "Deleting":
        text = f"it is being deleted: wait for its end (svcd cluster rm {item.name} --wait)"
        return Step(item=item, change=Change.REFUSED, texts=[f"{text} and apply again"], id=id_)
    texts, sizes, groups, shrunk, life = [], {}, [], {}, {}
    if item.kind.name == "clusters":
        known = {group["name"]: group for group in row["node_groups"]}
        for group in wanted.pop("node_groups", None) or []:
            present = known.get(group["name"])
            if present is None:
                groups.append(group)
                texts.append(f"group {group['name']}: new, {group.get('count')} machines")
            elif group.get("count") not in (None, present["count"]):
                sizes[str(group["name"])] = group["count"]
                if isinstance(group["count"], int) and group["count"] < present["count"]:
                    shrunk[str(group["name"])] = (int(present["count"]), group["count"])
                texts.append(f"group {group['name']}: {present['count']} -> {group['count']}")
        for name in LIFETIME:
            value, before = wanted.pop(name, None), row.get(name, 0)
            if value not in (None, before):
                life[name] = value
                texts.append(f"{name}: {before} -> {value}")
    faults = list(_differences(_with_image_id(wanted, there), _with_image_id(actual, there)))
    if item.name in digests and digests[item.name] != there.digests.get(item.name):
        faults.append("another content")
    if faults:
        return Step(item=item, change=Change.REFUSED, texts=[*faults, _advice(item)], id=id_)
    if item.kind.name == "clusters" and row["status"] == "Error":
        text = (
            f"it is in Error: svcd why {item.name} shows the reason, svcd cluster retry {item.name}"
            f" repeats what failed, svcd cluster rm {item.name} removes it; then apply again"
        )
        return Step(item=item, change=Change.FAILED, texts=[*texts, text], id=id_)
    if sizes or groups or life:
        return Step(
            item=item, change=Change.SCALE, texts=texts, id=id_, sizes=sizes, groups=groups,
            shrunk=shrunk, life=life,
        )  # fmt: skip
    return Step(item=item, change=Change.NONE, id=id_)


def _with_image_id(body: Json, there: There) -> dict[str, Any]:
    """`body` with the id of its image, which a bundle names by id or name."""
    image = there.image(str(body.get("image") or ""))
    return {**body, "image": image["id"]} if image is not None else dict(body)


def _differences(wanted: Any, actual: Any, path: str = "") -> Iterator[str]:
    if isinstance(wanted, dict) and (isinstance(actual, dict) or actual is None):
        for key, value in wanted.items():
            inner = (actual or {}).get(key)
            yield from _differences(value, inner, f"{path}.{key}" if path else str(key))
    elif _is_named(wanted) and _is_named(actual):
        before = {group["name"]: group for group in actual}
        after = {group["name"]: group for group in wanted}
        for name in dict.fromkeys([*before, *after]):
            if name not in before or name not in after:
                yield f"{path}: {name} is {'new' if name in after else 'gone'}"
            else:
                yield from _differences(after[name], before[name], f"{path}.{name}")
    elif not _equal(wanted, actual):
        hidden = is_secret(path.rpartition(".")[2]) or actual == MASK or path.endswith(".user")
        yield path if hidden else f"{path}: {actual!r} -> {wanted!r}"


def _is_named(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(e, dict) for e in value)


def _equal(wanted: Any, actual: Any) -> bool:
    empty: Sequence[Any] = (None, "", [], {})
    if isinstance(wanted, list) and isinstance(actual, list):
        return [str(item) for item in wanted] == [str(item) for item in actual]
    return wanted == actual or (wanted in empty and actual in empty)


def _advice(item: Item) -> str:
    command = {"node_group_templates": "template"}.get(item.kind.name, item.kind.word)
    if item.kind.name == "jobs":
        return "the API cannot change it: give the job another name"
    return (
        f"the API cannot change it: give it another name, or remove it with svcd {command} rm"
        f" {item.name} and apply again"
    )
