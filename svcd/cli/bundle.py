"""A bundle: clusters, jobs, and the objects that they name, in one YAML file. Pure.

A bundle has a list for each kind. The fields are those of the API's POST, with names in place of
ids (`cluster_template`, `node_group_template`, `image`, `mains`, `libs`). A job binary has `file`,
`content` or `url`. In place of any value `{env: NAME}` stands for a variable of the environment.
`bundle_file` reads a bundle, `bundle_plan` compares it with the project.

Note: one form for all. `exported` turns an object of the API into the fields of a bundle. `plan`
compares the fields that a bundle gives with this form, so that a bundle that was exported is equal
to what it was exported from. It leaves fields alone that a bundle does not give.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen

from svcd.model.redaction import MASK, is_secret, shown_url

Json = Mapping[str, Any]


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
    "volume_mount_prefix", "floating_ip_pool", "init_scripts",
)  # fmt: skip
HEAD: Final = ("name", "description")
MADE_OF: Final = ("plugin_name", "engine_version")
LIFETIME: Final = ("idle_delete_s", "max_age_s")
_CLUSTER: Final = (
    *HEAD, *MADE_OF, "image", "cluster_configs", "anti_affinity", "neutron_management_network",
    "node_groups", *LIFETIME,
)  # fmt: skip
GROUPS: Final = ("name", "count", "node_group_template", *_GROUP)

KINDS: Final = (
    Kind(
        name="node_group_templates", word="node group template", path="/node-group-templates",
        key="node_group_template", rows="node_group_templates", fields=(*HEAD, *MADE_OF, *_GROUP),
    ),
    Kind(
        name="cluster_templates", word="template", path="/cluster-templates",
        key="cluster_template", rows="cluster_templates", fields=_CLUSTER,
    ),
    Kind(
        name="data_sources", word="source", path="/data-sources", key="data_source",
        rows="data_sources", fields=(*HEAD, "type", "url", "credentials"),
    ),
    Kind(
        name="job_binaries", word="binary", path="/job-binaries", key="job_binary",
        rows="binaries", fields=(*HEAD, "file_name", "file", "content", "url", "extra"),
    ),
    Kind(
        name="jobs", word="job", path="/jobs", key="job", rows="jobs",
        fields=(*HEAD, "type", "mains", "libs"),
    ),
    Kind(
        name="clusters", word="cluster", path="/clusters", key="cluster", rows="clusters",
        fields=(*_CLUSTER, "cluster_template", "user_keypair_id"),
    ),
)  # fmt: skip
"""The kinds, in the order in which svcd apply makes their objects."""
BY_NAME: Final = {kind.name: kind for kind in KINDS}


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
        by_name = (row for row in rows if row["name"] == name)
        return next(by_name, None) or next((e for e in rows if e["id"] == name), None)

    def image(self, name: str) -> Json | None:
        """The image of that id, or the only one of that name; a registered one first."""
        for key, images in itertools.product(("id", "name"), (self.images, self.local)):
            matching = [image for image in images if image[key] == name]
            if matching:
                return matching[0] if len(matching) == 1 else None
        return None

    def name_of(self, kind: str, id_: object) -> str | None:
        return next((str(e["name"]) for e in self.rows.get(kind, ()) if e["id"] == id_), None)


def exported(kind: Kind, row: Json, there: There, masked: bool = True) -> dict[str, Any]:
    """The fields of a bundle for an object of the API.

    masked: with `{env: NAME}` in place of secrets, else with the secrets that the API answered.
    """
    fields: dict[str, Any] = {}
    for name in kind.fields:
        value = _value(kind, name, row, there)
        if value not in (None, "", {}, []):
            fields[name] = value
    return _placeholders(fields, str(row["name"])) if masked else fields


def _value(kind: Kind, name: str, row: Json, there: There) -> Any:
    match name:
        case "image":
            id_ = row.get("default_image_id")
            image = next((image for image in there.images if image["id"] == id_), None)
            unique = image is not None and there.image(str(image["name"])) is not None
            return image["name"] if unique and image is not None else id_
        case "cluster_template":
            return there.name_of("cluster_templates", row.get("cluster_template_id"))
        case "node_groups":
            return [_group(group, there) for group in row["node_groups"]]
        case "mains" | "libs":
            return [binary["name"] for binary in row[name]]
        case "url" if kind.name == "job_binaries" and str(row["url"]).startswith("internaldb://"):
            return None
        case "idle_delete_s" | "max_age_s" if kind.name == "clusters" and name not in row:
            template = there.find("cluster_templates", str(row.get("cluster_template_id")))
            return 0 if template is not None and template.get(name) else None
        case _:
            return row.get(name)


def _group(group: Json, there: There) -> dict[str, Any]:
    """The fields of a group, without those that are equal in its template."""
    template = there.find("node_group_templates", str(group.get("node_group_template_id"))) or {}
    head = {"name": group["name"], "count": group["count"]}
    if template:
        head["node_group_template"] = template["name"]
    own = {key: group[key] for key in _GROUP if group.get(key) not in (None, {})}
    return head | {key: value for key, value in own.items() if value != template.get(key)}


def _placeholders(value: Any, name: str, key: str = "") -> Any:
    if isinstance(value, dict):
        return {field: _placeholders(inner, name, str(field)) for field, inner in value.items()}
    if isinstance(value, list):
        return [_placeholders(item, name, key) for item in value]
    hidden = isinstance(value, str) and (
        value == MASK or is_secret(key) or shown_url(value) != value
    )
    return {"env": variable(f"{name}_{key}")} if hidden else value


def variable(text: str) -> str:
    """A name of a variable of the environment: letters, digits and `_`."""
    return re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_")


# ---- requests -----------------------------------------------------------------------------------

New = Mapping[tuple[str, str], Item]
"""The objects that a bundle makes, by kind and name."""
_INHERITED: Final = (
    "image",
    "anti_affinity",
    "neutron_management_network",
    "node_groups",
    *LIFETIME,
)


def whole(body: Json, new: New) -> dict[str, Any]:
    """`body` with the fields of the new templates that it names, as the API will merge them.

    So the API can check a request whose templates have no ids yet.
    """
    fields = {key: value for key, value in body.items() if value is not None}
    template = new.get(("cluster_templates", str(fields.get("cluster_template"))))
    if template is not None:
        del fields["cluster_template"]
        given = template.body
        inherited = {key: given[key] for key in _INHERITED if given.get(key) is not None}
        configs = _merged(given.get("cluster_configs"), fields.get("cluster_configs"))
        fields = {**inherited, **fields, "cluster_configs": configs}
    if fields.get("node_groups"):
        fields["node_groups"] = [whole_group(group, new) for group in fields["node_groups"]]
    return fields


def whole_group(group: Json, new: New) -> dict[str, Any]:
    """A node group with the fields of the new template that it names."""
    fields = {key: value for key, value in group.items() if value is not None}
    template = new.get(("node_group_templates", str(fields.get("node_group_template"))))
    if template is None:
        return fields
    del fields["node_group_template"]
    inherited = {key: template.body[key] for key in _GROUP if template.body.get(key) is not None}
    configs = _merged(inherited.get("node_configs"), fields.get("node_configs"))
    return {**inherited, **fields, "node_configs": configs or {}}


def _merged(first: Any, then: Any) -> Any:
    """The options of both by name; `then` wins."""
    if not isinstance(first, dict) or not isinstance(then, dict):
        return first if then is None else then
    return {**first, **{key: _merged(first.get(key), value) for key, value in then.items()}}


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
        body["node_groups"] = [group_request(group, ids) for group in body["node_groups"]]
    for key in ("mains", "libs"):
        if body.get(key):
            body[key] = [ids["job_binaries", name] for name in body[key]]
    if url:
        body["url"] = url
    return {key: value for key, value in body.items() if value is not None}


def scale_request(
    sizes: Mapping[str, int], groups: Sequence[Json], ids: Mapping[tuple[str, str], str]
) -> dict[str, Any]:
    """The body of the PUT that changes the sizes of a cluster and adds `groups`."""
    resized = [{"name": name, "count": count} for name, count in sizes.items()]
    added = [group_request(group, ids) for group in groups]
    body = {"resize_node_groups": resized, "add_node_groups": added}
    return {key: value for key, value in body.items() if value}


def has_content(item: Item) -> bool:
    """Whether svcd keeps the data of a job binary."""
    return "content" in item.body or "file" in item.body


def group_request(group: Json, ids: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """A node group in a request."""
    fields = dict(group)
    if "node_group_template" in fields:
        name = fields.pop("node_group_template")
        fields["node_group_template_id"] = ids["node_group_templates", name]
    return fields
