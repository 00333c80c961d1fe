"""`svcd machines …`: the machines of embedded clouds that run on this system, and their end.

The commands ask no daemon: they find the processes of machines in /proc. `rm` ends processes of
machines whose daemon is gone; it never removes a file, and never touches the machines of a daemon
that runs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from svcd.cli.command import Group
from svcd.cli.exits import FAILED, NOT_FOUND, REFUSED, USAGE, CommandError
from svcd.cli.question import confirm, yes_option
from svcd.cli.session import Session
from svcd.cli.show import Column, Row, Table, field, get
from svcd.embedded import process_marks
from svcd.embedded.installations import Installation, Machine, running
from svcd.model.controls import visible

_GRACE_S: Final = 10.0
"""Time from SIGTERM to SIGKILL."""
_LIMIT_S: Final = 20.0
"""Time for the end of all processes."""


def _name(row: Row, _now: float = 0.0) -> str:
    return get(row, "name") or get(row, "id")


MACHINES: Final = Table(
    many="machines",
    one="machine",
    columns=(
        Column(title="MACHINE", text=_name, key=True),
        field("ID", "id", wide=True),
        Column(
            title="PROCESSES", text=lambda row, now: str(len(row["processes"])), cut=False, spare=1
        ),
        field("MIB", "memory_mib", cut=False),
        field("STATE", "state", cut=False),
        field("DAEMON", "daemon", wide=True),
        # the last column: here a long path disturbs no other
        field("STATE FOLDER", "state_dir", cut=False),
    ),
    name=lambda row: get(row, "id"),
    empty="no machine of an embedded cloud runs here as this user",
)

machines: Final = Group(
    "machines", help="Machines of embedded clouds that run on this system, also without a daemon."
)


@machines.command("ls")
@click.pass_obj
def ls(session: Session) -> None:
    """List the running machines of all state folders, and whether their daemons run.

    Only processes of this user are seen. MIB is resident memory.
    """
    session.show({"machines": rows(running())}, MACHINES)


@machines.command("rm")
@click.argument("names", nargs=-1, required=True, metavar="STATE_DIR|MACHINE...")
@yes_option
@click.pass_obj
def rm(session: Session, names: Sequence[str], yes: bool) -> None:
    """End the processes of machines whose daemon is gone: of a state folder, or single machines.

    No file is removed. svcd cluster rm ends the machines of a daemon that runs.
    """
    known = running()
    ending = [pair for name in names for pair in chosen(known, name)]
    for owner, _ in ending:
        _refuse_served(owner)
    roots = {machine.root: machine for _, machine in ending}
    shown = [visible(machine.name or machine.id) for machine in roots.values()]
    confirm("end all processes of", shown, yes)
    with contextlib.ExitStack() as locks:
        for state in {owner.state_dir for owner, _ in ending if owner.exists}:
            _lock(locks, Path(state))
        left = process_marks.end(roots.__contains__, grace_s=_GRACE_S, limit_s=_LIMIT_S)
    if left:
        raise CommandError(f"these processes do not end: {', '.join(map(str, left))}", FAILED)
    count = len(roots)
    session.note(f"{count} machine{'s' * (count != 1)} ended: {', '.join(shown)}")
    if any(owner.exists for owner, _ in ending):
        session.note(
            "their folders stay: the next start of the daemon finds the machines without their"
            " programs, and svcd cluster rm CLUSTER removes them"
        )


def rows(known: Sequence[Installation]) -> Sequence[dict[str, Any]]:
    """The machines as `-o json` shows them. Pure."""
    return [
        {
            "id": machine.id,
            "name": machine.name,
            "state_dir": owner.state_dir,
            "processes": list(machine.pids),
            "memory_mib": machine.memory_mib,
            "daemon": owner.daemon or None,
            "state": owner.state,
        }
        for owner in known
        for machine in owner.machines
    ]


def chosen(known: Sequence[Installation], name: str) -> Sequence[tuple[Installation, Machine]]:
    """All machines of the state folder `name`, else the machine with this id, name or beginning.

    Raises CommandError: unknown, or several match.
    """
    pairs = [(owner, machine) for owner in known for machine in owner.machines]
    place = os.path.realpath(name)
    if inside := [pair for pair in pairs if os.path.realpath(pair[0].state_dir) == place]:
        return inside
    match = [pair for pair in pairs if name in (pair[1].id, pair[1].name)] or [
        (owner, machine)
        for owner, machine in pairs
        if name and (machine.id.startswith(name) or machine.name.startswith(name))
    ]
    if len(match) == 1:
        return match
    if match:
        shown = ", ".join(f"{machine.id} in {owner.state_dir}" for owner, machine in match)
        raise CommandError(f"{name!r} means several machines: {shown}; write the id", USAGE)
    text = f"no machine {name!r} and no machine of a state folder {place} runs as this user"
    raise CommandError(f"{text}; svcd machines ls lists them", NOT_FOUND)


def _refuse_served(owner: Installation) -> None:
    if owner.daemon:
        ends = f"svcd cluster rm CLUSTER --state-dir {owner.state_dir} ends its machines"
        if not owner.exists:
            ends = f"the folder is deleted, so {owner.remedy}"
        text = f"the daemon of {owner.state_dir} runs (process {owner.daemon}): {ends}"
        raise CommandError(text, REFUSED)


def _lock(locks: contextlib.ExitStack, state: Path) -> None:
    """Keep a daemon from a start in the folder meanwhile. Raises CommandError: one has begun."""
    from svcd.runtime.state_dir import CLOUD_LOCK, StateFolder, StateFolderError

    try:
        locks.callback(StateFolder(state, CLOUD_LOCK).release)
    except StateFolderError as error:
        raise CommandError(str(error), REFUSED) from None
