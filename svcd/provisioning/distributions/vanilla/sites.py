"""Site files: names and values, the caller's options among them, and their form as XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from svcd.model.template import ConfigValue
from svcd.model.xml import content
from svcd.provisioning.distributions.spi import Machine
from svcd.provisioning.distributions.vanilla.entries import Site, site_of
from svcd.provisioning.distributions.vanilla.layout import holder

Properties = dict[str, str]


def site_xml(properties: Mapping[str, str]) -> str:
    """Hadoop's configuration document."""
    lines = (
        f"<property><name>{content(name)}</name><value>{content(value)}</value></property>\n"
        for name, value in properties.items()
    )
    return f'<?xml version="1.0"?>\n<configuration>\n{"".join(lines)}</configuration>\n'


def text_of(value: ConfigValue) -> str:
    """A caller's value as Hadoop writes it."""
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
    return ours | asked(site, machine.configs)


def address_of(machines: Sequence[Machine], process: str) -> str:
    found = holder(machines, process)
    return found.address if found else "0.0.0.0"
