"""Checks that a body of the API has the fields that commands rely on. Pure.

A program that is not svcd may answer with JSON too. Commands read resources without further checks,
so each body passes here when it enters the command line. Fields without a name in these tables may
have any value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

_NAMED: Final = ("id", "name")
_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "clusters": _NAMED,
    "cluster_templates": _NAMED,
    "node_group_templates": _NAMED,
    "data_sources": (*_NAMED, "type", "url"),
    "binaries": _NAMED,
    "jobs": (*_NAMED, "type", "mains", "libs"),
    "job_executions": ("id", "info"),
    "images": ("id",),
    "plugins": ("name",),
    "events": (),
    "machines": ("instance_name",),
    "node_groups": (),
    "instances": (),
    "mains": ("id",),
    "libs": ("id",),
}
"""Lists of objects -> the fields that each object has."""
_OBJECTS: Final[Mapping[str, tuple[str, ...]]] = {
    "cluster": _LISTS["clusters"],
    "cluster_template": _LISTS["cluster_templates"],
    "node_group_template": _LISTS["node_group_templates"],
    "data_source": _LISTS["data_sources"],
    "job_binary": _LISTS["binaries"],
    "job_binary_internal": _LISTS["binaries"],
    "job": _LISTS["jobs"],
    "job_execution": _LISTS["job_executions"],
    "image": _LISTS["images"],
    "plugin": _LISTS["plugins"],
}
"""Objects -> the fields that each has."""


def _optional(kind: type) -> Callable[[Any], bool]:
    return lambda value: value is None or isinstance(value, kind)


_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "id": lambda value: isinstance(value, str) and value != "",
    "name": _optional(str),
    "type": lambda value: isinstance(value, str),
    "url": lambda value: isinstance(value, str),
    "instance_name": _optional(str),
    "status": _optional(str),
    "count": _optional(int),
    "datasize": lambda value: isinstance(value, int),
    "credentials": lambda value: isinstance(value, dict),
    "info": _optional(dict),
    "cluster_configs": _optional(dict),
    "job_configs": _optional(dict),
    "tags": _optional(list),
    "versions": _optional(list),
    "required_image_tags": _optional(list),
}


def usable(body: Mapping[str, Any]) -> bool:
    """Whether the known fields of a body, or of an object in it, have the types of the API."""
    return all(_is_usable(body, name, value) for name, value in body.items())


def _is_usable(body: Mapping[str, Any], name: str, value: Any) -> bool:
    if name in _LISTS:
        return isinstance(value, list) and all(_has(each, _LISTS[name]) for each in value)
    if name in _OBJECTS:
        return _has(value, _OBJECTS[name])
    if name == "info" and value and "node_groups" in body:  # the links of a cluster
        return isinstance(value, dict) and all(map(_optional(dict), value.values()))
    return name not in _TYPES or _TYPES[name](value)


def _has(value: Any, fields: tuple[str, ...]) -> bool:
    return isinstance(value, dict) and all(each in value for each in fields) and usable(value)
