"""The single checks of requests. Each check adds its faults to a list of errors. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from attrs import evolve, fields

from svcd.errors import InvalidData, InvalidReference, QuotaExceeded, SvcdError, ValidationError
from svcd.model.choices import listed, nearest
from svcd.model.cloud import Quota
from svcd.model.requests import NewCluster
from svcd.model.shapes import step
from svcd.model.template import ClusterTemplate, Configs, ConfigValue, TemplateNodeGroup
from svcd.model.wire import IMAGE_TAG, IMAGE_TAG_VALUE, IMAGE_USERNAME, is_registered
from svcd.provisioning.decide.facts import PROBLEM, Bounds, Facts
from svcd.provisioning.distributions.spi import ConfigEntry, IDistribution, Scope

MOST_HOST_NAME: Final = 64
"""Characters of a host name on Linux."""
GENERAL: Final = "general"
_MOST_FAULTS: Final = 100
"""Faults of one request after which the check of options stops."""
_MOST_SUGGESTIONS: Final = 3
"""Suggestions for one object of options: comparing a name with 1,600 others takes milliseconds."""


class Faults(list[SvcdError]):
    """The faults of a request, in the order in which the checks find them."""

    def reference(self, text: str) -> None:
        """Add an InvalidReference."""
        self.append(InvalidReference(text))

    def data(self, text: str) -> None:
        """Add an InvalidData."""
        self.append(InvalidData(text))

    def value(self, text: str) -> None:
        """Add a ValidationError."""
        self.append(ValidationError(text))


def instance_name(cluster_name: str, group_name: str, index: int) -> str:
    """The instance name `<cluster>-<group>-NNN` in lower case."""
    return f"{cluster_name}-{group_name}-{index:03d}".lower()


def plugin(name: str, version: str, facts: Facts, errors: Faults) -> IDistribution | None:
    """The distribution of the request; None when plugin or version is unknown."""
    distribution = facts.distribution
    if distribution is None:
        errors.reference(
            f"$.plugin_name: plugin {name!r} not found; available: {listed(facts.plugins)}"
        )
        return None
    if version not in distribution.versions:
        errors.reference(
            f"$.engine_version: plugin {name!r} has no version {version!r}; "
            f"available: {listed(distribution.versions)}"
        )
        return None
    return distribution


def same_plugin(path: str, template: ClusterTemplate, new: NewCluster, errors: Faults) -> None:
    if (template.plugin_name, template.engine_version) != (new.plugin_name, new.engine_version):
        errors.reference(
            f"{path}: cluster template {template.name!r} is for plugin {template.plugin_name} "
            f"{template.engine_version}, but the request names "
            f"{new.plugin_name} {new.engine_version}"
        )


def group_fits(
    path: str,
    group: TemplateNodeGroup,
    distribution: IDistribution | None,
    version: str,
    facts: Facts,
    errors: Faults,
) -> None:
    """Check processes, options, flavor and floating IP pool of one node group."""
    _processes_fit(f"{path}.node_processes", group.node_processes, distribution, version, errors)
    if distribution is not None:
        configs = group.node_configs
        _configs(f"{path}.node_configs", configs, distribution, version, errors, of_group=True)
    flavor = facts.flavors.get(group.flavor_id)
    if flavor is None:
        errors.reference(
            f"{path}.flavor_id: flavor {group.flavor_id!r} not found in the cloud; available: "
            + listed([f"{id_} ({each.name})" for id_, each in facts.flavors.items()])
        )
    elif facts.image is not None and flavor.ram_mib < facts.image.min_ram_mib:
        errors.reference(
            f"{path}.flavor_id: flavor {flavor.name!r} has {flavor.ram_mib} MiB of memory, but "
            f"image {facts.image.name!r} needs {facts.image.min_ram_mib}; use a larger flavor"
        )
    pool = group.floating_ip_pool
    if pool is not None and not any(n.external and pool in (n.id, n.name) for n in facts.networks):
        names = listed([f"{n.name} ({n.id})" for n in facts.networks if n.external])
        errors.reference(
            f"{path}.floating_ip_pool: external network {pool!r} not found; available: {names}"
        )


def whole_fits(
    configs: Configs,
    anti_affinity: Sequence[str],
    network: str | None,
    distribution: IDistribution | None,
    version: str,
    facts: Facts,
    errors: Faults,
) -> None:
    """Check anti-affinity, options and network of the whole cluster."""
    _processes_fit("$.anti_affinity", anti_affinity, distribution, version, errors)
    if distribution is not None:
        _configs("$.cluster_configs", configs, distribution, version, errors)
    if network is not None and not any(network == n.id for n in facts.networks):
        names = listed([f"{n.id} ({n.name})" for n in facts.networks])
        errors.reference(
            f"$.neutron_management_network: network {network!r} not found; available: {names}"
        )


def _processes_fit(
    path: str,
    names: Sequence[str],
    distribution: IDistribution | None,
    version: str,
    errors: Faults,
) -> None:
    """Check that names of processes differ and are known."""
    repeated = _repeated(names)
    if repeated:
        errors.data(f"{path}: given more than once: {', '.join(repeated)}")
    if distribution is None:
        return
    known = [p for each in distribution.node_processes(version).values() for p in each]
    unknown = [p for p in dict.fromkeys(names) if p not in known]
    if unknown:
        errors.reference(
            f"{path}: unknown process {', '.join(unknown)}; available: {', '.join(known)}"
        )


def _repeated(names: Iterable[str]) -> list[str]:
    return [n for n, count in Counter(names).items() if count > 1]


def names_differ(path: str, names: Sequence[str], errors: Faults) -> None:
    """Refuse equal group names.

    Instance names are in lower case, so group names that differ only in case are equal.
    """
    for name in _repeated(n.lower() for n in names):
        errors.data(f"{path}: node group name {name!r} is given more than once")


def host_name_fits(
    path: str, cluster_name: str, group_name: str, count: int, errors: Faults
) -> None:
    longest = instance_name(cluster_name, group_name, max(1, count))
    if len(longest) > MOST_HOST_NAME:
        errors.value(
            f"{path}.name: host name {longest!r} would have {len(longest)} characters, at most "
            f"{MOST_HOST_NAME} are allowed; shorten the name of the cluster or of the group"
        )


def within_bounds(
    path: str, groups: Sequence[TemplateNodeGroup], bounds: Bounds, errors: Faults
) -> None:
    total = sum(g.count for g in groups)
    if total > bounds.nodes:
        errors.value(f"{path}: at most {bounds.nodes} instances in total, got {total}")
    if len(groups) > bounds.groups:
        errors.value(f"{path}: at most {bounds.groups} node groups, got {len(groups)}")


def _configs(
    path: str,
    configs: Configs,
    distribution: IDistribution,
    version: str,
    errors: Faults,
    of_group: bool = False,
) -> None:
    """Check targets, names and types of options. of_group: refuse options of the whole cluster."""
    if not configs:
        return
    suggestions = _MOST_SUGGESTIONS
    services = tuple(distribution.node_processes(version))
    known = _by_target(services, _Same(distribution.configs(version)))
    for target, values in configs.items():
        if len(errors) >= _MOST_FAULTS:
            return
        if target not in known:
            errors.reference(f"{path}{step(target)}: unknown target; available: {', '.join(known)}")
            continue
        for name, value in values.items():
            if len(errors) >= _MOST_FAULTS:
                return
            option = known[target].get(name)
            where = f"{path}{step(target)}{step(name)}"
            if option is None:
                hint = _hint(name, target, known) if suggestions > 0 else ""
                suggestions -= 1
                errors.reference(f"{where}: unknown option{hint}")
            elif of_group and option.scope is Scope.CLUSTER:
                errors.reference(
                    f"{where}: this option is for the whole cluster; give it in cluster_configs"
                )
            elif not _fits(value, option.config_type):
                errors.value(
                    f"{where}: expected {option.config_type}, got "
                    f"{type(value).__name__}"  # not the value: it may be a password
                )


def _hint(name: str, target: str, known: Mapping[str, Mapping[str, ConfigEntry]]) -> str:
    """A hint for an unknown option: its right target, or the most similar name; "" for none."""
    others = [other for other, options in known.items() if name in options]
    if others:
        return f" of {target}; it is an option of {listed(others)}"
    near = nearest(name, known[target])
    return f"; did you mean {near}?" if near else ""


class _Same:
    """Compares entries by identity, because a comparison of 1,600 entries takes too long."""

    __slots__ = ("entries",)

    def __init__(self, entries: Sequence[ConfigEntry]) -> None:
        self.entries = entries

    def __hash__(self) -> int:
        return id(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.entries is self.entries


@lru_cache(maxsize=32)
def _by_target(
    services: tuple[str, ...], configs: _Same
) -> Mapping[str, Mapping[str, ConfigEntry]]:
    """The options in the form target -> name -> option."""
    known: dict[str, dict[str, ConfigEntry]] = {s: {} for s in services}
    for entry in configs.entries:
        known.setdefault(entry.applicable_target, {})[entry.name] = entry
    known.setdefault(GENERAL, {})
    return known


def _fits(value: ConfigValue, kind: str) -> bool:
    """Whether a value has the type of its option. Numbers and booleans may be text."""
    match kind:
        case "int":
            if isinstance(value, bool):
                return False
            return isinstance(value, int) or value.strip().lstrip("-").isdecimal()
        case "bool":
            return isinstance(value, bool) or str(value).lower() in {"true", "false"}
        case _:
            return True


def image_fits(
    image_id: str,
    distribution: IDistribution | None,
    version: str,
    facts: Facts,
    errors: Faults,
) -> None:
    """Check that the image exists, is active and registered, and has the required tags."""
    image_usable(image_id, facts, errors)
    image = facts.image
    if image is None:
        return
    if not is_registered(image):
        errors.reference(
            f"$.default_image_id: image {image.name!r} ({image.id}) is not registered; "
            f"register it with its login username; registered images: {_registered(facts)}"
        )
    if distribution is not None:
        wanted = distribution.required_image_tags(version)
        lacking = [t for t in wanted if image.properties.get(IMAGE_TAG + t) != "True"]
        if lacking:
            errors.reference(
                f"$.default_image_id: image {image.name!r} ({image.id}) lacks the tags "
                f"{', '.join(lacking)}; tag it for the plugin, or use another image"
            )


def as_registered(facts: Facts, user: str, version: str) -> Facts:
    """The facts with an image that is registered with the login `user` and has the tags it needs.

    Properties that the image has stay as they are.
    """
    image = facts.image
    if image is None:
        return facts
    tags: Sequence[str] = ()
    if facts.distribution is not None and version in facts.distribution.versions:
        tags = list(facts.distribution.required_image_tags(version))
    given = {IMAGE_USERNAME: user, **{IMAGE_TAG + tag: IMAGE_TAG_VALUE for tag in tags}}
    return evolve(facts, image=evolve(image, properties={**given, **image.properties}))


def image_usable(image_id: str, facts: Facts, errors: Faults) -> None:
    """Check that the image exists and is active."""
    image = facts.image
    if image is None:
        errors.reference(
            f"$.default_image_id: image {image_id!r} not found; "
            f"registered images: {_registered(facts)}"
        )
    elif image.status.lower() != "active":
        problem = image.properties.get(PROBLEM, "")
        errors.reference(
            f"$.default_image_id: image {image.name!r} ({image.id}) is {image.status}, "
            f"not active{': ' + problem if problem else ''}"
        )


def _registered(facts: Facts) -> str:
    registered = filter(is_registered, facts.images)
    return listed([f"{i.id} ({i.name})" for i in registered])


def keypair_found(name: str | None, facts: Facts, errors: Faults) -> None:
    if name is not None and facts.keypair is None:
        errors.reference(
            f"$.user_keypair_id: key pair {name!r} not found; available: {listed(facts.keypairs)}"
        )


def ssh_port(text: str) -> int:
    """The port of an image property; 22 when the property is missing or invalid."""
    return int(text) if text.isdecimal() and 0 < int(text) < 65536 else 22


def within_quota(groups: Sequence[TemplateNodeGroup], facts: Facts, errors: Faults) -> None:
    need = needed(groups, facts)
    pairs = (
        ("instances", need["instances"], facts.quota.instances),
        ("cores", need["cores"], facts.quota.cores),
        ("MiB of memory", need["ram_mib"], facts.quota.ram_mib),
        ("volumes", need["volumes"], facts.quota.volumes),
        ("GiB of volumes", need["volume_gib"], facts.quota.volume_gib),
        ("floating IPs", need["floating_ips"], facts.quota.floating_ips),
    )
    over = [
        f"{what}: needed {amount}, left {left}"
        for what, amount, left in pairs
        if left is not None and amount > max(0, left)
    ]
    if over:
        errors.append(QuotaExceeded("the quota of the project is too small: " + "; ".join(over)))


def needed(groups: Sequence[TemplateNodeGroup], facts: Facts) -> Mapping[str, int]:
    """The demand of the groups for each field of `Quota`; an unknown flavor counts as 0."""
    total = dict.fromkeys((a.name for a in fields(Quota)), 0)
    for group in groups:
        flavor = facts.flavors.get(group.flavor_id)
        total["instances"] += group.count
        total["cores"] += group.count * (flavor.vcpus if flavor is not None else 0)
        total["ram_mib"] += group.count * (flavor.ram_mib if flavor is not None else 0)
        total["volumes"] += group.count * group.volumes_per_node
        total["volume_gib"] += group.count * group.volumes_per_node * group.volumes_size
        total["floating_ips"] += group.count if group.floating_ip_pool is not None else 0
    return total
