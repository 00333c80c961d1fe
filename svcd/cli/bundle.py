"""A bundle: clusters, jobs and what they need in one YAML file, by name. Pure.

A bundle has a list for each kind. The fields are those of the API's POST, with names in place of
ids (`cluster_template`, `node_group_template`, `image`, `mains`, `libs`). A job binary has `file`,
`content` or `url`. In place of any value `{env: NAME}` stands for a variable of the environment.

Note: one form for all. `exported` turns an object of the API into the fields of a bundle. `plan`
compares the fields that a bundle gives with this form, so that a bundle that was exported is equal
to what it was exported from. A field that a bundle does not give is left alone.
"""

from __future__ import annotations

import enum
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml
from attrs import field, frozen

from svcd.cli.job_files import Unusable
from svcd.model.choices import listed, nearest
from svcd.model.redaction import MASK, is_secret, shown_url

Json = Mapping[str, Any]

MOST_BYTES: Final = 4 * 2**20
"""The largest file of a bundle."""
_MOST_VALUES: Final = 100_000
"""Values in a bundle, aliases counted each time."""


@frozen(kw_only=True)
class Kind:
    """A kind of object. word: in commands and texts. path, key: of the API's list and objects."""

    name: str
    word: str
    path: str
    key: str
    rows: str
    fields: Sequence[str]


_GROUP: Final = (
    "flavor_id", "node_processes", "node_configs", "volumes_per_node", "volumes_size",
    "volume_mount_prefix", "floating_ip_pool",
)  # fmt: skip
_HEAD: Final = ("name", "description")
_MADE_OF: Final = ("plugin_name", "engine_version")
_CLUSTER: Final = (
    *_HEAD, *_MADE_OF, "image", "cluster_configs", "anti_affinity", "neutron_management_network",
    "node_groups",
)  # fmt: skip
_GROUPS: Final = ("name", "count", "node_group_template", *_GROUP)

KINDS: Final = (
    Kind(
        name="node_group_templates", word="node group template", path="/node-group-templates",
        key="node_group_template", rows="node_group_templates", fields=(*_HEAD, *_MADE_OF, *_GROUP),
    ),
    Kind(
        name="cluster_templates", word="template", path="/cluster-templates",
        key="cluster_template", rows="cluster_templates", fields=_CLUSTER,
    ),
    Kind(
        name="data_sources", word="source", path="/data-sources", key="data_source",
        rows="data_sources", fields=(*_HEAD, "type", "url", "credentials"),
    ),
    Kind(
        name="job_binaries", word="binary", path="/job-binaries", key="job_binary",
        rows="binaries", fields=(*_HEAD, "file", "content", "url", "extra"),
    ),
    Kind(
        name="jobs", word="job", path="/jobs", key="job", rows="jobs",
        fields=(*_HEAD, "type", "mains", "libs"),
    ),
    Kind(
        name="clusters", word="cluster", path="/clusters", key="cluster", rows="clusters",
        fields=(*_CLUSTER, "cluster_template", "user_keypair_id"),
    ),
)  # fmt: skip
"""In the order in which they are made."""
BY_NAME: Final = {each.name: each for each in KINDS}
_IDS: Final = {
    "cluster_template_id": "cluster_template",
    "node_group_template_id": "node_group_template",
    "default_image_id": "image",
    "flavor": "flavor_id",
    "keypair": "user_keypair_id",
}
_TEXTS: Final = frozenset(
    {*_HEAD, *_MADE_OF, "image", "neutron_management_network", "type", "url", "file", "content",
     "cluster_template", "node_group_template", "user_keypair_id", "flavor_id",
     "volume_mount_prefix", "floating_ip_pool"}
)  # fmt: skip


@frozen(kw_only=True)
class Item:
    """An object of a bundle. where: its place in the file. folder: of the file, for `file`."""

    kind: Kind
    name: str
    body: Json = field(repr=False)
    where: str = ""
    folder: str = ""

    @property
    def title(self) -> str:
        return f"{self.kind.word} {self.name}"


# ---- reading ------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """Refuses a key that is given twice, of which YAML would take the last one."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str):
                text = f"the key {name!r} is no text; put it into quotation marks"
                raise yaml.constructor.ConstructorError(None, None, text, key.start_mark)
            if name in seen:
                text = f"the key {name} is given twice"
                raise yaml.constructor.ConstructorError(None, None, text, key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


def parse(text: bytes, file: str, folder: str, environment: Mapping[str, str]) -> Sequence[Item]:
    """The objects in a file. Raises Unusable, with the place of the first fault."""
    if len(text) > MOST_BYTES:
        raise Unusable(f"{file} is larger than {MOST_BYTES >> 20} MiB")
    try:
        documents = list(yaml.load_all(text, _Loader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f" in line {mark.line + 1}"
        said = getattr(error, "problem", None)
        raise Unusable(f"{file} is not valid YAML{line}" + (f": {said}" if said else "")) from None
    _bounded(documents, file)
    found: list[Item] = []
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise Unusable(f"{file}: expected lists of {listed(list(BY_NAME))}")
        for name, rows in document.items():
            found += _rows(name, rows, file, folder, environment)
    return found


def _bounded(values: object, file: str) -> None:
    count, waiting = 0, [values]
    while waiting:
        count += 1
        each = waiting.pop()
        if count > _MOST_VALUES:
            raise Unusable(f"{file} holds more than {_MOST_VALUES} values")
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _rows(
    name: str, rows: object, file: str, folder: str, environment: Mapping[str, str]
) -> Iterator[Item]:
    kind = BY_NAME.get(name)
    if kind is None:
        raise Unusable(_unknown(f"{file}: {name}", name, list(BY_NAME)))
    if not isinstance(rows, list):
        raise Unusable(f"{file}: {name} must be a list")
    for index, row in enumerate(rows):
        where = f"{file}: {name}[{index}]"
        if not isinstance(row, dict):
            raise Unusable(f"{where} must be a mapping with a name")
        own = row.get("name")
        if not isinstance(own, str) or not own:
            raise Unusable(f"{where}.name must be a text")
        _check(row, kind.fields, where)
        groups = row.get("node_groups")
        if groups is not None and not isinstance(groups, list):
            raise Unusable(f"{where}.node_groups must be a list")
        for number, group in enumerate(groups or []):
            place = f"{where}.node_groups[{number}]"
            if not isinstance(group, dict) or not isinstance(group.get("name"), str):
                raise Unusable(f"{place} must be a mapping with a name")
            _check(group, _GROUPS, place)
        if kind.name == "job_binaries":
            given = [each for each in ("file", "content", "url") if each in row]
            if len(given) != 1:
                raise Unusable(f"{where}: give one of file, content and url")
        body = {key: _filled(value, f"{where}.{key}", environment) for key, value in row.items()}
        yield Item(kind=kind, name=own, body=body, where=where, folder=folder)


def _check(row: Json, known: Sequence[str], where: str) -> None:
    for key, value in row.items():
        if key not in known:
            raise Unusable(_unknown(f"{where}.{key}", key, known))
        if key in _TEXTS and not isinstance(value, (str, dict)):
            text = f"{where}.{key}: {value!r} is no text in YAML: put it into quotation marks"
            raise Unusable(text)


def _unknown(place: str, key: str, known: Sequence[str]) -> str:
    near = _IDS.get(key) or nearest(key, known)
    meant = f"did you mean {near}?" if near else f"there are {listed(list(known), 20)}"
    return f"{place}: unknown field; {meant}"


def _filled(value: Any, where: str, environment: Mapping[str, str]) -> Any:
    """`value` with the variables of the environment. Raises Unusable for a missing one."""
    if isinstance(value, list):
        return [_filled(each, f"{where}[{n}]", environment) for n, each in enumerate(value)]
    if not isinstance(value, dict):
        if value is None or isinstance(value, (str, int, float, bool)):
            return value
        raise Unusable(f"{where}: {value} is no text in YAML: put it into quotation marks")
    if set(value) == {"env"} and not isinstance(value["env"], dict):
        if not isinstance(value["env"], str):
            raise Unusable(f"{where}.env must be a text: put it into quotation marks")
        if value["env"] not in environment:
            raise Unusable(f"{where}: set the variable {value['env']} of the environment")
        return environment[value["env"]]
    return {key: _filled(each, f"{where}.{key}", environment) for key, each in value.items()}


# ---- the objects of the API in the form of a bundle ---------------------------------------------


@frozen(kw_only=True)
class There:
    """The objects of the tenant: rows of each kind, registered images, data of binaries.

    local: images of the embedded cloud that svcd apply registers.
    digests: of the data of job binaries that svcd keeps, by the name of the binary.
    """

    rows: Mapping[str, Sequence[Json]] = field(factory=dict, repr=False)
    images: Sequence[Json] = ()
    local: Sequence[Json] = ()
    digests: Mapping[str, str] = field(factory=dict)

    def find(self, kind: str, name: str) -> Json | None:
        """The object of that name or id."""
        rows = self.rows.get(kind, ())
        by_name = (each for each in rows if each["name"] == name)
        return next(by_name, None) or next((e for e in rows if e["id"] == name), None)

    def image(self, name: str) -> Json | None:
        """The image of that id, or the only one of that name; a registered one first."""
        for key, images in itertools.product(("id", "name"), (self.images, self.local)):
            found = [each for each in images if each[key] == name]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def name_of(self, kind: str, id_: object) -> str | None:
        return next((str(e["name"]) for e in self.rows.get(kind, ()) if e["id"] == id_), None)


def exported(kind: Kind, row: Json, there: There, masked: bool = True) -> dict[str, Any]:
    """The fields of a bundle for an object of the API.

    masked: with `{env: NAME}` in place of secrets, else with the secrets that the API answered.
    """
    made: dict[str, Any] = {}
    for name in kind.fields:
        value = _value(kind, name, row, there)
        if value not in (None, "", {}, []):
            made[name] = value
    return _placeholders(made, str(row["name"])) if masked else made


def _value(kind: Kind, name: str, row: Json, there: There) -> Any:
    match name:
        case "image":
            id_ = row.get("default_image_id")
            image = next((each for each in there.images if each["id"] == id_), None)
            unique = image is not None and there.image(str(image["name"])) is not None
            return image["name"] if unique and image is not None else id_
        case "cluster_template":
            return there.name_of("cluster_templates", row.get("cluster_template_id"))
        case "node_groups":
            return [_group(each, there) for each in row["node_groups"]]
        case "mains" | "libs":
            return [each["name"] for each in row[name]]
        case "url" if kind.name == "job_binaries" and str(row["url"]).startswith("internaldb://"):
            return None
        case _:
            return row.get(name)


def _group(group: Json, there: There) -> dict[str, Any]:
    template = there.name_of("node_group_templates", group.get("node_group_template_id"))
    head = {"name": group["name"], "count": group["count"]}
    if template is not None:
        return {**head, "node_group_template": template}
    return {**head, **{key: group[key] for key in _GROUP if group.get(key) not in (None, {})}}


def _placeholders(value: Any, name: str, key: str = "") -> Any:
    if isinstance(value, dict):
        return {each: _placeholders(inner, name, str(each)) for each, inner in value.items()}
    if isinstance(value, list):
        return [_placeholders(each, name, key) for each in value]
    hidden = isinstance(value, str) and (
        value == MASK or is_secret(key) or shown_url(value) != value
    )
    return {"env": variable(f"{name}_{key}")} if hidden else value


def variable(text: str) -> str:
    """A name of a variable of the environment: letters, digits and `_`."""
    return re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_")


# ---- the plan -----------------------------------------------------------------------------------


class Change(enum.StrEnum):
    """The work for an object of a bundle."""

    CREATE = "create"
    SCALE = "scale"
    NONE = "unchanged"
    REFUSED = "cannot be changed"


@frozen(kw_only=True)
class Step:
    """The work for one object. texts: its differences, or the reason of a refusal.

    sizes, groups: of a cluster: new sizes of its groups by name, and new groups. shrunk: former
    and new sizes of the groups that lose machines.
    """

    item: Item
    change: Change
    texts: Sequence[str] = ()
    id: str = ""
    sizes: Mapping[str, int] = field(factory=dict)
    groups: Sequence[Json] = ()
    shrunk: Mapping[str, tuple[int, int]] = field(factory=dict)


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
    ordered = sorted(items, key=lambda each: KINDS.index(each.kind))
    return [_step(each, there, digests) for each in ordered]


def _twice(items: Sequence[Item]) -> Item | None:
    seen = set()
    for each in items:
        if (each.kind.name, each.name) in seen:
            return each
        seen.add((each.kind.name, each.name))
    return None


def references(item: Item) -> Iterator[tuple[str, str]]:
    """The kinds and names of the objects that `item` refers to; kind `images` for an image."""
    body = item.body
    for key, kind in (("cluster_template", "cluster_templates"), ("image", "images")):
        if body.get(key):
            yield kind, str(body[key])
    for group in body.get("node_groups") or []:
        if group.get("node_group_template"):
            yield "node_group_templates", str(group["node_group_template"])
    for name in [*(body.get("mains") or []), *(body.get("libs") or [])]:
        yield "job_binaries", str(name)


def _missing(item: Item, items: Sequence[Item], there: There) -> Iterator[str]:
    made = {(each.kind.name, each.name) for each in items}
    for kind, name in references(item):
        if kind == "images":
            if there.image(name) is None:
                yield (
                    f"{item.where}: there is no registered image {name}, or several:"
                    " svcd image ls shows them"
                )
        elif (kind, name) not in made and there.find(kind, name) is None:
            word = BY_NAME[kind].word
            yield f"{item.where}: there is no {word} {name} in the bundle or in the project"


def _step(item: Item, there: There, digests: Mapping[str, str]) -> Step:
    rows = there.rows.get(item.kind.name, ())
    row = next((each for each in rows if each["name"] == item.name), None)
    if row is None:
        return Step(item=item, change=Change.CREATE)
    id_ = str(row["id"])
    actual = exported(item.kind, row, there, masked=False)
    wanted = {key: value for key, value in item.body.items() if key not in ("file", "content")}
    texts, sizes, groups, shrunk = [], {}, [], {}
    if item.kind.name == "clusters":
        known = {each["name"]: each for each in row["node_groups"]}
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
    faults = list(_differences(_with_image_id(wanted, there), _with_image_id(actual, there)))
    if item.name in digests and digests[item.name] != there.digests.get(item.name):
        faults.append("another content")
    if faults:
        return Step(item=item, change=Change.REFUSED, texts=[*faults, _advice(item)], id=id_)
    if sizes or groups:
        return Step(
            item=item, change=Change.SCALE, texts=texts, id=id_, sizes=sizes, groups=groups,
            shrunk=shrunk,
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
        before = {each["name"]: each for each in actual}
        after = {each["name"]: each for each in wanted}
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
        return [str(each) for each in wanted] == [str(each) for each in actual]
    return wanted == actual or (wanted in empty and actual in empty)


def _advice(item: Item) -> str:
    command = {"node_group_templates": "template"}.get(item.kind.name, item.kind.word)
    if item.kind.name == "jobs":
        return "the API cannot change it: give the job another name"
    return (
        f"the API cannot change it: give it another name, or remove it with svcd {command} rm"
        f" {item.name} and apply again"
    )


# ---- requests -----------------------------------------------------------------------------------


def request(item: Item, ids: Mapping[tuple[str, str], str], url: str = "") -> dict[str, Any]:
    """The body of the POST that makes `item`.

    ids: of the objects that it refers to, by kind and name. url: of a job binary's data.
    """
    body = {key: value for key, value in item.body.items() if key not in ("file", "content")}
    if "image" in body:
        body["default_image_id"] = ids["images", body.pop("image")]
    if "cluster_template" in body:
        id_ = ids["cluster_templates", body.pop("cluster_template")]
        body["cluster_template_id"] = id_
    if body.get("node_groups"):
        body["node_groups"] = [group_request(each, ids) for each in body["node_groups"]]
    for key in ("mains", "libs"):
        if body.get(key):
            body[key] = [ids["job_binaries", name] for name in body[key]]
    if url:
        body["url"] = url
    return {key: value for key, value in body.items() if value is not None}


def group_request(group: Json, ids: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """A node group in a request."""
    made = dict(group)
    if "node_group_template" in made:
        name = made.pop("node_group_template")
        made["node_group_template_id"] = ids["node_group_templates", name]
    return made
