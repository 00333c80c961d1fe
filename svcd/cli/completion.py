"""`svcd completion`: the script with which a shell completes svcd's commands and options."""

from __future__ import annotations

import os
from typing import Final

import click

SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_SVCD_COMPLETE"
"""The variable by which the scripts ask for completions."""
_USE: Final = {
    "bash": 'eval "$(svcd completion bash)", for example in ~/.bashrc',
    "zsh": 'eval "$(svcd completion zsh)", for example in ~/.zshrc',
    "fish": "svcd completion fish | source, for example in ~/.config/fish/config.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script that completes svcd in a shell; use it as its first line says."""
    from click.shell_completion import get_completion_class

    from svcd.cli.main import root

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"this release of click does not complete in {shell}")
    print(f"# use: {_USE[shell]}")
    print(kind(root, {}, "svcd", VARIABLE).source())


def complete(root: click.Command) -> int:
    """Answer a shell, which asks by variables of the environment."""
    from click.shell_completion import shell_complete

    return shell_complete(root, {}, "svcd", VARIABLE, os.environ[VARIABLE])
