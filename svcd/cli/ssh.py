"""`svcd cluster ssh`: runs the system's `ssh` to a machine, with the host key that svcd pinned."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from svcd.cli.command import Command
from svcd.cli.exits import NOT_FOUND, CommandError
from svcd.cli.session import Session
from svcd.cli.tunnel import found, identity_option, login_words
from svcd.model.choices import listed, nearest


class _Command(Command):
    """Keeps the words after `--` apart, which click would add to the other arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[__name__] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@click.command("ssh", cls=_Command, options_metavar="[OPTIONS]", epilog="CMD stands after --")
@click.argument("cluster", metavar="CLUSTER")
@click.argument("machine", metavar="[MACHINE] [-- CMD…]", required=False)
@identity_option
@click.pass_context
def command(ctx: click.Context, cluster: str, machine: str | None, identity: Path | None) -> int:
    """Log in on a machine of a cluster, or run CMD there. Without MACHINE: its first one.

    The exit code is that of ssh: of CMD, or 255 when the login failed.
    """
    session: Session = ctx.obj
    wanted, machines = found(session.api, cluster)
    there = chosen(machines, machine, str(wanted["name"]))
    key = identity or session.private_key(wanted.get("user_keypair_id"))
    with tempfile.TemporaryDirectory(prefix="svcd-ssh-") as folder:
        line = ["ssh", *login_words(there, Path(folder, "known_hosts"), key)]
        try:
            return subprocess.call([*line, *ctx.meta[__name__]])
        except OSError as error:
            text = f"ssh cannot be run ({error.strerror}): install openssh-client"
            raise CommandError(text) from None


def chosen(machines: Sequence[Any], given: str | None, cluster: str) -> Any:
    """The machine of that name, or of the end or a part of it. Pure. Raises CommandError."""
    if not machines:
        raise CommandError(f"cluster {cluster} has no machines", NOT_FOUND)
    if given is None:
        return machines[0]
    names = [str(machine["instance_name"]) for machine in machines]
    fits = [n for n in names if given in (n, n.removeprefix(f"{cluster}-"))]
    fits = fits or [n for n in names if n.removeprefix(f"{cluster}-").startswith(given)]
    if len(fits) == 1:
        return machines[names.index(fits[0])]
    near = nearest(given, names)
    advice = f"did you mean {near}?" if near else f"its machines are {listed(names)}"
    if fits:
        advice = f"it is the beginning of {listed(fits)}"
    raise CommandError(f"cluster {cluster} has no machine {given!r}; {advice}", NOT_FOUND)
