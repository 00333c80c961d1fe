"""The resource of the plugins: the enabled distributions, and the conversion of their files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from klein import Klein

from svcd.errors import (
    RULES,
    ClusterTemplateNameTaken,
    MalformedBody,
    NotFound,
)
from svcd.model import wire
from svcd.model.convert import convert
from svcd.model.requests import NewClusterTemplate
from svcd.model.template import ConfigValue
from svcd.resources._bodies import Body
from svcd.resources._call import Call
from svcd.resources._query import Query
from svcd.resources._route import Raw, route
from svcd.resources.dependencies import ApiServices


def short(distribution: Any) -> wire.Plugin:
    """A plugin as an entry of a list."""
    return wire.Plugin.filled(distribution, versions=list(distribution.versions))


def detail(distribution: Any, version: str) -> wire.PluginVersion:
    """A plugin with the processes, tags and options of one version."""
    return wire.PluginVersion.filled(
        distribution,
        versions=list(distribution.versions),
        node_processes={
            service: list(processes)
            for service, processes in distribution.node_processes(version).items()
        },
        required_image_tags=list(distribution.required_image_tags(version)),
        configs=[
            wire.ConfigEntry.filled(
                option, default_value=_default(option.default_value), scope=option.scope.value
            )
            for option in distribution.configs(version)
        ],
    )


def _default(value: ConfigValue) -> str | bool:
    """A default on the wire: a string or a boolean. Source: interface, "Config entry"."""
    return value if isinstance(value, bool) else str(value)


_CONFIGURATION = Raw(
    ("application/json", "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")
)
"""The body of convert-config. A web page of another site can send other types, such as text/plain,
without a preceding question."""

_FLAVOR = Query("flavor_id", "flavor of the groups whose file names none", always=True)


class Plugins:
    """Plugins: distributions, their versions and options."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._distributions = services.distributions
        self._templates = services.templates

    @route(app, "GET", "/plugins", returns="plugins")
    async def list(self, call: Call) -> Sequence[wire.Plugin]:
        """List the plugins, in the order of the setting `plugins.enabled`."""
        return [short(distribution) for distribution in self._distributions.all()]

    @route(app, "GET", "/plugins/<plugin_name>", returns="plugin")
    async def get(self, call: Call, plugin_name: str) -> wire.Plugin:
        """Return one plugin."""
        return short(self._distributions.get(plugin_name))

    @route(
        app,
        "GET",
        "/plugins/<plugin_name>/<version>",
        returns="plugin",
        operation="getPluginVersion",
    )
    async def version(self, call: Call, plugin_name: str, version: str) -> wire.PluginVersion:
        """Return one plugin with the processes, tags and options of a version."""
        return detail(self._of(plugin_name, version), version)

    def _of(self, plugin_name: str, version: str) -> Any:
        distribution = self._distributions.get(plugin_name)
        if version not in distribution.versions:
            raise NotFound(f"version {version!r} of plugin {plugin_name!r} not found")
        return distribution

    async def _exists(self, call: Call, plugin_name: str, version: str, **_: str) -> None:
        self._of(plugin_name, version)

    @route(
        app,
        "POST",
        (
            "/plugins/<plugin_name>/<version>/convert-config",
            "/plugins/<plugin_name>/<version>/convert-config/<template_name>",
        ),
        body=_CONFIGURATION,
        returns="cluster_template",
        exists="_exists",
        limit="convert",
        operation="convertConfig",
        raises=(MalformedBody, *RULES, ClusterTemplateNameTaken),
        query=(_FLAVOR,),
        creates=True,
    )
    async def convert(
        self, call: Call, plugin_name: str, version: str, body: Body, template_name: str = ""
    ) -> wire.ClusterTemplate:
        """Create a cluster template from a configuration file."""
        distribution = self._of(plugin_name, version)
        new: NewClusterTemplate = convert(
            await body.read(),
            plugin_name=plugin_name,
            engine_version=version,
            processes={
                process: service
                for service, processes in distribution.node_processes(version).items()
                for process in processes
            },
            configs={
                (config.applicable_target, config.name): config.config_type
                for config in distribution.configs(version)
            },
            template_name=template_name,
            flavor_id=call.query["flavor_id"] or "",
        )
        return wire.ClusterTemplate.of(
            await self._templates.create_cluster_template(call.caller, new, call.key)
        )
