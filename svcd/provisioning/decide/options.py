"""Checks the options of a cluster or a node group against those of the distribution. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from svcd.errors import InvalidReference, SvcdError, ValidationError
from svcd.model.choices import listed, nearest
from svcd.model.shapes import step
from svcd.model.template import Configs, ConfigValue
from svcd.provisioning.distributions.spi import ConfigEntry, IDistribution, Scope

GENERAL: Final = "general"
_MOST_SUGGESTIONS: Final = 3
"""Suggestions for one object of options: comparing a name with 1,600 others takes milliseconds."""


def option_faults(
    path: str,
    configs: Configs,
    distribution: IDistribution,
    version: str,
    *,
    of_group: bool = False,
) -> Iterator[SvcdError]:
    """The faults of targets, names and types. of_group: options of the whole cluster are faults."""
    if not configs:
        return
    suggestions = _MOST_SUGGESTIONS
    services = tuple(distribution.node_processes(version))
    known = _by_target(services, _Same(distribution.configs(version)))
    for target, values in configs.items():
        if target not in known:
            yield InvalidReference(
                f"{path}{step(target)}: unknown target; available: {', '.join(known)}"
            )
            continue
        for name, value in values.items():
            option = known[target].get(name)
            where = f"{path}{step(target)}{step(name)}"
            if option is None:
                hint = _hint(name, target, known) if suggestions > 0 else ""
                suggestions -= 1
                yield InvalidReference(f"{where}: unknown option{hint}")
            elif of_group and option.scope is Scope.CLUSTER:
                yield InvalidReference(
                    f"{where}: this option is for the whole cluster; give it in cluster_configs"
                )
            elif not _fits(value, option.config_type):
                # without the value, which may be a password
                yield ValidationError(
                    f"{where}: expected {option.config_type}, got {type(value).__name__}"
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
