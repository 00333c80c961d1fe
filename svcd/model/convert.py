"""Turns a configuration file into a cluster template request. Pure.

It accepts two formats, both as JSON or YAML:

- an Ambari blueprint (`host_groups`, `configurations`, `Blueprints`). Components become processes
  (`SECONDARY_NAMENODE` -> `secondarynamenode`, `OOZIE_SERVER` -> `oozie`), clients are left out,
  the least number of a `cardinality` becomes the count, and the five `*-site` sections become
  options. A blueprint has no flavor: the flavor comes from the key `flavor_id` of a host group or
  of the whole file (an extension), else from the query parameter of that name. Values that refer to
  host groups (`%HOSTGROUP::x%`) are left out, because svcd sets addresses itself.
- svcd's own bundle: the body of POST cluster-templates; `name`, `plugin_name` and `engine_version`
  may be left out.

The description is always the conversion note. Source: interface, "Plugins"; behaviour, Part I 15.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from svcd.errors import InvalidReference, MalformedBody, ValidationError
from svcd.model.requests import Limits, NewClusterTemplate
from svcd.model.shapes import Shape
from svcd.model.template import ConfigValue

NOTE = "Converted from a configuration file"

_SITES = ("core-site", "hdfs-site", "yarn-site", "mapred-site", "oozie-site")
_MAX_YAML_BYTES = 32_768
"""Largest YAML file; larger ones must be JSON, which parses faster."""
_MAX_YAML_NODES = 10_000
"""Most values of a YAML file: each takes some microseconds in the reactor."""
_MAX_YAML_DEPTH = 50
"""Deepest nesting of a YAML file."""
_LIMITS = Limits()
_shape = Shape(NewClusterTemplate)


def convert(
    content: bytes,
    *,
    plugin_name: str,
    engine_version: str,
    processes: Mapping[str, str],
    configs: Mapping[tuple[str, str], str],
    template_name: str = "",
    flavor_id: str = "",
    limits: Limits = _LIMITS,
) -> NewClusterTemplate:
    """The request that makes the cluster template.

    processes: process -> service. configs: (target, option) -> its type, of the plugin's version.
    Raises MalformedBody (neither JSON nor YAML), ValidationError or InvalidReference, all faults
    at once.
    """
    tree = _parse(content)
    if "host_groups" in tree:
        request = _from_blueprint(tree, processes, configs, flavor_id)
    elif "node_groups" in tree:
        request = dict(tree)
    else:
        raise ValidationError(
            "$: expected host_groups (an Ambari blueprint) or node_groups (a bundle of svcd)"
        )
    for key, value in (("plugin_name", plugin_name), ("engine_version", engine_version)):
        if request.setdefault(key, value) != value:
            raise InvalidReference(f"$.{key}: the path says {value!r}, the file another value")
    if template_name:
        request["name"] = template_name
    request["description"] = NOTE
    return _shape.convert(request, limits)


def _yaml(text: str) -> Any:
    """The tree of `text`. It checks the events first, so a forbidden tree is never built.

    libyaml's loader is ten times as fast as the other one, but not always installed.
    """
    import yaml  # here: a start need not wait for it

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(yaml, text, loader)
        return yaml.load(text, loader)  # a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _check_events(yaml: Any, text: str, loader: Any) -> None:
    """Raise YAMLError for a tree with aliases, and for one that is too large or too deep."""
    depth = nodes = 0
    for event in yaml.parse(text, loader):
        if isinstance(event, yaml.AliasEvent):
            # by aliases a small file could grow without end
            raise yaml.YAMLError("aliases are not allowed")
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if nodes > _MAX_YAML_NODES or depth > _MAX_YAML_DEPTH:
            raise yaml.YAMLError(
                f"it has more than {_MAX_YAML_NODES} values, or is nested deeper than "
                f"{_MAX_YAML_DEPTH}; send it as JSON"
            )


def _parse(content: bytes) -> dict[str, Any]:
    try:
        tree = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if len(content) > _MAX_YAML_BYTES:
            raise MalformedBody(
                f"the file is not JSON, and YAML files may have at most {_MAX_YAML_BYTES} bytes"
            ) from None
        try:
            loaded = _yaml(content.decode("utf-8"))
            tree = msgspec.json.decode(msgspec.json.encode(loaded))  # keys become texts
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            reason = " ".join(str(error).split())[:200]
            raise MalformedBody(f"the file is neither JSON nor YAML: {reason}") from None
    if not isinstance(tree, dict):
        raise ValidationError("$: expected an object with host_groups or node_groups")
    return tree


def _from_blueprint(
    tree: Mapping[str, Any],
    processes: Mapping[str, str],
    configs: Mapping[tuple[str, str], str],
    flavor_id: str,
) -> dict[str, Any]:
    faults: list[str] = []
    head = tree.get("Blueprints")
    groups = []
    for index, group in enumerate(_list(tree, "host_groups", "$", faults)):
        path = f"$.host_groups[{index}]"
        names = _processes(group, path, processes, faults)
        if not names:
            continue
        flavor = group.get("flavor_id") or tree.get("flavor_id") or flavor_id
        if not flavor:
            faults.append(
                f"{path}.flavor_id: missing; a blueprint has no flavor, give the query "
                "parameter flavor_id"
            )
        groups.append(
            {
                "name": str(group.get("name", "")).replace("_", "-"),
                "count": _least(group.get("cardinality", "1"), path, faults),
                "flavor_id": str(flavor),
                "node_processes": names,
                "node_configs": _options(group, path, configs, faults),
            }
        )
    options = _options(tree, "$", configs, faults)
    if faults:
        raise InvalidReference("\n".join(faults))
    request: dict[str, Any] = {"node_groups": groups, "cluster_configs": options}
    if isinstance(head, dict) and isinstance(head.get("blueprint_name"), str):
        request["name"] = head["blueprint_name"].replace("_", "-")
    return request


def _list(
    tree: Mapping[str, Any], key: str, path: str, faults: list[str]
) -> list[Mapping[str, Any]]:
    value = tree.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        faults.append(f"{path}.{key}: expected an array of objects")
        return []
    return value


def _processes(
    group: Mapping[str, Any], path: str, processes: Mapping[str, str], faults: list[str]
) -> list[str]:
    processes_: list[str] = []
    for component in _list(group, "components", path, faults):
        name = str(component.get("name", ""))
        if name.endswith("_CLIENT"):
            continue
        plain = name.lower().replace("_", "")
        process = plain if plain in processes else plain.removesuffix("server")
        if process not in processes:
            faults.append(f"{path}.components: the plugin has no process for {name[:60]!r}")
        elif process not in processes_:
            processes_.append(process)
    return processes_


def _least(cardinality: Any, path: str, faults: list[str]) -> int:
    match = re.match(r"\s*(\d{1,6})\s*(\+|-\s*\d+)?\s*\Z", str(cardinality))
    if match is None:
        faults.append(f"{path}.cardinality: expected a number, N+ or N-M")
        return 1
    return max(1, int(match.group(1)))


def _options(
    tree: Mapping[str, Any],
    path: str,
    configs: Mapping[tuple[str, str], str],
    faults: list[str],
) -> dict[str, dict[str, ConfigValue]]:
    targets: dict[str, str] = {}
    for target, name in configs:
        targets.setdefault(name, target)
    options: dict[str, dict[str, ConfigValue]] = {}
    for section in _list(tree, "configurations", path, faults):
        for site, content in section.items():
            if site not in _SITES or not isinstance(content, dict):
                continue
            properties = content.get("properties", content)
            if not isinstance(properties, dict):
                faults.append(f"{path}.configurations: {site} holds no properties")
                continue
            for name, value in properties.items():
                if "%HOSTGROUP" in str(value):
                    continue
                place = targets.get(name)
                if place is None:
                    faults.append(f"{path}.configurations: {site} option {name[:100]!r} is unknown")
                else:
                    options.setdefault(place, {})[name] = _typed(value, configs[place, name])
    return options


def _typed(value: Any, kind: str) -> ConfigValue:
    """A blueprint's value in the type of the option.

    A value of the wrong type stays unchanged; the later check of the request reports it.
    """
    text = str(value).strip()
    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "int" and re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    return value if isinstance(value, (str, bool, int)) else text
