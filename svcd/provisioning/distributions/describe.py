"""A plan as text: what would be done, where and in which order. For dry runs, documents and tests.

Contents of files are told by size only: they may hold what the caller wants kept to himself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from svcd.model.ids import InstanceId
from svcd.provisioning.distributions.spi import (
    Action,
    Command,
    HttpProbe,
    Machine,
    Plan,
    WriteFile,
)


def describe(plan: Plan, machines: Sequence[Machine] = ()) -> str:
    """One line a stage, chain or action; `machines` gives names in place of ids."""
    names = {m.instance_id: m.name for m in machines}
    return "".join(f"{line}\n" for line in _lines(plan, names))


def _lines(plan: Plan, names: Mapping[InstanceId, str]) -> Iterator[str]:
    for number, stage in enumerate(plan, 1):
        yield f"{number}. {stage.name} (within {stage.deadline_s:g} s)"
        for chain in stage.chains:
            for position, action in enumerate(chain):
                mark = "-" if position == 0 else " "
                yield f"   {mark} {names.get(action.machine, action.machine)}: {_told(action)}"
        yield f"   if it fails: {stage.advice}"


def _told(action: Action) -> str:
    match action:
        case WriteFile():
            return f"write {action.path} ({len(action.content)} bytes, mode {action.mode:o})"
        case Command():
            return f"{action.what} (within {action.timeout_s:g} s): {action.script}"
        case HttpProbe():
            return f"wait for {action.what}: {action.url}"
