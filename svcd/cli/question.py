"""The question before a command removes something, and the option that answers it beforehand.

On a terminal a command names what goes and asks. Elsewhere it refuses unless `--yes` is given.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from svcd.cli.exits import REFUSED, CommandError

if TYPE_CHECKING:
    from svcd.cli.names import Kind
    from svcd.cli.session import Session

_MOST_NAMED: Final = 20
"""Most names in a question."""

yes_option: Final = click.option("-y", "--yes", is_flag=True, help="do not ask")


def confirm(what: str, names: Sequence[str], yes: bool) -> None:
    """Ask before a removal; no question without names. what: the act, `delete cluster`.

    Raises CommandError when the answer is no, and without a terminal when `--yes` is missing.
    """
    if yes or not names:
        return
    from svcd.model.choices import listed

    text = f"{what} {listed(names, _MOST_NAMED)}"
    refuse_unasked(text, yes)
    print(f"{text}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was changed", REFUSED)


def refuse_unasked(what: str, yes: bool) -> None:
    """Raises CommandError when `--yes` is missing and there is no terminal to ask on."""
    if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        text = f"{what} needs --yes, because there is no terminal to ask on"
        raise CommandError(text, REFUSED)


def delete(session: Session, what: str, rows: Sequence[tuple[Kind, Any]], yes: bool) -> None:
    """Delete resources of these kinds after the question. what: their noun. Raises CommandError."""
    names = [str(row.get("name") or row["id"]) for _, row in rows]
    confirm(f"delete {what}", names, yes)
    for (kind, row), name in zip(rows, names, strict=True):
        session.api.delete(f"{kind.path}/{row['id']}")
        session.note(f"deleted {kind.noun} {name}")
