"""Reads the file of a bundle, with the place of a fault. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from svcd.cli.bundle import BY_NAME, GROUPS, HEAD, MADE_OF, Item
from svcd.cli.files import parsed
from svcd.cli.job_files import Unusable
from svcd.model.choices import listed, nearest

Json = Mapping[str, Any]

_MOST_VALUES: Final = 100_000
"""Values in a bundle, aliases counted each time."""
_IDS: Final = {
    "cluster_template_id": "cluster_template",
    "node_group_template_id": "node_group_template",
    "default_image_id": "image",
    "flavor": "flavor_id",
    "keypair": "user_keypair_id",
}
_TEXTS: Final = frozenset(
    {*HEAD, *MADE_OF, "image", "neutron_management_network", "type", "url", "file", "content",
     "cluster_template", "node_group_template", "user_keypair_id", "flavor_id",
     "volume_mount_prefix", "floating_ip_pool"}
)  # fmt: skip


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
    """The objects in a file. Raises CommandError, with the place of the first fault."""
    documents = parsed(text, file, lambda data: list(yaml.load_all(data, _Loader)), quotes=True)
    _bounded(documents, file)
    items: list[Item] = []
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise Unusable(f"{file}: expected lists of {listed(list(BY_NAME))}")
        for name, rows in document.items():
            items += _rows(name, rows, file, folder, environment)
    return items


def _bounded(values: object, file: str) -> None:
    count, waiting = 0, [values]
    while waiting:
        count += 1
        item = waiting.pop()
        if count > _MOST_VALUES:
            raise Unusable(f"{file} holds more than {_MOST_VALUES} values")
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


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
            _check(group, GROUPS, place)
        if kind.name == "job_binaries":
            given = [source for source in ("file", "content", "url") if source in row]
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
        return [_filled(item, f"{where}[{n}]", environment) for n, item in enumerate(value)]
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
    return {key: _filled(item, f"{where}.{key}", environment) for key, item in value.items()}
