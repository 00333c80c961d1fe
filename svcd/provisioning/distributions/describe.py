"""Describes a plan as text: its actions, their machines and their order.

For dry runs, documents and tests. The text shows the size of a file and never its content, because
the content may hold secrets of the caller.
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
    """The plan with one line for each stage and action. `machines`: shows names in place of ids."""
    names = {m.instance_id: m.name for m in machines}
    return "".join(f"{line}\n" for line in _lines(plan, names))


def _lines(plan: Plan, names: Mapping[InstanceId, str]) -> Iterator[str]:
    for number, stage in enumerate(plan, 1):
        yield f"{number}. {stage.name} (within {stage.deadline_s:g} s)"
        for chain in stage.chains:
            for position, action in enumerate(chain):
                bullet = "-" if position == 0 else " "
                yield f"   {bullet} {names.get(action.machine, action.machine)}: {_text(action)}"
        if stage.advice:
            yield f"   if it fails: {stage.advice}"


def _text(action: Action) -> str:
    match action:
        case WriteFile():
            return f"write {action.path} ({len(action.content)} bytes, mode {action.mode:o})"
        case Command():
            return f"{action.what} (within {action.timeout_s:g} s): {action.script}"
        case HttpProbe():
            return f"wait for {action.what}: {action.url}"
