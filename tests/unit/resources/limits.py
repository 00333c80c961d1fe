"""What the suites of limits share: a good body for every shape that a route takes, and the limits.

Routes are read from the door and limits from the annotations of the request classes. A route or a
class that is new has no body here, and fails the suite until it has one.
"""

from __future__ import annotations

import copy
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from attrs import frozen

from svcd.model import names, requests
from svcd.model.job import GIVEN, JobConfigs
from svcd.model.shapes import Shape
from svcd.resources._route import Raw, Route
from svcd.testing import FakeService
from tests.support.fakes import MASTER, WORKER
from tests.unit.resources.test_channel import Connected

GROUP: dict[str, Any] = {
    "name": "workers",
    "count": 1,
    "node_group_template_id": "ngt",
    "flavor_id": "2",
    "node_processes": ["datanode"],
    "node_configs": {"HDFS": {"dfs.replication": 1}},
    "volumes_per_node": 1,
    "volumes_size": 1,
    "volume_mount_prefix": "/disk",
    "floating_ip_pool": "public",
}
PLUGIN = {"plugin_name": "fake", "engine_version": "0.1"}
CONFIGS = {"HDFS": {"dfs.replication": 1}}
CREDENTIALS = {"user": "u", "password": "p"}
LOGIN = {"user": "alice", "domain": "Default", "password": "alice"}
CLUSTER: dict[str, Any] = {
    **PLUGIN,
    "name": "c",
    "description": "words",
    "default_image_id": "i",
    "user_keypair_id": "k",
    "node_groups": [GROUP],
    "cluster_configs": CONFIGS,
    "anti_affinity": ["datanode"],
    "neutron_management_network": "n",
    "is_transient": False,
}
GOOD: Mapping[type, Mapping[str, Any]] = {
    requests.NewNodeGroupTemplate: {
        **PLUGIN,
        **{k: v for k, v in GROUP.items() if k not in ("count", "node_group_template_id")},
        "description": "words",
    },
    requests.NewClusterTemplate: {
        k: v for k, v in CLUSTER.items() if k not in ("user_keypair_id", "is_transient")
    },
    requests.NewCluster: {**CLUSTER, "cluster_template_id": "ct"},
    requests.ScaleRequest: {
        "resize_node_groups": [{"name": "workers", "count": 1}],
        "add_node_groups": [GROUP],
    },
    requests.NewDataSource: {
        "name": "in",
        "description": "words",
        "type": "hdfs",
        "url": "hdfs://a/b",
        "credentials": CREDENTIALS,
    },
    requests.NewJobBinary: {
        "name": "jb",
        "description": "words",
        "file_name": "my words.pig",
        "url": "objstore-internal://a/b",
        "extra": CREDENTIALS,
    },
    requests.NewJob: {
        "name": "j",
        "description": "words",
        "type": "Pig",
        "mains": ["m"],
        "libs": ["l"],
    },
    requests.ExecuteRequest: {
        "cluster_id": "c",
        "input_id": "i",
        "output_id": "o",
        "job_configs": {"configs": {"a": 1}, "args": ["x"], "params": {"p": "q"}},
    },
    requests.RegisterImage: {"username": "cloud", "description": "words"},
    requests.Tags: {"tags": ["vanilla"]},
    requests.PasswordLogin: {**LOGIN, "project": "p"},
}
WHOLE = {"name": "w", "count": 1, "flavor_id": "2", "node_processes": [*MASTER, *WORKER]}
"""One machine that is a cluster with an engine."""
LEAST: Mapping[type, Mapping[str, Any]] = {
    requests.NewNodeGroupTemplate: {
        **PLUGIN,
        "name": "g",
        "flavor_id": "2",
        "node_processes": ["datanode"],
    },
    requests.NewClusterTemplate: {**PLUGIN, "name": "t", "node_groups": [WHOLE]},
    requests.NewCluster: {
        **PLUGIN,
        "name": "c",
        "default_image_id": FakeService.image_id,
        "node_groups": [WHOLE],
    },
    requests.ScaleRequest: {},
    requests.NewDataSource: {"name": "s", "type": "hdfs", "url": "/a"},
    requests.NewJobBinary: {
        "name": "b",
        "url": "objstore-internal://a/b",
        "extra": CREDENTIALS,
    },
    requests.NewJob: {"name": "j", "type": "Java", "mains": []},
    requests.ExecuteRequest: {"job_configs": {"configs": {"edp.java.main_class": "a.Main"}}},
    requests.RegisterImage: {"username": "cloud"},
    requests.Tags: {"tags": ["a"]},
    requests.PasswordLogin: LOGIN,
}
"""What the service accepts, as soon as the suite has filled in the ids."""

BLUEPRINT = (
    b'{"host_groups":[{"name":"w","components":[{"name":"NAMENODE"},{"name":"DATANODE"}]}],'
    b'"flavor_id":"2","Blueprints":{"blueprint_name":"t"}}'
)


def with_body(peer: Connected) -> Sequence[Route]:
    """Every route that takes a body."""
    return [each for each in peer.rest.routes() if each.spec.body is not None]


@frozen(kw_only=True)
class Limit:
    """A bound of one value. path: keys and indexes into the body; over: one beyond `at`."""

    cls: type
    path: tuple[str | int, ...]
    at: Any
    over: Any
    expected: str

    @property
    def where(self) -> str:
        """As faults tell it."""
        return "$" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in self.path)

    def body(self, value: Any) -> dict[str, Any]:
        """The good body with `value` in the place."""
        made: dict[str, Any] = copy.deepcopy(dict(GOOD[self.cls]))
        place: Any = made
        for step in self.path[:-1]:
            place = place[step]
        place[self.path[-1]] = value
        return made


def limits_of(cls: type) -> Iterator[Limit]:
    """Every bound of every value of bodies of `cls`, nested ones too."""
    yield from _of_class(cls, cls, (), GOOD[cls])


def integers_of(cls: type) -> Iterator[Limit]:
    """Those of numbers."""
    return (each for each in limits_of(cls) if isinstance(each.at, int))


def _of_class(
    top: type, cls: type, path: tuple[str | int, ...], good: Mapping[str, Any]
) -> Iterator[Limit]:
    hints = typing.get_type_hints(cls, include_extras=True)
    for attribute in attrs.fields(cls):
        if attribute.name not in good:
            assert (top, attribute.name) in _LEFT_OUT, (cls, attribute.name)
            continue
        at = (*path, attribute.name)
        yield from _of_hint(top, hints[attribute.name], at, good[attribute.name])


_LEFT_OUT = frozenset(
    {
        (requests.NewClusterTemplate, "cluster_template_id"),
        (requests.ExecuteRequest, "cluster"),  # a cluster body; not both
    }
)


def _of_hint(top: type, hint: Any, path: tuple[str | int, ...], good: Any) -> Iterator[Limit]:
    for part in _parts(hint):
        bare = typing.get_args(part)[0] if hasattr(part, "__metadata__") else part
        if attrs.has(bare) and bare is not JobConfigs:
            yield from _of_class(top, bare, path, good)
            continue
        for meta in getattr(part, "__metadata__", ()):
            if meta is not GIVEN:
                yield from _of_meta(top, meta, path, good)
        if typing.get_origin(bare) is tuple:
            yield from _of_hint(top, typing.get_args(bare)[0], (*path, 0), good[0])


def _parts(hint: Any) -> tuple[Any, ...]:
    if hasattr(hint, "__metadata__"):
        return (hint,)
    args = typing.get_args(hint)
    is_union = type(None) in args
    return tuple(a for a in args if a is not type(None)) if is_union else (hint,)


def _of_meta(top: type, meta: Any, path: tuple[str | int, ...], good: Any) -> Iterator[Limit]:
    def limit(at: Any, over: Any, expected: str) -> Limit:
        return Limit(cls=top, path=path, at=at, over=over, expected=expected)

    if meta.ge is not None:
        yield limit(meta.ge, meta.ge - 1, f"int >= {meta.ge}, got {meta.ge - 1}")
    if meta.le is not None:
        yield limit(meta.le, meta.le + 1, f"int <= {meta.le}, got {meta.le + 1}")
    most, least = meta.max_length, meta.min_length
    if most is not None:
        unit = "characters" if isinstance(good, str) else "items"
        yield limit(
            _long(good, most, meta.pattern),
            _long(good, most + 1, meta.pattern),
            f"at most {most} {unit}, got ",
        )
    if least is not None:
        unit = "character" if isinstance(good, str) else "item"
        plural = "" if least == 1 else "s"
        yield limit(
            _long(good, least, meta.pattern),
            _long(good, least - 1, meta.pattern),
            f"at least {least} {unit}{plural}, got ",
        )


def _long(good: Any, length: int, pattern: str | None) -> Any:
    if isinstance(good, str):
        slash = "/" if pattern == names.MOUNT_PREFIX and length else ""
        return slash + "a" * (length - len(slash))
    if isinstance(good, Mapping):
        return {f"t{n}": {} for n in range(length)}
    return [good[0]] * length


def shapes(routes: Sequence[Route]) -> Sequence[type]:
    """The classes of bodies, each once."""
    found = {each.spec.body.cls for each in routes if isinstance(each.spec.body, Shape)}
    return sorted(found, key=lambda cls: cls.__name__)


def raw(each: Route) -> bool:
    """Whether the body is no JSON of ours."""
    return isinstance(each.spec.body, Raw)
