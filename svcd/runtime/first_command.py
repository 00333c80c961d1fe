"""The command that the daemon's start shows: it makes the first cluster. Pure."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from attrs import fields

from svcd.settings import Server, Settings


def first_command(base: str, settings: Settings, activate: Path | None, here: Path) -> str:
    """A line that works in any other shell on this machine; on a real cloud NAME is left open.

    base: URL of the API. activate: script of the virtual environment that has `svcd`, if there is
    one. here: the daemon's working folder.
    """
    folder = here / settings.server.state_dir
    usual = here / str(fields(Server).state_dir.default)
    if settings.cloud.kind != "embedded":
        before, where = [], f"--api {quote(base)} --os-cloud NAME "
    elif folder == usual:
        before, where = [f"cd {quote(str(here))}"], ""
        if activate is not None and activate.is_relative_to(here):
            activate = activate.relative_to(here)
    else:
        before, where = [], f"--state-dir {quote(str(folder))} "
    if activate is not None:
        before.append(f". {quote(str(activate))}")
    plugins = settings.plugins.enabled
    plugin = "vanilla" if "vanilla" in plugins else plugins[0]
    create = f"svcd {where}cluster create first --plugin {plugin} --workers 2 --wait"
    return "; ".join([*before, create])
