"""The single checks of a request on clusters or templates. `rules` has their order. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from attrs import fields

from svcd.errors import InvalidData, InvalidReference, QuotaExceeded, SvcdError, ValidationError
from svcd.model.choices import listed, nearest
from svcd.model.cloud import Quota
from svcd.model.fields import MOST_SCRIPT_BYTES
from svcd.model.requests import NewCluster, NewClusterTemplate, NewNodeGroup
from svcd.model.template import (
    ClusterTemplate,
    Configs,
    NodeGroupTemplate,
    TemplateNodeGroup,
)
from svcd.model.wire import IMAGE_TAG, is_registered
from svcd.provisioning.decide import lifetimes
from svcd.provisioning.decide.facts import PROBLEM, Bounds, Facts
from svcd.provisioning.decide.node_groups import completed, instance_name
from svcd.provisioning.decide.options import option_faults
from svcd.provisioning.distributions.spi import IDistribution

MOST_HOST_NAME: Final = 64
"""Characters of a host name on Linux."""
_MOST_FAULTS: Final = 100
"""After this many faults of one request the check of options stops."""


class Checks:
    """The checks of one request, which keep its faults in the order in which they find them.

    faults: of the checks so far. distribution: None when the plugin or its version is unknown;
    this is then the first fault.
    """

    def __init__(self, plugin_name: str, version: str, facts: Facts) -> None:
        self.faults: list[SvcdError] = []
        self._plugin_name, self._version, self._facts = plugin_name, version, facts
        self.distribution: IDistribution | None = self._distribution()

    def reference(self, text: str) -> None:
        """Add an InvalidReference."""
        self.faults.append(InvalidReference(text))

    def data(self, text: str) -> None:
        """Add an InvalidData."""
        self.faults.append(InvalidData(text))

    def value(self, text: str) -> None:
        """Add a ValidationError."""
        self.faults.append(ValidationError(text))

    def _distribution(self) -> IDistribution | None:
        name, version, distribution = self._plugin_name, self._version, self._facts.distribution
        if distribution is None:
            choices = listed(self._facts.plugins)
            self.reference(f"$.plugin_name: plugin {name!r} not found; available: {choices}")
            return None
        if version not in distribution.versions:
            self.reference(
                f"$.engine_version: plugin {name!r} has no version {version!r}; "
                f"available: {listed(distribution.versions)}"
            )
            return None
        return distribution

    def durations(
        self,
        new: NewCluster | NewClusterTemplate,
        whole: NewCluster | NewClusterTemplate,
        bounds: Bounds,
    ) -> None:
        """`idle_delete_s` and `max_age_s` are allowed. whole: `new` with its template's values."""
        for name in lifetimes.DURATIONS:
            path = "$" if getattr(new, name) is not None else "$.cluster_template_id"
            seconds = getattr(whole, name)
            if text := lifetimes.fault(path, name, seconds, bounds, self.distribution):
                self.data(text)

    def cluster_template(self, template_id: str | None) -> None:
        """The cluster template exists and is for the plugin of the request."""
        path, template = "$.cluster_template_id", self._facts.cluster_template
        if template_id is None:
            return
        if template is None:
            self.reference(f"{path}: cluster template {template_id!r} not found")
        else:
            self._same_plugin(path, "cluster template", template)

    def _same_plugin(
        self, path: str, kind: str, template: ClusterTemplate | NodeGroupTemplate
    ) -> None:
        pair = template.plugin_name, template.engine_version
        if pair != (self._plugin_name, self._version):
            self.reference(
                f"{path}: {kind} {template.name!r} is for plugin {' '.join(pair)}, "
                f"but the request names {self._plugin_name} {self._version}"
            )

    def complete_groups(self, path: str, news: Iterable[NewNodeGroup]) -> list[TemplateNodeGroup]:
        """The groups with the values of their templates, without groups of an unknown template.

        Each template exists and is for the plugin of the request.
        """
        groups: list[TemplateNodeGroup] = []
        for number, new in enumerate(news):
            template: NodeGroupTemplate | None = None
            if new.node_group_template_id is not None:
                where = f"{path}[{number}].node_group_template_id"
                template = self._facts.node_group_templates.get(new.node_group_template_id)
                if template is None:
                    self.reference(
                        f"{where}: node group template {new.node_group_template_id!r} not found"
                    )
                    continue
                self._same_plugin(where, "node group template", template)
            groups.append(completed(new, template))
        return groups

    def names_differ(self, path: str, names: Sequence[str]) -> None:
        """No two groups have one name.

        Instance names are in lower case, so group names that differ only in case are equal.
        """
        for name in _repeated(n.lower() for n in names):
            self.data(f"{path}: node group name {name!r} is given more than once")

    def group(self, path: str, group: TemplateNodeGroup) -> None:
        """Processes, options, flavor, pool and scripts of a node group are known and fit."""
        self._processes(f"{path}.node_processes", group.node_processes)
        self._options(f"{path}.node_configs", group.node_configs, of_group=True)
        self._flavor(f"{path}.flavor_id", group.flavor_id)
        self._scripts(f"{path}.init_scripts", group.init_scripts)
        pool, networks = group.floating_ip_pool, self._facts.networks
        if pool is not None and not any(n.external and pool in (n.id, n.name) for n in networks):
            names = listed([f"{n.name} ({n.id})" for n in networks if n.external])
            self.reference(
                f"{path}.floating_ip_pool: external network {pool!r} not found; available: {names}"
            )

    def _scripts(self, path: str, names: Sequence[str]) -> None:
        """First-boot scripts are internal job binaries of the tenant, small, and each runs once."""
        if repeated := _repeated(names):
            self.data(f"{path}: given more than once: {', '.join(repeated)}")
        for number, name in enumerate(names):
            script = self._facts.scripts.get(name)
            if script is None:
                near = nearest(name, self._facts.script_names)
                choices = f"available: {listed(self._facts.script_names)}"
                self.reference(
                    f"{path}[{number}]: job binary internal {name!r} not found; "
                    + (f"did you mean {near}?" if near else choices)
                )
            elif script.datasize > MOST_SCRIPT_BYTES:
                self.value(
                    f"{path}[{number}]: {name!r} has {script.datasize} bytes, "
                    f"a script may have {MOST_SCRIPT_BYTES}"
                )

    def _flavor(self, path: str, flavor_id: str) -> None:
        flavor, image = self._facts.flavors.get(flavor_id), self._facts.image
        if flavor is None:
            self.reference(
                f"{path}: flavor {flavor_id!r} not found in the cloud; available: "
                + listed([f"{id_} ({known.name})" for id_, known in self._facts.flavors.items()])
            )
        elif image is not None and flavor.ram_mib < image.min_ram_mib:
            self.reference(
                f"{path}: flavor {flavor.name!r} has {flavor.ram_mib / 1024:g} GiB of memory, but "
                f"image {image.name!r} needs {image.min_ram_mib / 1024:g}; use a larger flavor"
            )

    def host_name(self, path: str, cluster_name: str, group: TemplateNodeGroup) -> None:
        """The longest host name of a group is short enough."""
        longest = instance_name(cluster_name, group.name, max(1, group.count))
        if len(longest) > MOST_HOST_NAME:
            self.value(
                f"{path}.name: host name {longest!r} would have {len(longest)} characters, at most "
                f"{MOST_HOST_NAME} are allowed; shorten the name of the cluster or of the group"
            )

    def bounds(self, path: str, groups: Sequence[TemplateNodeGroup], bounds: Bounds) -> None:
        """The numbers of instances and groups are within the settings."""
        total = sum(g.count for g in groups)
        if total > bounds.nodes:
            self.value(f"{path}: at most {bounds.nodes} instances in total, got {total}")
        if len(groups) > bounds.groups:
            self.value(f"{path}: at most {bounds.groups} node groups, got {len(groups)}")

    def whole(self, configs: Configs, anti_affinity: Sequence[str], network: str | None) -> None:
        """Anti-affinity, options and network of the whole cluster are known and fit."""
        self._processes("$.anti_affinity", anti_affinity)
        self._options("$.cluster_configs", configs)
        networks = self._facts.networks
        if network is not None and not any(network == n.id for n in networks):
            names = listed([f"{n.id} ({n.name})" for n in networks])
            self.reference(
                f"$.neutron_management_network: network {network!r} not found; available: {names}"
            )

    def _processes(self, path: str, names: Sequence[str]) -> None:
        """Names of processes differ and are known."""
        if repeated := _repeated(names):
            self.data(f"{path}: given more than once: {', '.join(repeated)}")
        if self.distribution is None:
            return
        services = self.distribution.node_processes(self._version)
        known = [process for processes in services.values() for process in processes]
        unknown = [name for name in dict.fromkeys(names) if name not in known]
        if unknown:
            self.reference(
                f"{path}: unknown process {', '.join(unknown)}; available: {', '.join(known)}"
            )

    def _options(self, path: str, configs: Configs, *, of_group: bool = False) -> None:
        if self.distribution is None:
            return
        faults = option_faults(path, configs, self.distribution, self._version, of_group=of_group)
        self.faults.extend(islice(faults, max(0, _MOST_FAULTS - len(self.faults))))

    def image(self, image_id: str) -> None:
        """The image exists, is active and registered, and has the required tags."""
        self.image_usable(image_id)
        image = self._facts.image
        if image is None:
            return
        name = f"image {image.name!r} ({image.id})"
        if not is_registered(image):
            self.reference(
                f"$.default_image_id: {name} is not registered; "
                f"register it with its login username; registered images: {self._registered()}"
            )
        if self.distribution is not None:
            wanted = self.distribution.required_image_tags(self._version)
            lacking = [t for t in wanted if image.properties.get(IMAGE_TAG + t) != "True"]
            if lacking:
                self.reference(
                    f"$.default_image_id: {name} lacks the tags "
                    f"{', '.join(lacking)}; tag it for the plugin, or use another image"
                )

    def image_usable(self, image_id: str) -> None:
        """The image exists and is active."""
        image = self._facts.image
        if image is None:
            self.reference(
                f"$.default_image_id: image {image_id!r} not found; "
                f"registered images: {self._registered()}"
            )
        elif image.status.lower() != "active":
            problem = image.properties.get(PROBLEM, "")
            self.reference(
                f"$.default_image_id: image {image.name!r} ({image.id}) is {image.status}, "
                f"not active{': ' + problem if problem else ''}"
            )

    def _registered(self) -> str:
        registered = filter(is_registered, self._facts.images)
        return listed([f"{image.id} ({image.name})" for image in registered])

    def keypair(self, name: str | None) -> None:
        """The key pair exists."""
        if name is not None and self._facts.keypair is None:
            choices = listed(self._facts.keypairs)
            self.reference(f"$.user_keypair_id: key pair {name!r} not found; available: {choices}")

    def quota(self, groups: Sequence[TemplateNodeGroup]) -> None:
        """The project has enough left for the groups."""
        need, quota = needed(groups, self._facts), self._facts.quota
        pairs = (
            ("instances", need["instances"], quota.instances),
            ("cores", need["cores"], quota.cores),
            ("MiB of memory", need["ram_mib"], quota.ram_mib),
            ("volumes", need["volumes"], quota.volumes),
            ("GiB of volumes", need["volume_gib"], quota.volume_gib),
            ("floating IPs", need["floating_ips"], quota.floating_ips),
        )
        over = [
            f"{resource}: needed {amount}, left {left}"
            for resource, amount, left in pairs
            if left is not None and amount > max(0, left)
        ]
        if over:
            text = "the quota of the project is too small: " + "; ".join(over)
            self.faults.append(QuotaExceeded(text))


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def ssh_port(text: str) -> int:
    """The port of an image property; 22 when the property is missing or invalid."""
    return int(text) if text.isdecimal() and 0 < int(text) < 65536 else 22


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
