"""Site files: their names and values, including the caller's options, and their XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from svcd.model.template import ConfigValue
from svcd.model.xml import content
from svcd.provisioning.distributions.spi import Machine
from svcd.provisioning.distributions.vanilla.entries import Site, site_of
from svcd.provisioning.distributions.vanilla.layout import holder

Properties = dict[str, str]


def site_xml(properties: Mapping[str, str]) -> str:
    """A site file of Hadoop with `properties`."""
    lines = (
        f"<property><name>{content(name)}</name><value>{content(value)}</value></property>\n"
        for name, value in properties.items()
    )
    return f'<?xml version="1.0"?>\n<configuration>\n{"".join(lines)}</configuration>\n'


def text_of(value: ConfigValue) -> str:
    """A caller's value in the notation of Hadoop."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def asked(site: Site, configs: Mapping[str, Mapping[str, ConfigValue]]) -> Properties:
    """The caller's options that belong to `site`."""
    known = site_of()
    return {
        name: text_of(value)
        for target, options in configs.items()
        for name, value in options.items()
        if known.get((target, name)) is site and (value != "" or not name.endswith(".java.opts"))
    }


def with_asked(site: Site, ours: Properties, machine: Machine) -> Properties:
    """The properties of svcd, overridden by the caller's options for `machine`."""
    return ours | asked(site, machine.configs)


def address_of(machines: Sequence[Machine], process: str) -> str:
    """The address of the machine that runs `process`; 0.0.0.0 when no machine runs it."""
    found = holder(machines, process)
    return found.address if found else "0.0.0.0"
